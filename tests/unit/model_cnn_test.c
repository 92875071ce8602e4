/* Convolutional networks: layers as text, parameters to the unit, FLOPs, derivatives, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/arena_fixture.h"
#include "workloads/cost/convolution_cost.h"
#include "workloads/cost/op_cost.h"
#include "workloads/framework/framework.h"
#include "workloads/import/model_file.h"
#include "workloads/ir/chain.h"
#include "workloads/ir/model.h"
#include "workloads/lower/block_program.h"

static pl_model load(const char *name) {
  char path[256];
  pl_model model;
  pl_error error = PL_ERROR_INIT;
  snprintf(path, sizeof path, "workloads/models/%s.json", name);
  if (pl_model_load(path, &arena, &model, &error) != PL_OK) fail_msg("%s", error.message);
  return model;
}

/* Parameters and multiply-adds as torchvision publishes them (Inception v3 without its auxiliary classifier). */
static void test_published_counts(void **state) {
  (void)state;
  static const struct {
    const char *name;
    double parameters, giga_macs;
  } known[] = {{"resnet-50", 25557032, 4.09},
               {"vgg-16", 138357544, 15.47},
               {"vgg-19", 143667240, 19.63},
               {"inception-v3", 23834568, 5.71}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    pl_model model = load(known[i].name);
    assert_true(model.count.parameters == known[i].parameters);
    double macs = pl_model_flops_per_sequence(&model, 1) / 6 * 1e-9;
    assert_true(fabs(macs - known[i].giga_macs) < 0.01);
  }
}

static pl_code parse(const char *text, pl_picture in, bool norm, pl_chain *chain, pl_error *error) {
  *error = (pl_error)PL_ERROR_INIT;
  return pl_chain_parse(text, in, norm, &arena, chain, error);
}

static void expect_picture(const char *text, pl_picture in, int32_t channels, int32_t height, int32_t width) {
  pl_chain chain;
  pl_error error;
  if (parse(text, in, true, &chain, &error) != PL_OK) fail_msg("%s: %s", text, error.message);
  if (chain.out.channels != channels || chain.out.height != height || chain.out.width != width)
    fail_msg("%s: %d x %d x %d", text, chain.out.channels, chain.out.height, chain.out.width);
}

static void test_shapes(void **state) {
  (void)state;
  const pl_picture in = {3, 224, 112};
  expect_picture("conv 64 7x7/2", in, 64, 112, 56);
  expect_picture("conv 64 7x7/2v", in, 64, 109, 53);
  expect_picture("conv 8 1x7v", in, 8, 224, 106);
  expect_picture("conv 64 7x7/2, max 3/2", in, 64, 56, 28);
  expect_picture("max 3/2v", in, 3, 111, 55);
  expect_picture("average 3", in, 3, 224, 112);
  expect_picture("mean", in, 3, 1, 1);
  expect_picture("linear 10", in, 10, 1, 1);
  expect_picture("[conv 8 3x3/2]", in, 8, 112, 56);
  expect_picture("(conv 8 1x1 | conv 4 1x1, (conv 2 1x3 | conv 3 3x1) | )", in, 16, 224, 112);
}

/* Steps of a residual block: the ReLU moves behind the sum; a shortcut where shapes differ, and none where not. */
static void test_residual(void **state) {
  (void)state;
  pl_chain chain;
  pl_error error;
  assert_int_equal(parse("[conv 4 1x1, conv 8 3x3]", (pl_picture){8, 6, 6}, true, &chain, &error), PL_OK);
  static const pl_chain_step_kind same[] = {PL_STEP_CONVOLUTION, PL_STEP_NORM, PL_STEP_RELU, PL_STEP_CONVOLUTION,
                                            PL_STEP_NORM,        PL_STEP_ADD,  PL_STEP_RELU};
  assert_int_equal(chain.n_steps, 7);
  for (uint32_t i = 0; i < 7; i++)
    assert_int_equal(chain.steps[i].kind, same[i]);
  assert_int_equal(chain.steps[5].first, 5);
  assert_int_equal(chain.steps[5].second, 0);
  assert_int_equal(parse("[conv 4 1x1, conv 16 3x3/2]", (pl_picture){8, 6, 6}, true, &chain, &error), PL_OK);
  assert_int_equal(chain.n_steps, 9);
  const pl_chain_step *shortcut = &chain.steps[5];
  assert_true(shortcut->kind == PL_STEP_CONVOLUTION && shortcut->first == 0 && shortcut->stride == 2 &&
              shortcut->filter_height == 1 && shortcut->out.channels == 16);
  assert_true(pl_chain_parameters(&chain) == 8 * 4 + 2 * 4 + 4 * 16 * 9 + 2 * 16 + 8 * 16 + 2 * 16);
  assert_int_equal(parse("conv 4 3x3", (pl_picture){8, 6, 6}, false, &chain, &error), PL_OK);
  assert_int_equal(chain.n_steps, 2); /* a bias instead of a norm */
  assert_true(pl_chain_parameters(&chain) == 8 * 4 * 9 + 4);
}

static void test_refused_chains(void **state) {
  (void)state;
  static const struct {
    const char *text, *why;
  } cases[] = {{"", "unknown layer"},
               {"convolution 3", "unknown layer"},
               {"conv", "a positive number is missing"},
               {"conv 64", "a positive number is missing"},
               {"conv 0 3x3", "a positive number is missing"},
               {"conv 64 3x", "a positive number is missing"},
               {"conv 64 3x3/0", "a positive number is missing"},
               {"conv 99999999999 3x3", "too large"},
               {"conv 64 9x9v", "smaller than the filter"},
               {"conv 524288 1x1, (|), (|)", "more than 1048576 channels"},
               {"conv 64 3x3 conv 64 3x3", "a comma or the end"},
               {"conv 64 3x3,", "unknown layer"},
               {"[conv 64 3x3", "']' is missing"},
               {"[]", "a residual block without a layer"},
               {"(conv 64 3x3 | conv 64 3x3/2)", "unlike sizes"},
               {"(conv 64 3x3", "')' is missing"},
               {"conv 64 3x3]", "not opened"},
               {"((((((((((conv 1 1x1))))))))))", "too deep"},
               {"conv 1 1x1, conv 1 1x1, conv 1 1x1, conv 1 1x1, conv 1 1x1, conv 1 1x1, conv 1 1x1, conv 1 1x1, conv "
                "1 1x1, conv 1 1x1, conv 1 1x1, conv 1 1x1, conv 1 1x1",
                "more layers than a block may have"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    pl_chain chain;
    pl_error error;
    assert_int_equal(parse(cases[i].text, (pl_picture){3, 8, 8}, true, &chain, &error), PL_BAD_INPUT);
    if (strstr(error.message, cases[i].why) == NULL) fail_msg("%s: %s", cases[i].text, error.message);
  }
}

#define HEAD "{\"model_type\": \"cnn\", \"image\": [3, 8, 8], \"blocks\": "

static void test_refused_files(void **state) {
  (void)state;
  static const struct {
    const char *text, *why;
  } cases[] = {{"{\"model_type\": \"cnn\", \"blocks\": []}", "'image' must be a list of three"},
               {"{\"model_type\": \"cnn\", \"image\": [3, 8.5, 8], \"blocks\": []}", "8.5 is not from 1"},
               {"{\"model_type\": \"cnn\", \"image\": [3, 8, 8]}", "'blocks' must be a list"},
               {HEAD "[\"conv 4 3x3*6\"], \"norm\": \"group\"}", "'norm' is 'group'; supported are batch and none"},
               {HEAD "[\"conv 4 3x3\"]}", "'blocks': 1 of them; 6 are needed"},
               {HEAD "[\"conv 4 3x3*0\"]}", "has a count that is not from 1"},
               {HEAD "[\"conv 4 3x3*\"]}", "has a count that is not from 1"},
               {HEAD "[\"konv 4 3x3*6\"]}", "unknown layer"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    pl_model model;
    pl_error error = PL_ERROR_INIT;
    assert_int_equal(pl_model_parse("net.json", cases[i].text, strlen(cases[i].text), &arena, &model, &error),
                     PL_BAD_INPUT);
    assert_non_null(strstr(error.message, "net.json:1"));
    if (strstr(error.message, cases[i].why) == NULL) fail_msg("%s: %s", cases[i].text, error.message);
  }
}

static const pl_block_shard fp32 = {.tmp = 1, .mbs = 4, .seq = 1, .dtype = PL_DTYPE_FP32};

static pl_block_program program_of(const pl_model *model, int32_t block, const pl_block_shard *shard) {
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  int32_t class_of_block = pl_model_block_class(model, block);
  if (pl_block_class_program_take(model, class_of_block, shard, &arena, &program, &error) != PL_OK)
    fail_msg("%s", error.message);
  return program;
}

static double sum_flops(pl_op_list list, pl_op_kind kind) {
  double sum = 0;
  for (uint32_t i = 0; i < list.n_ops; i++)
    if (list.ops[i].kind == kind && list.ops[i].category != PL_CATEGORY_RECOMPUTE) sum += list.ops[i].flops;
  return sum;
}

/* Each convolution has two derivatives of its own work; the very first none with respect to the pictures. */
static void test_derivatives(void **state) {
  (void)state;
  pl_model model = load("resnet-50");
  for (int32_t block = 1; block < 18; block++) {
    pl_block_program program = program_of(&model, block, &fp32);
    double forward = sum_flops(program.forward, PL_OP_CONVOLUTION),
           backward = sum_flops(program.backward, PL_OP_CONVOLUTION);
    assert_true(fabs(backward - 2 * forward) <= 1e-9 * forward);
    assert_true(program.input != PL_NONE && program.input_gradient != PL_NONE);
    assert_true(program.parameters == pl_model_block_parameters(&model, block));
  }
  pl_block_program first = program_of(&model, 0, &fp32);
  assert_true(sum_flops(first.backward, PL_OP_CONVOLUTION) == sum_flops(first.forward, PL_OP_CONVOLUTION));
  assert_true(first.input == PL_NONE && first.input_gradient == PL_NONE);
}

/* What is kept of a bottleneck: its input, and of each convolution what it made and, but for the last, that rectified.
 * Recomputation keeps the input alone. */
static void test_memory(void **state) {
  (void)state;
  pl_model model = load("resnet-50");
  double points = 4.0 * 56 * 56;
  pl_block_program program = program_of(&model, 2, &fp32);
  assert_true(program.saved_bytes == 4 * points * (256 + 2 * 64 + 2 * 64 + 256 + 256));
  pl_block_shard full = fp32;
  full.recompute = PL_RECOMPUTE_FULL;
  program = program_of(&model, 2, &full);
  assert_true(program.saved_bytes == 4 * points * 256);
  assert_true(sum_flops(program.backward, PL_OP_CONVOLUTION) == 2 * sum_flops(program.forward, PL_OP_CONVOLUTION));
}

static const pl_op *find_op(pl_op_list list, const char *name) {
  for (const pl_op *op = list.ops; op < list.ops + list.n_ops; op++)
    if (strcmp(op->name, name) == 0) return op;
  fail_msg("no %s", name);
  return NULL;
}

static double sum_bytes(pl_op_list list) {
  double sum = 0;
  for (uint32_t i = 0; i < list.n_ops; i++)
    sum += list.ops[i].bytes;
  return sum;
}

/* A bottleneck has three batch norms, each with a ReLU, two 64 channels wide, and the third, of 256, with an addition.
 * In sizes of their pictures, ops of their own move 3 (norm), 3 (addition) and 2 (ReLU) forward, 5 (norm) and 3 (ReLU)
 * backward; one kernel 2, or 3 with the addition, and 3 or 4, and signs of the ReLU's result, a sixteenth of 16 bits,
 * in either pass, which are kept. What the last ReLU made is not read again. In fp32 there is no such kernel. */
static void test_fused_batch_norm(void **state) {
  (void)state;
  pl_model model = load("resnet-50");
  pl_framework framework = pl_framework_ideal;
  framework.kernels.fuses_batch_norm = true;
  pl_block_shard half = fp32, fused = fp32, wide = fp32;
  half.dtype = fused.dtype = PL_DTYPE_FP16;
  fused.framework = wide.framework = &framework;
  double points = 2.0 * 4 * 56 * 56, signs = points * (2 * 64 + 256) / 16;
  for (int32_t block = 1; block < 3; block++) { /* the first has a fourth batch norm, without either */
    const pl_block_program ops = program_of(&model, block, &half), one = program_of(&model, block, &fused);
    assert_int_equal(ops.forward.n_ops - one.forward.n_ops, 4);
    assert_int_equal(ops.backward.n_ops - one.backward.n_ops, 3);
    assert_true(sum_bytes(ops.forward) - sum_bytes(one.forward) == points * (2 * 64 * (5 - 2) + 256 * (8 - 3)) - signs);
    assert_true(sum_bytes(ops.backward) - sum_bytes(one.backward) ==
                points * (2 * 64 * (8 - 3) + 256 * (8 - 4)) - signs);
    assert_true(ops.saved_bytes - one.saved_bytes == points * 256 - signs && one.parameters == ops.parameters);
    assert_true(sum_flops(one.backward, PL_OP_CONVOLUTION) == sum_flops(ops.backward, PL_OP_CONVOLUTION));
    assert_true(find_op(one.forward, "batch_norm")->kind == PL_OP_ELEMENTWISE);
  }
  assert_int_equal(program_of(&model, 2, &wide).forward.n_ops, program_of(&model, 2, &fp32).forward.n_ops);
}

/* Batch norms are as fast as the memory, not as norms of rows: by the device's bandwidth, whatever its norms reach. */
static void test_rate_of_batch_norm(void **state) {
  (void)state;
  pl_model model = load("resnet-50");
  pl_device_profile profile = {.bandwidth_Bps = 1e12, .bandwidth_efficiency = 0.8};
  profile.kernels[PL_KERNEL_NORM][0].bandwidth_efficiency = profile.kernels[PL_KERNEL_NORM][1].bandwidth_efficiency =
      0.2;
  const pl_block_program block = program_of(&model, 2, &fp32);
  const pl_op *norms[] = {find_op(block.forward, "batch_norm"), find_op(block.backward, "batch_norm_backward")};
  for (int i = 0; i < 2; i++)
    assert_true(fabs(pl_op_cost(&profile, norms[i]).time_s - norms[i]->bytes / 0.8e12) < 1e-15);
}

/* All blocks together, three times over, are what a picture takes. */
static void test_model_flops(void **state) {
  (void)state;
  pl_model model = load("resnet-50");
  double forward = 0;
  for (int32_t block = 0; block < pl_model_n_blocks(&model); block++)
    forward += program_of(&model, block, &fp32).model_flops;
  double all = 3 * forward / fp32.mbs, expected = pl_model_flops_per_sequence(&model, 1);
  assert_true(forward > 0 && fabs(all - expected) < 1e-12 * expected);
}

static void test_no_tensor_ranks(void **state) {
  (void)state;
  pl_model model = load("resnet-50");
  pl_block_shard split = fp32;
  split.tmp = 2;
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_block_class_program_take(&model, 0, &split, &arena, &program, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "convolutions are not split over tensor ranks; use tmp=1"));
}

/* ---- cost ---- */

static pl_device_profile device(const pl_convolution_fit *fits, uint32_t n) {
  pl_device_profile profile = {.bandwidth_Bps = 1e12,
                               .compute_efficiency = 0.5,
                               .bandwidth_efficiency = 1,
                               .convolutions = fits,
                               .n_convolutions = n};
  profile.peak_flops[PL_DTYPE_FP32] = 10e12;
  profile.peak_flops[PL_DTYPE_FP16] = 100e12;
  return profile;
}

/* Block 2 of ResNet-50, 4 pictures: 12,544 points; the 3x3 convolution is [12544, 576] x [576, 64]. */
static void test_formula(void **state) {
  (void)state;
  pl_model model = load("resnet-50");
  pl_block_program program = program_of(&model, 2, &fp32);
  const pl_op *small = find_op(program.forward, "conv3x3"), *wide = find_op(program.forward, "conv1x1");
  assert_true(small->m == 12544 && small->n == 64 && small->k == 576);
  const pl_convolution_fit fit = {.dtypes = 1u << PL_DTYPE_FP32,
                                  .pass = PL_CONVOLUTION_FORWARD,
                                  .multiprocessors = 98, /* as many as there are thread blocks: no idle ones */
                                  .tile_m = 128,
                                  .tile_n = 64,
                                  .efficiency = 0.5,
                                  .efficiency_3x3 = 2,
                                  .bandwidth_efficiency = 1,
                                  .overhead_s = 1e-6,
                                  .depth = 57.6};
  pl_device_profile profile = device(&fit, 1);
  double flops = 2.0 * 12544 * 64 * 576;
  pl_op_time time = pl_op_cost(&profile, small);
  assert_int_equal(time.source, PL_COST_FIT);
  assert_true(fabs(time.time_s - (1e-6 + 1.1 * flops / 20e12)) < 1e-12);
  flops = 2.0 * 12544 * 64 * 256;
  time = pl_op_cost(&profile, wide);
  assert_true(fabs(time.time_s - (1e-6 + (1 + 57.6 / 256) * flops / 5e12)) < 1e-12);
  /* Another pass has no fit: the roofline, at half the peak. */
  const pl_op *wgrad = find_op(program.backward, "conv3x3_wgrad");
  assert_int_equal(wgrad->convolution_pass, PL_CONVOLUTION_WEIGHT);
  time = pl_op_cost(&profile, wgrad);
  assert_int_equal(time.source, PL_COST_ROOFLINE);
  assert_true(fabs(time.time_s - 2.0 * 12544 * 64 * 576 / 5e12) < 1e-12);
}

/* Three channels do not fill tensor cores of 16 bits. */
static void test_alignment(void **state) {
  (void)state;
  pl_model model = load("resnet-50");
  pl_block_shard half = fp32;
  half.dtype = PL_DTYPE_FP16;
  pl_device_profile profile = device(NULL, 0);
  const pl_block_program first = program_of(&model, 0, &half), second = program_of(&model, 2, &half);
  const pl_op *narrow = find_op(first.forward, "conv7x7"), *wide = find_op(second.forward, "conv3x3");
  assert_true(pl_op_cost(&profile, narrow).time_s >= narrow->flops / (0.5 * 10e12));
  double seconds = pl_op_cost(&profile, wide).time_s;
  assert_true(seconds < wide->flops / (0.5 * 50e12));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_published_counts),
      cmocka_unit_test(test_shapes),
      cmocka_unit_test(test_residual),
      cmocka_unit_test(test_refused_chains),
      cmocka_unit_test(test_refused_files),
      cmocka_unit_test(test_derivatives),
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_model_flops),
      cmocka_unit_test(test_no_tensor_ranks),
      cmocka_unit_test(test_formula),
      cmocka_unit_test(test_alignment),
      cmocka_unit_test(test_fused_batch_norm),
      cmocka_unit_test(test_rate_of_batch_norm),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
