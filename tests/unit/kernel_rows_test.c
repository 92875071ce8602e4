/* What rows of the op table launch by themselves, and what frameworks call the kernels of a block. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/language/ir_table.h"
#include "workloads/lower/kernel_names.h"

static uint8_t launches(const char *row) {
  return pl_ir_row_at(pl_ir_row_of(row))->launches;
}

static void rows_say_what_they_launch(void **state) {
  (void)state;
  bool is_used[PL_IR_LAUNCHES_CONVOLUTION + 1] = {false};
  for (int32_t i = 0; i < pl_ir_n_rows(); i++) {
    assert_true(pl_ir_row_at(i)->launches <= PL_IR_LAUNCHES_CONVOLUTION);
    is_used[pl_ir_row_at(i)->launches] = true;
  }
  for (int kind = PL_IR_LAUNCHES_SWEEP; kind <= PL_IR_LAUNCHES_CONVOLUTION; kind++)
    assert_true(is_used[kind]);
}

/* A row and its derivative are one kind of kernel. */
static void derivatives_launch_alike(void **state) {
  (void)state;
  int n = 0;
  for (int32_t i = 0; i < pl_ir_n_rows(); i++) {
    char name[64];
    snprintf(name, sizeof name, "%s_backward", pl_ir_row_at(i)->name);
    for (int32_t back = 0; back < pl_ir_n_rows(); back++) {
      if (strcmp(pl_ir_row_at(back)->name, name) != 0) continue;
      assert_int_equal(pl_ir_row_at(back)->launches, pl_ir_row_at(i)->launches);
      n++;
    }
  }
  assert_true(n >= 12);
}

static void state_and_names_launch_nothing(void **state) {
  (void)state;
  static const char *const nothing[] = {"constant", "keep", "store", "rename", "cut", "spread"};
  for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++)
    assert_int_equal(launches(nothing[i]), PL_IR_LAUNCHES_NOTHING);
  assert_int_equal(launches("relu"), PL_IR_LAUNCHES_SWEEP);
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
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_say_what_they_launch), cmocka_unit_test(derivatives_launch_alike),
      cmocka_unit_test(state_and_names_launch_nothing), cmocka_unit_test(names_go_by_block_and_path)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
