/* See workloads/launch/shell_lexer.h. */
#include "workloads/launch/shell_lexer.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "workloads/launch/shell_expand.h"

static char here(const pl_shell_lexer *in, size_t ahead) {
  return in->at + ahead < in->size ? in->text[in->at + ahead] : '\0';
}

static void skip_line(pl_shell_lexer *in) {
  while (in->at < in->size && in->text[in->at] != '\n')
    in->at++;
}

static void skip_blanks(pl_shell_lexer *in) {
  for (;;) {
    char c = here(in, 0);
    if (c == '\\' && here(in, 1) == '\n') {
      in->line++;
      in->at += 2;
    } else if (c == '\\' && here(in, 1) == '\r' && here(in, 2) == '\n') {
      in->line++;
      in->at += 3;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      in->at++;
    } else {
      return;
    }
  }
}

static void count_lines(pl_shell_lexer *in, size_t from) {
  for (size_t i = from; i < in->at; i++)
    in->line += in->text[i] == '\n';
}

/* Of "<<WORD" at the cursor: everything to the line that is WORD alone. */
static void skip_document(pl_shell_lexer *in) {
  size_t from = in->at;
  in->at += 2;
  bool tabs = here(in, 0) == '-';
  in->at += tabs;
  while (here(in, 0) == ' ')
    in->at++;
  if (here(in, 0) == '\'' || here(in, 0) == '"') in->at++;
  const char *word = in->text + in->at;
  size_t length = 0;
  while (isalnum((unsigned char)here(in, length)) || here(in, length) == '_')
    length++;
  skip_line(in);
  while (in->at < in->size && length > 0) {
    in->at++;
    while (tabs && here(in, 0) == '\t')
      in->at++;
    const char *line = in->text + in->at;
    size_t begin = in->at;
    skip_line(in);
    if (in->at - begin == length && memcmp(line, word, length) == 0) break;
  }
  count_lines(in, from);
}

/* NAME=(...) with comments and line ends in it. The cursor is at the parenthesis. */
static void skip_array(pl_shell_lexer *in) {
  in->at++;
  while (in->at < in->size && here(in, 0) != ')') {
    char c = here(in, 0);
    bool begins = isspace((unsigned char)in->text[in->at - 1]) || in->text[in->at - 1] == '(';
    if (c == '\\')
      in->at += in->at + 1 < in->size ? 2 : 1;
    else if (c == '#' && begins)
      skip_line(in);
    else if (c == '\'' || c == '"')
      in->at = pl_shell_skip_quoted(in->text, in->size, in->at);
    else if (c == '$')
      in->at = pl_shell_skip_dollar(in->text, in->size, in->at);
    else
      in->at++;
  }
  in->at += in->at < in->size;
}

static void skip_word(pl_shell_lexer *in) {
  for (size_t from = in->at; in->at < in->size;) {
    char c = here(in, 0);
    char before = in->at > from ? in->text[in->at - 1] : '\0';
    if (c == '(' && before == '=') {
      skip_array(in);
      return;
    }
    if (isspace((unsigned char)c) || strchr(";|()", c) != NULL) return;
    if (c == '&' && before != '>' && before != '<') return;
    if (c == '\\')
      in->at += in->at + 1 < in->size ? 2 : 1;
    else if (c == '\'' || c == '"')
      in->at = pl_shell_skip_quoted(in->text, in->size, in->at);
    else if (c == '$')
      in->at = pl_shell_skip_dollar(in->text, in->size, in->at);
    else
      in->at++;
  }
}

static pl_shell_token sign(pl_shell_lexer *in, pl_shell_token_kind kind, size_t length) {
  pl_shell_token token = {.kind = kind, .text = in->text + in->at, .size = length, .line = in->line};
  in->at += length;
  return token;
}

pl_shell_token pl_shell_next(pl_shell_lexer *in) {
  for (;;) {
    skip_blanks(in);
    char c = here(in, 0), next = here(in, 1);
    if (in->at >= in->size) return sign(in, PL_SHELL_END, 0);
    if (c == '#') {
      skip_line(in);
      continue;
    }
    if (c == '<' && next == '<' && here(in, 2) != '<') {
      skip_document(in);
      continue;
    }
    if (c == '\n') {
      pl_shell_token token = sign(in, PL_SHELL_LINE_END, 1);
      in->line++;
      return token;
    }
    if (c == ';') return next == ';' ? sign(in, PL_SHELL_CASE_END, 2) : sign(in, PL_SHELL_LINE_END, 1);
    if (c == '&') return next == '&' ? sign(in, PL_SHELL_AND, 2) : sign(in, PL_SHELL_LINE_END, 1);
    if (c == '|') return next == '|' ? sign(in, PL_SHELL_OR, 2) : sign(in, PL_SHELL_LINE_END, 1);
    if (c == '(') return sign(in, PL_SHELL_OPEN, 1);
    if (c == ')') return sign(in, PL_SHELL_CLOSE, 1);
    break;
  }
  size_t from = in->at;
  pl_shell_token token = {.kind = PL_SHELL_WORD, .text = in->text + from, .line = in->line};
  skip_word(in);
  if (in->at == from) in->at++; /* whatever it is, it is not read again */
  token.size = in->at - from;
  count_lines(in, from);
  return token;
}
