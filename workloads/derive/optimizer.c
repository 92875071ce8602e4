/* Optimizer steps: @f.update for every function with parameters, and @update, which calls them by instance. A parameter
 * that several functions read is updated by the first of them. */
#include <string.h>

#include "workloads/derive/backward.h"
#include "workloads/language/ir_parameters.h"

enum { ATTRIBUTES_MAX = 4 };

static int32_t typed(const pl_backward_pass *pass, pl_ir_function *to, const char *row, const char *name,
                     const char *path, const pl_ir_type *type, const char *slot) {
  const pl_ir_attribute attribute = pl_ir_text("slot", slot != NULL ? slot : "");
  return pl_ir_op_typed(pass->training, to, row, name, path, 0, NULL, type, slot != NULL ? 1 : 0, &attribute);
}

static void store(const pl_backward_pass *pass, pl_ir_function *to, const char *path, int32_t value, const char *slot) {
  const pl_ir_attribute attribute = pl_ir_text("slot", slot != NULL ? slot : "");
  pl_ir_op_typed(pass->training, to, "store", NULL, path, 1, &value, NULL, slot != NULL ? 1 : 0, &attribute);
}

static int32_t step(const pl_backward_pass *pass, pl_ir_function *to, int32_t n_inputs, const int32_t *inputs) {
  const pl_differentiate_options *options = pass->options;
  const pl_ir_attribute attributes[ATTRIBUTES_MAX] = {
      pl_ir_real("rate", options->rate), pl_ir_real("beta1", options->beta1), pl_ir_real("beta2", options->beta2),
      pl_ir_real("epsilon", options->epsilon)};
  return pl_ir_op_infer(pass->training, to, options->sgd ? "sgd" : "adam", "new", n_inputs, inputs,
                        options->sgd ? 1 : ATTRIBUTES_MAX, attributes);
}

static void write_step(const pl_backward_pass *pass, pl_ir_function *to, const pl_ir_op *param,
                       const pl_ir_type *type) {
  const char *path = param->path;
  pl_ir_type state = *type;
  state.element = PL_IR_F32;
  int32_t inputs[] = {typed(pass, to, "param", path, path, type, NULL),
                      typed(pass, to, "gradient", "gradient", path, type, NULL), PL_IR_NONE, PL_IR_NONE};
  if (!pass->options->sgd) {
    inputs[2] = typed(pass, to, "state", "m", path, &state, "m");
    inputs[3] = typed(pass, to, "state", "v", path, &state, "v");
  }
  int32_t made = step(pass, to, pass->options->sgd ? 2 : 4, inputs);
  if (made == PL_IR_NONE) return;
  store(pass, to, path, made, NULL);
  if (pass->options->sgd) return;
  store(pass, to, path, made + 1, "m");
  store(pass, to, path, made + 2, "v");
}

/* Parameters that function `of` owns under its first instance in the list; others of its instances own the same. */
static pl_code write_function(const pl_backward_pass *pass, const pl_ir_parameter_list *list, int32_t of,
                              int32_t *update, pl_error *error) {
  const pl_ir_function *function = pass->model->functions[of];
  const char *instance = NULL, *name = pl_arena_printf(pass->training->arena, "%s.update", function->name);
  int32_t n = 0, n_others = 0;
  pl_ir_function *to = NULL;
  for (int32_t i = 0; i < list->n; i++) {
    const pl_ir_parameter *parameter = &list->items[i];
    if (parameter->function != of) continue;
    if (instance == NULL) {
      instance = parameter->instance;
      to = name != NULL ? pl_ir_function_add(pass->training, name) : NULL;
      if (to == NULL) return pl_fail_memory(error, "an optimizer step");
      *update = pass->training->n_functions - 1;
    }
    const pl_ir_op *op = &function->ops[parameter->op];
    if (strcmp(instance, parameter->instance) == 0) {
      write_step(pass, to, op, &function->values[op->first_output].type);
      n++;
    } else {
      n_others++;
    }
  }
  if (n == 0 || n_others % n == 0) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED,
                 "instances of @%s share some parameters with other functions and some do not: they need functions of "
                 "their own",
                 function->name);
}

pl_code pl_optimizer_write(const pl_backward_pass *pass, int32_t main, int32_t *update, pl_error *error) {
  pl_ir_module *training = pass->training;
  pl_ir_parameter_list list;
  PL_TRY(pl_ir_parameters_of(pass->model, main, training->arena, &list, error));
  int32_t *updates = PL_TAKE(training->arena, int32_t, pass->model->n_functions);
  if (updates == NULL) return pl_fail_memory(error, "optimizer steps");
  for (int32_t i = 0; i <= main; i++) {
    updates[i] = PL_IR_NONE;
    PL_TRY(write_function(pass, &list, i, &updates[i], error));
  }
  pl_ir_function *to = pl_ir_function_add(training, "update");
  if (to == NULL) return pl_fail_memory(error, "optimizer steps");
  *update = training->n_functions - 1;
  for (int32_t i = 0; i < list.n; i++) {
    const pl_ir_parameter *is = &list.items[i], *before = i > 0 ? is - 1 : NULL;
    if (before != NULL && before->function == is->function && strcmp(before->instance, is->instance) == 0) continue;
    pl_ir_op_add(training, to,
                 &(pl_ir_making){.row = pass->rows.call, .path = is->instance, .callee = updates[is->function]});
  }
  return training->arena->failed ? pl_fail_memory(error, "optimizer steps") : PL_OK;
}
