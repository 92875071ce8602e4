/* Programs as text: what is printed reads as it is and prints alike. Of every model that ships, at every level; of
 * every tiny model under many strategies, where the check must pass too; and of random modules, which use the grammar
 * as no pass does. Text with bytes changed is read, or refused with a place; nothing crashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/random.h"
#include "workloads/import/model_file.h"
#include "workloads/ir/stack.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_table.h"
#include "workloads/language/ir_text.h"
#include "workloads/passes/program_of.h"
#include "workloads/strategy/job_defaults.h"

static char *printed(const pl_ir_module *module, size_t *size) {
  char *text = NULL;
  FILE *stream = open_memstream(&text, size);
  assert_non_null(stream);
  pl_ir_print(stream, module);
  assert_int_equal(fclose(stream), 0);
  return text;
}

/* Bytes of the text. */
static size_t check_round_trip(const pl_ir_module *module, const char *what) {
  pl_ir_module again;
  pl_error error = PL_ERROR_INIT;
  size_t size, second_size;
  char *text = printed(module, &size);
  if (pl_ir_parse("t", text, size, &arena, &again, &error) != PL_OK) fail_msg("%s: %s", what, error.message);
  if (!pl_ir_module_equal(module, &again)) fail_msg("%s: another program is read than was printed", what);
  char *second = printed(&again, &second_size);
  if (size != second_size || memcmp(text, second, size) != 0) fail_msg("%s: printed otherwise", what);
  free(text);
  free(second);
  return size;
}

/* ---- programs of models ---- */

typedef struct job_case {
  pl_model model;
  pl_job job;
} job_case;

static void load(const char *path, job_case *own) {
  pl_error error = PL_ERROR_INIT;
  pl_job_origin origin = {.dtype_is_given = true, .products_are_given = true, .seq_is_given = true};
  if (pl_model_load_any(path, &arena, &own->model, &error) != PL_OK) fail_msg("%s", error.message);
  bool pictures =
      own->model.program.stack != NULL && own->model.program.stack->kind == PL_STACK_PATCHES; /* as many as patches */
  own->job =
      (pl_job){.gbs = 8,
               .seq = pictures || own->model.positions.max_positions < 16 ? own->model.positions.max_positions : 16,
               .dtype = PL_DTYPE_BF16,
               .flash = true};
  if (pl_job_defaults_take(&own->model, path, &own->job, &origin, &error) != PL_OK) fail_msg("%s", error.message);
}

static bool check_program(const job_case *own, const pl_strategy *strategy, pl_ir_level level, const char *what) {
  pl_ir_module module;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_program_of(&own->model, &own->job, strategy, level, &arena, &module, &error);
  if (code == PL_UNSUPPORTED) return false;
  if (code != PL_OK) fail_msg("%s: %s", what, error.message);
  if (pl_ir_check(&module, &error) != PL_OK) fail_msg("%s: %s", what, error.message);
  check_round_trip(&module, what);
  return true;
}

static void programs_of_every_model(void **state) {
  (void)state;
  glob_t files;
  int n = 0;
  assert_int_equal(glob(PACELINE_SOURCE_DIR "/workloads/models/*.json", 0, NULL, &files), 0);
  for (size_t i = 0; i < files.gl_pathc; i++) {
    job_case own;
    load(files.gl_pathv[i], &own);
    for (int level = PL_IR_MODEL; level <= PL_IR_TRAINING; level++)
      n += check_program(&own, NULL, (pl_ir_level)level, files.gl_pathv[i]);
    pl_arena_reset(&arena);
  }
  globfree(&files);
  print_message("%d programs\n", n);
  assert_true(n >= 60);
}

static const char *const strategies[] = {"pp=1,dp=1,tmp=1,mbs=1",
                                         "pp=1,dp=2,tmp=2,mbs=2",
                                         "pp=2,dp=2,tmp=2,mbs=1,sp=1,zero=1",
                                         "pp=1,dp=2,tmp=2,mbs=1,sp=1,cp=2,recompute=full",
                                         "pp=2,dp=1,tmp=1,mbs=1,recompute=selective",
                                         "pp=4,dp=1,tmp=1,mbs=1,schedule=gpipe",
                                         "pp=2,dp=2,tmp=1,mbs=1,schedule=fifo",
                                         "pp=2,dp=2,tmp=1,mbs=1,schedule=zb-h1",
                                         "pp=4,dp=1,tmp=1,mbs=1,schedule=zb-h2",
                                         "pp=1,dp=2,tmp=4,mbs=1,sp=1",
                                         "pp=1,dp=2,tmp=2,mbs=1,zero=2",
                                         "pp=1,dp=2,tmp=2,mbs=1,zero=3,sp=1",
                                         "pp=1,dp=4,tmp=1,mbs=1,zero=3,shard=2",
                                         "pp=1,dp=2,tmp=1,mbs=1,cp=2,cp_comm=gather,zero=2",
                                         "pp=1,dp=1,tmp=1,mbs=1,cp=4",
                                         "pp=2,dp=1,tmp=2,mbs=1,vpp=2",
                                         "pp=2,dp=2,tmp=1,mbs=1,vpp=2,schedule=breadth-first",
                                         "pp=2,dp=1,tmp=2,mbs=1,vpp=2,schedule=zb-v,sp=1",
                                         "pp=2,dp=1,tmp=1,mbs=1,vpp=2,schedule=dualpipe-v",
                                         "pp=1,dp=2,tmp=2,mbs=1,ep=2,sp=1",
                                         "pp=2,dp=2,tmp=2,mbs=1,ep=4,sp=1,recompute=full",
                                         "pp=1,dp=4,tmp=1,mbs=1,ep=2,zero=3"};

/* What the strategy's own check refuses is left out. */
static bool check_strategy(const job_case *own, const char *text, const char *path) {
  pl_strategy strategy;
  pl_error error = PL_ERROR_INIT;
  if (pl_strategy_parse(text, &own->model, &arena, &strategy, &error) != PL_OK) return false;
  pl_strategy_adopt(&strategy, &own->job);
  if (pl_strategy_check(&strategy, &own->model, &own->job, pl_strategy_n_ranks(&strategy), &error) != PL_OK ||
      pl_strategy_assign(&strategy, &own->model, &own->job, NULL, &arena, &error) != PL_OK)
    return false;
  char what[1024];
  snprintf(what, sizeof what, "%s, %s", path, text);
  return check_program(own, &strategy, PL_IR_DISTRIBUTED, what);
}

static void programs_of_many_strategies(void **state) {
  (void)state;
  static const char *const models[] = {"tiny-gpt2", "tiny-llama", "tiny-mixtral", "gpt3-175b", "llama-3-70b"};
  int n = 0;
  for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
    char path[512];
    snprintf(path, sizeof path, "%s/workloads/models/%s.json", PACELINE_SOURCE_DIR, models[m]);
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
      job_case own;
      load(path, &own);
      n += check_strategy(&own, strategies[i], path);
      pl_arena_reset(&arena);
    }
  }
  print_message("%d programs\n", n);
  assert_true(n >= 70);
}

/* ---- random modules ---- */

static const char *random_name(uint64_t *random, char name[PL_IR_NAME_MAX]) {
  static const char letters[] = "_.abhxXZ09";
  uint32_t length = 1 + random_below(random, random_below(random, 8) == 0 ? PL_IR_NAME_MAX - 1 : 3);
  for (uint32_t i = 0; i < length; i++)
    name[i] = letters[random_below(random, i == 0 ? 8 : 10)];
  name[length] = '\0';
  return name;
}

static const char *random_text(uint64_t *random) {
  uint32_t length = 1 + random_below(random, 12);
  char *text = pl_arena_take(&arena, length + 1, 1);
  assert_non_null(text);
  for (uint32_t i = 0; i < length; i++)
    text[i] = (char)(random_below(random, 3) > 0 ? 'a' + (char)random_below(random, 26)
                                                 : (char)random_between(random, 1, 255));
  text[length] = '\0';
  return text;
}

static pl_ir_type random_type(uint64_t *random, const pl_ir_mesh *mesh) {
  pl_ir_dim dims[PL_IR_RANK_MAX];
  uint32_t rank = random_below(random, random_below(random, 6) == 0 ? PL_IR_RANK_MAX + 1 : 4);
  pl_ir_type type = pl_ir_type_of((pl_ir_element)random_below(random, PL_IR_ELEMENT_COUNT), 0, NULL);
  for (uint32_t i = 0; i < rank; i++) {
    char name[PL_IR_NAME_MAX];
    dims[i] = (pl_ir_dim){pl_ir_name_of(random_name(random, name)), 1 + (int64_t)random_below(random, 1000)};
    if (random_below(random, 20) == 0) dims[i].extent = (int64_t)1 << random_below(random, 54);
    if (pl_ir_type_find(&type, dims[i].name) < 0) type.dims[type.rank++] = dims[i];
  }
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    type.on[axis] = (int8_t)((int32_t)random_below(random, (uint32_t)type.rank + 3) - 3);
  return type;
}

static void random_mesh(uint64_t *random, pl_ir_mesh *mesh) {
  uint32_t n = random_below(random, 5);
  for (uint32_t i = 0; i < n; i++) {
    char name[PL_IR_NAME_MAX];
    pl_ir_axis axis = {pl_ir_name_of(random_name(random, name)), (int32_t)random_between(random, 1, 6)};
    if (pl_ir_mesh_find(mesh, axis.name) < 0) mesh->axes[mesh->n_axes++] = axis;
  }
}

static pl_ir_attribute random_attribute(uint64_t *random, pl_ir_name names[4]) {
  char name[PL_IR_NAME_MAX];
  random_name(random, name);
  uint64_t bits = random_u64(random);
  double real;
  memcpy(&real, &bits, sizeof real);
  switch (random_below(random, 4)) {
  case 0:
    return pl_ir_integer(name, (int64_t)(random_below(random, 2) == 0 ? bits : bits >> 50));
  case 1:
    return pl_ir_real(name, !isfinite(real) ? -0.0 : random_below(random, 2) == 0 ? real : (double)(bits >> 60));
  case 2:
    return pl_ir_text(name, random_text(random));
  default:
    break;
  }
  int32_t n = (int32_t)random_below(random, 5);
  for (int32_t i = 0; i < n; i++) {
    char each[PL_IR_NAME_MAX];
    names[i] = pl_ir_name_of(random_name(random, each));
  }
  return pl_ir_names(name, n, names);
}

static void random_op(uint64_t *random, pl_ir_module *module, pl_ir_function *function) {
  enum { MOST = 5 };
  int32_t inputs[MOST];
  pl_ir_type types[MOST];
  char names[MOST][PL_IR_NAME_MAX];
  const char *output_names[MOST];
  pl_ir_name listed[MOST][4];
  pl_ir_attribute attributes[MOST];
  pl_ir_making making = {.row = (int32_t)random_below(random, (uint32_t)pl_ir_n_rows()), .callee = PL_IR_NONE};
  making.n_outputs = (int32_t)random_below(random, MOST);
  for (uint32_t i = function->n_values > 0 ? random_below(random, MOST + 1) : 0; i > 0; i--)
    inputs[making.n_inputs++] = (int32_t)random_below(random, (uint32_t)function->n_values);
  for (int32_t i = 0; i < making.n_outputs; i++) {
    types[i] = random_type(random, &module->mesh);
    output_names[i] = random_name(random, names[i]);
  }
  for (uint32_t i = random_below(random, MOST); i > 0; i--) {
    pl_ir_attribute made = random_attribute(random, listed[making.n_attributes]);
    bool known = false;
    for (int32_t k = 0; k < making.n_attributes; k++)
      known = known || pl_ir_name_equal(attributes[k].name, made.name);
    if (!known) attributes[making.n_attributes++] = made;
  }
  if (random_below(random, 3) == 0) making.path = random_text(random);
  if (random_below(random, 3) == 0) making.reason = random_text(random);
  if (module->n_functions > 1 && random_below(random, 4) == 0)
    making.callee = (int32_t)random_below(random, (uint32_t)module->n_functions - 1);
  making.inputs = inputs, making.attributes = attributes;
  making.output_names = output_names, making.output_types = types;
  pl_ir_op_add(module, function, &making);
}

static void random_function(uint64_t *random, pl_ir_module *module) {
  char name[PL_IR_NAME_MAX];
  if (pl_ir_function_find(module, random_name(random, name)) != PL_IR_NONE) return;
  pl_ir_function *function = pl_ir_function_add(module, name);
  for (uint32_t i = random_below(random, 4); i > 0; i--) {
    pl_ir_type type = random_type(random, &module->mesh);
    pl_ir_argument(module, function, random_name(random, name), &type);
  }
  for (uint32_t i = random_below(random, 12); i > 0; i--)
    random_op(random, module, function);
  int32_t results[4], n = 0;
  for (uint32_t i = function->n_values > 0 ? random_below(random, 5) : 0; i > 0; i--)
    results[n++] = (int32_t)random_below(random, (uint32_t)function->n_values);
  pl_ir_results_set(module, function, n, results);
}

static int32_t random_callee(uint64_t *random, const pl_ir_module *module) {
  return (int32_t)random_below(random, (uint32_t)module->n_functions + 1) - 1; /* PL_IR_NONE too */
}

static void random_class(uint64_t *random, pl_ir_module *module, pl_ir_class *own) {
  char name[PL_IR_NAME_MAX];
  own->name = pl_arena_printf(&arena, "c%d%.10s", module->n_classes, random_name(random, name));
  for (int32_t axis = 0; axis < module->mesh.n_axes; axis++)
    own->at[axis] = (int32_t)random_below(random, (uint32_t)module->mesh.axes[axis].extent + 1) - 1;
  own->chunks = PL_TAKE(&arena, pl_ir_chunk, 4);
  own->steps = PL_TAKE(&arena, pl_ir_step, 40);
  own->n_chunks = (int32_t)random_below(random, 4);
  own->n_steps = (int32_t)random_below(random, random_below(random, 4) == 0 ? 40 : 4);
  for (int32_t i = 0; i < own->n_chunks; i++) {
    own->chunks[i].chunk = i;
    own->chunks[i].forward = random_callee(random, module);
    own->chunks[i].backward = random_callee(random, module);
    own->chunks[i].weights = random_callee(random, module);
  }
  for (int32_t i = 0; i < own->n_steps; i++) {
    own->steps[i].kind = (uint8_t)random_below(random, 3);
    own->steps[i].chunk = (int32_t)random_below(random, 4);
    own->steps[i].microbatch = (int32_t)(random_below(random, 9) == 0 ? INT32_MAX : random_below(random, 4));
  }
  own->update = random_callee(random, module);
}

/* Each at one coordinate or more. */
static void random_fewer(uint64_t *random, pl_ir_module *module) {
  const pl_ir_mesh *mesh = &module->mesh;
  pl_ir_fewer *made = PL_TAKE(&arena, pl_ir_fewer, 3);
  module->fewer = made;
  for (uint32_t i = mesh->n_axes > 0 ? random_below(random, 4) : 0; i > 0; i--) {
    pl_ir_fewer *own = &made[module->n_fewer++];
    own->n_microbatches = (int32_t)random_between(random, 1, 9);
    int32_t always = (int32_t)random_below(random, (uint32_t)mesh->n_axes);
    for (int32_t axis = 0; axis < PL_IR_AXES_MAX; axis++) {
      bool is_said = axis == always || (axis < mesh->n_axes && random_below(random, 3) == 0);
      own->at[axis] = is_said ? (int32_t)random_below(random, (uint32_t)mesh->axes[axis].extent) : PL_IR_NONE;
    }
  }
}

static void random_module(uint64_t *random, pl_ir_module *module) {
  pl_ir_module_init(module, &arena, random_text(random), (pl_ir_level)random_below(random, PL_IR_LEVEL_COUNT));
  random_mesh(random, &module->mesh);
  module->n_microbatches = (int32_t)random_between(random, 1, 9);
  random_fewer(random, module);
  for (uint32_t i = random_below(random, 6); i > 0; i--)
    random_function(random, module);
  module->classes = PL_TAKE(&arena, pl_ir_class, 4);
  for (uint32_t i = random_below(random, 4); i > 0; i--) {
    random_class(random, module, &module->classes[module->n_classes]);
    module->n_classes++;
  }
  assert_false(arena.failed);
}

static void random_modules_read_as_printed(void **state) {
  (void)state;
  uint64_t random = test_seed(20260711), n = test_cases(3000);
  for (uint64_t i = 0; i < n; i++) {
    char what[64];
    pl_ir_module module;
    pl_error error = PL_ERROR_INIT;
    uint64_t before = random;
    random_module(&random, &module);
    snprintf(what, sizeof what, "PACELINE_SEED=%llu", (unsigned long long)before);
    check_round_trip(&module, what);
    pl_code code = pl_ir_check(&module, &error);
    assert_int_equal(code, error.code);
    pl_arena_reset(&arena);
  }
}

/* ---- bytes changed ---- */

static void check_changed(const char *text, size_t size) {
  pl_ir_module module;
  pl_error error = PL_ERROR_INIT;
  pl_ir_place place;
  pl_code code = pl_ir_parse("t", text, size, &arena, &module, &error);
  assert_int_equal(code, error.code);
  if (code == PL_OK) {
    check_round_trip(&module, "a program with bytes changed");
    code = pl_ir_check(&module, &error);
    assert_int_equal(code, error.code);
  }
  if (code == PL_OK) return;
  assert_int_equal(code, PL_BAD_INPUT);
  if (!pl_ir_error_place(&error, "t", &place)) fail_msg("no place: %s", error.message);
  size_t shown_size;
  char *shown = NULL;
  FILE *stream = open_memstream(&shown, &shown_size);
  assert_non_null(stream);
  pl_ir_source_show(stream, text, size, place);
  assert_int_equal(fclose(stream), 0);
  assert_true(shown_size > 0);
  free(shown);
}

static void bytes_may_be_changed(void **state) {
  (void)state;
  uint64_t random = test_seed(4711), n = test_cases(3000);
  job_case own;
  load(PACELINE_SOURCE_DIR "/workloads/models/tiny-llama.json", &own);
  pl_strategy strategy;
  pl_ir_module module;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_strategy_parse("pp=2,dp=1,tmp=2,mbs=4", &own.model, &arena, &strategy, &error), PL_OK);
  pl_strategy_adopt(&strategy, &own.job);
  assert_int_equal(pl_strategy_assign(&strategy, &own.model, &own.job, NULL, &arena, &error), PL_OK);
  assert_int_equal(pl_program_of(&own.model, &own.job, &strategy, PL_IR_DISTRIBUTED, &arena, &module, &error), PL_OK);
  size_t size;
  char *text = printed(&module, &size), *changed = malloc(size);
  assert_non_null(changed);
  for (uint64_t i = 0; i < n; i++) {
    memcpy(changed, text, size);
    for (uint32_t edits = 1 + random_below(&random, 3); edits > 0; edits--) {
      size_t at = random_below(&random, (uint32_t)size), from = random_below(&random, (uint32_t)size);
      changed[at] = random_below(&random, 8) == 0 ? (char)random_below(&random, 256) : text[from];
    }
    pl_arena_reset(&arena);
    check_changed(changed, size);
  }
  free(changed);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(programs_of_every_model, set_up, tear_down),
      cmocka_unit_test_setup_teardown(programs_of_many_strategies, set_up, tear_down),
      cmocka_unit_test_setup_teardown(random_modules_read_as_printed, set_up, tear_down),
      cmocka_unit_test_setup_teardown(bytes_may_be_changed, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
