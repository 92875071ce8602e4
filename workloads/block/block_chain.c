/* Blocks of convolutional networks (workloads/ir/chain.h) on the tape: a convolution is the matrix product of its
 * patches and its filters, with the traffic of the pictures themselves, not of the patches; pooling, joining and batch
 * norm are sweeps over the picture. Pictures are [b, s, o] with their points as s, as tokens are: channels come last.
 */
#include "core/cluster/cluster.h"
#include "workloads/block/block_tape.h"
#include "workloads/ir/chain.h"

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

static uint32_t picture(pl_tape *tape, const char *name, const pl_picture *shape) {
  return pl_tape_activation(tape, name, pl_picture_points(shape), 'o', shape->channels);
}

static uint32_t convolution(pl_tape *tape, const pl_chain_step *step, uint32_t input) {
  const pl_tape_names names = convolution_names(step);
  int64_t m, n, k;
  pl_chain_step_product(step, tape->mbs, &m, &n, &k);
  uint32_t weight = pl_tape_parameter(tape, names.forward, "io", k, n);
  uint32_t bias = step->bias ? pl_tape_parameter(tape, names.bias, "o", n, 0) : PL_NONE;
  uint32_t output = picture(tape, names.forward, &step->out);
  pl_op *op = pl_tape_gemm(tape, names.forward, PL_CATEGORY_FORWARD, 1, m, n, k, input, weight, bias, output);
  pl_tape_as_convolution(tape, op, step, PL_CONVOLUTION_FORWARD);
  tape->model_flops += op->flops;
  pl_tape_node *node = pl_tape_note(tape, PL_RULE_CONVOLUTION, names, input, output);
  node->weight = weight;
  node->bias = bias;
  return output;
}

static uint32_t linear(pl_tape *tape, const pl_chain_step *step, uint32_t input) {
  int64_t m, n, k;
  pl_chain_step_product(step, 1, &m, &n, &k);
  const pl_linear linear = {.names = PL_LINEAR_NAMES("linear"),
                            .rows = 1,
                            .in = k,
                            .out = n,
                            .model_in = (double)k,
                            .model_out = (double)n,
                            .bias = step->bias};
  return pl_tape_linear(tape, &linear, input, PL_NONE, picture(tape, "linear", &step->out));
}

/* Each point of the output is made of filter_height x filter_width of the input. */
static uint32_t pool(pl_tape *tape, const pl_chain_step *step, uint32_t input) {
  const pl_tape_names names = step->kind == PL_STEP_MAX_POOL ? PL_OP_NAMES("max_pool") : PL_OP_NAMES("average_pool");
  uint32_t output = picture(tape, names.forward, &step->out);
  pl_op *op = pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, input, PL_NONE, PL_NONE,
                            output, PL_NONE);
  op->flops = pl_tape_elements(tape, output) * step->filter_height * step->filter_width;
  pl_tape_note(tape, step->kind == PL_STEP_MAX_POOL ? PL_RULE_MAX_POOL : PL_RULE_PERMUTE, names, input, output);
  return output;
}

/* Mean and variance are over the whole batch, which no cache holds: a pass for them, another to normalise. */
static uint32_t batch_norm(pl_tape *tape, const pl_chain_step *step, uint32_t input) {
  const pl_tape_names names = PL_OP_NAMES("batch_norm");
  uint32_t output = pl_tape_norm_to(tape, names, input, step->out.channels, picture(tape, names.forward, &step->out));
  tape->forward[tape->n_forward - 1].bytes += tape->tensors[input].size_bytes;
  tape->nodes[tape->n_nodes - 1].rule = PL_RULE_BATCH_NORM;
  return output;
}

static uint32_t relu(pl_tape *tape, const pl_chain_step *step, uint32_t input) {
  const pl_tape_names names = PL_OP_NAMES("relu");
  uint32_t output = picture(tape, names.forward, &step->out);
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, input, PL_NONE, PL_NONE, output,
                PL_NONE);
  pl_tape_note(tape, PL_RULE_RELU, names, input, output);
  return output;
}

static uint32_t two_inputs(pl_tape *tape, const pl_chain_step *step, uint32_t first, uint32_t second) {
  bool adds = step->kind == PL_STEP_ADD;
  const pl_tape_names names = adds ? PL_OP_NAMES("shortcut_add") : PL_OP_NAMES("join");
  uint32_t output = picture(tape, names.forward, &step->out);
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, adds, first, second, PL_NONE, output,
                PL_NONE);
  pl_tape_note(tape, adds ? PL_RULE_ADD : PL_RULE_PACK, names, first, output)->second = second;
  return output;
}

static uint32_t write_step(pl_tape *tape, const pl_chain_step *step, uint32_t first, uint32_t second) {
  switch ((pl_chain_step_kind)step->kind) {
  case PL_STEP_CONVOLUTION:
    return convolution(tape, step, first);
  case PL_STEP_NORM:
    return batch_norm(tape, step, first);
  case PL_STEP_RELU:
    return relu(tape, step, first);
  case PL_STEP_DROPOUT:
    return pl_tape_dropout(tape, PL_OP_NAMES("dropout"), first);
  case PL_STEP_MAX_POOL:
  case PL_STEP_MEAN_POOL:
    return pool(tape, step, first);
  case PL_STEP_LINEAR:
    return linear(tape, step, first);
  case PL_STEP_ADD:
  case PL_STEP_JOIN:
    return two_inputs(tape, step, first, second);
  }
  return first;
}

void pl_block_chain_forward(pl_tape *tape, const pl_chain *chain, bool is_first) {
  uint32_t made[PL_CHAIN_STEPS_MAX + 1];
  made[0] = picture(tape, "input", &chain->in);
  if (is_first)
    tape->data = made[0];
  else
    tape->input = made[0];
  for (uint32_t i = 0; i < chain->n_steps; i++) {
    const pl_chain_step *step = &chain->steps[i];
    made[i + 1] = write_step(tape, step, made[step->first], made[step->second]);
  }
  tape->output = made[chain->n_steps];
}
