/* What runs tell of a site: posteriors worked out by hand, what remains, which runs to make, and priors of sites that
 * were made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/split_mix.h"
#include "tests/support/arena_fixture.h"
#include "validation/fit/site_evidence.h"
#include "validation/fit/site_prior.h"
#include "validation/statistics/quasi_newton.h"
#include "workloads/run/site_interval.h"

static void within(double a, double b, double off) {
  if (!(fabs(a - b) <= off * fmax(1, fabs(b)))) fail_msg("%.12g, expected %.12g", a, b);
}

static void near(double a, double b) {
  within(a, b, 1e-9);
}

static const pl_configuration place = {.number = {8, 1e9, 2048, 2, 1, 1, 1, 1, 4},
                                       .name = {"A100", "nemo", "bf16", "none"}};

static pl_site prior_of(double variance) {
  pl_site prior = {.scatter_weight = {0}};
  for (int i = 0; i < PL_SITE_COUNT; i++)
    prior.covariance[i][i] = variance;
  prior.scatter_weight[2] = 1; /* 4 % */
  return prior;
}

/* And something remains: of the standard deviation 0.1, with lengths of 1. */
static pl_site_remains remains_of(void) {
  pl_site_remains remains = {.sd = 0.1, .scale_weight = {0, 1, 0}};
  for (int axis = 0; axis < PL_LIKENESS_COUNT; axis++)
    remains.likeness.length[axis] = 1;
  return remains;
}

static pl_site_knowledge *learnt(const pl_site *prior, const pl_site_run *runs, uint32_t n) {
  const pl_site_run **list = PL_TAKE(&arena, const pl_site_run *, n + 1);
  pl_site_knowledge *knowledge;
  pl_error error = PL_ERROR_INIT;
  for (uint32_t i = 0; i < n; i++)
    list[i] = &runs[i];
  if (pl_site_learn(prior, list, n, &arena, &knowledge, &error) != PL_OK) fail_msg("%s", error.message);
  return knowledge;
}

static pl_site posterior(const pl_site *prior, const pl_site_run *runs, uint32_t n) {
  pl_site site;
  pl_error error = PL_ERROR_INIT;
  if (pl_site_posterior(learnt(prior, runs, n), 0, &arena, &site, &error) != PL_OK) fail_msg("%s", error.message);
  return site;
}

/* One figure, one scatter: mean = v x y / (x^2 v + s^2), variance = v s^2 / (x^2 v + s^2). */
static void one_figure(void **state) {
  (void)state;
  const pl_site prior = prior_of(0.01);
  const pl_site_run run = {.y = 0.2, .x = {[PL_SITE_compute] = 0.5}, .at = place};
  const pl_site site = posterior(&prior, &run, 1);
  const pl_remaining nothing = {.mean = 0};
  double all = 0.25 * 0.01 + 0.0016;
  near(site.mean[PL_SITE_compute], 0.01 * 0.5 * 0.2 / all);
  near(site.covariance[PL_SITE_compute][PL_SITE_compute], 0.01 * 0.0016 / all);
  near(site.mean[PL_SITE_host], 0); /* moves no run: keeps its prior */
  near(site.covariance[PL_SITE_host][PL_SITE_host], 0.01);
  near(pl_site_half_width(&site, run.x, &nothing) / (1.2815515655 * sqrt(0.25 * 0.01 * 0.0016 / all + 0.0016)), 1);
  assert_null(site.remains);
  assert_int_equal(site.n_runs, 1);
  const pl_site same = posterior(&prior, NULL, 0);
  assert_memory_equal(same.covariance, prior.covariance, sizeof prior.covariance);
}

/* Figures and what remains share a run's surprise y by their variances: of all = x^2 v + w + s^2 the figure takes v x
 * and what remains w; they are then correlated by -v x w / all. Elsewhere, alike by r, w r of it remains. */
static void what_remains(void **state) {
  (void)state;
  pl_site prior = prior_of(0.01);
  const pl_site_remains some = remains_of();
  prior.remains = &some;
  const pl_site_run run = {.y = 0.2, .x = {[PL_SITE_compute] = 0.5}, .at = place};
  const pl_site site = posterior(&prior, &run, 1);
  double v = 0.01, w = 0.01, all = 0.25 * v + w + 0.0016;
  near(site.mean[PL_SITE_compute], 0.5 * v * 0.2 / all);
  assert_int_equal(site.remains->n, 1);
  near(site.remains->mean[0], w * 0.2 / all);
  near(site.remains->covariance[0], w - w * w / all);
  near(site.remains->figures[PL_SITE_compute], -0.5 * v * w / all);
  pl_site_run other = {.at = place};
  other.at.name[3] = "full";
  double variance, r = exp(-0.5);
  near(pl_site_predict(learnt(&prior, &run, 1), &other, &variance), w * r * 0.2 / all);
  near(variance, w - w * r * w * r / all);
}

static double uniform(uint64_t *random) {
  return (double)(pl_split_mix(random) >> 11) / 9007199254740992.0;
}

static pl_site_run some_run(uint64_t *random) {
  pl_site_run run = {.at = place};
  for (int i = 0; i < PL_SITE_step; i++)
    run.x[i] = uniform(random);
  for (int i = 0; i < PL_LIKENESS_N_NUMBERS; i++)
    run.at.number[i] *= exp(uniform(random));
  run.y = 0.3 * (uniform(random) - 0.3);
  return run;
}

/* What a site's file says of another run, figures, what remains and scatter mixed, is what its runs say. */
static void file_says_the_same(void **state) {
  (void)state;
  uint64_t random = 3;
  for (int time = 0; time < 20; time++) {
    pl_site prior = prior_of(0.02);
    pl_site_remains some = remains_of();
    for (int h = 0; h < PL_REMAINS_SCALES; h++)
      some.scale_weight[h] = 1.0 / PL_REMAINS_SCALES;
    for (int g = 0; g < PL_SITE_SCATTERS; g++)
      prior.scatter_weight[g] = 1.0 / PL_SITE_SCATTERS;
    prior.remains = &some;
    pl_site_run runs[6], other = some_run(&random);
    for (int i = 0; i < 6; i++)
      runs[i] = some_run(&random);
    pl_site_knowledge *knowledge = learnt(&prior, runs, 6);
    const pl_site site = posterior(&prior, runs, 6);
    const pl_remaining remaining = pl_remaining_at(site.remains, &other.at);
    double variance, middle = remaining.mean;
    for (int i = 0; i < PL_SITE_COUNT; i++)
      middle += site.mean[i] * other.x[i];
    within(middle, pl_site_predict(knowledge, &other, &variance), 1e-5);
    within(pl_site_variance(&site, other.x, &remaining) / variance, 1, 1e-3);
    assert_memory_equal(site.scatter_weight, pl_site_scatter_known(knowledge), sizeof site.scatter_weight);
  }
}

/* More runs than a file has points for: the points are those far apart, and a run that is none is near one. */
static void many_runs(void **state) {
  (void)state;
  enum { MANY = 3 * PL_REMAINS_POINTS };
  pl_site prior = prior_of(0.02);
  const pl_site_remains some = remains_of();
  prior.remains = &some;
  pl_site_run *runs = PL_TAKE(&arena, pl_site_run, MANY);
  uint64_t random = 5;
  for (int i = 0; i < MANY; i++) {
    runs[i] = (pl_site_run){.at = place, .x = {[PL_SITE_compute] = 0.5}};
    runs[i].at.number[PL_LIKENESS_mbs] = exp(4 * uniform(&random));
    runs[i].y = 0.1 * sin(log(runs[i].at.number[PL_LIKENESS_mbs]));
  }
  const pl_site site = posterior(&prior, runs, MANY);
  assert_int_equal(site.n_runs, MANY);
  assert_true(site.remains->n <= PL_REMAINS_POINTS && site.remains->n > 10);
  for (int i = 0; i < MANY; i++) {
    const pl_remaining remaining = pl_remaining_at(site.remains, &runs[i].at);
    assert_true(remaining.likeness > 0.9);
    assert_true(fabs(0.5 * site.mean[PL_SITE_compute] + remaining.mean - runs[i].y) < 0.02);
  }
}

/* Runs that the constant would have to be negative for: it is nothing, and the rest explains what it can. */
static void no_negative_step(void **state) {
  (void)state;
  const pl_site prior = prior_of(0.01);
  const pl_site_run short_run = {.y = -0.5, .x = {[PL_SITE_compute] = 0.1, [PL_SITE_step] = 10}, .at = place};
  const pl_site site = posterior(&prior, &short_run, 1);
  near(site.mean[PL_SITE_step], 0);
  assert_true(site.mean[PL_SITE_compute] < 0);
}

/* Runs that contradict each other make large scatters likely. */
static void scatter_is_learnt(void **state) {
  (void)state;
  pl_site prior = prior_of(0.01);
  for (int g = 0; g < PL_SITE_SCATTERS; g++)
    prior.scatter_weight[g] = 1.0 / PL_SITE_SCATTERS;
  pl_site_run wild[6], tame[6];
  for (int i = 0; i < 6; i++) {
    wild[i] = (pl_site_run){.y = i % 2 ? 0.6 : -0.6, .x = {[PL_SITE_compute] = 0.8}, .at = place};
    tame[i] = (pl_site_run){.y = 0.1, .x = {[PL_SITE_compute] = 0.8}, .at = place};
  }
  const pl_site site = posterior(&prior, wild, 6), quiet = posterior(&prior, tame, 6);
  assert_true(site.scatter_weight[6] > 0.5 && quiet.scatter_weight[0] > 0.5);
}

/* What is suggested first is the run that shows what the target, the first, depends on. */
static void suggestions(void **state) {
  (void)state;
  pl_site prior = prior_of(0.04);
  const pl_site_run candidates[] = {{.x = {[PL_SITE_between_rate] = 0.5}, .at = place},
                                    {.x = {[PL_SITE_compute] = 0.9}, .at = place},
                                    {.x = {[PL_SITE_between_rate] = 0.6, [PL_SITE_compute] = 0.3}, .at = place},
                                    {.x = {[PL_SITE_between_rate] = 0.2, [PL_SITE_compute] = 0.7}, .at = place}};
  uint32_t chosen[4], found;
  double variance[4];
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_site_suggest(&prior, candidates, 4, 1, 2, &arena, chosen, variance, &found, &error), PL_OK);
  assert_int_equal(found, 2);
  assert_int_equal(chosen[0], 0);
  double v = 0.25 * 0.04;
  near(variance[0], v - v * v / (v + 0.0016));
  assert_true(variance[1] < variance[0]);
  assert_int_equal(chosen[1], 2);
  assert_int_equal(pl_site_suggest(&prior, candidates, 4, 1, 5, &arena, chosen, NULL, &found, &error), PL_OK);
  assert_int_equal(found, 4);
  /* Where more remains than figures are in doubt, it is the one most alike. */
  const pl_site_remains some = remains_of();
  prior = prior_of(1e-6);
  prior.remains = &some;
  pl_site_run like[3] = {candidates[0], candidates[0], candidates[0]};
  like[0].at.number[PL_LIKENESS_mbs] *= 1.5; /* the target, which is not to be run: it would be chosen itself */
  like[1].at.number[PL_LIKENESS_mbs] *= 50;
  assert_int_equal(pl_site_suggest(&prior, like, 3, 1, 3, &arena, chosen, NULL, &found, &error), PL_OK);
  assert_int_equal(chosen[0], 0);
  assert_int_equal(chosen[1], 2);
}

/* Four runs that agree and one that is 1.2 off: by Gaussians it moves the figure, by Student's t hardly. Runs that
 * agree say the same either way; and for one run, where the prior and the scatter are all there is, the rounds are
 * those of one number: m = v y / (v + s^2 / w), w = (d + 1) / (d + ((y - m)^2 + V) / s^2), V = v s^2 / (v w + s^2). */
static void odd_runs(void **state) {
  (void)state;
  const pl_site gaussian = prior_of(0.01);
  pl_site robust = gaussian;
  robust.degrees = 4;
  pl_site_run runs[5];
  for (int i = 0; i < 5; i++)
    runs[i] = (pl_site_run){.y = i % 2 ? 0.09 : 0.11, .x = {[PL_SITE_compute] = 1}, .at = place};
  double same = posterior(&gaussian, runs, 4).mean[PL_SITE_compute];
  within(posterior(&robust, runs, 4).mean[PL_SITE_compute], same, 0.005);
  runs[4].y = 1.3;
  double dragged = posterior(&gaussian, runs, 5).mean[PL_SITE_compute],
         kept = posterior(&robust, runs, 5).mean[PL_SITE_compute];
  if (!(dragged - same > 0.15 && fabs(kept - same) < 0.03)) fail_msg("of %g, %g and %g", same, dragged, kept);
  double v = 0.01, s2 = 0.0016, y = 0.3, w = 1, m = v * y / (v + s2);
  for (int round = 0; round < 5; round++) {
    w = 5 / (4 + ((y - m) * (y - m) + v * s2 / (v * w + s2)) / s2);
    m = v * y / (v + s2 / w);
  }
  runs[0].y = y;
  near(posterior(&robust, runs, 1).mean[PL_SITE_compute], m);
}

/* One figure, variance v = 0.01, of which c is shared, and s = 0.04: a relative's run with x = 0.5 and y = 0.2 is a
 * measurement of t_0 with the covariance c v x and the variance v x^2 + s^2. Shared wholly it is the site's own run;
 * not at all it says nothing. */
static void relatives(void **state) {
  (void)state;
  pl_site prior = prior_of(0.01);
  const pl_site_run run = {.y = 0.2, .x = {[PL_SITE_compute] = 0.5}, .at = place, .part = 1};
  const double shares[] = {0, 0.3, 1}, v = 0.01, all = 0.25 * v + 0.0016;
  for (int i = 0; i < 3; i++) {
    prior.shared = shares[i];
    const pl_site site = posterior(&prior, &run, 1);
    double across = shares[i] * v * 0.5;
    near(site.mean[PL_SITE_compute], across * 0.2 / all);
    near(site.covariance[PL_SITE_compute][PL_SITE_compute], v - across * across / all);
    near(site.covariance[PL_SITE_host][PL_SITE_host], v);
    assert_int_equal(site.n_runs, 0);
  }
}

/* Two relatives and the scatter: runs that contradict each other across sites do not widen it, within one they do. */
static void scatter_of_relatives(void **state) {
  (void)state;
  pl_site prior = prior_of(0.04);
  prior.shared = 0.1;
  for (int g = 0; g < PL_SITE_SCATTERS; g++)
    prior.scatter_weight[g] = 1.0 / PL_SITE_SCATTERS;
  pl_site_run apart[12], mixed[12];
  for (int i = 0; i < 12; i++) {
    apart[i] = mixed[i] = (pl_site_run){.y = i % 2 ? 0.3 : -0.3, .x = {[PL_SITE_compute] = 0.8}, .at = place};
    apart[i].part = 1 + (uint32_t)i % 2;
    mixed[i].part = 1 + (uint32_t)i / 6;
  }
  const pl_site quiet = posterior(&prior, apart, 12), wild = posterior(&prior, mixed, 12);
  assert_true(quiet.scatter_weight[0] > 0.5 && wild.scatter_weight[5] > 0.5);
}

/* ---- priors ---- */

static pl_site prior_without(const pl_site_rows *rows, uint32_t without, uint32_t n_threads) {
  pl_site_prior *search;
  pl_site prior;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_site_prior_prepare(rows, &arena, &search, &error), PL_OK);
  assert_int_equal(pl_site_prior_take(search, UINT32_MAX, n_threads, &arena, &prior, &error), PL_OK);
  if (without != UINT32_MAX)
    assert_int_equal(pl_site_prior_take(search, without, n_threads, &arena, &prior, &error), PL_OK);
  return prior;
}

/* Sources whose sites are one, or have nothing in common. */
static void what_is_shared(void **state) {
  (void)state;
  enum { SOURCES = 20, SITES = 4, RUNS = 4 };
  pl_site_row *rows = PL_TAKE(&arena, pl_site_row, SOURCES * SITES * RUNS);
  for (int is_one = 0; is_one < 2; is_one++) {
    uint64_t random = 7;
    double compute = 0;
    for (uint32_t i = 0; i < SOURCES * SITES * RUNS; i++) {
      uint32_t site = i / RUNS;
      if (i % RUNS == 0 && (!is_one || site % SITES == 0)) compute = 0.7 * (uniform(&random) - 0.5); /* sd 0.2 */
      rows[i] = (pl_site_row){.source = site / SITES, .site = site, .memory_bytes = NAN};
      rows[i].run = (pl_site_run){.x = {[PL_SITE_compute] = 0.4 + 0.2 * (i % 3)}, .at = place, .part = site};
      rows[i].run.at.number[PL_LIKENESS_mbs] = 1 << (4 * (i % RUNS)); /* nothing remains alike */
      rows[i].run.y = rows[i].run.x[PL_SITE_compute] * compute + (i % 2 ? 0.02 : -0.02);
    }
    const pl_site_rows all = {
        .rows = rows, .n = SOURCES * SITES * RUNS, .n_sources = SOURCES, .n_sites = SOURCES * SITES};
    double shared = prior_without(&all, 3, 2).shared;
    if (is_one ? shared < 0.8 : shared > 0.2)
      fail_msg("%g is shared of sites that are %s", shared, is_one ? "one" : "apart");
  }
}

/* Forty sites whose products take 1.2 of the time, to 5 %, and whose larger batches are 20 % off, either way: that is
 * what the prior becomes. The same for any number of threads, and nothing of a source that is left out. */
static void priors(void **state) {
  (void)state;
  enum { SITES = 40, RUNS = 8 };
  pl_site_row *rows = PL_TAKE(&arena, pl_site_row, SITES * RUNS);
  uint64_t random = 1;
  for (uint32_t s = 0; s < SITES; s++) {
    double compute = log(1.2) + (s % 2 ? 0.05 : -0.05), batch = s / 2 % 2 ? 0.2 : -0.2;
    for (uint32_t r = 0; r < RUNS; r++) {
      pl_site_row *row = &rows[s * RUNS + r];
      *row = (pl_site_row){.source = s, .site = s, .memory_bytes = NAN};
      row->run = (pl_site_run){.at = place, .part = s};
      if (r % 2) row->run.at.number[PL_LIKENESS_mbs] = 64;
      row->run.x[PL_SITE_compute] = 0.3 + 0.6 * uniform(&random);
      row->run.y = compute * row->run.x[PL_SITE_compute] + (r % 2 ? batch : 0) + (r / 2 % 2 ? 0.01 : -0.01);
    }
  }
  const pl_site_rows all = {.rows = rows, .n = SITES * RUNS, .n_sources = SITES, .n_sites = SITES};
  const pl_site prior = prior_without(&all, UINT32_MAX, 1), again = prior_without(&all, UINT32_MAX, 3);
  if (!(fabs(prior.mean[PL_SITE_compute] - log(1.2)) < 0.05)) fail_msg("mean %g", prior.mean[PL_SITE_compute]);
  assert_true(prior.scatter_weight[0] > 0.8);
  const pl_site_remains *remains = prior.remains;
  double sd = sqrt(pl_remains_variance(remains));
  if (!(sd > 0.08 && sd < 0.3)) fail_msg("%g remains", sd);
  double far = log(16) / remains->likeness.length[PL_LIKENESS_mbs];
  if (!(exp(-far * far / 2) < 0.7)) fail_msg("batches are alike by %g", exp(-far * far / 2));
  assert_memory_equal(prior.covariance, again.covariance, sizeof prior.covariance);
  for (uint32_t r = 0; r < RUNS; r++)
    rows[r].run.y += 3;
  const pl_site out = prior_without(&all, 0, 1);
  within(out.mean[PL_SITE_compute], prior.mean[PL_SITE_compute], 0.03);
  const pl_site in = prior_without(&all, UINT32_MAX, 1);
  double with = in.remains->scale_weight[2], without = out.remains->scale_weight[2];
  if (!(with > 1.5 * without))
    fail_msg("much remains with %g, without a source that is e^3 off with %g", with, without);
}

/* The slope of the evidence is that of differences. */
static void slopes(void **state) {
  (void)state;
  uint64_t random = 11;
  pl_site_run runs[9];
  const pl_site_run *list[9];
  pl_evidence_group group = {.runs = list, .n = 9, .weight = 0.7};
  for (int i = 0; i < 9; i++) {
    runs[i] = some_run(&random);
    runs[i].part = (uint32_t)i / 3;
    runs[i].x[PL_SITE_step] = 2;
    if (i % 2) runs[i].at.name[3] = "full";
    list[i] = &runs[i];
  }
  for (int axis = 0; axis < PL_LIKENESS_COUNT; axis++) {
    group.apart[axis] = PL_TAKE(&arena, double, 81);
    for (int i = 0; i < 81; i++)
      group.apart[axis][i] = pl_configuration_apart(&runs[i / 9].at, &runs[i % 9].at, axis);
  }
  pl_evidence evidence = {.groups = &group, .n_groups = 1, .without = UINT32_MAX, .n_threads = 1, .arena = &arena};
  double belief[PL_BELIEF_COUNT], slope[PL_BELIEF_COUNT], unused[PL_BELIEF_COUNT];
  pl_belief_begin(belief);
  for (int i = 0; i < PL_BELIEF_COUNT; i++)
    belief[i] += 0.4 * (uniform(&random) - 0.5);
  pl_evidence_against(belief, slope, &evidence);
  for (int i = 0; i < PL_BELIEF_COUNT; i++) {
    double at = belief[i], step = 1e-5;
    belief[i] = at + step;
    double high = pl_evidence_against(belief, unused, &evidence);
    belief[i] = at - step;
    double low = pl_evidence_against(belief, unused, &evidence);
    belief[i] = at;
    if (!(fabs((high - low) / (2 * step) - slope[i]) < 1e-5 * fmax(1, fabs(slope[i]))))
      fail_msg("belief %d: slope %.9g, by differences %.9g", i, slope[i], (high - low) / (2 * step));
  }
  /* A group twice is as one of twice the weight, and not as one. */
  pl_evidence_group twice[2] = {group, group};
  double once = pl_evidence_against(belief, slope, &evidence);
  evidence = (pl_evidence){.groups = twice, .n_groups = 2, .without = UINT32_MAX, .n_threads = 1, .arena = &arena};
  double both = pl_evidence_against(belief, unused, &evidence);
  group.weight *= 2;
  evidence.groups = &group;
  evidence.n_groups = 1;
  assert_true(fabs(pl_evidence_against(belief, slope, &evidence) - both) < 1e-9 * fabs(both));
  assert_true(fabs(both - once) > 1e-3);
  for (int i = 0; i < PL_BELIEF_COUNT; i++)
    assert_true(fabs(slope[i] - unused[i]) < 1e-9 * fmax(1, fabs(slope[i])));
}

/* Rosenbrock's valley in four variables, of which the minimum is at 1. */
static double valley(const double *x, double *slope, void *n_calls) {
  double sum = 0;
  (*(int *)n_calls)++;
  memset(slope, 0, 4 * sizeof *slope);
  for (int i = 0; i < 3; i++) {
    double up = x[i + 1] - x[i] * x[i], off = 1 - x[i];
    sum += 100 * up * up + off * off;
    slope[i] -= 400 * x[i] * up + 2 * off;
    slope[i + 1] += 200 * up;
  }
  return sum;
}

static void climbs(void **state) {
  (void)state;
  double x[4] = {-1.2, 1, -1.2, 1}, inverse[16] = {0};
  int n_calls = 0, n_more = 0;
  double least = pl_quasi_newton(valley, &n_calls, x, 4, inverse, 1e-14, 1000);
  assert_true(least < 1e-10 && n_calls < 300);
  for (int i = 0; i < 4; i++)
    within(x[i], 1, 1e-4);
  x[0] += 1e-3; /* nearly there, and the curvature known */
  pl_quasi_newton(valley, &n_more, x, 4, inverse, 1e-14, 1000);
  assert_true(n_more < 30);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(one_figure, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_remains, set_up, tear_down),
      cmocka_unit_test_setup_teardown(file_says_the_same, set_up, tear_down),
      cmocka_unit_test_setup_teardown(many_runs, set_up, tear_down),
      cmocka_unit_test_setup_teardown(no_negative_step, set_up, tear_down),
      cmocka_unit_test_setup_teardown(scatter_is_learnt, set_up, tear_down),
      cmocka_unit_test_setup_teardown(suggestions, set_up, tear_down),
      cmocka_unit_test_setup_teardown(relatives, set_up, tear_down),
      cmocka_unit_test_setup_teardown(scatter_of_relatives, set_up, tear_down),
      cmocka_unit_test_setup_teardown(odd_runs, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_is_shared, set_up, tear_down),
      cmocka_unit_test_setup_teardown(priors, set_up, tear_down),
      cmocka_unit_test_setup_teardown(slopes, set_up, tear_down),
      cmocka_unit_test_setup_teardown(climbs, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("site posteriors", tests, NULL, NULL);
}
