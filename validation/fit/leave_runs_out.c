/* See validation/fit/leave_runs_out.h. */
#include "validation/fit/leave_runs_out.h"

#include <math.h>

#include "core/base/split_mix.h"
#include "validation/fit/site_prior.h"
#include "validation/fit/site_relatives.h"
#include "validation/statistics/statistics.h"
#include "workloads/run/site_interval.h"

const uint32_t pl_leave_sizes[PL_LEAVE_SIZES] = {0, 1, 2, 3, 5};

typedef struct group {
  const pl_site_row *const *rows;
  pl_site_run *runs; /* the same, in a row */
  uint32_t *parts;   /* the site of each, counted from 0; as if all were one: 0 */
  uint32_t n, n_parts;
  bool *is_known;
  pl_site_sums *sums; /* room for two per part */
  pl_site *sites;     /* of each part */
  double shared;      /* between parts */
} group;

typedef struct score {
  double error, covered;
} score;

/* k of each part, but one of it is left. */
static void draw(const group *g, uint32_t k, uint64_t *random) {
  for (uint32_t i = 0; i < g->n; i++)
    g->is_known[i] = false;
  for (uint32_t p = 0; p < g->n_parts; p++) {
    uint32_t size = 0;
    for (uint32_t i = 0; i < g->n; i++)
      size += g->parts[i] == p;
    uint32_t wanted = k < size ? k : size - 1;
    while (wanted > 0) {
      uint32_t i = (uint32_t)(pl_split_mix(random) % g->n);
      if (g->parts[i] != p || g->is_known[i]) continue;
      g->is_known[i] = true;
      wanted--;
    }
  }
}

/* Each part's site from its own known runs and, as relatives, the other parts'. */
static void learn(const group *g, const pl_site *prior) {
  pl_site_sums *relatives = g->sums + g->n_parts;
  for (uint32_t p = 0; p < g->n_parts; p++)
    g->sums[p] = (pl_site_sums){.n = 0};
  for (uint32_t i = 0; i < g->n; i++)
    if (g->is_known[i]) pl_site_sums_add(&g->sums[g->parts[i]], &g->runs[i]);
  for (uint32_t p = 0; p < g->n_parts; p++) {
    uint32_t n = 0;
    for (uint32_t other = 0; other < g->n_parts; other++)
      if (other != p && g->sums[other].n > 0) relatives[n++] = g->sums[other];
    g->sites[p] = pl_site_posterior_beside(prior, &g->sums[p], relatives, n, g->shared);
  }
}

static score score_of(const group *g, const pl_site *prior) {
  score sum = {0, 0};
  uint32_t n = 0;
  learn(g, prior);
  for (uint32_t i = 0; i < g->n; i++) {
    if (g->is_known[i]) continue;
    const pl_site *site = &g->sites[g->parts[i]];
    double off = pl_site_middle(site, g->runs[i].x) - g->runs[i].y;
    sum.error += fabs(exp(off) - 1);
    sum.covered += fabs(off) <= pl_site_half_width(site, g->runs[i].x);
    n++;
  }
  return (score){100 * sum.error / n, 100 * sum.covered / n};
}

/* Predictions and intervals as they are without a site. */
static score score_without(const group *g) {
  score sum = {0, 0};
  for (uint32_t i = 0; i < g->n; i++) {
    sum.error += fabs(exp(-g->runs[i].y) - 1);
    sum.covered += g->runs[i].y >= g->rows[i]->low && g->runs[i].y <= g->rows[i]->high;
  }
  return (score){100 * sum.error / g->n, 100 * sum.covered / g->n};
}

static score score_random(const group *g, const pl_site *prior, uint32_t k, uint64_t seed) {
  score sum = {0, 0};
  for (int d = 0; d < PL_LEAVE_DRAWS; d++) {
    draw(g, k, &seed);
    score one = score_of(g, prior);
    sum.error += one.error / PL_LEAVE_DRAWS;
    sum.covered += one.covered / PL_LEAVE_DRAWS;
  }
  return sum;
}

static score score_suggested(const group *g, const pl_site *prior, uint32_t k) {
  uint32_t chosen[8], n = pl_site_suggest(prior, g->runs, g->n, NULL, g->runs, g->n, k, chosen);
  for (uint32_t i = 0; i < g->n; i++)
    g->is_known[i] = false;
  for (uint32_t i = 0; i < n; i++)
    g->is_known[chosen[i]] = true;
  return score_of(g, prior);
}

/* ---- all groups ---- */

typedef struct scores {
  double *errors[2][PL_LEAVE_SIZES]; /* [suggested], per group */
  double covered[2][PL_LEAVE_SIZES], sum[2][PL_LEAVE_SIZES];
} scores;

static void note(scores *all, int suggested, int size, uint32_t index, score one) {
  all->errors[suggested][size][index] = one.error;
  all->sum[suggested][size] += one.error;
  all->covered[suggested][size] += one.covered;
}

static void leave(const group *g, pl_leave_by by, const pl_site *prior, uint32_t index, scores *all) {
  for (int size = 0; size < PL_LEAVE_SIZES; size++) {
    uint32_t k = pl_leave_sizes[size];
    note(all, 0, size, index, k == 0 ? score_without(g) : score_random(g, prior, k, index));
    if (by != PL_LEAVE_BY_RELATIVES)
      note(all, 1, size, index, k == 0 ? score_without(g) : score_suggested(g, prior, k));
  }
}

static uint32_t group_of(const pl_site_row *row, pl_leave_by by) {
  return by == PL_LEAVE_BY_SITE ? row->site : row->source;
}

/* The number of the site of row i among those of the rows before it. */
static uint32_t part_of(const group *g, uint32_t i) {
  for (uint32_t k = 0; k < i; k++)
    if (g->rows[k]->site == g->rows[i]->site) return g->parts[k];
  return g->n_parts;
}

static bool collect(const pl_site_rows *rows, pl_leave_by by, uint32_t which, pl_arena *arena, group *g) {
  const pl_site_row **list = PL_TAKE(arena, const pl_site_row *, rows->n);
  *g = (group){.rows = list,
               .runs = PL_TAKE(arena, pl_site_run, rows->n),
               .parts = PL_TAKE(arena, uint32_t, rows->n),
               .is_known = PL_TAKE(arena, bool, rows->n)};
  if (arena->failed) return false;
  for (uint32_t i = 0; i < rows->n; i++)
    if (group_of(&rows->rows[i], by) == which) {
      list[g->n] = &rows->rows[i];
      g->runs[g->n++] = rows->rows[i].run;
    }
  for (uint32_t i = 0; i < g->n; i++) {
    g->parts[i] = by == PL_LEAVE_BY_SOURCE ? 0 : part_of(g, i);
    if (g->parts[i] >= g->n_parts) g->n_parts = g->parts[i] + 1;
  }
  g->sums = PL_TAKE(arena, pl_site_sums, 2 * g->n_parts);
  g->sites = PL_TAKE(arena, pl_site, g->n_parts);
  return !arena->failed;
}

static void summarise(scores *all, uint32_t n, pl_leaving *leaving) {
  for (int suggested = 0; suggested < 2; suggested++)
    for (int size = 0; size < PL_LEAVE_SIZES; size++) {
      pl_left_out *left = suggested ? &leaving->suggested[size] : &leaving->random[size];
      left->mape_pct = all->sum[suggested][size] / n;
      left->coverage_pct = all->covered[suggested][size] / n;
      left->median_pct = pl_median(all->errors[suggested][size], n);
    }
}

pl_code pl_leave_runs_out(const pl_site_rows *rows, pl_leave_by by, const pl_site *prior, pl_arena *arena,
                          pl_leaving *leaving, pl_error *error) {
  uint32_t n_groups = by == PL_LEAVE_BY_SITE ? rows->n_sites : rows->n_sources;
  pl_site *priors = PL_TAKE(arena, pl_site, rows->n_sources);
  bool *has_prior = PL_TAKE(arena, bool, rows->n_sources);
  scores all = {.covered = {{0}}};
  for (int i = 0; i < 2 * PL_LEAVE_SIZES; i++)
    all.errors[i / PL_LEAVE_SIZES][i % PL_LEAVE_SIZES] = PL_TAKE(arena, double, n_groups);
  if (arena->failed) return pl_fail_memory(error, "the rows of sites");
  *leaving = (pl_leaving){.n_groups = 0};
  for (uint32_t which = 0; which < n_groups; which++) {
    group g;
    pl_arena_mark mark = pl_arena_mark_here(arena);
    if (!collect(rows, by, which, arena, &g)) return pl_fail_memory(error, "the rows of sites");
    if (g.n >= PL_LEAVE_LEAST) {
      uint32_t source = g.rows[0]->source;
      if (!has_prior[source]) PL_TRY(pl_site_prior_take(rows, source, prior, arena, &priors[source], error));
      has_prior[source] = true;
      g.shared = 1;
      if (g.n_parts > 1) PL_TRY(pl_site_shared_take(rows, source, &priors[source], arena, &g.shared, error));
      leave(&g, by, &priors[source], leaving->n_groups++, &all);
    }
    pl_arena_release_to(arena, mark);
  }
  if (leaving->n_groups == 0)
    return pl_fail(error, PL_BAD_INPUT, "no site has %d measured configurations", PL_LEAVE_LEAST);
  summarise(&all, leaving->n_groups, leaving);
  return PL_OK;
}
