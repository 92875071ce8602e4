/* The halves of a block's backward pass (Qi et al. 2023, section 2): for inputs what the gradient of the block's input
 * comes from, and for weights all else. Which kernels these are, the derivative says whose ops they are
 * (workloads/lower/launched_block.c): regathers and casts that only a weight gradient reads go with it, casts that both
 * read with the first half. Recomputation belongs to the first half, as frameworks run it in one go; of a block that
 * hands no gradient on (the embedding) everything is for weights. No op of the second half reads what the first
 * overwrites later (tests/property/block_halves_test.c).
 *
 * What waits between the halves are activations and gradients that the second half reads and does not make itself. The
 * gradient of the output is one of them, and belongs to this block as it does during the backward pass.
 */
#include <string.h>

#include "workloads/block/block_lifetimes.h"

enum { INPUTS = 0, WEIGHTS };

static void mark_made(const pl_op *op, bool *made) {
  if (op->output != PL_NONE) made[op->output] = true;
  if (op->auxiliary != PL_NONE) made[op->auxiliary] = true;
  if (op->third != PL_NONE) made[op->third] = true;
}

/* A collective that began beside the product after it does so only if that product is in its half and all up to it can
 * do without what the collective brings. */
static bool runs_beside(const pl_op *ops, uint32_t n_ops, uint32_t at) {
  for (uint32_t i = at + 1; i < n_ops; i++) {
    for (uint32_t j = 0; j < PL_OP_INPUTS; j++)
      if (ops[i].inputs[j] != PL_NONE && ops[i].inputs[j] == ops[at].output) return false;
    if (ops[i].kind == PL_OP_GEMM) return true;
  }
  return false;
}

static bool copy_half(const pl_tape *tape, int half, pl_arena *arena, pl_op_list *list) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < tape->n_backward; i++)
    n += tape->for_inputs[i] == (half == INPUTS);
  pl_op *ops = pl_arena_take(arena, (n + 1) * sizeof *ops, _Alignof(pl_op));
  if (ops == NULL) return false;
  *list = (pl_op_list){.ops = ops};
  for (uint32_t i = 0; i < tape->n_backward; i++)
    if (tape->for_inputs[i] == (half == INPUTS)) ops[list->n_ops++] = tape->backward[i];
  for (uint32_t i = 0; i < n; i++) {
    if (ops[i].overlap == PL_OVERLAP_BEGINS && ops[i].group == PL_GROUP_TENSOR && !runs_beside(ops, n, i))
      ops[i].overlap = PL_OVERLAP_NONE;
    list->n_overlaps += ops[i].overlap != PL_OVERLAP_NONE;
  }
  return true;
}

/* Marks what waits; returns its bytes. */
static double mark_waiting(pl_tape *tape, const pl_op_list *weights) {
  bool made[PL_TAPE_TENSORS] = {false};
  double bytes = 0;
  for (uint32_t i = 0; i < weights->n_ops; i++) {
    const pl_op *op = &weights->ops[i];
    for (uint32_t j = 0; j < PL_OP_INPUTS; j++) {
      if (op->inputs[j] == PL_NONE || made[op->inputs[j]]) continue;
      pl_tensor *tensor = &tape->tensors[op->inputs[j]];
      if (tensor->waits || !pl_tensor_comes_and_goes(tensor)) continue;
      tensor->waits = true;
      bytes += tensor->size_bytes;
    }
    mark_made(op, made);
  }
  return bytes;
}

bool pl_block_halves(pl_tape *tape, pl_arena *arena, pl_block_program *program) {
  for (int half = INPUTS; half <= WEIGHTS; half++)
    if (!copy_half(tape, half, arena, &program->halves[half])) return false;
  program->waiting_bytes = mark_waiting(tape, &program->halves[WEIGHTS]);
  const pl_op_list *inputs = &program->halves[INPUTS], *weights = &program->halves[WEIGHTS];
  program->inputs_peak_bytes = pl_tape_peak(tape, PL_PASS_INPUTS, inputs->ops, inputs->n_ops);
  program->weights_peak_bytes = pl_tape_peak(tape, PL_PASS_WEIGHTS, weights->ops, weights->n_ops);
  return true;
}
