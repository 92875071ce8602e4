/* See workloads/language/ir_again.h. */
#include "workloads/language/ir_again.h"

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
  return again;
}

const bool *pl_ir_again_take_if_derived(const pl_ir_function *function, pl_arena *arena) {
  for (int32_t i = 0; i < function->n_ops; i++)
    if (function->ops[i].origin != NULL) return pl_ir_again_take(function, arena);
  return PL_TAKE(arena, bool, function->n_ops + 1);
}
