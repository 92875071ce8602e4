/* Lifetimes of a block's tensors over the ops of one pass: which op touches a tensor first, and after which it is given
 * back. One walk for all who ask what memory a block needs: sums of bytes (pl_tape_peak) and the replay of a caching
 * allocator (workloads/memory/stage_replay.c), which differ in what they do then. Internal to workloads.
 *
 * A tensor is given back when its last op in the pass has run, unless it outlives the pass: of a forward pass the
 * output and what is saved, of a backward pass the gradient that is handed on, and of its half for inputs what waits
 * for the half for weights.
 */
#ifndef PL_WORKLOADS_BLOCK_LIFETIMES_H
#define PL_WORKLOADS_BLOCK_LIFETIMES_H

#include <stdbool.h>

#include "workloads/block/block_tape.h"

/* What is done on the way; `own` is the visitor's state. */
typedef struct pl_lifetime_visitor {
  /* An op that is about to run touches a tensor; `first`: none of this pass has before. */
  void (*touch)(void *own, const pl_op *op, uint32_t tensor, bool first);
  void (*run)(void *own, const pl_op *op);       /* all that the op touches is there */
  void (*give_back)(void *own, uint32_t tensor); /* an op that names a tensor twice gives it back twice */
} pl_lifetime_visitor;

/* The tensors that ops name, and those with a part of their own in who outlives what (PL_NONE: none). */
typedef struct pl_lifetime_tensors {
  const pl_tensor *tensors;
  uint32_t n_tensors; /* at most PL_TAPE_TENSORS */
  uint32_t output, input_gradient;
} pl_lifetime_tensors;

/* Walks n_ops ops of a pass in order. Cost: linear in the ops; no memory is taken. */
void pl_lifetimes_walk(const pl_lifetime_tensors *of, pl_block_pass pass, const pl_op *ops, uint32_t n_ops,
                       const pl_lifetime_visitor *visitor, void *own);

/* Whether a tensor has bytes that come and go: activations, masks and gradients of activations. Parameters and their
 * gradients stay. */
bool pl_tensor_comes_and_goes(const pl_tensor *tensor);

/* Highest sum of live bytes over a pass, above what there was before it. The input of a forward pass and the gradient
 * of the output count from the start. What was saved, or waits, is there before and uncounted, and takes its bytes away
 * when it is given back; what a recomputation makes again of it comes back with its first reader. */
double pl_tape_peak(const pl_tape *tape, pl_block_pass pass, const pl_op *ops, uint32_t n_ops);

#endif
