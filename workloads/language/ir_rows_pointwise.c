/* Rows that go element by element, and the sums and maxima over dimensions. */
#include <inttypes.h>
#include <math.h>

#include "workloads/language/ir_operands.h"
#include "workloads/language/ir_pointwise.h"

static pl_code unary_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_operand_is_number(op, inputs, 0, error));
  outputs[0] = pl_ir_type_whole(&inputs[0]);
  return PL_OK;
}

/* b may lack dimensions of a. */
static pl_code broadcast_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_operands_are_numbers(op, inputs, error));
  PL_TRY(pl_ir_operand_is_within(op, inputs, 1, 0, error));
  outputs[0] = pl_ir_type_whole(&inputs[0]);
  return PL_OK;
}

static pl_code backward_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_operands_are_numbers(op, inputs, error));
  PL_TRY(pl_ir_operands_match(op, inputs, 0, 1, error));
  outputs[0] = pl_ir_type_whole(&inputs[0]);
  return PL_OK;
}

/* The derivative of an activation whose result's sign says all: of that result, or of its signs alone. */
static pl_code let_through_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  if (inputs[0].element != PL_IR_BIT) return backward_infer(op, inputs, outputs, error);
  PL_TRY(pl_ir_operand_is_number(op, inputs, 1, error));
  PL_TRY(pl_ir_operands_match(op, inputs, 0, 1, error));
  outputs[0] = pl_ir_type_whole(&inputs[1]);
  return PL_OK;
}

static pl_code signs_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(unary_infer(op, inputs, outputs, error));
  outputs[0].element = PL_IR_BIT;
  return PL_OK;
}

static pl_code reduce_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_operand_is_number(op, inputs, 0, error));
  PL_TRY(pl_ir_operand_has_names(op, inputs, 0, "over", error));
  outputs[0] = pl_ir_type_without(&inputs[0], op, "over");
  return PL_OK;
}

static pl_code spread_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  char text[PL_IR_SHAPE_TEXT_BYTES];
  (void)op;
  if (outputs[0].element != inputs[0].element)
    return pl_fail(error, PL_BAD_INPUT, "spread of %s is written as %s: cast is the op for that",
                   pl_ir_element_name(inputs[0].element), pl_ir_element_name(outputs[0].element));
  for (int32_t i = 0; i < inputs[0].rank; i++) {
    const pl_ir_dim *dim = &inputs[0].dims[i];
    int32_t at = pl_ir_type_find(&outputs[0], dim->name);
    if (at < 0)
      return pl_fail(error, PL_BAD_INPUT,
                     "operand 1 of spread has dimension %s=%" PRId64 ", which the result, %s, lacks", dim->name.text,
                     dim->extent, pl_ir_shape_text(&outputs[0], text));
    if (outputs[0].dims[at].extent != dim->extent)
      return pl_fail(error, PL_BAD_INPUT, "operand 1 of spread has %s=%" PRId64 " and the result has %s=%" PRId64,
                     dim->name.text, dim->extent, dim->name.text, outputs[0].dims[at].extent);
  }
  outputs[0] = pl_ir_type_whole(&outputs[0]);
  return PL_OK;
}

static pl_code one_name(const pl_ir_op *op, const char *attribute, pl_ir_name *name, pl_error *error) {
  const pl_ir_attribute *found = pl_ir_attribute_find(op, attribute);
  if (found == NULL || found->n_names != 1)
    return pl_fail(error, PL_BAD_INPUT, "%s of %s needs one dimension, not %d", attribute, pl_ir_op_name(op),
                   found != NULL ? found->n_names : 0);
  *name = found->names[0];
  return PL_OK;
}

static pl_code rename_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  char text[PL_IR_SHAPE_TEXT_BYTES];
  pl_ir_name from, to;
  PL_TRY(one_name(op, "from", &from, error));
  PL_TRY(one_name(op, "to", &to, error));
  PL_TRY(pl_ir_operand_has_names(op, inputs, 0, "from", error));
  int32_t has = pl_ir_type_find(&inputs[0], to);
  if (has >= 0 && !pl_ir_name_equal(from, to))
    return pl_fail(error, PL_BAD_INPUT, "operand 1 of rename has a dimension %s already: %s", to.text,
                   pl_ir_shape_text(&inputs[0], text));
  outputs[0] = pl_ir_type_whole(&inputs[0]);
  outputs[0].dims[pl_ir_type_find(&inputs[0], from)].name = to;
  return PL_OK;
}

static pl_ir_name rename_called(const pl_ir_op *op, pl_ir_name dim) {
  if (!pl_ir_op_has_name(op, "from", dim)) return dim;
  return pl_ir_attribute_find(op, "to")->names[0];
}

static pl_code cast_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  pl_ir_element element = (pl_ir_element)outputs[0].element;
  int64_t copies = pl_ir_integer_of(op, "copies", 1), scaled = pl_ir_integer_of(op, "scaled", 0);
  PL_TRY(pl_ir_written_matches(op, &inputs[0], &outputs[0], error));
  if (copies < 1 || copies > 2)
    return pl_fail(error, PL_BAD_INPUT, "copies=%" PRId64 " of cast: 1, or 2 with the transposed one", copies);
  if (scaled < 0 || scaled > 2) return pl_fail(error, PL_BAD_INPUT, "scaled=%" PRId64 " of cast: 0, 1 or 2", scaled);
  if (!pl_ir_element_is_number(element))
    return pl_fail(error, PL_BAD_INPUT, "result of cast is written as %s: only numbers to compute with can be made",
                   pl_ir_element_name(element));
  outputs[0] = pl_ir_type_whole(&outputs[0]);
  return PL_OK;
}

static pl_code dropout_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  double p = pl_ir_real_of(op, "p", 0);
  if (!(p >= 0 && p < 1)) return pl_fail(error, PL_BAD_INPUT, "p=%g of dropout is no probability below 1", p);
  return unary_infer(op, inputs, outputs, error);
}

/* ---- values ---- */

static double added(double a, double b) {
  return a + b;
}
static double subtracted(double a, double b) {
  return a - b;
}
static double multiplied(double a, double b) {
  return a * b;
}
static double divided(double a, double b) {
  return a / b;
}
static double larger(double a, double b) {
  return a > b || isnan(a) ? a : b;
}
static double above_zero(double a) {
  return a < 0 ? 0 : a;
}
static double is_above_zero(double a) {
  return a > 0;
}
static double inverse(double a) {
  return 1 / a;
}
static double relu_backward(double y, double dy) {
  return y > 0 ? dy : 0;
}
static double tanh_backward(double y, double dy) {
  return dy * (1 - y * y);
}

#define COMPUTE_ONE(name, f)                                                                                           \
  static pl_code name##_compute(const pl_ir_computing *computing, pl_error *error) {                                   \
    (void)error;                                                                                                       \
    return pl_ir_map(computing, f);                                                                                    \
  }
COMPUTE_ONE(silu, pl_ir_silu)
COMPUTE_ONE(sigmoid, pl_ir_sigmoid)
COMPUTE_ONE(softplus, pl_ir_softplus)
COMPUTE_ONE(hard_sigmoid, pl_ir_hard_sigmoid)
COMPUTE_ONE(hard_swish, pl_ir_hard_swish)
COMPUTE_ONE(relu, above_zero)
COMPUTE_ONE(signs, is_above_zero)
COMPUTE_ONE(tanh, tanh)
COMPUTE_ONE(exp, exp)
COMPUTE_ONE(log, log)
COMPUTE_ONE(reciprocal, inverse)

#define COMPUTE_TWO(name, f)                                                                                           \
  static pl_code name##_compute(const pl_ir_computing *computing, pl_error *error) {                                   \
    return pl_ir_map_two(computing, f, error);                                                                         \
  }
COMPUTE_TWO(add, added)
COMPUTE_TWO(subtract, subtracted)
COMPUTE_TWO(multiply, multiplied)
COMPUTE_TWO(divide, divided)

static pl_code gelu_compute(const pl_ir_computing *computing, pl_error *error) {
  (void)error;
  return pl_ir_map(computing, pl_ir_integer_of(computing->op, "exact", 0) != 0 ? pl_ir_exact_gelu : pl_ir_gelu);
}

static pl_code gelu_backward_compute(const pl_ir_computing *computing, pl_error *error) {
  bool exact = pl_ir_integer_of(computing->op, "exact", 0) != 0;
  return pl_ir_map_two(computing, exact ? pl_ir_exact_gelu_backward : pl_ir_gelu_backward, error);
}

COMPUTE_TWO(silu_backward, pl_ir_silu_backward)
COMPUTE_TWO(sigmoid_backward, pl_ir_sigmoid_backward)
COMPUTE_TWO(softplus_backward, pl_ir_softplus_backward)
COMPUTE_TWO(hard_sigmoid_backward, pl_ir_hard_sigmoid_backward)
COMPUTE_TWO(hard_swish_backward, pl_ir_hard_swish_backward)
COMPUTE_TWO(relu_backward, relu_backward)
COMPUTE_TWO(tanh_backward, tanh_backward)

static pl_code sum_compute(const pl_ir_computing *computing, pl_error *error) {
  return pl_ir_reduce(computing, added, 0, error);
}

static pl_code maximum_compute(const pl_ir_computing *computing, pl_error *error) {
  return pl_ir_reduce(computing, larger, -INFINITY, error);
}

/* ---- rows ---- */

#define BROADCAST .least_inputs = 2, .most_inputs = 2, .n_outputs = 1, .infer = broadcast_infer
#define UNARY     .least_inputs = 1, .most_inputs = 1, .n_outputs = 1, .infer = unary_infer
#define EXACT                                                                                                          \
  { .name = "exact", .kind = PL_IR_INTEGER, .meaning = "1: a / 2 (1 + erf(a / sqrt(2)))" }
#define BACKWARD                                                                                                       \
  .least_inputs = 2, .most_inputs = 2, .n_outputs = 1, .linear = PL_IR_LINEAR_LAST, .infer = backward_infer

const pl_ir_row pl_ir_rows_pointwise[] = {
    {.name = "add",
     .meaning = "a + b; b may lack dimensions of a",
     BROADCAST,
     .linear = PL_IR_LINEAR_JOINT,
     .compute = add_compute,
     .derive = pl_ir_derive_add,
     .onnx = "Add Sum"},
    {.name = "subtract",
     .meaning = "a - b; b may lack dimensions of a",
     BROADCAST,
     .linear = PL_IR_LINEAR_JOINT,
     .compute = subtract_compute,
     .derive = pl_ir_derive_subtract,
     .onnx = "Sub"},
    {.name = "multiply",
     .meaning = "a b, element by element; b may lack dimensions of a",
     BROADCAST,
     .linear = PL_IR_LINEAR_EACH,
     .compute = multiply_compute,
     .derive = pl_ir_derive_multiply,
     .onnx = "Mul"},
    {.name = "divide",
     .meaning = "a / b, element by element; b may lack dimensions of a",
     BROADCAST,
     .linear = PL_IR_LINEAR_FIRST,
     .compute = divide_compute,
     .derive = pl_ir_derive_divide,
     .onnx = "Div"},
    {.name = "scale",
     .meaning = "by a",
     UNARY,
     .linear = PL_IR_LINEAR_JOINT,
     .attributes = {{"by", PL_IR_REAL, true, "the factor"}},
     .compute = pl_ir_compute_scale,
     .derive = pl_ir_derive_again},
    {.name = "copy",
     .meaning = "a, written down once more",
     UNARY,
     .linear = PL_IR_LINEAR_JOINT,
     .attributes = {{"launches", PL_IR_INTEGER, false, "of what was gathered: kernels that copy it, one after another"},
                    {"heads", PL_IR_INTEGER, false,
                     "of queries, keys and values: the step of their way to attention; 8: of a gate's halves"},
                    {"times", PL_IR_INTEGER, false, "as many of them, in one tensor"},
                    {"bytes", PL_IR_REAL, false, "of a graph's ops: an element, that they move"}},
     .flops = pl_ir_no_flops,
     .compute = pl_ir_compute_copy,
     .derive = pl_ir_derive_again},
    {.name = "sum",
     .meaning = "sum of a over the dimensions `over`",
     .least_inputs = 1,
     .most_inputs = 1,
     .n_outputs = 1,
     .missing = PL_IR_MISSING_SUM,
     .linear = PL_IR_LINEAR_JOINT,
     .attributes = {{"over", PL_IR_NAMES, true, "dimensions that are summed over"}},
     .infer = reduce_infer,
     .flops = pl_ir_flops_of_first,
     .compute = sum_compute,
     .derive = pl_ir_derive_sum,
     .onnx = "ReduceSum"},
    {.name = "maximum",
     .launches = PL_IR_LAUNCHES_LOSS,
     .meaning = "largest a over the dimensions `over`",
     .least_inputs = 1,
     .most_inputs = 1,
     .n_outputs = 1,
     .missing = PL_IR_MISSING_MAXIMUM,
     .attributes = {{"over", PL_IR_NAMES, true, "dimensions whose largest element is taken"}},
     .infer = reduce_infer,
     .flops = pl_ir_flops_of_first,
     .compute = maximum_compute,
     .onnx = "ReduceMax"},
    {.name = "spread",
     .launches = PL_IR_LAUNCHES_NOTHING,
     .meaning = "a, the same all along the new dimensions of the written type, in the order of that",
     .least_inputs = 1,
     .most_inputs = 1,
     .n_outputs = 1,
     .typed = true,
     .linear = PL_IR_LINEAR_JOINT,
     .infer = spread_infer,
     .flops = pl_ir_no_flops,
     .compute = pl_ir_compute_spread,
     .derive = pl_ir_derive_spread,
     .onnx = "Expand Transpose"},
    {.name = "rename",
     .launches = PL_IR_LAUNCHES_NOTHING,
     .meaning = "a, its dimension `from` called `to`",
     .least_inputs = 1,
     .most_inputs = 1,
     .n_outputs = 1,
     .linear = PL_IR_LINEAR_JOINT,
     .attributes = {{"from", PL_IR_NAMES, true, "the dimension of a"}, {"to", PL_IR_NAMES, true, "its new name"}},
     .called = rename_called,
     .infer = rename_infer,
     .flops = pl_ir_no_flops,
     .compute = pl_ir_compute_copy,
     .derive = pl_ir_derive_rename},
    {.name = "cast",
     .meaning = "a in the written element type",
     .least_inputs = 1,
     .most_inputs = 1,
     .n_outputs = 1,
     .typed = true,
     .linear = PL_IR_LINEAR_JOINT,
     .attributes = {{"copies", PL_IR_INTEGER, false, "as many are written, 1 without it: as it is, and transposed"},
                    {"scaled", PL_IR_INTEGER, false,
                     "1: a is read for its largest element first; 2: and once more for its second copy"},
                    {"moves", PL_IR_REAL, false, "bytes an element, in one launch for all of an update"}},
     .infer = cast_infer,
     .flops = pl_ir_no_flops,
     .compute = pl_ir_compute_spread,
     .derive = pl_ir_derive_cast,
     .onnx = "Cast"},
    {.name = "gelu",
     .meaning = "a / 2 (1 + tanh(sqrt(2 / pi) (a + 0.044715 a^3)))",
     UNARY,
     .attributes = {EXACT},
     .compute = gelu_compute,
     .derive = pl_ir_derive_gelu,
     .onnx = "Gelu"},
    {.name = "silu",
     .meaning = "a / (1 + exp(-a))",
     UNARY,
     .compute = silu_compute,
     .derive = pl_ir_derive_silu,
     .onnx = "Swish"},
    {.name = "sigmoid",
     .meaning = "1 / (1 + exp(-a))",
     UNARY,
     .compute = sigmoid_compute,
     .derive = pl_ir_derive_sigmoid,
     .onnx = "Sigmoid"},
    {.name = "hard_sigmoid",
     .meaning = "a / 6 + 1 / 2, at least 0 and at most 1",
     UNARY,
     .compute = hard_sigmoid_compute,
     .derive = pl_ir_derive_hard_sigmoid,
     .onnx = "HardSigmoid"},
    {.name = "hard_swish",
     .meaning = "a times hard_sigmoid of a",
     UNARY,
     .compute = hard_swish_compute,
     .derive = pl_ir_derive_hard_swish,
     .onnx = "HardSwish"},
    {.name = "softplus",
     .meaning = "log(1 + exp(a))",
     UNARY,
     .compute = softplus_compute,
     .derive = pl_ir_derive_softplus,
     .onnx = "Softplus"},
    {.name = "relu",
     .meaning = "max(a, 0)",
     UNARY,
     .compute = relu_compute,
     .derive = pl_ir_derive_relu,
     .onnx = "Relu"},
    {.name = "tanh", .meaning = "tanh(a)", UNARY, .compute = tanh_compute, .derive = pl_ir_derive_tanh, .onnx = "Tanh"},
    {.name = "exp",
     .launches = PL_IR_LAUNCHES_LOSS,
     .meaning = "exp(a)",
     UNARY,
     .compute = exp_compute,
     .derive = pl_ir_derive_exp,
     .onnx = "Exp"},
    {.name = "log",
     .meaning = "natural logarithm of a",
     UNARY,
     .compute = log_compute,
     .derive = pl_ir_derive_log,
     .onnx = "Log"},
    {.name = "reciprocal",
     .meaning = "1 / a",
     UNARY,
     .compute = reciprocal_compute,
     .derive = pl_ir_derive_reciprocal,
     .onnx = "Reciprocal"},
    {.name = "gelu_backward",
     .meaning = "dy times the derivative of gelu at a",
     BACKWARD,
     .attributes = {EXACT},
     .compute = gelu_backward_compute},
    {.name = "silu_backward",
     .meaning = "dy times the derivative of silu at a",
     BACKWARD,
     .compute = silu_backward_compute},
    {.name = "sigmoid_backward",
     .meaning = "dy y (1 - y), y being the output of sigmoid",
     BACKWARD,
     .compute = sigmoid_backward_compute},
    {.name = "hard_sigmoid_backward",
     .meaning = "dy / 6 where a is between -3 and 3",
     BACKWARD,
     .compute = hard_sigmoid_backward_compute},
    {.name = "hard_swish_backward",
     .meaning = "dy times the derivative of hard_swish at a",
     BACKWARD,
     .compute = hard_swish_backward_compute},
    {.name = "softplus_backward",
     .meaning = "dy times the sigmoid of a",
     BACKWARD,
     .compute = softplus_backward_compute},
    {.name = "signs",
     .meaning = "whether a is above 0, a bit for each",
     .least_inputs = 1,
     .most_inputs = 1,
     .n_outputs = 1,
     .infer = signs_infer,
     .compute = signs_compute},
    {.name = "relu_backward",
     .meaning = "dy where y, the output of relu, is above 0; y may be its signs",
     .least_inputs = 2,
     .most_inputs = 2,
     .n_outputs = 1,
     .linear = PL_IR_LINEAR_LAST,
     .infer = let_through_infer,
     .compute = relu_backward_compute},
    {.name = "tanh_backward",
     .meaning = "dy (1 - y^2), y the output of tanh",
     BACKWARD,
     .compute = tanh_backward_compute},
    {.name = "dropout",
     .meaning = "a / (1 - p), or 0 with probability p, by a hash of seed, iteration, microbatch and place in the whole",
     .least_inputs = 1,
     .most_inputs = 1,
     .n_outputs = 1,
     .linear = PL_IR_LINEAR_JOINT,
     .attributes = {{"p", PL_IR_REAL, true, "share of zeros"},
                    {"seed", PL_IR_INTEGER, true, "of this op's mask"},
                    {"zigzag", PL_IR_INTEGER, false, "as of input"}},
     .infer = dropout_infer,
     .compute = pl_ir_compute_dropout,
     .derive = pl_ir_derive_again,
     .onnx = "Dropout"},
    {.name = NULL}};
_Static_assert(sizeof pl_ir_rows_pointwise / sizeof pl_ir_rows_pointwise[0] == PL_IR_N_ROWS_POINTWISE + 1,
               "as ir_table.h counts");
