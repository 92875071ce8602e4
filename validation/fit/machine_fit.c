/* See validation/fit/machine_fit.h. */
#include "validation/fit/machine_fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validation/statistics/statistics.h"
#include "workloads/language/ir_table.h"

enum { KEPT_OUT = 4 }; /* one of so many */

/* ---- three coefficients ---- */

/* Solves the normal equations of the columns in `set` (one bit each); false: they are not independent. */
static bool solve(const double (*rows)[3], uint32_t n, unsigned set, double c[3]) {
  double m[3][4] = {{0}};
  int which[3], k = 0;
  for (int i = 0; i < 3; i++)
    if ((set >> i & 1) != 0) which[k++] = i;
  for (uint32_t r = 0; r < n; r++)
    for (int i = 0; i < k; i++) {
      for (int j = 0; j < k; j++)
        m[i][j] += rows[r][which[i]] * rows[r][which[j]];
      m[i][k] += rows[r][which[i]];
    }
  for (int i = 0; i < k; i++) {
    if (!(m[i][i] > 0)) return false;
    for (int below = i + 1; below < k; below++) {
      double factor = m[below][i] / m[i][i], before = m[below][below];
      for (int j = i; j <= k; j++)
        m[below][j] -= factor * m[i][j];
      if (below == i + 1 && !(m[below][below] > 1e-9 * before)) return false;
    }
  }
  c[0] = c[1] = c[2] = 0;
  for (int i = k - 1; i >= 0; i--) {
    double value = m[i][k];
    for (int j = i + 1; j < k; j++)
      value -= m[i][j] * c[which[j]];
    c[which[i]] = value / m[i][i];
  }
  return true;
}

static double squares(const double (*rows)[3], uint32_t n, const double c[3]) {
  double sum = 0;
  for (uint32_t r = 0; r < n; r++) {
    double error = rows[r][0] * c[0] + rows[r][1] * c[1] + rows[r][2] * c[2] - 1;
    sum += error * error;
  }
  return sum;
}

void pl_fit_three(const double (*rows)[3], uint32_t n, double c[3]) {
  double best = INFINITY;
  c[0] = c[1] = c[2] = 0;
  for (unsigned set = 1; set < 8; set++) {
    double trial[3];
    if (!solve(rows, n, set, trial) || trial[0] < 0 || trial[1] < 0 || trial[2] < 0) continue;
    double sum = squares(rows, n, trial);
    if (!(sum < best)) continue;
    best = sum;
    memcpy(c, trial, sizeof trial);
  }
}

/* ---- samples with terms ---- */

typedef struct sample {
  double terms[3], time_s; /* of 1 s, of the second and of the third coefficient */
} sample;

static int by_place(const void *a, const void *b) {
  const sample *left = a, *right = b;
  for (int i = 2; i >= 0; i--)
    if (left->terms[i] != right->terms[i]) return left->terms[i] < right->terms[i] ? -1 : 1;
  return (left->time_s > right->time_s) - (left->time_s < right->time_s);
}

/* Every fourth in the order of their sizes is kept out, where that leaves enough. */
static pl_code fit_samples(sample *samples, uint32_t n, pl_arena *arena, double c[3], pl_held_out *held_out,
                           pl_error *error) {
  double(*rows)[3] = (double(*)[3])PL_TAKE(arena, double, 3 * (size_t)n);
  double *errors = PL_TAKE(arena, double, n);
  if (rows == NULL || errors == NULL) return pl_fail_memory(error, "the samples");
  bool keeps_out = n >= 2 * KEPT_OUT;
  uint32_t n_rows = 0, n_errors = 0;
  qsort(samples, n, sizeof *samples, by_place);
  for (uint32_t i = 0; i < n; i++) {
    if (keeps_out && i % KEPT_OUT == 1) continue;
    for (int k = 0; k < 3; k++)
      rows[n_rows][k] = samples[i].terms[k] / samples[i].time_s;
    n_rows++;
  }
  pl_fit_three((const double(*)[3])rows, n_rows, c);
  for (uint32_t i = 0; keeps_out && i < n; i++)
    if (i % KEPT_OUT == 1) {
      const double *t = samples[i].terms;
      errors[n_errors++] = fabs((c[0] * t[0] + c[1] * t[1] + c[2] * t[2]) / samples[i].time_s - 1);
    }
  *held_out = (pl_held_out){.n = n_errors};
  if (n_errors == 0) return PL_OK;
  held_out->median_error = pl_median(errors, n_errors); /* sorts them */
  held_out->p90_error = errors[(n_errors * 9) / 10 < n_errors ? (n_errors * 9) / 10 : n_errors - 1];
  return PL_OK;
}

/* ---- ops ---- */

static double rate_of(double coefficient) {
  return coefficient > 0 ? 1 / coefficient : 0;
}

static pl_code fit_ops(const pl_machine_samples *samples, pl_arena *arena, pl_machine_fit *fit, pl_error *error) {
  fit->ops = PL_TAKE(arena, pl_program_kernel, pl_ir_n_rows());
  sample *some = PL_TAKE(arena, sample, samples->n_ops);
  if (fit->ops == NULL || some == NULL) return pl_fail_memory(error, "the samples");
  for (int32_t row = 0; row < pl_ir_n_rows(); row++) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < samples->n_ops; i++) {
      const pl_op_sample *s = &samples->ops[i];
      if (s->row == row && s->time_s > 0) some[n++] = (sample){{1, s->flops, s->bytes}, s->time_s};
    }
    if (n == 0) continue;
    double c[3];
    pl_program_kernel *made = &fit->ops[fit->n_ops++];
    snprintf(made->op, sizeof made->op, "%s", pl_ir_row_at(row)->name);
    PL_TRY(fit_samples(some, n, arena, c, &made->held_out, error));
    made->overhead_s = c[0];
    made->flops_rate = rate_of(c[1]);
    made->bytes_rate = rate_of(c[2]);
  }
  qsort(fit->ops, fit->n_ops, sizeof *fit->ops, pl_program_kernel_by_op);
  return PL_OK;
}

/* Figures for what is not a program: rates of large products, of attention, of the other ops. */
typedef struct rates {
  double *values;
  uint32_t n;
} rates;

static double largest(const rates *r) {
  double most = 0;
  for (uint32_t i = 0; i < r->n; i++)
    most = fmax(most, r->values[i]);
  return most;
}

static double share_of_median(rates *r, double most) {
  return r->n > 0 && most > 0 ? fmin(pl_median(r->values, r->n) / most, 1) : 0.5;
}

static pl_code find_rates(const pl_machine_samples *samples, pl_arena *arena, pl_machine_fit *fit, pl_error *error) {
  rates products = {PL_TAKE(arena, double, samples->n_ops), 0}, attention = {PL_TAKE(arena, double, samples->n_ops), 0};
  rates others = {PL_TAKE(arena, double, samples->n_ops), 0};
  double *overheads = PL_TAKE(arena, double, fit->n_ops);
  if (arena->failed) return pl_fail_memory(error, "the samples");
  for (uint32_t i = 0; i < samples->n_ops; i++) {
    const pl_op_sample *s = &samples->ops[i];
    const char *name = pl_ir_row_at(s->row)->name;
    if (!(s->time_s > 0)) continue;
    if (strcmp(name, "product") == 0 && s->flops > 1e6) products.values[products.n++] = s->flops / s->time_s;
    if (strncmp(name, "attention", 9) == 0 && s->flops > 0) attention.values[attention.n++] = s->flops / s->time_s;
    if (strcmp(name, "add") == 0 && s->bytes > 1e4) others.values[others.n++] = s->bytes / s->time_s;
  }
  for (uint32_t i = 0; i < fit->n_ops; i++)
    overheads[i] = fit->ops[i].overhead_s;
  if (products.n == 0 || others.n == 0) return pl_fail(error, PL_IO, "nothing could be timed on this machine");
  fit->peak_flops = largest(&products);
  fit->bandwidth_Bps = largest(&others);
  fit->compute_efficiency = share_of_median(&products, fit->peak_flops);
  fit->attention_efficiency = share_of_median(&attention, fit->peak_flops);
  fit->bandwidth_efficiency = share_of_median(&others, fit->bandwidth_Bps);
  fit->overhead_s = pl_median(overheads, fit->n_ops);
  return PL_OK;
}

/* ---- moves ---- */

/* Steps of the algorithm, and bytes on the busiest wire (netmodel/collective/CALIBRATED.md); inside a node.
 */
static sample as_move(const pl_move_sample *s) {
  double n = s->n, share = (n - 1) / n;
  double steps = s->kind == PL_ALL_REDUCE ? 2 * (n - 1) : s->kind == PL_SEND ? 1 : n - 1;
  double bytes = s->size_bytes * (s->kind == PL_ALL_REDUCE ? 2 * share : s->kind == PL_SEND ? 1 : share);
  return (sample){{1, steps, bytes}, s->time_s};
}

static pl_code fit_moves(const pl_machine_samples *samples, bool direct, pl_arena *arena, pl_move_fit *fit,
                         pl_error *error) {
  sample *some = PL_TAKE(arena, sample, samples->n_moves);
  if (some == NULL) return pl_fail_memory(error, "the samples");
  *fit = (pl_move_fit){0};
  for (uint32_t i = 0; i < samples->n_moves; i++) {
    const pl_move_sample *s = &samples->moves[i];
    bool is_direct = s->kind == PL_ALL_TO_ALL || s->kind == PL_SEND;
    if (is_direct == direct && s->time_s > 0) some[fit->n++] = as_move(s);
  }
  if (fit->n == 0) return PL_OK;
  double c[3];
  PL_TRY(fit_samples(some, fit->n, arena, c, &fit->held_out, error));
  fit->start_s = c[0];
  fit->step_s = c[1];
  fit->rate_Bps = rate_of(c[2]);
  return PL_OK;
}

pl_code pl_machine_fit_take(const pl_machine_samples *samples, pl_arena *arena, pl_machine_fit *fit, pl_error *error) {
  *fit = (pl_machine_fit){0};
  PL_TRY(fit_ops(samples, arena, fit, error));
  PL_TRY(find_rates(samples, arena, fit, error));
  PL_TRY(fit_moves(samples, false, arena, &fit->ring, error));
  return fit_moves(samples, true, arena, &fit->direct, error);
}
