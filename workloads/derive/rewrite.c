/* See workloads/derive/rewrite.h. */
#include "workloads/derive/rewrite.h"

enum { OPERANDS_MAX = 64 };

static void copy_op(pl_rewriting *own, const pl_ir_op *op) {
  int32_t inputs[OPERANDS_MAX];
  const char *names[OPERANDS_MAX];
  pl_ir_type types[OPERANDS_MAX];
  for (int32_t i = 0; i < op->n_inputs; i++)
    inputs[i] = own->made[op->inputs[i]];
  pl_ir_making making = pl_ir_making_like(own->from, op, names, types);
  making.inputs = inputs;
  int32_t first = pl_ir_op_add(own->module, own->to, &making);
  for (int32_t i = 0; i < op->n_outputs; i++)
    own->made[op->first_output + i] = first + i;
}

pl_code pl_rewrite_function(pl_ir_module *module, int32_t function, const pl_rewrite_rule *rule, const int32_t **of,
                            pl_error *error) {
  pl_rewriting own = {.module = module, .from = module->functions[function]};
  bool any = false;
  *of = NULL;
  for (int32_t i = 0; i < own.from->n_ops; i++)
    any = any || rule->chooses(rule->context, own.from, i);
  if (!any) return PL_OK;
  own.to = PL_TAKE(module->arena, pl_ir_function, 1);
  own.made = PL_TAKE(module->arena, int32_t, own.from->n_values + 1);
  int32_t *results = PL_TAKE(module->arena, int32_t, own.from->n_results + 1), *from = NULL;
  uint32_t room = 0;
  if (own.to == NULL || own.made == NULL || results == NULL) return pl_fail_memory(error, "a program");
  own.to->name = own.from->name;
  own.to->place = own.from->place;
  for (int32_t i = 0; i < own.from->n_arguments; i++)
    own.made[i] = pl_ir_argument(module, own.to, own.from->values[i].name, &own.from->values[i].type);
  for (int32_t i = 0, n = 0; i < own.from->n_ops; i++) {
    PL_ASSERT(own.from->ops[i].n_inputs <= OPERANDS_MAX && own.from->ops[i].n_outputs <= OPERANDS_MAX);
    if (rule->chooses(rule->context, own.from, i))
      rule->write(rule->context, &own, &own.from->ops[i]);
    else
      copy_op(&own, &own.from->ops[i]);
    from =
        (int32_t *)pl_arena_grown(module->arena, from, (uint32_t)n, (uint32_t)(own.to->n_ops - n), sizeof *from, &room);
    if (from == NULL || module->arena->failed) return pl_fail_memory(error, "a program");
    while (n < own.to->n_ops)
      from[n++] = i;
  }
  for (int32_t i = 0; i < own.from->n_results; i++)
    results[i] = own.made[own.from->results[i]];
  pl_ir_results_set(module, own.to, own.from->n_results, results);
  module->functions[function] = own.to;
  *of = from;
  return module->arena->failed ? pl_fail_memory(error, "a program") : PL_OK;
}
