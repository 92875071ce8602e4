/* Laying ops out where tensor ranks share key-value heads. */
#include "workloads/layout/laying_change.h"

bool pl_laying_carries_heads(const pl_laying *part, const pl_ir_op *op, int32_t axis) {
  if (part->update || pl_ir_op_is(op, "product") || !pl_layout_shares_heads(part->rules, axis)) return false;
  for (int32_t i = 0; i < op->n_inputs; i++) {
    const pl_ir_type *is = &part->to->values[pl_laying_value(part, op->inputs[i])].type;
    if (is->on[axis] == PL_IR_PARTIAL && pl_ir_type_find(is, pl_ir_name_of("g")) >= 0) return true;
  }
  return false;
}

pl_code pl_laying_gather_heads(pl_laying *part, const pl_ir_op *op, pl_error *error) {
  for (int32_t value = op->first_output; value < op->first_output + op->n_outputs; value++) {
    pl_ir_type wanted = part->to->values[pl_laying_value(part, value)].type;
    bool gathers = false;
    int32_t whole;
    for (int32_t axis = 0; axis < part->own->rules->mesh.n_axes; axis++) {
      if (!pl_layout_cuts_head(part->rules, axis, &wanted)) continue;
      wanted.on[axis] = PL_IR_SAME;
      gathers = true;
    }
    if (!gathers || part->fed[value] != NULL) continue;
    PL_TRY(pl_laying_convert(part, value, &wanted, "as ranks share heads", &whole, error));
    pl_laying_set(part, value, whole);
  }
  return PL_OK;
}
