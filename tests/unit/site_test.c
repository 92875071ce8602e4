/* Sites: files with mistakes, what figures do to what a simulation is made from, and posteriors worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/platform/platform.h"
#include "tests/support/arena_fixture.h"
#include "validation/fit/site_posterior.h"
#include "validation/fit/site_prior.h"
#include "validation/fit/site_relatives.h"
#include "workloads/run/site_file.h"
#include "workloads/run/site_interval.h"

static void near(double a, double b) {
  if (!(fabs(a - b) <= 1e-9 * fmax(1, fabs(b)))) fail_msg("%.12g, expected %.12g", a, b);
}

/* ---- files ---- */

/* In the arena. */
static const char *written(const pl_site *site, size_t *size) {
  char *text = NULL;
  FILE *stream = open_memstream(&text, size);
  assert_non_null(stream);
  pl_site_write(stream, site, "a test");
  fclose(stream);
  const char *copy = pl_arena_strdup(&arena, text);
  free(text);
  return copy;
}

static pl_site some_site(void) {
  pl_site site = {.memory_bytes = -1e9, .memory_sd_bytes = 2e9, .memory_scatter_bytes = 1e8, .n_runs = 3, .n_peaks = 1};
  for (int i = 0; i < PL_SITE_COUNT; i++) {
    site.mean[i] = 0.01 * (i + 1);
    site.covariance[i][i] = 0.02;
  }
  site.covariance[0][1] = site.covariance[1][0] = -0.01;
  site.scatter_weight[2] = 0.75;
  site.scatter_weight[5] = 0.25;
  site.shared = 0.3;
  return site;
}

static void files(void **state) {
  (void)state;
  const pl_site site = some_site();
  size_t size;
  const char *text = written(&site, &size);
  pl_site again;
  pl_error error = PL_ERROR_INIT;
  if (pl_site_parse("s.json", text, size, &again, &error) != PL_OK) fail_msg("%s", error.message);
  for (int i = 0; i < PL_SITE_COUNT; i++)
    near(again.mean[i], site.mean[i]);
  assert_memory_equal(again.covariance, site.covariance, sizeof site.covariance);
  assert_memory_equal(again.scatter_weight, site.scatter_weight, sizeof site.scatter_weight);
  near(again.memory_bytes, -1e9);
  near(again.shared, 0.3);
  assert_int_equal(again.n_runs, 3);
}

static void refused(const char *from, const char *to, const char *words) {
  const pl_site site = some_site();
  size_t size;
  const char *text = written(&site, &size), *at = strstr(text, from);
  assert_non_null(at);
  const char *changed = pl_arena_printf(&arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  pl_site again;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_site_parse("s.json", changed, strlen(changed), &again, &error), PL_BAD_INPUT);
  if (strstr(error.message, words) == NULL || strncmp(error.message, "s.json:", 7) != 0)
    fail_msg("'%s' says nothing of '%s'", error.message, words);
}

static void mistakes(void **state) {
  (void)state;
  refused("\"factor\": 1.0", "\"factor\": -1.0", "factor is -1");
  refused("\"shared\": 0.3", "\"shared\": 1.3", "shared is 1.3");
  refused("\"compute\"", "\"speed\"", "speed");
  refused("\"weight\": 0.75", "\"weight\": 0.5", "add up to 0.75");
  refused("\"sd\": 0.04", "\"sd\": 0.05", "of them is 0.04");
  refused("\"runs\": 3", "\"runs\": -3", "runs");
}

static void shipped(void **state) {
  (void)state;
  pl_site prior;
  pl_error error = PL_ERROR_INIT;
  if (pl_site_load_prior(&arena, &prior, &error) != PL_OK) fail_msg("%s", error.message);
  assert_int_equal(prior.n_runs, 0);
  for (int i = 0; i < PL_SITE_COUNT; i++)
    assert_true(prior.covariance[i][i] > 0);
}

/* ---- what figures act on ---- */

static void visits(void **state) {
  (void)state;
  pl_platform *platform;
  pl_error error = PL_ERROR_INIT;
  if (pl_platform_load("platforms/dgx-a100.xml", NULL, &platform, &error) != PL_OK) fail_msg("%s", error.message);
  const pl_cluster *base = pl_platform_cluster(platform);
  pl_site site = {.n_runs = 0};
  pl_site_view view;
  assert_int_equal(pl_site_view_take(&site, base, NULL, &arena, &view, &error), PL_OK);
  assert_ptr_equal(view.cluster, base); /* nothing known, nothing changed */
  site.mean[PL_SITE_compute] = log(2);
  site.mean[PL_SITE_memory] = log(4);
  site.mean[PL_SITE_inside_rate] = log(8);
  assert_int_equal(pl_site_view_take(&site, base, NULL, &arena, &view, &error), PL_OK);
  near(view.cluster->profiles[0].peak_flops[PL_DTYPE_BF16], base->profiles[0].peak_flops[PL_DTYPE_BF16] / 2);
  near(view.cluster->profiles[0].bandwidth_Bps, base->profiles[0].bandwidth_Bps / 4);
  for (uint32_t i = 0; i < base->n_links; i++) {
    bool inside = base->links[i].kind == PL_LINK_NVLINK || base->links[i].kind == PL_LINK_PCIE ||
                  base->links[i].kind == PL_LINK_CPU;
    near(view.cluster->links[i].capacity_Bps, base->links[i].capacity_Bps / (inside ? 8 : 1));
  }
  assert_true(view.cluster->digest != base->digest);
  pl_platform_destroy(platform);
}

static void hosts(void **state) {
  (void)state;
  pl_framework framework = pl_framework_ideal;
  framework.launch.launch_s = 1e-6;
  framework.memory.workspace_bytes = 1e9;
  pl_site site = {.memory_bytes = -3e9};
  site.mean[PL_SITE_host] = log(3);
  site.mean[PL_SITE_step] = 0.25;
  const pl_framework own = pl_site_framework(&site, &framework);
  near(own.launch.launch_s, 3e-6);
  near(own.launch.step_s, 0.25);
  near(own.memory.workspace_bytes, 0); /* there is no less than nothing */
  assert_true(own.digest != framework.digest);
}

/* ---- posteriors ---- */

static pl_site prior_of(double variance) {
  pl_site prior = {.scatter_weight = {0}};
  for (int i = 0; i < PL_SITE_COUNT; i++)
    prior.covariance[i][i] = variance;
  prior.scatter_weight[2] = 1; /* 4 % */
  return prior;
}

/* One figure, one scatter: mean = v x y / (x^2 v + s^2), variance = v s^2 / (x^2 v + s^2). */
static void one_figure(void **state) {
  (void)state;
  const pl_site prior = prior_of(0.01);
  pl_site_sums sums = {.n = 0};
  const pl_site_run run = {.y = 0.2, .x = {[PL_SITE_compute] = 0.5}};
  pl_site_sums_add(&sums, &run);
  const pl_site site = pl_site_posterior(&prior, &sums);
  double all = 0.25 * 0.01 + 0.0016;
  near(site.mean[PL_SITE_compute], 0.01 * 0.5 * 0.2 / all);
  near(site.covariance[PL_SITE_compute][PL_SITE_compute], 0.01 * 0.0016 / all);
  near(site.mean[PL_SITE_host], 0); /* moves no run: keeps its prior */
  near(site.covariance[PL_SITE_host][PL_SITE_host], 0.01);
  near(pl_site_half_width(&site, run.x) / (1.2815515655 * sqrt(0.25 * 0.01 * 0.0016 / all + 0.0016)), 1);
}

/* Runs that the constant would have to be negative for: it is nothing, and the rest explains what it can. */
static void no_negative_step(void **state) {
  (void)state;
  const pl_site prior = prior_of(0.01);
  pl_site_sums sums = {.n = 0};
  const pl_site_run short_run = {.y = -0.5, .x = {[PL_SITE_compute] = 0.1, [PL_SITE_step] = 10}};
  pl_site_sums_add(&sums, &short_run);
  const pl_site site = pl_site_posterior(&prior, &sums);
  near(site.mean[PL_SITE_step], 0);
  assert_true(site.mean[PL_SITE_compute] < 0);
}

/* Runs that contradict each other make large scatters likely. */
static void scatter_is_learnt(void **state) {
  (void)state;
  pl_site prior = prior_of(0.01);
  for (int g = 0; g < PL_SITE_SCATTERS; g++)
    prior.scatter_weight[g] = 1.0 / PL_SITE_SCATTERS;
  pl_site_sums wild = {.n = 0}, tame = {.n = 0};
  for (int i = 0; i < 6; i++) {
    const pl_site_run run = {.y = i % 2 ? 0.6 : -0.6, .x = {[PL_SITE_compute] = 0.8}},
                      other = {.y = 0.1, .x = {[PL_SITE_compute] = 0.8}};
    pl_site_sums_add(&wild, &run);
    pl_site_sums_add(&tame, &other);
  }
  const pl_site site = pl_site_posterior(&prior, &wild), quiet = pl_site_posterior(&prior, &tame);
  assert_true(site.scatter_weight[6] > 0.5 && quiet.scatter_weight[0] > 0.5);
}

/* What is suggested first is the run that shows what the targets depend on. */
static void suggestions(void **state) {
  (void)state;
  const pl_site prior = prior_of(0.04);
  const pl_site_run candidates[] = {{.x = {[PL_SITE_compute] = 0.9}},
                                    {.x = {[PL_SITE_between_rate] = 0.6, [PL_SITE_compute] = 0.3}},
                                    {.x = {[PL_SITE_between_rate] = 0.2, [PL_SITE_compute] = 0.7}}};
  const pl_site_run targets[] = {{.x = {[PL_SITE_between_rate] = 0.5}}};
  uint32_t chosen[3];
  assert_int_equal(pl_site_suggest(&prior, candidates, 3, NULL, targets, 1, 2, chosen), 2);
  assert_int_equal(chosen[0], 1);
  assert_int_equal(chosen[1], 0); /* tells apart what the first mixed */
  const bool allowed[] = {true, false, true};
  assert_int_equal(pl_site_suggest(&prior, candidates, 3, allowed, targets, 1, 3, chosen), 2);
}

/* One figure, variance v = 0.01, of which c is shared, and s = 0.04: a relative's run with x = 0.5 and y = 0.2 is a
 * measurement of t_0 with the covariance c v x and the variance v x^2 + s^2. Shared wholly it is the site's own run;
 * not at all it says nothing. */
static void relatives(void **state) {
  (void)state;
  const pl_site prior = prior_of(0.01);
  pl_site_sums run = {.n = 0}, none = {.n = 0};
  const pl_site_run one = {.y = 0.2, .x = {[PL_SITE_compute] = 0.5}};
  pl_site_sums_add(&run, &one);
  const double shares[] = {0, 0.3, 1}, v = 0.01, all = 0.25 * v + 0.0016;
  for (int i = 0; i < 3; i++) {
    const pl_site site = pl_site_posterior_beside(&prior, &none, &run, 1, shares[i]);
    double across = shares[i] * v * 0.5;
    assert_true(fabs(site.mean[PL_SITE_compute] - across * 0.2 / all) < 1e-8);
    assert_true(fabs(site.covariance[PL_SITE_compute][PL_SITE_compute] - (v - across * across / all)) < 1e-8);
    assert_true(fabs(site.covariance[PL_SITE_host][PL_SITE_host] - v) < 1e-8);
    assert_int_equal(site.n_runs, 0);
  }
  /* two runs of one's own, or of a twin beside one's own; and without any relative */
  pl_site_sums both = run;
  pl_site_sums_add(&both, &one);
  const pl_site twin = pl_site_posterior_beside(&prior, &run, &run, 1, 1), own = pl_site_posterior(&prior, &both);
  assert_true(fabs(twin.mean[PL_SITE_compute] - own.mean[PL_SITE_compute]) < 1e-8);
  assert_true(fabs(twin.covariance[0][0] - own.covariance[0][0]) < 1e-8);
  const pl_site alone = pl_site_posterior_beside(&prior, &run, NULL, 0, 0.5), same = pl_site_posterior(&prior, &run);
  assert_memory_equal(alone.covariance, same.covariance, sizeof same.covariance);
}

/* Two relatives and the scatter: runs that contradict each other across sites do not widen it, within one they do. */
static void scatter_of_relatives(void **state) {
  (void)state;
  pl_site prior = prior_of(0.04);
  for (int g = 0; g < PL_SITE_SCATTERS; g++)
    prior.scatter_weight[g] = 1.0 / PL_SITE_SCATTERS;
  pl_site_sums apart[2] = {{.n = 0}}, mixed[2] = {{.n = 0}}, none = {.n = 0};
  for (int i = 0; i < 12; i++) {
    const pl_site_run run = {.y = i % 2 ? 0.3 : -0.3, .x = {[PL_SITE_compute] = 0.8}};
    pl_site_sums_add(&apart[i % 2], &run);
    pl_site_sums_add(&mixed[i / 6], &run);
  }
  const pl_site quiet = pl_site_posterior_beside(&prior, &none, apart, 2, 0.1),
                wild = pl_site_posterior_beside(&prior, &none, mixed, 2, 0.1);
  assert_true(quiet.scatter_weight[0] > 0.5 && wild.scatter_weight[5] > 0.5);
}

/* Sources whose sites are one, or have nothing in common. */
static void what_is_shared(void **state) {
  (void)state;
  enum { SOURCES = 30, SITES = 4, RUNS = 6 };
  pl_site_row *rows = PL_TAKE(&arena, pl_site_row, SOURCES * SITES * RUNS);
  const pl_site prior = prior_of(0.04);
  for (int is_one = 0; is_one < 2; is_one++) {
    uint64_t random = 7;
    double compute = 0;
    for (uint32_t i = 0; i < SOURCES * SITES * RUNS; i++) {
      uint32_t site = i / RUNS;
      if (i % RUNS == 0 && (!is_one || site % SITES == 0)) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        compute = 0.7 * ((double)(random >> 40) / (1 << 24) - 0.5); /* as wide as 0.2 */
      }
      rows[i] = (pl_site_row){.source = site / SITES, .site = site, .memory_bytes = NAN};
      rows[i].run.x[PL_SITE_compute] = 0.8;
      rows[i].run.y = 0.8 * compute + (i % 2 ? 0.04 : -0.04);
    }
    const pl_site_rows all = {
        .rows = rows, .n = SOURCES * SITES * RUNS, .n_sources = SOURCES, .n_sites = SOURCES * SITES};
    double shared;
    pl_error error = PL_ERROR_INIT;
    assert_int_equal(pl_site_shared_take(&all, 3, &prior, &arena, &shared, &error), PL_OK);
    if (is_one ? shared < 0.9 : shared > 0.2)
      fail_msg("%g is shared of sites that are %s", shared, is_one ? "one" : "apart");
  }
}

/* Forty sites whose products take 1.2 of the time, to 5 %: that is what the prior becomes. */
static void priors(void **state) {
  (void)state;
  enum { SITES = 40, RUNS = 10 };
  pl_site_row *rows = PL_TAKE(&arena, pl_site_row, SITES * RUNS);
  uint64_t random = 1;
  for (uint32_t s = 0; s < SITES; s++) {
    double compute = log(1.2) + (s % 2 ? 0.05 : -0.05);
    for (uint32_t r = 0; r < RUNS; r++) {
      pl_site_row *row = &rows[s * RUNS + r];
      *row = (pl_site_row){.source = s, .site = s, .memory_bytes = NAN};
      random = random * 6364136223846793005u + 1442695040888963407u;
      row->run.x[PL_SITE_compute] = 0.3 + 0.6 * (double)(random >> 40) / (1 << 24);
      row->run.y = compute * row->run.x[PL_SITE_compute] + (r % 2 ? 0.01 : -0.01);
    }
  }
  const pl_site_rows all = {.rows = rows, .n = SITES * RUNS, .n_sources = SITES, .n_sites = SITES};
  pl_site prior;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_site_prior_take(&all, 0, NULL, &arena, &prior, &error), PL_OK);
  assert_true(fabs(prior.mean[PL_SITE_compute] - log(1.2)) < 0.02);
  assert_true(fabs(sqrt(prior.covariance[0][0]) - 0.06) < 0.02);
  assert_true(prior.scatter_weight[0] > 0.8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(files, set_up, tear_down),
      cmocka_unit_test_setup_teardown(mistakes, set_up, tear_down),
      cmocka_unit_test_setup_teardown(shipped, set_up, tear_down),
      cmocka_unit_test_setup_teardown(visits, set_up, tear_down),
      cmocka_unit_test_setup_teardown(hosts, set_up, tear_down),
      cmocka_unit_test_setup_teardown(one_figure, set_up, tear_down),
      cmocka_unit_test_setup_teardown(no_negative_step, set_up, tear_down),
      cmocka_unit_test_setup_teardown(scatter_is_learnt, set_up, tear_down),
      cmocka_unit_test_setup_teardown(suggestions, set_up, tear_down),
      cmocka_unit_test_setup_teardown(relatives, set_up, tear_down),
      cmocka_unit_test_setup_teardown(scatter_of_relatives, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_is_shared, set_up, tear_down),
      cmocka_unit_test_setup_teardown(priors, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("site", tests, NULL, NULL);
}
