/* The model of matrix products: times by hand, edges of tiles and waves, splits of k, alignment, residuals, bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <cmocka.h>

#include "workloads/cost/gemm_cost.h"
#include "workloads/cost/op_cost.h"

/* 100 multiprocessors of 1 TF; only tiles of 128 x 128 are any good; memory and cache so fast that they do not count.
 */
static const pl_gemm_fit plain = {.dtypes = 1u << PL_DTYPE_FP16,
                                  .overhead_s = 1e-6,
                                  .split_overhead_s = 2e-6,
                                  .tile_overhead_s = 3e-6,
                                  .memory_efficiency = 1,
                                  .cache_rate_Bps = 1e18,
                                  .wave_quantisation = 1,
                                  .tile_efficiency = {[PL_GEMM_TILE_256X128] = 1e-3,
                                                      [PL_GEMM_TILE_128X128] = 0.5,
                                                      [PL_GEMM_TILE_128X64] = 1e-3,
                                                      [PL_GEMM_TILE_64X64] = 1e-3},
                                  .unaligned_time = {[PL_GEMM_ALIGNED_4] = 2, [PL_GEMM_ALIGNED_2] = 4}};

static pl_device_profile profile_of(const pl_gemm_fit *fit) {
  pl_device_profile profile = {.name = "test", .bandwidth_Bps = 1e18};
  profile.peak_flops[PL_DTYPE_FP16] = 100e12;
  profile.gemm = (pl_gemm_profile){.multiprocessors = 100, .n_fits = 1, .fits = fit};
  return profile;
}

static pl_gemm_shape shape_of(int64_t batch, int64_t m, int64_t n, int64_t k) {
  return (pl_gemm_shape){.batch = batch, .m = m, .n = n, .k = k, .dtype = PL_DTYPE_FP16};
}

static double time_of(const pl_gemm_fit *fit, int64_t batch, int64_t m, int64_t n, int64_t k) {
  pl_device_profile profile = profile_of(fit);
  pl_gemm_shape shape = shape_of(batch, m, n, k);
  return pl_gemm_cost(&profile, fit, &shape).time_s;
}

static void expect(double time_s, double expected_s) {
  if (!(fabs(time_s - expected_s) <= 1e-9 * expected_s)) fail_msg("%.12g s, not %.12g s", time_s, expected_s);
}

static const double tile_s = 2.0 * 128 * 128 / 0.5e12; /* of one unit of k, on one multiprocessor */

static void test_waves(void **state) {
  (void)state;
  pl_gemm_fit whole = plain, smooth = plain;
  whole.split_overhead_s = smooth.split_overhead_s = 1; /* never split */
  double wave_s = 4096 * tile_s + 3e-6;
  expect(time_of(&whole, 1, 1280, 1280, 4096), 1e-6 + wave_s); /* 10 x 10 tiles: one wave */
  expect(time_of(&whole, 1, 1281, 1280, 4096), 1e-6 + 2 * wave_s);
  expect(time_of(&whole, 1, 1408, 1280, 4096), 1e-6 + 2 * wave_s);
  expect(time_of(&whole, 1, 1153, 1280, 4096), 1e-6 + wave_s);
  expect(time_of(&whole, 10, 1280, 1280, 4096), 1e-6 + 10 * wave_s);
  smooth.wave_quantisation = 0;
  expect(time_of(&smooth, 1, 1281, 1280, 4096), 1e-6 + 1.1 * wave_s);
  smooth.wave_quantisation = 0.5;
  expect(time_of(&smooth, 1, 1281, 1280, 4096), 1e-6 + 1.55 * wave_s);
}

/* One tile with k = 4096: 16 parts of 256 take a wave; the split costs its overhead, though the tile's is the same. */
static void test_split(void **state) {
  (void)state;
  expect(time_of(&plain, 1, 128, 128, 4096), 1e-6 + 2e-6 + 256 * tile_s + 3e-6);
  expect(time_of(&plain, 1, 128, 128, 16), 1e-6 + 16 * tile_s + 3e-6); /* parts of less than 64 are not made */
}

static void test_alignment(void **state) {
  (void)state;
  double wave_s = 1024 * tile_s + 3e-6;
  expect(time_of(&plain, 1, 1280, 1272, 1024), 1e-6 + wave_s);
  expect(time_of(&plain, 1, 1280, 1276, 1024), 1e-6 + wave_s + 1024 * tile_s);
  expect(time_of(&plain, 1, 1280, 1274, 1024), 1e-6 + wave_s + 1024 * tile_s);
  expect(time_of(&plain, 1, 1280, 1275, 1024), 1e-6 + wave_s + 3 * 1024 * tile_s);
  expect(time_of(&plain, 1, 1279, 1272, 1024), 1e-6 + wave_s); /* rows of x and y begin where they should */
}

/* A weight gradient: both operands have tokens as rows, whose number is no row's length. */
static void test_transposed(void **state) {
  (void)state;
  pl_gemm_shape shape = shape_of(1, 1280, 1272, 1023);
  assert_int_equal(pl_gemm_alignment_of(&shape), PL_GEMM_ALIGNED_2);
  shape.transposed = true;
  assert_int_equal(pl_gemm_alignment_of(&shape), -1);
  shape.m = 1274;
  assert_int_equal(pl_gemm_alignment_of(&shape), PL_GEMM_ALIGNED_4);
  pl_device_profile profile = profile_of(&plain);
  pl_op op = {.kind = PL_OP_GEMM, .dtype = PL_DTYPE_FP16, .batch = 1, .m = 1280, .n = 1272, .k = 1023, .flops = 1};
  double stored_as_it_is_s = pl_op_cost(&profile, &op).time_s;
  op.transposed = true;
  assert_true(pl_op_cost(&profile, &op).time_s < 0.5 * stored_as_it_is_s);
}

static void test_memory(void **state) {
  (void)state;
  pl_device_profile profile = profile_of(&plain);
  profile.bandwidth_Bps = 1e6;
  pl_gemm_shape shape = shape_of(1, 128, 128, 64);
  double bytes = 2.0 * (2 * 128 * 64 + 128 * 128);
  assert_true(pl_gemm_least_bytes(&shape) == bytes);
  expect(pl_gemm_cost(&profile, &plain, &shape).time_s, 1e-6 + bytes / 1e6);
  shape.bytes = 3 * bytes;
  expect(pl_gemm_cost(&profile, &plain, &shape).time_s, 1e-6 + 3 * bytes / 1e6);
}

static void test_residual(void **state) {
  (void)state;
  /* m 2^10 .. 2^11, n 2^10 .. 2^12, k 2^5 .. 2^6; index k fastest. */
  static const int16_t milli[2 * 3 * 2] = {100, 0, 200, 0, 0, 0, 300, 0, 0, 0, 0, 0};
  pl_gemm_fit fit = plain;
  fit.residual = (pl_gemm_residual){.first = {10, 10, 5}, .last = {11, 12, 6}, .milli = milli};
  static const struct {
    int64_t batch, m, n, k;
    double expected;
  } cases[] = {{1, 1024, 1024, 32, 0.1}, {1, 1024, 2048, 32, 0.2},  {1, 2048, 1024, 32, 0.3}, {1, 1024, 1024, 64, 0},
               {1, 16, 16, 16, 0.1},     {1, 4096, 32768, 8192, 0}, {2, 1024, 1024, 32, 0.3}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    expect(time_of(&fit, cases[i].batch, cases[i].m, cases[i].n, cases[i].k),
           time_of(&plain, cases[i].batch, cases[i].m, cases[i].n, cases[i].k) * exp(cases[i].expected));
  double half = log2(1448.0 / 1024); /* of the way from 1024 to 2048, and between the rows of n */
  expect(time_of(&fit, 1, 1448, 1024, 32), time_of(&plain, 1, 1448, 1024, 32) * exp(0.1 + 0.2 * half));
  expect(time_of(&fit, 1, 1024, 1448, 32), time_of(&plain, 1, 1024, 1448, 32) * exp(0.1 + 0.1 * half));
}

/* A residual that promises more than the hardware has is cut off at peak and at nominal bandwidth. */
static void test_bounds(void **state) {
  (void)state;
  static const int16_t milli[8] = {-4000, -4000, -4000, -4000, -4000, -4000, -4000, -4000};
  pl_gemm_fit fit = plain;
  fit.residual = (pl_gemm_residual){.first = {5, 5, 5}, .last = {6, 6, 6}, .milli = milli};
  expect(time_of(&fit, 1, 8192, 8192, 8192), 2.0 * 8192 * 8192 * 8192 / 100e12);
  pl_device_profile profile = profile_of(&fit);
  profile.bandwidth_Bps = 1e9;
  pl_gemm_shape shape = shape_of(1, 128, 128, 64);
  expect(pl_gemm_cost(&profile, &fit, &shape).time_s, pl_gemm_least_bytes(&shape) / 1e9);
}

/* What an op makes of it: source and bound; a type without a fit and another kind keep the roofline. */
static void test_op(void **state) {
  (void)state;
  pl_device_profile profile = profile_of(&plain);
  profile.peak_flops[PL_DTYPE_FP32] = 1e12;
  profile.compute_efficiency = profile.attention_efficiency = profile.bandwidth_efficiency = 0.5;
  pl_op op = {.kind = PL_OP_GEMM, .dtype = PL_DTYPE_FP16, .batch = 1, .m = 1280, .n = 1280, .k = 4096, .flops = 1.3e10};
  pl_op_time time = pl_op_cost(&profile, &op);
  expect(time.time_s, 1e-6 + 4096 * tile_s + 3e-6);
  assert_true(time.source == PL_COST_FIT && time.bound == PL_BOUND_COMPUTE);
  op.bytes = 1e18;
  assert_int_equal(pl_op_cost(&profile, &op).bound, PL_BOUND_MEMORY);
  op.bytes = 0;
  op.dtype = PL_DTYPE_FP32;
  assert_int_equal(pl_op_cost(&profile, &op).source, PL_COST_ROOFLINE);
  op.dtype = PL_DTYPE_FP16;
  op.kind = PL_OP_ATTENTION;
  assert_int_equal(pl_op_cost(&profile, &op).source, PL_COST_ROOFLINE);
  pl_gemm_fit slow = plain;
  slow.overhead_s = 1;
  profile.gemm.fits = &slow;
  op.kind = PL_OP_GEMM;
  assert_int_equal(pl_op_cost(&profile, &op).bound, PL_BOUND_LAUNCH);
  op.k = 0; /* no product: nothing to fit */
  assert_int_equal(pl_op_cost(&profile, &op).source, PL_COST_ROOFLINE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_waves),      cmocka_unit_test(test_split),  cmocka_unit_test(test_alignment),
      cmocka_unit_test(test_transposed), cmocka_unit_test(test_memory), cmocka_unit_test(test_residual),
      cmocka_unit_test(test_bounds),     cmocka_unit_test(test_op),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
