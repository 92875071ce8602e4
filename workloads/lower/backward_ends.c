/* Backward kernels of learned positions and losses. See workloads/lower/lower_backward.h. */
#include "core/cluster/cluster.h"
#include "workloads/lower/lower_backward.h"

static const double cross_entropy_flops = 3;

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

void pl_back_mean(pl_back *d, const pl_tape_node *node, uint32_t g) {
  (void)g;
  uint32_t dx = pl_back_fresh(d, node->input);
  pl_op *op = pl_tape_sweep(d->tape, node->names.backward, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, dx, PL_NONE,
                            PL_NONE, PL_NONE, PL_NONE);
  op->inputs[0] = PL_NONE; /* written, not read */
  op->output = dx;
  pl_back_arrive(d, node->input, dx);
}

void pl_back_next_sentence(pl_back *d, const pl_tape_node *node, uint32_t g) {
  (void)g;
  pl_back_sweep(d, node, PL_OP_CROSS_ENTROPY, cross_entropy_flops, node->input, PL_NONE);
}
