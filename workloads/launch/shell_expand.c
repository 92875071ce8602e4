/* See workloads/launch/shell_expand.h. */
#include "workloads/launch/shell_expand.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

pl_code pl_shell_put(pl_shell *shell, pl_shell_text *text, const char *bytes, size_t size) {
  shell->expanded += size;
  if (shell->expanded > PL_SHELL_TEXT_MAX)
    return pl_fail(shell->error, PL_BAD_INPUT, "%s:%d: the script's variables grow beyond %d bytes", shell->path,
                   shell->line, PL_SHELL_TEXT_MAX);
  if (text->size + size + 1 > text->room) {
    size_t room = 2 * (text->size + size + 1);
    char *data = pl_arena_take(shell->arena, room, 1);
    if (data == NULL) return pl_fail_memory(shell->error, "a launch script");
    if (text->size > 0) memcpy(data, text->data, text->size);
    text->data = data;
    text->room = room;
  }
  memcpy(text->data + text->size, bytes, size);
  text->size += size;
  text->data[text->size] = '\0';
  return PL_OK;
}

static pl_shell_variable *find(const pl_shell *shell, const char *name, size_t length) {
  pl_shell_variable *v = shell->variables;
  while (v != NULL && (strncmp(v->name, name, length) != 0 || v->name[length] != '\0'))
    v = v->next;
  return v;
}

const char *pl_shell_value(const pl_shell *shell, const char *name, size_t length) {
  const pl_shell_variable *found = find(shell, name, length);
  return found != NULL ? found->value : "";
}

pl_code pl_shell_set(pl_shell *shell, const char *name, size_t length, const char *value) {
  pl_shell_variable *variable = find(shell, name, length);
  if (variable == NULL) {
    variable = PL_TAKE(shell->arena, pl_shell_variable, 1);
    char *copy = pl_arena_printf(shell->arena, "%.*s", (int)length, name);
    if (variable == NULL || copy == NULL) return pl_fail_memory(shell->error, "the variables of a launch script");
    *variable = (pl_shell_variable){.name = copy, .next = shell->variables};
    shell->variables = variable;
  }
  variable->value = value;
  return PL_OK;
}

size_t pl_shell_skip_quoted(const char *text, size_t size, size_t at) {
  char quote = text[at++];
  while (at < size && text[at] != quote) {
    if (quote == '"' && text[at] == '\\' && at + 1 < size)
      at += 2;
    else if (quote == '"' && text[at] == '$')
      at = pl_shell_skip_dollar(text, size, at);
    else
      at++;
  }
  return at < size ? at + 1 : size;
}

/* Behind the bracket that closes the one at `at`. */
static size_t skip_brackets(const char *text, size_t size, size_t at) {
  char open = text[at], close = open == '(' ? ')' : '}';
  int depth = 0;
  while (at < size) {
    char c = text[at];
    if (c == '\\' && at + 1 < size) {
      at += 2;
      continue;
    }
    if (c == '\'' || c == '"') { /* no substitution within: its brackets must not be counted */
      size_t end = at + 1;
      while (end < size && text[end] != c)
        end++;
      at = end < size ? end + 1 : size;
      continue;
    }
    if (c == open) depth++;
    at++;
    if (c == close && --depth == 0) return at;
  }
  return size;
}

static bool is_name(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

size_t pl_shell_skip_dollar(const char *text, size_t size, size_t at) {
  at++;
  if (at >= size) return size;
  if (text[at] == '(' || text[at] == '{') return skip_brackets(text, size, at);
  if (!is_name(text[at])) return strchr("@*#?$!-", text[at]) != NULL ? at + 1 : at;
  if (isdigit((unsigned char)text[at])) return at + 1;
  while (at < size && is_name(text[at]))
    at++;
  return at;
}

static pl_code expand_to(pl_shell *shell, pl_shell_text *out, const char *word, size_t size, int depth);

/* What stands between the braces: NAME, NAME[@], NAME:-word, NAME:=word, NAME-word; lengths and patterns are not
 * known. */
static pl_code expand_braces(pl_shell *shell, pl_shell_text *out, const char *inner, size_t size, int depth) {
  size_t length = 0;
  while (length < size && is_name(inner[length]))
    length++;
  const char *value = pl_shell_value(shell, inner, length);
  size_t at = length;
  if (at < size && inner[at] == '[') {
    while (at < size && inner[at] != ']')
      at++;
    at += at < size;
  }
  bool colon = at < size && inner[at] == ':';
  at += colon;
  bool otherwise = at < size && (inner[at] == '-' || inner[at] == '=');
  if (value[0] == '\0' && otherwise) return expand_to(shell, out, inner + at + 1, size - at - 1, depth + 1);
  return pl_shell_put(shell, out, value, strlen(value));
}

/* From the dollar sign at word[0], `size` bytes. */
static pl_code expand_dollar(pl_shell *shell, pl_shell_text *out, const char *word, size_t size, int depth) {
  if (size < 2) return pl_shell_put(shell, out, word, size);
  if (size > 4 && strncmp(word, "$((", 3) == 0) {
    char number[32];
    int n = snprintf(number, sizeof number, "%lld", pl_shell_arithmetic(shell, word + 3, size - 5));
    return pl_shell_put(shell, out, number, (size_t)n);
  }
  if (word[1] == '(') return PL_OK; /* of a command: not known */
  if (word[1] == '{' && (size < 3 || word[size - 1] != '}')) return pl_shell_put(shell, out, word, size);
  if (word[1] == '{') return expand_braces(shell, out, word + 2, size - 3, depth);
  const char *value = pl_shell_value(shell, word + 1, size - 1);
  return pl_shell_put(shell, out, value, strlen(value));
}

static pl_code expand_to(pl_shell *shell, pl_shell_text *out, const char *word, size_t size, int depth) {
  if (depth > PL_SHELL_DEPTH)
    return pl_fail(shell->error, PL_BAD_INPUT, "%s:%d: defaults within defaults are nested too deeply", shell->path,
                   shell->line);
  bool quoted = false;
  for (size_t at = 0; at < size;) {
    char c = word[at];
    size_t end = at + 1;
    if (c == '\'' && !quoted) {
      end = pl_shell_skip_quoted(word, size, at);
      size_t closed = end > at + 1 && word[end - 1] == '\'' ? 2 : 1;
      PL_TRY(pl_shell_put(shell, out, word + at + 1, end - at - closed));
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == '\\' && at + 1 < size) {
      end = at + 2;
      if (word[at + 1] != '\n') PL_TRY(pl_shell_put(shell, out, word + at + 1, 1));
    } else if (c == '`') {
      while (end < size && word[end] != '`')
        end++;
      end += end < size;
    } else if (c == '$') {
      end = pl_shell_skip_dollar(word, size, at);
      PL_TRY(expand_dollar(shell, out, word + at, end - at, depth));
    } else {
      PL_TRY(pl_shell_put(shell, out, &c, 1));
    }
    at = end;
  }
  return PL_OK;
}

pl_code pl_shell_expand(pl_shell *shell, const char *word, size_t size, const char **value) {
  pl_shell_text out = {0};
  PL_TRY(pl_shell_put(shell, &out, "", 0));
  PL_TRY(expand_to(shell, &out, word, size, 0));
  *value = out.data;
  return PL_OK;
}
