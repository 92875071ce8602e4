/* Numbers of ops that know their operands' (see workloads/onnx/onnx_infer.h). */
#include <math.h>
#include <string.h>

#include "workloads/onnx/onnx_data.h"
#include "workloads/onnx/onnx_infer.h"

/* ---- places ---- */

typedef struct walk {
  int32_t rank;
  int64_t dims[PL_ONNX_RANK_MAX], at[PL_ONNX_RANK_MAX];
} walk;

static walk walk_of(const pl_onnx_abstract *value) {
  walk made = {.rank = value->rank};
  memcpy(made.dims, value->dims, sizeof(made.dims));
  return made;
}

static void step(walk *w) {
  for (int32_t i = w->rank - 1; i >= 0; i--) {
    if (++w->at[i] < w->dims[i]) return;
    w->at[i] = 0;
  }
}

/* The element of `value` that is spread to this place. */
static double spread_at(const pl_onnx_abstract *value, const walk *w) {
  int64_t index = 0;
  for (int32_t i = 0; i < value->rank; i++) {
    int64_t at = w->at[i + w->rank - value->rank];
    index = index * value->dims[i] + (value->dims[i] == 1 ? 0 : at);
  }
  return value->numbers[index];
}

static double at_place(const pl_onnx_abstract *value, const int64_t *place) {
  int64_t index = 0;
  for (int32_t i = 0; i < value->rank; i++)
    index = index * value->dims[i] + place[i];
  return value->numbers[index];
}

/* ---- one operand ---- */

static double negated(double a) {
  return -a;
}
static double inverse(double a) {
  return 1 / a;
}
static double opposite(double a) {
  return a == 0;
}
static double sigmoid(double a) {
  return 1 / (1 + exp(-a));
}
static double above_zero(double a) {
  return a < 0 ? 0 : a;
}
static double is_no_number(double a) {
  return isnan(a);
}
static double itself(double a) {
  return a;
}

static const struct {
  const char *op;
  double (*f)(double a);
} ones[] = {
    {"Abs", fabs},           {"Ceil", ceil},         {"Cos", cos},         {"Erf", erf},        {"Exp", exp},
    {"Floor", floor},        {"Identity", itself},   {"Log", log},         {"Neg", negated},    {"Not", opposite},
    {"Reciprocal", inverse}, {"Relu", above_zero},   {"Sigmoid", sigmoid}, {"Sin", sin},        {"Sqrt", sqrt},
    {"Tanh", tanh},          {"Reshape", itself},    {"Flatten", itself},  {"Squeeze", itself}, {"Unsqueeze", itself},
    {"Dropout", itself},     {"IsNaN", is_no_number}};

static bool one(const pl_onnx_op *op, int64_t n, double *numbers) {
  for (size_t k = 0; k < sizeof(ones) / sizeof(ones[0]); k++) {
    if (strcmp(ones[k].op, op->node->op) != 0) continue;
    for (int64_t i = 0; i < n; i++)
      numbers[i] = ones[k].f(op->in[0]->numbers[i]);
    return true;
  }
  return false;
}

static bool cast(const pl_onnx_op *op, int64_t n, double *numbers) {
  bool real = pl_onnx_type_is_real(op->out.type), boolean = op->out.type == PL_ONNX_BOOL;
  for (int64_t i = 0; i < n; i++) {
    double a = op->in[0]->numbers[i];
    numbers[i] = boolean ? a != 0 : real ? a : trunc(a);
  }
  return true;
}

/* ---- two and three ---- */

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
static double remainder_of(double a, double b) {
  return b == 0 ? 0 : a - b * floor(a / b);
}
static double equal(double a, double b) {
  return a == b;
}
static double less(double a, double b) {
  return a < b;
}
static double greater(double a, double b) {
  return a > b;
}
static double at_most(double a, double b) {
  return a <= b;
}
static double at_least(double a, double b) {
  return a >= b;
}
static double both(double a, double b) {
  return a != 0 && b != 0;
}
static double either(double a, double b) {
  return a != 0 || b != 0;
}

static const struct {
  const char *op;
  double (*f)(double a, double b);
} twos[] = {{"Add", added},        {"And", both},
            {"Div", divided},      {"Equal", equal},
            {"Greater", greater},  {"GreaterOrEqual", at_least},
            {"Less", less},        {"LessOrEqual", at_most},
            {"Max", fmax},         {"Min", fmin},
            {"Mod", remainder_of}, {"Mul", multiplied},
            {"Or", either},        {"Pow", pow},
            {"Sub", subtracted},   {"Sum", added}};

static bool two(const pl_onnx_op *op, int64_t n, double *numbers) {
  bool whole = strcmp(op->node->op, "Div") == 0 && !pl_onnx_type_is_real(op->in[0]->type);
  for (size_t k = 0; k < sizeof(twos) / sizeof(twos[0]); k++) {
    if (strcmp(twos[k].op, op->node->op) != 0 || op->n_in != 2) continue;
    walk w = walk_of(&op->out);
    for (int64_t i = 0; i < n; i++, step(&w)) {
      numbers[i] = twos[k].f(spread_at(op->in[0], &w), spread_at(op->in[1], &w));
      if (whole) numbers[i] = trunc(numbers[i]);
    }
    return true;
  }
  return false;
}

static bool where(const pl_onnx_op *op, int64_t n, double *numbers) {
  walk w = walk_of(&op->out);
  for (int64_t i = 0; i < n; i++, step(&w))
    numbers[i] = spread_at(op->in[spread_at(op->in[0], &w) != 0 ? 1 : 2], &w);
  return true;
}

/* ---- places of others ---- */

static bool expand(const pl_onnx_op *op, int64_t n, double *numbers) {
  walk w = walk_of(&op->out);
  for (int64_t i = 0; i < n; i++, step(&w))
    numbers[i] = spread_at(op->in[0], &w);
  return true;
}

static bool transpose(const pl_onnx_op *op, int64_t n, double *numbers) {
  const pl_onnx_attribute *perm = pl_onnx_attribute_find(op->node, "perm");
  walk w = walk_of(&op->out);
  int64_t place[PL_ONNX_RANK_MAX];
  for (int64_t i = 0; i < n; i++, step(&w)) {
    for (int32_t k = 0; k < w.rank; k++)
      place[perm != NULL ? perm->integers[k] : w.rank - 1 - k] = w.at[k];
    numbers[i] = at_place(op->in[0], place);
  }
  return true;
}

static bool slice(const pl_onnx_op *op, int64_t n, double *numbers) {
  int64_t first[PL_ONNX_RANK_MAX], by[PL_ONNX_RANK_MAX], count[PL_ONNX_RANK_MAX], place[PL_ONNX_RANK_MAX];
  if (!pl_onnx_slice(op, first, by, count)) return false;
  walk w = walk_of(&op->out);
  for (int64_t i = 0; i < n; i++, step(&w)) {
    for (int32_t k = 0; k < w.rank; k++)
      place[k] = first[k] + by[k] * w.at[k];
    numbers[i] = at_place(op->in[0], place);
  }
  return true;
}

static bool gather(const pl_onnx_op *op, int64_t n, double *numbers) {
  const pl_onnx_abstract *from = op->in[0], *ids = op->in[1];
  int32_t axis = pl_onnx_axis(pl_onnx_integer_of(op->node, "axis", 0), from->rank);
  walk w = walk_of(&op->out);
  int64_t place[PL_ONNX_RANK_MAX];
  for (int64_t i = 0; i < n; i++, step(&w)) {
    int64_t id = pl_onnx_integer(at_place(ids, &w.at[axis]));
    if (id < 0) id += from->dims[axis];
    if (id < 0 || id >= from->dims[axis]) return false;
    for (int32_t k = 0; k < from->rank; k++)
      place[k] = k < axis ? w.at[k] : k == axis ? id : w.at[k + ids->rank - 1];
    numbers[i] = at_place(from, place);
  }
  return true;
}

/* Updates [..., rest] at places [..., k] of the first operand. */
static bool scatter(const pl_onnx_op *op, int64_t n, double *numbers) {
  if (op->n_in != 3 || op->in[1]->rank < 1) return false;
  const pl_onnx_abstract *to = op->in[0], *ids = op->in[1], *updates = op->in[2];
  int64_t k = ids->dims[ids->rank - 1], rest = 1;
  if (k < 1 || k > to->rank) return false;
  for (int32_t i = (int32_t)k; i < to->rank; i++)
    rest *= to->dims[i];
  int64_t n_ids = (int64_t)pl_onnx_elements(ids) / k;
  if (pl_onnx_elements(updates) != (double)(n_ids * rest)) return false;
  memcpy(numbers, to->numbers, (size_t)n * sizeof *numbers);
  for (int64_t i = 0; i < n_ids; i++) {
    int64_t place = 0;
    for (int64_t d = 0; d < k; d++) {
      int64_t id = pl_onnx_integer(ids->numbers[i * k + d]);
      if (id < 0) id += to->dims[d];
      if (id < 0 || id >= to->dims[d]) return false;
      place = place * to->dims[d] + id;
    }
    memcpy(&numbers[place * rest], &updates->numbers[i * rest], (size_t)rest * sizeof *numbers);
  }
  return true;
}

static bool pad(const pl_onnx_op *op, int64_t n, double *numbers) {
  const pl_onnx_attribute *mode = pl_onnx_attribute_find(op->node, "mode");
  int64_t before[PL_ONNX_RANK_MAX], behind[PL_ONNX_RANK_MAX], place[PL_ONNX_RANK_MAX];
  double all = op->n_in > 2 && op->in[2] != NULL ? op->in[2]->numbers[0] : pl_onnx_real_of(op->node, "value", 0);
  if (!pl_onnx_pads(op, before, behind) || (mode != NULL && mode->text != NULL && strcmp(mode->text, "constant") != 0))
    return false;
  walk w = walk_of(&op->out);
  for (int64_t i = 0; i < n; i++, step(&w)) {
    bool inside = true;
    for (int32_t k = 0; k < w.rank; k++) {
      place[k] = w.at[k] - before[k];
      inside = inside && place[k] >= 0 && place[k] < op->in[0]->dims[k];
    }
    numbers[i] = inside ? at_place(op->in[0], place) : all;
  }
  return true;
}

static bool tile(const pl_onnx_op *op, int64_t n, double *numbers) {
  walk w = walk_of(&op->out);
  int64_t place[PL_ONNX_RANK_MAX];
  for (int64_t i = 0; i < n; i++, step(&w)) {
    for (int32_t k = 0; k < w.rank; k++)
      place[k] = w.at[k] % op->in[0]->dims[k];
    numbers[i] = at_place(op->in[0], place);
  }
  return true;
}

static bool running_sum(const pl_onnx_op *op, int64_t n, double *numbers) {
  if (op->n_in < 2 || pl_onnx_elements(op->in[1]) != 1) return false;
  int32_t axis = pl_onnx_axis(pl_onnx_integer(op->in[1]->numbers[0]), op->out.rank);
  bool without = pl_onnx_integer_of(op->node, "exclusive", 0) != 0;
  if (axis < 0 || pl_onnx_integer_of(op->node, "reverse", 0) != 0) return false;
  int64_t inner = 1, extent = op->out.dims[axis];
  for (int32_t i = axis + 1; i < op->out.rank; i++)
    inner *= op->out.dims[i];
  for (int64_t i = 0; i < n; i++) {
    bool first = i / inner % extent == 0;
    double before = first ? 0 : numbers[i - inner] + (without ? op->in[0]->numbers[i - inner] : 0);
    numbers[i] = without ? before : before + op->in[0]->numbers[i];
  }
  return true;
}

/* Frequencies times places. */
static bool matmul(const pl_onnx_op *op, int64_t n, double *numbers) {
  const double most = 1e9;
  const pl_onnx_abstract *a = op->in[0], *b = op->in[1];
  int64_t depth = a->dims[a->rank - 1];
  walk w = walk_of(&op->out);
  if ((double)n * (double)depth > most) return false;
  for (int64_t i = 0; i < n; i++, step(&w)) {
    walk at_a = w, at_b = w;
    numbers[i] = 0;
    for (int64_t k = 0; k < depth; k++) {
      at_a.at[w.rank - 1] = at_b.at[w.rank - 2] = k;
      numbers[i] += spread_at(a, &at_a) * spread_at(b, &at_b);
    }
  }
  return true;
}

static bool clip(const pl_onnx_op *op, int64_t n, double *numbers) {
  double low = op->n_in > 1 && op->in[1] != NULL ? op->in[1]->numbers[0]
                                                 : pl_onnx_real_of(op->node, "min", (double)-INFINITY),
         high = op->n_in > 2 && op->in[2] != NULL ? op->in[2]->numbers[0]
                                                  : pl_onnx_real_of(op->node, "max", (double)INFINITY);
  for (int64_t i = 0; i < n; i++)
    numbers[i] = fmin(fmax(op->in[0]->numbers[i], low), high);
  return true;
}

static bool concat(const pl_onnx_op *op, int64_t n, double *numbers) {
  int32_t axis = pl_onnx_axis(pl_onnx_integer_of(op->node, "axis", 0), op->out.rank);
  walk w = walk_of(&op->out);
  for (int64_t i = 0; i < n; i++, step(&w)) {
    int64_t place[PL_ONNX_RANK_MAX];
    int32_t k = 0;
    memcpy(place, w.at, sizeof(place));
    while (place[axis] >= op->in[k]->dims[axis])
      place[axis] -= op->in[k++]->dims[axis];
    numbers[i] = at_place(op->in[k], place);
  }
  return true;
}

static bool reduce(const pl_onnx_op *op, int64_t n, double *numbers) {
  bool over[PL_ONNX_RANK_MAX], max = strcmp(op->node->op, "ReduceMax") == 0,
                               min = strcmp(op->node->op, "ReduceMin") == 0;
  bool product = strcmp(op->node->op, "ReduceProd") == 0, mean = strcmp(op->node->op, "ReduceMean") == 0;
  if (!pl_onnx_reduced(op, over)) return false;
  double all = pl_onnx_elements(op->in[0]);
  if (all == 0 && (max || min || mean)) return false;
  for (int64_t i = 0; i < n; i++)
    numbers[i] = max ? (double)-INFINITY : min ? (double)INFINITY : product ? 1 : 0;
  walk w = walk_of(op->in[0]);
  for (int64_t i = 0; (double)i < all; i++, step(&w)) {
    int64_t index = 0;
    for (int32_t k = 0; k < w.rank; k++)
      if (!over[k]) index = index * w.dims[k] + w.at[k];
    double a = at_place(op->in[0], w.at), *to = &numbers[index];
    *to = max ? fmax(*to, a) : min ? fmin(*to, a) : product ? *to * a : *to + a;
  }
  for (int64_t i = 0; i < n && mean; i++)
    numbers[i] /= all / (double)n;
  return true;
}

/* ---- numbers from shapes ---- */

static bool shape(const pl_onnx_op *op, int64_t n, double *numbers) {
  for (int64_t i = 0; i < n; i++)
    numbers[i] = (double)op->in[0]->dims[i];
  return true;
}

static bool size(const pl_onnx_op *op, int64_t n, double *numbers) {
  (void)n;
  numbers[0] = pl_onnx_elements(op->in[0]);
  return true;
}

static bool constant_of_shape(const pl_onnx_op *op, int64_t n, double *numbers) {
  const pl_onnx_attribute *value = pl_onnx_attribute_find(op->node, "value");
  double all = 0;
  if (value != NULL && value->tensor != NULL &&
      (value->tensor->n != 1 ||
       pl_onnx_tensor_read(op->own->graph, value->tensor, 0, 1, &all, op->own->error) != PL_OK))
    return false;
  for (int64_t i = 0; i < n; i++)
    numbers[i] = all;
  return true;
}

static bool range(const pl_onnx_op *op, int64_t n, double *numbers) {
  for (int64_t i = 0; i < n; i++)
    numbers[i] = op->in[0]->numbers[0] + (double)i * op->in[2]->numbers[0];
  return true;
}

static bool trilu(const pl_onnx_op *op, int64_t n, double *numbers) {
  bool upper = pl_onnx_integer_of(op->node, "upper", 1) != 0;
  double k = op->n_in > 1 && op->in[1] != NULL ? op->in[1]->numbers[0] : 0;
  walk w = walk_of(&op->out);
  if (w.rank < 2) return false;
  for (int64_t i = 0; i < n; i++, step(&w)) {
    double above = (double)(w.at[w.rank - 1] - w.at[w.rank - 2]);
    numbers[i] = (upper ? above >= k : above <= k) ? op->in[0]->numbers[i] : 0;
  }
  return true;
}

/* "i,j->ij": frequencies times positions. */
static bool einsum(const pl_onnx_op *op, int64_t n, double *numbers) {
  if (op->n_in != 2 || op->in[0]->rank != 1 || op->in[1]->rank != 1 || op->out.rank != 2) return false;
  const char *text = pl_onnx_attribute_find(op->node, "equation")->text;
  if (strchr(text, ' ') != NULL || strlen(text) != 7 || text[0] != text[5]) return false;
  for (int64_t i = 0; i < n; i++)
    numbers[i] = op->in[0]->numbers[i / op->out.dims[1]] * op->in[1]->numbers[i % op->out.dims[1]];
  return true;
}

static const struct {
  const char *op;
  bool (*rule)(const pl_onnx_op *op, int64_t n, double *numbers);
} others[] = {{"Cast", cast},
              {"Where", where},
              {"Expand", expand},
              {"Transpose", transpose},
              {"Slice", slice},
              {"Gather", gather},
              {"Concat", concat},
              {"Shape", shape},
              {"Size", size},
              {"Range", range},
              {"Trilu", trilu},
              {"Einsum", einsum},
              {"ConstantOfShape", constant_of_shape},
              {"ScatterND", scatter},
              {"Pad", pad},
              {"Tile", tile},
              {"CumSum", running_sum},
              {"MatMul", matmul},
              {"Clip", clip}};

bool pl_onnx_evaluate(const pl_onnx_op *op, double *numbers) {
  int64_t n = (int64_t)pl_onnx_elements(&op->out);
  for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
    if (strcmp(others[i].op, op->node->op) == 0) return others[i].rule(op, n, numbers);
  if (pl_onnx_is_reduction(op->node->op)) return reduce(op, n, numbers);
  return one(op, n, numbers) || two(op, n, numbers);
}
