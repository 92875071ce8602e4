/* See workloads/launch/shell_expand.h: + - * / %, parentheses, numbers and variables. */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>

#include "workloads/launch/shell_expand.h"

typedef struct reader {
  const pl_shell *shell;
  const char *at, *end;
  int depth;
} reader;

static long long sum(reader *in);

static char next(reader *in) {
  while (in->at < in->end && isspace((unsigned char)*in->at))
    in->at++;
  return in->at < in->end ? *in->at : '\0';
}

static size_t name_length(const reader *in) {
  size_t n = 0;
  while (in->at + n < in->end && (isalnum((unsigned char)in->at[n]) || in->at[n] == '_'))
    n++;
  return n;
}

static long long value(reader *in) {
  char c = next(in);
  if (c == '(' && in->depth < PL_SHELL_DEPTH) {
    in->at++;
    in->depth++;
    long long inner = sum(in);
    in->depth--;
    if (next(in) == ')') in->at++;
    return inner;
  }
  if (c == '-' && in->depth < PL_SHELL_DEPTH) {
    in->at++;
    in->depth++;
    long long inner = value(in);
    in->depth--;
    return inner == LLONG_MIN ? 0 : -inner;
  }
  bool dollar = c == '$', brace = false;
  if (dollar) in->at++;
  if (dollar && in->at < in->end && *in->at == '{') {
    brace = true;
    in->at++;
  }
  const char *name = in->at;
  size_t length = name_length(in);
  in->at += length;
  while (brace && in->at < in->end && *in->at++ != '}') /* ${X:-1}: without the variable unknown all the same */
    ;
  if (length == 0) {
    in->at = in->end;
    return 0;
  }
  return strtoll(isdigit((unsigned char)name[0]) && !dollar ? name : pl_shell_value(in->shell, name, length), NULL, 10);
}

static long long product(reader *in) {
  long long left = value(in);
  for (char c; (c = next(in)) == '*' || c == '/' || c == '%';) {
    in->at++;
    long long right = value(in), result = 0;
    if (c == '*' && __builtin_mul_overflow(left, right, &result)) result = 0;
    if (c != '*' && right != 0 && right != -1) result = c == '/' ? left / right : left % right;
    left = result;
  }
  return left;
}

static long long sum(reader *in) {
  long long left = product(in);
  for (char c; (c = next(in)) == '+' || c == '-';) {
    in->at++;
    long long right = product(in), result = 0;
    if (c == '+' ? __builtin_add_overflow(left, right, &result) : __builtin_sub_overflow(left, right, &result))
      result = 0;
    left = result;
  }
  return left;
}

long long pl_shell_arithmetic(const pl_shell *shell, const char *text, size_t size) {
  reader in = {.shell = shell, .at = text, .end = text + size};
  return sum(&in);
}
