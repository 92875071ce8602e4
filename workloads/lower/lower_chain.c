/* Blocks of convolutional networks (workloads/ir/chain.h): a convolution is the matrix product of its patches and its
 * filters, with the traffic of the pictures themselves, not of the patches; pooling, joining and batch norm are sweeps
 * over the picture. Pictures are [b, s, o] on the tape with their points as s, as tokens are: channels come last.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cluster/cluster.h"
#include "workloads/ir/chain.h"
#include "workloads/lower/lowering.h"

/* Names are literals: the usual filters have their own. */
static pl_tape_names convolution_names(const pl_chain_step *step) {
  const struct {
    int height, width;
    pl_tape_names names;
  } known[] = {{1, 1, PL_LINEAR_NAMES("conv1x1")}, {3, 3, PL_LINEAR_NAMES("conv3x3")},
               {5, 5, PL_LINEAR_NAMES("conv5x5")}, {7, 7, PL_LINEAR_NAMES("conv7x7")},
               {1, 7, PL_LINEAR_NAMES("conv1x7")}, {7, 1, PL_LINEAR_NAMES("conv7x1")},
               {1, 3, PL_LINEAR_NAMES("conv1x3")}, {3, 1, PL_LINEAR_NAMES("conv3x1")}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (known[i].height == step->filter_height && known[i].width == step->filter_width) return known[i].names;
  return PL_LINEAR_NAMES("conv");
}

/* Of the chain whose function this is: weights are numbered by their steps, from 1. */
static const pl_chain_step *step_of(const pl_lowering *to, int32_t op) {
  const pl_ir_op *param = pl_read_op(&to->read, pl_read_maker(&to->read, pl_read_op(&to->read, op)->inputs[1]));
  const char *number = strrchr(param->path, '.');
  PL_ASSERT(number != NULL && to->block->chain != NULL);
  return &to->block->chain->steps[strtol(number + 1, NULL, 10) - 1];
}

void pl_lower_convolution(pl_lowering *to, int32_t op) {
  pl_tape *tape = to->tape;
  const pl_ir_op *own = pl_read_op(&to->read, op);
  const pl_chain_step *step = step_of(to, op);
  const pl_tape_names names = convolution_names(step);
  int32_t y = own->first_output, w = own->inputs[1], added = pl_read_bias_behind(&to->read, y);
  int64_t n = pl_lower_extent(to, w, 'o');
  int64_t k = pl_lower_extent(to, w, 'c') * pl_lower_extent(to, w, 'i') * pl_lower_extent(to, w, 'j');
  uint32_t input = pl_lower_input(to, op, 0), weight = pl_tape_parameter(tape, names.forward, "io", k, n);
  uint32_t bias = added != PL_IR_NONE ? pl_tape_parameter(tape, names.bias, "o", n, 0) : PL_NONE;
  uint32_t output = pl_lower_tensor(to, names.forward, y);
  pl_op *kernel = pl_tape_gemm(tape, names.forward, PL_CATEGORY_FORWARD, 1, 1, n, k, input, weight, bias, output);
  pl_tape_as_convolution(tape, kernel, step, PL_CONVOLUTION_FORWARD);
  tape->model_flops += kernel->flops;
  pl_tape_node *node = pl_tape_note(tape, PL_RULE_CONVOLUTION, names, input, output);
  node->weight = weight;
  node->bias = bias;
  pl_lower_set(to, op, 0, output);
  if (added == PL_IR_NONE) return;
  pl_lower_set(to, added, 0, output);
  pl_lower_done(to, added);
}

/* Each point of the output is made of a window of the input. */
void pl_lower_pool(pl_lowering *to, int32_t op) {
  bool max = pl_read_is(&to->read, op, "max_pool");
  const pl_tape_names names = max ? PL_OP_NAMES("max_pool") : PL_OP_NAMES("average_pool");
  int height = 1, width = 1;
  if (sscanf(pl_ir_text_of(pl_read_op(&to->read, op), "size"), "%dx%d", &height, &width) == 1) width = height;
  uint32_t input = pl_lower_input(to, op, 0);
  uint32_t output = pl_lower_tensor(to, names.forward, pl_read_op(&to->read, op)->first_output);
  pl_op *kernel = pl_tape_sweep(to->tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, input, PL_NONE,
                                PL_NONE, output, PL_NONE);
  kernel->flops = pl_tape_elements(to->tape, output) * height * width;
  pl_tape_note(to->tape, max ? PL_RULE_MAX_POOL : PL_RULE_PERMUTE, names, input, output);
  pl_lower_set(to, op, 0, output);
}

/* Mean and variance are over the whole batch, which no cache holds: a pass for them, another to normalise, both as fast
 * as the memory, since a channel's elements are many and lie side by side; fits of norms are of rows of some thousands.
 */
void pl_lower_batch_norm(pl_lowering *to, int32_t op) {
  const pl_tape_names names = PL_OP_NAMES("batch_norm");
  const pl_ir_op *own = pl_read_op(&to->read, op);
  uint32_t input = pl_lower_input(to, op, 0), output = pl_lower_tensor(to, names.forward, own->first_output);
  pl_tape_norm_to(to->tape, names, input, pl_lower_norm_vectors(to, op), pl_lower_extent(to, own->inputs[1], 'c'),
                  output);
  pl_op *kernel = &to->tape->forward[to->tape->n_forward - 1];
  kernel->bytes += to->tape->tensors[input].size_bytes;
  kernel->plain = true;
  to->tape->nodes[to->tape->n_nodes - 1].rule = PL_RULE_BATCH_NORM;
  pl_lower_set(to, op, 0, output);
}

/* The addition that made `sum` was lowered last: taken back. What the batch norm in front of it adds; PL_NONE: there is
 * no such addition. */
static uint32_t take_addition(pl_lowering *to, int32_t sum) {
  pl_tape *tape = to->tape;
  const pl_tape_node *last = &tape->nodes[tape->n_nodes - 1], *norm = last - 1;
  if (tape->n_nodes < 2 || last->rule != PL_RULE_ADD || last->output != to->tensor[sum]) return PL_NONE;
  if (norm->rule != PL_RULE_BATCH_NORM || last->op + 1 != tape->n_forward || norm->op + 1 != last->op) return PL_NONE;
  const int32_t *terms = pl_read_op(&to->read, pl_read_maker(&to->read, sum))->inputs;
  bool is_first = norm->output == to->tensor[terms[0]];
  int32_t own = terms[is_first ? 0 : 1], other = terms[is_first ? 1 : 0];
  if (norm->output != to->tensor[own] || to->read.n_users[own] > 1) return PL_NONE;
  tape->n_forward--;
  tape->n_nodes--;
  return to->tensor[other];
}

/* cuDNN's batch norm of 16-bit pictures whose channels come last (CUDNN_BATCHNORM_OPS_BN_ACTIVATION and
 * _ADD_ACTIVATION) keeps what it reads on chip: one read of the input and of what is added, and one write, as fast as
 * any sweep. */
bool pl_lower_into_batch_norm(pl_lowering *to, int32_t op) {
  pl_tape *tape = to->tape;
  int32_t input = pl_read_op(&to->read, op)->inputs[0];
  if (!tape->framework->kernels.fuses_batch_norm || pl_dtype_bytes(tape->shard->dtype) != 2 || tape->n_nodes == 0 ||
      to->read.n_users[input] > 1)
    return false;
  uint32_t added = take_addition(to, input);
  pl_tape_node *node = &tape->nodes[tape->n_nodes - 1];
  bool is_norm = node->rule == PL_RULE_BATCH_NORM && node->op + 1 == tape->n_forward;
  if (!is_norm || (added == PL_NONE && node->output != to->tensor[input])) return false;
  pl_op *kernel = &tape->forward[node->op];
  kernel->kind = PL_OP_ELEMENTWISE;
  kernel->bytes -= tape->tensors[node->input].size_bytes;
  if (added != PL_NONE) {
    kernel->inputs[2] = added;
    kernel->bytes += tape->tensors[added].size_bytes;
  }
  node->rule = PL_RULE_BATCH_NORM_RELU;
  node->second = added;
  pl_lower_set(to, op, 0, node->output);
  return true;
}

/* Channels of both, side by side: what the function adds are pictures that are zero elsewhere. */
bool pl_lower_join(pl_lowering *to, int32_t op) {
  const pl_tape_names names = PL_OP_NAMES("join");
  const int32_t *inputs = pl_read_op(&to->read, op)->inputs;
  uint32_t parts[2];
  for (int i = 0; i < 2; i++) {
    int32_t pad = pl_read_maker(&to->read, inputs[i]);
    if (!pl_read_is(&to->read, pad, "pad")) return false;
    parts[i] = pl_lower_input(to, pad, 0);
  }
  for (int i = 0; i < 2; i++)
    to->head[pl_read_maker(&to->read, inputs[i])] = op;
  uint32_t output = pl_lower_tensor(to, names.forward, pl_read_op(&to->read, op)->first_output);
  pl_tape_sweep(to->tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 0, parts[0], parts[1], PL_NONE, output,
                PL_NONE);
  pl_tape_note(to->tape, PL_RULE_PACK, names, parts[0], output)->second = parts[1];
  pl_lower_set(to, op, 0, output);
  return true;
}

/* Tokens in another order, repeated, or fewer channels on more of them: a copy. */
void pl_lower_rearranged(pl_lowering *to, int32_t op) {
  const pl_tape_names names = PL_OP_NAMES("reshape");
  uint32_t input = pl_lower_input(to, op, 0);
  uint32_t output = pl_lower_tensor(to, names.forward, pl_read_op(&to->read, op)->first_output);
  pl_tape_sweep(to->tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 0, input, PL_NONE, PL_NONE, output,
                PL_NONE);
  pl_tape_note(to->tape, PL_RULE_PERMUTE, names, input, output);
  pl_lower_set(to, op, 0, output);
}
