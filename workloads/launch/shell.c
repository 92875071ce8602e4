/* See workloads/launch/shell.h: commands one after another, with a stack of the ifs, cases and loops around them. */
#include "workloads/launch/shell.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/words.h"
#include "workloads/launch/shell_expand.h"
#include "workloads/launch/shell_lexer.h"

enum { BLOCKS_MAX = 64, WORDS_MAX = 2048, UNKNOWN = -1 };

typedef enum block_kind { BLOCK_IF, BLOCK_CASE, BLOCK_LOOP } block_kind;

typedef struct block {
  block_kind kind;
  bool outer, active, done; /* `outer`: what is around it is carried out; `done`: a branch has been */
  const char *word;         /* of a case */
} block;

typedef struct script {
  pl_shell shell;
  pl_shell_lexer lexer;
  const char *const *marks;
  block blocks[BLOCKS_MAX];
  int n_blocks;
  pl_shell_token words[WORDS_MAX]; /* of the command at hand */
  int n_words;
  bool in_condition, in_test, wants_pattern;
  int status; /* of the list of commands so far: 1, 0, UNKNOWN */
  pl_shell_token_kind connector;
  const char *found; /* the command with a mark, expanded */
  int found_line;
  const char *kept; /* a variable that holds such a command, for another program to start */
  int kept_line;
} script;

static bool is_active(const script *own) {
  return own->n_blocks == 0 || own->blocks[own->n_blocks - 1].active;
}

static bool is_word(const pl_shell_token *token, const char *word) {
  return token->size == strlen(word) && memcmp(token->text, word, token->size) == 0;
}

static pl_code push(script *own, block_kind kind) {
  if (own->n_blocks == BLOCKS_MAX)
    return pl_fail(own->shell.error, PL_BAD_INPUT, "%s:%d: more than %d ifs, cases and loops within each other",
                   own->shell.path, own->lexer.line, BLOCKS_MAX);
  bool outer = is_active(own);
  own->blocks[own->n_blocks++] = (block){.kind = kind, .outer = outer, .active = outer && kind == BLOCK_LOOP};
  return PL_OK;
}

static void pop(script *own, block_kind kind) {
  if (own->n_blocks > 0 && own->blocks[own->n_blocks - 1].kind == kind) own->n_blocks--;
}

/* ---- tests ---- */

static int compare(const char *left, const char *operator, const char * right) {
  static const char *const numeric[] = {"-eq", "-ne", "-gt", "-lt", "-ge", "-le", NULL};
  long long a = strtoll(left, NULL, 10), b = strtoll(right, NULL, 10);
  bool equal = strcmp(left, right) == 0;
  if (strcmp(operator, "=") == 0 || strcmp(operator, "==") == 0) return equal;
  if (strcmp(operator, "!=") == 0) return !equal;
  switch (pl_words_find(numeric, operator)) {
  case 0:
    return a == b;
  case 1:
    return a != b;
  case 2:
    return a > b;
  case 3:
    return a < b;
  case 4:
    return a >= b;
  case 5:
    return a <= b;
  default:
    return UNKNOWN;
  }
}

/* The words between the brackets. */
static int test(const char *const *word, int n) {
  if (n > 0 && strcmp(word[0], "!") == 0) {
    int inner = test(word + 1, n - 1);
    return inner == UNKNOWN ? UNKNOWN : !inner;
  }
  if (n == 1) return word[0][0] != '\0';
  if (n == 2 && strcmp(word[0], "-z") == 0) return word[1][0] == '\0';
  if (n == 2 && strcmp(word[0], "-n") == 0) return word[1][0] != '\0';
  return n == 3 ? compare(word[0], word[1], word[2]) : UNKNOWN;
}

static pl_code evaluate(script *own, int first, int *result) {
  enum { TEST_WORDS = 8 };
  const char *expanded[TEST_WORDS];
  int n = 0;
  bool negated = false;
  *result = UNKNOWN;
  if (first < own->n_words && is_word(&own->words[first], "!")) {
    negated = true;
    first++;
  }
  if (first >= own->n_words) return PL_OK;
  const pl_shell_token *head = &own->words[first];
  bool opens = is_word(head, "[") || is_word(head, "[[") || is_word(head, "test");
  if (!opens && !own->in_test) {
    if (is_word(head, "true") || is_word(head, ":")) *result = 1;
    if (is_word(head, "false")) *result = 0;
  } else {
    for (int i = first + opens; i < own->n_words; i++) {
      if (is_word(&own->words[i], "]") || is_word(&own->words[i], "]]")) {
        own->in_test = false;
        break;
      }
      if (i == first + opens) own->in_test = is_word(head, "[[") || own->in_test;
      if (n == TEST_WORDS) return PL_OK;
      PL_TRY(pl_shell_expand(&own->shell, own->words[i].text, own->words[i].size, &expanded[n++]));
    }
    *result = test(expanded, n);
  }
  if (negated && *result != UNKNOWN) *result = !*result;
  return PL_OK;
}

static int combined(int left, pl_shell_token_kind connector, int right) {
  if (connector == PL_SHELL_AND) return left == 0 || right == 0 ? 0 : left == 1 && right == 1 ? 1 : UNKNOWN;
  if (connector == PL_SHELL_OR) return left == 1 || right == 1 ? 1 : left == 0 && right == 0 ? 0 : UNKNOWN;
  return right;
}

/* ---- commands ---- */

/* Bytes of the name of "NAME=..." or "NAME+=...", 0 if it is none. */
static size_t assigned_name(const pl_shell_token *token) {
  size_t n = 0;
  while (n < token->size && (isalnum((unsigned char)token->text[n]) || token->text[n] == '_'))
    n++;
  if (n == 0 || isdigit((unsigned char)token->text[0])) return 0;
  size_t sign = n + (n < token->size && token->text[n] == '+');
  return sign < token->size && token->text[sign] == '=' ? n : 0;
}

static pl_code expand_array(script *own, const char *text, size_t size, pl_shell_text *out) {
  pl_shell_lexer inner = {.text = text, .size = size, .line = 0};
  for (pl_shell_token token; (token = pl_shell_next(&inner)).kind != PL_SHELL_END;) {
    const char *value;
    if (token.kind != PL_SHELL_WORD) continue;
    PL_TRY(pl_shell_expand(&own->shell, token.text, token.size, &value));
    PL_TRY(pl_shell_put(&own->shell, out, value, strlen(value)));
    PL_TRY(pl_shell_put(&own->shell, out, " ", 1));
  }
  return PL_OK;
}

static bool has_mark(const char *text, const char *const *marks) {
  for (; *marks != NULL; marks++)
    for (const char *at = text; (at = strstr(at, *marks)) != NULL; at++) {
      char behind = at[strlen(*marks)];
      if ((at == text || at[-1] == ' ' || at[-1] == '\n') && strchr(" =\n\t", behind) != NULL) return true;
    }
  return false;
}

static pl_code assign(script *own, const pl_shell_token *token, size_t name) {
  bool adds = token->text[name] == '+';
  const char *text = token->text + name + adds + 1;
  size_t size = token->size - name - adds - 1;
  pl_shell_text out = {0};
  bool array = size >= 2 && text[0] == '(' && text[size - 1] == ')';
  PL_TRY(pl_shell_put(&own->shell, &out, "", 0));
  if (adds) {
    const char *old = pl_shell_value(&own->shell, token->text, name);
    PL_TRY(pl_shell_put(&own->shell, &out, old, strlen(old)));
    if (array) PL_TRY(pl_shell_put(&own->shell, &out, " ", 1));
  }
  if (array) {
    PL_TRY(expand_array(own, text + 1, size - 2, &out));
  } else {
    const char *value;
    PL_TRY(pl_shell_expand(&own->shell, text, size, &value));
    PL_TRY(pl_shell_put(&own->shell, &out, value, strlen(value)));
  }
  if (has_mark(out.data, own->marks) && strstr(out.data, ".py") != NULL) {
    own->kept = out.data;
    own->kept_line = token->line;
  }
  return pl_shell_set(&own->shell, token->text, name, out.data);
}

static pl_code call(script *own, int first) {
  pl_shell_text out = {0};
  PL_TRY(pl_shell_put(&own->shell, &out, "", 0));
  for (int i = first; i < own->n_words; i++) {
    const char *value;
    PL_TRY(pl_shell_expand(&own->shell, own->words[i].text, own->words[i].size, &value));
    PL_TRY(pl_shell_put(&own->shell, &out, value, strlen(value)));
    PL_TRY(pl_shell_put(&own->shell, &out, " ", 1));
  }
  if (!has_mark(out.data, own->marks)) return PL_OK;
  own->found = out.data;
  own->found_line = own->words[first].line;
  return PL_OK;
}

/* Assignments, or a command with its words. */
static pl_code execute(script *own, int first) {
  static const char *const makers[] = {"export", "local", "declare", "readonly", "typeset", NULL};
  int at = first;
  own->shell.line = own->words[first].line;
  for (int m = 0; makers[m] != NULL; m++)
    if (is_word(&own->words[first], makers[m])) at = first + 1;
  bool makes = at > first;
  for (size_t name; at < own->n_words; at++) {
    if (makes && own->words[at].text[0] == '-') continue;
    name = assigned_name(&own->words[at]);
    if (name == 0) break;
    PL_TRY(assign(own, &own->words[at], name));
  }
  return makes || at == own->n_words ? PL_OK : call(own, at);
}

/* The command that has been read, without keywords in front of it. */
static pl_code run_command(script *own, int first) {
  if (first >= own->n_words) return PL_OK;
  int result = UNKNOWN;
  const pl_shell_token *head = &own->words[first];
  bool tests = own->in_condition || own->in_test || is_word(head, "[") || is_word(head, "[[") ||
               is_word(head, "test") || is_word(head, "false");
  if (tests) {
    PL_TRY(evaluate(own, first, &result));
    own->status = combined(own->status, own->connector, result);
    return PL_OK;
  }
  bool runs = own->connector == PL_SHELL_AND  ? own->status == 1
              : own->connector == PL_SHELL_OR ? own->status != 1
                                              : true;
  if (runs && is_active(own)) PL_TRY(execute(own, first));
  if (runs) own->status = 1;
  return PL_OK;
}

/* ---- ifs, cases, loops ---- */

static void begin_branch(script *own, bool wanted) {
  block *top = own->n_blocks > 0 ? &own->blocks[own->n_blocks - 1] : NULL;
  own->in_condition = own->in_test = false;
  if (top == NULL || top->kind == BLOCK_LOOP) return;
  top->active = top->outer && wanted && !top->done;
  top->done = top->done || top->active;
}

/* "for NAME in WORD ...": its first round. */
static pl_code begin_loop(script *own, int at) {
  PL_TRY(push(own, BLOCK_LOOP));
  bool counts = at + 3 < own->n_words && is_word(&own->words[at], "for") && is_word(&own->words[at + 2], "in");
  const char *value;
  if (!counts || !is_active(own)) return PL_OK;
  PL_TRY(pl_shell_expand(&own->shell, own->words[at + 3].text, own->words[at + 3].size, &value));
  return pl_shell_set(&own->shell, own->words[at + 1].text, own->words[at + 1].size, value);
}

static pl_code begin_case(script *own, int at) {
  PL_TRY(push(own, BLOCK_CASE));
  block *top = &own->blocks[own->n_blocks - 1];
  top->word = "";
  if (at + 1 < own->n_words)
    PL_TRY(pl_shell_expand(&own->shell, own->words[at + 1].text, own->words[at + 1].size, &top->word));
  own->wants_pattern = true;
  return PL_OK;
}

/* Keywords in front of a command; *at is where the command begins, own->n_words where there is none. */
static pl_code read_keywords(script *own, int *at) {
  while (*at < own->n_words) {
    const pl_shell_token *word = &own->words[*at];
    if (is_word(word, "if") || is_word(word, "elif")) {
      if (is_word(word, "if")) PL_TRY(push(own, BLOCK_IF));
      own->blocks[own->n_blocks > 0 ? own->n_blocks - 1 : 0].active = false;
      own->in_condition = true;
      own->status = UNKNOWN;
      own->connector = PL_SHELL_LINE_END;
    } else if (is_word(word, "then")) {
      begin_branch(own, own->status == 1);
    } else if (is_word(word, "else")) {
      begin_branch(own, true);
    } else if (is_word(word, "fi")) {
      pop(own, BLOCK_IF);
    } else if (is_word(word, "done")) {
      pop(own, BLOCK_LOOP);
    } else if (is_word(word, "esac")) {
      pop(own, BLOCK_CASE);
    } else if (is_word(word, "for") || is_word(word, "while") || is_word(word, "until")) {
      PL_TRY(begin_loop(own, *at));
      *at = own->n_words;
      return PL_OK;
    } else if (is_word(word, "case")) {
      PL_TRY(begin_case(own, *at));
      *at = own->n_words;
      return PL_OK;
    } else if (!is_word(word, "do") && !is_word(word, "{") && !is_word(word, "}") && !is_word(word, "function")) {
      return PL_OK;
    }
    (*at)++;
  }
  return PL_OK;
}

/* The words in front of ")" in a case. */
static pl_code match(script *own) {
  bool matches = false;
  const char *word = own->blocks[own->n_blocks - 1].word, *pattern;
  for (int i = 0; i < own->n_words; i++) {
    PL_TRY(pl_shell_expand(&own->shell, own->words[i].text, own->words[i].size, &pattern));
    matches = matches || strcmp(pattern, "*") == 0 || strcmp(pattern, word) == 0;
  }
  begin_branch(own, matches);
  own->wants_pattern = false;
  return PL_OK;
}

static bool in_case(const script *own) {
  return own->n_blocks > 0 && own->blocks[own->n_blocks - 1].kind == BLOCK_CASE;
}

static pl_code end_command(script *own, pl_shell_token_kind kind) {
  if (own->wants_pattern && in_case(own)) {
    if (kind == PL_SHELL_CLOSE) PL_TRY(match(own));
    if (kind == PL_SHELL_LINE_END && own->n_words > 0 && is_word(&own->words[0], "esac")) {
      pop(own, BLOCK_CASE);
      own->wants_pattern = false;
      own->n_words = 0;
    }
    if (kind != PL_SHELL_LINE_END) own->n_words = 0; /* "a | b)": a pipe stands between patterns */
    return PL_OK;
  }
  int first = 0;
  PL_TRY(read_keywords(own, &first));
  PL_TRY(run_command(own, first));
  own->n_words = 0;
  own->connector = kind;
  if (kind == PL_SHELL_CASE_END && in_case(own)) {
    own->blocks[own->n_blocks - 1].active = false;
    own->wants_pattern = true;
  }
  return PL_OK;
}

static pl_code run_script(script *own) {
  for (;;) {
    const pl_shell_token token = pl_shell_next(&own->lexer);
    if (token.kind == PL_SHELL_WORD) {
      if (own->n_words < WORDS_MAX) own->words[own->n_words++] = token;
      continue;
    }
    PL_TRY(end_command(own, token.kind));
    if (token.kind == PL_SHELL_END) return PL_OK;
  }
}

/* ---- arguments ---- */

/* Of a key that is given several times; of very many settings only the first are looked through. */
static uint32_t count_before(const pl_settings *settings, const char *key) {
  enum { LOOKED_AT = 4096 };
  uint32_t n = 0;
  for (uint32_t i = 0; i < settings->n && i < LOOKED_AT; i++)
    n += strcmp(settings->list[i].key, key) == 0;
  return n;
}

/* Where "--key" stands in the file after `n_before` others, or for the last time; `otherwise` where it comes out of
 * something else. */
static int line_of(const script *own, const char *argument, size_t length, uint32_t n_before, int otherwise) {
  const char *text = own->lexer.text, *counted = text;
  int line = 1;
  char word[96];
  if (length >= sizeof word) return otherwise;
  memcpy(word, argument, length);
  word[length] = '\0';
  for (const char *at = text; (at = strstr(at, word)) != NULL; at += length) {
    if (isalnum((unsigned char)at[length]) || at[length] == '-' || at[length] == '_') continue;
    for (; counted < at; counted++)
      line += *counted == '\n';
    otherwise = line;
    if (n_before-- == 0) break;
  }
  return otherwise;
}

static bool word_is_script(const char *word, size_t length) {
  return length > 3 && strncmp(word + length - 3, ".py", 3) == 0;
}

static bool ends_values(const char *word, size_t length) {
  bool option = length > 1 && word[0] == '-' && isalpha((unsigned char)word[1]);
  return option || word[0] == '<' || word[0] == '>' || word_is_script(word, length);
}

static pl_code add_argument(script *own, pl_settings *settings, const char *word, size_t length, bool *is_open) {
  const char *equals = memchr(word, '=', length);
  size_t name = equals != NULL ? (size_t)(equals - word) : length;
  char *key = pl_arena_printf(own->shell.arena, "%.*s", (int)(name - 2), word + 2);
  char *value = pl_arena_printf(own->shell.arena, "%.*s", equals != NULL ? (int)(length - name - 1) : 0,
                                equals != NULL ? equals + 1 : "");
  if (key == NULL || value == NULL) return pl_fail_memory(own->shell.error, "the arguments of a launch script");
  for (char *c = key; *c != '\0'; c++)
    if (*c == '-') *c = '_';
  *is_open = equals == NULL;
  int line = line_of(own, word, name, count_before(settings, key), own->found_line);
  return pl_settings_add(settings, (pl_setting){.key = key, .value = value, .path = own->shell.path, .line = line},
                         own->shell.error);
}

static pl_code add_value(script *own, pl_settings *settings, const char *word, size_t length) {
  pl_setting *last = &settings->list[settings->n - 1];
  last->value =
      pl_arena_printf(own->shell.arena, "%s%s%.*s", last->value, last->value[0] != '\0' ? " " : "", (int)length, word);
  return last->value != NULL ? PL_OK : pl_fail_memory(own->shell.error, "the arguments of a launch script");
}

/* "pretrain_gpt.py", as the value of "script". */
static pl_code add_script(script *own, pl_settings *settings, const char *word, size_t length) {
  const char *value = pl_arena_printf(own->shell.arena, "%.*s", (int)length, word);
  if (value == NULL) return pl_fail_memory(own->shell.error, "the arguments of a launch script");
  return pl_settings_add(
      settings, (pl_setting){.key = "script", .value = value, .path = own->shell.path, .line = own->found_line},
      own->shell.error);
}

static pl_code read_arguments(script *own, pl_settings *settings) {
  bool is_open = false; /* the last argument takes words as values */
  for (const char *at = own->found; *at != '\0';) {
    size_t length = strcspn(at, " \t\r\n");
    if (length > 2 && at[0] == '-' && at[1] == '-' && isalpha((unsigned char)at[2])) {
      PL_TRY(add_argument(own, settings, at, length, &is_open));
    } else if (length > 0 && ends_values(at, length)) {
      is_open = false;
      if (word_is_script(at, length)) PL_TRY(add_script(own, settings, at, length));
    } else if (length > 0 && is_open) {
      PL_TRY(add_value(own, settings, at, length));
    }
    at += length;
    at += strspn(at, " \t\r\n");
  }
  return PL_OK;
}

/* "#SBATCH --nodes=4": keys sbatch_nodes ... */
static pl_code read_batch(script *own, pl_settings *settings) {
  int line = 1;
  for (const char *at = own->lexer.text; *at != '\0'; line++) {
    size_t length = strcspn(at, "\n");
    static const char mark[] = "#SBATCH --";
    if (strncmp(at, mark, sizeof mark - 1) == 0) {
      const char *word = at + sizeof mark - 1;
      size_t name = strcspn(word, "= \t\r\n"), rest = name + strspn(word + name, "= \t");
      char *key = pl_arena_printf(own->shell.arena, "sbatch_%.*s", (int)name, word);
      char *value = pl_arena_printf(own->shell.arena, "%.*s", (int)strcspn(word + rest, " \t\r\n"), word + rest);
      if (key == NULL || value == NULL) return pl_fail_memory(own->shell.error, "the arguments of a launch script");
      PL_TRY(pl_settings_add(settings, (pl_setting){.key = key, .value = value, .path = own->shell.path, .line = line},
                             own->shell.error));
    }
    at += length + (at[length] == '\n');
  }
  return PL_OK;
}

/* What the script exports that slows training down: keys env_NAME. */
static pl_code read_environment(script *own, pl_settings *settings) {
  static const char name[] = "TORCH_DISTRIBUTED_DEBUG", key[] = "env_TORCH_DISTRIBUTED_DEBUG";
  const char *value = pl_shell_value(&own->shell, name, sizeof name - 1);
  if (value[0] == '\0') return PL_OK;
  int line = line_of(own, name, sizeof name - 1, UINT32_MAX, own->found_line);
  return pl_settings_add(settings, (pl_setting){.key = key, .value = value, .path = own->shell.path, .line = line},
                         own->shell.error);
}

pl_code pl_launch_shell_read(const char *path, const char *text, const char *const *marks, pl_settings *settings,
                             pl_error *error) {
  script *own = PL_TAKE(settings->arena, script, 1);
  if (own == NULL) return pl_fail_memory(error, "a launch script");
  own->shell = (pl_shell){.path = path, .line = 1, .arena = settings->arena, .error = error};
  own->lexer = (pl_shell_lexer){.text = text, .size = strlen(text), .line = 1};
  own->marks = marks;
  own->connector = PL_SHELL_LINE_END;
  PL_TRY(run_script(own));
  if (own->found == NULL) {
    own->found = own->kept;
    own->found_line = own->kept_line;
  }
  if (own->found == NULL)
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: no command with %s or the like among its arguments is reached: is this the script that starts "
                   "the training?",
                   path, marks[0]);
  PL_TRY(read_batch(own, settings));
  PL_TRY(read_environment(own, settings));
  return read_arguments(own, settings);
}
