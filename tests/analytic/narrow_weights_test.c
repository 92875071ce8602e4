/* Copies of weights in fp8 against closed forms, of tuples and of their programs: Llama 2 7B's layer has 4 h^2 + 3 h f
 * elements in products, each of which is there in one byte as it is and in one transposed; on a tensor rank so much of
 * them, on a stage those of its layers. Head and embedding are not in fp8; without fp8, or without the switch, there
 * are none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/model_file.h"
#include "workloads/memory/program_memory.h"
#include "workloads/memory/stage_memory.h"
#include "workloads/passes/program_of.h"
#include "workloads/run/launched_program.h"

static double buffers(const char *text, bool fp8, bool fp4, bool caches, int32_t stage) {
  pl_model model = load_model("workloads/models", "llama-2-7b", &arena);
  pl_framework framework = pl_framework_ideal;
  framework.memory.caches_narrow_weights = caches;
  const pl_job job = {
      .gbs = 8, .seq = 1024, .dtype = PL_DTYPE_BF16, .fp8 = fp8, .fp4 = fp4, .flash = true, .framework = &framework};
  pl_strategy strategy;
  pl_program program;
  pl_error error = PL_ERROR_INIT;
  if (pl_strategy_parse(text, &model, &arena, &strategy, &error) != PL_OK ||
      pl_strategy_assign(&strategy, &model, &job, NULL, &arena, &error) != PL_OK ||
      pl_program_take(&model, &job, &strategy, &arena, &program, &error) != PL_OK)
    fail_msg("%s", error.message);
  return pl_resident_memory_of(&program, stage).buffers;
}

/* Of the list of a stage, which is its place among them. */
static double program_buffers(const char *text, bool fp8, bool fp4, bool caches, int32_t stage) {
  pl_model model = load_model("workloads/models", "llama-2-7b", &arena);
  pl_framework framework = pl_framework_ideal;
  framework.memory.caches_narrow_weights = caches;
  const pl_job job = {
      .gbs = 8, .seq = 1024, .dtype = PL_DTYPE_BF16, .fp8 = fp8, .fp4 = fp4, .flash = true, .framework = &framework};
  const pl_cluster nothing = {0};
  pl_strategy strategy;
  pl_ir_module distributed, kernels;
  pl_class_memory *memory = NULL;
  pl_error error = PL_ERROR_INIT;
  if (pl_strategy_parse(text, &model, &arena, &strategy, &error) != PL_OK ||
      pl_strategy_assign(&strategy, &model, &job, NULL, &arena, &error) != PL_OK ||
      pl_program_of(&model, &job, &strategy, PL_IR_DISTRIBUTED, &arena, &distributed, &error) != PL_OK ||
      pl_program_kernels(&distributed, &framework, &arena, &kernels, &error) != PL_OK ||
      pl_program_memory_take(&nothing, &kernels, &framework, NULL, &arena, &memory, &error) != PL_OK)
    fail_msg("%s", error.message);
  return memory[stage].buffers;
}

/* Tuple and program agree. */
static double copies(const char *text, bool fp8, bool fp4, int32_t stage) {
  double of_program = program_buffers(text, fp8, fp4, true, stage) - program_buffers(text, fp8, fp4, false, stage);
  double of_tuple = buffers(text, fp8, fp4, true, stage) - buffers(text, fp8, fp4, false, stage);
  assert_true(of_program == of_tuple);
  return of_tuple;
}

static void two_bytes_for_each_element(void **state) {
  (void)state;
  const double layer = 4.0 * 4096 * 4096 + 3.0 * 4096 * 11008;
  assert_true(copies("pp=1,dp=1,tmp=1,mbs=1,assign=uniform", true, false, 0) == 2 * 32 * layer);
  assert_true(copies("pp=1,dp=1,tmp=2,mbs=1,assign=uniform", true, false, 0) == 2 * 16 * layer);
  assert_true(copies("pp=4,dp=1,tmp=1,mbs=1,assign=uniform", true, false, 3) == 2 * 8 * layer);
  assert_true(copies("pp=2,dp=1,tmp=1,mbs=1,vpp=2,schedule=interleaved,assign=uniform", true, false, 0) ==
              2 * 16 * layer);
  assert_true(copies("pp=1,dp=1,tmp=1,mbs=1,assign=uniform", true, true, 0) ==
              2 * 32 * layer * 9 / 16); /* NVFP4: 4.5 bits */
  assert_true(copies("pp=1,dp=1,tmp=1,mbs=1,assign=uniform", false, false, 0) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(two_bytes_for_each_element, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
