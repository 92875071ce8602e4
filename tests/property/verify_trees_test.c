/* Every strategy tree that is shipped computes what the model says: the distributed program, run with numbers by all
 * devices, leaves loss, gradients and updated weights of the plain training program. And a tree that says what a tuple
 * says gives the tuple's program, letter by letter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/import/model_file.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_text.h"
#include "workloads/passes/adapt.h"
#include "workloads/passes/program_of.h"
#include "workloads/passes/verify.h"

typedef struct own_state {
  pl_arena arena;
  pl_model model;
  pl_job job;
  pl_strategy_tree tree;
  pl_tree_plan plan;
  pl_ir_module module;
} own_state;

static const char *model_of(const char *path) {
  const char *name = strrchr(path, '/') + 1;
  return strncmp(name, "vgg", 3) == 0        ? "workloads/models/tiny-vgg.json"
         : strncmp(name, "dlrm", 4) == 0     ? "workloads/models/tiny-dlrm.json"
         : strncmp(name, "llama", 5) == 0    ? "workloads/models/tiny-llama.json"
         : strncmp(name, "deepseek", 8) == 0 ? "workloads/models/tiny-deepseek.json"
         : strncmp(name, "mixtral", 7) == 0  ? "workloads/models/tiny-mixtral.json"
                                             : "workloads/models/tiny-gpt2.json";
}

static bool is_of_one_token(const char *path) {
  return strstr(path, "vgg") != NULL || strstr(path, "dlrm") != NULL;
}

static pl_code verify(const char *path, own_state *own, pl_verification *v, pl_error *error) {
  const pl_verify_options options = {.seed = 3, .iterations = 2};
  pl_ir_module plain;
  own->job = (pl_job){.gbs = 16, .seq = is_of_one_token(path) ? 1 : 8, .dtype = PL_DTYPE_FP32, .flash = true};
  PL_TRY(pl_model_load_any(model_of(path), &own->arena, &own->model, error));
  PL_TRY(pl_tree_load(path, &own->arena, &own->tree, error));
  PL_TRY(pl_program_of_tree(&own->model, &own->job, &own->tree, PL_IR_DISTRIBUTED, &own->arena, &own->plan,
                            &own->module, error));
  PL_TRY(pl_ir_check(&own->module, error));
  own->job.norm_groups = pl_norm_groups_of_program(&own->module);
  PL_TRY(pl_program_of(&own->model, &own->job, NULL, PL_IR_TRAINING, &own->arena, &plain, error));
  PL_TRY(pl_verify(&plain, &own->module, &options, &own->arena, v, error));
  if (pl_verification_holds(v, &options)) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "loss apart by %.1e, gradients %.1e (%s), weights %.1e (%s), copies %.1e",
                 v->loss_error, v->gradient_error, v->worst_gradient, v->weight_error, v->worst_weight,
                 v->copies_error);
}

static void shipped(void **state) {
  (void)state;
  glob_t found;
  int32_t n_wrong = 0;
  assert_int_equal(glob("workloads/strategies/*.yaml", 0, NULL, &found), 0);
  assert_true(found.gl_pathc >= 20);
  for (size_t i = 0; i < found.gl_pathc; i++) {
    own_state own = {0};
    pl_error error = PL_ERROR_INIT;
    pl_verification v;
    pl_arena_init(&own.arena, 0);
    if (verify(found.gl_pathv[i], &own, &v, &error) != PL_OK) {
      printf("%s: %s\n", found.gl_pathv[i], error.message);
      n_wrong++;
    }
    pl_arena_release(&own.arena);
  }
  globfree(&found);
  assert_int_equal(n_wrong, 0);
}

/* ---- a tree and a tuple ---- */

typedef struct pair {
  const char *model, *tuple, *tree;
} pair;

static const pair pairs[] = {
    {"tiny-gpt2", "pp=2,dp=2,tmp=2,mbs=2,recompute=full,zero=1",
     "mesh: {dp: 2, tp: 2}\npipeline: {stages: 2}\nschedule: {microbatches: 4}\npartition: {b: dp, v|g|r|f: tp}\n"
     "memory: {states: b}\nchildren:\n  - {match: h.*, schedule: {recompute: full}}\n"},
    {"tiny-gpt2", "pp=2,dp=1,tmp=2,mbs=4,vpp=2,sp=1",
     "pipeline: {stages: 2, chunks: 2}\nschedule: {microbatches: 4}\npartition: {v|g|r|f|s: 2}\n"
     "children:\n  - {match: loss, partition: {v|g|r|f: 2}}\n"},
    {"tiny-llama", "pp=1,dp=4,tmp=1,mbs=2,zero=3",
     "schedule: {microbatches: 2}\npartition: {b: 4}\nmemory: {states: b, gradients: b, parameters: b}\n"},
    {"tiny-llama", "pp=1,dp=1,tmp=8,mbs=4,sp=1", /* fewer key-value heads than ranks */
     "mesh: {tp: 2, tpr: 4}\nschedule: {microbatches: 4}\npartition: {v|g|r|f|s: tp, v|r|f|d|e|s: tpr}\n"
     "children:\n  - {match: loss, partition: {v|g|r|f: tp, v|r|f|d|e: tpr}}\n"},
    {"tiny-llama", "pp=1,dp=2,tmp=1,mbs=2,cp=2", "schedule: {microbatches: 4}\npartition: {b: 2, s: 2}\nring: true\n"},
    {"tiny-mixtral", "pp=2,dp=2,tmp=2,mbs=4,ep=4,sp=1",
     "mesh: {dpe: 2, tpe: 2}\npipeline: {stages: 2}\nschedule: {microbatches: 2}\n"
     "partition: {b|x: dpe, v|g|r|f|s|x: tpe}\n"
     "children:\n  - {match: loss, partition: {b|x: dpe, v|g|r|f|x: tpe}}\n"},
};

static char *text_of(const pl_ir_module *module) {
  char *text;
  size_t size;
  FILE *stream = open_memstream(&text, &size);
  assert_non_null(stream);
  pl_ir_print(stream, module);
  fclose(stream);
  return text;
}

static char *text_of_tuple(const pair *of, own_state *own, pl_error *error) {
  pl_strategy strategy;
  assert_int_equal(pl_strategy_parse(of->tuple, &own->model, &own->arena, &strategy, error), PL_OK);
  pl_strategy_adopt(&strategy, &own->job);
  assert_int_equal(pl_strategy_assign(&strategy, &own->model, &own->job, NULL, &own->arena, error), PL_OK);
  assert_int_equal(
      pl_program_of(&own->model, &own->job, &strategy, PL_IR_DISTRIBUTED, &own->arena, &own->module, error), PL_OK);
  return text_of(&own->module);
}

static void as_tuples(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
    const pair *of = &pairs[i];
    own_state own = {.job = {.gbs = 16, .seq = 16, .dtype = PL_DTYPE_FP32, .flash = true}};
    pl_error error = PL_ERROR_INIT;
    char path[64];
    pl_arena_init(&own.arena, 0);
    snprintf(path, sizeof(path), "workloads/models/%s.json", of->model);
    assert_int_equal(pl_model_load(path, &own.arena, &own.model, &error), PL_OK);
    char *wanted = text_of_tuple(of, &own, &error);
    pl_code code = pl_tree_parse("tree.yaml", of->tree, strlen(of->tree), &own.arena, &own.tree, &error);
    if (code == PL_OK)
      code = pl_program_of_tree(&own.model, &own.job, &own.tree, PL_IR_DISTRIBUTED, &own.arena, &own.plan, &own.module,
                                &error);
    if (code != PL_OK) printf("%s: %s\n", of->tuple, error.message);
    assert_int_equal(code, PL_OK);
    char *is = text_of(&own.module);
    if (strcmp(wanted, is) != 0) printf("%s: the tree gives another program\n", of->tuple);
    assert_string_equal(is, wanted);
    free(wanted);
    free(is);
    pl_arena_release(&own.arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shipped), cmocka_unit_test(as_tuples)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
