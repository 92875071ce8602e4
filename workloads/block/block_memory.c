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
#include "workloads/block/block_lifetimes.h"

static bool is_activation(const pl_tensor *tensor) {
  return tensor->kind == PL_TENSOR_ACTIVATION || tensor->kind == PL_TENSOR_MASK || tensor->kind == PL_TENSOR_SIGNS;
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
    if (op->third != PL_NONE) made[op->third] = true;
  }
  return saved_bytes;
}

void pl_block_memory(pl_tape *tape, pl_block_program *program) {
  program->saved_bytes = mark_saved(tape);
  program->forward_peak_bytes = pl_tape_peak(tape, PL_PASS_FORWARD, tape->forward, tape->n_forward);
  program->backward_peak_bytes = pl_tape_peak(tape, PL_PASS_BACKWARD, tape->backward, tape->n_backward);
  program->output_bytes = tape->output == PL_NONE ? 0 : tape->tensors[tape->output].size_bytes;
  for (uint32_t i = 0; i < tape->n_tensors; i++) {
    if (tape->tensors[i].kind != PL_TENSOR_PARAMETER) continue;
    double *count = i == tape->tied ? &program->tied_parameters : &program->parameters;
    *count += pl_tape_elements(tape, i);
    program->largest_parameters = fmax(program->largest_parameters, pl_tape_elements(tape, i));
    if (tape->tensors[i].expert) program->expert_parameters += pl_tape_elements(tape, i);
  }
}
