/* Op cost: roofline by hand, what wins, table lookup, fallback of types, optimizer, measured blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <cmocka.h>

#include "workloads/cost/op_cost.h"

/* 100 Tf of fp16, 10 of fp32, half of it reached; 1 TB/s, 80 % reached; 1 us per launch. */
static pl_device_profile profile_of(const pl_op_entry *ops, uint32_t n_ops) {
  pl_device_profile profile = {.name = "test",
                               .bandwidth_Bps = 1e12,
                               .compute_efficiency = 0.5,
                               .attention_efficiency = 0.25,
                               .bandwidth_efficiency = 0.8,
                               .launch_overhead_s = 1e-6,
                               .ops = ops,
                               .n_ops = n_ops};
  profile.peak_flops[PL_DTYPE_FP16] = 100e12;
  profile.peak_flops[PL_DTYPE_FP32] = 10e12;
  return profile;
}

static pl_op gemm(pl_dtype dtype, int64_t batch, int64_t m, int64_t n, int64_t k) {
  double size = pl_dtype_bytes(dtype) * (double)batch * (double)(m * k + k * n + m * n);
  return (pl_op){.kind = PL_OP_GEMM,
                 .category = PL_CATEGORY_FORWARD,
                 .dtype = (uint8_t)dtype,
                 .batch = batch,
                 .m = m,
                 .n = n,
                 .k = k,
                 .flops = 2.0 * (double)(batch * m * n * k),
                 .bytes = size};
}

static void expect(pl_op_time time, double time_s, pl_cost_source source, pl_cost_bound bound) {
  if (fabs(time.time_s - time_s) > 1e-15 * time_s) fail_msg("%.17g s, not %.17g s", time.time_s, time_s);
  assert_int_equal(time.source, source);
  assert_int_equal(time.bound, bound);
}

static void test_roofline(void **state) {
  (void)state;
  pl_device_profile profile = profile_of(NULL, 0);
  pl_op op = gemm(PL_DTYPE_FP16, 1, 4096, 4096, 4096);
  expect(pl_op_cost(&profile, &op), 2.0 * 4096 * 4096 * 4096 / 50e12 + 1e-6, PL_COST_ROOFLINE, PL_BOUND_COMPUTE);
  op = gemm(PL_DTYPE_FP16, 1, 32, 32, 1 << 20); /* 64 flops per 128 bytes of k: memory */
  expect(pl_op_cost(&profile, &op), op.bytes / 0.8e12 + 1e-6, PL_COST_ROOFLINE, PL_BOUND_MEMORY);
  op = gemm(PL_DTYPE_FP16, 1, 32, 32, 32);
  pl_op_time time = pl_op_cost(&profile, &op);
  assert_int_equal(time.bound, PL_BOUND_LAUNCH);
  assert_true(time.time_s > 1e-6);
  op = (pl_op){.kind = PL_OP_NORM,
               .category = PL_CATEGORY_FORWARD,
               .dtype = PL_DTYPE_FP16,
               .batch = 1,
               .m = 1 << 14,
               .n = 4096,
               .flops = 5e7,
               .bytes = 4e8};
  expect(pl_op_cost(&profile, &op), 4e8 / 0.8e12 + 1e-6, PL_COST_ROOFLINE, PL_BOUND_MEMORY);
  op.kind = PL_OP_ATTENTION;
  op.flops = 1e12;
  expect(pl_op_cost(&profile, &op), 1e12 / 25e12 + 1e-6, PL_COST_ROOFLINE, PL_BOUND_COMPUTE);
}

static void test_tiles(void **state) {
  (void)state;
  pl_device_profile profile = profile_of(NULL, 0);
  pl_op odd = gemm(PL_DTYPE_FP16, 1, 4095, 4065, 4096), whole = gemm(PL_DTYPE_FP16, 1, 4096, 4096, 4096);
  assert_true(pl_op_cost(&profile, &odd).time_s == pl_op_cost(&profile, &whole).time_s);
}

static void test_table(void **state) {
  (void)state;
  /* In the profile's order: kind, dtype, pass, dims. */
  static const pl_op_entry ops[] = {
      {"attention", "backward", PL_DTYPE_FP16, {16, 1024, 1024, 64}, 5e-3},
      {"attention", "forward", PL_DTYPE_FP16, {16, 1024, 1024, 64}, 2e-3},
      {"gemm", "", PL_DTYPE_FP16, {1, 512, 512, 512}, 7e-3},
      {"gemm", "", PL_DTYPE_FP16, {1, 512, 512, 1024}, 8e-3},
      {"gemm", "forward", PL_DTYPE_FP16, {1, 512, 512, 512}, 6e-3},
  };
  pl_device_profile profile = profile_of(ops, sizeof ops / sizeof ops[0]);
  pl_op op = gemm(PL_DTYPE_FP16, 1, 512, 512, 512);
  expect(pl_op_cost(&profile, &op), 6e-3, PL_COST_TABLE, PL_BOUND_COMPUTE);
  op.category = PL_CATEGORY_RECOMPUTE;
  expect(pl_op_cost(&profile, &op), 6e-3, PL_COST_TABLE, PL_BOUND_COMPUTE);
  op.category = PL_CATEGORY_BACKWARD; /* no entry of that pass: the one of any */
  expect(pl_op_cost(&profile, &op), 7e-3, PL_COST_TABLE, PL_BOUND_COMPUTE);
  op = gemm(PL_DTYPE_FP16, 1, 512, 512, 513);
  assert_int_equal(pl_op_cost(&profile, &op).source, PL_COST_ROOFLINE);
  op = gemm(PL_DTYPE_FP32, 1, 512, 512, 512);
  assert_int_equal(pl_op_cost(&profile, &op).source, PL_COST_ROOFLINE);
  op = gemm(PL_DTYPE_FP16, 16, 1024, 1024, 64);
  op.kind = PL_OP_ATTENTION;
  op.category = PL_CATEGORY_BACKWARD;
  assert_true(pl_op_cost(&profile, &op).time_s == 5e-3);
}

/* Every entry of a large table is found, and nothing beside it. */
/* Tensor cores of the profile do 40 % of their peak for long: what is faster alone takes as long as that says, what is
 * slower, is bound by memory, is no product, is in fp32 or was measured stays. */
static void test_sustained(void **state) {
  (void)state;
  pl_device_profile free = profile_of(NULL, 0), limited = free;
  limited.sustained_compute = 0.4;
  pl_op op = gemm(PL_DTYPE_FP16, 1, 4096, 4096, 4096);
  expect(pl_op_cost(&limited, &op), op.flops / 40e12, PL_COST_ROOFLINE, PL_BOUND_COMPUTE);
  limited.sustained_compute = 0.6; /* more than the 50 % that products reach anyway */
  assert_true(pl_op_cost(&limited, &op).time_s == pl_op_cost(&free, &op).time_s);
  limited.sustained_compute = 0.2;
  pl_op attention = {.kind = PL_OP_ATTENTION, .category = PL_CATEGORY_FORWARD, .dtype = PL_DTYPE_FP16, .flops = 1e12};
  expect(pl_op_cost(&limited, &attention), 1e12 / 20e12, PL_COST_ROOFLINE, PL_BOUND_COMPUTE);
  const pl_op others[] = {gemm(PL_DTYPE_FP16, 1, 32, 32, 1 << 20),
                          gemm(PL_DTYPE_FP32, 1, 4096, 4096, 4096),
                          {.kind = PL_OP_NORM, .dtype = PL_DTYPE_FP16, .flops = 1e14, .bytes = 4e8}};
  for (int i = 0; i < 3; i++)
    assert_true(pl_op_cost(&limited, &others[i]).time_s == pl_op_cost(&free, &others[i]).time_s);
  const pl_op_entry measured = {.kind = "gemm", .dtype = PL_DTYPE_FP16, .dims = {1, 4096, 4096, 4096}, .time_s = 1e-6};
  limited.ops = &measured;
  limited.n_ops = 1;
  expect(pl_op_cost(&limited, &op), 1e-6, PL_COST_TABLE, PL_BOUND_COMPUTE);
}

/* What is filled beforehand is one kernel more. FlashAttention 2's deterministic backward pass of 32 heads on 108
 * multiprocessors: 4 shares of 64 key tiles each, 128 blocks in two rounds of 16 tiles instead of 18.96 each. */
/* Gradients of products in fp8 add up in fp32, which takes longer where the profile says so: behind the sustained rate,
 * of what computing bounds, and of nothing else. */
static void test_split_accumulation(void **state) {
  (void)state;
  pl_device_profile profile = profile_of(NULL, 0);
  profile.peak_flops[PL_DTYPE_FP8] = 200e12;
  profile.split_accumulation = 1.25;
  pl_op op = gemm(PL_DTYPE_FP8, 1, 4096, 4096, 4096);
  const double alone_s = op.flops / 100e12 + 1e-6, held_s = op.flops / (200e12 * 0.4);
  expect(pl_op_cost(&profile, &op), alone_s, PL_COST_ROOFLINE, PL_BOUND_COMPUTE);
  op.category = PL_CATEGORY_RECOMPUTE;
  expect(pl_op_cost(&profile, &op), alone_s, PL_COST_ROOFLINE, PL_BOUND_COMPUTE);
  op.category = PL_CATEGORY_BACKWARD;
  expect(pl_op_cost(&profile, &op), 1.25 * alone_s, PL_COST_ROOFLINE, PL_BOUND_COMPUTE);
  profile.sustained_compute = 0.4;
  expect(pl_op_cost(&profile, &op), 1.25 * held_s, PL_COST_ROOFLINE, PL_BOUND_COMPUTE);
  op = gemm(PL_DTYPE_FP16, 1, 4096, 4096, 4096);
  op.category = PL_CATEGORY_BACKWARD;
  expect(pl_op_cost(&profile, &op), op.flops / 40e12, PL_COST_ROOFLINE, PL_BOUND_COMPUTE);
  op = gemm(PL_DTYPE_FP8, 1, 32, 32, 1 << 20);
  op.category = PL_CATEGORY_BACKWARD;
  expect(pl_op_cost(&profile, &op), op.bytes / 0.8e12 + 1e-6, PL_COST_ROOFLINE, PL_BOUND_MEMORY);
}

static void test_deterministic(void **state) {
  (void)state;
  pl_device_profile profile = profile_of(NULL, 0);
  pl_op op = gemm(PL_DTYPE_FP16, 1, 1024, 1024, 1024);
  double plain_s = pl_op_cost(&profile, &op).time_s;
  op.filled_bytes = 8e6;
  assert_true(fabs(pl_op_cost(&profile, &op).time_s - plain_s - 11e-6) < 1e-12);
  pl_attention_profile flash = {.kernel = PL_ATTENTION_FLASH2,
                                .n_head_sizes = 1,
                                .head_size = {128},
                                .efficiency = {0.6},
                                .multiprocessors = 108,
                                .query_tile = 128,
                                .key_tile = 64,
                                .backward_ratio = 2.6};
  profile.attention = &flash;
  profile.n_attention = 1;
  double flops = 10.0 * 32 * 128 * 8192 * 8192 / 2;
  op = (pl_op){
      .kind = PL_OP_ATTENTION, .category = PL_CATEGORY_BACKWARD, .dtype = PL_DTYPE_FP16, .batch = 32, .flops = flops};
  op.m = op.n = 8192;
  op.k = 128;
  double free_s = pl_op_cost(&profile, &op).time_s, helpers_s = 14.0 * 32 * 8192 * 128 / 0.8e12;
  op.deterministic = true;
  double fixed_s = pl_op_cost(&profile, &op).time_s;
  assert_true(fabs((fixed_s - helpers_s) / (free_s - helpers_s) - 2 * 16 * 108 / (32.0 * 64)) < 1e-9);
  flash.kernel = PL_ATTENTION_CUDNN;
  assert_true(pl_op_cost(&profile, &op).time_s == free_s);
}

/* Steps of context parallelism: kernels one after the other, each with its launch. */
static void test_times(void **state) {
  (void)state;
  pl_device_profile profile = profile_of(NULL, 0);
  const pl_op one = {.kind = PL_OP_ATTENTION,
                     .category = PL_CATEGORY_BACKWARD,
                     .dtype = PL_DTYPE_FP16,
                     .batch = 32,
                     .m = 1024,
                     .n = 1024,
                     .k = 128,
                     .flops = 1e10,
                     .bytes = 4e7};
  pl_op three = one;
  three.times = 3;
  three.flops *= 3;
  three.bytes *= 3;
  expect(pl_op_cost(&profile, &three), 3 * (1e10 / 25e12 + 1e-6), PL_COST_ROOFLINE, PL_BOUND_COMPUTE);
}

static void test_search(void **state) {
  (void)state;
  enum { N = 1000 };
  static pl_op_entry ops[N];
  for (int i = 0; i < N; i++)
    ops[i] = (pl_op_entry){"gemm", "", PL_DTYPE_FP16, {1 + i / 100, 2 * (i / 10 % 10), 2 * (i % 10), 7}, 1.0 + i};
  pl_device_profile profile = profile_of(ops, N);
  for (int i = 0; i < N; i++) {
    pl_op op = gemm(PL_DTYPE_FP16, ops[i].dims[0], ops[i].dims[1], ops[i].dims[2], 7);
    assert_true(pl_op_cost(&profile, &op).time_s == 1.0 + i);
    op.m++;
    assert_int_equal(pl_op_cost(&profile, &op).source, PL_COST_ROOFLINE);
  }
}

static void test_optimizer(void **state) {
  (void)state;
  pl_device_profile profile = profile_of(NULL, 0);
  expect(pl_optimizer_cost(&profile, 1e9, 30), 30e9 / 0.8e12 + 1e-6, PL_COST_ROOFLINE, PL_BOUND_MEMORY);
  assert_true(pl_optimizer_cost(&profile, 0, 30).time_s == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_roofline),
      cmocka_unit_test(test_tiles),
      cmocka_unit_test(test_table),
      cmocka_unit_test(test_sustained),
      cmocka_unit_test(test_split_accumulation),
      cmocka_unit_test(test_deterministic),
      cmocka_unit_test(test_search),
      cmocka_unit_test(test_optimizer),
      cmocka_unit_test(test_times),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
