/* See workloads/passes/adapt.h: batch norms of each replica's own pictures. */
#include <math.h>
#include <string.h>

#include "workloads/language/ir_fewer.h"
#include "workloads/language/ir_table.h"
#include "workloads/passes/adapting.h"

static const pl_ir_name pictures = {"b"};

bool pl_adapt_is_norm(const pl_ir_op *op) {
  return pl_ir_op_is(op, "batch_norm") && pl_ir_op_has_name(op, "over", pictures);
}

int32_t pl_adapt_norm_parts(const pl_ir_function *function, const pl_ir_op *op, int32_t replicas) {
  const pl_ir_type *type = &function->values[op->inputs[0]].type;
  bool fits = type->rank < PL_IR_RANK_MAX && type->dims[pl_ir_type_find(type, pictures)].extent % replicas == 0;
  return fits ? replicas : 1;
}

/* split, batch_norm, join. */
void pl_adapt_norm(pl_rewriting *own, const pl_ir_op *op, int32_t groups) {
  const char *name = own->from->values[op->first_output].name;
  pl_ir_type apart = own->from->values[op->inputs[0]].type;
  int32_t b = pl_ir_type_find(&apart, pictures);
  const pl_ir_name both[] = {pl_adapting_parts_name(pictures), pictures};
  pl_adapting_split_type(&apart, b, (pl_ir_dim){.name = both[0], .extent = groups},
                         (pl_ir_dim){.name = pictures, .extent = apart.dims[b].extent / groups});
  const pl_ir_attribute splits[] = {pl_ir_names("from", 1, &pictures), pl_ir_names("to", 2, both)};
  int32_t x = own->made[op->inputs[0]];
  x = pl_ir_op_typed(own->module, own->to, "split", name, NULL, 1, &x, &apart, 2, splits);
  const int32_t inputs[] = {x, own->made[op->inputs[1]], own->made[op->inputs[2]]};
  if (x == PL_IR_NONE) return;
  int32_t y = pl_ir_op_infer(own->module, own->to, "batch_norm", name, 3, inputs, op->n_attributes, op->attributes);
  own->made[op->first_output] = pl_adapting_join(own, name, y, both[0], pictures, pictures);
}

int32_t pl_norm_groups_of_program(const pl_ir_module *distributed) {
  const pl_ir_name replica = pl_adapting_parts_name(pictures);
  int32_t found = -1;
  for (int32_t f = 0; f < distributed->n_functions; f++)
    for (int32_t i = 0; i < distributed->functions[f]->n_ops; i++) {
      const pl_ir_op *op = &distributed->functions[f]->ops[i];
      if (!pl_adapt_is_norm(op)) continue;
      const pl_ir_type *type = &distributed->functions[f]->values[op->inputs[0]].type;
      int32_t dim = pl_ir_type_find(type, replica);
      double each = distributed->n_microbatches * pl_ir_share_run(distributed);
      int32_t n = (int32_t)lround(each * (dim >= 0 ? (double)type->dims[dim].extent : 1));
      found = found < 0 || found == n ? n : 0;
    }
  return found < 0 ? 1 : found;
}
