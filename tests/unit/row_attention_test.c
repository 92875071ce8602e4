/* Rows of PyTorch training name their attention kernel; others keep what the framework says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "validation/rows/row.h"

static void expect(const char *framework, bool flash, int kernel) {
  const pl_measured_row row = {.gpu = "", .framework = framework};
  pl_framework chosen = pl_framework_ideal;
  chosen.kernels.flash = false;
  chosen.kernels.attention_kernel = PL_ATTENTION_ANY;
  pl_row_choose_attention(&row, &chosen);
  assert_int_equal(chosen.kernels.flash, flash);
  assert_int_equal(chosen.kernels.attention_kernel, kernel);
}

static void test_backends(void **state) {
  (void)state;
  expect("PyTorch/HF training example, SDPA backend CUDNN_ATTENTION", true, PL_ATTENTION_CUDNN);
  expect("PyTorch/HF training example, SDPA backend FLASH_ATTENTION", true, PL_ATTENTION_FLASH2);
  expect("PyTorch/HF training example, SDPA backend EFFICIENT_ATTENTION", true, PL_ATTENTION_FLASH1);
  expect("PyTorch DDP", false, PL_ATTENTION_ANY);
  expect("", false, PL_ATTENTION_ANY);
}

static void expect_on(const char *gpu, const char *framework, int kernel) {
  const pl_measured_row row = {.gpu = gpu, .framework = framework};
  pl_framework chosen = pl_framework_ideal;
  chosen.kernels.flash = true;
  chosen.kernels.attention_kernel = PL_ATTENTION_ANY;
  pl_row_choose_attention(&row, &chosen);
  assert_int_equal(chosen.kernels.attention_kernel, kernel);
}

/* On Hopper; on other GPUs the framework's kernel stays. */
static void test_engines(void **state) {
  (void)state;
  expect_on("NVIDIA H100-SXM5-80GB", "NeMo 1.17 (Transformer Engine 0.8)", PL_ATTENTION_FLASH1);
  expect_on("H100", "NeMo (Transformer Engine 0.11)", PL_ATTENTION_FLASH2);
  expect_on("H100", "NeMo (transformer engine 1.0)", PL_ATTENTION_FLASH2);
  expect_on("H200", "NeMo (Transformer Engine 1.2)", PL_ATTENTION_CUDNN);
  expect_on("H100", "NeMo (Transformer Engine 2.1)", PL_ATTENTION_CUDNN);
  expect_on("H100", "NeMo (MLPerf submission; FLASH_ATTENTION: flash-attn 2.0.8)", PL_ATTENTION_FLASH2);
  expect_on("H100", "NeMo with Transformer Engine", PL_ATTENTION_ANY);
  expect_on("A100", "NeMo (Transformer Engine 0.8)", PL_ATTENTION_ANY);
}

/* NVIDIA's launcher of NeMo turned cuDNN's attention off from 24.01 to 24.07. */
static void test_launchers(void **state) {
  (void)state;
  expect_on("H100", "NeMo 24.01", PL_ATTENTION_FLASH2);
  expect_on("H100-80GB-SXM", "NeMo 24.03.01", PL_ATTENTION_FLASH2);
  expect_on("H100", "NeMo 24.07", PL_ATTENTION_FLASH2);
  expect_on("H100", "NeMo 24.07 (SDPA backend CUDNN_ATTENTION)", PL_ATTENTION_CUDNN);
  expect_on("H100", "NeMo 24.09", PL_ATTENTION_ANY);
  expect_on("H100", "NeMo 23.11", PL_ATTENTION_ANY);
  expect_on("H100", "NeMo 25.04.rc2", PL_ATTENTION_ANY);
  expect_on("H100", "NeMo 1.17", PL_ATTENTION_ANY);
}

/* On Blackwell Transformer Engine had no kernel for heads of two sizes until the containers of July 2025. */
static void test_latent(void **state) {
  (void)state;
  static const struct {
    const char *gpu, *model, *notes;
    bool fused;
  } cases[] = {{"GB200", "Deepseek V3", "recipe of NeMo v2.3.0 (container 25.04)", false},
               {"B200-SXM", "Kimi_K2", "container 25.06.01", false},
               {"GB200", "Deepseek V3", "container 25.07", true},
               {"GB200", "Deepseek V3", "container 26.02", true},
               {"GB200", "Deepseek V3", "containers", true},
               {"GB200", "DeepSeek 67B", "container 25.04", true},
               {"GB200", "Llama3.1 405b", "container 25.04", true},
               {"H100-80GB-SXM", "Deepseek V3", "container 25.04", true}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const pl_measured_row row = {
        .gpu = cases[i].gpu, .model = cases[i].model, .framework = "NeMo", .notes = cases[i].notes};
    pl_framework chosen = pl_framework_ideal;
    pl_row_choose_attention(&row, &chosen);
    assert_int_equal(chosen.kernels.flash, cases[i].fused);
  }
}

static void test_dispatchers(void **state) {
  (void)state;
  static const struct {
    const char *framework, *notes;
    bool before, after;
    double taken; /* 0: as before */
  } cases[] = {{"Megatron-Core DeepEP", "", false, true, 20},
               {"Megatron-Core HybridEP", "", false, true, 32},
               {"Megatron-Core A2A", "", true, false, 16},
               {"Megatron-Core", "", true, true, 0},
               {"Megatron-Core", "", false, false, 0},
               {"Megatron-Bridge", "moe_flex_dispatcher_backend=hybridep", false, true, 32},
               {"Megatron-Bridge", "moe_flex_dispatcher_backend=deepep; mtp", false, true, 20},
               {"Megatron-Bridge", "moe_token_dispatcher_type=alltoall with token drop", true, false, 16},
               {"Megatron-Bridge", "moe_a2a_overlap", true, true, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const pl_measured_row row = {.framework = cases[i].framework, .notes = cases[i].notes};
    pl_framework chosen = pl_framework_ideal;
    chosen.pipeline.sends_tokens_per_node = cases[i].before;
    chosen.pipeline.exchange_multiprocessors = 7;
    pl_row_choose_dispatcher(&row, &chosen);
    assert_false(chosen.pipeline.sends_tokens_fp8);
    assert_int_equal(chosen.pipeline.sends_tokens_per_node, cases[i].after);
    assert_true(chosen.pipeline.exchange_multiprocessors == (cases[i].taken > 0 ? cases[i].taken : 7));
  }
}

static void test_narrow_dispatch(void **state) {
  (void)state;
  const pl_measured_row row = {.framework = "Megatron-Core", .notes = "moe_dispatch_fwd_dtype=fp8"};
  pl_framework chosen = pl_framework_ideal;
  pl_row_choose_dispatcher(&row, &chosen);
  assert_true(chosen.pipeline.sends_tokens_fp8);
}

/* Transformer Engine's choice for deterministic runs, and Megatron-LM's switches in `notes`. */
static void test_determinism(void **state) {
  (void)state;
  static const struct {
    const char *gpu, *notes;
    bool dropout, deterministic;
    int kernel;
    bool fuses_accumulation;
  } cases[] = {{"A100-80GB-SXM", "deterministic-mode", true, true, PL_ATTENTION_FLASH2, true},
               {"H100-80GB-SXM", "deterministic-mode; NCCL_ALGO=Ring", true, true, PL_ATTENTION_CUDNN, true},
               {"GB200", "deterministic-mode", true, true, PL_ATTENTION_FLASH2, true},
               {"GB200", "deterministic-mode", false, true, PL_ATTENTION_CUDNN, true},
               {"A100-80GB-SXM", "no-gradient-accumulation-fusion", true, false, PL_ATTENTION_CUDNN, false},
               {"A100-80GB-SXM", "", true, false, PL_ATTENTION_CUDNN, true}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const pl_measured_row row = {.gpu = cases[i].gpu, .notes = cases[i].notes};
    const pl_row_habits habits = {.dropout = cases[i].dropout};
    pl_framework chosen = pl_framework_ideal;
    chosen.kernels.attention_kernel = PL_ATTENTION_CUDNN;
    pl_row_choose_determinism(&row, &habits, &chosen);
    assert_int_equal(chosen.kernels.deterministic, cases[i].deterministic);
    assert_int_equal(chosen.kernels.attention_kernel, cases[i].kernel);
    assert_int_equal(chosen.kernels.fuses_accumulation, cases[i].fuses_accumulation);
  }
}

/* Hugging Face's models, each since the version that brought scaled_dot_product_attention to it. */
static void test_eager(void **state) {
  (void)state;
  static const struct {
    const char *model, *framework;
    bool eager;
  } rows[] = {{"GPT-2", "Hugging Face Trainer (PyTorch DDP)", true},
              {"GPT-3 2.7B", "PyTorch Lightning, Hugging Face GPT-2", true},
              {"GPT-2", "Hugging Face (transformers 4.41.2)", true},
              {"GPT-2", "Hugging Face (transformers 4.42)", false},
              {"BERT-large", "Hugging Face (transformers 4.41.2)", false},
              {"BERT-large", "Hugging Face (transformers 4.36)", true},
              {"ESM2 150M (BERT)", "Hugging Face (transformers 4.53.0)", true},
              {"GPT-2", "Hugging Face (transformers==4.45.1)", false},
              {"GPT-2", "Hugging Face transformers, transformers v4.42", false},
              {"GPT-2", "Hugging Face transformers (PyTorch 2.4)", true},
              {"GPT-2", "Hugging Face, FlashAttention 2", false},
              {"GPT-2", "Hugging Face Trainer, sdpa", false},
              {"Llama 2 7B", "Hugging Face Trainer", false},
              {"GPT-2", "PyTorch DDP", false}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const pl_measured_row row = {.gpu = "A100", .model = rows[i].model, .framework = rows[i].framework, .notes = ""};
    if (pl_row_attends_eagerly(&row) != rows[i].eager) fail_msg("%s: %s", rows[i].model, rows[i].framework);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_backends),        cmocka_unit_test(test_eager),
                                     cmocka_unit_test(test_engines),         cmocka_unit_test(test_launchers),
                                     cmocka_unit_test(test_latent),          cmocka_unit_test(test_dispatchers),
                                     cmocka_unit_test(test_narrow_dispatch), cmocka_unit_test(test_determinism)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
