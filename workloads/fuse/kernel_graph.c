/* What TensorFlow's graphs move besides (`graph` of a profile): its gradients, layer norms, dropouts and biases are ops
 * of their own, and what XLA makes of them has a kernel for every reduction over rows.
 *
 * TensorFlow 1 and 2 have no layer norm, no softmax that a derivative would go through in one, no dropout kernel:
 *
 *   dropout      random numbers in fp32, a comparison, its cast, two products (nn_ops.py, dropout_v2). XLA's clusters
 *                leave the random numbers out (jit/compilability_check_util.h: stateful random ops are not clustered),
 *                so that they are written by a kernel and read by others, in place of a mask of bytes
 *   layer norm   two means, a squared difference, and batch_normalization's x inv + (shift - mean inv), whose inv has
 *                x's size: 60 bytes an element in fp32, and 164 for the gradients of these (nn_impl.py, math_grad.py)
 *   softmax      (dy - sum(dy y)) y back (nn_grad.py)
 *   precision    sums, means, powers and softmaxes are on the list of what stays in fp32, and so is what hangs between
 *                them (grappler/optimizers/auto_mixed_precision_lists.h): casts where products read
 *   biases       by ops of their own; heads are transposed, forward and back
 *   gradients    cast to fp32, divided by the scale of the loss, looked at for infinities, and where a profile
 *                `clips_microbatches` normed and scaled before they are added up
 *
 * XLA fuses what stands between reductions, never two reductions, and writes down what several kernels need and is dear
 * to make again (an exponential, a division, a tanh: service/instruction_fusion.cc, IsExpensive). Counted by element,
 * 16 bits and 32:
 *
 *   scores       maximum 2; sum, exponentials written 2 + 4; probabilities, random numbers, both results 4 + 4 + 2 + 4;
 *                back twice gradient, random numbers and probabilities (10), and 2 written
 *   sum + norm   2 + 4 + 4 + 4 with the mean, the variance 4, the norm 4 + 4 + 2; back 36 and twice the product's type
 *   gelu         its tanh written, and read back
 *
 * As everywhere, ops that are appended say what is moved and launched beyond what the profile's other kernels do, and
 * compute nothing that anybody reads. What graphs keep in memory is not counted. See workloads/fuse/kernel_stepping.h.
 */
#include <string.h>

#include "workloads/fuse/kernel_stepping.h"

/* So many kernels, which move so many bytes an element together. */
typedef struct graph_cost {
  int kernels;
  double narrow, wide; /* of values of 16 and of 32 bits */
} graph_cost;

typedef struct graph_row {
  const char *row, *name;
  bool backward;
  graph_cost xla, ops;
} graph_row;

/* `ops` less what the profile's kernels move: 2 e + 1 for a dropout of e bytes an element, 2 e for a softmax, a scale,
 * a mask, a norm, 3 e for their derivatives and for sums. */
static const graph_row rows[] = {
    {"softmax", "softmax.rows", false, {1, 13, 11}, {1, 6 + 4 + 4 + 12, 8}},
    {"softmax_backward", "softmax.drows", true, {1, 11, 7}, {5, 6 + 30 + 4 + 6, 24}},
    {"layer_norm", "norm.rows", false, {1, 17, 7}, {8, 6 + 56 + 6, 52}},
    {"layer_norm_backward", "norm.drows", true, {1, 23, 11}, {19, 158 + 6 + 6, 152}},
    {"gelu", "gelu.tanh", false, {1, 4, 4}, {0, 0, 0}},
    {"gelu_backward", "gelu.dtanh", true, {1, 4, 4}, {0, 0, 0}},
};
/* Of scores: their softmax has what else it takes in XLA, and casts them for both. */
static const graph_cost of_scores[] = {{1, 4, 4}, {4, 4 + 5 + 5 + 15 + 6, 4 + 5 + 5 + 11}};
static const graph_cost of_scores_back[] = {{0, 0, 0}, {1, 15, 11}};
static const graph_cost of_others[] = {{1, 4, 4}, {4, 6 + 4 + 5 + 5 + 15, 4 + 5 + 5 + 11}};
static const graph_cost of_others_back[] = {{0, 0, 0}, {2, 15 + 6, 11}};

static bool is_narrow(const pl_ir_value *value) {
  return value->type.element == PL_IR_F16 || value->type.element == PL_IR_BF16;
}

void pl_step_move(pl_kernel_stepping *own, int32_t value, const char *name, int kernels, double bytes) {
  if (value == PL_IR_NONE || kernels == 0 || bytes <= 0) return;
  const pl_ir_type type = own->function->values[value].type;
  const pl_ir_attribute moved = pl_ir_real("bytes", bytes / kernels);
  for (int i = 0; i < kernels; i++)
    pl_ir_op_add(own->to, own->function,
                 &(pl_ir_making){.row = pl_ir_row_of("copy"),
                                 .n_inputs = 1,
                                 .n_outputs = 1,
                                 .n_attributes = 1,
                                 .inputs = &value,
                                 .attributes = &moved,
                                 .output_names = &name,
                                 .output_types = &type,
                                 .reason = PL_READ_GRAPH,
                                 .callee = PL_IR_NONE});
}

static void append_cost(pl_kernel_stepping *own, int32_t value, const char *name, const graph_cost *cost) {
  if (value == PL_IR_NONE) return;
  pl_step_move(own, value, name, cost->kernels, is_narrow(&own->function->values[value]) ? cost->narrow : cost->wide);
}

static bool has_dim(const pl_kernel_stepping *own, int32_t value, const char *dim) {
  return pl_ir_type_find(&own->finding.read.f->values[value].type, pl_ir_name_of(dim)) >= 0;
}

/* A value of as many elements that no kernel keeps to itself: a bias is added by the kernel of the dropout or the sum
 * behind it, or by its product. */
static int32_t written_before(const pl_kernel_stepping *own, int32_t value) {
  int32_t maker = pl_read_maker(&own->finding.read, value);
  bool biased = pl_step_is(own, maker, "add") && pl_read_is_bias(&own->finding.read, maker);
  return own->map[biased ? pl_read_op(&own->finding.read, maker)->inputs[0] : value];
}

static void of_dropout(pl_kernel_stepping *own, const pl_ir_op *op, bool backward, bool xla) {
  const graph_cost *costs = has_dim(own, op->first_output, "t") ? (backward ? of_scores_back : of_scores)
                                                                : (backward ? of_others_back : of_others);
  append_cost(own, written_before(own, op->inputs[0]), "dropout.random", &costs[xla ? 0 : 1]);
}

static void of_bias(pl_kernel_stepping *own, const pl_ir_op *op) {
  int32_t reader = pl_kernel_reader(&own->finding, op->first_output);
  bool later = pl_step_is(own, reader, "dropout") || pl_step_is(own, reader, "add");
  int32_t value = own->map[later ? op->inputs[0] : op->first_output];
  if (value == PL_IR_NONE) return;
  pl_step_move(own, value, "bias.added", 1, is_narrow(&own->function->values[value]) ? 4 : 8);
}

/* Queries and keys, values and what is attended to lie by heads on their way into products and out of them. */
static void of_heads(pl_kernel_stepping *own, const pl_ir_op *op, bool backward) {
  int32_t value = own->map[op->first_output];
  int32_t of = op->first_output;
  bool by_heads = has_dim(own, of, "d") || has_dim(own, of, "e");
  int32_t sides[] = {own->map[op->inputs[0]], own->map[op->inputs[1]]};
  double bytes = value == PL_IR_NONE || is_narrow(&own->function->values[value]) ? 4 : 8;
  if (!backward) {
    pl_step_move(own, by_heads ? value : sides[0], "heads.transposed", 1, bytes);
    pl_step_move(own, sides[1], "heads.transposed", 1, bytes);
  } else {
    pl_step_move(own, by_heads ? value : sides[0], "heads.transposed", 1, bytes);
  }
}

/* Of a matrix that products use, table included: what rows alone add to it is a kernel's own. */
static bool is_of_matrix(const pl_kernel_stepping *own, int32_t value) {
  int32_t op = pl_read_maker(&own->finding.read, value);
  while (op != PL_IR_NONE && !pl_step_is(own, op, "product") &&
         (pl_read_is_collective(&own->finding.read, op) || pl_read_is_view(&own->finding.read, op) ||
          pl_step_is(own, op, "scale") || pl_step_is(own, op, "add")))
    op = pl_read_made(&own->finding.read, op, 0);
  return pl_step_is(own, op, "product");
}

/* Of a matrix: its weight cast, its gradient cast, divided and looked at, normed and scaled, and added up in fp32. */
static void of_gradient(pl_kernel_stepping *own, const pl_ir_op *op, bool xla) {
  const pl_framework *framework = own->options->framework;
  int32_t value = own->map[op->inputs[0]], kernels = 0;
  if (value == PL_IR_NONE || !is_of_matrix(own, op->inputs[0])) return;
  bool clips = framework->gradients.clips_microbatches, narrow = is_narrow(&own->finding.read.f->values[op->inputs[0]]);
  double bytes = 0;
  if (narrow) {
    bytes += 6 + (xla ? 6 : 6 + 8) + 2; /* weight; gradient; fp32 where the sum reads 16 bits */
    kernels += xla ? 2 : 3;
  }
  if (narrow && clips) bytes += xla ? 4 : 6, kernels += xla ? 1 : 2;
  if (clips) bytes += 4 + 8, kernels += 2;
  pl_step_move(own, value, "gradient.checked", kernels, bytes);
}

void pl_step_graph(pl_kernel_stepping *own, int32_t index) {
  const pl_graph_form form = own->options->framework->kernels.graph;
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  if (form == PL_GRAPH_NONE || op->n_inputs == 0 || op->callee != PL_IR_NONE) return;
  bool xla = form == PL_GRAPH_XLA;
  if (pl_step_is(own, index, "accumulate")) {
    of_gradient(own, op, xla);
    return;
  }
  if (op->n_outputs == 0) return;
  bool backward = strchr(own->finding.read.f->name, '.') != NULL && !own->again[index];
  if (pl_step_is(own, index, "dropout")) of_dropout(own, op, backward, xla);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (pl_step_is(own, index, rows[i].row) && rows[i].backward == backward)
      append_cost(own, own->map[backward ? op->inputs[op->n_inputs - 1] : op->first_output], rows[i].name,
                  xla ? &rows[i].xla : &rows[i].ops);
  bool weightless = pl_step_is(own, index, "product") && pl_read_weight(&own->finding.read, index) == NULL;
  if (weightless && (has_dim(own, op->inputs[0], "t") || has_dim(own, op->first_output, "t")))
    of_heads(own, op, backward);
  if (!xla && pl_step_is(own, index, "add") && pl_read_is_bias(&own->finding.read, index)) of_bias(own, op);
}
