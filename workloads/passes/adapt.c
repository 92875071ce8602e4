/* See workloads/passes/adapt.h. */
#include "workloads/passes/adapt.h"

#include <stdio.h>
#include <string.h>

#include "workloads/language/ir_table.h"
#include "workloads/passes/adapting.h"

/* The dimension of `type` that an axis is taken for: the first that divides. */
static int32_t taken_for(const pl_layout_rules *rules, int32_t axis, const pl_ir_type *type, const int64_t *parts) {
  const pl_layout_use *use = &rules->on[axis];
  for (int32_t i = 0; i < use->n_dims; i++) {
    int32_t at = pl_ir_type_find(type, use->dims[i]);
    if (at >= 0 && type->dims[at].extent % (parts[at] * rules->mesh.axes[axis].extent) == 0) return at;
  }
  return -1;
}

int32_t pl_adapting_parts(const pl_layout_rules *rules, const pl_ir_type *type, pl_ir_name dim) {
  int64_t parts[PL_IR_RANK_MAX];
  for (int32_t i = 0; i < PL_IR_RANK_MAX; i++)
    parts[i] = 1;
  for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++) {
    if (rules->on[axis].role != PL_AXIS_DATA && rules->on[axis].role != PL_AXIS_CONTEXT) continue;
    int32_t at = taken_for(rules, axis, type, parts);
    if (at >= 0) parts[at] *= rules->mesh.axes[axis].extent;
  }
  return (int32_t)parts[pl_ir_type_find(type, dim)];
}

pl_ir_name pl_adapting_parts_name(pl_ir_name dim) {
  pl_ir_name made = {{0}}; /* names are compared whole */
  snprintf(made.text, sizeof made.text, "%.*s" PL_LAYOUT_PARTS, (int)(sizeof made.text - sizeof PL_LAYOUT_PARTS),
           dim.text);
  return made;
}

void pl_adapting_split_type(pl_ir_type *type, int32_t at, pl_ir_dim outer, pl_ir_dim inner) {
  for (int32_t i = type->rank++; i > at; i--)
    type->dims[i] = type->dims[i - 1];
  type->dims[at] = outer;
  type->dims[at + 1] = inner;
}

int32_t pl_adapting_join(pl_rewriting *own, const char *name, int32_t value, pl_ir_name outer, pl_ir_name inner,
                         pl_ir_name to) {
  const pl_ir_name both[] = {outer, inner};
  const pl_ir_attribute joins[] = {pl_ir_names("from", 2, both), pl_ir_names("to", 1, &to)};
  if (value == PL_IR_NONE) return value;
  return pl_ir_op_infer(own->module, own->to, "join", name, 1, &value, 2, joins);
}

/* ---- one function ---- */

/* Which ops are said otherwise. */
typedef struct choosing {
  const pl_tree_plan *plan; /* NULL: batch norms, in `groups` */
  int32_t function, groups;
} choosing;

static const pl_layout_rules *rules_of(const choosing *how, int32_t op) {
  return how->plan != NULL ? &how->plan->leaves[how->plan->functions[how->function].ops[op].leaf].rules : NULL;
}

static int32_t norm_parts(const choosing *how, const pl_ir_function *function, int32_t op) {
  if (!pl_adapt_is_norm(&function->ops[op])) return 1;
  const pl_layout_rules *rules = rules_of(how, op);
  int32_t replicas =
      rules != NULL ? pl_adapting_parts(rules, &function->values[function->ops[op].inputs[0]].type, pl_ir_name_of("b"))
                    : how->groups;
  return pl_adapt_norm_parts(function, &function->ops[op], replicas);
}

static bool is_chosen(const void *context, const pl_ir_function *function, int32_t op) {
  const choosing *how = context;
  const pl_layout_rules *rules = rules_of(how, op);
  return norm_parts(how, function, op) > 1 || (rules != NULL && pl_adapt_has_halo(function, &function->ops[op], rules));
}

static void write_op(const void *context, pl_rewriting *own, const pl_ir_op *op) {
  const choosing *how = context;
  int32_t index = (int32_t)(op - own->from->ops), parts = norm_parts(how, own->from, index);
  if (parts > 1)
    pl_adapt_norm(own, op, parts);
  else
    pl_adapt_windows(own, op, rules_of(how, index));
}

static pl_code rewrite(pl_ir_module *module, const choosing *how, const int32_t **of, pl_error *error) {
  const pl_rewrite_rule rule = {.context = how, .chooses = is_chosen, .write = write_op};
  return pl_rewrite_function(module, how->function, &rule, of, error);
}

/* ---- plans ---- */

/* What the plan says of ops, for the new ones. `from`: the function as it was. */
static pl_code carry_over(pl_tree_plan *plan, int32_t function, const pl_ir_function *from, const int32_t *of,
                          pl_error *error) {
  const pl_ir_function *to = plan->program.functions[function];
  pl_tree_op_plan *old = plan->functions[function].ops;
  pl_tree_op_plan *ops = PL_TAKE(plan->program.arena, pl_tree_op_plan, to->n_ops + 1);
  int32_t *last = PL_TAKE(plan->program.arena, int32_t, from->n_ops + 1);
  if (ops == NULL || last == NULL) return pl_fail_memory(error, "a strategy tree");
  for (int32_t i = 0; i < to->n_ops; i++)
    last[of[i]] = i;
  for (int32_t i = 0; i < to->n_ops; i++) {
    ops[i] = old[of[i]];
    if (ops[i].from >= 0 && ops[i].from < from->n_ops) ops[i].from = last[ops[i].from];
  }
  plan->functions[function].ops = ops;
  return PL_OK;
}

pl_code pl_plan_adapt(pl_tree_plan *plan, pl_error *error) {
  for (int32_t f = 0; f < plan->program.n_functions; f++) {
    const choosing how = {.plan = plan, .function = f};
    const pl_ir_function *from = plan->program.functions[f];
    const int32_t *of;
    PL_TRY(rewrite(&plan->program, &how, &of, error));
    if (of != NULL) PL_TRY(carry_over(plan, f, from, of, error));
  }
  return PL_OK;
}

pl_code pl_ir_group_norms(pl_ir_module *model, int32_t groups, pl_error *error) {
  for (int32_t f = 0; f < model->n_functions && groups > 1; f++) {
    const choosing how = {.function = f, .groups = groups};
    const int32_t *of;
    PL_TRY(rewrite(model, &how, &of, error));
  }
  return PL_OK;
}
