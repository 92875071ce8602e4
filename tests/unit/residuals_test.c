/* What calibration leaves over: files with mistakes, and the split of training runs' residuals by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "validation/fit/residual_pool.h"
#include "validation/fit/training_residuals.h"

static void near(double a, double b) {
  if (!(fabs(a - b) <= 1e-9)) fail_msg("%.12g, expected %.12g", a, b);
}

/* Every entry 0.1, but `changed` says something else; `more` behind the list. */
static const char *text_of(const char *changed, const char *value, const char *tail) {
  const char *text = "{\"about\": \"x\",\n\"residuals\": {";
  for (int i = 0; i < PL_RESIDUAL_COUNT; i++)
    text = pl_arena_printf(&arena, "%s%s\n\"%s\": {\"half_width\": %s, \"provenance\": \"p\"}", text, i > 0 ? "," : "",
                           pl_residual_names[i], strcmp(pl_residual_names[i], changed) == 0 ? value : "0.1");
  return pl_arena_printf(&arena, "%s}%s}", text, tail);
}

static void refused(const char *text, const char *words) {
  pl_residuals residuals;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_residuals_parse("r.json", text, strlen(text), &arena, &residuals, &error), PL_BAD_INPUT);
  if (strstr(error.message, words) == NULL) fail_msg("'%s' says nothing of '%s'", error.message, words);
}

static void files(void **state) {
  (void)state;
  static const char tail[] = ", \"centre\": 0.05, \"seen\": [\"experts\", \"fp8\"]";
  const char *text = text_of("host", "0.9", tail);
  pl_residuals residuals;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_residuals_parse("r.json", text, strlen(text), &arena, &residuals, &error), PL_OK);
  near(residuals.half[PL_RESIDUAL_host], 0.9);
  near(residuals.half[PL_RESIDUAL_gemm_roofline], 0.1);
  near(residuals.centre, 0.05);
  assert_true(pl_residuals_have_seen(&residuals, "fp8") && !pl_residuals_have_seen(&residuals, "fp"));
  refused(text_of("host", "-0.1", tail), "r.json:");
  refused(text_of("host", "\"wide\"", tail), "half_width");
  refused(text_of("host", "11", tail), "half_width");
  refused(text_of("host", "0.1", ", \"centre\": 0"), "'seen' must be a list");
  refused(text_of("host", "0.1", ", \"centre\": 20, \"seen\": []"), "centre is 20");
  refused(text_of("host", "0.1", ", \"centre\": 0, \"seen\": [], \"hosts\": 1"), "hosts");
  refused("{\"residuals\": {}, \"centre\": 0, \"seen\": []}", "gemm_transferred");
}

static void shipped(void **state) {
  (void)state;
  pl_residuals residuals;
  pl_error error = PL_ERROR_INIT;
  if (pl_residuals_load(&arena, &residuals, &error) != PL_OK) fail_msg("%s", error.message);
  /* What was fitted here is better known than what was taken over, and that than what no curve says. */
  assert_true(residuals.half[PL_RESIDUAL_attention_fitted] < residuals.half[PL_RESIDUAL_attention_transferred]);
  assert_true(residuals.half[PL_RESIDUAL_attention_transferred] < residuals.half[PL_RESIDUAL_attention_roofline]);
  assert_true(residuals.half[PL_RESIDUAL_gemm_transferred] < residuals.half[PL_RESIDUAL_gemm_roofline]);
  assert_true(residuals.half[PL_RESIDUAL_nvlink_large] < residuals.half[PL_RESIDUAL_network_large]);
}

/* A group of one row weighs as much as one of nine. */
static void pools(void **state) {
  (void)state;
  pl_residual_pool pool = pl_residual_pool_in(&arena);
  assert_true(isnan(pl_residual_pool_quantile(&pool, 0.8)));
  for (int i = 1; i <= 9; i++)
    pl_residual_pool_put(&pool, 0.01 * i);
  pl_residual_pool_close_group(&pool);
  pl_residual_pool_close_group(&pool);
  pl_residual_pool_add(&pool, exp(1), 1);
  pl_residual_pool_add(&pool, 0, 1);
  pl_residual_pool_close_group(&pool);
  assert_int_equal(pool.n_groups, 2);
  near(pl_residual_pool_quantile(&pool, 0.25), 0.05);
  near(pl_residual_pool_quantile(&pool, 0.5), 0.09);
  near(pl_residual_pool_quantile(&pool, 0.8), 1);
}

/* Two groups of eleven around 0.1 and 0.2, five of them up to 0.05 to either side; kinds explain `kinds`. */
static pl_residuals split(double kinds, pl_code expected, int n) {
  pl_measured_row rows[2] = {{.family = "a", .gpu = "g"}, {.family = "b", .gpu = "g"}};
  pl_case all[22];
  for (int i = 0; i < 22; i++) {
    all[i] =
        (pl_case){.row = &rows[i / 11], .n_rows = 1, .measured_s = exp((i < 11 ? 0.1 : 0.2) + 0.01 * (i % 11 - 5))};
    all[i].result.iter_time_s = 1;
    all[i].interval.half[PL_DOUBT_GEMM] = kinds;
    all[i].interval.unseen = (pl_aspects){.text = {"experts"}, .n = 1};
  }
  pl_cases cases = {.cases = all, .n_cases = (uint32_t)n, .n_rows = 22};
  pl_residuals residuals = {.centre = 0};
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_training_residuals_take(&cases, &arena, &residuals, &error), expected);
  return residuals;
}

static void training(void **state) {
  (void)state;
  pl_residuals residuals = split(0, PL_OK, 22);
  near(residuals.centre, 0.15);
  near(residuals.half[PL_RESIDUAL_source], 3.078 * (0.1 / sqrt(2)) * sqrt(1.5));
  near(residuals.half[PL_RESIDUAL_run], 0.04); /* nine of eleven are within */
  assert_true(residuals.n_seen == 1 && strcmp(residuals.seen[0], "experts") == 0);
  near(split(0.03, PL_OK, 22).half[PL_RESIDUAL_run], sqrt(0.04 * 0.04 - 0.03 * 0.03));
  near(split(0.05, PL_OK, 22).half[PL_RESIDUAL_run], 0);
  split(0, PL_BAD_INPUT, 20); /* the second group has nine */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(files, set_up, tear_down),
      cmocka_unit_test_setup_teardown(shipped, set_up, tear_down),
      cmocka_unit_test_setup_teardown(pools, set_up, tear_down),
      cmocka_unit_test_setup_teardown(training, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("residuals", tests, NULL, NULL);
}
