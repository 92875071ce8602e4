/* Lowering: from the ops of a block's function (block_function.h) to the kernels that a framework launches for them, of
 * blocks that are not lowered by what the pass for programs makes of them (launched_block.h).
 *
 * Each row of the op table says which kernels an op of it becomes (its column `kernels`); what lowers them (kernels.c)
 * looks at the ops around it where a framework's profile makes one kernel of several (a batch norm and its ReLU), and
 * then marks those as done. Ops are lowered in program order. What is emitted into is the tape
 * (workloads/block/block_tape.h), which derives the backward pass and the memory of what was launched.
 *
 * Everything about the block is read off its function: local extents off the types, column and row splits and
 * collectives off the layouts. The shard says what no layout depends on: microbatch, types, which attention, profile.
 */
#ifndef PL_WORKLOADS_LOWERING_H
#define PL_WORKLOADS_LOWERING_H

#include "workloads/block/block_tape.h"
#include "workloads/lower/block_function.h"

enum { PL_LOWERING_VALUES = 768 };

typedef struct pl_lowering {
  pl_tape *tape;
  const pl_block_function *block;
  pl_reading read;                     /* of the function */
  uint32_t tensor[PL_LOWERING_VALUES]; /* of the tape, per value; PL_NONE: none (yet), or inside a kernel */
  bool done[PL_LOWERING_VALUES];       /* per op: part of what an op before it became */
  /* Per op: the one that it was lowered with, whose kernels are its own (itself, where it was not done before). */
  int32_t head[PL_LOWERING_VALUES];
} pl_lowering;

/* What ops of one row become, by the op table's column; `op` is an index in to->read.f. kernels.c */
typedef void (*pl_lowers)(pl_lowering *to, int32_t op);
pl_lowers pl_lowers_of(pl_ir_kernel_kind kernels);

/* What frameworks call the kernels around a parameter: the names for the module at `path` of a block of this kind,
 * NULL: none of its own. kernel_names.c */
const pl_tape_names *pl_kernel_names_of(pl_block_kind kind, const char *path);

/* The forward pass: ops and notes on the tape, its input, output and what else pl_tape says of a block. */
void pl_lower_block(const pl_block_function *block, pl_tape *tape, pl_lowering *to);
/* The backward pass (lower_backward.h). */
void pl_lower_backward(const pl_lowering *to);
/* What a layer recomputes before its backward pass begins (lower_recompute.c). */
void pl_lower_recompute(const pl_lowering *to);
/* Forward ops [first, end) once more, at the end of the backward list. */
void pl_lower_repeat(pl_tape *tape, uint32_t first, uint32_t end);

/* ---- reading the function (besides workloads/fuse/reading.h; lowering.c) ---- */
/* What this rank has of dimension `dim`, batches times the microbatch; 1: the value has no such dimension. */
int64_t pl_lower_extent(const pl_lowering *to, int32_t value, char dim);
/* Of the whole model, unpadded. */
double pl_lower_whole(const pl_lowering *to, int32_t value, char dim);
bool pl_lower_is_param(const pl_lowering *to, int32_t value);

/* ---- writing (lowering.c) ---- */
/* What the tape calls the last dimension of a value: a dense layer's output is hidden, experts are e ... */
char pl_lower_last_letter(const pl_lowering *to, int32_t value);
/* An activation with the local extents of `value`, in the shard's type. */
uint32_t pl_lower_tensor(pl_lowering *to, const char *name, int32_t value);
static inline uint32_t pl_lower_input(const pl_lowering *to, int32_t op, int32_t i) {
  return to->tensor[pl_read_op(&to->read, op)->inputs[i]];
}
static inline void pl_lower_set(pl_lowering *to, int32_t op, int32_t output, uint32_t tensor) {
  to->tensor[pl_read_op(&to->read, op)->first_output + output] = tensor;
}
/* The op is part of what the op that is being lowered becomes. */
static inline void pl_lower_done(pl_lowering *to, int32_t op) {
  to->done[op] = true;
  to->head[op] = to->tape->head;
}

bool pl_lower_has_dim(const pl_lowering *to, int32_t value, pl_ir_name dim);

/* ---- parts of patterns ---- */
/* Rows and widths of a product with a weight, as a linear layer without bias. */
pl_linear pl_lower_linear(const pl_lowering *to, int32_t op);
/* The same without names and what the whole model has, of a function of the caller's. */
pl_linear pl_lower_shape(const pl_lowering *to, int32_t op);
/* A sum over the tensor group; and its kernel, of a `value` that is one of partial sums. */
bool pl_lower_is_reduction(const pl_lowering *to, int32_t op);
uint32_t pl_lower_reduced(pl_lowering *to, int32_t value, uint32_t partial);
int64_t pl_lower_norm_vectors(const pl_lowering *to, int32_t op);
/* A norm with its vectors of `width` elements, in one kernel or in steps, and an output already made. */
void pl_lower_norm_to(pl_lowering *to, int32_t op, pl_tape_names names, uint32_t input, int64_t width, uint32_t output);
/* An fp32 number for each row of `like`. */
uint32_t pl_lower_norm_row(pl_tape *tape, uint32_t like, const char *name, pl_tensor_kind kind);
bool pl_lower_join(pl_lowering *to, int32_t op); /* one that begins with an addition: true if it was one */

/* ---- what rows become ---- */
void pl_lower_nothing(pl_lowering *to, int32_t op); /* parameters, data, what is read where it is used */
void pl_lower_same(pl_lowering *to, int32_t op);    /* another name for the same tensor */
void pl_lower_sweep(pl_lowering *to, int32_t op);   /* one memory-bound kernel */
void pl_lower_norm(pl_lowering *to, int32_t op);    /* lower_norm.c */
void pl_lower_product(pl_lowering *to, int32_t op); /* lower_linear.c */
void pl_lower_reduce(pl_lowering *to, int32_t op);
void pl_lower_add(pl_lowering *to, int32_t op); /* lower_sum.c */
void pl_lower_dropout(pl_lowering *to, int32_t op);
void pl_lower_activation(pl_lowering *to, int32_t op);
void pl_lower_multiply(pl_lowering *to, int32_t op);
void pl_lower_convolution(pl_lowering *to, int32_t op); /* lower_chain.c */
void pl_lower_pool(pl_lowering *to, int32_t op);
void pl_lower_batch_norm(pl_lowering *to, int32_t op);
void pl_lower_rearranged(pl_lowering *to, int32_t op);
/* Whether the ReLU `op` is part of the batch norm that was lowered last, with the addition between them if there is
 * one. */
bool pl_lower_into_batch_norm(pl_lowering *to, int32_t op);

#endif
