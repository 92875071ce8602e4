/* Which gradients are added up over tensor ranks: those of vectors that each rank has only a part of the tokens for
 * (sequence parallelism), and no others: what a rank has whole it adds up before the op that would make partial sums of
 * it (Megatron-LM: the all-reduce of a column-parallel layer's input gradient, in front of the norm). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "tests/support/tiny_models.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_table.h"
#include "workloads/passes/program_of.h"

static const char gpt2[] = TINY_GPT2, llama[] = TINY_LLAMA;

static void make(const char *model_text, const char *text, pl_arena *arena, pl_ir_module *module) {
  pl_error error = PL_ERROR_INIT;
  pl_model model;
  pl_strategy strategy;
  pl_job job = {.gbs = 8, .seq = 16, .dtype = PL_DTYPE_FP32, .flash = true};
  pl_code code = pl_model_parse("tiny", model_text, strlen(model_text), arena, &model, &error);
  if (code == PL_OK) code = pl_strategy_parse(text, &model, arena, &strategy, &error);
  if (code == PL_OK) pl_strategy_adopt(&strategy, &job);
  if (code == PL_OK) code = pl_strategy_assign(&strategy, &model, &job, NULL, arena, &error);
  if (code == PL_OK) code = pl_program_of(&model, &job, &strategy, PL_IR_DISTRIBUTED, arena, module, &error);
  if (code == PL_OK) code = pl_ir_check(module, &error);
  if (code != PL_OK) fail_msg("%s: %s", text, error.message);
}

/* Collectives of updates over this axis, or of backward passes. */
static int32_t count(const pl_ir_module *module, const char *of, const char *axis) {
  int32_t n = 0;
  for (int32_t f = 0; f < module->n_functions; f++) {
    const pl_ir_function *function = module->functions[f];
    for (int32_t i = 0; i < function->n_ops && strstr(function->name, of) != NULL; i++)
      n += pl_ir_row_at(function->ops[i].row)->effect == PL_IR_COLLECTIVE &&
           pl_ir_op_has_name(&function->ops[i], "over", pl_ir_name_of(axis));
  }
  return n;
}

static void check(const char *model, const char *text, bool sequence_parallel) {
  pl_arena arena;
  pl_ir_module module;
  pl_arena_init(&arena, 0);
  make(model, text, &arena, &module);
  int32_t owed = count(&module, ".update", "tp"), data = count(&module, ".update", "dp");
  if ((owed > 0) != sequence_parallel) fail_msg("%s: %d gradients are added up over tensor ranks", text, owed);
  if (data == 0) fail_msg("%s: no gradient is added up over data ranks", text);
  if (!sequence_parallel) assert_int_equal(count(&module, "layer.backward", "tp"), 2); /* one each half of the layer */
  pl_arena_release(&arena);
}

static void tensor_ranks_add_up_what_they_share(void **state) {
  (void)state;
  check(gpt2, "pp=1,dp=2,tmp=2,mbs=1", false);
  check(gpt2, "pp=2,dp=2,tmp=4,mbs=1", false);
  check(llama, "pp=1,dp=2,tmp=2,mbs=1", false);
  check(gpt2, "pp=1,dp=2,tmp=2,mbs=1,sp=1", true);
  check(llama, "pp=1,dp=2,tmp=2,mbs=1,sp=1", true);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tensor_ranks_add_up_what_they_share)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
