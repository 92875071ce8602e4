/* Fused attention's time against closed forms.
 *
 * With tiles of 128 queries and 64 keys, head size 128, one multiprocessor at full efficiency that does
 * 4 * 128 * 128 FLOPs per key in 1 s / 1e6: e = 1 us per key. Then
 *   causal, s = 256: blocks see 128 and 256 keys; with prologue p, W = heads * (384 + 2 p)
 *   causal, s = n * 128: W / heads = 128 n (n + 1) / 2 + n p
 *   causal, s = 130: the second block sees ceil(130 / 64) * 64 = 192 keys
 *   no mask: every block sees s keys
 *   window w: a block sees at most ceil((w + 128) / 64) * 64 keys
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <cmocka.h>

#include "workloads/cost/attention_cost.h"
#include "workloads/cost/op_cost.h"

static const double peak = 4.0 * 128 * 128 * 1e6; /* of the whole device */

static pl_attention_profile kernel(double multiprocessors) {
  return (pl_attention_profile){.kernel = PL_ATTENTION_FLASH2,
                                .n_head_sizes = 2,
                                .head_size = {64, 128},
                                .efficiency = {0.5, 1},
                                .multiprocessors = multiprocessors,
                                .query_tile = 128,
                                .key_tile = 64,
                                .prologue_keys = 10,
                                .tail = 0.5,
                                .overhead_s = 3e-6,
                                .backward_ratio = 3,
                                .backward_prologue_keys = 20,
                                .backward_overhead_s = 5e-6};
}

static pl_attention_shape causal(double heads, double s) {
  return (pl_attention_shape){
      .heads = heads, .queries = s, .keys = s, .head_size = 128, .pairs = s * s / 2, .bytes = 1e3};
}

/* Keys worth of time on a device of `multiprocessors` that share the peak. */
static double keys_of(double multiprocessors, const pl_attention_shape *shape) {
  pl_attention_profile attention = kernel(multiprocessors);
  return pl_attention_time_of(&attention, peak, 1e9, shape).compute_s * 1e6 / multiprocessors;
}

static void expect(double value, double expected) {
  if (fabs(value - expected) > 1e-12 * fabs(expected)) fail_msg("%.17g, not %.17g", value, expected);
}

static void test_causal(void **state) {
  (void)state;
  pl_attention_shape shape = causal(1, 256);
  expect(keys_of(1, &shape), 384 + 2 * 10 + 0.5 * (384.0 / 2 + 10));
  for (int n = 2; n <= 40; n++) {
    shape = causal(3, 128 * n);
    double w = 3 * (128.0 * n * (n + 1) / 2 + n * 10);
    expect(keys_of(1, &shape), w + 0.5 * w / (3 * n));
  }
  shape = causal(1, 130);
  expect(keys_of(1, &shape), (128 + 192 + 20) + 0.5 * (128 + 192 + 20) / 2);
}

/* Few blocks: the longest one decides, however long the tail; more than multiprocessors: queueing. */
static void test_multiprocessors(void **state) {
  (void)state;
  pl_attention_shape shape = causal(1, 1024); /* 8 blocks */
  expect(keys_of(8, &shape), 1024 + 10);
  pl_attention_profile long_tail = kernel(8);
  long_tail.tail = 2;
  expect(pl_attention_time_of(&long_tail, peak, 1e9, &shape).compute_s, 8e-6 * (1024 + 10));
  expect(keys_of(1000, &shape), 1024 + 10);
  shape = causal(4, 1024);
  double w = 4 * (128.0 * 8 * 9 / 2 + 80);
  expect(keys_of(8, &shape), w / 8 + 0.5 * w / 32);
}

static void test_no_mask(void **state) {
  (void)state;
  pl_attention_shape shape = causal(5, 512);
  shape.pairs = 512.0 * 512;
  expect(keys_of(20, &shape), 512 + 10); /* 20 blocks: one wave */
  expect(keys_of(19, &shape), 2 * (512 + 10));
  shape.keys = 1000; /* cross-attention: 16 key tiles */
  shape.pairs = 512.0 * 1000;
  expect(keys_of(20, &shape), 1024 + 10);
}

static void test_window(void **state) {
  (void)state;
  double s = 4096, window = 512;
  pl_attention_shape shape = causal(1, s);
  shape.pairs = s * window - window * window / 2;
  /* Blocks 0 to 4 see 128 ... 640, the other 27 see 640. */
  double w = 128.0 * (1 + 2 + 3 + 4 + 5) + 27 * 640 + 32 * 10;
  expect(keys_of(1, &shape), w + 0.5 * w / 32);
}

static void test_backward_and_head_size(void **state) {
  (void)state;
  pl_attention_profile attention = kernel(8);
  pl_attention_shape shape = causal(1, 1024);
  shape.backward = true;
  pl_attention_time time = pl_attention_time_of(&attention, peak, 1e9, &shape);
  expect(time.compute_s, 3 * 8e-6 * (1024 + 20));
  expect(time.overhead_s, 5e-6);
  expect(time.memory_s, 1e-6);
  expect(time.helpers_s, 14.0 * 1024 * 128 / 1e9);
  shape.backward = false;
  shape.head_size = 64; /* half the work at half the efficiency */
  expect(keys_of(8, &shape), 1024 + 10);
  shape.head_size = 70; /* padded to 96: 3/4 of the work at 3/4 of the efficiency */
  expect(keys_of(8, &shape), 1024 + 10);
  shape.head_size = 256; /* twice the work at the efficiency of the largest */
  expect(keys_of(8, &shape), 2 * (1024 + 10));
  shape.head_size = 32; /* the exponentials remain: no faster than 64 */
  expect(keys_of(8, &shape), 1024 + 10);
}

static pl_op attention_op(void) {
  return (pl_op){.kind = PL_OP_ATTENTION,
                 .category = PL_CATEGORY_FORWARD,
                 .dtype = PL_DTYPE_FP16,
                 .batch = 1,
                 .m = 1024,
                 .n = 1024,
                 .k = 128,
                 .flops = 4.0 * 128 * 1024 * 1024 / 2,
                 .bytes = 1e3};
}

/* From an op: pairs are read back from FLOPs, of the backward too; data types other than 16 bits take the roofline. */
static void test_op(void **state) {
  (void)state;
  pl_attention_profile kernels[2] = {kernel(8), kernel(8)};
  kernels[1].kernel = PL_ATTENTION_FLASH3;
  kernels[1].overhead_s = 100e-6;
  pl_device_profile profile = {.bandwidth_Bps = 1e9,
                               .bandwidth_efficiency = 1,
                               .compute_efficiency = 1,
                               .attention_efficiency = 1,
                               .attention = kernels,
                               .n_attention = 2};
  profile.peak_flops[PL_DTYPE_FP16] = profile.peak_flops[PL_DTYPE_FP32] = peak;
  pl_op op = attention_op();
  pl_op_time time = pl_op_cost(&profile, &op);
  expect(time.time_s, 8e-6 * (1024 + 10) + 3e-6);
  assert_int_equal(time.source, PL_COST_FIT);
  assert_int_equal(time.bound, PL_BOUND_COMPUTE);
  op.attention_kernel = PL_ATTENTION_FLASH3;
  expect(pl_op_cost(&profile, &op).time_s, 8e-6 * (1024 + 10) + 100e-6);
  op.attention_kernel = PL_ATTENTION_CUDNN; /* the profile has none: the nearest generation */
  expect(pl_op_cost(&profile, &op).time_s, 8e-6 * (1024 + 10) + 100e-6);
  op.attention_kernel = PL_ATTENTION_FLASH1;
  expect(pl_op_cost(&profile, &op).time_s, 8e-6 * (1024 + 10) + 3e-6);
  op.category = PL_CATEGORY_BACKWARD;
  op.flops *= PL_ATTENTION_BACKWARD_FLOPS;
  expect(pl_op_cost(&profile, &op).time_s, 3 * 8e-6 * (1024 + 20) + 14.0 * 1024 * 128 / 1e9 + 5e-6);
  op.dtype = PL_DTYPE_FP32;
  assert_int_equal(pl_op_cost(&profile, &op).source, PL_COST_ROOFLINE);
}

static void test_memory_kernels(void **state) {
  (void)state;
  pl_device_profile profile = {.bandwidth_Bps = 1e12, .bandwidth_efficiency = 0.5, .launch_overhead_s = 1e-6};
  profile.kernels[PL_KERNEL_NORM][1] = (pl_kernel_profile){.bandwidth_efficiency = 0.25, .overhead_s = 7e-6};
  profile.kernels[PL_KERNEL_OPTIMIZER][0] = (pl_kernel_profile){.bandwidth_efficiency = 0.8, .overhead_s = 9e-6};
  pl_op op = {
      .kind = PL_OP_NORM, .category = PL_CATEGORY_FORWARD, .dtype = PL_DTYPE_FP16, .m = 1, .n = 1, .bytes = 1e6};
  expect(pl_op_cost(&profile, &op).time_s, 2e-6 + 1e-6);
  assert_int_equal(pl_op_cost(&profile, &op).source, PL_COST_ROOFLINE);
  op.category = PL_CATEGORY_BACKWARD;
  expect(pl_op_cost(&profile, &op).time_s, 4e-6 + 7e-6);
  assert_int_equal(pl_op_cost(&profile, &op).source, PL_COST_FIT);
  assert_int_equal(pl_op_cost(&profile, &op).bound, PL_BOUND_LAUNCH);
  op.bytes = 1e9;
  assert_int_equal(pl_op_cost(&profile, &op).bound, PL_BOUND_MEMORY);
  op.kind = PL_OP_ELEMENTWISE;
  assert_int_equal(pl_op_cost(&profile, &op).source, PL_COST_ROOFLINE);
  expect(pl_optimizer_cost(&profile, 1e6, 16).time_s, 20e-6 + 9e-6);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_causal),
                                     cmocka_unit_test(test_multiprocessors),
                                     cmocka_unit_test(test_no_mask),
                                     cmocka_unit_test(test_window),
                                     cmocka_unit_test(test_op),
                                     cmocka_unit_test(test_backward_and_head_size),
                                     cmocka_unit_test(test_memory_kernels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
