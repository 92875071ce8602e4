/* See validation/interval.h. */
#include "validation/interval.h"

#include <stdlib.h>
#include <string.h>

typedef struct residual {
  double ratio, weight;
} residual;

static int compare(const void *left, const void *right) {
  const residual *a = left, *b = right;
  return (a->ratio > b->ratio) - (a->ratio < b->ratio);
}

static uint32_t count_family(const pl_cases *cases, const char *family) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < cases->n_cases; i++)
    n += pl_case_is_timed(&cases->cases[i]) && strcmp(cases->cases[i].row->family, family) == 0;
  return n;
}

/* The smallest ratio that the share `q` of all weight does not exceed. */
static double weighted_quantile(const residual *sorted, uint32_t n, double q) {
  double total = 0, sum = 0;
  for (uint32_t i = 0; i < n; i++)
    total += sorted[i].weight;
  for (uint32_t i = 0; i < n; i++) {
    sum += sorted[i].weight;
    if (sum >= q * total * (1 - 1e-12)) return sorted[i].ratio;
  }
  return sorted[n - 1].ratio;
}

pl_code pl_interval_of(const pl_cases *residuals, pl_arena *arena, pl_interval *interval, pl_error *error) {
  enum { FEWEST = 10 };
  *interval = (pl_interval){0};
  residual *all = PL_TAKE(arena, residual, residuals->n_cases);
  if (all == NULL) return pl_fail_memory(error, "the residuals");
  for (uint32_t i = 0; i < residuals->n_cases; i++) {
    const pl_case *c = &residuals->cases[i];
    if (!pl_case_is_timed(c)) continue;
    all[interval->n_cases++] =
        (residual){c->measured_s / c->result.iter_time_s, 1.0 / count_family(residuals, c->row->family)};
  }
  if (interval->n_cases < FEWEST)
    return pl_fail(error, PL_BAD_INPUT, "--interval: %u configurations to take residuals from; at least %d are needed",
                   interval->n_cases, FEWEST);
  qsort(all, interval->n_cases, sizeof *all, compare);
  interval->low = weighted_quantile(all, interval->n_cases, (1 - PL_INTERVAL_SHARE) / 2);
  interval->high = weighted_quantile(all, interval->n_cases, (1 + PL_INTERVAL_SHARE) / 2);
  return PL_OK;
}

void pl_interval_apply(const pl_interval *interval, pl_cases *cases) {
  for (uint32_t i = 0; i < cases->n_cases; i++) {
    pl_case *c = &cases->cases[i];
    if (c->reason != NULL) continue;
    c->low_s = interval->low * c->result.iter_time_s;
    c->high_s = interval->high * c->result.iter_time_s;
  }
}
