/* The fit of matrix products against timings made with the model itself: known parameters come back, what is held out
 * is predicted, a planted residual is found, factors of unaligned rows too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "validation/fit/gemm_fit.h"

static const pl_gemm_fit truth = {.overhead_s = 3e-6,
                                  .split_overhead_s = 2e-6,
                                  .tile_overhead_s = 2e-6,
                                  .memory_efficiency = 0.7,
                                  .cache_rate_Bps = 6e12,
                                  .wave_quantisation = 0.9,
                                  .tile_efficiency = {[PL_GEMM_TILE_256X128] = 0.8,
                                                      [PL_GEMM_TILE_128X128] = 0.75,
                                                      [PL_GEMM_TILE_128X64] = 0.6,
                                                      [PL_GEMM_TILE_64X64] = 0.5},
                                  .unaligned_time = {[PL_GEMM_ALIGNED_4] = 1.5, [PL_GEMM_ALIGNED_2] = 4}};

static pl_device_profile device_of(void) {
  pl_device_profile device = {
      .name = "made up", .bandwidth_Bps = 1e12, .compute_efficiency = 0.7, .bandwidth_efficiency = 0.8};
  device.peak_flops[PL_DTYPE_BF16] = 200e12;
  device.gemm.multiprocessors = 100;
  return device;
}

static pl_gemm_sample sample_of(int64_t m, int64_t n, int64_t k, const pl_gemm_fit *fit) {
  pl_device_profile device = device_of();
  pl_gemm_shape shape = {.batch = 1, .m = m, .n = n, .k = k, .dtype = PL_DTYPE_BF16};
  return (pl_gemm_sample){shape, pl_gemm_cost(&device, fit, &shape).time_s};
}

enum { ROWS_MAX = 3000 };

/* A grid of aligned shapes, in the order of pl_gemm_samples; `more` unaligned ones. */
static uint32_t make_samples(const pl_gemm_fit *fit, int64_t m_step, bool unaligned, pl_gemm_sample *rows) {
  static const int64_t widths[] = {64, 128, 256, 512, 1024, 1536, 2048, 4096, 5120, 8192};
  uint32_t n = 0;
  for (int64_t m = 64; m <= 4096; m += m_step)
    for (int i = 0; i < 10; i++)
      for (int j = 0; j < 10; j++)
        rows[n++] = sample_of(m, widths[i] + (unaligned ? 1 + j % 2 : 0), widths[j], fit);
  assert_true(n <= ROWS_MAX);
  return n;
}

static pl_gemm_fit fit_to(const pl_gemm_sample *rows, uint32_t n, pl_gemm_fit_report *report) {
  pl_device_profile device = device_of();
  pl_gemm_fit fit;
  pl_error error = PL_ERROR_INIT;
  if (pl_gemm_fit_take(&device, rows, n, &arena, &fit, report, &error) != PL_OK) fail_msg("%s", error.message);
  return fit;
}

static void test_comes_back(void **state) {
  (void)state;
  static pl_gemm_sample rows[ROWS_MAX];
  uint32_t n = make_samples(&truth, 300, false, rows);
  pl_gemm_fit_report report;
  pl_gemm_fit fit = fit_to(rows, n, &report);
  assert_true(report.n_knots == 0 && report.n_shapes == n && report.n_fitted < n && report.n_fitted > n * 7 / 10);
  if (report.held_out.median > 0.01 || report.held_out.p90 > 0.03 || report.pairs.p90 > 0.03)
    fail_msg("held out: median %g, p90 %g; pairs %g", report.held_out.median, report.held_out.p90, report.pairs.p90);
  if (fabs(fit.memory_efficiency - 0.7) > 0.03 || fabs(fit.tile_efficiency[PL_GEMM_TILE_256X128] - 0.8) > 0.03)
    fail_msg("memory %g, tile %g", fit.memory_efficiency, fit.tile_efficiency[PL_GEMM_TILE_256X128]);
  assert_true(report.roofline.median > 3 * report.held_out.median);
}

static void test_unaligned(void **state) {
  (void)state;
  static pl_gemm_sample rows[2 * ROWS_MAX];
  uint32_t n = make_samples(&truth, 300, false, rows);
  n += make_samples(&truth, 900, true, rows + n);
  pl_gemm_fit_report report;
  pl_gemm_fit fit = fit_to(rows, n, &report);
  assert_true(report.n_unaligned > 100);
  if (fabs(fit.unaligned_time[PL_GEMM_ALIGNED_4] - 1.5) > 0.1 || fabs(fit.unaligned_time[PL_GEMM_ALIGNED_2] - 4) > 0.3)
    fail_msg("factors %g and %g", fit.unaligned_time[PL_GEMM_ALIGNED_4], fit.unaligned_time[PL_GEMM_ALIGNED_2]);
}

/* Everything with k of 2048 or more takes 30 % longer, everything with 512 or less does not: no parameter says so. */
static void test_residual(void **state) {
  (void)state;
  static pl_gemm_sample rows[ROWS_MAX];
  uint32_t n = make_samples(&truth, 144, false, rows);
  for (uint32_t i = 0; i < n; i++)
    if (rows[i].shape.k >= 1024) rows[i].time_s *= rows[i].shape.k == 1024 ? 1.14 : 1.3;
  pl_gemm_fit_report report;
  pl_gemm_fit fit = fit_to(rows, n, &report);
  assert_true(report.n_knots > 100 && fit.residual.milli != NULL);
  if (report.held_out.median > 0.02 || report.formula.p90 < 2 * report.held_out.p90)
    fail_msg("held out %g, formula alone %g (p90 %g and %g)", report.held_out.median, report.formula.median,
             report.held_out.p90, report.formula.p90);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_comes_back, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_unaligned, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_residual, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
