/* Every row of the op table says which kernels it becomes, and something lowers them; rows that move no data by
 * themselves are no kernel of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "workloads/lower/lowering.h"

static void all_rows_are_lowered(void **state) {
  (void)state;
  bool is_used[256] = {false};
  for (int32_t i = 0; i < pl_ir_n_rows(); i++) {
    assert_non_null(pl_lowers_of((pl_ir_kernel_kind)pl_ir_row_at(i)->kernels));
    is_used[pl_ir_row_at(i)->kernels] = true;
  }
  for (int kernels = PL_IR_KERNELS_SWEEP; kernels <= PL_IR_KERNELS_CAST; kernels++)
    assert_true(is_used[kernels]);
}

static void state_and_names_launch_nothing(void **state) {
  (void)state;
  static const char *const nothing[] = {"param", "input", "constant", "keep"}, *const same[] = {"rename", "cut",
                                                                                                "split"};
  for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++)
    assert_int_equal(pl_ir_row_at(pl_ir_row_of(nothing[i]))->kernels, PL_IR_KERNELS_NONE);
  for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
    assert_int_equal(pl_ir_row_at(pl_ir_row_of(same[i]))->kernels, PL_IR_KERNELS_SAME);
}

static void names_go_by_block_and_path(void **state) {
  (void)state;
  assert_string_equal(pl_kernel_names_of(PL_BLOCK_LAYER, "attention.q")->wgrad, "qkv_wgrad");
  assert_string_equal(pl_kernel_names_of(PL_BLOCK_EXPERT_LAYER, "attention.q")->forward, "qkv");
  assert_string_equal(pl_kernel_names_of(PL_BLOCK_LAYER, "sum")->forward, "parallel_add");
  assert_string_equal(pl_kernel_names_of(PL_BLOCK_EXPERT_LAYER, "sum")->forward, "experts_add");
  assert_null(pl_kernel_names_of(PL_BLOCK_HEAD, "attention.q"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_rows_are_lowered),
                                     cmocka_unit_test(state_and_names_launch_nothing),
                                     cmocka_unit_test(names_go_by_block_and_path)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
