/* The reader of programs in its parts. Internal to ir_parse*.c (ir_text.h is for everybody else).
 *
 * Recursive descent without recursion: the grammar nests to a fixed depth. One word of look-ahead. */
#ifndef PL_WORKLOADS_IR_PARSE_H
#define PL_WORKLOADS_IR_PARSE_H

#include "workloads/language/ir_lexer.h"
#include "workloads/language/ir_table.h"

/* A list that grows, used again and again: elements of `size` bytes in the arena. */
typedef struct pl_ir_list {
  void *items;
  int32_t n;
  uint32_t room;
} pl_ir_list;

typedef struct pl_ir_reader {
  pl_ir_lexer lexer;
  pl_ir_token token;   /* the next word */
  int32_t nesting;     /* in how many brackets: lines do not end there */
  pl_ir_token comment; /* the last one in this statement; length 0: none */
  pl_ir_module *module;
  pl_arena *arena;
  pl_error *error;
  pl_ir_list outputs, inputs, attributes, types, names, text, chunks, steps, classes, fewer;
  pl_hash_index class_names;
} pl_ir_reader;

/* ---- words ---- */
pl_code pl_ir_read_fail(pl_ir_reader *reader, pl_ir_place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "line 3 ends", "'foo'": what stands there, and what should. */
pl_code pl_ir_read_expected(pl_ir_reader *reader, const char *what);
pl_code pl_ir_read_next(pl_ir_reader *reader);
bool pl_ir_read_sees(const pl_ir_reader *reader, char mark);
bool pl_ir_read_sees_word(const pl_ir_reader *reader, const char *word);
/* Takes the mark, which must be next; a bracket opens or closes. `what`: what else could stand there. */
pl_code pl_ir_read_mark(pl_ir_reader *reader, char mark, const char *what);
/* Takes a comma if one is next, and the line's end behind it. *more: there was one. */
pl_code pl_ir_read_comma(pl_ir_reader *reader, bool *more);
pl_code pl_ir_read_lines(pl_ir_reader *reader); /* takes any number of line ends */
pl_code pl_ir_read_statement_end(pl_ir_reader *reader);
/* Ended by NUL, in storage that the next call reuses; NULL: no memory. */
const char *pl_ir_read_text(pl_ir_reader *reader, const pl_ir_token *token);
pl_code pl_ir_read_name(pl_ir_reader *reader, const char *what, pl_ir_name *name); /* a short one */
pl_code pl_ir_read_integer(pl_ir_reader *reader, const char *what, int64_t lowest, int64_t highest, int64_t *value);
/* Room for one more; NULL: no memory. */
void *pl_ir_list_add(pl_ir_reader *reader, pl_ir_list *list, size_t size);
/* The end of a message about a word that is not among `words`: "; did you mean 'b'?", "; there are: a, b, c" or ";
 * there are none". */
enum { PL_IR_HINT_BYTES = 800 };
const char *pl_ir_hint(const char *word, const char *const *words, char text[PL_IR_HINT_BYTES]);

/* ---- parts of statements ---- */
pl_code pl_ir_read_type(pl_ir_reader *reader, pl_ir_type *type);
pl_code pl_ir_read_op(pl_ir_reader *reader, pl_ir_function *function);
/* The function that an @name calls; *callee is its index. */
pl_code pl_ir_read_callee(pl_ir_reader *reader, int32_t *callee);
/* The value that a %name means. */
pl_code pl_ir_read_value(pl_ir_reader *reader, const pl_ir_function *function, int32_t *value);
pl_code pl_ir_read_class(pl_ir_reader *reader);
/* "at dp=1, tp=0", or nothing: all coordinates PL_IR_NONE. `who`: "a class is", of messages. */
pl_code pl_ir_read_at(pl_ir_reader *reader, const char *who, int32_t at[PL_IR_AXES_MAX]);

#endif
