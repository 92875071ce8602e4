/* The halves of a block's backward pass (Qi et al. 2023, section 2): for inputs what the gradient of the block's input
 * comes from, and for weights all else. Which kernels these are, the derivative says whose ops they were lowered from
 * (workloads/lower/lower_backward.c): regathers and casts that only a weight gradient reads go with it, casts that both
 * read with the first half. Recomputation belongs to the first half, as frameworks run it in one go; of a block that
 * hands no gradient on (the embedding) everything is for weights. No op of the second half reads what the first
 * overwrites later (tests/property/block_halves_test.c).
 *
 * What waits between the halves are activations and gradients that the second half reads and does not make itself. The
 * gradient of the output is one of them, and belongs to this block as it does during the backward pass.
 */
#include <string.h>

#include "workloads/block/block_tape.h"

enum { INPUTS = 0, WEIGHTS };

static bool is_counted(const pl_tensor *tensor) {
  return tensor->kind == PL_TENSOR_ACTIVATION || tensor->kind == PL_TENSOR_MASK || tensor->kind == PL_TENSOR_GRADIENT;
}

static void mark_made(const pl_op *op, bool *made) {
  if (op->output != PL_NONE) made[op->output] = true;
  if (op->auxiliary != PL_NONE) made[op->auxiliary] = true;
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
      if (tensor->waits || !is_counted(tensor)) continue;
      tensor->waits = true;
      bytes += tensor->size_bytes;
    }
    mark_made(op, made);
  }
  return bytes;
}

/* Highest sum of live bytes over a half above what there was before it. What is there at its start gives back its bytes
 * when its last reader is done: what was saved, or what waits; what was not kept of it comes back with the first reader
 * of the first half. Of that half, what waits and the gradient that is handed on outlive it. */
static double peak_of(const pl_tape *tape, const pl_op_list *list, int half) {
  uint32_t last[PL_TAPE_TENSORS], tensors[PL_OP_TENSORS];
  bool alive[PL_TAPE_TENSORS], whole[PL_TAPE_TENSORS];
  double live = 0;
  for (uint32_t t = 0; t < tape->n_tensors; t++) {
    alive[t] = half == INPUTS ? tape->tensors[t].saved : tape->tensors[t].waits;
    whole[t] = half != INPUTS || !alive[t] || tape->tensors[t].remade_bytes == 0;
  }
  for (uint32_t i = 0; i < list->n_ops; i++)
    for (uint32_t j = pl_op_tensors(&list->ops[i], tensors); j-- > 0;)
      last[tensors[j]] = i;
  if (half == INPUTS && tape->output_gradient != PL_NONE) {
    alive[tape->output_gradient] = true;
    live = tape->tensors[tape->output_gradient].size_bytes;
  }
  double peak = live;
  for (uint32_t i = 0; i < list->n_ops; i++) {
    uint32_t n = pl_op_tensors(&list->ops[i], tensors);
    for (uint32_t j = 0; j < n; j++) {
      if (!whole[tensors[j]]) live += tape->tensors[tensors[j]].remade_bytes;
      whole[tensors[j]] = true;
      if (alive[tensors[j]] || !is_counted(&tape->tensors[tensors[j]])) continue;
      alive[tensors[j]] = true;
      live += tape->tensors[tensors[j]].size_bytes;
    }
    if (live > peak) peak = live;
    for (uint32_t j = 0; j < n; j++) {
      const pl_tensor *tensor = &tape->tensors[tensors[j]];
      bool stays = half == INPUTS && (tensor->waits || tensors[j] == tape->input_gradient);
      if (!alive[tensors[j]] || last[tensors[j]] != i || stays) continue;
      alive[tensors[j]] = false;
      live -= tensor->size_bytes;
    }
  }
  return peak;
}

bool pl_block_halves(pl_tape *tape, pl_arena *arena, pl_block_program *program) {
  for (int half = INPUTS; half <= WEIGHTS; half++)
    if (!copy_half(tape, half, arena, &program->halves[half])) return false;
  program->waiting_bytes = mark_waiting(tape, &program->halves[WEIGHTS]);
  program->inputs_peak_bytes = peak_of(tape, &program->halves[INPUTS], INPUTS);
  program->weights_peak_bytes = peak_of(tape, &program->halves[WEIGHTS], WEIGHTS);
  return true;
}
