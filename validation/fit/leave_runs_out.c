/* See validation/fit/leave_runs_out.h. */
#include "validation/fit/leave_runs_out.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/split_mix.h"
#include "validation/statistics/statistics.h"
#include "workloads/run/site_interval.h"

const uint32_t pl_leave_sizes[PL_LEAVE_SIZES] = {0, 1, 2, 3, 5};

typedef struct group {
  const pl_site_row *const *rows;
  pl_site_run *runs;       /* the same, in a row */
  const pl_site_run **few; /* room for those that are known */
  double *middle;          /* of each run, as ln(time / predicted) */
  bool *is_known;
  uint32_t *sites, n_sites; /* of each run, counted from 0; where runs are drawn from all together: 0 */
  uint32_t *choices, n_choices;
  uint32_t n;
  const pl_site *prior;
  pl_arena *arena;
  pl_error *error;
} group;

/* NaN: none. */
typedef struct score {
  double error, covered, regret, regret_without;
} score;

/* k of each site, but one of it is left. */
static void draw(const group *g, uint32_t k, uint64_t *random) {
  for (uint32_t i = 0; i < g->n; i++)
    g->is_known[i] = false;
  for (uint32_t s = 0; s < g->n_sites; s++) {
    uint32_t size = 0;
    for (uint32_t i = 0; i < g->n; i++)
      size += g->sites[i] == s;
    uint32_t wanted = k < size ? k : size - 1;
    while (wanted > 0) {
      uint32_t i = (uint32_t)(pl_split_mix(random) % g->n);
      if (g->sites[i] != s || g->is_known[i]) continue;
      g->is_known[i] = true;
      wanted--;
    }
  }
}

/* Of runs that are not known, among which one of each choice would be made. */
static double regret_of(const group *g) {
  double sum = 0;
  uint32_t n = 0;
  for (uint32_t c = 0; c < g->n_choices; c++) {
    uint32_t n_own = 0, chosen = 0;
    double best = 0, most = -INFINITY;
    for (uint32_t i = 0; i < g->n; i++) {
      if (g->is_known[i] || g->choices[i] != c) continue;
      double measured = g->rows[i]->speed * exp(-g->runs[i].y), predicted = g->rows[i]->speed * exp(-g->middle[i]);
      n_own++;
      best = fmax(best, measured);
      if (predicted <= most) continue;
      most = predicted;
      chosen = i;
    }
    if (n_own < 2) continue;
    sum += 100 * (best / (g->rows[chosen]->speed * exp(-g->runs[chosen].y)) - 1);
    n++;
  }
  return n > 0 ? sum / n : (double)NAN;
}

static pl_code score_known(const group *g, score *found) {
  pl_arena_mark mark = pl_arena_mark_here(g->arena);
  pl_site_knowledge *knowledge;
  pl_site site = *g->prior;
  uint32_t n_known = 0;
  *found = (score){0, 0, 0, 0};
  for (uint32_t i = 0; i < g->n; i++)
    if (g->is_known[i]) g->few[n_known++] = &g->runs[i];
  PL_TRY(pl_site_learn(g->prior, g->few, n_known, g->arena, &knowledge, g->error));
  for (int i = 0; i < PL_SITE_SCATTERS; i++)
    site.scatter_weight[i] = pl_site_scatter_known(knowledge)[i];
  for (uint32_t i = 0; i < g->n; i++)
    g->middle[i] = 0;
  found->regret_without = regret_of(g);
  for (uint32_t i = 0; i < g->n; i++) {
    double variance;
    if (g->is_known[i]) continue;
    g->middle[i] = pl_site_predict(knowledge, &g->runs[i], &variance);
    double off = g->middle[i] - g->runs[i].y;
    found->error += 100 * fabs(exp(off) - 1) / (g->n - n_known);
    found->covered += 100.0 * (fabs(off) <= pl_site_half_of(&site, variance)) / (g->n - n_known);
  }
  found->regret = regret_of(g);
  pl_arena_release_to(g->arena, mark);
  return PL_OK;
}

/* Predictions and intervals as they are without a site. */
static score score_without(const group *g) {
  score sum = {0, 0, 0, 0};
  for (uint32_t i = 0; i < g->n; i++) {
    g->is_known[i] = false;
    g->middle[i] = 0;
    sum.error += 100 * fabs(exp(-g->runs[i].y) - 1) / g->n;
    sum.covered += 100.0 * (g->runs[i].y >= g->rows[i]->low && g->runs[i].y <= g->rows[i]->high) / g->n;
  }
  sum.regret = sum.regret_without = regret_of(g);
  return sum;
}

static pl_code score_random(const group *g, uint32_t k, uint64_t seed, score *sum) {
  uint32_t n_regrets = 0;
  *sum = (score){0, 0, 0, 0};
  for (int d = 0; d < PL_LEAVE_DRAWS; d++) {
    score one;
    draw(g, k, &seed);
    PL_TRY(score_known(g, &one));
    sum->error += one.error / PL_LEAVE_DRAWS;
    sum->covered += one.covered / PL_LEAVE_DRAWS;
    if (isnan(one.regret)) continue;
    sum->regret += one.regret;
    sum->regret_without += one.regret_without;
    n_regrets++;
  }
  sum->regret = n_regrets > 0 ? sum->regret / n_regrets : (double)NAN;
  sum->regret_without = n_regrets > 0 ? sum->regret_without / n_regrets : (double)NAN;
  return PL_OK;
}

static pl_code score_suggested(const group *g, uint32_t k, score *found) {
  uint32_t chosen[8], n;
  PL_TRY(pl_site_suggest(g->prior, g->runs, g->n, g->n, k, g->arena, chosen, NULL, &n, g->error));
  for (uint32_t i = 0; i < g->n; i++)
    g->is_known[i] = false;
  for (uint32_t i = 0; i < n; i++)
    g->is_known[chosen[i]] = true;
  return score_known(g, found);
}

/* ---- all groups ---- */

typedef struct scores {
  double *errors[2][PL_LEAVE_SIZES]; /* [suggested], per group */
  double covered[2][PL_LEAVE_SIZES], sum[2][PL_LEAVE_SIZES];
  double regret[2][PL_LEAVE_SIZES], without[2][PL_LEAVE_SIZES];
  uint32_t n_choosing[2][PL_LEAVE_SIZES];
} scores;

static void note(scores *all, int suggested, int size, uint32_t index, const score *one) {
  all->errors[suggested][size][index] = one->error;
  all->sum[suggested][size] += one->error;
  all->covered[suggested][size] += one->covered;
  if (isnan(one->regret)) return;
  all->regret[suggested][size] += one->regret;
  all->without[suggested][size] += one->regret_without;
  all->n_choosing[suggested][size]++;
}

static pl_code leave(const group *g, pl_leave_by by, uint32_t index, scores *all, pl_left_out_one *own) {
  *own = (pl_left_out_one){.source = g->rows[0]->source, .n_configurations = g->n, .suggested_pct = (double)NAN};
  for (int size = 0; size < PL_LEAVE_SIZES; size++) {
    uint32_t k = pl_leave_sizes[size];
    score one = score_without(g);
    if (k > 0) PL_TRY(score_random(g, k, index, &one));
    note(all, 0, size, index, &one);
    if (k == 0) own->without_pct = one.error;
    if (k == PL_LEAVE_OF_EACH) own->random_pct = one.error;
    if (by == PL_LEAVE_BY_RELATIVES) continue;
    if (k > 0) PL_TRY(score_suggested(g, k, &one));
    note(all, 1, size, index, &one);
    if (k == PL_LEAVE_OF_EACH) own->suggested_pct = one.error;
  }
  return PL_OK;
}

static uint32_t group_of(const pl_site_row *row, pl_leave_by by) {
  return by == PL_LEAVE_BY_SITE ? row->site : row->source;
}

static uint32_t site_of(const pl_site_row *row) {
  return row->site;
}

static uint32_t choice_of(const pl_site_row *row) {
  return row->choice;
}

/* Numbers from 0 for what `of` says of rows, in the order of the first rows. */
static uint32_t count_from_0(const group *g, uint32_t (*of)(const pl_site_row *), uint32_t *numbers) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < g->n; i++) {
    numbers[i] = n;
    for (uint32_t k = 0; k < i && numbers[i] == n; k++)
      if (of(g->rows[k]) == of(g->rows[i])) numbers[i] = numbers[k];
    n += numbers[i] == n;
  }
  return n;
}

static bool collect(const pl_site_rows *rows, pl_leave_by by, uint32_t which, pl_arena *arena, group *g) {
  const pl_site_row **list = PL_TAKE(arena, const pl_site_row *, rows->n);
  *g = (group){.rows = list,
               .runs = PL_TAKE(arena, pl_site_run, rows->n),
               .few = PL_TAKE(arena, const pl_site_run *, rows->n),
               .middle = PL_TAKE(arena, double, rows->n),
               .is_known = PL_TAKE(arena, bool, rows->n),
               .sites = PL_TAKE(arena, uint32_t, rows->n),
               .choices = PL_TAKE(arena, uint32_t, rows->n),
               .n_sites = 1,
               .arena = arena};
  if (arena->failed) return false;
  for (uint32_t i = 0; i < rows->n; i++)
    if (group_of(&rows->rows[i], by) == which) {
      list[g->n] = &rows->rows[i];
      g->runs[g->n++] = rows->rows[i].run;
    }
  if (by == PL_LEAVE_BY_RELATIVES) g->n_sites = count_from_0(g, site_of, g->sites);
  g->n_choices = count_from_0(g, choice_of, g->choices);
  return true;
}

static void summarise(scores *all, uint32_t n, pl_leaving *leaving) {
  leaving->n_choosing = all->n_choosing[0][0];
  for (int suggested = 0; suggested < 2; suggested++)
    for (int size = 0; size < PL_LEAVE_SIZES; size++) {
      pl_left_out *left = suggested ? &leaving->suggested[size] : &leaving->random[size];
      left->mape_pct = all->sum[suggested][size] / n;
      left->coverage_pct = all->covered[suggested][size] / n;
      left->regret_pct = all->regret[suggested][size] / all->n_choosing[suggested][size];
      left->regret_without_pct = all->without[suggested][size] / all->n_choosing[suggested][size];
      left->median_pct = pl_median(all->errors[suggested][size], n);
    }
}

static int compare_errors(const void *left, const void *right) {
  const pl_left_out_one *a = left, *b = right;
  if (a->random_pct != b->random_pct) return a->random_pct < b->random_pct ? 1 : -1;
  return a->source > b->source ? 1 : -1;
}

pl_code pl_leave_priors_take(const pl_site_rows *rows, pl_site_prior *prior, uint32_t n_threads, pl_arena *arena,
                             const pl_site **priors, pl_error *error) {
  pl_site *list = PL_TAKE(arena, pl_site, rows->n_sources);
  if (list == NULL) return pl_fail_memory(error, "the rows of sites");
  for (uint32_t source = 0; source < rows->n_sources; source++) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < rows->n; i++)
      n += rows->rows[i].source == source;
    if (n >= PL_LEAVE_LEAST) PL_TRY(pl_site_prior_take(prior, source, n_threads, arena, &list[source], error));
  }
  *priors = list;
  return PL_OK;
}

pl_code pl_leave_runs_out(const pl_site_rows *rows, pl_leave_by by, const pl_site *priors, pl_arena *arena,
                          pl_leaving *leaving, pl_error *error) {
  uint32_t n_groups = by == PL_LEAVE_BY_SITE ? rows->n_sites : rows->n_sources;
  scores all = {.covered = {{0}}};
  pl_left_out_one *list = PL_TAKE(arena, pl_left_out_one, n_groups + 1);
  for (int i = 0; i < 2 * PL_LEAVE_SIZES; i++)
    all.errors[i / PL_LEAVE_SIZES][i % PL_LEAVE_SIZES] = PL_TAKE(arena, double, n_groups);
  if (arena->failed) return pl_fail_memory(error, "the rows of sites");
  *leaving = (pl_leaving){.n_groups = 0};
  for (uint32_t which = 0; which < n_groups; which++) {
    group g;
    pl_arena_mark mark = pl_arena_mark_here(arena);
    if (!collect(rows, by, which, arena, &g)) return pl_fail_memory(error, "the rows of sites");
    g.prior = g.n > 0 ? &priors[g.rows[0]->source] : NULL;
    g.error = error;
    if (g.n >= PL_LEAVE_LEAST) {
      PL_TRY(leave(&g, by, leaving->n_groups, &all, &list[leaving->n_groups]));
      leaving->n_groups++;
    }
    pl_arena_release_to(arena, mark);
  }
  if (leaving->n_groups == 0)
    return pl_fail(error, PL_BAD_INPUT, "no site has %d measured configurations", PL_LEAVE_LEAST);
  summarise(&all, leaving->n_groups, leaving);
  qsort(list, leaving->n_groups, sizeof *list, compare_errors);
  leaving->groups = list;
  return PL_OK;
}
