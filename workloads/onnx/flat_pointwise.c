/* Ops that go element by element, norms and sums over axes (workloads/onnx/flat.h). */
#include <float.h>
#include <math.h>
#include <string.h>

#include "workloads/onnx/flat.h"

/* ---- axes ---- */

pl_code pl_flat_relate_same(pl_flat *own, pl_step *step) {
  memcpy(&own->axis[(size_t)step->out * PL_ONNX_RANK_MAX], pl_flat_axes(own, step->in[0]),
         PL_ONNX_RANK_MAX * sizeof(int32_t));
  return PL_OK;
}

/* Axis i of the result, as operand `value` has it. */
static int32_t aligned(pl_flat *own, const pl_step *step, int32_t value, int32_t i) {
  int32_t at = i - (pl_flat_shape(own, step->out)->rank - pl_flat_shape(own, value)->rank);
  return at < 0 ? PL_AXIS_NONE : pl_flat_axes(own, value)[at];
}

pl_code pl_flat_relate_elementwise(pl_flat *own, pl_step *step) {
  const pl_onnx_abstract *out = pl_flat_shape(own, step->out);
  bool residual = strcmp(step->row->op, "Add") == 0 || strcmp(step->row->op, "Sum") == 0;
  for (int32_t i = 0; i < out->rank; i++) {
    int32_t *to = &own->axis[(size_t)step->out * PL_ONNX_RANK_MAX + (size_t)i], n_data = 0;
    *to = PL_AXIS_NONE;
    for (int32_t k = 0; k < step->n_in; k++) {
      int32_t axis = aligned(own, step, step->in[k], i);
      if (axis == PL_AXIS_NONE) continue;
      n_data += !pl_flat_is_weight(own, step->in[k]) && !pl_flat_is_constant(own, step->in[k]);
      /* Where one operand's samples or tokens are broadcast from one, the other's axis is the result's. */
      if (*to == PL_AXIS_NONE || own->axes.all[pl_axis_find(&own->axes, *to)].extent < out->dims[i]) {
        *to = axis;
      } else if (own->axes.all[pl_axis_find(&own->axes, axis)].extent == out->dims[i]) {
        (void)pl_axis_unite(&own->axes, *to, axis);
      }
    }
    /* Features that are added to each other are whole on every rank, as residual streams are. */
    if (residual && n_data > 1 && i + 1 == out->rank) pl_axis_mark(&own->axes, *to, PL_AXIS_FIXED);
  }
  return PL_OK;
}

/* ---- arithmetic ---- */

static pl_code refuse_integers(const pl_flat *own, const pl_step *step, int32_t made) {
  if (made == PL_IR_NONE || pl_flat_type(own, made)->element != PL_IR_I32) return PL_OK;
  return pl_flat_fail(own, step, "computes with integers that only a run knows");
}

static pl_code write_binary(pl_flat *own, pl_step *step) {
  const char *row = pl_ir_row_at(pl_ir_row_of_onnx(step->row->op))->name, *name = pl_flat_name(own, step);
  int32_t a, b, made;
  double number;
  if (step->n_in != 2) return pl_flat_fail(own, step, "has %d operands; two are read", step->n_in);
  for (int32_t k = 0; k < 2; k++) {
    if (!pl_flat_scalar(own, step->in[1 - k], &number)) continue;
    PL_TRY(pl_flat_conformed(own, step, step->in[k], &a));
    PL_TRY(refuse_integers(own, step, a));
    if (strcmp(row, "add") == 0)
      made = pl_flat_add_number(own, a, number);
    else if (strcmp(row, "multiply") == 0)
      made = pl_flat_scale(own, a, number);
    else if (strcmp(row, "subtract") == 0)
      made = pl_flat_add_number(own, k == 0 ? a : pl_flat_scale(own, a, -1), k == 0 ? -number : number);
    else
      made = k == 0 ? pl_flat_scale(own, a, 1 / number)
                    : pl_flat_scale(own, pl_flat_op1(own, "reciprocal", "inverse", a, 0, NULL), number);
    pl_flat_set(own, step, made);
    return PL_OK;
  }
  PL_TRY(pl_flat_conformed(own, step, step->in[0], &a));
  PL_TRY(pl_flat_conformed(own, step, step->in[1], &b));
  PL_TRY(refuse_integers(own, step, a));
  PL_TRY(refuse_integers(own, step, b));
  pl_flat_set(own, step, pl_flat_pair(own, row, name, a, b));
  return PL_OK;
}

static int32_t root(pl_flat *own, int32_t a, double power) {
  return pl_flat_op1(own, "exp", "power", pl_flat_scale(own, pl_flat_op1(own, "log", "log", a, 0, NULL), power), 0,
                     NULL);
}

static pl_code write_pow(pl_flat *own, pl_step *step) {
  double power;
  int32_t a, made;
  if (step->n_in != 2 || !pl_flat_scalar(own, step->in[1], &power))
    return pl_flat_fail(own, step, "its exponent is not one number");
  PL_TRY(pl_flat_conformed(own, step, step->in[0], &a));
  PL_TRY(refuse_integers(own, step, a));
  made = power == 1 ? a : power == 2 || power == 3 ? pl_flat_op2(own, "multiply", "square", a, a, 0, NULL) : PL_IR_NONE;
  if (power == 3) made = pl_flat_op2(own, "multiply", "cube", made, a, 0, NULL);
  if (power == -1) made = pl_flat_op1(own, "reciprocal", "inverse", a, 0, NULL);
  if (made == PL_IR_NONE) made = root(own, a, power);
  pl_flat_set(own, step, made);
  return PL_OK;
}

static pl_code write_unary(pl_flat *own, pl_step *step) {
  const char *op = step->row->op, *name = pl_flat_name(own, step);
  const pl_onnx_attribute *approximate = pl_onnx_attribute_find(step->node, "approximate");
  const pl_ir_attribute exact = pl_ir_integer("exact", 1);
  bool is_exact = step->match != NULL
                      ? step->match->kind == PL_MATCH_EXACT_GELU
                      : approximate == NULL || approximate->text == NULL || strcmp(approximate->text, "tanh") != 0;
  int32_t a, made = PL_IR_NONE;
  PL_TRY(pl_flat_conformed(own, step, step->in[0], &a));
  PL_TRY(refuse_integers(own, step, a));
  int32_t row = pl_ir_row_of_onnx(op);
  if (row >= 0) made = pl_flat_op1(own, pl_ir_row_at(row)->name, name, a, strcmp(op, "Gelu") == 0 && is_exact, &exact);
  if (strcmp(op, "Neg") == 0) made = pl_flat_scale(own, a, -1);
  if (strcmp(op, "Not") == 0) made = pl_flat_add_number(own, pl_flat_scale(own, a, -1), 1);
  if (strcmp(op, "Sqrt") == 0) made = root(own, a, 0.5);
  pl_flat_set(own, step, made);
  return PL_OK;
}

/* alpha x + beta between 0 and 1, by the row that has one slope of these. */
static pl_code write_hard_sigmoid(pl_flat *own, pl_step *step) {
  double alpha = pl_onnx_real_of(step->node, "alpha", 0.2), beta = pl_onnx_real_of(step->node, "beta", 0.5);
  bool plain = fabs(6 * alpha - 1) < 1e-6 && beta == 0.5; /* files have the slope in fp32 */
  int32_t a;
  PL_TRY(pl_flat_conformed(own, step, step->in[0], &a));
  PL_TRY(refuse_integers(own, step, a));
  if (!plain) a = pl_flat_add_number(own, pl_flat_scale(own, a, 6 * alpha), 6 * beta - 3);
  pl_flat_set(own, step, pl_flat_op1(own, "hard_sigmoid", "gate", a, 0, NULL));
  return PL_OK;
}

/* x where it is positive, else alpha x. */
static pl_code write_leaky(pl_flat *own, pl_step *step) {
  double alpha = pl_onnx_real_of(step->node, "alpha", 0.01);
  int32_t a;
  PL_TRY(pl_flat_conformed(own, step, step->in[0], &a));
  PL_TRY(refuse_integers(own, step, a));
  int32_t above = pl_flat_scale(own, pl_flat_op1(own, "relu", "above", a, 0, NULL), 1 - alpha);
  pl_flat_set(own, step, pl_flat_op2(own, "add", "leaky", above, pl_flat_scale(own, a, alpha), 0, NULL));
  return PL_OK;
}

/* x where it is positive, else alpha (e^x - 1). */
static pl_code write_elu(pl_flat *own, pl_step *step) {
  int32_t a;
  PL_TRY(pl_flat_conformed(own, step, step->in[0], &a));
  PL_TRY(refuse_integers(own, step, a));
  int32_t below = pl_flat_op1(own, "relu", "below", pl_flat_scale(own, a, -1), 0, NULL);
  below = pl_flat_add_number(own, pl_flat_op1(own, "exp", "exp", pl_flat_scale(own, below, -1), 0, NULL), -1);
  below = pl_flat_scale(own, below, pl_onnx_real_of(step->node, "alpha", 1));
  pl_flat_set(own, step, pl_flat_op2(own, "add", "elu", pl_flat_op1(own, "relu", "above", a, 0, NULL), below, 0, NULL));
  return PL_OK;
}

/* x where it is positive, else x times a slope that is trained. */
static pl_code write_prelu(pl_flat *own, pl_step *step) {
  int32_t a, slope;
  if (step->n_in != 2) return pl_flat_fail(own, step, "it has no slope");
  PL_TRY(pl_flat_conformed(own, step, step->in[0], &a));
  PL_TRY(pl_flat_conformed(own, step, step->in[1], &slope));
  PL_TRY(refuse_integers(own, step, a));
  int32_t above = pl_flat_op1(own, "relu", "above", a, 0, NULL);
  int32_t below = pl_flat_op1(own, "relu", "below", pl_flat_scale(own, a, -1), 0, NULL);
  below = pl_flat_pair(own, "multiply", "sloped", below, slope);
  pl_flat_set(own, step, pl_flat_op2(own, "subtract", "prelu", above, below, 0, NULL));
  return PL_OK;
}

/* Along one dimension: [c], or [c, 1, 1], as the scales of a norm of groups are written. */
static bool is_vector(const pl_onnx_abstract *shape) {
  int32_t n_long = 0;
  for (int32_t i = 0; i < shape->rank; i++)
    n_long += shape->dims[i] != 1;
  return shape->rank == 1 || n_long == 1;
}

/* Vectors that are equal (all ones, all zeros) an exporter writes once and copies: each is a weight of its own. */
static bool is_copied(const pl_flat *own, const pl_step *step) {
  return strcmp(step->node->op, "Identity") == 0 && pl_flat_shape(own, step->out)->weight != NULL &&
         is_vector(pl_flat_shape(own, step->out)) && pl_flat_is_weight(own, step->in[0]);
}

static pl_code relate_identity(pl_flat *own, pl_step *step) {
  if (!is_copied(own, step)) return pl_flat_relate_same(own, step);
  (void)pl_flat_axes(own, step->out);
  return PL_OK;
}

static pl_code write_same(pl_flat *own, pl_step *step) {
  int32_t a;
  if (is_copied(own, step)) return pl_flat_weight(own, step->out, &a);
  PL_TRY(pl_flat_conformed(own, step, step->in[0], &a));
  pl_flat_set(own, step, a);
  return PL_OK;
}

/* Integers that are computed with, and look up nothing, are a mask. */
static pl_code relate_cast(pl_flat *own, pl_step *step) {
  int64_t *below = &own->below[pl_flat_source(own, step->in[0])];
  bool real =
      pl_onnx_type_is_real(pl_flat_shape(own, step->out)->type) || pl_flat_shape(own, step->out)->type == PL_ONNX_BOOL;
  if (*below == 0 && real && !pl_onnx_type_is_real(pl_flat_shape(own, step->in[0])->type)) *below = 2;
  return pl_flat_relate_same(own, step);
}

/* Integers become numbers to compute with; truth is 1 and 0. */
static pl_code write_cast(pl_flat *own, pl_step *step) {
  int32_t a;
  PL_TRY(pl_flat_conformed(own, step, step->in[0], &a));
  bool wanted =
      pl_onnx_type_is_real(pl_flat_shape(own, step->out)->type) || pl_flat_shape(own, step->out)->type == PL_ONNX_BOOL;
  if (pl_flat_type(own, a)->element == PL_IR_I32 && wanted) {
    pl_ir_type type = *pl_flat_type(own, a);
    type.element = (uint8_t)own->element;
    a = pl_flat_typed(own, "cast", pl_flat_name(own, step), NULL, 1, &a, &type, 0, NULL);
  }
  pl_flat_set(own, step, a);
  return PL_OK;
}

/* a m + b (1 - m), m 1 where the condition holds; infinite numbers as the largest finite ones, since 0 times those is
 * 0. */
static pl_code write_where(pl_flat *own, pl_step *step) {
  int32_t mask, made = PL_IR_NONE;
  PL_TRY(pl_flat_conformed(own, step, step->in[0], &mask));
  PL_TRY(refuse_integers(own, step, mask));
  for (int32_t k = 0; k < 2; k++) {
    int32_t share = k == 0 ? mask : pl_flat_add_number(own, pl_flat_scale(own, mask, -1), 1), a, part;
    double number;
    if (pl_flat_scalar(own, step->in[k + 1], &number)) {
      number = isinf(number) ? (number > 0 ? FLT_MAX : -FLT_MAX) : number;
      if (number == 0) continue;
      part = pl_flat_scale(own, share, number);
    } else {
      PL_TRY(pl_flat_conformed(own, step, step->in[k + 1], &a));
      PL_TRY(refuse_integers(own, step, a));
      part = pl_flat_pair(own, "multiply", "where", a, share);
    }
    made = made == PL_IR_NONE ? part : pl_flat_pair(own, "add", "where", made, part);
  }
  if (made == PL_IR_NONE) return pl_flat_fail(own, step, "both of its branches are zero");
  pl_flat_set(own, step, made);
  return PL_OK;
}

/* ---- over axes ---- */

/* Before operator set 13 it goes over the axis and all behind it: one of these, where the others have one element. -1:
 * over several. */
static int32_t softmax_axis(const pl_flat *own, const pl_step *step) {
  const pl_onnx_abstract *shape = pl_flat_shape(own, step->out);
  bool old = own->graph->opset < 13;
  int32_t first = pl_onnx_axis(pl_onnx_integer_of(step->node, "axis", old ? 1 : -1), shape->rank), axis = first;
  for (int32_t k = first + 1; old && first >= 0 && k < shape->rank; k++) {
    if (shape->dims[k] == 1) continue;
    if (shape->dims[axis] != 1) return -1;
    axis = k;
  }
  return axis;
}

static pl_code relate_softmax(pl_flat *own, pl_step *step) {
  if (softmax_axis(own, step) < 0) return pl_flat_fail(own, step, "goes over several axes");
  return pl_flat_relate_same(own, step);
}

static pl_code write_softmax(pl_flat *own, pl_step *step) {
  int32_t a, axis = softmax_axis(own, step);
  pl_axis_list over = {0};
  PL_TRY(pl_flat_conformed(own, step, step->in[0], &a));
  PL_TRY(refuse_integers(own, step, a));
  (void)pl_axis_leaves(&own->axes, pl_flat_axes(own, step->out)[axis], &over);
  pl_flat_set(own, step, pl_flat_over(own, "softmax", "softmax", a, &over));
  return PL_OK;
}

/* Numbers between two others: low + relu(x - low) - relu(x - high). */
static pl_code write_clip(pl_flat *own, pl_step *step) {
  double bound[2] = {pl_onnx_real_of(step->node, "min", (double)-INFINITY),
                     pl_onnx_real_of(step->node, "max", (double)INFINITY)};
  int32_t x, made;
  for (int32_t k = 1; k < 3; k++)
    if (k < step->n_in && step->in[k] != PL_ONNX_NONE && !pl_flat_scalar(own, step->in[k], &bound[k - 1]))
      return pl_flat_fail(own, step, "its bounds follow from data");
  PL_TRY(pl_flat_conformed(own, step, step->in[0], &x));
  PL_TRY(refuse_integers(own, step, x));
  made = x;
  if (isfinite(bound[0])) {
    made = pl_flat_op1(own, "relu", "above", pl_flat_add_number(own, x, -bound[0]), 0, NULL);
    made = pl_flat_add_number(own, made, bound[0]);
  }
  if (isfinite(bound[1])) {
    int32_t over = pl_flat_op1(own, "relu", "over", pl_flat_add_number(own, x, -bound[1]), 0, NULL);
    made = pl_flat_op2(own, "subtract", "clipped", made, over, 0, NULL);
  }
  pl_flat_set(own, step, made);
  return PL_OK;
}

/* Axes that a norm goes over: as many as its scale has, or from `axis` on. */
static int32_t first_normed(const pl_flat *own, const pl_step *step) {
  int32_t rank = pl_flat_shape(own, step->out)->rank;
  if (step->match != NULL) return rank - 1;
  return pl_onnx_axis(pl_onnx_integer_of(step->node, "axis", -1), rank);
}

static pl_code relate_norm(pl_flat *own, pl_step *step) {
  int32_t rank = pl_flat_shape(own, step->out)->rank, first = first_normed(own, step);
  if (first < 0 || step->n_in < 2) return pl_flat_fail(own, step, "its axis is out of range, or it has no scale");
  PL_TRY(pl_flat_relate_same(own, step));
  const int32_t *to = pl_flat_axes(own, step->in[0]);
  for (int32_t k = 1; k < step->n_in && k < 3; k++) {
    if (step->in[k] == PL_ONNX_NONE) continue;
    int32_t of = pl_flat_shape(own, step->in[k])->rank;
    for (int32_t i = 0; i < of && i < rank; i++)
      (void)pl_axis_unite(&own->axes, to[rank - 1 - i], pl_flat_axes(own, step->in[k])[of - 1 - i]);
  }
  for (int32_t i = first; i < rank; i++)
    pl_axis_mark(&own->axes, to[i], PL_AXIS_HIDDEN | PL_AXIS_FIXED);
  return PL_OK;
}

static pl_code write_norm(pl_flat *own, pl_step *step) {
  int32_t rank = pl_flat_shape(own, step->out)->rank, first = first_normed(own, step), inputs[3], n = 0;
  double epsilon = step->match != NULL ? step->match->number : pl_onnx_real_of(step->node, "epsilon", 1e-5);
  bool rms = strcmp(step->row->op, "RMSNormalization") == 0;
  pl_axis_list over = {0};
  pl_ir_name names[PL_AXIS_LEAVES_MAX];
  PL_TRY(pl_flat_conformed(own, step, step->in[0], &inputs[n++]));
  for (int32_t k = 1; k < step->n_in && k < 3; k++)
    if (step->in[k] != PL_ONNX_NONE) PL_TRY(pl_flat_conformed(own, step, step->in[k], &inputs[n++]));
  PL_TRY(refuse_integers(own, step, inputs[0]));
  for (int32_t i = first; i < rank; i++)
    (void)pl_axis_leaves(&own->axes, pl_flat_axes(own, step->out)[i], &over);
  int32_t n_over = pl_flat_names(own, inputs[0], &over, names);
  const pl_ir_attribute attributes[] = {pl_ir_names("over", n_over, names), pl_ir_real("epsilon", epsilon)};
  if (n_over == 0) return pl_flat_fail(own, step, "normalises over nothing");
  pl_flat_set(own, step, pl_flat_infer(own, rms ? "rms_norm" : "layer_norm", "norm", n, inputs, 2, attributes));
  return PL_OK;
}

static pl_code relate_reduce(pl_flat *own, pl_step *step) {
  pl_onnx_op op = pl_flat_op(own, step);
  bool over[PL_ONNX_RANK_MAX], keeps = pl_onnx_integer_of(step->node, "keepdims", 1) != 0;
  int32_t made = 0, *to = &own->axis[(size_t)step->out * PL_ONNX_RANK_MAX];
  const int32_t *from = pl_flat_axes(own, step->in[0]);
  if (!pl_onnx_reduced(&op, over)) return pl_flat_fail(own, step, "its axes follow from data");
  for (int32_t i = 0; i < pl_flat_shape(own, step->in[0])->rank; i++) {
    if (over[i]) pl_axis_mark(&own->axes, from[i], PL_AXIS_FIXED);
    if (!over[i] || keeps) to[made++] = over[i] ? PL_AXIS_NONE : from[i];
  }
  return PL_OK;
}

static pl_code write_reduce(pl_flat *own, pl_step *step) {
  pl_onnx_op op = pl_flat_op(own, step);
  bool over[PL_ONNX_RANK_MAX], mean = strcmp(step->row->op, "ReduceMean") == 0,
                               sums = strcmp(step->row->op, "ReduceMax") != 0;
  const int32_t *from = pl_flat_axes(own, step->in[0]);
  pl_axis_list leaves = {0};
  double n = 1, missing = 1;
  int32_t a;
  PL_TRY(pl_flat_value(own, step, step->in[0], &a));
  PL_TRY(refuse_integers(own, step, a));
  if (!pl_onnx_reduced(&op, over)) return pl_flat_fail(own, step, "its axes follow from data");
  for (int32_t i = 0; i < pl_flat_shape(own, step->in[0])->rank; i++)
    if (over[i]) {
      n *= (double)pl_flat_shape(own, step->in[0])->dims[i];
      (void)pl_axis_leaves(&own->axes, from[i], &leaves);
    }
  for (int32_t i = 0; i < leaves.n; i++)
    if (!pl_flat_has(own, a, leaves.leaf[i])) missing *= (double)pl_flat_dim(own, leaves.leaf[i]).extent;
  a = pl_flat_over(own, sums ? "sum" : "maximum", pl_flat_name(own, step), a, &leaves);
  pl_flat_set(own, step, sums ? pl_flat_scale(own, a, missing / (mean ? n : 1)) : a);
  return PL_OK;
}

const pl_flat_row pl_flat_pointwise[] = {{"Add", pl_flat_relate_elementwise, write_binary},
                                         {"Sum", pl_flat_relate_elementwise, write_binary},
                                         {"Sub", pl_flat_relate_elementwise, write_binary},
                                         {"Mul", pl_flat_relate_elementwise, write_binary},
                                         {"Div", pl_flat_relate_elementwise, write_binary},
                                         {"Pow", pl_flat_relate_elementwise, write_pow},
                                         {"Where", pl_flat_relate_elementwise, write_where},
                                         {"Exp", pl_flat_relate_same, write_unary},
                                         {"Log", pl_flat_relate_same, write_unary},
                                         {"Reciprocal", pl_flat_relate_same, write_unary},
                                         {"Tanh", pl_flat_relate_same, write_unary},
                                         {"Relu", pl_flat_relate_same, write_unary},
                                         {"Sigmoid", pl_flat_relate_same, write_unary},
                                         {"HardSigmoid", pl_flat_relate_same, write_hard_sigmoid},
                                         {"HardSwish", pl_flat_relate_same, write_unary},
                                         {"LeakyRelu", pl_flat_relate_same, write_leaky},
                                         {"Elu", pl_flat_relate_same, write_elu},
                                         {"PRelu", pl_flat_relate_elementwise, write_prelu},
                                         {"Softplus", pl_flat_relate_same, write_unary},
                                         {"Sqrt", pl_flat_relate_same, write_unary},
                                         {"Neg", pl_flat_relate_same, write_unary},
                                         {"Not", pl_flat_relate_same, write_unary},
                                         {"Gelu", pl_flat_relate_same, write_unary},
                                         {"Swish", pl_flat_relate_same, write_unary},
                                         {"Identity", relate_identity, write_same},
                                         {"Dropout", pl_flat_relate_same, write_same},
                                         {"Cast", relate_cast, write_cast},
                                         {"Clip", pl_flat_relate_same, write_clip},
                                         {"Softmax", relate_softmax, write_softmax},
                                         {"LayerNormalization", relate_norm, write_norm},
                                         {"RMSNormalization", relate_norm, write_norm},
                                         {"ReduceSum", relate_reduce, write_reduce},
                                         {"ReduceMean", relate_reduce, write_reduce},
                                         {"ReduceMax", relate_reduce, write_reduce},
                                         {NULL, NULL, NULL}};
