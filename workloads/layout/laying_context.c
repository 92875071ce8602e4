/* Laying ops out along context axes, where each rank has a share of every sequence. */
#include <string.h>

#include "workloads/layout/laying_change.h"

bool pl_laying_is_ring(const pl_laying *part, const pl_ir_op *op) {
  return part->rules->ring && (pl_ir_op_is(op, "attention") || pl_ir_op_is(op, "attention_backward"));
}

int32_t pl_laying_context_axes(const pl_layout_rules *rules, pl_ir_name *axes) {
  int32_t n = 0;
  for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++)
    if (rules->on[axis].role == PL_AXIS_CONTEXT) axes[n++] = rules->mesh.axes[axis].name;
  return n;
}

void pl_laying_in_ring(const pl_ir_op *op, pl_ir_type *inputs, pl_ir_type *outputs, int32_t axis) {
  pl_ir_name s = pl_ir_name_of("s"), t = pl_ir_name_of("t");
  for (int32_t i = 0; i < op->n_inputs + op->n_outputs; i++) {
    pl_ir_type *type = i < op->n_inputs ? &inputs[i] : &outputs[i - op->n_inputs];
    int32_t dim = pl_ir_type_find(type, s);
    type->on[axis] = (int8_t)(dim >= 0 ? dim : pl_ir_type_find(type, t));
  }
}

bool pl_laying_owes_tokens(const pl_laying *part, const pl_ir_op *op, int32_t axis, int8_t on) {
  return on == PL_IR_PARTIAL && part->rules->on[axis].role == PL_AXIS_CONTEXT && pl_ir_op_is(op, "product");
}

pl_code pl_laying_scatter_keys(pl_laying *part, const pl_ir_op *op, pl_error *error) {
  const pl_ir_mesh *mesh = &part->own->rules->mesh;
  for (int32_t value = op->first_output; value < op->first_output + op->n_outputs; value++) {
    const pl_ir_type *is = &part->to->values[pl_laying_value(part, value)].type;
    pl_ir_type wanted = *is;
    int32_t keys = pl_ir_type_find(is, pl_ir_name_of("t")), scattered;
    int64_t parts = 1;
    for (int32_t axis = 0; keys >= 0 && axis < mesh->n_axes; axis++) {
      bool context = part->rules->on[axis].role == PL_AXIS_CONTEXT && is->on[axis] == PL_IR_PARTIAL;
      if (context) wanted.on[axis] = (int8_t)keys;
      if (context || is->on[axis] == keys) parts *= mesh->axes[axis].extent;
    }
    if (memcmp(wanted.on, is->on, sizeof wanted.on) == 0 || is->dims[keys].extent % parts != 0) continue;
    PL_TRY(pl_laying_convert(part, value, &wanted, "as keys lie", &scattered, error));
    pl_laying_set(part, value, scattered);
  }
  return PL_OK;
}
