/* Resize and Upsample (workloads/onnx/flat.h): every element so many times along an axis. The result has an axis of its
 * own there, as behind a convolution: one that is the operand's and another inside of it would be handed on to whatever
 * stands beside the result, and dimensions are few. */
#include <stdio.h>

#include "workloads/onnx/flat.h"

static int32_t *axes_made(pl_flat *own, const pl_step *step) {
  return &own->axis[(size_t)step->out * PL_ONNX_RANK_MAX];
}

static pl_code relate_resize(pl_flat *own, pl_step *step) {
  const pl_onnx_abstract *in = pl_flat_shape(own, step->in[0]), *out = pl_flat_shape(own, step->out);
  const int32_t *from = pl_flat_axes(own, step->in[0]);
  int32_t *to = axes_made(own, step);
  for (int32_t i = 0; i < out->rank; i++) {
    pl_axis_list of = {0};
    to[i] = from[i];
    if (out->dims[i] == in->dims[i]) continue;
    to[i] = pl_axis_new(&own->axes, out->dims[i]);
    (void)pl_axis_leaves(&own->axes, from[i], &of);
    if (of.n == 1) pl_axis_same_name(&own->axes, of.leaf[0], to[i]);
    pl_axis_mark(&own->axes, to[i], PL_AXIS_FIXED | (i + 1 < out->rank ? PL_AXIS_ROWS : PL_AXIS_COLUMNS));
  }
  return PL_OK;
}

static pl_ir_name copies_of(int32_t axis) {
  char text[16];
  snprintf(text, sizeof text, "times%d", axis);
  return pl_ir_name_of(text);
}

/* The copies along one axis joined to the dimensions that are there. */
static pl_code join_copies(pl_flat *own, const pl_step *step, int32_t axis, int32_t *made) {
  const pl_ir_name whole = pl_ir_name_of("joined");
  pl_ir_name names[PL_AXIS_LEAVES_MAX + 1];
  pl_axis_list of = {0}, into = {0};
  (void)pl_axis_leaves(&own->axes, pl_flat_axes(own, step->in[0])[axis], &of);
  (void)pl_axis_leaves(&own->axes, axes_made(own, step)[axis], &into);
  int32_t n = pl_flat_names(own, *made, &of, names);
  names[n++] = copies_of(axis);
  const pl_ir_attribute joins[] = {pl_ir_names("from", n, names), pl_ir_names("to", 1, &whole)};
  *made = pl_flat_op1(own, "join", "larger", *made, 2, joins);
  if (*made == PL_IR_NONE) return PL_OK;
  if (into.n > 1) return pl_flat_split(own, step, whole, &into, made);
  *made = pl_flat_rename(own, *made, whole, pl_axis_name(&own->axes, into.leaf[0]));
  return PL_OK;
}

/* All copies are there before the first are joined, which is what is written down. */
static pl_code write_resize(pl_flat *own, pl_step *step) {
  const pl_onnx_abstract *in = pl_flat_shape(own, step->in[0]), *out = pl_flat_shape(own, step->out);
  int32_t x;
  PL_TRY(pl_flat_value(own, step, step->in[0], &x));
  if (x == PL_IR_NONE) return PL_OK;
  pl_ir_type type = *pl_flat_type(own, x);
  for (int32_t i = 0; i < out->rank; i++) {
    if (out->dims[i] == in->dims[i]) continue;
    if (type.rank == PL_IR_RANK_MAX) return pl_flat_fail(own, step, "too many dimensions");
    type.dims[type.rank++] = (pl_ir_dim){copies_of(i), out->dims[i] / in->dims[i]};
  }
  if (type.rank > pl_flat_type(own, x)->rank) x = pl_flat_typed(own, "spread", "spread", NULL, 1, &x, &type, 0, NULL);
  for (int32_t i = 0; i < out->rank && x != PL_IR_NONE; i++)
    if (out->dims[i] != in->dims[i]) PL_TRY(join_copies(own, step, i, &x));
  pl_flat_set(own, step, x);
  return PL_OK;
}

const pl_flat_row pl_flat_resizes[] = {
    {"Resize", relate_resize, write_resize}, {"Upsample", relate_resize, write_resize}, {NULL, NULL, NULL}};
