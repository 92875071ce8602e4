/* See workloads/language/ir_routing.h. */
#include "workloads/language/ir_routing.h"

#include <math.h>

pl_ir_routing pl_ir_routing_of(const pl_ir_module *module) {
  const int32_t row = pl_ir_row_of("top_k");
  for (int32_t f = 0; f < module->n_functions; f++)
    for (int32_t i = 0; i < module->functions[f]->n_ops; i++) {
      const pl_ir_op *op = &module->functions[f]->ops[i];
      if (op->row != row || pl_ir_integer_of(op, "sparse", 0) == 0) continue;
      pl_ir_routing found = {.chosen = module->functions[f]->values[op->inputs[0]].type,
                             .experts = pl_ir_attribute_find(op, "over")->names[0]};
      int32_t at = pl_ir_type_find(&found.chosen, found.experts);
      found.k = pl_ir_integer_of(op, "k", 1);
      found.groups = pl_ir_integer_of(op, "groups", 1);
      found.chosen_groups = pl_ir_integer_of(op, "chosen_groups", 1);
      found.share = (double)found.k / (double)found.chosen.dims[at].extent;
      return found;
    }
  return (pl_ir_routing){.share = 1};
}

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

double pl_ir_routed_share(const pl_ir_routing *routing, const pl_ir_type *type) {
  return pl_ir_is_routed(routing, type) ? routing->share : 1;
}

double pl_ir_moved_share(const pl_ir_routing *routing, const pl_ir_op *op, const pl_ir_type *type) {
  static const char *const rows[] = {"all_to_all", "all_gather", "reduce_scatter"};
  bool moves = false;
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
