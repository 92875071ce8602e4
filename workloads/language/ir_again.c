/* See workloads/language/ir_again.h. */
#include "workloads/language/ir_again.h"

#include <string.h>

#include "workloads/language/ir_table.h"

static bool is_narrow_cast(const pl_ir_function *function, const pl_ir_op *op) {
  return pl_ir_op_is(op, "cast") &&
         pl_ir_element_is_narrow((pl_ir_element)function->values[op->first_output].type.element);
}

/* Casts of forward values for products of gradients alone are theirs. In reverse: readers stand behind what they read,
 * and a cast among them counts as it was. */
static bool leave_casts(const pl_ir_function *function, pl_arena *arena, bool *again) {
  bool *reads_again = PL_TAKE(arena, bool, function->n_values + 1); /* something that is made again reads the value */
  if (reads_again == NULL) return false;
  for (int32_t i = function->n_ops; i-- > 0;) {
    const pl_ir_op *op = &function->ops[i];
    for (int32_t k = 0; again[i] && k < op->n_inputs; k++)
      reads_again[op->inputs[k]] = true;
    if (again[i] && is_narrow_cast(function, op)) again[i] = reads_again[op->first_output];
  }
  return true;
}

const bool *pl_ir_again_take(const pl_ir_function *function, pl_arena *arena) {
  bool *again = PL_TAKE(arena, bool, function->n_ops + 1);
  bool *of_gradients = PL_TAKE(arena, bool, function->n_values + 1);
  if (again == NULL || of_gradients == NULL) return NULL;
  for (int32_t i = 0; i < function->n_arguments; i++)
    of_gradients[i] = true;
  for (int32_t i = 0; i < function->n_ops; i++) {
    const pl_ir_op *op = &function->ops[i];
    bool reads = function->n_arguments == 0 || op->n_inputs == 0;
    for (int32_t k = 0; k < op->n_inputs; k++)
      reads = reads || of_gradients[op->inputs[k]];
    again[i] = !reads;
    for (int32_t k = 0; k < op->n_outputs; k++)
      of_gradients[op->first_output + k] = reads && op->n_inputs > 0;
  }
  return leave_casts(function, arena, again) ? again : NULL;
}

bool pl_ir_is_derived(const pl_ir_function *function) {
  for (int32_t i = 0; i < function->n_ops; i++)
    if (pl_ir_op_is(&function->ops[i], "kept") || pl_ir_op_is(&function->ops[i], "accumulate")) return true;
  return false;
}

const bool *pl_ir_again_take_if_derived(const pl_ir_function *function, pl_arena *arena) {
  return pl_ir_is_derived(function) ? pl_ir_again_take(function, arena) : PL_TAKE(arena, bool, function->n_ops + 1);
}

const pl_ir_function *pl_ir_forward_of(const pl_ir_module *module, const char *name) {
  static const char *const ends[] = {".backward", ".weights"};
  for (size_t e = 0; e < sizeof ends / sizeof ends[0]; e++) {
    size_t length = strlen(name), end = strlen(ends[e]);
    if (length <= end || strcmp(name + length - end, ends[e]) != 0) continue;
    for (int32_t i = 0; i < module->n_functions; i++)
      if (strlen(module->functions[i]->name) == length - end &&
          strncmp(module->functions[i]->name, name, length - end) == 0)
        return module->functions[i];
  }
  return NULL;
}
