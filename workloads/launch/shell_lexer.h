/* The words of a script and what stands between them. Internal to workloads/launch/shell*.c. */
#ifndef PL_WORKLOADS_LAUNCH_SHELL_LEXER_H
#define PL_WORKLOADS_LAUNCH_SHELL_LEXER_H

#include <stddef.h>

typedef enum pl_shell_token_kind {
  PL_SHELL_END = 0,
  PL_SHELL_WORD,
  PL_SHELL_LINE_END, /* or a semicolon, a pipe, an ampersand: a command ends */
  PL_SHELL_AND,
  PL_SHELL_OR,
  PL_SHELL_CASE_END, /* ;; */
  PL_SHELL_OPEN,
  PL_SHELL_CLOSE
} pl_shell_token_kind;

typedef struct pl_shell_token {
  pl_shell_token_kind kind;
  const char *text; /* of a word, as written; of an array assignment NAME=(...) all of it */
  size_t size;
  int line;
} pl_shell_token;

typedef struct pl_shell_lexer {
  const char *text;
  size_t size, at;
  int line;
} pl_shell_lexer;

pl_shell_token pl_shell_next(pl_shell_lexer *in);

#endif
