/* See workloads/language/ir_parse.h: words, marks, and what is said where another one should stand. */
#include <stdio.h>
#include <string.h>

#include "core/base/words.h"
#include "workloads/language/ir_parse.h"

pl_code pl_ir_read_fail(pl_ir_reader *reader, pl_ir_place place, const char *format, ...) {
  char text[PL_ERROR_MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return pl_ir_lexer_fail(&reader->lexer, place, reader->error, "%s", text);
}

pl_code pl_ir_read_expected(pl_ir_reader *reader, const char *what) {
  const pl_ir_token *token = &reader->token;
  char is[96];
  if (token->kind == PL_IR_TOKEN_END) {
    snprintf(is, sizeof is, "the file ends");
  } else if (token->kind == PL_IR_TOKEN_LINE) {
    snprintf(is, sizeof is, "the line ends");
  } else {
    const char *sigil = token->kind == PL_IR_TOKEN_VALUE      ? "%"
                        : token->kind == PL_IR_TOKEN_FUNCTION ? "@"
                        : token->kind == PL_IR_TOKEN_STRING   ? "\""
                                                              : "";
    bool cut = token->length > 60;
    snprintf(is, sizeof is, "'%s%.*s%s%s' stands", sigil, cut ? 60 : (int)token->length, token->text, cut ? "..." : "",
             *sigil == '"' ? "\"" : "");
  }
  return pl_ir_read_fail(reader, token->place, "%s here, where %s should stand", is, what);
}

/* ---- the next word ---- */

pl_code pl_ir_read_next(pl_ir_reader *reader) {
  do {
    if (reader->token.kind == PL_IR_TOKEN_LINE && reader->token.length > 0) reader->comment = reader->token;
    PL_TRY(pl_ir_lexer_next(&reader->lexer, &reader->token, reader->error));
  } while (reader->token.kind == PL_IR_TOKEN_LINE && reader->nesting > 0);
  return PL_OK;
}

bool pl_ir_read_sees(const pl_ir_reader *reader, char mark) {
  return reader->token.kind == PL_IR_TOKEN_MARK && *reader->token.text == mark;
}

bool pl_ir_read_sees_word(const pl_ir_reader *reader, const char *word) {
  return reader->token.kind == PL_IR_TOKEN_NAME && reader->token.length == strlen(word) &&
         memcmp(reader->token.text, word, reader->token.length) == 0;
}

/* Braces around ops are opened and closed by others: lines end inside them. */
pl_code pl_ir_read_mark(pl_ir_reader *reader, char mark, const char *what) {
  if (!pl_ir_read_sees(reader, mark)) return pl_ir_read_expected(reader, what);
  if (mark == '(' || mark == '[') reader->nesting++;
  if (mark == ')' || mark == ']') reader->nesting--;
  return pl_ir_read_next(reader);
}

pl_code pl_ir_read_lines(pl_ir_reader *reader) {
  while (reader->token.kind == PL_IR_TOKEN_LINE)
    PL_TRY(pl_ir_read_next(reader));
  return PL_OK;
}

pl_code pl_ir_read_comma(pl_ir_reader *reader, bool *more) {
  *more = pl_ir_read_sees(reader, ',');
  if (!*more) return PL_OK;
  PL_TRY(pl_ir_read_next(reader));
  return pl_ir_read_lines(reader);
}

pl_code pl_ir_read_statement_end(pl_ir_reader *reader) {
  if (reader->token.kind == PL_IR_TOKEN_END) return PL_OK;
  if (reader->token.kind != PL_IR_TOKEN_LINE) return pl_ir_read_expected(reader, "the end of the line");
  return pl_ir_read_lines(reader);
}

/* ---- names and numbers ---- */

void *pl_ir_list_add(pl_ir_reader *reader, pl_ir_list *list, size_t size) {
  void *items = pl_arena_grown(reader->arena, list->items, (size_t)list->n, 1, size, &list->room);
  if (items == NULL) return NULL;
  list->items = items;
  return (char *)list->items + (size_t)list->n++ * size;
}

const char *pl_ir_read_text(pl_ir_reader *reader, const pl_ir_token *token) {
  pl_ir_list *text = &reader->text;
  if (text->room <= token->length) {
    text->room = (uint32_t)(2 * token->length + 64);
    text->items = pl_arena_take(reader->arena, text->room, 1);
  }
  char *made = (char *)text->items;
  if (made == NULL) {
    text->room = 0;
    pl_fail_memory(reader->error, reader->lexer.name);
    return NULL;
  }
  memcpy(made, token->text, token->length);
  made[token->length] = '\0';
  return made;
}

pl_code pl_ir_read_name(pl_ir_reader *reader, const char *what, pl_ir_name *name) {
  const pl_ir_token token = reader->token;
  if (token.kind != PL_IR_TOKEN_NAME) return pl_ir_read_expected(reader, what);
  if (token.length >= PL_IR_NAME_MAX)
    return pl_ir_read_fail(reader, token.place, "'%.*s' is too long: this kind of name has at most %d letters",
                           (int)(token.length < 200 ? token.length : 200), token.text, PL_IR_NAME_MAX - 1);
  *name = (pl_ir_name){{0}};
  memcpy(name->text, token.text, token.length);
  return pl_ir_read_next(reader);
}

pl_code pl_ir_read_integer(pl_ir_reader *reader, const char *what, int64_t lowest, int64_t highest, int64_t *value) {
  const pl_ir_token token = reader->token;
  if (token.kind != PL_IR_TOKEN_INTEGER) return pl_ir_read_expected(reader, what);
  if (token.integer < lowest || token.integer > highest)
    return pl_ir_read_fail(reader, token.place, "%lld is out of range: %s is from %lld to %lld",
                           (long long)token.integer, what, (long long)lowest, (long long)highest);
  *value = token.integer;
  return pl_ir_read_next(reader);
}

const char *pl_ir_hint(const char *word, const char *const *words, char text[PL_IR_HINT_BYTES]) {
  char near[PL_WORDS_HINT_BYTES], list[PL_IR_HINT_BYTES - 16];
  if (words[0] == NULL) {
    snprintf(text, PL_IR_HINT_BYTES, "; there are none");
  } else if (*pl_words_hint(words, word, near) != '\0') {
    snprintf(text, PL_IR_HINT_BYTES, "%s", near);
  } else {
    snprintf(text, PL_IR_HINT_BYTES, "; there are: %s", pl_words_list(words, list, sizeof list));
  }
  return text;
}
