/* Norms. An RMS norm of PyTorch ops works on an fp32 copy, which it keeps: the copy, its squares and their mean; what
 * follows, the product with the weight, is left to the norm's own kernel. That product keeps what it multiplies, the
 * normalised input in the type of computing, for the weight's gradient (self.weight * hidden_states.to(input_dtype) in
 * Hugging Face's LlamaRMSNorm, output * self.weight in Megatron-LM's rms_norm.py). Layer norm, and a norm without
 * parameters, is one kernel everywhere. */
#include "core/cluster/cluster.h"
#include "workloads/lower/lowering.h"

static uint32_t eager(pl_tape *tape, uint32_t input) {
  const pl_tape_names names = PL_OP_NAMES("norm_cast");
  uint32_t wide = pl_tape_like(tape, input, names.forward, PL_TENSOR_ACTIVATION, PL_DTYPE_FP32);
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, input, PL_NONE, PL_NONE, wide, PL_NONE);
  pl_tape_note(tape, PL_RULE_CAST, names, input, wide);
  uint32_t squares = pl_tape_like(tape, wide, "norm_squares", PL_TENSOR_ACTIVATION, PL_DTYPE_FP32);
  pl_tape_sweep(tape, "norm_squares", PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, wide, PL_NONE, PL_NONE, squares,
                PL_NONE);
  return wide;
}

/* Of the last norm: what its product with the weight reads stays for the derivative. Its traffic is the kernel's. */
static void keep_normalised(pl_tape *tape, uint32_t output) {
  pl_tape_node *node = &tape->nodes[tape->n_nodes - 1];
  node->second = pl_tape_like(tape, output, "normalised", PL_TENSOR_ACTIVATION, tape->shard->dtype);
  tape->forward[node->op].auxiliary = node->second;
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
  if (steps) input = eager(to->tape, input);
  int64_t vectors = pl_lower_norm_vectors(to, op), width = 1;
  for (int32_t i = 0; i < pl_read_type(&to->read, norm->inputs[1])->rank; i++)
    width *= pl_ir_type_local_extent(to->read.mesh, pl_read_type(&to->read, norm->inputs[1]), i);
  uint32_t output = pl_tape_like(to->tape, input, names->forward, PL_TENSOR_ACTIVATION, to->tape->shard->dtype);
  pl_lower_set(to, op, 0, pl_tape_norm_to(to->tape, *names, input, vectors, width, output));
  if (steps) keep_normalised(to->tape, output);
}
