/* The slowest of many devices: its mean, what it adds to which ops, and among how many devices of a platform. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <cmocka.h>

#include "netmodel/device/device_spread.h"
#include "netmodel/platform/platform.h"
#include "netmodel/platform/platform_vary.h"
#include "workloads/cost/op_cost.h"

/* Two: 1 / sqrt(pi); three: 3 / (2 sqrt(pi)). The others: Harter 1961, table 1. */
static void test_greatest(void **state) {
  (void)state;
  const struct {
    uint32_t n;
    double mean, within;
  } known[] = {{1, 0, 1e-9},       {2, 0.5641895835478, 1e-9}, {3, 0.8462843753216, 1e-9},
               {8, 1.42360, 1e-5}, {16, 1.76599, 1e-5},        {100, 2.50759, 1e-5}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (!(fabs(pl_spread_greatest(known[i].n) - known[i].mean) <= known[i].within))
      fail_msg("%u: %.12g, not %.12g", known[i].n, pl_spread_greatest(known[i].n), known[i].mean);
  for (uint32_t n = 1; n < 1u << 20; n *= 2)
    assert_true(pl_spread_greatest(2 * n) > pl_spread_greatest(n));
}

static void test_drag(void **state) {
  (void)state;
  pl_device_profile profile = {.compute_spread = 0.02, .compute_drag = 1};
  pl_device_spread_among(&profile, PL_SPREAD_SEEN);
  assert_true(profile.compute_drag == 0);
  pl_device_spread_among(&profile, 100);
  assert_true(fabs(profile.compute_drag - expm1(0.02 * (2.50759 - 1.42360))) < 1e-6);
  profile.compute_spread = 0;
  pl_device_spread_among(&profile, 100);
  assert_true(profile.compute_drag == 0);
}

/* What computing bounds takes longer by the drag; memory, measured times and other ops stay. */
static void test_ops(void **state) {
  (void)state;
  pl_device_profile alone = {.bandwidth_Bps = 1e12,
                             .compute_efficiency = 0.5,
                             .attention_efficiency = 0.5,
                             .bandwidth_efficiency = 1},
                    among = alone;
  alone.peak_flops[PL_DTYPE_FP16] = among.peak_flops[PL_DTYPE_FP16] = 100e12;
  among.compute_drag = 0.25;
  const pl_op product = {.kind = PL_OP_GEMM,
                         .dtype = PL_DTYPE_FP16,
                         .batch = 1,
                         .m = 4096,
                         .n = 4096,
                         .k = 4096,
                         .flops = 2.0 * 4096 * 4096 * 4096,
                         .bytes = 1e6},
              attention = {.kind = PL_OP_ATTENTION, .dtype = PL_DTYPE_FP16, .flops = 1e12, .bytes = 1e6},
              norm = {.kind = PL_OP_NORM, .dtype = PL_DTYPE_FP16, .flops = 1e14, .bytes = 1e6};
  pl_op moved = product;
  moved.bytes = 1e12;
  assert_true(pl_op_cost(&among, &product).time_s == 1.25 * pl_op_cost(&alone, &product).time_s);
  assert_true(pl_op_cost(&among, &attention).time_s == 1.25 * pl_op_cost(&alone, &attention).time_s);
  assert_true(pl_op_cost(&among, &moved).time_s == pl_op_cost(&alone, &moved).time_s);
  assert_true(pl_op_cost(&among, &norm).time_s == pl_op_cost(&alone, &norm).time_s);
  const pl_op_entry measured = {.kind = "gemm", .dtype = PL_DTYPE_FP16, .dims = {1, 4096, 4096, 4096}, .time_s = 1e-3};
  among.ops = &measured;
  among.n_ops = 1;
  assert_true(pl_op_cost(&among, &product).time_s == 1e-3);
}

/* 128 A100 in 16 machines, and what is left of the drag in four and in one of them. */
static void test_platform(void **state) {
  (void)state;
  pl_error error = PL_ERROR_INIT;
  pl_arena arena;
  pl_platform *platform;
  pl_arena_init(&arena, 0);
  if (pl_platform_load("platforms/dgx-a100-16.xml", NULL, &platform, &error) != PL_OK) fail_msg("%s", error.message);
  const pl_cluster *base = pl_platform_cluster(platform);
  const double spread = base->profiles[0].compute_spread;
  assert_int_equal(base->n_devices, 128);
  assert_true(spread > 0);
  const struct {
    const char *text;
    uint32_t n;
  } points[] = {{"nodes=16", 128}, {"nodes=4", 32}, {"nodes=1", 8}};
  for (int i = 0; i < 3; i++) {
    pl_vary_grid grid;
    const pl_cluster *cluster = NULL;
    if (pl_vary_grid_parse(&points[i].text, 1, &arena, &grid, &error) != PL_OK ||
        pl_vary_cluster_take(&grid, 0, base, &arena, &cluster, &error) != PL_OK)
      fail_msg("%s", error.message);
    double beyond = pl_spread_greatest(points[i].n) - pl_spread_greatest(8);
    assert_true(fabs(cluster->profiles[0].compute_drag - expm1(spread * beyond)) < 1e-15);
    if (i == 0) assert_true(cluster->profiles[0].compute_drag == base->profiles[0].compute_drag);
  }
  pl_platform_destroy(platform);
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_greatest), cmocka_unit_test(test_drag),
                                     cmocka_unit_test(test_ops), cmocka_unit_test(test_platform)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
