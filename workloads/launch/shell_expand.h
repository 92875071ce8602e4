/* Variables of a script, and words with these in them. Internal to workloads/launch/shell*.c. */
#ifndef PL_WORKLOADS_LAUNCH_SHELL_EXPAND_H
#define PL_WORKLOADS_LAUNCH_SHELL_EXPAND_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/arena.h"
#include "core/base/status.h"

typedef struct pl_shell_variable {
  const char *name, *value;
  struct pl_shell_variable *next;
} pl_shell_variable;

enum { PL_SHELL_TEXT_MAX = 1 << 20, PL_SHELL_DEPTH = 16 };

typedef struct pl_shell {
  const char *path;
  int line; /* of the command at hand */
  pl_shell_variable *variables;
  pl_arena *arena;
  pl_error *error;
  size_t expanded; /* bytes so far; a script may not grow beyond PL_SHELL_TEXT_MAX */
} pl_shell;

/* A text that grows; a failure is in shell->error. */
typedef struct pl_shell_text {
  char *data;
  size_t size, room;
} pl_shell_text;

pl_code pl_shell_put(pl_shell *shell, pl_shell_text *text, const char *bytes, size_t size);

/* "" where it is not set. */
const char *pl_shell_value(const pl_shell *shell, const char *name, size_t length);
pl_code pl_shell_set(pl_shell *shell, const char *name, size_t length, const char *value);

/* One word as written, quotes and all: without them, with the values of variables in place of their names. *value in
 * the arena. */
pl_code pl_shell_expand(pl_shell *shell, const char *word, size_t size, const char **value);

/* How far a word, quoted text or substitution reaches that begins at `at` with its opening sign. */
size_t pl_shell_skip_quoted(const char *text, size_t size, size_t at);
size_t pl_shell_skip_dollar(const char *text, size_t size, size_t at);

/* shell_arithmetic.c: what stands in $((...)), with variables by name or $name. 0 where something is not known. */
long long pl_shell_arithmetic(const pl_shell *shell, const char *text, size_t size);

#endif
