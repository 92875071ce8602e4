/* A vocabulary's loss in steps: what it launches besides the ops of a program. See workloads/fuse/kernel_stepping.h. */
#include "workloads/fuse/kernel_stepping.h"

/* Where the greatest of a token is another rank's to say, the kernel that goes on reads logits in 16 bits once more. */
void pl_step_cast_again(pl_kernel_stepping *own, int32_t index) {
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  int32_t cast = pl_read_made(&own->finding.read, index, 0), greatest = pl_read_made(&own->finding.read, index, 1);
  if (!pl_step_is(own, cast, "cast") || !pl_read_is_collective(&own->finding.read, greatest)) return;
  while (pl_read_is_collective(&own->finding.read, greatest))
    greatest = pl_read_made(&own->finding.read, greatest, 0);
  int32_t narrow = own->map[pl_read_op(&own->finding.read, cast)->inputs[0]];
  if (!pl_step_is(own, greatest, "maximum") || narrow == PL_IR_NONE) return;
  own->map[op->inputs[0]] = pl_step_append(own, "cast", 1, &narrow, "logits.fp32",
                                           &own->finding.read.f->values[op->inputs[0]].type, "read once more");
}

/* Behind the first kernel of a loss, training metrics: logits to fp32 and their log-softmax in place, once more for
 * each, of which nothing is derived. */
void pl_step_measure_loss(pl_kernel_stepping *own, int32_t index) {
  int64_t n = own->options->framework->kernels.loss_metrics;
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  if (n == 0 || own->again[index] || !pl_step_is(own, index, "maximum") ||
      !pl_ir_op_has_name(op, "over", pl_ir_name_of("v")))
    return;
  int32_t cast_of = pl_read_made(&own->finding.read, index, 0);
  bool casts = pl_step_is(own, cast_of, "cast");
  int32_t logits = own->map[casts ? pl_read_op(&own->finding.read, cast_of)->inputs[0] : op->inputs[0]];
  for (int64_t i = 0; i < n && logits != PL_IR_NONE; i++) {
    int32_t wide = pl_step_cast(own, logits, PL_IR_F32, "a training metric");
    if (wide != PL_IR_NONE) (void)pl_step_append_same(own, "exp", wide, "a training metric", NULL);
  }
}

/* Before its gradient, the softmax is made of the exponentials, in place. */
void pl_step_divide_loss(pl_kernel_stepping *own) {
  if (pl_loss_is_one_kernel(own->options->framework->kernels.loss)) return;
  const pl_kernel_finding *f = &own->finding;
  for (int32_t i = 0; i < f->read.f->n_ops; i++) {
    if (!pl_step_is(own, i, "log")) continue;
    int32_t sum = pl_read_op(&f->read, i)->inputs[0], at = pl_read_maker(&f->read, sum);
    while (pl_read_is_collective(&f->read, at))
      at = pl_read_made(&f->read, at, 0);
    if (!pl_step_is(own, at, "sum") || !pl_step_is(own, pl_read_made(&f->read, at, 0), "exp")) continue;
    int32_t pair[] = {own->map[pl_read_op(&f->read, at)->inputs[0]], own->map[sum]};
    if (pair[0] == PL_IR_NONE || pair[1] == PL_IR_NONE) return;
    const pl_ir_type type = own->function->values[pair[0]].type, of = own->function->values[pair[1]].type;
    bool alike = true; /* not where the sums of other tokens are here */
    for (int32_t k = 0; k < of.rank; k++)
      for (int32_t axis = 0; axis < own->to->mesh.n_axes; axis++) {
        int32_t dim = pl_ir_type_find(&type, of.dims[k].name);
        alike = alike && dim >= 0 && (of.on[axis] == k) == (type.on[axis] == dim);
      }
    if (alike) pl_step_append(own, "divide", 2, pair, "softmax", &type, "the loss in steps");
  }
}
