/* See workloads/language/ir_lexer.h. */
#include "workloads/language/ir_lexer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/printable.h"

void pl_ir_lexer_init(pl_ir_lexer *lexer, const char *name, const char *text, size_t size) {
  *lexer = (pl_ir_lexer){.name = name, .at = text, .end = text + size, .place = {1, 1}};
}

pl_code pl_ir_lexer_fail(const pl_ir_lexer *lexer, pl_ir_place place, pl_error *error, const char *format, ...) {
  char text[PL_ERROR_MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return pl_fail(error, PL_BAD_INPUT, "%s:%d:%d: %s", lexer->name, place.line, place.column, text);
}

/* ---- letters ---- */

static int letter(const pl_ir_lexer *lexer, size_t ahead) {
  return (size_t)(lexer->end - lexer->at) > ahead ? (unsigned char)lexer->at[ahead] : -1;
}

/* Columns count characters, not bytes. */
static void consume(pl_ir_lexer *lexer, size_t n) {
  for (size_t i = 0; i < n; i++)
    lexer->place.column += (lexer->at[i] & 0xc0) != 0x80;
  lexer->at += n;
}

static bool is_digit(int c) {
  return c >= '0' && c <= '9';
}

static bool begins_name(int c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

static size_t name_length(const pl_ir_lexer *lexer, size_t from) {
  size_t n = 0;
  if (!begins_name(letter(lexer, from))) return 0;
  while (begins_name(letter(lexer, from + n)) || is_digit(letter(lexer, from + n)))
    n++;
  return n;
}

static void take(pl_ir_lexer *lexer, pl_ir_token *token, pl_ir_token_kind kind, size_t skip, size_t length,
                 size_t behind) {
  token->kind = kind;
  token->text = lexer->at + skip;
  token->length = length;
  consume(lexer, skip + length + behind);
}

/* ---- words ---- */

/* To the end of the line, or of the text; the comment, if there is one, is the token's text. */
static void lex_line(pl_ir_lexer *lexer, pl_ir_token *token) {
  size_t n = 0;
  while (letter(lexer, n) >= 0 && letter(lexer, n) != '\n')
    n++;
  size_t from = n > 0 && lexer->at[0] == '#' ? 1 : 0, to = n;
  while (from < to && (lexer->at[from] == ' ' || lexer->at[from] == '\t'))
    from++;
  while (to > from && (lexer->at[to - 1] == ' ' || lexer->at[to - 1] == '\t' || lexer->at[to - 1] == '\r'))
    to--;
  take(lexer, token, PL_IR_TOKEN_LINE, from, to - from, n - to);
  if (letter(lexer, 0) < 0) return;
  lexer->at++;
  lexer->place = (pl_ir_place){lexer->place.line + 1, 1};
}

static pl_code lex_string(pl_ir_lexer *lexer, pl_ir_token *token, pl_error *error) {
  size_t n = 1;
  for (int c; (c = letter(lexer, n)) != '"'; n++) {
    if (c < 0 || c == '\n')
      return pl_ir_lexer_fail(lexer, token->place, error, "this string has no end: \" is missing behind it");
    if (c == '\\' && letter(lexer, n + 1) >= 0 && letter(lexer, n + 1) != '\n') n++;
  }
  take(lexer, token, PL_IR_TOKEN_STRING, 1, n - 1, 1);
  return PL_OK;
}

/* Whatever stands together with the digits belongs to the number: "12x" is one bad word, not two good ones. */
static pl_code lex_number(pl_ir_lexer *lexer, pl_ir_token *token, pl_error *error) {
  char text[64];
  size_t n = 1;
  bool real = false;
  for (int c; (c = letter(lexer, n)),
              is_digit(c) || begins_name(c) || ((c == '+' || c == '-') && (letter(lexer, n - 1) | 0x20) == 'e');
       n++)
    real = real || !is_digit(c);
  token->length = n;
  if (n >= sizeof text) return pl_ir_lexer_fail(lexer, token->place, error, "a number of %zu letters is too long", n);
  memcpy(text, lexer->at, n);
  text[n] = '\0';
  char *end;
  errno = 0;
  token->real = strtod(text, &end);
  if (*end != '\0' || strpbrk(text, "xXpPnN") != NULL || !is_digit(text[text[0] == '-']))
    return pl_ir_lexer_fail(lexer, token->place, error, "'%s' is neither a number nor a name", text);
  if (!real) {
    errno = 0;
    token->integer = strtoll(text, NULL, 10);
  }
  if ((!real && errno == ERANGE) || !isfinite(token->real))
    return pl_ir_lexer_fail(lexer, token->place, error, "%s is out of range", text);
  take(lexer, token, real ? PL_IR_TOKEN_REAL : PL_IR_TOKEN_INTEGER, 0, n, 0);
  return PL_OK;
}

static pl_code lex_sigil(pl_ir_lexer *lexer, pl_ir_token *token, pl_ir_token_kind kind, pl_error *error) {
  size_t n = name_length(lexer, 1);
  if (n == 0)
    return pl_ir_lexer_fail(lexer, token->place, error,
                            "a name must stand directly behind '%c': letters, digits, '_' and '.', no digit first",
                            letter(lexer, 0));
  take(lexer, token, kind, 1, n, 0);
  return PL_OK;
}

static pl_code refuse_letter(const pl_ir_lexer *lexer, const pl_ir_token *token, pl_error *error) {
  uint32_t code_point;
  char text[8] = "";
  size_t left = (size_t)(lexer->end - lexer->at);
  memcpy(text, lexer->at, left < 4 ? left : 4);
  text[pl_utf8_next(text, &code_point)] = '\0';
  return pl_ir_lexer_fail(lexer, token->place, error,
                          "'%s' begins nothing here: names are of letters, digits, '_' and '.'; %%value, @function, "
                          "\"text\", numbers and ( ) { } [ ] , : = / are the rest",
                          text);
}

pl_code pl_ir_lexer_next(pl_ir_lexer *lexer, pl_ir_token *token, pl_error *error) {
  while (letter(lexer, 0) == ' ' || letter(lexer, 0) == '\t' || letter(lexer, 0) == '\r')
    consume(lexer, 1);
  int c = letter(lexer, 0);
  *token = (pl_ir_token){.kind = PL_IR_TOKEN_END, .text = lexer->at, .place = lexer->place};
  if (c < 0) return PL_OK;
  if (c == '\n' || c == '#') {
    lex_line(lexer, token);
  } else if (begins_name(c)) {
    take(lexer, token, PL_IR_TOKEN_NAME, 0, name_length(lexer, 0), 0);
  } else if (c == '"') {
    return lex_string(lexer, token, error);
  } else if (is_digit(c) || c == '-') {
    return lex_number(lexer, token, error);
  } else if (c == '%' || c == '@') {
    return lex_sigil(lexer, token, c == '%' ? PL_IR_TOKEN_VALUE : PL_IR_TOKEN_FUNCTION, error);
  } else if (strchr("(){}[],:=/+", c) != NULL) {
    take(lexer, token, PL_IR_TOKEN_MARK, 0, 1, 0);
  } else {
    return refuse_letter(lexer, token, error);
  }
  return PL_OK;
}

/* ---- strings ---- */

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* One escape behind its backslash; returns how long it is, 0: it is none. */
static size_t unescape(const char *text, size_t left, char *byte) {
  if (left == 0) return 0;
  *byte = text[0] == 'n' ? '\n' : text[0] == 't' ? '\t' : text[0];
  if (text[0] == '"' || text[0] == '\\' || text[0] == 'n' || text[0] == 't') return 1;
  if (text[0] != 'x' || left < 3) return 0;
  int high = hex_digit(text[1]), low = hex_digit(text[2]);
  *byte = (char)(high * 16 + low);
  return high >= 0 && low >= 0 && high + low > 0 ? 3 : 0;
}

const char *pl_ir_lexer_string(const pl_ir_lexer *lexer, const pl_ir_token *token, pl_arena *arena, pl_error *error) {
  char *made = (char *)pl_arena_take(arena, token->length + 1, 1);
  size_t n = 0;
  if (made == NULL) {
    pl_fail_memory(error, lexer->name);
    return NULL;
  }
  for (size_t i = 0; i < token->length; i++) {
    made[n] = token->text[i];
    if (token->text[i] == '\\') {
      size_t length = unescape(token->text + i + 1, token->length - i - 1, &made[n]);
      pl_ir_place place = {token->place.line, token->place.column + 1 + (int32_t)i};
      if (length == 0) {
        pl_ir_lexer_fail(lexer, place, error, "this escape is none of \\\" \\\\ \\n \\t and \\x01 to \\xff");
        return NULL;
      }
      i += length;
    }
    n++;
  }
  made[n] = '\0';
  return made;
}
