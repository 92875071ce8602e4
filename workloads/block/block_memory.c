/* What a block keeps and how much it needs for a moment, from who reads which tensor last.
 *
 * A tensor is saved if the backward list reads it before making it, or a framework keeps it unread. Conventions, so
 * that blocks add up along a pipeline stage: a block's input belongs to the block (the one before handed it over and no
 * longer counts it), its output to the next; the same holds for gradients on the way back. Saved tensors are freed
 * after their last reader in the backward pass, as a framework's graph does. Parameters and their gradients are
 * persistent and not counted here.
 */
#include <math.h>
#include <string.h>

#include "core/cluster/cluster.h"
#include "workloads/block/block_tape.h"

static bool is_activation(const pl_tensor *tensor) {
  return tensor->kind == PL_TENSOR_ACTIVATION || tensor->kind == PL_TENSOR_MASK;
}

static bool is_counted(const pl_tensor *tensor) {
  return is_activation(tensor) || tensor->kind == PL_TENSOR_GRADIENT;
}

static double mark_saved(pl_tape *tape) {
  bool made[PL_TAPE_TENSORS] = {false};
  double saved_bytes = 0;
  for (uint32_t i = 0; i < tape->n_tensors; i++) {
    if (tape->tensors[i].unread) saved_bytes += tape->tensors[i].size_bytes;
    tape->tensors[i].saved = tape->tensors[i].unread;
  }
  for (uint32_t i = 0; i < tape->n_backward; i++) {
    const pl_op *op = &tape->backward[i];
    for (uint32_t j = 0; j < PL_OP_INPUTS; j++) {
      if (op->inputs[j] == PL_NONE) continue;
      pl_tensor *tensor = &tape->tensors[op->inputs[j]];
      if (!is_activation(tensor) || tensor->saved || made[op->inputs[j]]) continue;
      tensor->saved = true;
      saved_bytes += tensor->size_bytes - tensor->remade_bytes;
    }
    if (op->output != PL_NONE) made[op->output] = true;
    if (op->auxiliary != PL_NONE) made[op->auxiliary] = true;
  }
  return saved_bytes;
}

/* Highest sum of live bytes over a list. `given` (PL_NONE = none) is alive and counted from the start; `kept` outlives
 * the list. In the forward pass saved tensors outlive it too; in the backward pass they are there before, uncounted,
 * and give back their bytes when freed; what was not kept of them comes back with their first reader. */
static double peak_of(const pl_tape *tape, const pl_op *ops, uint32_t n_ops, uint32_t given, uint32_t kept,
                      bool backward) {
  uint32_t last[PL_TAPE_TENSORS], tensors[PL_OP_TENSORS];
  bool alive[PL_TAPE_TENSORS], whole[PL_TAPE_TENSORS];
  for (uint32_t i = 0; i < tape->n_tensors; i++) {
    alive[i] = backward && tape->tensors[i].saved;
    whole[i] = !alive[i] || tape->tensors[i].remade_bytes == 0;
  }
  for (uint32_t i = 0; i < n_ops; i++)
    for (uint32_t j = pl_op_tensors(&ops[i], tensors); j-- > 0;)
      last[tensors[j]] = i;
  double live = 0, peak;
  if (given != PL_NONE) {
    alive[given] = true;
    live = tape->tensors[given].size_bytes;
  }
  peak = live;
  for (uint32_t i = 0; i < n_ops; i++) {
    uint32_t n = pl_op_tensors(&ops[i], tensors);
    for (uint32_t j = 0; j < n; j++) {
      const pl_tensor *tensor = &tape->tensors[tensors[j]];
      if (!whole[tensors[j]]) live += tensor->remade_bytes;
      whole[tensors[j]] = true;
      if (alive[tensors[j]] || !is_counted(tensor)) continue;
      alive[tensors[j]] = true;
      live += tensor->size_bytes;
    }
    if (live > peak) peak = live;
    for (uint32_t j = 0; j < n; j++) {
      const pl_tensor *tensor = &tape->tensors[tensors[j]];
      if (!alive[tensors[j]] || last[tensors[j]] != i || tensors[j] == kept) continue;
      if (tensor->saved && !backward) continue;
      alive[tensors[j]] = false;
      live -= tensor->size_bytes;
    }
  }
  return peak;
}

void pl_block_memory(pl_tape *tape, pl_block_program *program) {
  program->saved_bytes = mark_saved(tape);
  program->forward_peak_bytes = peak_of(tape, tape->forward, tape->n_forward, tape->input, tape->output, false);
  program->backward_peak_bytes =
      peak_of(tape, tape->backward, tape->n_backward, tape->output_gradient, tape->input_gradient, true);
  program->output_bytes = tape->output == PL_NONE ? 0 : tape->tensors[tape->output].size_bytes;
  for (uint32_t i = 0; i < tape->n_tensors; i++) {
    if (tape->tensors[i].kind != PL_TENSOR_PARAMETER) continue;
    double *count = i == tape->tied ? &program->tied_parameters : &program->parameters;
    *count += pl_tape_elements(tape, i);
    program->largest_parameters = fmax(program->largest_parameters, pl_tape_elements(tape, i));
    if (tape->tensors[i].expert) program->expert_parameters += pl_tape_elements(tape, i);
  }
}
