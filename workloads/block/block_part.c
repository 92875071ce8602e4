/* What models of unlike blocks have beside their transformer layers: one vector per sample spread over the tokens,
 * learned positions of each size, changes of shape, and the layer that makes a picture. Tensor parallelism leaves them
 * whole on every rank, as AMP's TransGAN does; the layers of a plain MLP it splits, by outputs and by inputs in turn.
 */
#include "core/cluster/cluster.h"
#include "workloads/block/block_tape.h"

/* One linear layer without a split; `rows` tokens of a sample. */
static uint32_t plain_linear(pl_tape *tape, pl_tape_names names, const pl_model_part *part, uint32_t input) {
  const pl_linear linear = {.names = names,
                            .rows = part->rows,
                            .in = tape->model->hidden,
                            .out = part->out_width,
                            .model_in = (double)tape->model->hidden,
                            .model_out = (double)part->out_width,
                            .bias = true};
  return pl_tape_linear(tape, &linear, input, PL_NONE,
                        pl_tape_activation(tape, names.forward, part->rows, 'o', part->out_width));
}

static void positions(pl_tape *tape, const pl_model_part *part) {
  const pl_tape_names names = PL_OP_NAMES("positions");
  uint32_t table = pl_tape_parameter(tape, names.forward, "ph", part->rows, tape->model->hidden);
  tape->output = pl_tape_like(tape, tape->input, names.forward, PL_TENSOR_ACTIVATION, tape->shard->dtype);
  pl_op *op = pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, tape->input, PL_NONE,
                            PL_NONE, tape->output, PL_NONE);
  op->inputs[1] = table; /* read once: the batch shares it */
  op->bytes += tape->tensors[table].size_bytes;
  pl_tape_note(tape, PL_RULE_POSITIONS, names, tape->input, tape->output)->weight = table;
}

static void reshape(pl_tape *tape, const pl_model_part *part) {
  const pl_tape_names names = PL_OP_NAMES("reshape");
  tape->output = pl_tape_activation(tape, names.forward, part->out_rows, 'h', part->out_width);
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 0, tape->input, PL_NONE, PL_NONE,
                tape->output, PL_NONE);
  pl_tape_note(tape, PL_RULE_PERMUTE, names, tape->input, tape->output);
}

static void mean_loss(pl_tape *tape, uint32_t outputs) {
  const pl_tape_names names = PL_OP_NAMES("mean_loss");
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, outputs, PL_NONE, PL_NONE, PL_NONE,
                PL_NONE);
  pl_tape_note(tape, PL_RULE_MEAN_LOSS, names, outputs, PL_NONE);
}

/* The loss is the mean of the picture (AMP's runs had no discriminator): a number per sample, and back a gradient. */
static void pixels(pl_tape *tape, const pl_model_part *part) {
  mean_loss(tape, plain_linear(tape, PL_LINEAR_NAMES("pixels"), part, tape->input));
}

/* y = relu(x W). By outputs: every rank has all of x and makes its share of y. By inputs: every rank has its share of
 * x, which is what the layer before it made, and the sum over the group is y (Shoeybi et al. 2019, section 3; DistIR's
 * transform of an MLP does the same). */
static void dense(pl_tape *tape, const pl_model_part *part) {
  const pl_tape_names names = PL_LINEAR_NAMES("dense"), relu = PL_OP_NAMES("relu");
  bool by_outputs = part->kind == PL_BLOCK_DENSE_OUT;
  int64_t in = tape->model->hidden, out = part->out_width, share = (by_outputs ? out : in) / tape->tmp;
  tape->input = pl_tape_activation(tape, "input", part->rows, 'i', by_outputs ? in : share);
  const pl_linear linear = {.names = names,
                            .parallel = by_outputs ? PL_PARALLEL_COLUMN : PL_PARALLEL_ROW,
                            .rows = part->rows,
                            .in = by_outputs ? in : share,
                            .out = by_outputs ? share : out,
                            .model_in = (double)in,
                            .model_out = (double)out};
  uint32_t y = pl_tape_linear(tape, &linear, tape->input, PL_NONE,
                              pl_tape_activation(tape, names.forward, part->rows, 'o', linear.out));
  if (!by_outputs) y = pl_tape_reduce(tape, names, y);
  tape->output = pl_tape_like(tape, y, relu.forward, PL_TENSOR_ACTIVATION, tape->shard->dtype);
  pl_tape_sweep(tape, relu.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, y, PL_NONE, PL_NONE, tape->output,
                PL_NONE);
  pl_tape_note(tape, PL_RULE_POINTWISE, relu, y, tape->output);
}

void pl_block_part_forward(pl_tape *tape, const pl_model_part *part) {
  if (part->kind == PL_BLOCK_DENSE_OUT || part->kind == PL_BLOCK_DENSE_IN) {
    dense(tape, part);
    return;
  }
  if (part->kind == PL_BLOCK_CHAIN) {
    pl_block_chain_forward(tape, part->chain, part->first_block == 0);
    return;
  }
  uint32_t given = pl_tape_activation(tape, "input", part->rows, 'h', tape->model->hidden);
  switch (part->kind) {
  case PL_BLOCK_LATENT: /* its vectors come from the data loader */
    tape->output = plain_linear(tape, PL_LINEAR_NAMES("latent"), part, given);
    return;
  case PL_BLOCK_POSITIONS:
    tape->input = given;
    positions(tape, part);
    return;
  case PL_BLOCK_RESHAPE:
    tape->input = given;
    reshape(tape, part);
    return;
  case PL_BLOCK_PIXELS:
    tape->input = given;
    pixels(tape, part);
    return;
  case PL_BLOCK_MEAN:
    tape->input = given;
    mean_loss(tape, given);
    return;
  default:
    tape->input = tape->output = given;
    return;
  }
}
