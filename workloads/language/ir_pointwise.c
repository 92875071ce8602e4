/* See workloads/language/ir_pointwise.h. */
#include "workloads/language/ir_pointwise.h"

#include <math.h>
#include <string.h>

#include "workloads/language/ir_arrange.h"
#include "workloads/language/ir_random.h"

pl_code pl_ir_map(const pl_ir_computing *computing, double (*f)(double a)) {
  const double *a = computing->inputs[0].data;
  double *y = computing->outputs[0].data;
  for (int64_t i = 0; i < computing->outputs[0].n; i++)
    y[i] = f(a[i]);
  return PL_OK;
}

pl_code pl_ir_map_two(const pl_ir_computing *computing, double (*f)(double a, double b), pl_error *error) {
  const double *a = computing->inputs[0].data;
  const double *b = pl_ir_arranged(computing->scratch, &computing->inputs[1], &computing->outputs[0]);
  double *y = computing->outputs[0].data;
  if (b == NULL) return pl_fail_memory(error, "an operand that is spread");
  for (int64_t i = 0; i < computing->outputs[0].n; i++)
    y[i] = f(a[i], b[i]);
  return PL_OK;
}

pl_code pl_ir_reduce(const pl_ir_computing *computing, double (*f)(double a, double b), double first, pl_error *error) {
  const pl_ir_tensor *from = &computing->inputs[0];
  pl_ir_tensor order = pl_ir_order_empty();
  int64_t rows = pl_ir_order_push_named(&order, from, computing->op, "over", false);
  int64_t row = pl_ir_order_push_named(&order, from, computing->op, "over", true);
  const double *a = pl_ir_arranged(computing->scratch, from, &order);
  if (a == NULL) return pl_fail_memory(error, "what is summed over");
  for (int64_t i = 0; i < rows; i++) {
    double y = first;
    for (int64_t k = 0; k < row; k++)
      y = f(y, *a++);
    computing->outputs[0].data[i] = y;
  }
  return PL_OK;
}

pl_code pl_ir_compute_spread(const pl_ir_computing *computing, pl_error *error) {
  (void)error;
  pl_ir_arrange(&computing->inputs[0], &computing->outputs[0], computing->outputs[0].data);
  return PL_OK;
}

pl_code pl_ir_compute_copy(const pl_ir_computing *computing, pl_error *error) {
  (void)error;
  memcpy(computing->outputs[0].data, computing->inputs[0].data, (size_t)computing->outputs[0].n * sizeof(double));
  return PL_OK;
}

pl_code pl_ir_compute_scale(const pl_ir_computing *computing, pl_error *error) {
  (void)error;
  double by = pl_ir_real_of(computing->op, "by", 1);
  for (int64_t i = 0; i < computing->outputs[0].n; i++)
    computing->outputs[0].data[i] = by * computing->inputs[0].data[i];
  return PL_OK;
}

/* Place in the whole value, row-major and in the order of its sequence, of element `i` of a part of it. */
static uint64_t place_in_whole(const pl_ir_tensor *part, int64_t i, int32_t sequence, int64_t ranks) {
  uint64_t place = 0, stride = 1;
  for (int32_t dim = part->type.rank - 1; dim >= 0; dim--) {
    int64_t at = part->origin[dim] + i % part->extent[dim];
    if (dim == sequence) at = pl_ir_zigzag(at, part->type.dims[dim].extent, ranks);
    place += stride * (uint64_t)at;
    stride *= (uint64_t)part->type.dims[dim].extent;
    i /= part->extent[dim];
  }
  return place;
}

pl_code pl_ir_compute_dropout(const pl_ir_computing *computing, pl_error *error) {
  (void)error;
  const pl_ir_tensor *a = &computing->inputs[0];
  double p = pl_ir_real_of(computing->op, "p", 0);
  uint64_t seed = (uint64_t)pl_ir_integer_of(computing->op, "seed", 0);
  int64_t ranks = pl_ir_integer_of(computing->op, "zigzag", 1);
  int32_t sequence = pl_ir_type_find(&a->type, pl_ir_name_of("s"));
  double n = pl_ir_type_elements(&a->type);
  int64_t samples = a->type.rank > 0 ? a->type.dims[0].extent : 1;
  for (int64_t i = 0; i < a->n; i++) {
    uint64_t place = place_in_whole(a, i, sequence, ranks);
    computing->outputs[0].data[i] = a->data[i] * pl_ir_dropout_factor(computing, p, seed, place, n, samples);
  }
  return PL_OK;
}

/* ---- functions ---- */

/* Hendrycks and Gimpel, Gaussian error linear units, section 2: the form with tanh, which GPT-2 and BERT take. */
static double gelu_inner(double a) {
  return 0.7978845608028653559 * (a + 0.044715 * a * a * a); /* sqrt(2 / pi) */
}

double pl_ir_gelu(double a) {
  return 0.5 * a * (1 + tanh(gelu_inner(a)));
}

double pl_ir_gelu_backward(double a, double dy) {
  double t = tanh(gelu_inner(a)), slope = 0.7978845608028653559 * (1 + 3 * 0.044715 * a * a);
  return dy * (0.5 * (1 + t) + 0.5 * a * (1 - t * t) * slope);
}

double pl_ir_exact_gelu(double a) {
  return 0.5 * a * (1 + erf(a * 0.70710678118654752440));
}

double pl_ir_exact_gelu_backward(double a, double dy) {
  const double density = 0.39894228040143267794 * exp(-0.5 * a * a);
  return dy * (0.5 * (1 + erf(a * 0.70710678118654752440)) + a * density);
}

double pl_ir_silu(double a) {
  return a / (1 + exp(-a));
}

double pl_ir_silu_backward(double a, double dy) {
  double gate = 1 / (1 + exp(-a));
  return dy * gate * (1 + a * (1 - gate));
}

double pl_ir_sigmoid(double a) {
  return 1 / (1 + exp(-a));
}

double pl_ir_sigmoid_backward(double y, double dy) {
  return dy * y * (1 - y);
}

/* log(1 + exp(a)), where exp(a) would not fit as well. */
double pl_ir_softplus(double a) {
  return (a > 0 ? a : 0) + log1p(exp(-fabs(a)));
}

double pl_ir_softplus_backward(double a, double dy) {
  return dy * pl_ir_sigmoid(a);
}

double pl_ir_hard_sigmoid(double a) {
  return a <= -3 ? 0 : a >= 3 ? 1 : a / 6 + 0.5;
}

double pl_ir_hard_sigmoid_backward(double a, double dy) {
  return a > -3 && a < 3 ? dy / 6 : 0;
}

double pl_ir_hard_swish(double a) {
  return a * pl_ir_hard_sigmoid(a);
}

double pl_ir_hard_swish_backward(double a, double dy) {
  return a <= -3 ? 0 : a >= 3 ? dy : dy * (a / 3 + 0.5);
}
