/* See workloads/language/ir_picture.h. Operands are arranged into dense arrays first, points of the picture last; a
 * table says which point each window sees where, and serves forward and backward. */
#include "workloads/language/ir_picture.h"

#include "workloads/language/ir_arrange.h"
#include "workloads/language/ir_operands.h"
#include "workloads/language/ir_walk.h"
#include "workloads/language/ir_window.h"

/* ---- convolution ---- */

/* x[groups, batch, over, n_in], w[groups, outs, over, n_size], y[groups, batch, outs, n_out]. */
typedef struct convolution {
  const pl_ir_computing *computing;
  pl_ir_windows windows;
  const int64_t *seen;
  int64_t groups, batch, outs, over;
  pl_ir_tensor x_order, w_order, y_order;
} convolution;

static bool has(const pl_ir_tensor *tensor, pl_ir_name dim) {
  return pl_ir_type_find(&tensor->type, dim) >= 0;
}

/* Appends the dimensions of `from` that are (in `other`, in the attribute), but none of the skipped attribute. */
static int64_t push_shared(pl_ir_tensor *order, const pl_ir_tensor *from, const pl_ir_tensor *other, bool shared,
                           const pl_ir_op *op, const char *skip) {
  int64_t extent = 1;
  for (int32_t i = 0; i < from->type.rank; i++) {
    pl_ir_name dim = from->type.dims[i].name;
    if (has(other, dim) != shared || pl_ir_op_has_name(op, "over", dim) || pl_ir_op_has_name(op, skip, dim)) continue;
    pl_ir_order_push(order, from, i);
    extent *= from->extent[i];
  }
  return extent;
}

/* In the attribute's order. */
static int64_t push_names(pl_ir_tensor *order, const pl_ir_tensor *from, const pl_ir_op *op, const char *attribute) {
  const pl_ir_attribute *names = pl_ir_attribute_find(op, attribute);
  int64_t extent = 1;
  for (int32_t i = 0; names != NULL && i < names->n_names; i++) {
    int32_t dim = pl_ir_type_find(&from->type, names->names[i]);
    pl_ir_order_push(order, from, dim);
    extent *= from->extent[dim];
  }
  return extent;
}

/* The dimensions that an attribute names, of an operand or result. */
static pl_code check_whole(const pl_ir_computing *computing, const pl_ir_tensor *tensor, const char *attribute,
                           pl_error *error) {
  const pl_ir_attribute *names = pl_ir_attribute_find(computing->op, attribute);
  for (int32_t i = 0; i < names->n_names; i++)
    PL_TRY(pl_ir_tensor_is_whole(computing, tensor, names->names[i], error));
  return PL_OK;
}

static pl_code begin(convolution *of, const pl_ir_computing *computing, const pl_ir_tensor *x, const pl_ir_tensor *w,
                     const pl_ir_tensor *y, pl_error *error) {
  const pl_ir_op *op = computing->op;
  *of = (convolution){.computing = computing,
                      .x_order = pl_ir_order_empty(),
                      .w_order = pl_ir_order_empty(),
                      .y_order = pl_ir_order_empty()};
  PL_TRY(check_whole(computing, x, "window", error));
  PL_TRY(check_whole(computing, y, "window", error));
  PL_TRY(check_whole(computing, w, "kernel", error));
  PL_TRY(pl_ir_windows_of(op, &x->type, &w->type, &of->windows, error));
  of->seen = pl_ir_windows_seen(&of->windows, computing->scratch);
  if (of->seen == NULL) return pl_fail_memory(error, "the windows of a convolution");
  of->groups = push_shared(&of->x_order, x, w, true, op, "window");
  of->batch = push_shared(&of->x_order, x, w, false, op, "window");
  of->over = push_names(&of->x_order, x, op, "over");
  (void)push_names(&of->x_order, x, op, "window");
  (void)push_shared(&of->w_order, w, x, true, op, "kernel");
  of->outs = push_shared(&of->w_order, w, x, false, op, "kernel");
  (void)push_names(&of->w_order, w, op, "over");
  (void)push_names(&of->w_order, w, op, "kernel");
  for (int32_t i = 0; i < of->x_order.type.rank; i++) { /* groups, batch, as x has them */
    int32_t dim = pl_ir_type_find(&y->type, of->x_order.type.dims[i].name);
    if (dim >= 0 && !pl_ir_op_has_name(op, "window", y->type.dims[dim].name)) pl_ir_order_push(&of->y_order, y, dim);
  }
  for (int32_t i = 0; i < of->w_order.type.rank; i++) { /* what only w has */
    int32_t dim = pl_ir_type_find(&y->type, of->w_order.type.dims[i].name);
    if (dim >= 0 && !has(x, y->type.dims[dim].name)) pl_ir_order_push(&of->y_order, y, dim);
  }
  (void)push_names(&of->y_order, y, op, "window");
  return PL_OK;
}

typedef struct dense {
  double *x, *w, *y; /* two are read and one is written */
} dense;

/* One window position: y += x w, or x += y w, or w += x y. */
typedef enum what { FORWARD = 0, DATA, WEIGHTS } what;

static void slide(const convolution *of, what way, double *x, double *w, double *y) {
  const pl_ir_computing *computing = of->computing;
  for (int64_t out = 0; out < of->windows.n_out; out++)
    for (int64_t k = 0; k < of->windows.n_size; k++) {
      int64_t at = of->seen[out * of->windows.n_size + k];
      if (at < 0) continue;
      if (way == FORWARD) y[out] = pl_ir_rounded(computing, y[out] + x[at] * w[k]);
      if (way == DATA) x[at] = pl_ir_rounded(computing, x[at] + y[out] * w[k]);
      if (way == WEIGHTS) w[k] = pl_ir_rounded(computing, w[k] + x[at] * y[out]);
    }
}

static void convolve(const convolution *of, what way, const dense *with) {
  for (int64_t group = 0; group < of->groups; group++)
    for (int64_t b = 0; b < of->batch; b++)
      for (int64_t o = 0; o < of->outs; o++)
        for (int64_t c = 0; c < of->over; c++)
          slide(of, way, &with->x[((group * of->batch + b) * of->over + c) * of->windows.n_in],
                &with->w[((group * of->outs + o) * of->over + c) * of->windows.n_size],
                &with->y[((group * of->batch + b) * of->outs + o) * of->windows.n_out]);
}

static pl_code compute(const pl_ir_computing *computing, what way, const pl_ir_tensor *x, const pl_ir_tensor *w,
                       const pl_ir_tensor *y, pl_error *error) {
  convolution of;
  PL_TRY(begin(&of, computing, x, w, y, error));
  const dense with = {.x = PL_TAKE(computing->scratch, double, x->n),
                      .w = PL_TAKE(computing->scratch, double, w->n),
                      .y = PL_TAKE(computing->scratch, double, y->n)};
  if (with.x == NULL || with.w == NULL || with.y == NULL) return pl_fail_memory(error, "a convolution");
  if (way != DATA) pl_ir_arrange(x, &of.x_order, with.x);
  if (way != WEIGHTS) pl_ir_arrange(w, &of.w_order, with.w);
  if (way != FORWARD) pl_ir_arrange(y, &of.y_order, with.y);
  convolve(&of, way, &with);
  pl_ir_tensor *out = &computing->outputs[0], made = way == FORWARD ? of.y_order
                                                     : way == DATA  ? of.x_order
                                                                    : of.w_order;
  made.data = way == FORWARD ? with.y : way == DATA ? with.x : with.w;
  pl_ir_arrange(&made, out, out->data);
  return PL_OK;
}

pl_code pl_ir_compute_convolution(const pl_ir_computing *computing, pl_error *error) {
  const pl_ir_tensor *in = computing->inputs;
  return compute(computing, FORWARD, &in[0], &in[1], &computing->outputs[0], error);
}

pl_code pl_ir_compute_convolution_backward_data(const pl_ir_computing *computing, pl_error *error) {
  const pl_ir_tensor *in = computing->inputs;
  return compute(computing, DATA, &computing->outputs[0], &in[1], &in[0], error);
}

pl_code pl_ir_compute_convolution_backward_weights(const pl_ir_computing *computing, pl_error *error) {
  const pl_ir_tensor *in = computing->inputs;
  return compute(computing, WEIGHTS, &in[0], &computing->outputs[0], &in[1], error);
}

/* ---- pooling ---- */

/* Pictures x[n, n_in] and results y[n, n_out]. */
typedef struct pooling {
  pl_ir_windows windows;
  const int64_t *seen;
  pl_ir_tensor x_order, y_order;
  int64_t n;
} pooling;

static pl_code begin_pooling(pooling *of, const pl_ir_computing *computing, const pl_ir_tensor *x,
                             const pl_ir_tensor *y, pl_error *error) {
  *of = (pooling){.x_order = pl_ir_order_empty(), .y_order = pl_ir_order_empty()};
  PL_TRY(check_whole(computing, x, "window", error));
  PL_TRY(check_whole(computing, y, "window", error));
  PL_TRY(pl_ir_windows_of(computing->op, &x->type, NULL, &of->windows, error));
  of->seen = pl_ir_windows_seen(&of->windows, computing->scratch);
  if (of->seen == NULL) return pl_fail_memory(error, "the windows of a pooling");
  of->n = pl_ir_order_push_named(&of->x_order, x, computing->op, "window", false);
  for (int32_t i = 0; i < of->x_order.type.rank; i++)
    pl_ir_order_push(&of->y_order, y, pl_ir_type_find(&y->type, of->x_order.type.dims[i].name));
  (void)push_names(&of->x_order, x, computing->op, "window");
  (void)push_names(&of->y_order, y, computing->op, "window");
  return PL_OK;
}

/* Where window `out` of a picture has its maximum, the first of equal ones. */
static int64_t find_maximum(const pooling *of, const double *x, int64_t out) {
  int64_t best = -1;
  for (int64_t k = 0; k < of->windows.n_size; k++) {
    int64_t at = of->seen[out * of->windows.n_size + k];
    if (at >= 0 && (best < 0 || x[at] > x[best])) best = at;
  }
  return best;
}

pl_code pl_ir_compute_max_pool(const pl_ir_computing *computing, pl_error *error) {
  pl_ir_tensor *out = &computing->outputs[0];
  pooling of;
  PL_TRY(begin_pooling(&of, computing, &computing->inputs[0], out, error));
  const double *x = pl_ir_arranged(computing->scratch, &computing->inputs[0], &of.x_order);
  of.y_order.data = PL_TAKE(computing->scratch, double, out->n);
  if (x == NULL || of.y_order.data == NULL) return pl_fail_memory(error, "a pooling");
  for (int64_t i = 0; i < of.n; i++)
    for (int64_t o = 0; o < of.windows.n_out; o++)
      of.y_order.data[i * of.windows.n_out + o] =
          x[i * of.windows.n_in + find_maximum(&of, &x[i * of.windows.n_in], o)];
  pl_ir_arrange(&of.y_order, out, out->data);
  return PL_OK;
}

pl_code pl_ir_compute_max_pool_backward(const pl_ir_computing *computing, pl_error *error) {
  const pl_ir_tensor *in = computing->inputs;
  pl_ir_tensor *out = &computing->outputs[0];
  pooling of;
  PL_TRY(begin_pooling(&of, computing, &in[0], &in[1], error));
  const double *x = pl_ir_arranged(computing->scratch, &in[0], &of.x_order);
  const double *dy = pl_ir_arranged(computing->scratch, &in[1], &of.y_order);
  double *dx = of.x_order.data = PL_TAKE(computing->scratch, double, out->n);
  if (x == NULL || dy == NULL || dx == NULL) return pl_fail_memory(error, "a pooling");
  for (int64_t i = 0; i < of.n; i++)
    for (int64_t o = 0; o < of.windows.n_out; o++) {
      int64_t at = i * of.windows.n_in + find_maximum(&of, &x[i * of.windows.n_in], o);
      dx[at] = pl_ir_rounded(computing, dx[at] + dy[i * of.windows.n_out + o]);
    }
  pl_ir_arrange(&of.x_order, out, out->data);
  return PL_OK;
}

/* What a result divides its sum by. */
static double counted(const pooling *of, const pl_ir_op *op, int64_t out) {
  if (pl_ir_integer_of(op, "inside", 0) == 0) return (double)of->windows.n_size;
  int64_t n = 0;
  for (int64_t k = 0; k < of->windows.n_size; k++)
    n += of->seen[out * of->windows.n_size + k] >= 0;
  return (double)n;
}

static void average(const pooling *of, const pl_ir_computing *computing, bool forward, double *x, double *y) {
  for (int64_t out = 0; out < of->windows.n_out; out++) {
    double share = 1 / counted(of, computing->op, out);
    for (int64_t k = 0; k < of->windows.n_size; k++) {
      int64_t at = of->seen[out * of->windows.n_size + k];
      if (at < 0) continue;
      if (forward) y[out] = pl_ir_rounded(computing, y[out] + share * x[at]);
      if (!forward) x[at] = pl_ir_rounded(computing, x[at] + share * y[out]);
    }
  }
}

static pl_code compute_average(const pl_ir_computing *computing, bool forward, pl_error *error) {
  const pl_ir_tensor *in = &computing->inputs[0];
  pl_ir_tensor *out = &computing->outputs[0];
  pooling of;
  PL_TRY(begin_pooling(&of, computing, forward ? in : out, forward ? out : in, error));
  double *x = PL_TAKE(computing->scratch, double, of.x_order.n), *y = PL_TAKE(computing->scratch, double, of.y_order.n);
  if (x == NULL || y == NULL) return pl_fail_memory(error, "a pooling");
  pl_ir_arrange(in, forward ? &of.x_order : &of.y_order, forward ? x : y);
  for (int64_t i = 0; i < of.n; i++)
    average(&of, computing, forward, &x[i * of.windows.n_in], &y[i * of.windows.n_out]);
  pl_ir_tensor made = forward ? of.y_order : of.x_order;
  made.data = forward ? y : x;
  pl_ir_arrange(&made, out, out->data);
  return PL_OK;
}

pl_code pl_ir_compute_average_pool(const pl_ir_computing *computing, pl_error *error) {
  return compute_average(computing, true, error);
}

pl_code pl_ir_compute_average_pool_backward(const pl_ir_computing *computing, pl_error *error) {
  return compute_average(computing, false, error);
}
