/* Pad (workloads/onnx/flat.h): constants in front of and behind what there is, along each axis. */
#include <string.h>

#include "workloads/onnx/flat.h"

static pl_code relate_pad(pl_flat *own, pl_step *step) {
  pl_onnx_op op = pl_flat_op(own, step);
  const pl_onnx_attribute *mode = pl_onnx_attribute_find(step->node, "mode");
  int64_t before[PL_ONNX_RANK_MAX], behind[PL_ONNX_RANK_MAX];
  int32_t *to = &own->axis[(size_t)step->out * PL_ONNX_RANK_MAX];
  const int32_t *from = pl_flat_axes(own, step->in[0]);
  if (mode != NULL && mode->text != NULL && strcmp(mode->text, "constant") != 0)
    return pl_flat_fail(own, step, "mode '%s' is not read, only 'constant'", mode->text);
  if (!pl_onnx_pads(&op, before, behind)) return pl_flat_fail(own, step, "its pads follow from data");
  for (int32_t i = 0; i < op.in[0]->rank; i++) {
    pl_axis_list of = {0};
    to[i] = from[i];
    if (before[i] == 0 && behind[i] == 0) continue;
    if (before[i] < 0 || behind[i] < 0) return pl_flat_fail(own, step, "a pad is less than nothing");
    (void)pl_axis_leaves(&own->axes, from[i], &of);
    if (of.n > 1) return pl_flat_fail(own, step, "pads a dimension that is made of several");
    if (from[i] != PL_AXIS_NONE && (own->batch == from[i] || pl_axis_is(&own->axes, of.leaf[0], PL_AXIS_BATCH)))
      return pl_flat_fail(own, step, "pads samples");
    to[i] = pl_axis_new(&own->axes, op.out.dims[i]);
    pl_axis_mark(&own->axes, to[i], PL_AXIS_FIXED);
    if (from[i] == PL_AXIS_NONE) continue;
    pl_axis_mark(&own->axes, from[i], PL_AXIS_FIXED);
    pl_axis_same_name(&own->axes, from[i], to[i]);
  }
  return PL_OK;
}

/* `n` times the number along dimension `name` of what `like` is. */
static int32_t filling(pl_flat *own, int32_t like, pl_ir_name name, int64_t n, double number) {
  pl_ir_type type = *pl_flat_type(own, like);
  int32_t one = pl_flat_constant(own, number, like);
  type.dims[pl_ir_type_find(&type, name)].extent = n;
  return one == PL_IR_NONE ? one : pl_flat_typed(own, "spread", "pad", NULL, 1, &one, &type, 0, NULL);
}

static pl_code pad_axis(pl_flat *own, const pl_step *step, int32_t axis, int64_t before, int64_t behind, double number,
                        int32_t *made) {
  int32_t to = own->axis[(size_t)step->out * PL_ONNX_RANK_MAX + (size_t)axis], parts[3], n = 0;
  pl_axis_list of = {0};
  (void)pl_axis_leaves(&own->axes, to, &of);
  if (of.n != 1) return pl_flat_fail(own, step, "pads a dimension that is taken apart later");
  pl_ir_name name = pl_axis_name(&own->axes, of.leaf[0]);
  if (pl_ir_type_find(pl_flat_type(own, *made), name) < 0) { /* of extent 1, or the same all along it */
    pl_ir_type type = *pl_flat_type(own, *made);
    if (type.rank == PL_IR_RANK_MAX) return pl_flat_fail(own, step, "too many dimensions");
    type.dims[type.rank++] = (pl_ir_dim){name, pl_flat_shape(own, step->in[0])->dims[axis]};
    *made = pl_flat_typed(own, "spread", "spread", NULL, 1, made, &type, 0, NULL);
    if (*made == PL_IR_NONE) return PL_OK;
  }
  if (before > 0) parts[n++] = filling(own, *made, name, before, number);
  parts[n++] = *made;
  if (behind > 0) parts[n++] = filling(own, *made, name, behind, number);
  for (int32_t k = 0; k < n; k++)
    if (parts[k] == PL_IR_NONE) return PL_OK; /* the error is said */
  const pl_ir_attribute over = pl_ir_names("over", 1, &name);
  *made = pl_flat_infer(own, "concatenate", "padded", n, parts, 1, &over);
  return PL_OK;
}

static pl_code write_pad(pl_flat *own, pl_step *step) {
  pl_onnx_op op = pl_flat_op(own, step);
  int64_t before[PL_ONNX_RANK_MAX], behind[PL_ONNX_RANK_MAX];
  double number = pl_onnx_real_of(step->node, "value", 0);
  int32_t made;
  if (step->n_in > 2 && step->in[2] != PL_ONNX_NONE && !pl_flat_scalar(own, step->in[2], &number))
    return pl_flat_fail(own, step, "what it pads with follows from data");
  PL_TRY(pl_flat_value(own, step, step->in[0], &made));
  if (made != PL_IR_NONE && pl_flat_type(own, made)->element == PL_IR_I32)
    return pl_flat_fail(own, step, "pads integers that follow from data");
  (void)pl_onnx_pads(&op, before, behind);
  for (int32_t i = 0; i < op.in[0]->rank && made != PL_IR_NONE; i++)
    if (before[i] > 0 || behind[i] > 0) PL_TRY(pad_axis(own, step, i, before[i], behind[i], number, &made));
  pl_flat_set(own, step, made);
  return PL_OK;
}

const pl_flat_row pl_flat_pads[] = {{"Pad", relate_pad, write_pad}, {NULL, NULL, NULL}};
