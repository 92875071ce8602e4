/* FLOPs against Narayanan et al. 2021 (SC21), section 5.1 and appendix: B sequences of s tokens, l layers, h hidden, V
 * vocabulary
 *
 *   96 B s l h^2 (1 + s/(6 h) + V/(16 l h))   with full recomputation: 4 passes over the layers, 3 over the head
 *   72 B s l h^2 (1 + s/(6 h) + V/(12 l h))   without
 *
 * The first is for the pass of one microbatch through all layers and the head: per layer and forward pass 24 B s h^2 +
 * 4 B s^2 h. Both sums run over the matrix products of the op lists, for every tensor-parallel degree (all ranks
 * together), and over every model of the table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/model_file.h"
#include "workloads/framework/framework.h"
#include "workloads/lower/block_program.h"

static pl_model load(const char *name) {
  return load_model("workloads/models", name, &arena);
}

static double gemm_flops(pl_op_list list) {
  double flops = 0;
  for (uint32_t i = 0; i < list.n_ops; i++)
    if (list.ops[i].kind == PL_OP_GEMM || list.ops[i].kind == PL_OP_ATTENTION) flops += list.ops[i].flops;
  return flops;
}

static double passes(const pl_model *model, pl_block_kind kind, pl_block_shard shard) {
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  if (pl_block_program_take(model, kind, &shard, &arena, &program, &error) != PL_OK) fail_msg("%s", error.message);
  return (gemm_flops(program.forward) + gemm_flops(program.backward)) * shard.tmp;
}

/* Products of a layer that its backward pass makes again. */
static double made_again(const pl_model *model, pl_block_kind kind, pl_block_shard shard) {
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  double flops = 0;
  if (pl_block_program_take(model, kind, &shard, &arena, &program, &error) != PL_OK) fail_msg("%s", error.message);
  for (uint32_t i = 0; i < program.backward.n_ops; i++) {
    const pl_op *op = &program.backward.ops[i];
    bool product = op->kind == PL_OP_GEMM || op->kind == PL_OP_ATTENTION;
    if (product && op->category == PL_CATEGORY_RECOMPUTE) flops += op->flops;
  }
  return flops;
}

static void expect(const char *what, double flops, double formula) {
  if (fabs(flops - formula) > 1e-14 * formula) fail_msg("%s: %.17g, formula %.17g", what, flops, formula);
}

static const char *const table[] = {"megatron-1.7b",   "megatron-3.6b",  "megatron-7.5b",   "megatron-18.4b",
                                    "megatron-39.1b",  "megatron-76.1b", "megatron-145.6b", "megatron-310.1b",
                                    "megatron-529.6b", "megatron-1008b", "gpt3-175b"};

static void test_megatron(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    for (int32_t tmp = 1; tmp <= 8; tmp *= 2) {
      pl_model model = load(table[i]);
      double s = 2048, B = 4, l = model.n_layers, h = (double)model.width.hidden, V = (double)model.width.vocab;
      pl_block_shard shard = {.tmp = tmp, .mbs = 4, .seq = 2048, .dtype = PL_DTYPE_FP16, .sp = i % 2 == 0};
      double head = passes(&model, PL_BLOCK_HEAD, shard), none = l * passes(&model, PL_BLOCK_LAYER, shard) + head;
      shard.recompute = PL_RECOMPUTE_FULL;
      double full = l * passes(&model, PL_BLOCK_LAYER, shard) + head;
      shard.recompute = PL_RECOMPUTE_SELECTIVE;
      double selective = l * passes(&model, PL_BLOCK_LAYER, shard) + head;
      expect("72 B s l h^2 (...)", none, 72 * B * s * l * h * h * (1 + s / (6 * h) + V / (12 * l * h)));
      expect("96 B s l h^2 (...)", full, 96 * B * s * l * h * h * (1 + s / (6 * h) + V / (16 * l * h)));
      expect("selective", selective, none + l * 4 * B * s * s * h); /* the attention core once more */
      expect("per sequence", pl_model_flops_per_sequence(&model, 2048), none / B);
    }
}

/* Flash attention skips what causality masks: 2 B s^2 h forward and 2.5 times that backward; BERT masks nothing. */
static void test_flash(void **state) {
  (void)state;
  pl_model gpt = load("gpt3-175b"), bert = load("bert-large");
  pl_block_shard shard = {.tmp = 1, .mbs = 1, .seq = 2048, .dtype = PL_DTYPE_BF16, .flash = true};
  double s = 2048, h = 12288;
  expect("causal", passes(&gpt, PL_BLOCK_LAYER, shard), 72 * s * h * h + 3.5 * 2 * s * s * h);
  shard.seq = 512, s = 512, h = 1024;
  expect("full", passes(&bert, PL_BLOCK_LAYER, shard), 72 * s * h * h + 3.5 * 4 * s * s * h);
}

/* Llama: per layer and pass 2 s (2 h^2 + 2 h k d + 3 h f) + 4 s^2 h; head 2 s h V with the true vocabulary. */
static void test_llama(void **state) {
  (void)state;
  pl_model model = load("llama-3-70b");
  double s = 8192, h = 8192, f = 28672, kd = 1024, l = 80, V = 128256;
  double formula = 3 * (l * (2 * s * (2 * h * h + 2 * h * kd + 3 * h * f) + 4 * s * s * h) + 2 * s * h * V);
  expect("llama", pl_model_flops_per_sequence(&model, 8192), formula);
}

/* Of queries, keys, values, output, gate, up and down every second is made again, but the last, whose result nothing
 * needs; nor is attention's. The same over more tensor ranks. With an early end full recomputation leaves the down
 * projection out. */
static void test_recomputation_by_products(void **state) {
  (void)state;
  pl_model model = load("llama-3-70b");
  double s = 4096, h = 8192, f = 28672, kd = 1024;
  pl_framework framework = pl_framework_ideal;
  for (int32_t tmp = 1; tmp <= 8; tmp *= 2) {
    pl_block_shard shard = {.tmp = tmp, .mbs = 1, .seq = 4096, .dtype = PL_DTYPE_BF16, .flash = true, .sp = tmp > 1};
    shard.framework = &framework;
    double none = passes(&model, PL_BLOCK_LAYER, shard);
    shard.recompute = PL_RECOMPUTE_ALTERNATE;
    expect("keys, output, up", passes(&model, PL_BLOCK_LAYER, shard), none + 2 * s * (h * kd + h * h + h * f));
    shard.recompute = PL_RECOMPUTE_FULL;
    double all = passes(&model, PL_BLOCK_LAYER, shard);
    framework.kernels.ends_recompute = true;
    expect("all but down", passes(&model, PL_BLOCK_LAYER, shard), all - 2 * s * h * f);
    framework.kernels.ends_recompute = false;
  }
}

/* DeepSeek-V3, as torchtitan calls its layers: queries down and up, keys and values down (with the rotated share) and
 * up, output, gate and up, down: every second one again, but the last. Of a layer of experts besides the router and the
 * experts' grouped products, which are not counted (and whose last nobody reads again: answers go into a sum): shared
 * gate and up are the sixth and the seventh. */
static void test_recomputation_of_experts(void **state) {
  (void)state;
  pl_model model = load("deepseek-v3");
  double s = 4096, h = 7168, f = 18432, expert = 2048, up = 1536 * 128 * 192 + 512 * 128 * (128 + 128);
  pl_block_shard shard = {.tmp = 1, .mbs = 1, .seq = 4096, .dtype = PL_DTYPE_BF16, .flash = true};
  shard.recompute = PL_RECOMPUTE_ALTERNATE;
  expect("queries, keys and values, up", made_again(&model, PL_BLOCK_LAYER, shard), 2 * s * (up + h * f));
  expect("router and experts", made_again(&model, PL_BLOCK_EXPERT_LAYER, shard),
         2 * s * (up + h * 256 + 8 * 2 * h * expert + h * expert));
}

/* The MFU numerator must not depend on how the block is cut. */
static void test_model_flops_invariant(void **state) {
  (void)state;
  pl_model model = load("llama-2-70b");
  for (int32_t tmp = 1; tmp <= 16; tmp *= 2)
    for (int flash = 0; flash < 2; flash++) {
      pl_block_shard shard = {.tmp = tmp, .mbs = 3, .seq = 4096, .dtype = PL_DTYPE_BF16, .flash = flash, .sp = flash};
      pl_block_program layer, head;
      assert_int_equal(pl_block_program_take(&model, PL_BLOCK_LAYER, &shard, &arena, &layer, NULL), PL_OK);
      assert_int_equal(pl_block_program_take(&model, PL_BLOCK_HEAD, &shard, &arena, &head, NULL), PL_OK);
      expect("model", 3 * (80 * layer.model_flops + head.model_flops), 3 * pl_model_flops_per_sequence(&model, 4096));
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_megatron),
      cmocka_unit_test(test_flash),
      cmocka_unit_test(test_llama),
      cmocka_unit_test(test_recomputation_by_products),
      cmocka_unit_test(test_recomputation_of_experts),
      cmocka_unit_test(test_model_flops_invariant),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
