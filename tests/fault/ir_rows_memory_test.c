/* Rows of the op table when memory is short: with every number of allocations that succeed, computing and deriving end
 * in order, and what fails says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/ir_specs.h"

enum { MOST_TAKES = 200 };

/* Returns how many allocations it takes. */
static int64_t compute_until_it_fits(ir_case *one) {
  for (int64_t takes = 0; takes < MOST_TAKES; takes++) {
    pl_arena scratch;
    pl_error error = PL_ERROR_INIT;
    pl_arena_init(&scratch, 1 << 16);
    scratch.fail_after = takes;
    pl_code code = ir_case_run(one, &scratch, false, &error);
    bool failed = scratch.failed;
    pl_arena_release(&scratch);
    assert_int_equal(code, failed ? PL_NO_MEMORY : PL_OK);
    if (!failed) return takes;
  }
  return MOST_TAKES;
}

static void test_computing(void **state) {
  (void)state;
  uint64_t random = 1;
  int64_t n_takes = 0;
  for (const ir_spec *spec = ir_specs; spec->row != NULL; spec++) {
    ir_case one;
    pl_arena_reset(&arena);
    ir_spec_case(spec, &random, &arena, &one);
    int64_t takes = compute_until_it_fits(&one);
    assert_true(takes < MOST_TAKES);
    n_takes += takes;
  }
  assert_true(n_takes > 50); /* there was something to fail */
}

static bool derives_with(const ir_spec *spec, int64_t takes) {
  ir_case one;
  pl_ir_module module;
  pl_ir_function *backward;
  pl_error error = PL_ERROR_INIT;
  int32_t gradients[2 * IR_CASE_OPERANDS];
  uint64_t random = 1;
  pl_arena_reset(&arena);
  ir_spec_case(spec, &random, &arena, &one);
  pl_code code = ir_case_differentiate(&one, takes, &module, &backward, gradients, &error);
  assert_true(code == PL_OK || (code == PL_NO_MEMORY && arena.failed)); /* whoever derives looks at the arena too */
  return !arena.failed;
}

static void test_deriving(void **state) {
  (void)state;
  for (const ir_spec *spec = ir_specs; spec->row != NULL; spec++) {
    if (pl_ir_row_at(pl_ir_row_of(spec->row))->derive == NULL) continue;
    int64_t takes = 0;
    while (takes < MOST_TAKES && !derives_with(spec, takes))
      takes++;
    assert_true(takes < MOST_TAKES);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_computing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_deriving, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
