/* See workloads/language/ir_norm.h. All of them go row by row: a row is what lies along the dimensions `over`. */
#include "workloads/language/ir_norm.h"

#include <math.h>

#include "workloads/language/ir_arrange.h"

/* Operands as rows, in one order of dimensions, and room for as many results. */
typedef struct pl_ir_norm_rows {
  pl_ir_tensor order;
  int64_t n, length;
  const double *x, *scale, *other; /* other: shift, or dy */
  double *y, *dscale;
} pl_ir_norm_rows;

static bool rows_of(const pl_ir_computing *computing, const pl_ir_tensor *of, pl_ir_norm_rows *rows) {
  rows->order = pl_ir_order_empty();
  rows->n = pl_ir_order_push_named(&rows->order, of, computing->op, "over", false);
  rows->length = pl_ir_order_push_named(&rows->order, of, computing->op, "over", true);
  rows->x = pl_ir_arranged(computing->scratch, of, &rows->order);
  rows->y = PL_TAKE(computing->scratch, double, rows->order.n);
  return rows->x != NULL && rows->y != NULL;
}

static const double *as_rows(const pl_ir_computing *computing, const pl_ir_norm_rows *rows, int32_t k) {
  return pl_ir_arranged(computing->scratch, &computing->inputs[k], &rows->order);
}

static void give_rows(const pl_ir_computing *computing, const pl_ir_norm_rows *rows, double *y, int32_t k) {
  pl_ir_tensor from = rows->order;
  from.data = y;
  pl_ir_arrange(&from, &computing->outputs[k], computing->outputs[k].data);
}

/* Adds y up along the dimensions that output k lacks. */
static void add_rows(const pl_ir_computing *computing, const pl_ir_norm_rows *rows, const double *y, int32_t k) {
  const pl_ir_tensor *out = &computing->outputs[k];
  int64_t index[PL_IR_RANK_MAX] = {0}, strides[PL_IR_RANK_MAX] = {0}, stride = 1, at = 0;
  for (int32_t i = out->type.rank - 1; i >= 0; i--) {
    strides[pl_ir_type_find(&rows->order.type, out->type.dims[i].name)] = stride;
    stride *= out->extent[i];
  }
  for (int64_t done = 0; done < rows->order.n; done++) {
    out->data[at] += y[done];
    for (int32_t i = rows->order.type.rank - 1; i >= 0; i--) {
      at += strides[i];
      if (++index[i] < rows->order.extent[i]) break;
      at -= strides[i] * rows->order.extent[i];
      index[i] = 0;
    }
  }
}

pl_code pl_ir_compute_softmax(const pl_ir_computing *computing, pl_error *error) {
  pl_ir_norm_rows rows = {0};
  if (!rows_of(computing, &computing->inputs[0], &rows)) return pl_fail_memory(error, "softmax");
  for (int64_t row = 0; row < rows.n; row++) {
    const double *x = rows.x + row * rows.length;
    double *y = rows.y + row * rows.length, most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < rows.length; i++)
      if (x[i] > most) most = x[i];
    for (int64_t i = 0; i < rows.length; i++)
      sum += y[i] = exp(x[i] - most);
    for (int64_t i = 0; i < rows.length; i++)
      y[i] /= sum;
  }
  give_rows(computing, &rows, rows.y, 0);
  return PL_OK;
}

pl_code pl_ir_compute_softmax_backward(const pl_ir_computing *computing, pl_error *error) {
  pl_ir_norm_rows rows = {0};
  if (!rows_of(computing, &computing->inputs[0], &rows) || (rows.other = as_rows(computing, &rows, 1)) == NULL)
    return pl_fail_memory(error, "softmax");
  for (int64_t row = 0; row < rows.n; row++) {
    const double *y = rows.x + row * rows.length, *dy = rows.other + row * rows.length;
    double *dx = rows.y + row * rows.length, sum = 0;
    for (int64_t i = 0; i < rows.length; i++)
      sum += y[i] * dy[i];
    for (int64_t i = 0; i < rows.length; i++)
      dx[i] = y[i] * (dy[i] - sum);
  }
  give_rows(computing, &rows, rows.y, 0);
  return PL_OK;
}

/* Mean of a row (0: it is not taken off) and 1 / sqrt(mean of the squares of the rest + epsilon). */
static double row_mean(const double *x, int64_t length) {
  double sum = 0;
  for (int64_t i = 0; i < length; i++)
    sum += x[i];
  return sum / (double)length;
}

static double row_inverse(const double *x, int64_t length, double mean, double epsilon) {
  double squares = 0;
  for (int64_t i = 0; i < length; i++)
    squares += (x[i] - mean) * (x[i] - mean);
  return 1 / sqrt(squares / (double)length + epsilon);
}

static pl_code norm(const pl_ir_computing *computing, bool centered, pl_error *error) {
  double epsilon = pl_ir_real_of(computing->op, "epsilon", 0);
  pl_ir_norm_rows rows = {0};
  if (!rows_of(computing, &computing->inputs[0], &rows) || (rows.scale = as_rows(computing, &rows, 1)) == NULL ||
      (centered && (rows.other = as_rows(computing, &rows, 2)) == NULL))
    return pl_fail_memory(error, "a norm");
  for (int64_t row = 0; row < rows.n; row++) {
    int64_t begin = row * rows.length;
    const double *x = rows.x + begin;
    double mean = centered ? row_mean(x, rows.length) : 0, inverse = row_inverse(x, rows.length, mean, epsilon);
    for (int64_t i = 0; i < rows.length; i++)
      rows.y[begin + i] = (x[i] - mean) * inverse * rows.scale[begin + i] + (centered ? rows.other[begin + i] : 0);
  }
  give_rows(computing, &rows, rows.y, 0);
  return PL_OK;
}

pl_code pl_ir_compute_layer_norm(const pl_ir_computing *computing, pl_error *error) {
  return norm(computing, true, error);
}

pl_code pl_ir_compute_rms_norm(const pl_ir_computing *computing, pl_error *error) {
  return norm(computing, false, error);
}

/* With n = (x - mean) inverse and g = dy scale: dx = inverse (g - mean of g - n mean of (g n)), the mean of g only
 * where the mean was taken off; dscale = sum of dy n; dshift = sum of dy. */
static void norm_backward_row(pl_ir_norm_rows *rows, int64_t begin, bool centered, double epsilon) {
  const double *x = rows->x + begin, *scale = rows->scale + begin, *dy = rows->other + begin;
  double mean = centered ? row_mean(x, rows->length) : 0, inverse = row_inverse(x, rows->length, mean, epsilon);
  double mean_g = 0, mean_gn = 0;
  for (int64_t i = 0; i < rows->length; i++) {
    double n = (x[i] - mean) * inverse;
    mean_g += dy[i] * scale[i];
    mean_gn += dy[i] * scale[i] * n;
    rows->dscale[begin + i] = dy[i] * n;
  }
  mean_g = centered ? mean_g / (double)rows->length : 0;
  mean_gn /= (double)rows->length;
  for (int64_t i = 0; i < rows->length; i++)
    rows->y[begin + i] = inverse * (dy[i] * scale[i] - mean_g - (x[i] - mean) * inverse * mean_gn);
}

static pl_code norm_backward(const pl_ir_computing *computing, bool centered, pl_error *error) {
  double epsilon = pl_ir_real_of(computing->op, "epsilon", 0);
  pl_ir_norm_rows rows = {0};
  if (!rows_of(computing, &computing->inputs[0], &rows) || (rows.scale = as_rows(computing, &rows, 1)) == NULL ||
      (rows.other = as_rows(computing, &rows, 2)) == NULL ||
      (rows.dscale = PL_TAKE(computing->scratch, double, rows.order.n)) == NULL)
    return pl_fail_memory(error, "a norm");
  for (int64_t row = 0; row < rows.n; row++)
    norm_backward_row(&rows, row * rows.length, centered, epsilon);
  give_rows(computing, &rows, rows.y, 0);
  add_rows(computing, &rows, rows.dscale, 1);
  if (centered) add_rows(computing, &rows, rows.other, 2);
  return PL_OK;
}

pl_code pl_ir_compute_layer_norm_backward(const pl_ir_computing *computing, pl_error *error) {
  return norm_backward(computing, true, error);
}

pl_code pl_ir_compute_rms_norm_backward(const pl_ir_computing *computing, pl_error *error) {
  return norm_backward(computing, false, error);
}
