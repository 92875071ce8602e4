/* Every recipe computes what the model says: the distributed program of a strategy, run with numbers by all its
 * devices, leaves loss, gradients and updated weights of the plain training program, to 1e-10 in fp64. And in fp32. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/recipes.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_text.h"
#include "workloads/passes/adapt.h"
#include "workloads/passes/program_of.h"
#include "workloads/passes/verify.h"

static pl_code run(const recipe *own, bool single, pl_verification *v, pl_arena *arena, pl_error *error) {
  pl_model model;
  pl_job job = {.gbs = own->gbs, .seq = own->seq, .dtype = PL_DTYPE_FP32, .flash = true};
  pl_strategy strategy;
  pl_ir_module plain, distributed;
  const pl_verify_options options = {.seed = 5, .iterations = 2, .single = single};
  PL_TRY(pl_model_parse(own->name, own->model, strlen(own->model), arena, &model, error));
  PL_TRY(pl_strategy_parse(own->strategy, &model, arena, &strategy, error));
  pl_strategy_adopt(&strategy, &job);
  PL_TRY(pl_strategy_check(&strategy, &model, &job, pl_strategy_n_ranks(&strategy), error));
  PL_TRY(pl_strategy_assign(&strategy, &model, &job, NULL, arena, error));
  PL_TRY(pl_program_of(&model, &job, &strategy, PL_IR_DISTRIBUTED, arena, &distributed, error));
  job.norm_groups = pl_norm_groups_of_program(&distributed);
  PL_TRY(pl_program_of(&model, &job, NULL, PL_IR_TRAINING, arena, &plain, error));
  PL_TRY(pl_verify(&plain, &distributed, &options, arena, v, error));
  if (!pl_verification_holds(v, &options))
    return pl_fail(error, PL_BAD_INPUT, "loss apart by %.1e, gradients %.1e (%s), weights %.1e (%s), copies %.1e",
                   v->loss_error, v->gradient_error, v->worst_gradient, v->weight_error, v->worst_weight,
                   v->copies_error);
  return PL_OK;
}

static int32_t run_all(bool single) {
  int32_t n_wrong = 0;
  double worst = 0;
  for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++) {
    pl_arena arena;
    pl_arena_init(&arena, 0);
    pl_error error = PL_ERROR_INIT;
    pl_verification v = {0};
    if (run(&recipes[i], single, &v, &arena, &error) != PL_OK) {
      printf("%s %s: %s\n", recipes[i].name, recipes[i].strategy, error.message);
      n_wrong++;
    } else if (v.gradient_error > worst) {
      worst = v.gradient_error;
    }
    pl_arena_release(&arena);
  }
  printf("%zu recipes, %d wrong, gradients apart by at most %.1e\n", sizeof(recipes) / sizeof(recipes[0]), n_wrong,
         worst);
  return n_wrong;
}

static void in_double(void **state) {
  (void)state;
  assert_int_equal(run_all(false), 0);
}

static void in_single(void **state) {
  (void)state;
  assert_int_equal(run_all(true), 0);
}

static void nothing_is_not_equal(void **state) {
  (void)state;
  static const char text[] = "plir 1 training nothing\nfunc @f() {\n  %c = constant() {value=0.0} : fp32[]\n  "
                             "loss(%c)\n}\nclass all {\n  chunk 0 forward @f\n  steps F0.0\n}\n";
  const pl_verify_options options = {.seed = 5, .iterations = 1};
  pl_arena arena;
  pl_ir_module module;
  pl_verification v;
  pl_error error = PL_ERROR_INIT;
  pl_arena_init(&arena, 0);
  assert_int_equal(pl_ir_parse("nothing", text, sizeof text - 1, &arena, &module, &error), PL_OK);
  assert_int_equal(pl_verify(&module, &module, &options, &arena, &v, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "there is nothing to compare"));
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(in_double), cmocka_unit_test(in_single),
                                     cmocka_unit_test(nothing_is_not_equal)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
