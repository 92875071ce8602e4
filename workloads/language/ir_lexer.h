/* Words of the program language, one after the other. Internal to the reader (ir_text.h). */
#ifndef PL_WORKLOADS_IR_LEXER_H
#define PL_WORKLOADS_IR_LEXER_H

#include "workloads/language/ir_module.h"

typedef enum pl_ir_token_kind {
  PL_IR_TOKEN_END = 0, /* of the text */
  PL_IR_TOKEN_LINE,    /* end of a line; its text is the comment in front of it */
  PL_IR_TOKEN_NAME,
  PL_IR_TOKEN_VALUE,    /* %name; its text is the name */
  PL_IR_TOKEN_FUNCTION, /* @name */
  PL_IR_TOKEN_STRING,   /* its text is between the quotes, escapes and all */
  PL_IR_TOKEN_INTEGER,
  PL_IR_TOKEN_REAL,
  PL_IR_TOKEN_MARK /* one of ( ) { } [ ] , : = / + */
} pl_ir_token_kind;

typedef struct pl_ir_token {
  pl_ir_token_kind kind;
  const char *text; /* in the source; not ended by NUL */
  size_t length;
  pl_ir_place place;
  int64_t integer;
  double real;
} pl_ir_token;

typedef struct pl_ir_lexer {
  const char *name; /* of the file, for messages */
  const char *at, *end;
  pl_ir_place place;
} pl_ir_lexer;

void pl_ir_lexer_init(pl_ir_lexer *lexer, const char *name, const char *text, size_t size);
/* PL_BAD_INPUT with the place: a letter that begins no word, a number out of range, a string without end. */
pl_code pl_ir_lexer_next(pl_ir_lexer *lexer, pl_ir_token *token, pl_error *error);
/* The bytes that a string token means, in `arena`; NULL with the error set: an escape that is none, or no memory. */
const char *pl_ir_lexer_string(const pl_ir_lexer *lexer, const pl_ir_token *token, pl_arena *arena, pl_error *error);
/* "NAME:LINE:COLUMN: message". */
pl_code pl_ir_lexer_fail(const pl_ir_lexer *lexer, pl_ir_place place, pl_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
