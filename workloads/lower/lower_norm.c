/* Norms. An RMS norm of PyTorch ops (Hugging Face's LlamaRMSNorm, Megatron-LM's rms_norm.py, ATen's own rms_norm before
 * it had a kernel) is a kernel for every op:
 *
 *   x = input.to(float32)                     2 bytes read, 4 written     kept
 *   x.pow(2).mean(-1), + epsilon, rsqrt       4 and 4, then 4             a number a row
 *   (x * rsqrt).to(input_dtype)               4 and 4, 4 and 2            kept, for the weight's gradient
 *   weight * that                             2 and 2
 *
 * 36 bytes for an element where one kernel moves 4; back they are 92 (backward_norm.c). Layer norm, and a norm without
 * parameters, is one kernel everywhere. */
#include "core/cluster/cluster.h"
#include "workloads/lower/lowering.h"

static uint32_t step(pl_tape *tape, const char *name, uint32_t first, uint32_t second, uint32_t output) {
  pl_op *op =
      pl_tape_sweep(tape, name, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, first, second, PL_NONE, output, PL_NONE);
  op->plain = true;
  op->host_free = pl_framework_has_module_launches(tape->framework);
  return output;
}

uint32_t pl_lower_norm_row(pl_tape *tape, uint32_t like, const char *name, pl_tensor_kind kind) {
  uint32_t row = pl_tape_like(tape, like, name, kind, PL_DTYPE_FP32);
  pl_tensor *made = &tape->tensors[row];
  made->size_bytes /= (double)made->extent[made->rank - 1];
  made->extent[made->rank - 1] = 1;
  return row;
}

static void in_steps(pl_tape *tape, pl_tape_names names, uint32_t input, int64_t vectors, int64_t width,
                     uint32_t output) {
  const pl_tape_names cast = PL_OP_NAMES("norm_cast");
  bool wide = tape->tensors[input].dtype == PL_DTYPE_FP32; /* under autocast: nothing is cast */
  uint32_t x = wide ? input : pl_tape_like(tape, input, cast.forward, PL_TENSOR_ACTIVATION, PL_DTYPE_FP32);
  if (!wide) step(tape, cast.forward, input, PL_NONE, x);
  if (!wide) pl_tape_note(tape, PL_RULE_CAST, cast, input, x);
  uint32_t first_op = tape->n_forward;
  uint32_t squares = pl_tape_like(tape, x, "norm_squares", PL_TENSOR_ACTIVATION, PL_DTYPE_FP32);
  step(tape, "norm_squares", x, PL_NONE, squares);
  uint32_t mean = pl_lower_norm_row(tape, x, "norm_mean", PL_TENSOR_ACTIVATION);
  step(tape, "norm_mean", squares, PL_NONE, mean);
  step(tape, "norm_epsilon", mean, PL_NONE, mean);
  step(tape, "norm_rsqrt", mean, PL_NONE, mean);
  uint32_t scaled = pl_tape_like(tape, x, "norm_scaled", PL_TENSOR_ACTIVATION, PL_DTYPE_FP32);
  step(tape, "norm_scaled", x, mean, scaled);
  uint32_t narrow = wide ? scaled : pl_tape_like(tape, output, "normalised", PL_TENSOR_ACTIVATION, tape->shard->dtype);
  if (!wide) step(tape, "norm_narrow", scaled, PL_NONE, narrow);
  uint32_t weight = pl_tape_parameter(tape, names.forward, "ph", vectors, width);
  step(tape, names.forward, narrow, weight, output);
  tape->forward[tape->n_forward - 1].host_free = false;
  pl_tape_node *node = pl_tape_note(tape, PL_RULE_NORM, names, x, output);
  node->first_op = first_op;
  node->weight = weight;
  node->second = narrow;
  node->auxiliary = mean;
}

void pl_lower_norm_to(pl_lowering *to, int32_t op, pl_tape_names names, uint32_t input, int64_t width,
                      uint32_t output) {
  int64_t vectors = pl_lower_norm_vectors(to, op);
  if (pl_read_is_norm_in_steps(&to->read, op, to->tape->framework))
    in_steps(to->tape, names, input, vectors, width, output);
  else
    pl_tape_norm_to(to->tape, names, input, vectors, width, output);
}

int64_t pl_lower_norm_vectors(const pl_lowering *to, int32_t op) {
  const pl_ir_op *norm = pl_read_op(&to->read, op);
  int64_t vectors = 0;
  for (int32_t i = 1; i < norm->n_inputs; i++)
    vectors += pl_lower_is_param(to, norm->inputs[i]);
  return vectors;
}

void pl_lower_norm(pl_lowering *to, int32_t op) {
  const pl_ir_op *norm = pl_read_op(&to->read, op);
  const pl_tape_names plain = PL_OP_NAMES("norm"),
                      *names = to->block->names[op] != NULL ? to->block->names[op] : &plain;
  uint32_t input = pl_lower_input(to, op, 0);
  bool steps = pl_read_is_norm_in_steps(&to->read, op, to->tape->framework);
  int64_t width = 1;
  for (int32_t i = 0; i < pl_read_type(&to->read, norm->inputs[1])->rank; i++)
    width *= pl_ir_type_local_extent(to->read.mesh, pl_read_type(&to->read, norm->inputs[1]), i);
  uint32_t output =
      pl_tape_like(to->tape, input, names->forward, PL_TENSOR_ACTIVATION, steps ? to->tape->stream : to->tape->normed);
  pl_lower_norm_to(to, op, *names, input, width, output);
  pl_lower_set(to, op, 0, output);
}
