/* Tape: the kernels of one block while they are written down, forward and backward. Internal to workloads/block and
 * workloads/lower; the result that others see is pl_block_program.
 *
 * What a block computes is lowered to it from the block's function with local shapes, and its backward pass from the
 * function's derivative, by the kernels that the pass for programs makes of both (workloads/lower). From the lists
 *   block_memory.c    derives what is kept and the peaks, from who reads what last;
 *   block_halves.c    derives the two halves of the backward pass.
 * Nobody says by hand what is saved: a tensor is saved exactly if the backward list reads it before it makes it
 * (again). The alternative, a table of bytes per family as in most calculators, was rejected because it goes wrong
 * silently with the first new combination.
 *
 * Everything lives in fixed arrays on the stack of pl_block_program_make (about 170 kB); the limits are checked by
 * PL_ASSERT, no input can move them. Names are literals, so that taking a program allocates three times and copies no
 * text.
 */
#ifndef PL_WORKLOADS_BLOCK_TAPE_H
#define PL_WORKLOADS_BLOCK_TAPE_H

#include "workloads/framework/framework.h"
#include "workloads/ir/model.h"

enum { PL_TAPE_FORWARD_OPS = 160, PL_TAPE_BACKWARD_OPS = 384, PL_TAPE_TENSORS = 512 };

typedef struct pl_tape {
  const pl_block_shard *shard;
  const pl_framework *framework;
  int64_t cp, mbs, seq; /* seq: of this rank's share of a sequence */
  int64_t model_seq;    /* of the whole sequence */
  bool layer;           /* a transformer layer: what recomputation acts on */
  bool overlaps;        /* its tensor collectives run beside the matrix products next to them */
  bool overlaps_split;  /* those of column splits' derivatives do (overlaps_tensor_backward) */
  pl_tensor tensors[PL_TAPE_TENSORS];
  pl_op forward[PL_TAPE_FORWARD_OPS];
  pl_op backward[PL_TAPE_BACKWARD_OPS];
  bool for_inputs[PL_TAPE_BACKWARD_OPS]; /* per backward op: what the gradient of the block's input is made from */
  bool writes_for_inputs;                /* the same of those that are written now */
  uint32_t n_tensors, n_forward, n_backward;
  uint32_t input, output;                   /* activations handed in and out, PL_NONE = none */
  uint32_t output_gradient, input_gradient; /* the same of the backward pass */
  uint32_t data;                            /* input of the model that no gradient is made for, PL_NONE = none */
  pl_dtype stream; /* of sums and embeddings: the shard's, or under autocast around fp32 weights fp32 */
  uint32_t tied;   /* parameter that the embedding owns, PL_NONE = none */
} pl_tape;

void pl_tape_init(pl_tape *tape, const pl_block_shard *shard);

/* A tensor over up to four named dims; `dims` is a string of their letters. */
uint32_t pl_tape_tensor(pl_tape *tape, const char *name, pl_tensor_kind kind, pl_dtype dtype, const char *dims,
                        const int64_t *extent);
uint32_t pl_tape_like(pl_tape *tape, uint32_t tensor, const char *name, pl_tensor_kind kind, pl_dtype dtype);
/* The same elements in another type. */
void pl_tape_retype(pl_tape *tape, uint32_t tensor, pl_dtype dtype);
uint32_t pl_tape_parameter(pl_tape *tape, const char *name, const char *dims, int64_t first, int64_t second);
double pl_tape_elements(const pl_tape *tape, uint32_t tensor);

/* Ops, appended to the forward or to the backward list by their category. */
pl_op *pl_tape_op(pl_tape *tape, const char *name, pl_op_kind kind, pl_category category, uint32_t first,
                  uint32_t second, uint32_t third, uint32_t output);
/* A memory-bound op of (rows, width); bytes = every input and output once, a tensor that is updated in place twice. */
pl_op *pl_tape_sweep(pl_tape *tape, const char *name, pl_op_kind kind, pl_category category, double flops_per_element,
                     uint32_t first, uint32_t second, uint32_t third, uint32_t output, uint32_t auxiliary);
void pl_tape_group_collective(pl_tape *tape, const char *name, pl_collective_kind kind, pl_group_role group,
                              bool backward, double size_bytes, uint32_t input, uint32_t output);

/* `elements` gradients of a block on their way to the reduction (pl_gradient_path), behind its backward pass. */
void pl_block_pass_gradients(pl_tape *tape, double elements);
/* Fills saved flags and the byte counts of `program`. */
void pl_block_memory(pl_tape *tape, pl_block_program *program);
/* The halves of the backward pass, `for_inputs` and the rest (block_halves.c): two op lists in the arena, their bytes
 * in `program`, and which tensors wait. After pl_block_memory. */
bool pl_block_halves(pl_tape *tape, pl_arena *arena, pl_block_program *program);

#endif
