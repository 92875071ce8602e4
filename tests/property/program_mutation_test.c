/* What proofs are worth: each collective, send, receive, sum between stages, scale, accumulation, step and place of
 * fewer microbatches of a correct distributed program is left out, doubled or misplaced in turn
 * (tests/support/mutation.h), and pl_ir_check or pl_verify must find every one of them. Of every recipe and every
 * shipped strategy tree; as a test some of each kind, with PACELINE_MUTATIONS=all every one, which takes fifteen times
 * as long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/mutation.h"
#include "tests/support/random.h"
#include "tests/support/recipes.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_table.h"
#include "workloads/passes/adapt.h"
#include "workloads/passes/program_of.h"
#include "workloads/passes/verify.h"

enum { OF_EACH = 1, N_ROWS = 512 };

typedef struct trial {
  const char *name;
  int32_t number;
  pl_arena arena;
  pl_ir_module plain, distributed;
  bool all;
  int32_t seen[N_ROWS][N_MUTATIONS]; /* subjects of a row so far; the last three are steps */
  int32_t tried[N_MUTATIONS], checked[N_MUTATIONS], verified[N_MUTATIONS];
} trial;

typedef struct total {
  int32_t tried, found;
} total;

/* Whether something is done with what the op gives, here or by who reads it. Checkpoints that run a block once more
 * make its result, which nobody reads. */
static bool is_used(const pl_ir_function *f, const pl_ir_op *op) {
  uint8_t effect = pl_ir_row_at(op->row)->effect;
  if (effect != PL_IR_PURE && effect != PL_IR_COLLECTIVE) return true;
  for (int32_t k = 0; k < op->n_outputs; k++) {
    for (int32_t i = 0; i < f->n_results; i++)
      if (f->results[i] == op->first_output + k) return true;
    for (int32_t i = 0; i < f->n_ops; i++)
      for (int32_t in = 0; in < f->ops[i].n_inputs; in++)
        if (f->ops[i].inputs[in] == op->first_output + k && is_used(f, &f->ops[i])) return true;
  }
  return false;
}

/* Mistakes that change nothing.
 *
 * The bias of the keys moves all scores of a query alike, which a softmax does not see: its gradient is zero. */
static bool changes_nothing(const pl_ir_function *f, const pl_ir_op *op) {
  return !is_used(f, op) ||
         (strcmp(pl_ir_row_at(op->row)->name, "accumulate") == 0 && strstr(op->path, "k.bias") != NULL);
}

/* A short run takes the first of each row, and of its mistakes those whose turn it is, from program to program. */
static bool is_tried(trial *own, int32_t row, mutation kind) {
  bool turn = (row + (int32_t)kind + own->number) % (TEST_IS_SANITIZED ? 8 : 2) == 0;
  return (turn && own->seen[row][kind]++ < OF_EACH) || own->all;
}

static bool is_found(trial *own, mutation kind) {
  const pl_verify_options options = {.seed = 5, .iterations = 2};
  pl_verification v;
  pl_error error = PL_ERROR_INIT, wrong = PL_ERROR_INIT;
  own->tried[kind]++;
  if (pl_ir_check(&own->distributed, &error) != PL_OK) {
    own->checked[kind]++;
    return true;
  }
  if (pl_verify(&own->plain, &own->distributed, &options, &own->arena, &v, &wrong) == PL_OK &&
      pl_verification_holds(&v, &options))
    return false;
  own->verified[kind]++;
  return true;
}

static void mutate_op(trial *own, int32_t f, int32_t at) {
  pl_ir_function *original = own->distributed.functions[f];
  const pl_ir_op *op = &original->ops[at];
  for (int k = 0; k < N_MUTATIONS; k++) {
    mutation kind = (mutation)k;
    pl_arena_mark mark = pl_arena_mark_here(&own->arena);
    if (changes_nothing(original, op) || !mutation_of_op(&own->distributed, f, at, kind, &own->arena)) continue;
    if (is_tried(own, op->row, kind) && !is_found(own, kind))
      printf("  not found: %s of @%s (%s) %s\n", pl_ir_row_at(op->row)->name, original->name,
             op->n_outputs > 0  ? original->values[op->first_output].name
             : op->path != NULL ? op->path
                                : "",
             mutation_names[kind]);
    own->distributed.functions[f] = original;
    pl_arena_release_to(&own->arena, mark);
  }
}

static void mutate_step(trial *own, int32_t c, int32_t at) {
  static const char letters[] = "FBW";
  pl_ir_class *class = &own->distributed.classes[c];
  const pl_ir_class original = *class;
  const pl_ir_step step = class->steps[at];
  for (int k = 0; k < N_MUTATIONS; k++) {
    pl_arena_mark mark = pl_arena_mark_here(&own->arena);
    mutation_of_step(class, at, (mutation)k, &own->arena);
    if (is_tried(own, N_ROWS - 1 - step.kind, (mutation)k) && !is_found(own, (mutation)k))
      printf("  not found: step %c%d.%d of %s %s\n", letters[step.kind], step.chunk, step.microbatch, class->name,
             mutation_names[k]);
    *class = original;
    pl_arena_release_to(&own->arena, mark);
  }
}

static void mutate_fewer(trial *own, int32_t at) {
  const pl_ir_module original = own->distributed;
  for (int k = 0; k < N_MUTATIONS; k++) {
    pl_arena_mark mark = pl_arena_mark_here(&own->arena);
    mutation_of_fewer(&own->distributed, at, (mutation)k, &own->arena);
    if (!is_found(own, (mutation)k)) printf("  not found: place %d of fewer microbatches %s\n", at, mutation_names[k]);
    own->distributed = original;
    pl_arena_release_to(&own->arena, mark);
  }
}

static void mutate(trial *own, total *of_all) {
  pl_error error = PL_ERROR_INIT;
  const char *all = getenv("PACELINE_MUTATIONS");
  int32_t tried = 0, found = 0;
  own->all = all != NULL && strcmp(all, "all") == 0;
  assert_true(pl_ir_n_rows() + 3 <= N_ROWS);
  if (pl_ir_check(&own->distributed, &error) != PL_OK) fail_msg("%s: %s", own->name, error.message);
  for (int32_t f = 0; f < own->distributed.n_functions; f++)
    for (int32_t at = 0; at < own->distributed.functions[f]->n_ops; at++)
      if (mutation_is_subject(&own->distributed.functions[f]->ops[at])) mutate_op(own, f, at);
  for (int32_t c = 0; c < own->distributed.n_classes; c++)
    for (int32_t at = 0; at < own->distributed.classes[c].n_steps; at++)
      mutate_step(own, c, at);
  for (int32_t at = 0; at < own->distributed.n_fewer; at++)
    mutate_fewer(own, at);
  printf("%s:", own->name);
  for (int kind = 0; kind < N_MUTATIONS; kind++) {
    printf(" %s %d + %d of %d;", mutation_names[kind], own->checked[kind], own->verified[kind], own->tried[kind]);
    tried += own->tried[kind];
    found += own->checked[kind] + own->verified[kind];
  }
  printf(" found %d of %d\n", found, tried);
  fflush(stdout);
  of_all->tried += tried;
  of_all->found += found;
}

static void check_total(const total *of_all, int32_t least) {
  printf("%d of %d found\n", of_all->found, of_all->tried);
  assert_true(of_all->tried >= (TEST_IS_SANITIZED ? least / 4 : least));
  assert_int_equal(of_all->found, of_all->tried);
}

/* ---- recipes ---- */

static pl_code take_recipe(const recipe *from, trial *own, pl_error *error) {
  pl_model *model = PL_TAKE(&own->arena, pl_model, 1);
  pl_job job = {.gbs = from->gbs, .seq = from->seq, .dtype = PL_DTYPE_FP32, .flash = true};
  pl_strategy strategy;
  PL_TRY(pl_model_parse(from->name, from->model, strlen(from->model), &own->arena, model, error));
  PL_TRY(pl_strategy_parse(from->strategy, model, &own->arena, &strategy, error));
  pl_strategy_adopt(&strategy, &job);
  PL_TRY(pl_strategy_assign(&strategy, model, &job, NULL, &own->arena, error));
  PL_TRY(pl_program_of(model, &job, &strategy, PL_IR_DISTRIBUTED, &own->arena, &own->distributed, error));
  job.norm_groups = pl_norm_groups_of_program(&own->distributed);
  return pl_program_of(model, &job, NULL, PL_IR_TRAINING, &own->arena, &own->plain, error);
}

static void of_recipes(void **state) {
  (void)state;
  total of_all = {0};
  for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
    trial *own = calloc(1, sizeof *own);
    char name[256];
    pl_error error = PL_ERROR_INIT;
    snprintf(name, sizeof name, "%s %s", recipes[i].name, recipes[i].strategy);
    own->name = name;
    own->number = (int32_t)i;
    pl_arena_init(&own->arena, 0);
    if (take_recipe(&recipes[i], own, &error) != PL_OK) fail_msg("%s: %s", name, error.message);
    mutate(own, &of_all);
    pl_arena_release(&own->arena);
    free(own);
  }
  check_total(&of_all, 500);
}

/* ---- trees ---- */

static const char *model_of(const char *name) {
  return strncmp(name, "vgg", 3) == 0        ? "workloads/models/tiny-vgg.json"
         : strncmp(name, "dlrm", 4) == 0     ? "workloads/models/tiny-dlrm.json"
         : strncmp(name, "llama", 5) == 0    ? "workloads/models/tiny-llama.json"
         : strncmp(name, "deepseek", 8) == 0 ? "workloads/models/tiny-deepseek.json"
         : strncmp(name, "mixtral", 7) == 0  ? "workloads/models/tiny-mixtral.json"
                                             : "workloads/models/tiny-gpt2.json";
}

static pl_code take_tree(const char *path, trial *own, pl_error *error) {
  bool of_one_token = strncmp(own->name, "vgg", 3) == 0 || strncmp(own->name, "dlrm", 4) == 0;
  pl_model *model = PL_TAKE(&own->arena, pl_model, 1);
  pl_strategy_tree *tree = PL_TAKE(&own->arena, pl_strategy_tree, 1);
  pl_tree_plan *plan = PL_TAKE(&own->arena, pl_tree_plan, 1);
  pl_job job = {.gbs = 16, .seq = of_one_token ? 1 : 8, .dtype = PL_DTYPE_FP32, .flash = true};
  PL_TRY(pl_model_load_any(model_of(own->name), &own->arena, model, error));
  PL_TRY(pl_tree_load(path, &own->arena, tree, error));
  PL_TRY(pl_program_of_tree(model, &job, tree, PL_IR_DISTRIBUTED, &own->arena, plan, &own->distributed, error));
  job.norm_groups = pl_norm_groups_of_program(&own->distributed);
  return pl_program_of(model, &job, NULL, PL_IR_TRAINING, &own->arena, &own->plain, error);
}

static void of_trees(void **state) {
  (void)state;
  total of_all = {0};
  glob_t files;
  assert_int_equal(glob("workloads/strategies/*.yaml", 0, NULL, &files), 0);
  assert_true(files.gl_pathc >= 20);
  for (size_t i = 0; i < files.gl_pathc; i++) {
    trial *own = calloc(1, sizeof *own);
    pl_error error = PL_ERROR_INIT;
    own->name = strrchr(files.gl_pathv[i], '/') + 1;
    own->number = (int32_t)i;
    pl_arena_init(&own->arena, 0);
    if (take_tree(files.gl_pathv[i], own, &error) != PL_OK) fail_msg("%s: %s", own->name, error.message);
    mutate(own, &of_all);
    pl_arena_release(&own->arena);
    free(own);
  }
  globfree(&files);
  check_total(&of_all, 250);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(of_recipes), cmocka_unit_test(of_trees)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
