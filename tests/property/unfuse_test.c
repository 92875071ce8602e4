/* Attention in steps is attention: the program of every recipe whose attention a framework does not fuse computes what
 * the fused one's sequential program does, dropout included, to 1e-10 in fp64; windows, causal masks, penalties by
 * distance and shared heads are among them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/recipes.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_table.h"
#include "workloads/passes/adapt.h"
#include "workloads/passes/program_of.h"
#include "workloads/passes/verify.h"

static const char bloom[] = "{\"model_type\": \"bloom\", \"n_layer\": 2, \"hidden_size\": 16, \"n_head\": 4, "
                            "\"vocab_size\": 32, \"attention_dropout\": 0.2}";
static const char gpt_oss[] =
    "{\"model_type\": \"gpt_oss\", \"num_hidden_layers\": 2, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"head_dim\": 8, \"intermediate_size\": 16, \"vocab_size\": 32, "
    "\"max_position_embeddings\": 16, \"sliding_window\": 4, \"num_local_experts\": 4, "
    "\"num_experts_per_tok\": 2}";
static const recipe more[] = {
    RECIPE(bloom, "pp=2,dp=2,tmp=2,mbs=1,recompute=selective"),
    RECIPE(bloom, "pp=1,dp=2,tmp=2,mbs=2,sp=1,recompute=full"),
    RECIPE(llama, "pp=1,dp=2,tmp=4,mbs=1,recompute=selective"),
    RECIPE(gemma2, "pp=1,dp=2,tmp=2,mbs=1,recompute=selective"),
};

static int32_t count(const pl_ir_module *module, const char *row) {
  int32_t n = 0;
  for (int32_t f = 0; f < module->n_functions; f++)
    for (int32_t i = 0; i < module->functions[f]->n_ops; i++)
      n += strcmp(pl_ir_row_at(module->functions[f]->ops[i].row)->name, row) == 0;
  return n;
}

typedef struct made {
  pl_model model;
  pl_job job;
  pl_strategy strategy;
  pl_ir_module plain, distributed;
} made;

static pl_code make(const recipe *own, made *to, pl_arena *arena, pl_error *error) {
  to->job = (pl_job){.gbs = own->gbs, .seq = own->seq, .dtype = PL_DTYPE_FP32, .flash = true};
  PL_TRY(pl_model_parse(own->name, own->model, strlen(own->model), arena, &to->model, error));
  PL_TRY(pl_strategy_parse(own->strategy, &to->model, arena, &to->strategy, error));
  pl_strategy_adopt(&to->strategy, &to->job);
  PL_TRY(pl_strategy_assign(&to->strategy, &to->model, &to->job, NULL, arena, error));
  to->job.flash = false;
  PL_TRY(pl_program_of(&to->model, &to->job, &to->strategy, PL_IR_DISTRIBUTED, arena, &to->distributed, error));
  to->job.norm_groups = pl_norm_groups_of_program(&to->distributed);
  to->job.flash = true;
  PL_TRY(pl_program_of(&to->model, &to->job, NULL, PL_IR_TRAINING, arena, &to->plain, error));
  return pl_ir_check(&to->distributed, error);
}

static pl_code run(const recipe *own, bool *is_unfused, pl_arena *arena, pl_error *error) {
  made *to = PL_TAKE(arena, made, 1);
  pl_verification v;
  const pl_verify_options options = {.seed = 5, .iterations = 2};
  PL_TRY(make(own, to, arena, error));
  *is_unfused = count(&to->plain, "attention") > 0;
  if (!*is_unfused) return PL_OK;
  if (count(&to->distributed, "attention") > 0 || count(&to->distributed, "softmax") == 0)
    return pl_fail(error, PL_BAD_INPUT, "there is an op of attention left");
  PL_TRY(pl_verify(&to->plain, &to->distributed, &options, arena, &v, error));
  if (pl_verification_holds(&v, &options)) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "loss apart by %.1e, gradients %.1e (%s), weights %.1e (%s)", v.loss_error,
                 v.gradient_error, v.worst_gradient, v.weight_error, v.worst_weight);
}

static void all(const recipe *list, size_t n, int32_t *n_unfused) {
  for (size_t i = 0; i < n; i++) {
    pl_arena arena;
    pl_error error = PL_ERROR_INIT;
    bool is_unfused = false;
    pl_arena_init(&arena, 0);
    if (run(&list[i], &is_unfused, &arena, &error) != PL_OK)
      fail_msg("%s %s: %s", list[i].name, list[i].strategy, error.message);
    *n_unfused += is_unfused;
    pl_arena_release(&arena);
  }
}

static void attention_in_steps_is_attention(void **state) {
  (void)state;
  int32_t n_unfused = 0;
  all(recipes, sizeof recipes / sizeof recipes[0], &n_unfused);
  all(more, sizeof more / sizeof more[0], &n_unfused);
  printf("%d recipes\n", n_unfused);
  assert_true(n_unfused >= 40);
}

/* Its log-sum-exp is read. */
static void attention_with_sinks_stays_one_op(void **state) {
  (void)state;
  const recipe own = RECIPE(gpt_oss, "pp=1,dp=2,tmp=2,mbs=1");
  pl_arena arena;
  pl_error error = PL_ERROR_INIT;
  pl_arena_init(&arena, 0);
  made *to = PL_TAKE(&arena, made, 1);
  if (make(&own, to, &arena, &error) != PL_OK) fail_msg("%s", error.message);
  assert_true(count(&to->distributed, "attention") > 0);
  assert_int_equal(count(&to->distributed, "mask"), 0);
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(attention_in_steps_is_attention),
                                     cmocka_unit_test(attention_with_sinks_stays_one_op)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
