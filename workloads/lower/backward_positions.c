/* Backward kernels of tables of relative positions. See workloads/lower/lower_backward.h. */
#include "core/cluster/cluster.h"
#include "workloads/lower/lower_backward.h"

void pl_back_positions(pl_back *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  uint32_t dw = pl_back_parameter_gradient(d, node->weight);
  pl_back_write_for(d, PL_IR_NONE);
  pl_op *op = pl_tape_sweep(tape, node->names.wgrad, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, g, PL_NONE, PL_NONE,
                            PL_NONE, PL_NONE);
  op->inputs[1] = op->output = dw;
  op->bytes += 2 * pl_tape_elements(tape, g) / (double)tape->mbs * pl_dtype_bytes((pl_dtype)tape->tensors[dw].dtype);
  pl_back_write_for_group(d);
  pl_back_arrive(d, node->input, g);
}
