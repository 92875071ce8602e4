/* Sites: files with mistakes, what figures do to what a simulation is made from, and how far what they leave reaches.
 */
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

static const pl_configuration places[2] = {
    {.number = {8, 1e9, 2048, 2, 1, 1, 1, 1, 4}, .name = {"A100-SXM4-80GB", "nemo", "bf16", "none"}},
    {.number = {64, 1e9, 4096, 2, 4, 1, 1, 1, 1}, .name = {"A100-SXM4-80GB", "nemo", "bf16", "full"}}};

/* What remains at two runs: +10 % and -5 %. */
static const pl_site_remains *some_remains(void) {
  static const double mean[] = {0.1, -0.05}, covariance[] = {0.001, 0.0002, 0.0002, 0.002};
  double *figures = PL_TAKE(&arena, double, 2 * PL_SITE_COUNT);
  pl_site_remains *remains = PL_TAKE(&arena, pl_site_remains, 1);
  pl_error error = PL_ERROR_INIT;
  assert_non_null(remains);
  *remains = (pl_site_remains){
      .sd = 0.1, .scale_weight = {0, 1, 0}, .n = 2, .points = places, .mean = mean, .covariance = covariance};
  figures[PL_SITE_compute] = -0.001;
  remains->figures = figures;
  for (int axis = 0; axis < PL_LIKENESS_COUNT; axis++)
    remains->likeness.length[axis] = 1;
  assert_int_equal(pl_remains_prepare(remains, &arena, &error), PL_OK);
  return remains;
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
  site.degrees = 4;
  site.remains = some_remains();
  return site;
}

static void files(void **state) {
  (void)state;
  const pl_site site = some_site();
  size_t size;
  const char *text = written(&site, &size);
  pl_site again;
  pl_error error = PL_ERROR_INIT;
  if (pl_site_parse("s.json", text, size, &arena, &again, &error) != PL_OK) fail_msg("%s", error.message);
  for (int i = 0; i < PL_SITE_COUNT; i++)
    near(again.mean[i], site.mean[i]);
  assert_memory_equal(again.covariance, site.covariance, sizeof site.covariance);
  assert_memory_equal(again.scatter_weight, site.scatter_weight, sizeof site.scatter_weight);
  near(again.memory_bytes, -1e9);
  near(again.shared, 0.3);
  near(again.degrees, 4);
  assert_int_equal(again.n_runs, 3);
  const pl_site_remains *remains = again.remains;
  assert_non_null(remains);
  assert_int_equal(remains->n, 2);
  near(remains->sd, 0.1);
  for (int i = 0; i < 2; i++) {
    near(remains->mean[i], site.remains->mean[i]);
    for (int k = 0; k < PL_LIKENESS_N_NUMBERS; k++)
      near(remains->points[i].number[k], places[i].number[k]);
    for (int k = 0; k < PL_LIKENESS_N_NAMES; k++)
      assert_string_equal(remains->points[i].name[k], places[i].name[k]);
  }
  assert_memory_equal(remains->covariance, site.remains->covariance, 4 * sizeof(double));
  assert_memory_equal(remains->figures, site.remains->figures, 2 * PL_SITE_COUNT * sizeof(double));
}

/* A file from before anything remained. */
static void old_files(void **state) {
  (void)state;
  pl_site site = some_site(), again;
  size_t size;
  pl_error error = PL_ERROR_INIT;
  site.remains = NULL;
  const char *text = written(&site, &size);
  assert_null(strstr(text, "remains"));
  assert_int_equal(pl_site_parse("s.json", text, size, &arena, &again, &error), PL_OK);
  assert_null(again.remains);
}

static void refused(const char *from, const char *to, const char *words) {
  const pl_site site = some_site();
  size_t size;
  const char *text = written(&site, &size), *at = strstr(text, from);
  assert_non_null(at);
  const char *changed = pl_arena_printf(&arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  pl_site again;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_site_parse("s.json", changed, strlen(changed), &arena, &again, &error), PL_BAD_INPUT);
  if (strstr(error.message, words) == NULL || strncmp(error.message, "s.json:", 7) != 0)
    fail_msg("'%s' says nothing of '%s'", error.message, words);
}

static void mistakes(void **state) {
  (void)state;
  refused("\"factor\": 1.0", "\"factor\": -1.0", "factor is -1");
  refused("\"shared\": 0.3", "\"shared\": 1.3", "shared is 1.3");
  refused("\"degrees\": 4", "\"degrees\": 0.5", "degrees is 0.5");
  refused("\"compute\"", "\"speed\"", "speed");
  refused("\"weight\": 0.75", "\"weight\": 0.5", "add up to 0.75");
  refused("\"sd\": 0.04", "\"sd\": 0.05", "of them is 0.04");
  refused("\"runs\": 3", "\"runs\": -3", "runs");
  refused("\"sd\": 0.1,", "\"sd\": -0.1,", "sd is -0.1");
  refused("\"pp\": 1,", "\"pp\": 0,", "pp is 0");
  refused("\"pp\": 1,", "\"pipes\": 1,", "pipes");
  refused("\"factor\": 1.105", "\"factor\": 0, \"x\": 1.105", "x");
  refused("0.0002\n", "0.0002, 7\n", "'with_runs' must be a list of 2 numbers");
  refused("\"recompute\": \"full\"", "\"recompute\": [\"full\"]", "recompute");
  refused("0.0002\n", "1e300\n", "'with_runs' has 1e+300: at most 10000");
  refused("-0.01,", "-1e300,", "the covariance -1e+300 of compute and memory: at most 10000");
}

/* Runs that are as good as one and leave what is not alike: beside them there would be no end of it. */
static void without_end(void **state) {
  (void)state;
  pl_site site = some_site(), again;
  pl_site_remains remains = *site.remains;
  static const double mean[] = {0.3, -0.3};
  pl_configuration near_by[] = {places[0], places[0]};
  pl_error error = PL_ERROR_INIT;
  size_t size;
  near_by[1].number[PL_LIKENESS_mbs] = 4.001;
  remains.mean = mean;
  remains.points = near_by;
  site.remains = &remains;
  const char *text = written(&site, &size);
  assert_int_equal(pl_site_parse("s.json", text, size, &arena, &again, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "'runs' are too alike for how their factors differ"));
  near_by[1].number[PL_LIKENESS_mbs] = 8;
  text = written(&site, &size);
  error = PL_ERROR_INIT;
  if (pl_site_parse("s.json", text, size, &arena, &again, &error) != PL_OK) fail_msg("%s", error.message);
}

/* Whatever moves a time moves the digest. */
static void digests(void **state) {
  (void)state;
  pl_site site = some_site(), first, again;
  pl_site_remains remains = *site.remains;
  pl_configuration elsewhere[] = {places[0], places[1]};
  pl_error error = PL_ERROR_INIT;
  size_t size;
  const char *text = written(&site, &size);
  assert_int_equal(pl_site_parse("s.json", text, size, &arena, &first, &error), PL_OK);
  site.remains = &remains;
  remains.likeness.length[PL_LIKENESS_mbs] = 2;
  text = written(&site, &size);
  assert_int_equal(pl_site_parse("s.json", text, size, &arena, &again, &error), PL_OK);
  assert_true(again.digest != first.digest);
  remains = *some_remains();
  remains.points = elsewhere;
  elsewhere[1].number[PL_LIKENESS_mbs] = 2;
  text = written(&site, &size);
  assert_int_equal(pl_site_parse("s.json", text, size, &arena, &again, &error), PL_OK);
  assert_true(again.digest != first.digest);
  elsewhere[1] = places[1];
  text = written(&site, &size);
  assert_int_equal(pl_site_parse("s.json", text, size, &arena, &again, &error), PL_OK);
  assert_true(again.digest == first.digest);
}

/* At a run what remains there, far from all nothing, and between them by likeness. */
static void reach(void **state) {
  (void)state;
  const pl_site_remains *remains = some_remains();
  pl_remaining at = pl_remaining_at(remains, &places[0]);
  assert_true(fabs(at.mean - 0.1) < 1e-5 && fabs(at.variance - 0.001) < 1e-5 && at.likeness > 0.999999);
  assert_true(fabs(at.figures[PL_SITE_compute] + 0.001) < 1e-5);
  assert_int_equal(at.nearest, 0);
  pl_configuration away = places[0];
  away.number[PL_LIKENESS_mbs] = 400;
  at = pl_remaining_at(remains, &away);
  assert_true(fabs(at.mean) < 1e-4 && fabs(at.variance - 0.01) < 1e-4);
  away = places[0];
  away.name[PL_LIKENESS_N_NAMES - 1] = "full"; /* alike by exp(-1/2) */
  at = pl_remaining_at(remains, &away);
  near(at.likeness, exp(-0.5));
  assert_true(fabs(at.mean - 0.1 * exp(-0.5)) < 1e-3);
  assert_true(at.variance > 0.001 && at.variance < 0.01);
  at = pl_remaining_far(remains);
  near(at.variance, 0.01);
  at = pl_remaining_at(NULL, &away);
  assert_true(at.mean == 0 && at.variance == 0);
}

static void shipped(void **state) {
  (void)state;
  pl_site prior;
  pl_error error = PL_ERROR_INIT;
  if (pl_site_load_prior(&arena, &prior, &error) != PL_OK) fail_msg("%s", error.message);
  assert_int_equal(prior.n_runs, 0);
  assert_true(prior.remains != NULL && prior.remains->n == 0 && prior.remains->sd > 0);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(files, set_up, tear_down),
      cmocka_unit_test_setup_teardown(old_files, set_up, tear_down),
      cmocka_unit_test_setup_teardown(reach, set_up, tear_down),
      cmocka_unit_test_setup_teardown(mistakes, set_up, tear_down),
      cmocka_unit_test_setup_teardown(without_end, set_up, tear_down),
      cmocka_unit_test_setup_teardown(digests, set_up, tear_down),
      cmocka_unit_test_setup_teardown(shipped, set_up, tear_down),
      cmocka_unit_test_setup_teardown(visits, set_up, tear_down),
      cmocka_unit_test_setup_teardown(hosts, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("site", tests, NULL, NULL);
}
