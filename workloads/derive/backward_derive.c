/* The backward function of one function: rows' derivatives in reverse order. See workloads/derive/backward.h. */
#include <string.h>

#include "workloads/derive/backward.h"

enum { OPERANDS_MAX = 64 };

static bool is_number(const pl_ir_type *type) {
  return pl_ir_element_is_number((pl_ir_element)type->element);
}

static const char *gradient_name(const pl_draft *draft, const char *name) {
  const char *made = pl_arena_printf(draft->pass->training->arena, "d%s", name);
  return made != NULL ? made : name;
}

/* One argument per result that a gradient can come back for; of a value that is handed back twice they add up. */
static void begin(pl_draft *draft) {
  const pl_ir_function *forward = draft->differ.forward;
  for (int32_t i = 0; i < forward->n_results; i++) {
    const pl_ir_value *result = &forward->values[forward->results[i]];
    if (is_number(&result->type))
      pl_ir_argument(draft->pass->training, &draft->function, gradient_name(draft, result->name), &result->type);
  }
  draft->pass->derived[draft->of].has_arguments = draft->function.n_arguments > 0;
  for (int32_t i = 0, argument = 0; i < forward->n_results; i++) {
    if (!is_number(&forward->values[forward->results[i]].type)) continue;
    int32_t *gradient = &draft->differ.gradients[forward->results[i]], own = argument++;
    const int32_t terms[] = {*gradient, own};
    *gradient = *gradient == PL_IR_NONE
                    ? own
                    : pl_ir_op_infer(draft->pass->training, &draft->function, "add", "dsum", 2, terms, 0, NULL);
  }
}

static int32_t constant(pl_draft *draft, const char *name, double value, const pl_ir_type *type) {
  const pl_ir_attribute attribute = pl_ir_real("value", value);
  return pl_ir_op_typed(draft->pass->training, &draft->function, "constant", name, NULL, 0, NULL, type, 1, &attribute);
}

static void accumulate(pl_draft *draft, const pl_ir_op *param) {
  int32_t gradient = pl_ir_differ_gradient(&draft->differ, param, 0);
  pl_ir_op_typed(draft->pass->training, &draft->function, "accumulate", NULL, param->path, 1, &gradient, NULL, 0, NULL);
}

/* ---- calls ---- */

/* Arguments of the callee's backward function: a gradient that nothing has come for is zero. */
static int32_t call_inputs(pl_draft *draft, const pl_ir_op *op, int32_t inputs[OPERANDS_MAX]) {
  int32_t n = 0;
  for (int32_t i = 0; i < op->n_outputs; i++) {
    const pl_ir_type *type = &draft->differ.forward->values[op->first_output + i].type;
    if (!is_number(type)) continue;
    int32_t dy = pl_ir_differ_gradient(&draft->differ, op, i);
    PL_ASSERT(n < OPERANDS_MAX);
    inputs[n++] = dy != PL_IR_NONE ? dy : constant(draft, "zero", 0, type);
  }
  return n;
}

static bool has_gradient(const pl_draft *draft, const pl_ir_op *op) {
  for (int32_t i = 0; i < op->n_outputs; i++)
    if (pl_ir_differ_gradient(&draft->differ, op, i) != PL_IR_NONE) return true;
  return false;
}

static void derive_call(pl_draft *draft, const pl_ir_op *op) {
  const pl_derived *callee = &draft->pass->derived[op->callee];
  pl_ir_module *training = draft->pass->training;
  if (callee->backward == PL_IR_NONE) return;
  const pl_ir_function *called = training->functions[callee->backward];
  int32_t inputs[OPERANDS_MAX], n = call_inputs(draft, op, inputs);
  const char *names[OPERANDS_MAX];
  pl_ir_type types[OPERANDS_MAX];
  PL_ASSERT(called->n_results <= OPERANDS_MAX && n == called->n_arguments);
  for (int32_t i = 0; i < called->n_results; i++) {
    names[i] = called->values[called->results[i]].name;
    types[i] = called->values[called->results[i]].type;
  }
  int32_t made = pl_ir_op_add(training, &draft->function,
                              &(pl_ir_making){.row = op->row,
                                              .n_inputs = n,
                                              .inputs = inputs,
                                              .n_outputs = called->n_results,
                                              .output_names = names,
                                              .output_types = types,
                                              .n_attributes = op->n_attributes,
                                              .attributes = op->attributes,
                                              .path = op->path != NULL ? op->path : "",
                                              .callee = callee->backward});
  for (int32_t k = 0, given = 0; made != PL_IR_NONE && k < op->n_inputs; k++)
    if (callee->gives[k]) pl_ir_differ_give(&draft->differ, op, k, made + given++);
}

/* ---- the walk ---- */

static pl_code derive_op(pl_draft *draft, const pl_ir_op *op, pl_error *error) {
  const pl_backward_rows *rows = &draft->pass->rows;
  if (op->row == rows->loss) {
    const pl_ir_type *type = &draft->differ.forward->values[op->inputs[0]].type;
    pl_ir_differ_give(&draft->differ, op, 0, constant(draft, "one", 1, type));
    return PL_OK;
  }
  if (op->row == rows->call) {
    if (has_gradient(draft, op) || draft->pass->derived[op->callee].has_loss) derive_call(draft, op);
    return PL_OK;
  }
  if (!has_gradient(draft, op)) return PL_OK;
  if (op->row == rows->param) {
    accumulate(draft, op);
    return PL_OK;
  }
  const pl_ir_row *row = pl_ir_row_at(op->row);
  if (row->derive != NULL) return row->derive(&draft->differ, op, error);
  if (row->effect != PL_IR_PURE || op->row == rows->maximum || op->row == rows->constant) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%%%s of @%s: a gradient comes back to it, but %s has no derivative",
                 draft->differ.forward->values[op->first_output].name, draft->differ.forward->name, row->name);
}

/* The ops from `before` on were derived from `op`, but for those that make forward values again. */
static void note_origin(pl_draft *draft, const pl_ir_op *op, int32_t before) {
  const pl_ir_function *forward = draft->differ.forward;
  for (int32_t i = before; i < draft->function.n_ops; i++) {
    int32_t again = i < draft->room ? draft->again[i] : PL_IR_NONE;
    const pl_ir_op *of = again >= 0 ? &forward->ops[again] : op;
    if (of->n_outputs > 0 && again != PL_DRAFT_ARGUMENT)
      draft->function.ops[i].origin = forward->values[of->first_output].name;
  }
}

/* Gradients of the arguments, of those that there are. */
static pl_code finish(pl_draft *draft, pl_error *error) {
  const pl_ir_function *forward = draft->differ.forward;
  pl_derived *derived = &draft->pass->derived[draft->of];
  draft->results = PL_TAKE(draft->pass->training->arena, int32_t, forward->n_arguments + 1);
  derived->gives = PL_TAKE(draft->pass->training->arena, bool, forward->n_arguments + 1);
  if (draft->results == NULL || derived->gives == NULL) return pl_fail_memory(error, "a backward function");
  for (int32_t i = 0; i < forward->n_arguments; i++) {
    derived->gives[i] = is_number(&forward->values[i].type) && draft->differ.gradients[i] != PL_IR_NONE;
    if (derived->gives[i]) draft->results[draft->n_results++] = draft->differ.gradients[i];
  }
  return draft->pass->training->arena->failed ? pl_fail_memory(error, "a backward function") : PL_OK;
}

static bool ops_have_loss(const pl_backward_pass *pass, const pl_ir_function *function) {
  for (int32_t i = 0; i < function->n_ops; i++) {
    const pl_ir_op *op = &function->ops[i];
    if (op->row == pass->rows.loss || (op->row == pass->rows.call && pass->derived[op->callee].has_loss)) return true;
  }
  return false;
}

pl_code pl_backward_derive(pl_draft *draft, pl_error *error) {
  pl_backward_pass *pass = draft->pass;
  const pl_ir_function *forward = pass->model->functions[draft->of];
  pl_arena *arena = pass->training->arena;
  int32_t *gradients = PL_TAKE(arena, int32_t, forward->n_values + 1);
  int32_t *seen = PL_TAKE(arena, int32_t, forward->n_values + 1);
  if (gradients == NULL || seen == NULL) return pl_fail_memory(error, "a backward function");
  for (int32_t i = 0; i < forward->n_values; i++)
    gradients[i] = seen[i] = PL_IR_NONE;
  draft->differ = (pl_ir_differ){.module = pass->training,
                                 .forward = forward,
                                 .backward = &draft->function,
                                 .gradients = gradients,
                                 .seen = seen,
                                 .see = pl_recompute_see,
                                 .context = draft};
  pass->derived[draft->of].has_loss = ops_have_loss(pass, forward);
  PL_TRY(pl_recompute_decide(draft, error));
  draft->deriving = PL_IR_NONE;
  begin(draft);
  for (int32_t i = forward->n_ops; i-- > 0 && !arena->failed;) {
    int32_t before = draft->function.n_ops;
    draft->deriving = i;
    if (has_gradient(draft, &forward->ops[i]) && !pl_recompute_part(draft, i))
      return pl_fail_memory(error, "a backward function");
    PL_TRY(derive_op(draft, &forward->ops[i], error));
    note_origin(draft, &forward->ops[i], before);
  }
  int32_t before = draft->function.n_ops;
  draft->deriving = PL_IR_NONE;
  if (!pl_recompute_rest(draft)) return pl_fail_memory(error, "a backward function");
  if (forward->n_ops > 0) note_origin(draft, &forward->ops[forward->n_ops - 1], before);
  return finish(draft, error);
}
