/* Rows of PyTorch training name their attention kernel; others keep what the framework says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "validation/row.h"

static void expect(const char *framework, bool flash, int kernel) {
  const pl_measured_row row = {.framework = framework};
  pl_framework chosen = pl_framework_ideal;
  chosen.flash = false;
  chosen.attention_kernel = PL_ATTENTION_ANY;
  pl_row_choose_attention(&row, &chosen);
  assert_int_equal(chosen.flash, flash);
  assert_int_equal(chosen.attention_kernel, kernel);
}

static void test_backends(void **state) {
  (void)state;
  expect("PyTorch/HF training example, SDPA backend CUDNN_ATTENTION", true, PL_ATTENTION_CUDNN);
  expect("PyTorch/HF training example, SDPA backend FLASH_ATTENTION", true, PL_ATTENTION_FLASH2);
  expect("PyTorch/HF training example, SDPA backend EFFICIENT_ATTENTION", true, PL_ATTENTION_FLASH1);
  expect("PyTorch DDP", false, PL_ATTENTION_ANY);
  expect("", false, PL_ATTENTION_ANY);
}

static void test_dispatchers(void **state) {
  (void)state;
  static const struct {
    const char *framework;
    bool before, after;
  } cases[] = {{"Megatron-Core DeepEP", false, true},
               {"Megatron-Core HybridEP", false, true},
               {"Megatron-Core A2A", true, false},
               {"Megatron-Core", true, true},
               {"Megatron-Core", false, false}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const pl_measured_row row = {.framework = cases[i].framework};
    pl_framework chosen = pl_framework_ideal;
    chosen.sends_tokens_per_node = cases[i].before;
    pl_row_choose_dispatcher(&row, &chosen);
    assert_int_equal(chosen.sends_tokens_per_node, cases[i].after);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_backends), cmocka_unit_test(test_dispatchers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
