/* The bias of experts' answers in PyTorch ops: what it launches, moves and keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/model_file.h"
#include "tests/support/op_list.h"
#include "workloads/framework/framework.h"
#include "workloads/lower/block_program.h"

static pl_block_program take(const char *name, const pl_framework *framework, bool recompute) {
  const pl_block_shard shard = {.tmp = 1,
                                .ep = 8,
                                .mbs = 1,
                                .seq = 1024,
                                .dtype = PL_DTYPE_BF16,
                                .flash = true,
                                .recompute = recompute ? PL_RECOMPUTE_FULL : PL_RECOMPUTE_NONE,
                                .framework = framework};
  pl_model model = load_model("workloads/models", name, &arena);
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  if (pl_block_program_take(&model, PL_BLOCK_EXPERT_LAYER, &shard, &arena, &program, &error) != PL_OK)
    fail_msg("%s", error.message);
  return program;
}

/* 1,024 tokens of 4 experts each, 2,880 wide. In place of nothing (the product adds it) two casts of 2 + 4 bytes an
 * element, an addition of 4 + 4 + 4 and one of 2 + 2 that reads the bias: 28. Back, beside the sum of 2, casts of 2 + 4
 * and 4 + 2, two products of 4 + 4, one of 2 + 2, and a sum of 4 that leaves a number for each of the 4 experts here
 * and each token that could go to them: 36. Nothing is kept. */
static void moves_what_the_source_says(void **state) {
  (void)state;
  const double elements = 4.0 * 1024 * 2880, numbers = 4.0 * 8 * 1024, bias = 2.0 * 32 / 8 * 2880;
  const double forward = 28 * elements + bias;
  for (int recompute = 0; recompute <= 1; recompute++) {
    pl_framework steps = pl_framework_ideal;
    steps.kernels.fuses_expert_bias = false;
    pl_block_program one = take("gpt-oss-20b", NULL, recompute), many = take("gpt-oss-20b", &steps, recompute);
    assert_int_equal(many.forward.n_ops, one.forward.n_ops + 4);
    assert_int_equal(many.backward.n_ops, one.backward.n_ops + 6 + (recompute ? 4 : 0));
    assert_true(op_list_bytes(&many.forward) - op_list_bytes(&one.forward) == forward);
    assert_true(op_list_bytes(&many.backward) - op_list_bytes(&one.backward) ==
                36 * elements + 4 * numbers + (recompute ? forward : 0));
    assert_true(many.saved_bytes == one.saved_bytes);
  }
}

static void others_have_none(void **state) {
  (void)state;
  pl_framework steps = pl_framework_ideal;
  steps.kernels.fuses_expert_bias = false;
  pl_block_program one = take("mixtral-8x7b", NULL, false), many = take("mixtral-8x7b", &steps, false);
  assert_true(many.forward.n_ops == one.forward.n_ops && many.backward.n_ops == one.backward.n_ops);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(moves_what_the_source_says, set_up, tear_down),
      cmocka_unit_test_setup_teardown(others_have_none, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
