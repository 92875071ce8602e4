/* See workloads/language/ir_routing.h. */
#include "workloads/language/ir_routing.h"

#include <math.h>
#include <stdlib.h>

/* ---- how many rows there are ---- */

bool pl_ir_loads_next(const char **text, double *tokens) {
  char *end;
  const char *from = *text;
  *tokens = strtod(from, &end);
  bool found = end != from && (*end == ',' || *end == '\0');
  *text = *end == ',' ? end + 1 : end;
  return found;
}

double pl_ir_choice_load(const pl_ir_op *op, int64_t n_experts, int64_t devices) {
  const char *text = pl_ir_text_of(op, "tokens");
  double capacity = pl_ir_real_of(op, "capacity", 1), all = 0, most = 0, own = 0, tokens;
  if (devices < 2) return capacity;
  if (text == NULL || *text == '\0') return capacity * pl_ir_real_of(op, "load", 1);
  const int64_t each = n_experts > devices ? n_experts / devices : 1;
  for (int64_t i = 0; i < n_experts && pl_ir_loads_next(&text, &tokens); i++) {
    own = i % each == 0 ? tokens : own + tokens;
    all += tokens;
    if (own > most) most = own;
  }
  return capacity * (most * (double)devices / all);
}

/* Of a value of this type: parts of the experts, each on devices of its own. */
static int64_t parts_of(const pl_ir_routing *routing, const pl_ir_mesh *mesh, const pl_ir_type *type) {
  const int32_t dim = pl_ir_type_find(type, routing->experts);
  int64_t parts = 1;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (type->on[axis] == dim) parts *= mesh->axes[axis].extent;
  return parts;
}

/* Over how many devices experts' rows lie, where most. */
static int64_t devices_of(const pl_ir_routing *routing, const pl_ir_module *module) {
  int64_t most = 1;
  for (int32_t f = 0; f < module->n_functions; f++)
    for (int32_t i = 0; i < module->functions[f]->n_values; i++) {
      const pl_ir_type *type = &module->functions[f]->values[i].type;
      if (!pl_ir_is_routed(routing, type)) continue;
      const int64_t parts = parts_of(routing, &module->mesh, type);
      if (parts > most) most = parts;
    }
  return most;
}

/* ---- of a module ---- */

static bool find(const pl_ir_module *module, pl_ir_routing *found, const pl_ir_op **choice) {
  const int32_t row = pl_ir_row_of("top_k");
  for (int32_t f = 0; f < module->n_functions; f++)
    for (int32_t i = 0; i < module->functions[f]->n_ops; i++) {
      const pl_ir_op *op = &module->functions[f]->ops[i];
      if (op->row != row || pl_ir_integer_of(op, "sparse", 0) == 0) continue;
      *found = (pl_ir_routing){.load = 1,
                               .chosen = module->functions[f]->values[op->inputs[0]].type,
                               .experts = pl_ir_attribute_find(op, "over")->names[0]};
      found->k = pl_ir_integer_of(op, "k", 1);
      found->groups = pl_ir_integer_of(op, "groups", 1);
      found->chosen_groups = pl_ir_integer_of(op, "chosen_groups", 1);
      *choice = op;
      return true;
    }
  *found = (pl_ir_routing){.share = 1, .load = 1};
  return false;
}

static int64_t experts_of(const pl_ir_routing *routing) {
  return routing->chosen.dims[pl_ir_type_find(&routing->chosen, routing->experts)].extent;
}

pl_ir_routing pl_ir_routing_even(const pl_ir_module *module) {
  const pl_ir_op *choice;
  pl_ir_routing found;
  if (find(module, &found, &choice)) found.share = (double)found.k / (double)experts_of(&found);
  return found;
}

pl_ir_routing pl_ir_routing_of(const pl_ir_module *module) {
  const pl_ir_op *choice;
  pl_ir_routing found;
  if (!find(module, &found, &choice)) return found;
  const int64_t n_experts = experts_of(&found);
  bool says = pl_ir_attribute_find(choice, "load") != NULL || pl_ir_attribute_find(choice, "tokens") != NULL;
  found.load = pl_ir_choice_load(choice, n_experts, says ? devices_of(&found, module) : 1);
  found.share = (double)found.k / (double)n_experts * found.load;
  return found;
}

/* ---- of a value ---- */

/* A dimension of tokens, as what was chosen from has them; -1: none. */
static int32_t token_dim(const pl_ir_routing *routing, const pl_ir_type *type) {
  for (int32_t i = type->rank; i-- > 0;) {
    pl_ir_name name = type->dims[i].name;
    if (!pl_ir_name_equal(name, routing->experts) && pl_ir_type_find(&routing->chosen, name) >= 0) return i;
  }
  return -1;
}

bool pl_ir_is_routed(const pl_ir_routing *routing, const pl_ir_type *type) {
  bool wide = false;
  if (routing->k == 0 || pl_ir_type_find(type, routing->experts) < 0) return false;
  for (int32_t i = 0; i < type->rank; i++)
    wide = wide || pl_ir_type_find(&routing->chosen, type->dims[i].name) < 0;
  return wide && token_dim(routing, type) >= 0;
}

bool pl_ir_is_dispatch(const pl_ir_routing *routing, const pl_ir_function *function, const pl_ir_op *op) {
  if (!pl_ir_op_is(op, "spread") || !pl_ir_is_routed(routing, &function->values[op->first_output].type)) return false;
  return pl_ir_type_find(&function->values[op->inputs[0]].type, routing->experts) < 0;
}

double pl_ir_routed_share(const pl_ir_routing *routing, const pl_ir_type *type) {
  return pl_ir_is_routed(routing, type) ? routing->share : 1;
}

/* Of all experts, to which tokens that are gathered before they are spread go with one row. 0: no such gathering. */
static double share_of_gathered(const pl_ir_routing *routing, const pl_ir_op *op, const pl_ir_type *type) {
  int32_t at = pl_ir_type_find(type, routing->experts);
  bool whole = routing->gathers && pl_ir_op_is(op, "all_gather") && pl_ir_is_routed(routing, type);
  for (int32_t axis = 0; axis < PL_IR_AXES_MAX; axis++)
    whole = whole && type->on[axis] != at;
  return whole ? 1 / (double)type->dims[at].extent : 0;
}

double pl_ir_moved_share(const pl_ir_routing *routing, const pl_ir_op *op, const pl_ir_type *type) {
  static const char *const rows[] = {"all_to_all", "all_gather", "reduce_scatter"};
  bool moves = false;
  double gathered = share_of_gathered(routing, op, type);
  if (gathered > 0) return gathered;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    moves = moves || pl_ir_op_is(op, rows[i]);
  bool by_expert = routing->share != 1 && pl_ir_type_find(type, routing->experts) >= 0 && token_dim(routing, type) >= 0;
  return moves && by_expert ? routing->share : pl_ir_routed_share(routing, type);
}

pl_ir_type pl_ir_routed_part(const pl_ir_routing *routing, const pl_ir_type *part) {
  pl_ir_type own = *part;
  double share = pl_ir_routed_share(routing, part);
  if (share == 1) return own;
  pl_ir_dim *tokens = &own.dims[token_dim(routing, part)];
  tokens->extent = (int64_t)ceil((double)tokens->extent * share);
  return own;
}
