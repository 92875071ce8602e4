/* Conditions on result rows: `fits and tmp<=8`, `schedule == '1f1b' or not (pp > 4)`, `peak_mem_bytes / 1e9 < 70`.
 *
 *   or    := and ("or" and)*            compare := sum (("==" | "=" | "!=" | "<" | "<=" | ">" | ">=") sum)?
 *   and   := not ("and" not)*           sum     := product (("+" | "-") product)*
 *   not   := "not" not | compare        product := unary (("*" | "/") unary)*
 *   unary := "-" unary | "(" or ")" | number | 'text' | "text" | true | false | column
 *
 * Operands are numbers or texts; a number is true unless it is 0 or NaN. Comparisons with NaN are false, except !=.
 * Texts compare with texts, byte by byte. `status` is a number that may be compared with its names: status == 'oom'.
 * `candidate` is the row's index. Digests are texts of 16 hex digits.
 */
#ifndef PL_SEARCH_WHERE_H
#define PL_SEARCH_WHERE_H

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/graph/result.h"

typedef struct pl_where pl_where;

/* Compiles `text` into `arena`; names are those of `columns`, which outlive it. PL_BAD_INPUT: the message quotes the
 * text, says at which column (from 1) it stops making sense, and for an unknown name which ones are near. Depth of
 * nesting is limited. */
pl_code pl_where_take(const char *text, pl_column_list columns, pl_arena *arena, pl_where **where, pl_error *error);

/* Whether the condition reads column `column` (index into the columns). */
bool pl_where_reads(const pl_where *where, uint32_t column);

/* One value: text if `text` is not NULL. */
typedef struct pl_where_value {
  double number;
  const char *text; /* `length` bytes, not terminated */
  uint32_t length;
} pl_where_value;

/* `get` gives column `column` (index into the columns; among them the index `candidate`) of the row.
 */
typedef pl_where_value (*pl_where_get)(void *context, uint32_t column);
bool pl_where_holds(const pl_where *where, pl_where_get get, void *context);

/* Index into `columns`; PL_BAD_INPUT names the nearest columns. `what`
 * goes before the message: "--sort". */
pl_code pl_where_column(const char *name, pl_column_list columns, const char *what, uint32_t *column, pl_error *error);

#endif
