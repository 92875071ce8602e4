/* Shape rules of the ops (see workloads/onnx/onnx_infer.h): what an op gives, of whose operands no numbers are known
 * but those that say shapes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/onnx/onnx_shape.h"

enum { INTEGERS_MAX = PL_ONNX_RANK_MAX * 8 };

int32_t pl_onnx_axis(int64_t axis, int32_t rank) {
  if (axis < 0) axis += rank;
  return axis < 0 || axis >= rank ? PL_ONNX_NONE : (int32_t)axis;
}

pl_code pl_onnx_shape_same(pl_onnx_op *op) {
  op->out = *op->in[0];
  op->out.numbers = NULL;
  return PL_OK;
}

static pl_code boolean(pl_onnx_op *op) {
  PL_TRY(pl_onnx_shape_same(op));
  op->out.type = PL_ONNX_BOOL;
  return PL_OK;
}

pl_code pl_onnx_shape_needs(const pl_onnx_op *op, int32_t n) {
  for (int32_t k = 0; k < n; k++)
    if (k >= op->n_in || op->in[k] == NULL) return pl_onnx_op_fail(op, "operand %d is missing", k + 1);
  return PL_OK;
}

/* out becomes the shape that both spread to. */
pl_code pl_onnx_shape_spread(pl_onnx_op *op, const pl_onnx_abstract *with) {
  char first[PL_ONNX_SHAPE_TEXT_BYTES], second[PL_ONNX_SHAPE_TEXT_BYTES];
  pl_onnx_abstract made = op->out;
  made.rank = with->rank > op->out.rank ? with->rank : op->out.rank;
  for (int32_t i = 0; i < made.rank; i++) {
    int32_t a = i - (made.rank - op->out.rank), b = i - (made.rank - with->rank);
    int64_t one = a >= 0 ? op->out.dims[a] : 1, other = b >= 0 ? with->dims[b] : 1;
    if (one != other && one != 1 && other != 1)
      return pl_onnx_op_fail(op, "shapes %s and %s do not fit", pl_onnx_shape_text(&op->out, first),
                             pl_onnx_shape_text(with, second));
    made.dims[i] = one == 1 ? other : one;
  }
  op->out = made;
  return PL_OK;
}

static pl_code elementwise(pl_onnx_op *op) {
  PL_TRY(pl_onnx_shape_needs(op, op->n_in));
  PL_TRY(pl_onnx_shape_same(op));
  for (int32_t k = 1; k < op->n_in; k++)
    PL_TRY(pl_onnx_shape_spread(op, op->in[k]));
  return PL_OK;
}

static pl_code comparison(pl_onnx_op *op) {
  PL_TRY(elementwise(op));
  op->out.type = PL_ONNX_BOOL;
  return PL_OK;
}

static pl_code where(pl_onnx_op *op) {
  PL_TRY(pl_onnx_shape_needs(op, 3));
  PL_TRY(elementwise(op));
  op->out.type = op->in[1]->type;
  return PL_OK;
}

static pl_code cast(pl_onnx_op *op) {
  PL_TRY(pl_onnx_shape_same(op));
  op->out.type = (int32_t)pl_onnx_integer_of(op->node, "to", op->out.type);
  return PL_OK;
}

/* ---- shapes of shapes ---- */

static pl_code shape(pl_onnx_op *op) {
  op->out = (pl_onnx_abstract){.type = PL_ONNX_INT64, .rank = 1, .dims = {op->in[0]->rank}};
  return pl_onnx_attribute_find(op->node, "start") == NULL && pl_onnx_attribute_find(op->node, "end") == NULL
             ? PL_OK
             : pl_onnx_op_fail(op, "start and end of Shape are not read");
}

static pl_code size(pl_onnx_op *op) {
  op->out = (pl_onnx_abstract){.type = PL_ONNX_INT64};
  return PL_OK;
}

static pl_code open_shape(const pl_onnx_op *op, const char *what) {
  return pl_onnx_op_fail(op, "%s follows from data that only a run has: its shape stays open", what);
}

static pl_code set_shape(pl_onnx_op *op, const int64_t *dims, int32_t n) {
  if (n > PL_ONNX_RANK_MAX) return pl_onnx_op_fail(op, "its result has %d dimensions; at most %d", n, PL_ONNX_RANK_MAX);
  op->out.rank = n;
  for (int32_t i = 0; i < n; i++)
    op->out.dims[i] = dims[i];
  return PL_OK;
}

static pl_code reshape(pl_onnx_op *op) {
  int64_t dims[INTEGERS_MAX];
  int32_t n, open = PL_ONNX_NONE;
  double known = 1, whole = pl_onnx_elements(op->in[0]);
  PL_TRY(pl_onnx_shape_same(op));
  op->out.outside = 0;
  if (!pl_onnx_op_integers(op, 1, "shape", dims, &n)) return open_shape(op, "the shape");
  if (n > PL_ONNX_RANK_MAX) return set_shape(op, dims, n);
  (void)pl_onnx_samples_reshaped(op, dims, &n);
  for (int32_t i = 0; i < n; i++) {
    if (dims[i] == 0 && i < op->in[0]->rank) dims[i] = op->in[0]->dims[i];
    if (dims[i] == -1 && open == PL_ONNX_NONE) {
      open = i;
    } else {
      known *= (double)dims[i];
    }
  }
  if (open != PL_ONNX_NONE && known > 0) dims[open] = pl_onnx_integer(whole / known);
  PL_TRY(set_shape(op, dims, n));
  char first[PL_ONNX_SHAPE_TEXT_BYTES], second[PL_ONNX_SHAPE_TEXT_BYTES];
  if (pl_onnx_elements(&op->out) != whole)
    return pl_onnx_op_fail(op, "%s does not become %s", pl_onnx_shape_text(op->in[0], first),
                           pl_onnx_shape_text(&op->out, second));
  return PL_OK;
}

static pl_code flatten(pl_onnx_op *op) {
  int32_t rank = op->in[0]->rank;
  int64_t axis = pl_onnx_integer_of(op->node, "axis", 1), dims[2] = {1, 1};
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) return pl_onnx_op_fail(op, "its axis is out of range");
  for (int32_t i = 0; i < rank; i++)
    dims[i >= axis] *= op->in[0]->dims[i];
  PL_TRY(pl_onnx_shape_same(op));
  return set_shape(op, dims, 2);
}

static pl_code unsqueeze(pl_onnx_op *op) {
  int64_t axes[INTEGERS_MAX];
  int32_t n;
  bool fresh[PL_ONNX_RANK_MAX] = {false};
  if (!pl_onnx_op_integers(op, 1, "axes", axes, &n)) return open_shape(op, "its axes");
  int32_t rank = op->in[0]->rank + n, from = 0;
  if (rank > PL_ONNX_RANK_MAX) return set_shape(op, axes, rank);
  for (int32_t i = 0; i < n; i++) {
    int32_t axis = pl_onnx_axis(axes[i], rank);
    if (axis < 0 || fresh[axis]) return pl_onnx_op_fail(op, "its axes are out of range");
    fresh[axis] = true;
  }
  PL_TRY(pl_onnx_shape_same(op));
  op->out.rank = rank;
  for (int32_t i = 0; i < rank; i++)
    op->out.dims[i] = fresh[i] ? 1 : op->in[0]->dims[from++];
  return PL_OK;
}

static pl_code squeeze(pl_onnx_op *op) {
  int64_t axes[INTEGERS_MAX];
  int32_t n = 0, made = 0;
  bool gone[PL_ONNX_RANK_MAX] = {false};
  bool said = pl_onnx_op_integers(op, 1, "axes", axes, &n);
  if (!said && op->n_in > 1) return open_shape(op, "its axes");
  for (int32_t i = 0; i < op->in[0]->rank && !said; i++)
    gone[i] = op->in[0]->dims[i] == 1;
  for (int32_t i = 0; i < n; i++) {
    int32_t axis = pl_onnx_axis(axes[i], op->in[0]->rank);
    if (axis < 0 || op->in[0]->dims[axis] != 1) return pl_onnx_op_fail(op, "an axis to leave out is not of extent 1");
    gone[axis] = true;
  }
  PL_TRY(pl_onnx_shape_same(op));
  for (int32_t i = 0; i < op->in[0]->rank; i++)
    if (!gone[i]) op->out.dims[made++] = op->in[0]->dims[i];
  op->out.rank = made;
  return PL_OK;
}

static pl_code transpose(pl_onnx_op *op) {
  const pl_onnx_attribute *perm = pl_onnx_attribute_find(op->node, "perm");
  int32_t rank = op->in[0]->rank;
  bool seen[PL_ONNX_RANK_MAX] = {false};
  PL_TRY(pl_onnx_shape_same(op));
  if (perm != NULL && perm->n_integers != rank)
    return pl_onnx_op_fail(op, "perm lists %d axes of %d", perm->n_integers, rank);
  for (int32_t i = 0; i < rank; i++) {
    int64_t from = perm != NULL ? perm->integers[i] : rank - 1 - i;
    if (from < 0 || from >= rank || seen[from]) return pl_onnx_op_fail(op, "perm is no permutation");
    seen[from] = true;
    op->out.dims[i] = op->in[0]->dims[from];
  }
  return PL_OK;
}

static pl_code expand(pl_onnx_op *op) {
  int64_t dims[INTEGERS_MAX];
  int32_t n;
  pl_onnx_abstract to = {.rank = 0};
  if (!pl_onnx_op_integers(op, 1, "shape", dims, &n) || n > PL_ONNX_RANK_MAX) return open_shape(op, "the shape");
  PL_TRY(pl_onnx_shape_same(op));
  to.rank = n;
  memcpy(to.dims, dims, (size_t)n * sizeof(*dims));
  return pl_onnx_shape_spread(op, &to);
}

static pl_code constant_of_shape(pl_onnx_op *op) {
  int64_t dims[INTEGERS_MAX];
  int32_t n;
  const pl_onnx_attribute *value = pl_onnx_attribute_find(op->node, "value");
  if (!pl_onnx_op_integers(op, 0, "", dims, &n)) return open_shape(op, "the shape");
  op->out = (pl_onnx_abstract){.type = value != NULL && value->tensor != NULL ? value->tensor->type : PL_ONNX_FLOAT};
  return set_shape(op, dims, n);
}

static pl_code range(pl_onnx_op *op) {
  PL_TRY(pl_onnx_shape_needs(op, 3));
  for (int32_t k = 0; k < 3; k++)
    if (op->in[k]->numbers == NULL || pl_onnx_elements(op->in[k]) != 1) return open_shape(op, "its length");
  double first = op->in[0]->numbers[0], limit = op->in[1]->numbers[0], step = op->in[2]->numbers[0];
  double n = step != 0 ? (limit - first) / step : -1;
  if (!(n > -1 && n < 0x1p40)) return pl_onnx_op_fail(op, "a range from %g to %g by %g", first, limit, step);
  int64_t count = (int64_t)n + (n > (double)(int64_t)n);
  op->out = (pl_onnx_abstract){.type = op->in[0]->type, .rank = 1, .dims = {count > 0 ? count : 0}};
  return PL_OK;
}

/* ---- parts and wholes ---- */

bool pl_onnx_slice(const pl_onnx_op *op, int64_t first[PL_ONNX_RANK_MAX], int64_t step[PL_ONNX_RANK_MAX],
                   int64_t count[PL_ONNX_RANK_MAX]) {
  int64_t starts[INTEGERS_MAX], ends[INTEGERS_MAX], axes[INTEGERS_MAX], steps[INTEGERS_MAX];
  int32_t n, n_ends, n_axes, n_steps;
  if (!pl_onnx_op_integers(op, 1, "starts", starts, &n) || !pl_onnx_op_integers(op, 2, "ends", ends, &n_ends))
    return false;
  bool has_axes = pl_onnx_op_integers(op, 3, "axes", axes, &n_axes);
  bool has_steps = pl_onnx_op_integers(op, 4, "steps", steps, &n_steps);
  if (n != n_ends || (has_axes && n_axes != n) || (has_steps && n_steps != n)) return false;
  if ((!has_axes && op->n_in > 3 && op->in[3] != NULL) || (!has_steps && op->n_in > 4 && op->in[4] != NULL))
    return false;
  for (int32_t i = 0; i < op->in[0]->rank; i++) {
    first[i] = 0;
    step[i] = 1;
    count[i] = op->in[0]->dims[i];
  }
  for (int32_t i = 0; i < n; i++) {
    int32_t axis = pl_onnx_axis(has_axes ? axes[i] : i, op->in[0]->rank);
    if (axis < 0) return false;
    int64_t extent = op->in[0]->dims[axis], by = has_steps ? steps[i] : 1;
    if (by == 0) return false;
    int64_t from = starts[i] < 0 ? starts[i] + extent : starts[i], to = ends[i] < 0 ? ends[i] + extent : ends[i];
    int64_t low = by > 0 ? 0 : -1, high = by > 0 ? extent : extent - 1;
    from = from < 0 ? 0 : from > high ? high : from;
    to = to < low ? low : to > extent ? extent : to;
    int64_t span = by > 0 ? to - from : from - to, stride = by > 0 ? by : -by;
    first[axis] = from;
    step[axis] = by;
    count[axis] = span > 0 ? (span - 1) / stride + 1 : 0;
  }
  return true;
}

static pl_code slice(pl_onnx_op *op) {
  int64_t first[PL_ONNX_RANK_MAX], step[PL_ONNX_RANK_MAX];
  PL_TRY(pl_onnx_shape_same(op));
  return pl_onnx_slice(op, first, step, op->out.dims) ? PL_OK : open_shape(op, "the part");
}

static pl_code gather(pl_onnx_op *op) {
  PL_TRY(pl_onnx_shape_needs(op, 2));
  const pl_onnx_abstract *from = op->in[0], *at = op->in[1];
  int32_t axis = pl_onnx_axis(pl_onnx_integer_of(op->node, "axis", 0), from->rank), made = 0;
  int64_t dims[2 * PL_ONNX_RANK_MAX];
  if (axis < 0) return pl_onnx_op_fail(op, "its axis is out of range");
  for (int32_t i = 0; i < from->rank; i++) {
    if (i != axis) dims[made++] = from->dims[i];
    for (int32_t k = 0; i == axis && k < at->rank; k++)
      dims[made++] = at->dims[k];
  }
  PL_TRY(pl_onnx_shape_same(op));
  return set_shape(op, dims, made);
}

static pl_code concat(pl_onnx_op *op) {
  PL_TRY(pl_onnx_shape_needs(op, op->n_in));
  PL_TRY(pl_onnx_shape_same(op));
  int32_t axis = pl_onnx_axis(pl_onnx_integer_of(op->node, "axis", 0), op->out.rank);
  if (axis < 0) return pl_onnx_op_fail(op, "its axis is out of range");
  for (int32_t k = 1; k < op->n_in; k++) {
    if (op->in[k]->rank != op->out.rank)
      return pl_onnx_op_fail(op, "operands have %d and %d dimensions", op->out.rank, op->in[k]->rank);
    for (int32_t i = 0; i < op->out.rank; i++) {
      bool spreads = op->own->exported != NULL && (op->in[k]->dims[i] == 1 || op->out.dims[i] == 1);
      if (i != axis && op->in[k]->dims[i] != op->out.dims[i] && !spreads)
        return pl_onnx_op_fail(op, "operands differ in dimension %d", i + 1);
      if (i != axis && op->in[k]->dims[i] > op->out.dims[i]) op->out.dims[i] = op->in[k]->dims[i];
      if (i == axis) op->out.dims[i] += op->in[k]->dims[i];
    }
  }
  return PL_OK;
}

/* ---- sums ---- */

bool pl_onnx_is_reduction(const char *op) {
  return strncmp(op, "Reduce", 6) == 0;
}

bool pl_onnx_reduced(const pl_onnx_op *op, bool over[PL_ONNX_RANK_MAX]) {
  int64_t axes[INTEGERS_MAX];
  int32_t n;
  bool said = pl_onnx_op_integers(op, 1, "axes", axes, &n);
  if (!said && op->n_in > 1 && op->in[1] != NULL) return false;
  bool all = !said || n == 0;
  for (int32_t i = 0; i < op->in[0]->rank; i++)
    over[i] = all;
  for (int32_t i = 0; i < n; i++) {
    int32_t axis = pl_onnx_axis(axes[i], op->in[0]->rank);
    if (axis < 0) return false;
    over[axis] = true;
  }
  return true;
}

/* ---- more of it ---- */

static bool is_huge(int64_t count) {
  return count < INT32_MIN || count > INT32_MAX;
}

bool pl_onnx_pads(const pl_onnx_op *op, int64_t before[PL_ONNX_RANK_MAX], int64_t behind[PL_ONNX_RANK_MAX]) {
  int64_t pads[INTEGERS_MAX], axes[INTEGERS_MAX];
  int32_t n, n_axes = 0, rank = op->in[0]->rank;
  if (!pl_onnx_op_integers(op, 1, "pads", pads, &n)) return false;
  if (op->n_in > 3 && op->in[3] != NULL && !pl_onnx_op_integers(op, 3, "axes", axes, &n_axes)) return false;
  for (int32_t i = 0; i < rank; i++)
    before[i] = behind[i] = 0;
  if (n % 2 != 0 || n / 2 != (n_axes > 0 ? n_axes : rank)) return false;
  for (int32_t i = 0; i < n / 2; i++) {
    int32_t axis = n_axes > 0 ? pl_onnx_axis(axes[i], rank) : i;
    if (axis < 0 || is_huge(pads[i]) || is_huge(pads[i + n / 2])) return false;
    before[axis] = pads[i];
    behind[axis] = pads[i + n / 2];
  }
  return true;
}

static pl_code pad(pl_onnx_op *op) {
  int64_t before[PL_ONNX_RANK_MAX], behind[PL_ONNX_RANK_MAX];
  PL_TRY(pl_onnx_shape_same(op));
  if (!pl_onnx_pads(op, before, behind))
    return pl_onnx_op_fail(op, "pads are missing, follow from data, or are not two for each dimension");
  for (int32_t i = 0; i < op->out.rank; i++)
    op->out.dims[i] += before[i] + behind[i];
  return PL_OK;
}

static pl_code tile(pl_onnx_op *op) {
  int64_t repeats[INTEGERS_MAX];
  int32_t n;
  PL_TRY(pl_onnx_shape_same(op));
  if (!pl_onnx_op_integers(op, 1, "repeats", repeats, &n)) return open_shape(op, "its result");
  if (n != op->out.rank) return pl_onnx_op_fail(op, "%d repeats for %d dimensions", n, op->out.rank);
  for (int32_t i = 0; i < n; i++) {
    if (repeats[i] < 0 || is_huge(repeats[i]) || is_huge(op->out.dims[i]))
      return pl_onnx_op_fail(op, "repeats are out of range");
    op->out.dims[i] *= repeats[i];
  }
  return PL_OK;
}

static pl_code reduce(pl_onnx_op *op) {
  bool over[PL_ONNX_RANK_MAX], keeps = pl_onnx_integer_of(op->node, "keepdims", 1) != 0;
  int32_t made = 0;
  if (!pl_onnx_reduced(op, over)) return open_shape(op, "its axes");
  PL_TRY(pl_onnx_shape_same(op));
  for (int32_t i = 0; i < op->in[0]->rank; i++)
    if (!over[i] || keeps) op->out.dims[made++] = over[i] ? 1 : op->in[0]->dims[i];
  op->out.rank = made;
  return PL_OK;
}

static const struct {
  const char *op;
  pl_onnx_shape_rule rule;
} rules[] = {
    {"Abs", pl_onnx_shape_same},
    {"Add", elementwise},
    {"And", comparison},
    {"AveragePool", pl_onnx_shape_pool},
    {"BatchNormalization", pl_onnx_shape_same},
    {"Cast", cast},
    {"Ceil", pl_onnx_shape_same},
    {"Clip", pl_onnx_shape_same},
    {"Concat", concat},
    {"Constant", pl_onnx_shape_same},
    {"ConstantOfShape", constant_of_shape},
    {"Conv", pl_onnx_shape_convolution},
    {"ConvTranspose", pl_onnx_shape_transposed},
    {"Cos", pl_onnx_shape_same},
    {"CumSum", pl_onnx_shape_same},
    {"Div", elementwise},
    {"Dropout", pl_onnx_shape_same},
    {"Einsum", pl_onnx_shape_einsum},
    {"Elu", pl_onnx_shape_same},
    {"Equal", comparison},
    {"Erf", pl_onnx_shape_same},
    {"Exp", pl_onnx_shape_same},
    {"Expand", expand},
    {"Flatten", flatten},
    {"Floor", pl_onnx_shape_same},
    {"Gather", gather},
    {"Gelu", pl_onnx_shape_same},
    {"Gemm", pl_onnx_shape_gemm},
    {"GlobalAveragePool", pl_onnx_shape_global_pool},
    {"Greater", comparison},
    {"GreaterOrEqual", comparison},
    {"HardSigmoid", pl_onnx_shape_same},
    {"HardSwish", pl_onnx_shape_same},
    {"Identity", pl_onnx_shape_same},
    {"InstanceNormalization", pl_onnx_shape_same},
    {"IsNaN", boolean},
    {"LayerNormalization", pl_onnx_shape_same},
    {"LRN", pl_onnx_shape_same},
    {"LeakyRelu", pl_onnx_shape_same},
    {"Less", comparison},
    {"LessOrEqual", comparison},
    {"Log", pl_onnx_shape_same},
    {"MatMul", pl_onnx_shape_matmul},
    {"Max", elementwise},
    {"MaxPool", pl_onnx_shape_pool},
    {"Min", elementwise},
    {"Mod", elementwise},
    {"Mul", elementwise},
    {"Neg", pl_onnx_shape_same},
    {"Not", boolean},
    {"Or", comparison},
    {"PRelu", elementwise},
    {"Pad", pad},
    {"Pow", elementwise},
    {"Range", range},
    {"Reciprocal", pl_onnx_shape_same},
    {"ReduceMax", reduce},
    {"ReduceMean", reduce},
    {"ReduceMin", reduce},
    {"ReduceProd", reduce},
    {"ReduceSum", reduce},
    {"Relu", pl_onnx_shape_same},
    {"Reshape", reshape},
    {"ScatterND", pl_onnx_shape_same},
    {"Shape", shape},
    {"Resize", pl_onnx_shape_resize},
    {"Sigmoid", pl_onnx_shape_same},
    {"Sin", pl_onnx_shape_same},
    {"Size", size},
    {"Slice", slice},
    {"Softmax", pl_onnx_shape_same},
    {"Split", pl_onnx_shape_same},
    {"Softplus", pl_onnx_shape_same},
    {"Sqrt", pl_onnx_shape_same},
    {"Squeeze", squeeze},
    {"Sub", elementwise},
    {"Sum", elementwise},
    {"Tanh", pl_onnx_shape_same},
    {"Tile", tile},
    {"Transpose", transpose},
    {"Trilu", pl_onnx_shape_same},
    {"Unsqueeze", unsqueeze},
    {"Upsample", pl_onnx_shape_resize},
    {"Where", where},
};

pl_onnx_shape_rule pl_onnx_shape_rule_of(const char *op) {
  for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
    if (strcmp(rules[i].op, op) == 0) return rules[i].rule;
  return NULL;
}
