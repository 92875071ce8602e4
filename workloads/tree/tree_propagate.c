/* See workloads/tree/tree_planning.h: what nobody says, from what is said around it. Forward first, in program order,
 * then backward in reverse order; each op is looked at twice. */
#include <string.h>

#include "workloads/language/ir_table.h"
#include "workloads/tree/tree_planning.h"

/* ---- modules ---- */

static pl_tree_place place_of(const pl_tree_planning *own, int32_t module) {
  int32_t node = own->specs[own->calls[module].spec].partition;
  return node >= 0 ? pl_tree_node_at(own, node)->partition_at : own->tree->nodes[0].place;
}

static int32_t partition_of(const pl_tree_planning *own, int32_t module) {
  return own->specs[own->calls[module].spec].partition;
}

/* Takes over what `from` has; two that have different things are a conflict. */
static pl_code take_over(pl_tree_planning *own, int32_t module, int32_t from, pl_tree_origin origin) {
  pl_tree_module_plan *plan = &own->plan->modules[module];
  if (plan->from >= 0 && plan->from != from && partition_of(own, plan->from) != partition_of(own, from)) {
    char text[PL_TREE_PLACE_BYTES];
    return pl_tree_fail(
        place_of(own, from), own->error,
        "%s has no partition of its own, and what it is inferred from has two: this one of %s, and that "
        "of %s at %s; say which",
        plan->name, own->plan->modules[from].name, own->plan->modules[plan->from].name,
        pl_tree_place_text(place_of(own, plan->from), text));
  }
  plan->from = from;
  plan->origin = (uint8_t)origin;
  return pl_tree_spec_take(own, &own->calls[module].settings, partition_of(own, from), &own->calls[module].spec);
}

static pl_code infer_forward(pl_tree_planning *own) {
  for (int32_t module = 0; module < own->plan->n_modules; module++) {
    const pl_ir_op *call = own->calls[module].call;
    bool explicit_here = own->calls[module].spec >= 0;
    for (int32_t i = 0; i < call->n_inputs && !explicit_here; i++) {
      int32_t from = own->makers[call->inputs[i]];
      own->plan->n_visits++;
      if (from >= 0 && own->calls[from].spec >= 0) PL_TRY(take_over(own, module, from, PL_TREE_FORWARD));
    }
  }
  return PL_OK;
}

static pl_code infer_backward(pl_tree_planning *own) {
  bool *open = PL_TAKE(own->scratch, bool, own->plan->n_modules + 1);
  if (open == NULL) return pl_fail_memory(own->error, "a strategy tree");
  for (int32_t i = 0; i < own->plan->n_modules; i++)
    open[i] = own->calls[i].spec < 0;
  for (int32_t module = own->plan->n_modules; module-- > 0;) {
    const pl_ir_op *call = own->calls[module].call;
    for (int32_t i = 0; i < call->n_inputs && own->calls[module].spec >= 0; i++) {
      int32_t to = own->makers[call->inputs[i]];
      own->plan->n_visits++;
      if (to >= 0 && open[to]) PL_TRY(take_over(own, to, module, PL_TREE_BACKWARD));
    }
  }
  return PL_OK;
}

static bool has_partitions(const pl_strategy_tree *tree) {
  for (int32_t i = 0; i < tree->n_nodes; i++)
    if (tree->nodes[i].n_cuts >= 0) return true;
  return false;
}

static pl_code take_modules(pl_tree_planning *own) {
  bool any = has_partitions(own->tree);
  for (int32_t i = 0; i < own->plan->n_modules; i++) {
    int32_t node = own->calls[i].settings.node[PL_TREE_KEY_PARTITION];
    own->calls[i].spec = -1;
    own->plan->modules[i].from = PL_IR_NONE;
    own->plan->modules[i].origin = node > 0 ? PL_TREE_EXPLICIT : PL_TREE_OF_MODULE;
    if (node >= 0 || !any) PL_TRY(pl_tree_spec_take(own, &own->calls[i].settings, node, &own->calls[i].spec));
  }
  PL_TRY(infer_forward(own));
  PL_TRY(infer_backward(own));
  for (int32_t i = 0; i < own->plan->n_modules; i++)
    if (own->calls[i].spec < 0)
      return pl_tree_fail(own->tree->nodes[0].place, own->error,
                          "no partition reaches %s, and nothing that it is joined to has one: it has no devices; say "
                          "partition at the top, or of a child that matches it",
                          own->plan->modules[i].name);
  return PL_OK;
}

/* ---- ops between those that are named ---- */

enum { IS_SOURCE = -2, IS_OF_MODULE = -3 };

/* `ops[i].leaf`: a spec; IS_SOURCE: made of parameters, data and constants alone; IS_OF_MODULE. */
static void infer_op(pl_tree_op_plan *ops, const pl_ir_function *function, int32_t i) {
  const pl_ir_op *op = &function->ops[i];
  int32_t found = IS_SOURCE, from = PL_IR_NONE;
  for (int32_t k = 0; k < op->n_inputs; k++) {
    int32_t maker = function->values[op->inputs[k]].op;
    int32_t leaf = maker == PL_IR_NONE ? IS_OF_MODULE : ops[maker].leaf;
    if (leaf == IS_SOURCE || leaf == found) continue;
    found = found == IS_SOURCE ? leaf : IS_OF_MODULE;
    from = maker;
  }
  ops[i].leaf = found;
  if (found < 0) return;
  ops[i].origin = PL_TREE_FORWARD;
  ops[i].from = from;
}

/* Parameters and data have what reads them first. */
static void infer_sources(pl_tree_op_plan *ops, const pl_ir_function *function) {
  for (int32_t i = function->n_ops; i-- > 0;) {
    const pl_ir_op *op = &function->ops[i];
    for (int32_t k = 0; k < op->n_inputs && ops[i].leaf >= 0; k++) {
      int32_t maker = function->values[op->inputs[k]].op;
      if (maker == PL_IR_NONE) continue;
      bool open = ops[maker].leaf == IS_SOURCE || (ops[maker].origin == PL_TREE_BACKWARD && ops[maker].from > i);
      if (!open) continue;
      ops[maker] = (pl_tree_op_plan){.leaf = ops[i].leaf, .origin = PL_TREE_BACKWARD, .from = i};
    }
  }
}

static pl_code take_ops(pl_tree_planning *own, int32_t module) {
  const pl_ir_function *function = pl_tree_callee(own, module);
  pl_tree_op_plan *ops = own->calls[module].ops;
  int32_t of_module = own->calls[module].spec;
  for (int32_t i = 0; i < function->n_ops; i++) {
    own->plan->n_visits += 2;
    if (ops[i].origin != PL_TREE_EXPLICIT) {
      infer_op(ops, function, i);
    } else if (own->specs[ops[i].leaf].partition < 0) {
      PL_TRY(pl_tree_spec_with(own, ops[i].leaf, own->specs[of_module].partition, &ops[i].leaf));
    }
  }
  infer_sources(ops, function);
  for (int32_t i = 0; i < function->n_ops; i++)
    if (ops[i].leaf < 0) ops[i].leaf = of_module;
  return PL_OK;
}

pl_code pl_tree_propagate(pl_tree_planning *own) {
  PL_TRY(take_modules(own));
  for (int32_t i = 0; i < own->plan->n_modules; i++)
    if (own->calls[i].ops != NULL) PL_TRY(take_ops(own, i));
  return PL_OK;
}
