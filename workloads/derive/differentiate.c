/* See workloads/derive/differentiate.h. */
#include "workloads/derive/differentiate.h"

#include <string.h>

#include "core/base/digest.h"
#include "core/base/hash_index.h"
#include "workloads/derive/backward.h"
#include "workloads/language/ir_piece.h"

pl_differentiate_options pl_differentiate_defaults(void) {
  return (pl_differentiate_options){.rate = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
}

static pl_backward_rows find_rows(void) {
  return (pl_backward_rows){.param = pl_ir_row_of("param"),
                            .input = pl_ir_row_of("input"),
                            .constant = pl_ir_row_of("constant"),
                            .rename = pl_ir_row_of("rename"),
                            .keep = pl_ir_row_of("keep"),
                            .kept = pl_ir_row_of("kept"),
                            .call = pl_ir_row_of("call"),
                            .accumulate = pl_ir_row_of("accumulate"),
                            .loss = pl_ir_row_of("loss"),
                            .dropout = pl_ir_row_of("dropout"),
                            .maximum = pl_ir_row_of("maximum")};
}

static pl_code check_model(const pl_ir_module *model, pl_error *error) {
  if (model->level != PL_IR_MODEL)
    return pl_fail(error, PL_BAD_INPUT, "%s is a program of level %s: derivatives are made of level model", model->name,
                   pl_ir_level_names[model->level]);
  if (model->n_classes != 1 || model->classes[0].n_chunks != 1 || model->classes[0].chunks[0].forward == PL_IR_NONE)
    return pl_fail(error, PL_BAD_INPUT, "%s: a program of level model has one class with one chunk and its forward",
                   model->name);
  return PL_OK;
}

/* What a function keeps is found by instance and piece: two calls as one instance would keep in one place. */
static pl_code check_instances(const pl_backward_pass *pass, const pl_ir_function *function, pl_error *error) {
  pl_hash_index calls = {0};
  for (int32_t i = 0; i < function->n_ops; i++) {
    const pl_ir_op *op = &function->ops[i], *other;
    if (op->row != pass->rows.call) continue;
    const char *instance = op->path != NULL ? op->path : "";
    uint64_t hash = pl_hash_word(pl_hash_bytes(instance, strlen(instance), 0), (uint64_t)op->callee);
    int64_t piece = pl_ir_integer_of(op, PL_IR_PIECE, 0);
    hash = pl_hash_word(hash, (uint64_t)piece);
    uint32_t probe = 0;
    while ((other = (const pl_ir_op *)pl_hash_index_find(&calls, hash, &probe)) != NULL)
      if (other->callee == op->callee && pl_ir_integer_of(other, PL_IR_PIECE, 0) == piece &&
          strcmp(other->path != NULL ? other->path : "", instance) == 0)
        return pl_fail(error, PL_UNSUPPORTED,
                       "@%s calls @%s twice as \"%s\": what it keeps for its backward function would be in one place; "
                       "each call needs an instance of its own, or to be a piece (piece=, pieces=)",
                       function->name, pass->model->functions[op->callee]->name, instance);
    if (!pl_hash_index_put(&calls, hash, op, pass->training->arena)) return pl_fail_memory(error, "a training program");
  }
  return PL_OK;
}

static pl_code check_options(const pl_ir_module *model, const pl_differentiate_options *options, pl_error *error) {
  for (int32_t i = 0; i < options->n_choices; i++)
    if (pl_ir_function_find(model, options->choices[i].function) == PL_IR_NONE)
      return pl_fail(error, PL_BAD_INPUT, "recomputation of @%s: %s has no such function", options->choices[i].function,
                     model->name);
  for (const char *const *row = options->selected; row != NULL && *row != NULL; row++)
    if (pl_ir_row_find(*row) < 0)
      return pl_fail(error, PL_BAD_INPUT, "selective recomputation of '%s': there is no such op", *row);
  return PL_OK;
}

/* Functions that are called without an instance, and what is chosen for each. */
static void note_functions(pl_backward_pass *pass) {
  const pl_ir_module *model = pass->model;
  for (int32_t i = 0; i < model->n_functions; i++) {
    pl_derived *derived = &pass->derived[i];
    derived->forward = derived->backward = derived->weights = PL_IR_NONE;
    for (int32_t k = 0; k < pass->options->n_choices; k++)
      if (strcmp(pass->options->choices[k].function, model->functions[i]->name) == 0) {
        derived->recompute = pass->options->choices[k].recompute;
        derived->ops = pass->options->choices[k].ops;
      }
    for (int32_t k = 0; k < model->functions[i]->n_ops; k++) {
      const pl_ir_op *op = &model->functions[i]->ops[k];
      if (op->row == pass->rows.call && (op->path == NULL || op->path[0] == '\0'))
        pass->derived[op->callee].is_bare = true;
    }
  }
}

static pl_code differ_function(pl_backward_pass *pass, int32_t of, pl_error *error) {
  pl_draft draft = {.pass = pass, .of = of};
  if (pl_ir_function_add(pass->training, pass->model->functions[of]->name) == NULL)
    return pl_fail_memory(error, "a training program");
  pass->derived[of].forward = pass->training->n_functions - 1;
  PL_TRY(pl_backward_derive(&draft, error));
  return pl_backward_write(&draft, error);
}

/* F, B and, where it is split, W of each microbatch in turn. */
static pl_code write_class(const pl_backward_pass *pass, int32_t main, int32_t update, pl_error *error) {
  pl_ir_module *training = pass->training;
  const pl_derived *derived = &pass->derived[main];
  int32_t n = training->n_microbatches, kinds = 1;
  pl_ir_step_kind order[3] = {PL_IR_STEP_F};
  if (derived->backward != PL_IR_NONE) order[kinds++] = PL_IR_STEP_B;
  if (derived->weights != PL_IR_NONE) order[kinds++] = PL_IR_STEP_W;
  pl_ir_class *made = PL_TAKE(training->arena, pl_ir_class, 1);
  pl_ir_chunk *chunk = PL_TAKE(training->arena, pl_ir_chunk, 1);
  pl_ir_step *steps = PL_TAKE(training->arena, pl_ir_step, kinds * n);
  if (made == NULL || chunk == NULL || steps == NULL) return pl_fail_memory(error, "a training program");
  *chunk = (pl_ir_chunk){.forward = derived->forward, .backward = derived->backward, .weights = derived->weights};
  for (int32_t i = 0; i < kinds * n; i++)
    steps[i] = (pl_ir_step){.kind = (uint8_t)order[i % kinds], .microbatch = i / kinds};
  *made = pass->model->classes[0];
  made->name = pl_arena_strdup(training->arena, made->name);
  made->chunks = chunk;
  made->steps = steps;
  made->n_steps = kinds * n;
  made->update = update;
  training->classes = made;
  training->n_classes = 1;
  return made->name != NULL ? PL_OK : pl_fail_memory(error, "a training program");
}

/* Their functions, one after another: callees stand before callers. */
static pl_code differ_functions(pl_backward_pass *pass, int32_t n_functions, pl_error *error) {
  if (pass->derived == NULL) return pl_fail_memory(error, "a training program");
  note_functions(pass);
  for (int32_t i = 0; i < n_functions; i++) {
    PL_TRY(check_instances(pass, pass->model->functions[i], error));
    PL_TRY(differ_function(pass, i, error));
  }
  return PL_OK;
}

pl_code pl_ir_differentiate(const pl_ir_module *model, const pl_differentiate_options *options, pl_arena *arena,
                            pl_ir_module *training, pl_error *error) {
  PL_TRY(check_model(model, error));
  PL_TRY(check_options(model, options, error));
  pl_ir_module_init(training, arena, model->name, PL_IR_TRAINING);
  training->n_microbatches = model->n_microbatches;
  pl_backward_pass pass = {.model = model,
                           .training = training,
                           .options = options,
                           .rows = find_rows(),
                           .derived = PL_TAKE(arena, pl_derived, model->n_functions)};
  PL_TRY(differ_functions(&pass, model->n_functions, error));
  int32_t main = model->classes[0].chunks[0].forward, update;
  PL_TRY(pl_optimizer_write(&pass, main, &update, error));
  return write_class(&pass, main, update, error);
}

pl_code pl_ir_differentiate_function(const pl_ir_module *model, int32_t function,
                                     const pl_differentiate_options *options, pl_arena *arena, pl_ir_module *training,
                                     int32_t *forward, int32_t *backward, pl_error *error) {
  pl_ir_module_init(training, arena, model->name, PL_IR_TRAINING);
  training->n_microbatches = model->n_microbatches;
  pl_backward_pass pass = {.model = model,
                           .training = training,
                           .options = options,
                           .rows = find_rows(),
                           .derived = PL_TAKE(arena, pl_derived, model->n_functions)};
  PL_TRY(differ_functions(&pass, function + 1, error));
  *forward = pass.derived[function].forward;
  *backward = pass.derived[function].backward;
  return PL_OK;
}
