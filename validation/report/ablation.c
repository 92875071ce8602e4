/* See validation/report/ablation.h. */
#include "validation/report/ablation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "validation/statistics/statistics.h"

const char *const pl_variant_names[PL_VARIANT_COUNT] = {[PL_VARIANT_ALL] = "all",
                                                        [PL_VARIANT_NO_OVERLAP] = "no_overlap_factor",
                                                        [PL_VARIANT_NO_SHARING] = "no_sharing",
                                                        [PL_VARIANT_NEITHER] = "neither"};

typedef struct ablating {
  const pl_cases *cases;
  double *times[PL_VARIANT_COUNT]; /* by case */
  double *scratch;
} ablating;

/* Results do not depend on who else is simulated, so a copy of the cases is as good as they. */
static pl_code run_variant(ablating *state, pl_variant variant, const pl_case_options *given, pl_arena *arena,
                           pl_error *error) {
  pl_case_options options = *given;
  options.residuals = NULL;
  options.no_overlap_factor = variant == PL_VARIANT_NO_OVERLAP || variant == PL_VARIANT_NEITHER;
  if (variant == PL_VARIANT_NO_SHARING || variant == PL_VARIANT_NEITHER) options.network = PL_NETWORK_ANALYTIC;
  pl_cases copy = *state->cases;
  copy.cases = PL_COPY(arena, pl_case, state->cases->cases, copy.n_cases);
  if (copy.cases == NULL) return pl_fail_memory(error, "the ablation");
  if (variant != PL_VARIANT_ALL) PL_TRY(pl_cases_simulate(&copy, &options, arena, error));
  for (uint32_t i = 0; i < copy.n_cases; i++)
    state->times[variant][i] = copy.cases[i].reason == NULL ? copy.cases[i].result.iter_time_s : NAN;
  return PL_OK;
}

static double change_pct(const ablating *state, const pl_case *c) {
  size_t i = (size_t)(c - state->cases->cases);
  return 100 * (state->times[PL_VARIANT_ALL][i] / state->times[PL_VARIANT_NO_SHARING][i] - 1);
}

static void find_errors(const ablating *state, const pl_case_group *group, pl_ablated_family *family) {
  for (int variant = 0; variant < PL_VARIANT_COUNT; variant++) {
    uint32_t n = 0;
    double sum = 0;
    for (uint32_t i = 0; i < group->n_cases; i++) {
      const pl_case *c = group->cases[i];
      if (!pl_case_is_timed(c)) continue;
      state->scratch[n] = fabs(state->times[variant][c - state->cases->cases] / c->measured_s - 1);
      sum += state->scratch[n++];
    }
    family->n_timed = n;
    family->mape_pct[variant] = n > 0 ? 100 * sum / n : NAN;
    family->median_pct[variant] = 100 * pl_median(state->scratch, n);
  }
}

static void find_shared(const ablating *state, const pl_case_group *group, pl_ablated_family *family) {
  static const pl_variant variants[2] = {PL_VARIANT_ALL, PL_VARIANT_NO_SHARING};
  double sums[2] = {0, 0};
  for (uint32_t i = 0; i < group->n_cases; i++) {
    const pl_case *c = group->cases[i];
    if (!pl_case_is_timed(c) || !(fabs(change_pct(state, c)) > 1)) continue;
    family->n_shared++;
    for (int v = 0; v < 2; v++)
      sums[v] += fabs(state->times[variants[v]][c - state->cases->cases] / c->measured_s - 1);
  }
  for (int v = 0; v < 2; v++)
    family->shared_mape_pct[v] = family->n_shared > 0 ? 100 * sums[v] / family->n_shared : NAN;
}

static pl_ablated_family ablate(const ablating *state, const pl_case_group *group) {
  pl_ablated_family family = {.name = group->name};
  find_errors(state, group, &family);
  find_shared(state, group, &family);
  for (uint32_t i = 0; i < group->n_cases; i++) {
    if (group->cases[i]->reason != NULL) continue;
    double change = fabs(change_pct(state, group->cases[i]));
    family.n_expressed++;
    family.n_over_1 += change > 1;
    family.n_over_5 += change > 5;
    family.most_pct = fmax(family.most_pct, change);
  }
  return family;
}

static int compare_changes(const void *left, const void *right) {
  const pl_shared_case *a = left, *b = right;
  double x = fabs(a->change_pct), y = fabs(b->change_pct);
  return x != y ? (x < y) - (x > y) : (a->c > b->c) - (a->c < b->c);
}

static pl_code find_largest(const ablating *state, pl_arena *arena, pl_ablation *ablation, pl_error *error) {
  uint32_t n = 0;
  pl_shared_case *all = PL_TAKE(arena, pl_shared_case, state->cases->n_cases);
  if (all == NULL) return pl_fail_memory(error, "the ablation");
  for (uint32_t i = 0; i < state->cases->n_cases; i++) {
    const pl_case *c = &state->cases->cases[i];
    if (c->reason == NULL && change_pct(state, c) != 0)
      all[n++] = (pl_shared_case){.c = c, .change_pct = change_pct(state, c)};
  }
  if (n > 0) qsort(all, n, sizeof *all, compare_changes);
  ablation->n_largest = n < PL_ABLATION_WORST ? n : PL_ABLATION_WORST;
  memcpy(ablation->largest, all, ablation->n_largest * sizeof *all);
  return PL_OK;
}

pl_code pl_ablation_take(const pl_cases *cases, const pl_report *report, const pl_case_options *options,
                         pl_arena *arena, pl_ablation *ablation, pl_error *error) {
  ablating state = {.cases = cases, .scratch = PL_TAKE(arena, double, cases->n_cases)};
  const pl_case_groups *groups = &report->by[PL_BY_FAMILY];
  pl_ablated_family *families = PL_TAKE(arena, pl_ablated_family, groups->n_groups + 1);
  for (int variant = 0; variant < PL_VARIANT_COUNT; variant++)
    state.times[variant] = PL_TAKE(arena, double, cases->n_cases);
  if (arena->failed) return pl_fail_memory(error, "the ablation");
  for (int variant = 0; variant < PL_VARIANT_COUNT; variant++)
    PL_TRY(run_variant(&state, (pl_variant)variant, options, arena, error));
  *ablation = (pl_ablation){.families = families};
  for (uint32_t g = 0; g < groups->n_groups; g++)
    if (groups->groups[g].statistics.n_expressed > 0)
      families[ablation->n_families++] = ablate(&state, &groups->groups[g]);
  families[ablation->n_families++] = ablate(&state, &report->by[PL_BY_ALL].groups[0]);
  return find_largest(&state, arena, ablation, error);
}
