/* Pieces: a call with {piece=i, pieces=n} runs its function on one of n pieces of the samples (dimension b) that the
 * caller has, those at i, i + n ... as `deal` hands them out. Calls nest: piece i of n inside of piece k of m is that
 * of the samples at i m + k, i m + k + n m ... What a piece keeps for the backward pass is its own, and its data and
 * its random numbers are those of its samples, so that a batch in pieces computes what it computes whole.
 */
#ifndef PL_WORKLOADS_IR_PIECE_H
#define PL_WORKLOADS_IR_PIECE_H

#include "workloads/language/ir_module.h"

#define PL_IR_PIECE  "piece"
#define PL_IR_PIECES "pieces"

enum { PL_IR_PIECES_MAX = 32 }; /* of one `deal` */

typedef struct pl_ir_piece {
  int64_t index, of; /* of 0, as of 1: all samples */
} pl_ir_piece;

/* Where what `call` calls is, called from a function that runs on `outer`. */
static inline pl_ir_piece pl_ir_piece_inside(pl_ir_piece outer, const pl_ir_op *call) {
  int64_t of = pl_ir_integer_of(call, PL_IR_PIECES, 1), index = pl_ir_integer_of(call, PL_IR_PIECE, 0);
  int64_t outer_of = outer.of > 1 ? outer.of : 1;
  return (pl_ir_piece){.index = index * outer_of + outer.index, .of = of * outer_of};
}

/* Which samples a device is at: those of a microbatch, where `missing` of the parts in front of its own, of `parts` a
 * microbatch, are run by nobody (ir_fewer.h). */
typedef struct pl_ir_turn {
  int64_t microbatch, missing, parts; /* parts 0: none is missing */
} pl_ir_turn;

/* The place among all samples of sample `at` of a piece, in this turn, with microbatches of `extent` samples a piece.
 */
static inline int64_t pl_ir_piece_sample(pl_ir_piece piece, pl_ir_turn turn, int64_t extent, int64_t at) {
  int64_t place = turn.microbatch * extent + at;
  if (turn.parts > 0) place -= turn.missing * (extent / turn.parts);
  return piece.of > 1 ? place * piece.of + piece.index : place;
}

#endif
