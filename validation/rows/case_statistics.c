/* See validation/rows/case_statistics.h. */
#include "validation/rows/case_statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "validation/statistics/statistics.h"

/* ---- groups that can be compared ---- */

static int compare_counts(int64_t a, int64_t b) {
  return (a > b) - (a < b);
}

/* Model by layers and width: names are as fine or as coarse as their authors pleased. */
static int compare_jobs(const pl_case *a, const pl_case *b) {
  const pl_measured_row *x = a->row, *y = b->row;
  int order = strcmp(x->family, y->family);
  if (order == 0) order = strcmp(x->gpu, y->gpu);
  if (order == 0) order = strcmp(x->framework, y->framework);
  if (order == 0) order = strcmp(x->precision, y->precision);
  if (order == 0) order = compare_counts(x->n_gpus, y->n_gpus);
  if (order == 0) order = compare_counts(x->n_layers, y->n_layers);
  if (order == 0) order = compare_counts(x->hidden, y->hidden);
  return order == 0 ? compare_counts(x->n_experts, y->n_experts) : order;
}

static int compare_sorted(const void *left, const void *right) {
  const pl_case *a = *(const pl_case *const *)left, *b = *(const pl_case *const *)right;
  int order = compare_jobs(a, b);
  if (order == 0) order = compare_counts(a->row->seq_len, b->row->seq_len);
  return order != 0 ? order : a < b ? -1 : a > b;
}

typedef struct scratch {
  const pl_case **timed;
  double *values; /* 4 per case */
} scratch;

static double measured_flops(const pl_case *c) {
  return c->flops / c->measured_s;
}

static double predicted_flops(const pl_case *c) {
  return c->flops / c->result.iter_time_s;
}

static void rank_group(const pl_case *const *group, uint32_t n, double *values, pl_statistics *s, double *weight) {
  if (n < PL_SPEARMAN_CASES) return;
  for (uint32_t i = 0; i < n; i++) {
    values[i] = measured_flops(group[i]);
    values[n + i] = predicted_flops(group[i]);
  }
  double rho = pl_spearman(values, values + n, n, values + (size_t)2 * n);
  if (isnan(rho)) return;
  s->spearman += rho * n;
  *weight += n;
  s->n_ranked_groups++;
}

static void choose_in_group(const pl_case *const *group, uint32_t n, pl_statistics *s) {
  if (n < 2) return;
  double best = 0;
  const pl_case *chosen = group[0];
  for (uint32_t i = 0; i < n; i++) {
    best = fmax(best, measured_flops(group[i]));
    if (predicted_flops(group[i]) > predicted_flops(chosen)) chosen = group[i];
  }
  s->regret_pct += 100 * (best / measured_flops(chosen) - 1);
  s->n_choice_groups++;
}

static void compare_groups(const scratch *own, uint32_t n, pl_statistics *s) {
  double weight = 0;
  qsort(own->timed, n, sizeof *own->timed, compare_sorted);
  for (uint32_t first = 0, count; first < n; first += count) {
    for (count = 1; first + count < n && compare_jobs(own->timed[first], own->timed[first + count]) == 0; count++)
      continue;
    rank_group(own->timed + first, count, own->values, s, &weight);
    for (uint32_t i = 0, some; i < count; i += some) {
      int64_t seq = own->timed[first + i]->row->seq_len;
      for (some = 1; i + some < count && own->timed[first + i + some]->row->seq_len == seq; some++)
        continue;
      choose_in_group(own->timed + first + i, some, s);
    }
  }
  s->spearman = weight > 0 ? s->spearman / weight : NAN;
  s->regret_pct = s->n_choice_groups > 0 ? s->regret_pct / s->n_choice_groups : NAN;
}

/* ---- errors ---- */

static void summarise(double *errors, uint32_t n, double *mape_pct, double *bias_pct) {
  double sum = 0, absolute = 0;
  for (uint32_t i = 0; i < n; i++) {
    sum += errors[i];
    errors[i] = fabs(errors[i]);
    absolute += errors[i];
  }
  *mape_pct = n > 0 ? 100 * absolute / n : NAN;
  *bias_pct = n > 0 ? 100 * sum / n : NAN;
}

static void compare_memory(const pl_case *const *some, uint32_t n, double *errors, pl_statistics *s) {
  for (uint32_t i = 0; i < n; i++) {
    const pl_case *c = some[i];
    if (c->reason != NULL) continue;
    s->verdict[c->crashed][c->result.fits == 0]++;
    if (c->measured_mem_bytes > 0) errors[s->n_memory++] = c->predicted_mem_bytes / c->measured_mem_bytes - 1;
  }
  summarise(errors, s->n_memory, &s->memory_mape_pct, &s->memory_bias_pct);
  s->memory_median_ape_pct = 100 * pl_median(errors, s->n_memory);
}

pl_code pl_statistics_of(const pl_case *const *some, uint32_t n, pl_arena *arena, pl_statistics *statistics,
                         pl_error *error) {
  pl_arena_mark mark = pl_arena_mark_here(arena);
  scratch own = {PL_TAKE(arena, const pl_case *, n), PL_TAKE(arena, double, (size_t)4 * n)};
  if (own.timed == NULL || own.values == NULL) return pl_fail_memory(error, "the statistics");
  pl_statistics s = {.n_cases = n};
  uint32_t covered = 0, ranged = 0;
  for (uint32_t i = 0; i < n; i++) {
    s.n_rows += some[i]->n_rows;
    s.n_expressed += some[i]->reason == NULL;
    if (!pl_case_is_timed(some[i])) continue;
    covered +=
        (uint32_t)(some[i]->measured_s >= some[i]->interval.low_s && some[i]->measured_s <= some[i]->interval.high_s);
    ranged += isnan(some[i]->interval.low_s) ? 0 : 1;
    own.values[s.n_timed] = pl_case_error(some[i]);
    own.timed[s.n_timed++] = some[i];
  }
  s.coverage_pct = ranged > 0 ? 100.0 * covered / ranged : NAN;
  summarise(own.values, s.n_timed, &s.mape_pct, &s.bias_pct);
  s.median_ape_pct = 100 * pl_median(own.values, s.n_timed);
  s.p90_ape_pct = 100 * pl_quantile(own.values, s.n_timed, 0.9);
  compare_groups(&own, s.n_timed, &s);
  compare_memory(some, n, own.values, &s);
  *statistics = s;
  pl_arena_release_to(arena, mark);
  return PL_OK;
}
