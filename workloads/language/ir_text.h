/* Programs as text (README.md has the grammar): reading, printing, comparing, and showing where an error is. */
#ifndef PL_WORKLOADS_IR_TEXT_H
#define PL_WORKLOADS_IR_TEXT_H

#include <stdio.h>

#include "workloads/language/ir_module.h"

/* Canonical text: reading it gives an equal module (pl_ir_module_equal). The reasons of ops are comments behind them.
 */
void pl_ir_print(FILE *stream, const pl_ir_module *module);

/* Reads a program; `name` stands for the path. Everything in `arena`. What is read has the form of a program, and names
 * that it uses are defined above; whether it makes sense is for pl_ir_check. A comment behind an op is its reason.
 * PL_BAD_INPUT: "NAME:LINE:COLUMN: what is wrong, what would be valid". O(size). */
pl_code pl_ir_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_ir_module *module,
                    pl_error *error);
enum { PL_IR_TEXT_LIMIT_BYTES = 1 << 29 };
pl_code pl_ir_load(const char *path, pl_arena *arena, pl_ir_module *module, pl_error *error);

/* The same program: everything but reasons, places and where it was read from. */
bool pl_ir_module_equal(const pl_ir_module *a, const pl_ir_module *b);

enum { PL_IR_TYPE_TEXT_BYTES = 1024 };
/* "bf16[b=8/dp, h=4096] partial(tp)". Returns `text`. */
const char *pl_ir_type_text(const pl_ir_mesh *mesh, const pl_ir_type *type, char text[PL_IR_TYPE_TEXT_BYTES]);
/* Letters, digits, '_' and '.', no digit first, at least one. */
bool pl_ir_is_name(const char *text);

/* ---- where an error is ---- */

/* Place that a message "NAME:LINE:COLUMN: ..." names; false: it does not begin so. */
bool pl_ir_error_place(const pl_error *error, const char *name, pl_ir_place *place);
/* Two lines for commands to print behind the message: the source line (a part of it, if it is long) and a caret under
 * the column. Nothing if the text has no such line. */
void pl_ir_source_show(FILE *stream, const char *text, size_t size, pl_ir_place place);
/* The same for a message that names a place in the file `path`, which is read once more; nothing of other messages. */
void pl_ir_error_show(FILE *stream, const pl_error *error, const char *path);

#endif
