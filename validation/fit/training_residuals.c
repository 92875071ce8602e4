/* See validation/fit/training_residuals.h. */
#include "validation/fit/training_residuals.h"

#include <math.h>
#include <string.h>

#include "validation/fit/residual_pool.h"
#include "validation/statistics/statistics.h"

enum { LEAST_CASES = 10, MOST_GROUPS = 32 };

typedef struct run_group {
  const char *family, *gpu;
  double median;
  uint32_t n;
} run_group;

static double residual_of(const pl_case *c) {
  return log(c->measured_s / c->result.iter_time_s);
}

static bool is_in(const pl_case *c, const run_group *group) {
  return pl_case_is_timed(c) && strcmp(c->row->family, group->family) == 0 && strcmp(c->row->gpu, group->gpu) == 0;
}

static bool is_known(const pl_case *c, const run_group *groups, uint32_t n) {
  for (uint32_t g = 0; g < n; g++)
    if (is_in(c, &groups[g])) return true;
  return false;
}

static void find_median(const pl_cases *cases, run_group *group, double *scratch) {
  for (uint32_t i = 0; i < cases->n_cases; i++)
    if (is_in(&cases->cases[i], group)) scratch[group->n++] = residual_of(&cases->cases[i]);
  group->median = pl_median(scratch, group->n);
}

/* Groups of LEAST_CASES and more. */
static uint32_t find_groups(const pl_cases *cases, run_group *groups, double *scratch) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < cases->n_cases && n < MOST_GROUPS; i++) {
    const pl_case *c = &cases->cases[i];
    if (!pl_case_is_timed(c) || is_known(c, groups, n)) continue;
    groups[n] = (run_group){.family = c->row->family, .gpu = c->row->gpu};
    find_median(cases, &groups[n], scratch);
    n++;
  }
  uint32_t kept = 0;
  for (uint32_t g = 0; g < n; g++)
    if (groups[g].n >= LEAST_CASES) groups[kept++] = groups[g];
  return kept;
}

/* Student's t, the 90th percentile. */
static double student(uint32_t degrees) {
  static const double t[] = {3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372};
  return degrees <= sizeof t / sizeof *t ? t[degrees - 1] : 1.2816;
}

static void find_source(const run_group *groups, uint32_t n, pl_residuals *residuals) {
  double sum = 0, square = 0;
  for (uint32_t g = 0; g < n; g++)
    sum += groups[g].median / n;
  for (uint32_t g = 0; g < n; g++)
    square += (groups[g].median - sum) * (groups[g].median - sum);
  residuals->centre = sum;
  residuals->half[PL_RESIDUAL_source] = student(n - 1) * sqrt(square / (n - 1)) * sqrt(1 + 1.0 / n);
}

static double square_of_kinds(const pl_interval *interval) {
  double square = 0;
  for (int kind = 0; kind < PL_DOUBT_RUN; kind++)
    square += interval->half[kind] * interval->half[kind];
  return square;
}

static pl_code find_run(const pl_cases *cases, const run_group *groups, uint32_t n, pl_arena *arena,
                        pl_residuals *residuals, pl_error *error) {
  pl_residual_pool pool = pl_residual_pool_in(arena);
  for (uint32_t g = 0; g < n; g++) {
    for (uint32_t i = 0; i < cases->n_cases; i++) {
      const pl_case *c = &cases->cases[i];
      if (!is_in(c, &groups[g])) continue;
      double off = residual_of(c) - groups[g].median;
      pl_residual_pool_put(&pool, fmax(0, off * off - square_of_kinds(&c->interval)));
    }
    pl_residual_pool_close_group(&pool);
  }
  residuals->half[PL_RESIDUAL_run] = sqrt(pl_residual_pool_quantile(&pool, PL_INTERVAL_SHARE));
  residuals->provenance[PL_RESIDUAL_run] = pl_arena_printf(
      arena, "training runs, beyond what their kinds of doubt explain: %u runs in %u groups (family, GPU)", pool.n, n);
  residuals->provenance[PL_RESIDUAL_source] =
      pl_arena_printf(arena, "between %u groups of training runs, 80 %% of new ones by Student's t", n);
  return arena->failed ? pl_fail_memory(error, "the residuals") : PL_OK;
}

/* Of all cases: the aspects that pl_interval_take found unseen when none was seen. */
static pl_code find_seen(const pl_cases *cases, pl_arena *arena, pl_residuals *residuals, pl_error *error) {
  enum { MOST = 64 };
  const char **seen = PL_TAKE(arena, const char *, MOST);
  residuals->seen = seen;
  residuals->n_seen = 0;
  for (uint32_t i = 0; seen != NULL && i < cases->n_cases; i++) {
    const pl_aspects *aspects = &cases->cases[i].interval.unseen;
    if (!pl_case_is_timed(&cases->cases[i])) continue;
    for (uint32_t a = 0; a < aspects->n && residuals->n_seen < MOST; a++)
      if (!pl_residuals_have_seen(residuals, aspects->text[a]))
        seen[residuals->n_seen++] = pl_arena_strdup(arena, aspects->text[a]);
  }
  return arena->failed ? pl_fail_memory(error, "the residuals") : PL_OK;
}

pl_code pl_training_residuals_take(const pl_cases *cases, pl_arena *arena, pl_residuals *residuals, pl_error *error) {
  run_group *groups = PL_TAKE(arena, run_group, MOST_GROUPS);
  double *scratch = PL_TAKE(arena, double, cases->n_cases);
  if (groups == NULL || scratch == NULL) return pl_fail_memory(error, "the residuals");
  uint32_t n = find_groups(cases, groups, scratch);
  if (n < 2)
    return pl_fail(error, PL_BAD_INPUT,
                   "training runs of %u families and GPUs with %d configurations or more: two are needed to tell how "
                   "far sources lie apart",
                   n, LEAST_CASES);
  find_source(groups, n, residuals);
  PL_TRY(find_run(cases, groups, n, arena, residuals, error));
  return find_seen(cases, arena, residuals, error);
}
