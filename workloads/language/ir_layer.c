/* See workloads/language/ir_layer.h. */
#include "workloads/language/ir_layer.h"

#include "workloads/language/ir_table.h"

enum { DEPTH_MAX = 8 }; /* of calls and kernels inside of it */

/* Of a value: what is handed in; or made of it. */
typedef enum relation { NONE = 0, MADE_OF, STREAM } relation;

static bool is_of_tokens(const pl_ir_type *type) {
  return pl_ir_type_find(type, pl_ir_name_of("b")) >= 0 && pl_ir_type_find(type, pl_ir_name_of("h")) >= 0;
}

/* The same tokens, in another type or layout. */
static bool is_passed_on(const pl_ir_op *op) {
  return op->n_inputs == 1 && (pl_ir_row_at(op->row)->effect == PL_IR_COLLECTIVE || pl_ir_op_is(op, "cast") ||
                               pl_ir_op_is(op, "copy") || pl_ir_op_is(op, "rename"));
}

/* True: there is such a sum. Else the relation of each result, in order, in `results`. */
static bool sums(const pl_ir_module *module, const pl_ir_function *f, const uint8_t *arguments, uint8_t *results,
                 int depth, pl_arena *scratch) {
  uint8_t *to = PL_TAKE(scratch, uint8_t, f->n_values + 1);
  if (to == NULL || depth > DEPTH_MAX) return false;
  for (int32_t i = 0; i < f->n_arguments; i++)
    to[i] = arguments[i];
  for (int32_t i = 0; i < f->n_ops; i++) {
    const pl_ir_op *op = &f->ops[i];
    uint8_t operands[PL_IR_OPERANDS_MAX] = {NONE}, made[PL_IR_OPERANDS_MAX] = {NONE};
    bool any = false, stream = false, both = op->n_inputs == 2;
    for (int32_t k = 0; k < op->n_inputs; k++) {
      operands[k] = to[op->inputs[k]];
      any |= operands[k] != NONE;
      stream |= operands[k] == STREAM;
      both &= operands[k] != NONE;
    }
    if (both && stream && op->inputs[0] != op->inputs[1] && pl_ir_op_is(op, "add")) return true;
    if (any && op->callee != PL_IR_NONE &&
        sums(module, module->functions[op->callee], operands, made, depth + 1, scratch))
      return true;
    for (int32_t k = 0; k < op->n_outputs; k++)
      to[op->first_output + k] = op->callee != PL_IR_NONE ? made[k]
                                 : is_passed_on(op)       ? operands[0]
                                 : any                    ? MADE_OF
                                                          : NONE;
  }
  for (int32_t i = 0; i < f->n_results; i++)
    results[i] = to[f->results[i]];
  return false;
}

bool pl_ir_is_layer(const pl_ir_module *module, const pl_ir_function *function, pl_arena *scratch) {
  uint8_t results[PL_IR_OPERANDS_MAX], arguments[PL_IR_OPERANDS_MAX];
  bool any = false;
  if (function->n_arguments > PL_IR_OPERANDS_MAX || function->n_results > PL_IR_OPERANDS_MAX) return false;
  for (int32_t i = 0; i < function->n_arguments; i++) {
    arguments[i] = is_of_tokens(&function->values[i].type) ? STREAM : NONE;
    any |= arguments[i] != NONE;
  }
  if (!any || function->n_results == 0) return false;
  pl_arena_mark mark = pl_arena_mark_here(scratch);
  bool is_layer = sums(module, function, arguments, results, 0, scratch);
  pl_arena_release_to(scratch, mark);
  return is_layer;
}

bool pl_ir_has_experts(const pl_ir_function *function) {
  const pl_ir_name experts = pl_ir_name_of("x");
  for (int32_t i = 0; i < function->n_values; i++) {
    const pl_ir_type *type = &function->values[i].type;
    if (pl_ir_type_find(type, experts) >= 0 && is_of_tokens(type)) return true;
  }
  return false;
}

/* Nothing of a pass that is made again reads it, but something does. */
static bool is_for_gradients(const pl_ir_function *f, const bool *again, int32_t value) {
  bool read = false;
  for (int32_t i = f->values[value].op + 1; i < f->n_ops; i++)
    for (int32_t k = 0; k < f->ops[i].n_inputs; k++) {
      if (f->ops[i].inputs[k] != value) continue;
      if (again[i]) return false;
      read = true;
    }
  return read;
}

bool pl_ir_is_of_split(const pl_ir_module *kernels, const pl_ir_function *f, const bool *again, const pl_ir_op *op) {
  int32_t maker = op->n_inputs > 0 ? f->values[op->inputs[0]].op : PL_IR_NONE;
  if (maker == PL_IR_NONE) return false;
  if (pl_ir_op_is(op, "all_gather"))
    return (pl_ir_op_is(&f->ops[maker], "kept") || again[maker]) && is_for_gradients(f, again, op->first_output);
  if (again[op - f->ops] || (!pl_ir_op_is(op, "reduce_scatter") && !pl_ir_op_is(op, "all_reduce"))) return false;
  const pl_ir_launched_ops of = pl_ir_launched_by(kernels, f, &f->ops[maker]);
  bool products = !again[maker];
  for (int32_t i = 0; i < of.n; i++)
    products = products && (pl_ir_op_is(&of.ops[i], "product") || pl_ir_op_is(&of.ops[i], "add"));
  return products && pl_ir_op_is(&of.ops[0], "product");
}
