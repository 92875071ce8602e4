/* What an optimizer's update moves: its state, and what goes over the gradient around its reduction. See
 * workloads/fuse/kernel_stepping.h. */
#include "workloads/fuse/kernel_stepping.h"

static double elements_of(const pl_kernel_stepping *own, int32_t value) {
  return pl_ir_type_local_elements(&own->from->mesh, &own->finding.read.f->values[value].type);
}

static bool is_over_data(const pl_kernel_stepping *own, const pl_ir_op *op) {
  for (int32_t i = 0; i < own->from->mesh.n_axes; i++) {
    const pl_ir_axis *axis = &own->from->mesh.axes[i];
    if (!pl_ir_axis_is_of_tensors(axis->name.text) && pl_ir_op_has_name(op, "over", axis->name)) return true;
  }
  return false;
}

bool pl_step_reduces_gradients(const pl_kernel_stepping *own) {
  if (own->options->reduced_bytes <= 0) return false;
  for (int32_t i = 0; i < own->finding.read.f->n_ops; i++)
    if (pl_read_is_collective(&own->finding.read, i) && is_over_data(own, pl_read_op(&own->finding.read, i)) &&
        pl_step_is(own, pl_read_made(&own->finding.read, i, 0), "gradient"))
      return true;
  return false;
}

/* What goes over the gradient that an update reads, per element of it: it was whole before it was reduced. Those of
 * experts that nobody shares are divided and looked at as the others of their layer are. */
static double moved_around(const pl_kernel_stepping *own, int32_t index) {
  const int32_t gradient = 1;
  int32_t value = pl_read_op(&own->finding.read, index)->inputs[gradient];
  int32_t at = pl_read_made(&own->finding.read, index, gradient);
  double owned = elements_of(own, value);
  bool reduced = pl_ir_type_find(pl_read_type(&own->finding.read, value), pl_ir_name_of("x")) >= 0 && own->reduces;
  while (at != PL_IR_NONE && pl_read_is_collective(&own->finding.read, at)) {
    const pl_ir_op *op = pl_read_op(&own->finding.read, at);
    reduced = reduced || is_over_data(own, op);
    value = op->inputs[0];
    at = pl_read_made(&own->finding.read, at, 0);
  }
  return (reduced ? own->options->reduced_bytes : own->options->kept_bytes) * elements_of(own, value) / owned;
}

int32_t pl_step_update(pl_kernel_stepping *own, int32_t index) {
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  pl_ir_op moved = *op;
  pl_ir_attribute attributes[PL_IR_ATTRIBUTES_MAX + 1];
  for (int32_t i = 0; i < op->n_attributes; i++)
    attributes[i] = op->attributes[i];
  attributes[moved.n_attributes++] = pl_ir_real("moves", own->options->update_bytes + moved_around(own, index));
  moved.attributes = attributes;
  return pl_kernel_copy(own->to, own->function, own->finding.read.f, &moved, own->map, PL_IR_NONE);
}
