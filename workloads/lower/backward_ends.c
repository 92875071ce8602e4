/* Backward kernels of embedding, learned positions and losses. See workloads/lower/lower_backward.h. */
#include "core/cluster/cluster.h"
#include "workloads/lower/lower_backward.h"

static const double cross_entropy_flops = 3;

/* A gradient table of the weights' own type is set to zero (written), the rows of the tokens are added into it (read
 * and written), and the whole table is added to the gradient buffer (read; read and written): PyTorch's embedding makes
 * a dense gradient. It costs what the vocabulary is long, not the batch: one-GPU stages with 32 to 256 thousand words
 * take 5.2 ps per element of the table longer on an A100, 9 bytes at the bandwidth of copies
 * (validation/calibration). */
void pl_back_embedding(pl_back *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  uint32_t dw = pl_back_parameter_gradient(d, node->weight);
  pl_back_write_for(d, PL_IR_NONE);
  pl_op *op = pl_tape_op(tape, node->names.wgrad, PL_OP_EMBEDDING, PL_CATEGORY_BACKWARD, g, dw, PL_NONE, dw);
  double elements = pl_tape_elements(tape, g);
  op->m = tape->forward[node->op].m;
  op->n = tape->forward[node->op].n;
  op->flops = elements;
  op->bytes = 3 * tape->tensors[g].size_bytes + tape->tensors[node->weight].size_bytes;
  if (tape->framework->gradients.gradient_path != PL_GRADIENTS_ADDED)
    pl_back_hand_over(d, node->weight, dw);
  else
    op->bytes += tape->tensors[node->weight].size_bytes + 2 * tape->tensors[dw].size_bytes;
}

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

/* Softmax minus the target: in fp32, in place or not, then down to the dtype of the logits. PyTorch's cross entropy is
 * two functions: the gradient of the targets' elements is a tensor of its own, zeros but for them (nll_loss_backward),
 * which log_softmax_backward reads beside its result. It has its room here; the time of filling and reading it is not
 * charged. */
void pl_back_loss(pl_back *d, const pl_tape_node *node, uint32_t g) {
  (void)g;
  pl_tape *tape = d->tape;
  uint32_t dlogits = pl_back_fresh(d, tape->input), wide = node->input;
  bool cast = tape->tensors[wide].dtype != tape->tensors[tape->input].dtype;
  pl_loss_form form = tape->framework->kernels.loss;
  bool copies = form == PL_LOSS_COPIES;
  uint32_t scattered = copies ? pl_back_fresh(d, node->input) : PL_NONE;
  if (cast && (copies || form == PL_LOSS_FUSED_FP32)) wide = pl_back_fresh(d, node->input);
  pl_op *op = pl_tape_sweep(tape, node->names.backward, PL_OP_CROSS_ENTROPY, PL_CATEGORY_BACKWARD, cross_entropy_flops,
                            node->input, PL_NONE, PL_NONE, cast ? wide : dlogits, PL_NONE);
  op->auxiliary = scattered;
  if (cast)
    pl_tape_sweep(tape, "logits_fp32_backward", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, wide, PL_NONE, PL_NONE,
                  dlogits, PL_NONE);
  pl_back_arrive(d, tape->input, dlogits);
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
