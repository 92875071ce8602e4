/* A long function in pieces, and what pieces that are alike have in common. Internal to workloads/onnx/outline*.c. */
#ifndef PL_WORKLOADS_OUTLINE_PIECES_H
#define PL_WORKLOADS_OUTLINE_PIECES_H

#include "workloads/language/ir_table.h"
#include "workloads/onnx/outline.h"

/* What a value is made of. */
enum { PL_OF_NOTHING = 0, PL_OF_DATA = 1, PL_OF_WEIGHTS = 2 }; /* both: it belongs to one place */

typedef struct pl_outline_piece {
  int32_t first, n; /* ops of the spine */
  bool multiplies;  /* by a weight: has a product, a convolution or a table */
} pl_outline_piece;

typedef struct pl_outliner {
  const pl_ir_function *from;
  pl_ir_module *module;
  pl_arena *arena;
  pl_error *error;
  uint8_t *made_of; /* by value */
  int32_t *spine;   /* ops in order, those of both */
  int32_t n_spine;
  pl_outline_piece *pieces;
  int32_t n_pieces;
  uint64_t *signs; /* of pieces */
  int32_t *reader; /* by op `param`: the first function's group that reads it */
  pl_outlined *out;
} pl_outliner;

pl_code pl_outline_no_memory(const pl_outliner *own);
bool pl_outline_is_row(const pl_ir_op *op, const char *name);
/* Whether the op is made of data and weights; others float: they are written wherever they are read. */
bool pl_outline_is_spine(const pl_outliner *own, const pl_ir_op *op);

void pl_outline_find_spine(pl_outliner *own);
/* Cuts behind every op behind which one value alone of the spine is still read. */
pl_code pl_outline_find_pieces(pl_outliner *own, int32_t result);
/* Of pieces: equal where they are alike. */
pl_code pl_outline_take_signs(pl_outliner *own);

#endif
