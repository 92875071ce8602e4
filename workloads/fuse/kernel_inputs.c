/* Copies of what products over a tensor group read (`copies_inputs`, Paddle's c_identity): without sequence parallelism
 * every product of a value that all ranks have with a weight that is cut by its outputs works on a copy, one for each
 * of those that are one kernel, all in one tensor, which stays for the backward pass in place of the value; so do both
 * products of the gradient of a sum. See workloads/fuse/kernel_stepping.h.
 */
#include "workloads/fuse/kernel_stepping.h"

static bool is_tensor_axis(const pl_kernel_stepping *own, int32_t axis) {
  return pl_ir_axis_is_of_tensors(own->to->mesh.axes[axis].name.text);
}

/* A product of a value that is whole on all ranks and a weight whose outputs are cut over the tensor group. */
static bool is_over_group(const pl_kernel_stepping *own, int32_t op) {
  if (!pl_step_is(own, op, "product") || pl_read_weight(&own->finding.read, op) == NULL) return false;
  const pl_ir_op *is = pl_read_op(&own->finding.read, op);
  const pl_ir_type *value = pl_read_type(&own->finding.read, is->inputs[0]),
                   *weight = pl_read_type(&own->finding.read, is->inputs[1]);
  for (int32_t axis = 0; axis < own->to->mesh.n_axes; axis++) {
    if (!is_tensor_axis(own, axis) || value->on[axis] != PL_IR_SAME || weight->on[axis] < 0) continue;
    if (!pl_ir_op_has_name(is, "over", weight->dims[weight->on[axis]].name)) return true;
  }
  return false;
}

static bool is_sequence_cut(const pl_kernel_stepping *own) {
  for (int32_t i = 0; i < own->finding.read.f->n_values; i++) {
    const pl_ir_type *type = pl_read_type(&own->finding.read, i);
    for (int32_t axis = 0; axis < own->to->mesh.n_axes; axis++)
      if (is_tensor_axis(own, axis) && type->on[axis] >= 0 &&
          pl_ir_name_equal(type->dims[type->on[axis]].name, pl_ir_name_of("s")))
        return true;
  }
  return false;
}

/* The copy of a value, made when its first product is written; PL_IR_NONE: it has none. */
static int32_t copy_of(pl_kernel_stepping *own, int32_t op, int32_t value) {
  if (own->copies[value] != PL_IR_NONE || !is_over_group(own, op)) return own->copies[value];
  if (pl_read_op(&own->finding.read, op)->inputs[0] != value) return PL_IR_NONE;
  int64_t n = 0;
  for (int32_t i = 0; i < own->finding.read.f->n_ops; i++)
    n += pl_read_op(&own->finding.read, i)->n_inputs > 0 && pl_read_op(&own->finding.read, i)->inputs[0] == value &&
         is_over_group(own, i);
  const pl_ir_attribute times = pl_ir_integer("times", n);
  return own->copies[value] = pl_step_append_same(own, "copy", own->map[value], "for the tensor group", &times);
}

void pl_step_begin_inputs(pl_kernel_stepping *own) {
  own->copies_inputs = own->options->framework->kernels.copies_inputs && !is_sequence_cut(own);
}

void pl_step_copy_inputs(pl_kernel_stepping *own, int32_t index, int32_t before[PL_STEP_INPUTS]) {
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  bool reads = pl_step_is(own, index, "product") || pl_step_is(own, index, "keep");
  for (int32_t i = 0; i < PL_STEP_INPUTS; i++)
    before[i] = PL_IR_NONE;
  for (int32_t i = 0; own->copies_inputs && reads && i < op->n_inputs && i < PL_STEP_INPUTS; i++) {
    int32_t copy = copy_of(own, index, op->inputs[i]);
    if (copy == PL_IR_NONE) continue;
    before[i] = own->map[op->inputs[i]];
    own->map[op->inputs[i]] = copy;
  }
}

void pl_step_put_inputs_back(pl_kernel_stepping *own, int32_t index, const int32_t before[PL_STEP_INPUTS]) {
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  for (int32_t i = PL_STEP_INPUTS; i-- > 0;)
    if (before[i] != PL_IR_NONE) own->map[op->inputs[i]] = before[i];
}
