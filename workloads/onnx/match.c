/* See workloads/onnx/match.h. */
#include "workloads/onnx/match.h"

#include <math.h>
#include <string.h>

typedef struct matcher {
  const pl_onnx_inference *inference;
  const pl_onnx_graph *graph;
  pl_match *made;
} matcher;

static const pl_onnx_abstract *shape_of(const matcher *own, int32_t value) {
  return &own->inference->values[value];
}

static bool is_scalar(const matcher *own, int32_t value, double *number) {
  const pl_onnx_abstract *of = value == PL_ONNX_NONE ? NULL : shape_of(own, value);
  if (of == NULL || of->numbers == NULL || pl_onnx_elements(of) != 1) return false;
  *number = of->numbers[0];
  return true;
}

static bool is_near(double a, double b) {
  return fabs(a - b) <= 1e-4 * fabs(b);
}

/* The node that makes a value, if it is this op; NULL: another, or a constant. */
static const pl_onnx_node *made_by(const matcher *own, int32_t value, const char *op) {
  if (value == PL_ONNX_NONE || own->graph->values[value].node == PL_ONNX_NONE || shape_of(own, value)->numbers != NULL)
    return NULL;
  const pl_onnx_node *node = &own->graph->nodes[own->graph->values[value].node];
  return strcmp(node->op, op) == 0 && node->outputs[0] == value ? node : NULL;
}

/* A value behind what changes neither its numbers nor its shape. A copy of a weight is a weight of its own. */
static int32_t behind(const matcher *own, int32_t value) {
  for (;;) {
    int32_t maker = own->graph->values[value].node;
    if (maker != PL_ONNX_NONE && own->inference->handed_on[maker] != PL_ONNX_NONE &&
        own->graph->nodes[maker].outputs[0] == value) {
      value = own->inference->handed_on[maker];
      continue;
    }
    const pl_onnx_node *node = shape_of(own, value)->weight == NULL ? made_by(own, value, "Identity") : NULL;
    if (node == NULL) node = made_by(own, value, "Dropout");
    if (node == NULL && (node = made_by(own, value, "Cast")) != NULL &&
        !(pl_onnx_type_is_real(shape_of(own, node->inputs[0])->type) &&
          pl_onnx_type_is_real(shape_of(own, value)->type)))
      return value;
    if (node == NULL || node->inputs[0] == PL_ONNX_NONE) return value;
    value = node->inputs[0];
  }
}

static bool same(const matcher *own, int32_t a, int32_t b) {
  return behind(own, a) == behind(own, b);
}

static bool is_matched(const matcher *own, int32_t value) {
  int32_t node = own->graph->values[value].node;
  return node != PL_ONNX_NONE && own->made[node].kind != PL_MATCH_NONE;
}

/* ---- products of several factors ---- */

enum { FACTORS_MAX = 4, DEPTH_MAX = 6 };

typedef struct factors {
  double constant;
  int32_t n, value[FACTORS_MAX];
} factors;

/* False: too many. */
static bool take_factors(const matcher *own, int32_t value, int depth, factors *f) {
  double number;
  value = behind(own, value);
  if (is_scalar(own, value, &number)) {
    f->constant *= number;
    return true;
  }
  const pl_onnx_node *node = is_matched(own, value) ? NULL : made_by(own, value, "Mul");
  if (node != NULL && node->n_inputs == 2 && depth < DEPTH_MAX)
    return take_factors(own, node->inputs[0], depth + 1, f) && take_factors(own, node->inputs[1], depth + 1, f);
  node = is_matched(own, value) ? NULL : made_by(own, value, "Div");
  if (node != NULL && node->n_inputs == 2 && depth < DEPTH_MAX && is_scalar(own, node->inputs[1], &number) &&
      number != 0) {
    f->constant /= number;
    return take_factors(own, node->inputs[0], depth + 1, f);
  }
  if (f->n == FACTORS_MAX) return false;
  f->value[f->n++] = value;
  return true;
}

static bool factors_of(const matcher *own, int32_t value, factors *f) {
  *f = (factors){.constant = 1};
  return take_factors(own, value, 0, f);
}

/* a + b, one of them the number `number`; the other one. */
static int32_t plus_number(const matcher *own, int32_t value, double number) {
  double is;
  const pl_onnx_node *add = made_by(own, behind(own, value), "Add");
  for (int k = 0; add != NULL && k < 2 && add->n_inputs == 2; k++)
    if (is_scalar(own, add->inputs[k], &is) && is_near(is, number)) return add->inputs[1 - k];
  return PL_ONNX_NONE;
}

/* ---- gelu, silu ---- */

/* x + 0.044715 x^3, times sqrt(2 / pi). */
static bool is_gelu_argument(const matcher *own, int32_t value, int32_t x) {
  factors f;
  if (!factors_of(own, value, &f) || f.n != 1 || !is_near(f.constant, sqrt(2 / M_PI))) return false;
  const pl_onnx_node *add = made_by(own, f.value[0], "Add");
  for (int k = 0; add != NULL && add->n_inputs == 2 && k < 2; k++) {
    factors cube;
    if (!same(own, add->inputs[k], x) || !factors_of(own, add->inputs[1 - k], &cube) ||
        !is_near(cube.constant, 0.044715))
      continue;
    double power;
    const pl_onnx_node *pow = cube.n == 1 ? made_by(own, cube.value[0], "Pow") : NULL;
    if (pow != NULL && pow->n_inputs == 2 && is_scalar(own, pow->inputs[1], &power) && power == 3)
      return same(own, pow->inputs[0], x);
    return cube.n == 3 && same(own, cube.value[0], x) && same(own, cube.value[1], x) && same(own, cube.value[2], x);
  }
  return false;
}

static bool is_erf_argument(const matcher *own, int32_t value, int32_t x) {
  factors f;
  return factors_of(own, value, &f) && f.n == 1 && is_near(f.constant, sqrt(0.5)) && same(own, f.value[0], x);
}

static void match_activation(const matcher *own, const factors *f, pl_match *to) {
  for (int k = 0; k < 2; k++) {
    int32_t x = f->value[k], other = f->value[1 - k], inner = plus_number(own, other, 1);
    const pl_onnx_node *node = made_by(own, other, "Sigmoid");
    if (f->constant == 1 && node != NULL && same(own, node->inputs[0], x))
      *to = (pl_match){.kind = PL_MATCH_SILU, .in = {x}, .n_in = 1};
    if (inner == PL_ONNX_NONE || !is_near(f->constant, 0.5)) continue;
    inner = behind(own, inner);
    if ((node = made_by(own, inner, "Tanh")) != NULL && is_gelu_argument(own, node->inputs[0], x))
      *to = (pl_match){.kind = PL_MATCH_GELU, .in = {x}, .n_in = 1};
    if ((node = made_by(own, inner, "Erf")) != NULL && is_erf_argument(own, node->inputs[0], x))
      *to = (pl_match){.kind = PL_MATCH_EXACT_GELU, .in = {x}, .n_in = 1};
  }
}

/* ---- norms ---- */

static bool is_last_axis(const matcher *own, const pl_onnx_node *node) {
  pl_onnx_op op = {.own = NULL, .node = node, .n_in = node->n_inputs};
  bool over[PL_ONNX_RANK_MAX];
  for (int32_t k = 0; k < node->n_inputs && k < 2; k++)
    op.in[k] = node->inputs[k] == PL_ONNX_NONE ? NULL : shape_of(own, node->inputs[k]);
  if (node->n_inputs < 1 || node->n_inputs > 2 || op.in[0] == NULL || !pl_onnx_reduced(&op, over)) return false;
  for (int32_t i = 0; i < op.in[0]->rank; i++)
    if (over[i] != (i == op.in[0]->rank - 1)) return false;
  return op.in[0]->rank > 0 && pl_onnx_integer_of(node, "keepdims", 1) != 0;
}

/* What a mean over the last axis is taken of. */
static int32_t mean_of(const matcher *own, int32_t value) {
  const pl_onnx_node *node = made_by(own, behind(own, value), "ReduceMean");
  return node != NULL && is_last_axis(own, node) ? behind(own, node->inputs[0]) : PL_ONNX_NONE;
}

static int32_t square_of(const matcher *own, int32_t value) {
  double power;
  if (value == PL_ONNX_NONE) return PL_ONNX_NONE;
  const pl_onnx_node *node = made_by(own, value, "Pow");
  if (node != NULL && node->n_inputs == 2 && is_scalar(own, node->inputs[1], &power) && power == 2)
    return behind(own, node->inputs[0]);
  node = made_by(own, value, "Mul");
  return node != NULL && node->n_inputs == 2 && same(own, node->inputs[0], node->inputs[1])
             ? behind(own, node->inputs[0])
             : PL_ONNX_NONE;
}

/* sqrt(mean of x^2 + epsilon): x. */
static int32_t root_of(const matcher *own, int32_t value, double *epsilon) {
  const pl_onnx_node *root = made_by(own, behind(own, value), "Sqrt");
  const pl_onnx_node *add = root != NULL ? made_by(own, behind(own, root->inputs[0]), "Add") : NULL;
  for (int k = 0; add != NULL && add->n_inputs == 2 && k < 2; k++)
    if (is_scalar(own, add->inputs[k], epsilon)) return square_of(own, mean_of(own, add->inputs[1 - k]));
  return PL_ONNX_NONE;
}

/* x / sqrt(mean of x^2 + epsilon), as one factor or as two of them; which factors are left is `rest`. */
static int32_t normed(const matcher *own, const factors *f, double *epsilon, int32_t *rest) {
  for (int32_t i = 0; i < f->n; i++) {
    double one;
    const pl_onnx_node *div = made_by(own, f->value[i], "Div");
    const pl_onnx_node *inverse = made_by(own, f->value[i], "Reciprocal");
    bool of_one = div != NULL && div->n_inputs == 2 && is_scalar(own, div->inputs[0], &one) && one == 1;
    int32_t x = PL_ONNX_NONE;
    if (inverse != NULL) x = root_of(own, inverse->inputs[0], epsilon);
    if (div != NULL && div->n_inputs == 2) x = root_of(own, div->inputs[1], epsilon);
    if (x == PL_ONNX_NONE) continue;
    if (inverse == NULL && !of_one) {
      if (f->n != 2 || !same(own, div->inputs[0], x)) return PL_ONNX_NONE;
      *rest = f->value[1 - i];
      return x;
    }
    for (int32_t k = 0; k < f->n; k++) {
      if (f->n != 3 || k == i || !same(own, f->value[k], x)) continue;
      *rest = f->value[3 - i - k];
      return x;
    }
  }
  return PL_ONNX_NONE;
}

/* A weight with the elements of the last axis of x. */
static bool is_weight_of(const matcher *own, int32_t value, int32_t x) {
  const pl_onnx_abstract *weight = shape_of(own, value), *of = shape_of(own, x);
  return weight->numbers == NULL && weight->rank >= 1 && of->rank >= 1 &&
         weight->dims[weight->rank - 1] == of->dims[of->rank - 1] &&
         pl_onnx_elements(weight) == (double)of->dims[of->rank - 1];
}

static void match_rms_norm(const matcher *own, const factors *f, pl_match *to) {
  double epsilon;
  int32_t scale, x = f->constant == 1 ? normed(own, f, &epsilon, &scale) : PL_ONNX_NONE;
  if (x != PL_ONNX_NONE && is_weight_of(own, scale, x))
    *to = (pl_match){.kind = PL_MATCH_RMS_NORM, .in = {x, scale}, .n_in = 2, .number = epsilon};
}

/* An rms norm of x less its mean, plus a shift. */
static void match_layer_norm(const matcher *own, const pl_onnx_node *add, pl_match *to) {
  for (int k = 0; k < 2 && add->n_inputs == 2; k++) {
    int32_t node = add->inputs[k] == PL_ONNX_NONE ? PL_ONNX_NONE : own->graph->values[behind(own, add->inputs[k])].node;
    if (node == PL_ONNX_NONE || own->made[node].kind != PL_MATCH_RMS_NORM) continue;
    const pl_match *norm = &own->made[node];
    const pl_onnx_node *less = made_by(own, norm->in[0], "Sub");
    if (less == NULL || less->n_inputs != 2 || mean_of(own, less->inputs[1]) != behind(own, less->inputs[0])) continue;
    if (!is_weight_of(own, add->inputs[1 - k], less->inputs[0])) continue;
    *to = (pl_match){.kind = PL_MATCH_LAYER_NORM,
                     .in = {less->inputs[0], norm->in[1], add->inputs[1 - k]},
                     .n_in = 3,
                     .number = norm->number};
  }
}

/* ---- rotary positions ---- */

/* Half of the last axis of a value, its first or its second; PL_ONNX_NONE: it is neither. */
static int32_t half_of(const matcher *own, int32_t value, bool second) {
  const pl_onnx_node *node = made_by(own, value, "Slice");
  int64_t first[PL_ONNX_RANK_MAX], step[PL_ONNX_RANK_MAX], count[PL_ONNX_RANK_MAX];
  if (node == NULL || node->n_inputs > 5) return PL_ONNX_NONE;
  pl_onnx_op op = {.node = node, .n_in = node->n_inputs};
  for (int32_t k = 0; k < node->n_inputs; k++)
    op.in[k] = node->inputs[k] == PL_ONNX_NONE ? NULL : shape_of(own, node->inputs[k]);
  if (op.in[0] == NULL || op.in[0]->rank == 0 || !pl_onnx_slice(&op, first, step, count)) return PL_ONNX_NONE;
  int32_t last = op.in[0]->rank - 1;
  for (int32_t i = 0; i < last; i++)
    if (count[i] != op.in[0]->dims[i]) return PL_ONNX_NONE;
  bool is = step[last] == 1 && 2 * count[last] == op.in[0]->dims[last] && first[last] == (second ? count[last] : 0);
  return is ? behind(own, node->inputs[0]) : PL_ONNX_NONE;
}

/* (-second half, first half) of a value, one behind the other. */
static int32_t turned(const matcher *own, int32_t value) {
  const pl_onnx_node *concat = made_by(own, value, "Concat");
  if (concat == NULL || concat->n_inputs != 2) return PL_ONNX_NONE;
  int32_t rank = shape_of(own, value)->rank;
  const pl_onnx_node *less = made_by(own, concat->inputs[0], "Neg");
  if (less == NULL || pl_onnx_axis(pl_onnx_integer_of(concat, "axis", 0), rank) != rank - 1) return PL_ONNX_NONE;
  int32_t of = half_of(own, less->inputs[0], true);
  return of != PL_ONNX_NONE && half_of(own, concat->inputs[1], false) == of ? of : PL_ONNX_NONE;
}

/* Element [place, i] of a table that is the same along all axes but the last two. */
static double entry(const pl_onnx_abstract *table, int64_t place, int64_t i) {
  return table->numbers[place * table->dims[table->rank - 1] + i];
}

/* Whether the tables are cos and sin of place * base^(-2 i / n); *base is found in the second frequency. */
static bool are_rotations(const pl_onnx_abstract *cosines, const pl_onnx_abstract *sines, double *base) {
  const double most = 4e-3; /* frequencies of fp32 times some thousand places */
  int32_t rank = cosines->rank;
  if (cosines->numbers == NULL || sines->numbers == NULL || rank < 2 || sines->rank != rank) return false;
  int64_t places = cosines->dims[rank - 2], n = cosines->dims[rank - 1];
  if (sines->dims[rank - 2] != places || sines->dims[rank - 1] != n || n < 4 || n % 2 != 0 || places < 2) return false;
  if (pl_onnx_elements(cosines) != (double)(places * n) || pl_onnx_elements(sines) != (double)(places * n))
    return false;
  double angle = atan2(entry(sines, 1, 1), entry(cosines, 1, 1));
  if (!(angle > 0 && angle < 1)) return false;
  *base = pow(angle, -(double)n / 2);
  if (fabs(*base - nearbyint(*base)) < 1e-5 * *base) *base = nearbyint(*base); /* which fp32 rounded */
  for (int64_t place = 0; place < places; place++)
    for (int64_t i = 0; i < n; i++) {
      double turn = (double)place * pow(angle, (double)(i % (n / 2)));
      if (fabs(entry(cosines, place, i) - cos(turn)) > most || fabs(entry(sines, place, i) - sin(turn)) > most)
        return false;
    }
  return true;
}

static void match_rotary(const matcher *own, const pl_onnx_node *add, pl_match *to) {
  for (int k = 0; k < 2 && add->n_inputs == 2; k++) {
    if (add->inputs[0] == PL_ONNX_NONE || add->inputs[1] == PL_ONNX_NONE) return;
    const pl_onnx_node *plain = made_by(own, add->inputs[k], "Mul"), *other = made_by(own, add->inputs[1 - k], "Mul");
    for (int i = 0; i < 4 && plain != NULL && other != NULL && plain->n_inputs == 2 && other->n_inputs == 2; i++) {
      int32_t x = plain->inputs[i & 1], of = turned(own, behind(own, other->inputs[i >> 1]));
      double base;
      if (of == PL_ONNX_NONE || behind(own, x) != of) continue;
      if (!are_rotations(shape_of(own, plain->inputs[1 - (i & 1)]), shape_of(own, other->inputs[1 - (i >> 1)]), &base))
        continue;
      const pl_onnx_abstract *shape = shape_of(own, x), *table = shape_of(own, plain->inputs[1 - (i & 1)]);
      bool fits = shape->rank >= 3 && shape->dims[shape->rank - 2] == table->dims[table->rank - 2] &&
                  shape->dims[shape->rank - 1] == table->dims[table->rank - 1];
      if (fits) *to = (pl_match){.kind = PL_MATCH_ROTARY, .in = {x}, .n_in = 1, .number = base};
    }
  }
}

/* ---- attention ---- */

enum { SEES_ALL = 0, SEES_PAST, SEES_OTHERWISE };

/* Who sees whom: `hidden` of a pair's number. What is added to scores is nothing else but 0 where it hides none. */
static int sees(const pl_onnx_abstract *mask, bool (*hidden)(double number), bool added) {
  if (mask->numbers == NULL) return SEES_OTHERWISE;
  int64_t t = mask->rank > 0 ? mask->dims[mask->rank - 1] : 1, s = mask->rank > 1 ? mask->dims[mask->rank - 2] : 1;
  int64_t n = (int64_t)pl_onnx_elements(mask);
  bool all = true, past = s == t;
  for (int64_t i = 0; i < n && (all || past); i++) {
    bool is = hidden(mask->numbers[i]);
    if (added && !is && mask->numbers[i] != 0) return SEES_OTHERWISE;
    all = all && !is;
    past = past && is == (i % t > i / t % s);
  }
  return all ? SEES_ALL : past ? SEES_PAST : SEES_OTHERWISE;
}

static bool is_much_less(double number) {
  return number <= -1000;
}

static bool is_false(double number) {
  return number == 0;
}

static bool is_true(double number) {
  return number != 0;
}

/* Scores without one mask; *saw gets who sees whom by it. */
static int32_t without_mask(const matcher *own, int32_t value, int *saw) {
  double number;
  value = behind(own, value);
  const pl_onnx_node *add = made_by(own, value, "Add"), *where = made_by(own, value, "Where");
  *saw = SEES_ALL;
  for (int k = 0; add != NULL && add->n_inputs == 2 && k < 2; k++) {
    const pl_onnx_abstract *mask = shape_of(own, add->inputs[k]);
    if (mask->numbers == NULL) continue;
    *saw = sees(mask, is_much_less, true);
    return behind(own, add->inputs[1 - k]);
  }
  if (add != NULL) *saw = SEES_OTHERWISE;
  if (where == NULL || where->n_inputs != 3) return value;
  for (int k = 1; k < 3; k++)
    if (is_scalar(own, where->inputs[3 - k], &number) && is_much_less(number)) {
      *saw = sees(shape_of(own, where->inputs[0]), k == 1 ? is_false : is_true, false);
      return behind(own, where->inputs[k]);
    }
  *saw = SEES_OTHERWISE;
  return value;
}

/* Scores without their masks: one of who comes first, and perhaps one that hides nothing. */
static int32_t unmasked(const matcher *own, int32_t value, int *saw) {
  *saw = SEES_ALL;
  for (int32_t next; *saw != SEES_OTHERWISE; value = next) {
    int by_this;
    next = without_mask(own, value, &by_this);
    if (by_this != SEES_ALL) *saw = by_this;
    if (next == behind(own, value)) return next;
  }
  return value;
}

static void match_attention(const matcher *own, const pl_onnx_node *matmul, pl_match *to) {
  const pl_onnx_node *softmax = matmul->n_inputs == 2 ? made_by(own, behind(own, matmul->inputs[0]), "Softmax") : NULL;
  if (softmax == NULL) return;
  const pl_onnx_abstract *scores = shape_of(own, softmax->inputs[0]);
  factors f;
  int saw;
  if (pl_onnx_axis(pl_onnx_integer_of(softmax, "axis", -1), scores->rank) != scores->rank - 1) return;
  int32_t value = unmasked(own, softmax->inputs[0], &saw);
  if (saw == SEES_OTHERWISE || !factors_of(own, value, &f) || f.n != 1) return;
  const pl_onnx_node *product = made_by(own, f.value[0], "MatMul");
  if (product == NULL || shape_of(own, f.value[0])->rank != scores->rank) return;
  int32_t heads = product->inputs[1], values = matmul->inputs[1];
  if (shape_of(own, heads)->rank < 3 || shape_of(own, values)->rank < 3) return; /* weights are no keys */
  if (shape_of(own, product->inputs[0])->dims[shape_of(own, product->inputs[0])->rank - 1] < 2) return;
  *to = (pl_match){.kind = PL_MATCH_ATTENTION,
                   .in = {product->inputs[0], heads, values},
                   .n_in = 3,
                   .number = f.constant,
                   .causal = saw == SEES_PAST};
}

/* ---- nodes ---- */

static void match_node(const matcher *own, const pl_onnx_node *node, pl_match *to) {
  factors f;
  if (node->n_outputs != 1 || node->outputs[0] == PL_ONNX_NONE || shape_of(own, node->outputs[0])->numbers != NULL)
    return;
  if (strcmp(node->op, "Add") == 0) match_layer_norm(own, node, to);
  if (strcmp(node->op, "Add") == 0 && to->kind == PL_MATCH_NONE) match_rotary(own, node, to);
  if (strcmp(node->op, "MatMul") == 0) match_attention(own, node, to);
  if (strcmp(node->op, "Mul") != 0 || !factors_of(own, node->outputs[0], &f)) return;
  if (f.n == 2) match_activation(own, &f, to);
  if (to->kind == PL_MATCH_NONE && f.n > 1) match_rms_norm(own, &f, to);
}

pl_code pl_onnx_match(const pl_onnx_inference *inference, pl_arena *arena, pl_match **matches, pl_error *error) {
  matcher own = {.inference = inference, .graph = inference->graph};
  own.made = PL_TAKE(arena, pl_match, own.graph->n_nodes + 1);
  if (own.made == NULL) return pl_fail_memory(error, "the ops of a graph");
  for (int32_t i = 0; i < own.graph->n_nodes; i++)
    match_node(&own, &own.graph->nodes[i], &own.made[i]);
  *matches = own.made;
  return PL_OK;
}
