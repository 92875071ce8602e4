/* See validation/fit/site_prior.h. */
#include "validation/fit/site_prior.h"

#include <math.h>
#include <string.h>

#include "validation/fit/site_evidence.h"
#include "validation/fit/site_memory.h"
#include "validation/statistics/quasi_newton.h"

enum { OF_SITE = 20, OF_SOURCE = 160, OF_SINGLE_SITE = 30, ITERATIONS = 400, TIMES = 200 };
static const double DEGREES = 8, TOLERANCE = 1e-3; /* of the logarithm of the probability of all runs */

struct pl_site_prior {
  const pl_site_rows *rows;
  const pl_evidence_group *sources, *sites;
  uint32_t n_sources, n_sites;
  bool is_known; /* that of all sources: from where the others begin */
  double belief[PL_BELIEF_COUNT], inverse[PL_BELIEF_COUNT * PL_BELIEF_COUNT];
};

/* ---- the runs that count ---- */

/* Of list[n] `most`, evenly spaced, to its beginning. */
static uint32_t thin(const pl_site_run **list, uint32_t n, uint32_t most) {
  if (n <= most) return n;
  for (uint32_t i = 0; i < most; i++)
    list[i] = list[(uint64_t)i * (n - 1) / (most - 1)];
  return most;
}

static uint32_t runs_of_site(const pl_site_rows *rows, uint32_t site, uint32_t most, const pl_site_run **list) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < rows->n; i++)
    if (rows->rows[i].site == site) list[n++] = &rows->rows[i].run;
  return thin(list, n, most);
}

static uint32_t source_of_site(const pl_site_rows *rows, uint32_t site) {
  for (uint32_t i = 0; i < rows->n; i++)
    if (rows->rows[i].site == site) return rows->rows[i].source;
  return UINT32_MAX;
}

/* A source counts by the root of its runs, one of 10 once: what its runs share and no hypothesis has makes them fewer
 * than they are. */
static double weight_of(uint32_t n) {
  return sqrt(10.0 / fmax(1, n));
}

static pl_code fill(const pl_site_run *const *list, uint32_t n, uint32_t source, pl_arena *arena,
                    pl_evidence_group *group, pl_error *error) {
  const pl_site_run **runs = PL_TAKE(arena, const pl_site_run *, n + 1);
  if (runs == NULL) return pl_fail_memory(error, "the prior of sites");
  memcpy(runs, list, n * sizeof *runs);
  *group = (pl_evidence_group){.runs = runs, .n = n, .source = source, .weight = weight_of(n)};
  for (int axis = 0; axis < PL_LIKENESS_COUNT; axis++) {
    group->apart[axis] = PL_TAKE(arena, double, (size_t)n *n + 1);
    if (group->apart[axis] == NULL) return pl_fail_memory(error, "the prior of sites");
    for (uint32_t i = 0; i < n; i++)
      for (uint32_t k = 0; k < n; k++)
        group->apart[axis][(size_t)i * n + k] = pl_configuration_apart(&runs[i]->at, &runs[k]->at, axis);
  }
  return PL_OK;
}

pl_code pl_site_prior_prepare(const pl_site_rows *rows, pl_arena *arena, pl_site_prior **prior, pl_error *error) {
  pl_site_prior *own = PL_TAKE(arena, pl_site_prior, 1);
  pl_evidence_group *sources = PL_TAKE(arena, pl_evidence_group, rows->n_sources + 1),
                    *sites = PL_TAKE(arena, pl_evidence_group, rows->n_sites + 1);
  const pl_site_run **list = PL_TAKE(arena, const pl_site_run *, rows->n + 1);
  if (arena->failed) return pl_fail_memory(error, "the prior of sites");
  for (uint32_t site = 0; site < rows->n_sites; site++) {
    uint32_t n = runs_of_site(rows, site, OF_SINGLE_SITE, list);
    PL_TRY(fill(list, n, source_of_site(rows, site), arena, &sites[site], error));
  }
  for (uint32_t source = 0; source < rows->n_sources; source++) {
    uint32_t n = 0;
    for (uint32_t site = 0; site < rows->n_sites; site++)
      if (sites[site].source == source) n += runs_of_site(rows, site, OF_SITE, list + n);
    PL_TRY(fill(list, thin(list, n, OF_SOURCE), source, arena, &sources[source], error));
  }
  *own = (pl_site_prior){
      .rows = rows, .sources = sources, .sites = sites, .n_sources = rows->n_sources, .n_sites = rows->n_sites};
  *prior = own;
  return PL_OK;
}

/* ---- how often which scatter and size occur ---- */

/* By expectation and maximisation over single sites, all else fixed. */
static pl_code count_scatters(const pl_site_prior *own, uint32_t without, pl_arena *arena, pl_site *site,
                              pl_site_remains *remains, pl_error *error) {
  double(*logs)[PL_REMAINS_SCALES][PL_SITE_SCATTERS] =
      pl_arena_take(arena, (own->n_sites + 1) * sizeof *logs, _Alignof(double));
  if (logs == NULL) return pl_fail_memory(error, "the prior of sites");
  uint32_t n = 0;
  for (uint32_t s = 0; s < own->n_sites; s++)
    if (own->sites[s].source != without)
      PL_TRY(pl_evidence_of_group(&own->sites[s], site, remains, arena, logs[n++], error));
  for (int time = 0; time < TIMES; time++) {
    double scatter[PL_SITE_SCATTERS] = {0}, scale[PL_REMAINS_SCALES] = {0};
    for (uint32_t s = 0; s < n; s++) {
      double most = -INFINITY, sum = 0, p[PL_REMAINS_SCALES][PL_SITE_SCATTERS];
      for (int h = 0; h < PL_REMAINS_SCALES; h++)
        for (int g = 0; g < PL_SITE_SCATTERS; g++) {
          p[h][g] = logs[s][h][g] + log(remains->scale_weight[h]) + log(site->scatter_weight[g]);
          most = fmax(most, p[h][g]);
        }
      for (int h = 0; h < PL_REMAINS_SCALES; h++)
        for (int g = 0; g < PL_SITE_SCATTERS; g++)
          sum += p[h][g] = exp(p[h][g] - most);
      for (int h = 0; h < PL_REMAINS_SCALES; h++)
        for (int g = 0; g < PL_SITE_SCATTERS; g++) {
          scatter[g] += p[h][g] / sum;
          scale[h] += p[h][g] / sum;
        }
    }
    for (int g = 0; g < PL_SITE_SCATTERS; g++)
      site->scatter_weight[g] = (scatter[g] + 0.5) / (n + 0.5 * PL_SITE_SCATTERS);
    for (int h = 0; h < PL_REMAINS_SCALES; h++)
      remains->scale_weight[h] = (scale[h] + 0.5) / (n + 0.5 * PL_REMAINS_SCALES);
  }
  return PL_OK;
}

pl_code pl_site_prior_take(pl_site_prior *own, uint32_t without, uint32_t n_threads, pl_arena *arena, pl_site *site,
                           pl_error *error) {
  pl_site_remains *remains = PL_TAKE(arena, pl_site_remains, 1);
  if (remains == NULL) return pl_fail_memory(error, "the prior of sites");
  pl_arena_mark mark = pl_arena_mark_here(arena);
  double belief[PL_BELIEF_COUNT], inverse[PL_BELIEF_COUNT * PL_BELIEF_COUNT];
  pl_evidence evidence = {
      .groups = own->sources, .n_groups = own->n_sources, .without = without, .n_threads = n_threads, .arena = arena};
  memcpy(inverse, own->inverse, sizeof inverse);
  memcpy(belief, own->belief, sizeof belief);
  if (!own->is_known) pl_belief_begin(belief);
  pl_quasi_newton(pl_evidence_against, &evidence, belief, PL_BELIEF_COUNT, inverse, TOLERANCE, ITERATIONS);
  if (evidence.failed) return pl_fail_memory(error, "the prior of sites");
  pl_belief_site(belief, site, remains);
  site->degrees = DEGREES;
  if (without == UINT32_MAX) {
    memcpy(own->inverse, inverse, sizeof inverse);
    memcpy(own->belief, belief, sizeof belief);
    own->is_known = true;
  }
  PL_TRY(count_scatters(own, without, arena, site, remains, error));
  PL_TRY(pl_site_memory_prior(own->rows, without, arena, site, error));
  pl_arena_release_to(arena, mark);
  return PL_OK;
}
