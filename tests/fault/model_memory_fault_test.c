/* Models and block programs when the k-th take of the arena fails, for every k: one clean status, an empty result,
 * nothing leaked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "workloads/import/model_file.h"
#include "workloads/ir/model.h"
#include "workloads/lower/block_program.h"

#define CONFIG PACELINE_SOURCE_DIR "/tests/unit/models/bert-base-uncased.json"

static void test_load(void **state) {
  (void)state;
  int64_t takes = 0;
  for (;; takes++) {
    pl_arena arena;
    pl_model model;
    pl_error error = PL_ERROR_INIT;
    pl_arena_init(&arena, 0);
    arena.fail_after = takes;
    pl_code code = pl_model_load(CONFIG, &arena, &model, &error);
    pl_arena_release(&arena);
    if (code == PL_OK) break;
    assert_int_equal(code, PL_NO_MEMORY);
    assert_int_equal(error.code, PL_NO_MEMORY);
    assert_null(model.name);
  }
  assert_in_range(takes, 1, 5); /* the budget of a load */
}

static void test_program(void **state) {
  (void)state;
  pl_arena arena, scarce;
  pl_model model;
  pl_arena_init(&arena, 0);
  assert_int_equal(pl_model_load(CONFIG, &arena, &model, NULL), PL_OK);
  const pl_block_shard shard = {.tmp = 2, .sp = true, .mbs = 2, .seq = 128, .dtype = PL_DTYPE_FP16};
  int64_t takes = 0;
  for (;; takes++) {
    pl_block_program program;
    pl_error error = PL_ERROR_INIT;
    pl_arena_init(&scarce, 0);
    scarce.fail_after = takes;
    pl_code code = pl_block_program_take(&model, PL_BLOCK_LAYER, &shard, &scarce, &program, &error);
    pl_arena_release(&scarce);
    if (code == PL_OK) break;
    assert_int_equal(code, PL_NO_MEMORY);
    assert_true(program.n_tensors == 0 && program.forward.n_ops == 0 && program.tensors == NULL);
  }
  assert_int_equal(takes, 3);
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_load), cmocka_unit_test(test_program)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
