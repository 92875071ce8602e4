/* The kernels of a program are the program: for every recipe and every shipped strategy tree, under one framework's
 * profile after another, what is launched passes the check, is the same when it is printed and read again, and when the
 * program that it is made of is, and leaves loss, gradients and updated weights of the plain training program, to 1e-10
 * in fp64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/random.h"
#include "tests/support/recipes.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_table.h"
#include "workloads/language/ir_text.h"
#include "workloads/passes/adapt.h"
#include "workloads/passes/program_of.h"
#include "workloads/passes/verify.h"
#include "workloads/run/launched_program.h"

/* Fused and in steps; gradients added by products, by kernels, flat, in chunks, reduced in 16 bits; each form of loss.
 */
static const char *const frameworks[] = {"ideal",      "megatron-core",     "torch-ddp",     "torch-fsdp",
                                         "torchtitan", "megatron-lm-1.1.5", "deepspeed",     "nanotron",
                                         "jax-xla",    "tensorflow",        "tensorflow-xla"};
enum { N_FRAMEWORKS = sizeof frameworks / sizeof frameworks[0] };

static pl_code framework_of(size_t index, pl_arena *arena, pl_framework *framework, pl_error *error) {
  const char *name = frameworks[index % N_FRAMEWORKS];
  *framework = pl_framework_ideal;
  return strcmp(name, "ideal") == 0 ? PL_OK : pl_framework_load(name, arena, framework, error);
}

static int64_t kernels_in(const pl_ir_module *module) {
  int64_t n = 0;
  for (int32_t f = 0; f < module->n_functions; f++)
    for (int32_t i = 0; i < module->functions[f]->n_ops; i++)
      n += strcmp(pl_ir_row_at(module->functions[f]->ops[i].row)->name, "kernel") == 0;
  return n;
}

static pl_code parse_printed(const pl_ir_module *module, pl_arena *arena, pl_ir_module *again, pl_error *error) {
  char *text = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  if (stream == NULL) return pl_fail_memory(error, "a program's text");
  pl_ir_print(stream, module);
  fclose(stream);
  pl_code code = pl_ir_parse("printed", text, size, arena, again, error);
  if (code == PL_OK) code = pl_ir_check(again, error);
  free(text);
  return code;
}

/* parse(print(p)) = p, and launches(parse(print(d))) = launches(d): a text has all that decides what is launched. */
static pl_code read_again(const pl_ir_module *kernels, const pl_ir_module *distributed, const pl_framework *framework,
                          pl_arena *arena, pl_error *error) {
  pl_ir_module again;
  PL_TRY(parse_printed(kernels, arena, &again, error));
  if (!pl_ir_module_equal(kernels, &again)) return pl_fail(error, PL_BAD_INPUT, "read again it is another");
  PL_TRY(parse_printed(distributed, arena, &again, error));
  pl_ir_module of_text;
  PL_TRY(pl_program_kernels(&again, framework, arena, &of_text, error));
  if (pl_ir_module_equal(kernels, &of_text)) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "read from text it is launched otherwise");
}

static pl_code compare(const pl_ir_module *plain, const pl_ir_module *distributed, const pl_framework *framework,
                       pl_arena *arena, pl_error *error) {
  const pl_verify_options options = {.seed = 5, .iterations = 2};
  pl_ir_module kernels;
  pl_verification v;
  PL_TRY(pl_program_kernels(distributed, framework, arena, &kernels, error));
  PL_TRY(pl_ir_check(&kernels, error));
  PL_TRY(read_again(&kernels, distributed, framework, arena, error));
  if (kernels_in(&kernels) == 0) return pl_fail(error, PL_BAD_INPUT, "no two ops are one kernel");
  PL_TRY(pl_verify(plain, &kernels, &options, arena, &v, error));
  if (pl_verification_holds(&v, &options)) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "loss apart by %.1e, gradients %.1e (%s), weights %.1e (%s)", v.loss_error,
                 v.gradient_error, v.worst_gradient, v.weight_error, v.worst_weight);
}

/* Products as all else is, in fp8, in NVFP4: here types are names, and values stay what they are. */
enum { N_PRODUCTS = 3 };

/* With all three, under a sanitizer with those whose turn it is. */
static bool is_tried(size_t index, int products) {
  return !TEST_IS_SANITIZED || index % N_PRODUCTS == (size_t)products;
}

static pl_job job_of(int64_t gbs, int64_t seq, int products) {
  return (pl_job){
      .gbs = gbs, .seq = seq, .dtype = PL_DTYPE_BF16, .fp8 = products > 0, .fp4 = products > 1, .flash = true};
}

static pl_code run(size_t index, int products, pl_arena *arena, pl_error *error) {
  const recipe *own = &recipes[index];
  pl_model model;
  pl_job job = job_of(own->gbs, own->seq, products);
  pl_strategy strategy;
  pl_framework framework;
  pl_ir_module plain, distributed;
  PL_TRY(framework_of(index, arena, &framework, error));
  PL_TRY(pl_model_parse(own->name, own->model, strlen(own->model), arena, &model, error));
  PL_TRY(pl_strategy_parse(own->strategy, &model, arena, &strategy, error));
  pl_strategy_adopt(&strategy, &job);
  PL_TRY(pl_strategy_check(&strategy, &model, &job, pl_strategy_n_ranks(&strategy), error));
  PL_TRY(pl_strategy_assign(&strategy, &model, &job, NULL, arena, error));
  PL_TRY(pl_program_of(&model, &job, &strategy, PL_IR_DISTRIBUTED, arena, &distributed, error));
  job.norm_groups = pl_norm_groups_of_program(&distributed);
  PL_TRY(pl_program_of(&model, &job, NULL, PL_IR_TRAINING, arena, &plain, error));
  return compare(&plain, &distributed, &framework, arena, error);
}

/* Ops that go behind the exchanges of tokens compute what they did, in every profile; and with shared experts the order
 * is another. */
static pl_code put_behind_exchanges(const recipe *own, size_t profile, pl_token_order how, bool *is_another,
                                    pl_arena *arena, pl_error *error) {
  pl_model model;
  const pl_job job = job_of(own->gbs, own->seq, 0);
  pl_strategy strategy;
  pl_framework framework;
  pl_ir_module plain, distributed, as_made, ordered;
  PL_TRY(framework_of(profile, arena, &framework, error));
  PL_TRY(pl_model_parse(own->name, own->model, strlen(own->model), arena, &model, error));
  PL_TRY(pl_strategy_parse(own->strategy, &model, arena, &strategy, error));
  PL_TRY(pl_strategy_check(&strategy, &model, &job, pl_strategy_n_ranks(&strategy), error));
  PL_TRY(pl_strategy_assign(&strategy, &model, &job, NULL, arena, error));
  PL_TRY(pl_program_of(&model, &job, &strategy, PL_IR_DISTRIBUTED, arena, &distributed, error));
  PL_TRY(pl_program_of(&model, &job, NULL, PL_IR_TRAINING, arena, &plain, error));
  PL_TRY(pl_program_kernels(&distributed, &framework, arena, &as_made, error));
  framework.pipeline.token_order = how;
  PL_TRY(pl_program_kernels(&distributed, &framework, arena, &ordered, error));
  *is_another = !pl_ir_module_equal(&as_made, &ordered);
  return compare(&plain, &distributed, &framework, arena, error);
}

static void orders_of_tokens_are_equal(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++)
    for (int how = PL_TOKENS_DELAYED; how <= PL_TOKENS_SHARED; how++) {
      pl_arena arena;
      pl_error error = PL_ERROR_INIT;
      bool is_another = false, has_shared = recipes[i].model == deepseek;
      if (strstr(recipes[i].strategy, "ep=") == NULL || strstr(recipes[i].strategy, "recompute=full") != NULL ||
          strstr(recipes[i].strategy, "etp=") != NULL)
        continue;
      pl_arena_init(&arena, 0);
      if (put_behind_exchanges(&recipes[i], i + (size_t)how, (pl_token_order)how, &is_another, &arena, &error) != PL_OK)
        fail_msg("%s %s, order %d: %s", recipes[i].name, recipes[i].strategy, how, error.message);
      if (is_another != (how == PL_TOKENS_DELAYED || has_shared))
        fail_msg("%s %s, order %d: %s", recipes[i].name, recipes[i].strategy, how, is_another ? "another" : "the same");
      pl_arena_release(&arena);
    }
}

static void recipes_are_equal(void **state) {
  int32_t n_wrong = 0;
  (void)state;
  for (size_t i = 0; i < N_PRODUCTS * sizeof recipes / sizeof recipes[0]; i++) {
    pl_arena arena;
    pl_error error = PL_ERROR_INIT;
    size_t index = i / N_PRODUCTS;
    int products = (int)(i % N_PRODUCTS);
    if (!is_tried(index, products)) continue;
    pl_arena_init(&arena, 0);
    if (run(index, products, &arena, &error) != PL_OK) {
      printf("%s %s, %s, products %d: %s\n", recipes[index].name, recipes[index].strategy,
             frameworks[index % N_FRAMEWORKS], products, error.message);
      n_wrong++;
    }
    pl_arena_release(&arena);
  }
  assert_int_equal(n_wrong, 0);
}

static pl_code run_tree(const char *path, size_t index, int products, pl_arena *arena, pl_error *error) {
  const char *name = strrchr(path, '/') + 1;
  bool pictures = strncmp(name, "vgg", 3) == 0, tables = strncmp(name, "dlrm", 4) == 0;
  const char *file = pictures                            ? "workloads/models/tiny-vgg.json"
                     : tables                            ? "workloads/models/tiny-dlrm.json"
                     : strncmp(name, "llama", 5) == 0    ? "workloads/models/tiny-llama.json"
                     : strncmp(name, "deepseek", 8) == 0 ? "workloads/models/tiny-deepseek.json"
                     : strncmp(name, "mixtral", 7) == 0  ? "workloads/models/tiny-mixtral.json"
                                                         : "workloads/models/tiny-gpt2.json";
  pl_model model;
  pl_job job = job_of(16, pictures || tables ? 1 : 8, products);
  pl_strategy_tree tree;
  pl_tree_plan plan;
  pl_framework framework;
  pl_ir_module plain, distributed;
  PL_TRY(framework_of(index, arena, &framework, error));
  PL_TRY(pl_model_load_any(file, arena, &model, error));
  PL_TRY(pl_tree_load(path, arena, &tree, error));
  PL_TRY(pl_program_of_tree(&model, &job, &tree, PL_IR_DISTRIBUTED, arena, &plan, &distributed, error));
  job.norm_groups = pl_norm_groups_of_program(&distributed);
  PL_TRY(pl_program_of(&model, &job, NULL, PL_IR_TRAINING, arena, &plain, error));
  return compare(&plain, &distributed, &framework, arena, error);
}

static void trees_are_equal(void **state) {
  int32_t n_wrong = 0;
  glob_t found;
  (void)state;
  assert_int_equal(glob("workloads/strategies/*.yaml", 0, NULL, &found), 0);
  assert_true(found.gl_pathc >= 14);
  for (size_t i = 0; i < N_PRODUCTS * found.gl_pathc; i++) {
    pl_arena arena;
    pl_error error = PL_ERROR_INIT;
    size_t index = i / N_PRODUCTS;
    int products = (int)(i % N_PRODUCTS);
    if (!is_tried(index, products)) continue;
    pl_arena_init(&arena, 0);
    if (run_tree(found.gl_pathv[index], index, products, &arena, &error) != PL_OK) {
      printf("%s, %s, products %d: %s\n", found.gl_pathv[index], frameworks[index % N_FRAMEWORKS], products,
             error.message);
      n_wrong++;
    }
    pl_arena_release(&arena);
  }
  globfree(&found);
  assert_int_equal(n_wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(orders_of_tokens_are_equal), cmocka_unit_test(recipes_are_equal),
                                     cmocka_unit_test(trees_are_equal)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
