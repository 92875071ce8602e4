/* See workloads/launch/documents.h: of TOML 1.0 what configuration files of trainers use. A line is a table's header or
 * a key with its value; a value in brackets or triple quotes may go on over lines. */
#include <ctype.h>
#include <string.h>

#include "workloads/launch/documents.h"

typedef struct reader {
  const char *path, *at;
  int line;
  const char *table; /* "training." */
  pl_settings *settings;
  pl_error *error;
} reader;

static pl_code bad(const reader *in, const char *what) {
  return pl_fail(in->error, PL_BAD_INPUT, "%s:%d: %s", in->path, in->line, what);
}

static void skip_blanks(reader *in) {
  while (*in->at == ' ' || *in->at == '\t' || *in->at == '\r')
    in->at++;
}

static void skip_comment(reader *in) {
  if (*in->at == '#') in->at += strcspn(in->at, "\n");
}

static bool is_bare(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* a.b."c d" up to what follows; *key in the arena. */
static pl_code read_key(reader *in, const char *prefix, const char **key) {
  const char *made = prefix;
  for (bool first = true;; first = false) {
    skip_blanks(in);
    const char *from = in->at;
    size_t length = 0;
    if (*from == '"' || *from == '\'') {
      length = strcspn(from + 1, *from == '"' ? "\"\n" : "'\n");
      if (from[1 + length] != *from) return bad(in, "a quoted key is not closed");
      in->at += length + 2;
      from++;
    } else {
      while (is_bare(from[length]))
        length++;
      in->at += length;
    }
    if (length == 0) return bad(in, "a key is expected here: NAME = value, or [TABLE]");
    made = pl_arena_printf(in->settings->arena, "%s%s%.*s", made, first ? "" : ".", (int)length, from);
    if (made == NULL) return pl_fail_memory(in->error, "the keys of a launch file");
    skip_blanks(in);
    if (*in->at != '.') break;
    in->at++;
  }
  *key = made;
  return PL_OK;
}

/* Text in quotes, or in three of them; escapes stay as they are but for the quote. */
static pl_code read_string(reader *in, const char **value) {
  char quote = *in->at;
  const char three[] = {quote, quote, quote, '\0'};
  bool is_long = strncmp(in->at, three, 3) == 0;
  in->at += is_long ? 3 : 1;
  const char *from = in->at;
  while (*in->at != '\0' && (is_long ? strncmp(in->at, three, 3) != 0 : *in->at != quote)) {
    if (*in->at == '\n' && !is_long) return bad(in, "a text is not closed on its line");
    in->line += *in->at == '\n';
    in->at += *in->at == '\\' && quote == '"' && in->at[1] != '\0' && in->at[1] != '\n' ? 2 : 1;
  }
  if (*in->at == '\0') return bad(in, "a text is not closed");
  *value = pl_arena_printf(in->settings->arena, "%.*s", (int)(in->at - from), from);
  in->at += is_long ? 3 : 1;
  return *value != NULL ? PL_OK : pl_fail_memory(in->error, "the values of a launch file");
}

/* What stands in brackets, as written. */
static pl_code read_brackets(reader *in, const char **value) {
  const char *from = in->at;
  int depth = 0, begin = in->line;
  do {
    char c = *in->at;
    if (c == '\0') {
      in->line = begin;
      return bad(in, "a bracket is not closed");
    }
    if (c == '"' || c == '\'') {
      const char *text;
      PL_TRY(read_string(in, &text));
      continue;
    }
    if (c == '#') {
      skip_comment(in);
      continue;
    }
    in->line += c == '\n';
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    in->at++;
  } while (depth > 0);
  *value = pl_arena_printf(in->settings->arena, "%.*s", (int)(in->at - from), from);
  return *value != NULL ? PL_OK : pl_fail_memory(in->error, "the values of a launch file");
}

static pl_code read_value(reader *in, const char **value) {
  skip_blanks(in);
  if (*in->at == '"' || *in->at == '\'') return read_string(in, value);
  if (*in->at == '[' || *in->at == '{') return read_brackets(in, value);
  size_t length = strcspn(in->at, "#\r\n"), kept = length, n = 0;
  while (kept > 0 && (in->at[kept - 1] == ' ' || in->at[kept - 1] == '\t'))
    kept--;
  if (kept == 0) return bad(in, "a value is missing behind '='");
  char *plain = pl_arena_printf(in->settings->arena, "%.*s", (int)kept, in->at);
  if (plain == NULL) return pl_fail_memory(in->error, "the values of a launch file");
  for (size_t i = 0; i < kept; i++) /* 1_000_000 */
    if (!(plain[i] == '_' && i > 0 && isdigit((unsigned char)plain[i - 1]))) plain[n++] = plain[i];
  plain[n] = '\0';
  in->at += length;
  *value = plain;
  return PL_OK;
}

static pl_code end_line(reader *in) {
  skip_blanks(in);
  skip_comment(in);
  if (*in->at != '\n' && *in->at != '\0') return bad(in, "this is more than one value on a line");
  return PL_OK;
}

static pl_code read_table(reader *in) {
  bool of_array = in->at[1] == '[';
  const char *name;
  in->at += of_array ? 2 : 1;
  PL_TRY(read_key(in, "", &name));
  if (*in->at != ']' || (of_array && in->at[1] != ']')) return bad(in, "']' is missing behind the table's name");
  in->at += of_array ? 2 : 1;
  in->table = pl_arena_printf(in->settings->arena, "%s.", name);
  return in->table != NULL ? end_line(in) : pl_fail_memory(in->error, "the keys of a launch file");
}

static pl_code read_pair(reader *in) {
  pl_setting setting = {.path = in->path, .line = in->line};
  PL_TRY(read_key(in, in->table, &setting.key));
  if (*in->at != '=') return bad(in, "'=' is missing behind the key");
  in->at++;
  PL_TRY(read_value(in, &setting.value));
  PL_TRY(pl_settings_add(in->settings, setting, in->error));
  return end_line(in);
}

pl_code pl_launch_toml_read(const char *path, const char *text, pl_settings *settings, pl_error *error) {
  reader in = {.path = path, .at = text, .line = 1, .table = "", .settings = settings, .error = error};
  while (*in.at != '\0') {
    skip_blanks(&in);
    skip_comment(&in);
    if (*in.at == '[')
      PL_TRY(read_table(&in));
    else if (*in.at != '\n' && *in.at != '\0')
      PL_TRY(read_pair(&in));
    if (*in.at == '\n') {
      in.at++;
      in.line++;
    }
  }
  return PL_OK;
}
