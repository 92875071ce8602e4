/* What proofs are worth: each collective, send, sum between stages, scale and accumulation of a correct distributed
 * program is left out, doubled or misplaced in turn, and pl_ir_check or pl_verify must find every one of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/import/model_file.h"
#include "workloads/language/ir_check.h"
#include "workloads/passes/program_of.h"
#include "workloads/passes/verify.h"

static const char gpt2[] = "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 16, \"n_head\": 4, "
                           "\"n_positions\": 16, \"vocab_size\": 32}";
static const char llama[] =
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 24, \"vocab_size\": 32, \"max_position_embeddings\": 16}";
static const char mixtral[] =
    "{\"model_type\": \"mixtral\", \"num_hidden_layers\": 1, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 4, \"intermediate_size\": 24, \"vocab_size\": 32, \"max_position_embeddings\": 16, "
    "\"num_local_experts\": 4, \"num_experts_per_tok\": 2}";

static const char *const recipes[][2] = {
    {gpt2, "pp=2,dp=2,tmp=2,mbs=1"},         {llama, "pp=1,dp=2,tmp=2,mbs=1,sp=1,zero=1"},
    {llama, "pp=1,dp=2,tmp=1,mbs=1,zero=3"}, {llama, "pp=1,dp=1,tmp=2,mbs=1,cp=2,cp_comm=gather"},
    {llama, "pp=1,dp=1,tmp=1,mbs=1,cp=2"},   {mixtral, "pp=1,dp=2,tmp=1,mbs=1,ep=2"},
};
enum { N_RECIPES = sizeof(recipes) / sizeof(recipes[0]) };

typedef enum mutation { LEAVE_OUT = 0, DOUBLE, MISPLACE, N_MUTATIONS } mutation;
static const char *const mutation_names[N_MUTATIONS] = {"left out", "doubled", "misplaced"};

typedef struct trial {
  pl_arena arena;
  pl_ir_module plain, distributed;
  int32_t tried[N_MUTATIONS], checked[N_MUTATIONS], verified[N_MUTATIONS];
} trial;

static const char *row_name(const pl_ir_op *op) {
  return pl_ir_row_at(op->row)->name;
}

static bool is(const pl_ir_op *op, const char *name) {
  return strcmp(row_name(op), name) == 0;
}

/* The bias of the keys moves all scores of a query alike, which a softmax does not see: its gradient is zero, and what
 * is done to its accumulation changes nothing. */
static bool changes_nothing(const pl_ir_op *op) {
  return is(op, "accumulate") && strcmp(op->path, "attention.k.bias") == 0;
}

static bool is_subject(const pl_ir_op *op) {
  if (changes_nothing(op)) return false;
  bool moves = pl_ir_row_at(op->row)->effect == PL_IR_COLLECTIVE && !is(op, "cut") && op->n_inputs == 1;
  return moves || is(op, "send") || is(op, "sum_classes") || is(op, "scale") || is(op, "accumulate");
}

/* ---- mutated copies ---- */

/* The function with room for one op and one value more, nothing shared that a mutation changes. */
static pl_ir_function *copied(const pl_ir_function *from, pl_arena *arena) {
  pl_ir_function *made = PL_TAKE(arena, pl_ir_function, 1);
  *made = *from;
  made->ops = PL_TAKE(arena, pl_ir_op, from->n_ops + 1);
  made->values = PL_TAKE(arena, pl_ir_value, from->n_values + 1);
  memcpy(made->ops, from->ops, (size_t)from->n_ops * sizeof(*made->ops));
  memcpy(made->values, from->values, (size_t)from->n_values * sizeof(*made->values));
  for (int32_t i = 0; i < from->n_ops; i++) {
    int32_t *inputs = PL_TAKE(arena, int32_t, from->ops[i].n_inputs + 1);
    for (int32_t k = 0; k < from->ops[i].n_inputs; k++)
      inputs[k] = from->ops[i].inputs[k];
    made->ops[i].inputs = inputs;
  }
  int32_t *results = PL_TAKE(arena, int32_t, from->n_results + 1);
  for (int32_t i = 0; i < from->n_results; i++)
    results[i] = from->results[i];
  made->results = results;
  return made;
}

/* Who reads `value` from op `first` on reads `other`. */
static void reads_other(pl_ir_function *function, int32_t first, int32_t value, int32_t other) {
  for (int32_t i = first; i < function->n_ops; i++)
    for (int32_t k = 0; k < function->ops[i].n_inputs; k++)
      if (function->ops[i].inputs[k] == value) ((int32_t *)(uintptr_t)function->ops[i].inputs)[k] = other;
  for (int32_t i = 0; i < function->n_results; i++)
    if (function->results[i] == value) ((int32_t *)(uintptr_t)function->results)[i] = other;
}

/* The op is gone, and its value is what it was given. */
static void leave_out(pl_ir_function *function, int32_t at) {
  const pl_ir_op op = function->ops[at];
  if (op.n_outputs == 1) {
    reads_other(function, at + 1, op.first_output, op.inputs[0]);
    /* The value stays in the table, so that numbers stay: an argument that nobody reads would move the others. */
    function->values[op.first_output].op = PL_IR_NONE;
  }
  memmove(&function->ops[at], &function->ops[at + 1], (size_t)(function->n_ops - at - 1) * sizeof(*function->ops));
  function->n_ops--;
  for (int32_t i = 0; i < function->n_values; i++)
    if (function->values[i].op > at) function->values[i].op--;
}

/* The op once more behind itself, on what it gave, or again on what it was given. */
static void apply_twice(pl_ir_function *function, int32_t at, pl_arena *arena) {
  memmove(&function->ops[at + 1], &function->ops[at], (size_t)(function->n_ops - at) * sizeof(*function->ops));
  function->n_ops++;
  for (int32_t i = 0; i < function->n_values; i++)
    if (function->values[i].op > at) function->values[i].op++;
  pl_ir_op *again = &function->ops[at + 1];
  if (again->n_outputs == 0) return;
  int32_t *inputs = PL_TAKE(arena, int32_t, 1), first = again->first_output, added = function->n_values++;
  inputs[0] = first;
  function->values[added] = function->values[first];
  function->values[added].name = "twice";
  function->values[added].op = at + 1;
  reads_other(function, at + 2, first, added);
  again->inputs = inputs;
  again->first_output = added;
}

static const pl_ir_attribute *changed(const pl_ir_op *op, const char *name, const pl_ir_name *names, pl_arena *arena) {
  pl_ir_attribute *attributes = PL_TAKE(arena, pl_ir_attribute, op->n_attributes);
  for (int32_t i = 0; i < op->n_attributes; i++) {
    attributes[i] = op->attributes[i];
    if (strcmp(attributes[i].name.text, name) != 0) continue;
    attributes[i].names = names;
    attributes[i].n_names = 1;
  }
  return attributes;
}

/* Along another axis; to another class; the gradient of another parameter of the same shape. False: there is none. */
static bool misplace(const pl_ir_module *module, pl_ir_function *function, int32_t at, pl_arena *arena) {
  pl_ir_op *op = &function->ops[at];
  pl_ir_name *other = PL_TAKE(arena, pl_ir_name, 1);
  if (is(op, "accumulate")) {
    const pl_ir_type *type = &function->values[op->inputs[0]].type;
    for (int32_t i = 0; i < function->n_ops; i++) {
      const pl_ir_op *second = &function->ops[i];
      if (i == at || !is(second, "accumulate")) continue;
      if (!pl_ir_type_equal(type, &function->values[second->inputs[0]].type)) continue;
      op->path = second->path;
      return true;
    }
    return false;
  }
  if (pl_ir_row_at(op->row)->effect == PL_IR_COLLECTIVE) {
    for (int32_t axis = 0; axis < module->mesh.n_axes; axis++) {
      if (pl_ir_op_has_name(op, "over", module->mesh.axes[axis].name)) continue;
      *other = module->mesh.axes[axis].name;
      op->attributes = changed(op, "over", other, arena);
      return true;
    }
    return false;
  }
  if (!is(op, "send") || module->n_classes < 2) return false;
  const pl_ir_attribute *to = pl_ir_attribute_find(op, "to");
  *other = pl_ir_name_of(module->classes[strcmp(to->names[0].text, module->classes[0].name) == 0].name);
  op->attributes = changed(op, "to", other, arena);
  return true;
}

/* ---- trials ---- */

static void judge(trial *own, const pl_ir_function *function, const pl_ir_op *op, mutation kind) {
  const pl_verify_options options = {.seed = 5, .iterations = 2};
  pl_verification v;
  pl_error error = PL_ERROR_INIT, wrong = PL_ERROR_INIT;
  own->tried[kind]++;
  if (pl_ir_check(&own->distributed, &error) != PL_OK) {
    own->checked[kind]++;
  } else if (pl_verify(&own->plain, &own->distributed, &options, &own->arena, &v, &wrong) != PL_OK ||
             !pl_verification_holds(&v, &options)) {
    own->verified[kind]++;
  } else {
    printf("  not found: %s of @%s %s\n", row_name(op), function->name, mutation_names[kind]);
  }
}

static void mutate(trial *own, int32_t f, int32_t at) {
  pl_ir_function *original = own->distributed.functions[f];
  for (int kind = 0; kind < N_MUTATIONS; kind++) {
    pl_arena_mark mark = pl_arena_mark_here(&own->arena);
    pl_ir_function *mutant = copied(original, &own->arena);
    const pl_ir_op op = mutant->ops[at];
    bool made = true;
    if (kind == LEAVE_OUT) leave_out(mutant, at);
    if (kind == DOUBLE) apply_twice(mutant, at, &own->arena);
    if (kind == MISPLACE) made = misplace(&own->distributed, mutant, at, &own->arena);
    own->distributed.functions[f] = mutant;
    if (made) judge(own, original, &op, (mutation)kind);
    own->distributed.functions[f] = original;
    pl_arena_release_to(&own->arena, mark);
  }
}

static void take_programs(trial *own, const char *text, const char *strategy_text) {
  pl_model model;
  pl_job job = {.gbs = 4, .seq = 8, .dtype = PL_DTYPE_FP32, .flash = true};
  pl_strategy strategy;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_model_parse("tiny", text, strlen(text), &own->arena, &model, &error), PL_OK);
  assert_int_equal(pl_strategy_parse(strategy_text, &model, &own->arena, &strategy, &error), PL_OK);
  pl_strategy_adopt(&strategy, &job);
  assert_int_equal(pl_strategy_assign(&strategy, &model, &job, NULL, &own->arena, &error), PL_OK);
  assert_int_equal(pl_program_of(&model, &job, NULL, PL_IR_TRAINING, &own->arena, &own->plain, &error), PL_OK);
  assert_int_equal(pl_program_of(&model, &job, &strategy, PL_IR_DISTRIBUTED, &own->arena, &own->distributed, &error),
                   PL_OK);
  if (pl_ir_check(&own->distributed, &error) != PL_OK) fail_msg("%s: %s", strategy_text, error.message);
}

static void every_mutation_is_found(void **state) {
  (void)state;
  int32_t tried = 0, found = 0;
  for (int i = 0; i < N_RECIPES; i++) {
    trial own = {0};
    pl_arena_init(&own.arena, 0);
    take_programs(&own, recipes[i][0], recipes[i][1]);
    for (int32_t f = 0; f < own.distributed.n_functions; f++)
      for (int32_t at = 0; at < own.distributed.functions[f]->n_ops; at++)
        if (is_subject(&own.distributed.functions[f]->ops[at])) mutate(&own, f, at);
    printf("%s:\n", recipes[i][1]);
    for (int kind = 0; kind < N_MUTATIONS; kind++) {
      printf("  %-9s tried %3d, found by check %3d, by verify %3d\n", mutation_names[kind], own.tried[kind],
             own.checked[kind], own.verified[kind]);
      tried += own.tried[kind];
      found += own.checked[kind] + own.verified[kind];
    }
    pl_arena_release(&own.arena);
  }
  printf("%d of %d found\n", found, tried);
  assert_true(tried > 500);
  assert_int_equal(found, tried);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_mutation_is_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
