/* How `compute` of rows walks over the local parts of its operands, whose dimensions have names and any order. */
#ifndef PL_WORKLOADS_IR_WALK_H
#define PL_WORKLOADS_IR_WALK_H

#include "workloads/language/ir_table.h"

/* A walk over the dimensions `dims` of the local parts of several tensors, last dimension fastest:
 *
 *   pl_ir_walk walk = pl_ir_walk_over(n_dims, dims, n_tensors, tensors);
 *   do use(data[walk.at[0]], data[walk.at[1]]); while (pl_ir_walk_next(&walk));
 *
 * A tensor that lacks a dimension stands still along it. Every dimension is one of some tensor's; extents agree. */
enum { PL_IR_WALK_TENSORS = 8 };
typedef struct pl_ir_walk {
  int32_t rank, n_tensors;
  int64_t extent[PL_IR_RANK_MAX], index[PL_IR_RANK_MAX]; /* local */
  int64_t whole[PL_IR_RANK_MAX], origin[PL_IR_RANK_MAX];
  int64_t step[PL_IR_WALK_TENSORS][PL_IR_RANK_MAX];
  int64_t at[PL_IR_WALK_TENSORS];
} pl_ir_walk;

pl_ir_walk pl_ir_walk_over(int32_t n_dims, const pl_ir_dim *dims, int32_t n_tensors,
                           const pl_ir_tensor *const *tensors);
bool pl_ir_walk_next(pl_ir_walk *walk); /* false: there is no next */
int64_t pl_ir_walk_count(const pl_ir_walk *walk);
/* Place in the whole value whose dimensions are walked over, row-major. */
int64_t pl_ir_walk_place(const pl_ir_walk *walk);

/* Elements between neighbours of dimension `dim` in the tensor's data; 0: it lacks it. */
int64_t pl_ir_tensor_step(const pl_ir_tensor *tensor, pl_ir_name dim);

/* Refuses a part of dimension `dim`: what computing an opaque dimension asserts before it counts on all of it. */
pl_code pl_ir_tensor_is_whole(const pl_ir_computing *computing, const pl_ir_tensor *tensor, pl_ir_name dim,
                              pl_error *error);

/* What becomes of a number that is computed: itself, or the nearest fp32. */
static inline double pl_ir_rounded(const pl_ir_computing *computing, double x) {
  return computing->single ? (double)(float)x : x;
}

#endif
