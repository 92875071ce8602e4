/* See validation/report/beside.h. */
#include "validation/report/beside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "validation/statistics/statistics.h"

/* ---- times and peaks ---- */

static bool has_times(const pl_case *c) {
  return pl_case_is_timed(c) && c->row->other_step_time_s > 0;
}

static bool has_peaks(const pl_case *c) {
  return c->reason == NULL && c->measured_mem_bytes > 0 && c->row->other_mem_gb > 0;
}

static double other_mem_bytes(const pl_case *c) {
  return c->row->other_mem_gb * 1024 * 1024 * 1024;
}

static void add_error(double error, double *mape_pct, double *bias_pct) {
  *mape_pct += 100 * fabs(error);
  if (bias_pct != NULL) *bias_pct += 100 * error;
}

/* `speeds`: 5 per case, measured, ours, theirs and two for the ranks. */
static void summarise(const pl_cases *cases, double *speeds, pl_beside *beside) {
  uint32_t n = 0, most = cases->n_cases;
  for (uint32_t i = 0; i < cases->n_cases; i++) {
    const pl_case *c = &cases->cases[i];
    if (strcmp(c->row->family, beside->family) != 0) continue;
    if (has_peaks(c)) {
      beside->n_memory++;
      add_error(c->predicted_mem_bytes / c->measured_mem_bytes - 1, &beside->memory_mape_pct[0], NULL);
      add_error(other_mem_bytes(c) / c->measured_mem_bytes - 1, &beside->memory_mape_pct[1], NULL);
    }
    if (!has_times(c)) continue;
    double other_s = c->row->other_step_time_s;
    add_error(pl_case_error(c), &beside->mape_pct[0], &beside->bias_pct[0]);
    add_error(other_s / c->measured_s - 1, &beside->mape_pct[1], &beside->bias_pct[1]);
    speeds[n] = c->flops / c->measured_s;
    speeds[most + n] = c->flops / c->result.iter_time_s;
    speeds[2 * (size_t)most + n++] = c->flops / other_s;
  }
  beside->n_times = n;
  for (uint32_t i = 0; i < 2; i++) {
    beside->mape_pct[i] = n > 0 ? beside->mape_pct[i] / n : NAN;
    beside->bias_pct[i] = n > 0 ? beside->bias_pct[i] / n : NAN;
    beside->memory_mape_pct[i] = beside->n_memory > 0 ? beside->memory_mape_pct[i] / beside->n_memory : NAN;
    beside->spearman[i] = n >= PL_BESIDE_RANKED
                              ? pl_spearman(speeds, speeds + (size_t)(i + 1) * most, n, speeds + (size_t)3 * most)
                              : NAN;
  }
}

static pl_beside *find_family(pl_besides *besides, const char *family) {
  for (uint32_t i = 0; i < besides->n_families; i++)
    if (strcmp(besides->families[i].family, family) == 0) return &besides->families[i];
  return NULL;
}

static pl_code take_families(const pl_cases *cases, pl_arena *arena, pl_besides *besides, pl_error *error) {
  besides->families = PL_TAKE(arena, pl_beside, cases->n_cases);
  double *speeds = PL_TAKE(arena, double, (size_t)5 * cases->n_cases);
  if (arena->failed) return pl_fail_memory(error, "the report");
  for (uint32_t i = 0; i < cases->n_cases; i++) {
    const pl_case *c = &cases->cases[i];
    if ((!has_times(c) && !has_peaks(c)) || find_family(besides, c->row->family) != NULL) continue;
    pl_beside *beside = &besides->families[besides->n_families++];
    *beside = (pl_beside){.family = c->row->family};
    summarise(cases, speeds, beside);
  }
  return PL_OK;
}

/* ---- orders ---- */

static int compare_counts(int64_t a, int64_t b) {
  return (a > b) - (a < b);
}

static int compare_groups(const pl_measured_row *x, const pl_measured_row *y) {
  int order = strcmp(x->family, y->family);
  if (order == 0) order = strcmp(x->gpu, y->gpu);
  if (order == 0) order = strcmp(x->interconnect, y->interconnect);
  if (order == 0) order = strcmp(x->framework, y->framework);
  if (order == 0) order = strcmp(x->precision, y->precision);
  if (order == 0) order = strcmp(x->model, y->model);
  if (order == 0) order = compare_counts(x->n_gpus, y->n_gpus);
  return order == 0 ? compare_counts(x->gbs, y->gbs) : order;
}

static int compare_cases(const void *left, const void *right) {
  const pl_case *a = *(const pl_case *const *)left, *b = *(const pl_case *const *)right;
  int order = compare_groups(a->row, b->row);
  if (order == 0) order = compare_counts(a->row->measured_rank, b->row->measured_rank);
  return order != 0 ? order : a < b ? -1 : a > b;
}

static double speed(const pl_case *c) {
  return c->flops / c->result.iter_time_s;
}

/* `values`: 5 per case of the order. */
static void rank_cases(pl_order *order, uint32_t *predicted, double *values) {
  uint32_t n = 0, most = order->n_cases;
  order->has_other = true;
  for (uint32_t i = 0; i < order->n_cases; i++) {
    const pl_case *c = order->cases[i];
    predicted[i] = 0;
    if (c->reason != NULL) continue;
    predicted[i] = 1;
    for (uint32_t j = 0; j < order->n_cases; j++)
      if (order->cases[j]->reason == NULL && speed(order->cases[j]) > speed(c)) predicted[i]++;
    order->has_other &= c->row->other_rank > 0;
    values[n] = -(double)c->row->measured_rank;
    values[most + n] = speed(c);
    values[2 * (size_t)most + n++] = -(double)c->row->other_rank;
  }
  order->n_expressed = n;
  order->predicted = predicted;
  for (uint32_t i = 0; i < 2; i++)
    order->spearman[i] = n < 2 || (i == 1 && !order->has_other)
                             ? NAN
                             : pl_spearman(values, values + (size_t)(i + 1) * most, n, values + (size_t)3 * most);
}

static pl_code take_orders(const pl_cases *cases, pl_arena *arena, pl_besides *besides, pl_error *error) {
  const pl_case **ranked = PL_TAKE(arena, const pl_case *, cases->n_cases);
  uint32_t *predicted = PL_TAKE(arena, uint32_t, cases->n_cases);
  double *values = PL_TAKE(arena, double, (size_t)5 * cases->n_cases);
  besides->orders = PL_TAKE(arena, pl_order, cases->n_cases);
  if (arena->failed) return pl_fail_memory(error, "the report");
  uint32_t n = 0;
  for (uint32_t i = 0; i < cases->n_cases; i++)
    if (cases->cases[i].row->measured_rank > 0) ranked[n++] = &cases->cases[i];
  qsort(ranked, n, sizeof *ranked, compare_cases);
  for (uint32_t first = 0, count; first < n; first += count) {
    for (count = 1; first + count < n && compare_groups(ranked[first]->row, ranked[first + count]->row) == 0; count++)
      continue;
    pl_order *order = &besides->orders[besides->n_orders++];
    *order = (pl_order){.cases = ranked + first, .n_cases = count};
    rank_cases(order, predicted + first, values);
  }
  return PL_OK;
}

pl_code pl_besides_take(const pl_cases *cases, pl_arena *arena, pl_besides *besides, pl_error *error) {
  *besides = (pl_besides){.n_families = 0};
  PL_TRY(take_families(cases, arena, besides, error));
  return take_orders(cases, arena, besides, error);
}
