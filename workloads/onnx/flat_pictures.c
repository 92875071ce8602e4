/* Convolutions, pooling and batch norm (workloads/onnx/flat.h). Programs have rows and columns of extent 1 too where a
 * window slides over them: such are put in before and taken out behind. */
#include <inttypes.h>
#include <string.h>

#include "workloads/onnx/flat.h"
#include "workloads/onnx/onnx_shape.h"

static int32_t *axes_made(pl_flat *own, const pl_step *step) {
  return &own->axis[(size_t)step->out * PL_ONNX_RANK_MAX];
}

static int64_t listed(const pl_step *step, const char *name, int32_t index, int64_t otherwise) {
  const pl_onnx_attribute *list = pl_onnx_attribute_find(step->node, name);
  return list != NULL && index < list->n_integers ? list->integers[index] : otherwise;
}

static int32_t n_points(const pl_flat *own, const pl_step *step) {
  return pl_flat_shape(own, step->in[0])->rank - 2;
}

/* Rows, columns: of a picture, or of a filter. */
static int32_t role_of(int32_t point, int32_t points, bool filter) {
  bool column = point + 1 == points && points > 1;
  if (filter) return column ? PL_AXIS_FILTER_COLUMNS : PL_AXIS_FILTER_ROWS;
  return column ? PL_AXIS_COLUMNS : PL_AXIS_ROWS;
}

static pl_code relate_points(pl_flat *own, pl_step *step) {
  const pl_onnx_abstract *in = pl_flat_shape(own, step->in[0]), *out = pl_flat_shape(own, step->out);
  const int32_t *from = pl_flat_axes(own, step->in[0]);
  int32_t points = n_points(own, step), *to = axes_made(own, step);
  if (points < 1 || points > 2)
    return pl_flat_fail(own, step, "pictures have one or two dimensions here, not %d", points);
  to[0] = from[0];
  for (int32_t i = 0; i < points; i++) {
    int32_t axis = from[i + 2];
    if (axis != PL_AXIS_NONE) pl_axis_mark(&own->axes, axis, role_of(i, points, false) | PL_AXIS_FIXED);
    if (axis != PL_AXIS_NONE && out->dims[i + 2] == in->dims[i + 2]) {
      to[i + 2] = axis;
      continue;
    }
    to[i + 2] = out->dims[i + 2] == 1 ? PL_AXIS_NONE : pl_axis_new(&own->axes, out->dims[i + 2]);
    if (to[i + 2] == PL_AXIS_NONE) continue;
    pl_axis_mark(&own->axes, to[i + 2], role_of(i, points, false) | PL_AXIS_FIXED);
    pl_axis_list of = {0};
    (void)pl_axis_leaves(&own->axes, axis, &of);
    if (of.n == 1) pl_axis_same_name(&own->axes, axis, to[i + 2]); /* of several: with_points joins them */
  }
  return PL_OK;
}

/* Names of a picture's rows and columns, in the file's order; those that it has not (extent 1) are put in. */
static pl_code with_points(pl_flat *own, const pl_step *step, int32_t *made, pl_ir_name names[2]) {
  static const char *const spare[] = {"y", "x"};
  int32_t points = n_points(own, step);
  PL_ASSERT(points <= 2); /* relate_points has refused others */
  for (int32_t i = 0; i < points; i++) {
    int32_t axis = pl_flat_axes(own, step->in[0])[i + 2], out = axes_made(own, step)[i + 2];
    int32_t known = axis != PL_AXIS_NONE ? axis : out;
    pl_axis_list of = {0};
    (void)pl_axis_leaves(&own->axes, known, &of);
    names[i] = of.n == 1 ? pl_axis_name(&own->axes, of.leaf[0]) : pl_ir_name_of(spare[points == 1 ? 0 : i]);
    if (of.n > 1 && *made != PL_IR_NONE && pl_ir_type_find(pl_flat_type(own, *made), names[i]) >= 0)
      names[i] = pl_ir_name_of(i == 0 ? "rows" : "columns");
    if (of.n > 1 && axis != PL_AXIS_NONE) PL_TRY(pl_flat_join(own, step, &of, names[i], made));
    if (*made == PL_IR_NONE || pl_ir_type_find(pl_flat_type(own, *made), names[i]) >= 0) continue;
    pl_ir_type type = *pl_flat_type(own, *made);
    if (type.rank == PL_IR_RANK_MAX) return pl_flat_fail(own, step, "too many dimensions");
    type.dims[type.rank++] = (pl_ir_dim){names[i], pl_flat_shape(own, step->in[0])->dims[i + 2]};
    *made = pl_flat_typed(own, "spread", "spread", NULL, 1, made, &type, 0, NULL);
  }
  return PL_OK;
}

/* Rows and columns of the result, which are taken apart further on (into windows, say), as the graph has them. */
static pl_code settle_points(pl_flat *own, const pl_step *step, const pl_ir_name names[2], int32_t *made) {
  for (int32_t i = 0; i < n_points(own, step) && *made != PL_IR_NONE; i++) {
    pl_axis_list of = {0};
    (void)pl_axis_leaves(&own->axes, axes_made(own, step)[i + 2], &of);
    if (of.n > 1) PL_TRY(pl_flat_split(own, step, names[i], &of, made));
    if (of.n == 1 && !pl_ir_name_equal(names[i], pl_axis_name(&own->axes, of.leaf[0])))
      *made = pl_flat_rename(own, *made, names[i], pl_axis_name(&own->axes, of.leaf[0]));
  }
  return PL_OK;
}

/* Without rows or columns of which one is left. */
static int32_t without_ones(pl_flat *own, const pl_step *step, int32_t made, const pl_ir_name names[2]) {
  pl_ir_name gone[2] = {{{0}}};
  int32_t n = 0, points = n_points(own, step);
  PL_ASSERT(points <= 2);
  for (int32_t i = 0; i < points; i++)
    if (axes_made(own, step)[i + 2] == PL_AXIS_NONE) gone[n++] = names[i];
  const pl_ir_attribute over = pl_ir_names("over", n, gone);
  return n == 0 ? made : pl_flat_op1(own, "sum", "points", made, 1, &over);
}

static const char *joined(pl_flat *own, const pl_step *step, const int64_t numbers[2]) {
  const char *made = n_points(own, step) == 1
                         ? pl_arena_printf(own->module->arena, "%" PRId64, numbers[0])
                         : pl_arena_printf(own->module->arena, "%" PRId64 "x%" PRId64, numbers[0], numbers[1]);
  return made != NULL ? made : "1";
}

static const char *by_points(pl_flat *own, const pl_step *step, const char *name, int64_t otherwise) {
  const int64_t numbers[2] = {listed(step, name, 0, otherwise), listed(step, name, 1, otherwise)};
  return joined(own, step, numbers);
}

/* Zeros around the picture: those that are asked for, and behind it those that windows reach into when they are rounded
 * up. */
static void find_padding(pl_flat *own, const pl_step *step, const int64_t kernel[2], int64_t before[2],
                         int64_t behind[2]) {
  int32_t points = n_points(own, step);
  PL_ASSERT(points <= 2);
  for (int32_t i = 0; i < points; i++) {
    int64_t in = pl_flat_shape(own, step->in[0])->dims[i + 2], out = pl_flat_shape(own, step->out)->dims[i + 2];
    int64_t seen = (out - 1) * listed(step, "strides", i, 1) + listed(step, "dilations", i, 1) * (kernel[i] - 1) + 1;
    int64_t pads[2];
    pl_onnx_window_pads(step->node, i, points, in, kernel[i], pads);
    int64_t lacks = seen - in - pads[0];
    before[i] = pads[0];
    behind[i] = lacks > pads[1] ? lacks : pads[1];
  }
}

enum { ATTRIBUTES_MAX = 8 };

static int32_t slid(pl_flat *own, const pl_step *step, const pl_ir_name *names, const int64_t before[2],
                    const int64_t behind[2], pl_ir_attribute *attributes, int32_t n) {
  attributes[n++] = pl_ir_names("window", n_points(own, step), names);
  attributes[n++] = pl_ir_text("stride", by_points(own, step, "strides", 1));
  attributes[n++] = pl_ir_text("padding", joined(own, step, before));
  attributes[n++] = pl_ir_text("padding_after", joined(own, step, behind));
  attributes[n++] = pl_ir_text("dilation", by_points(own, step, "dilations", 1));
  return n;
}

static int32_t sliding(pl_flat *own, const pl_step *step, const pl_ir_name *names, const int64_t kernel[2],
                       pl_ir_attribute *attributes, int32_t n) {
  int64_t before[2] = {0, 0}, behind[2] = {0, 0};
  find_padding(own, step, kernel, before, behind);
  return slid(own, step, names, before, behind, attributes, n);
}
/* ---- convolution ---- */

/* A filter has rows and columns of its own, of extent 1 too. */
static void relate_filter(pl_flat *own, int32_t *w, const pl_onnx_abstract *shape, int32_t points) {
  for (int32_t i = 0; i < points; i++) {
    if (w[i + 2] == PL_AXIS_NONE) w[i + 2] = pl_axis_new(&own->axes, shape->dims[i + 2]);
    if (w[i + 2] != PL_AXIS_NONE) pl_axis_mark(&own->axes, w[i + 2], role_of(i, points, true) | PL_AXIS_FIXED);
  }
}

/* Of a convolution, and of a transposed one; `w`: the filter's axes. */
static pl_code begin_filter(pl_flat *own, pl_step *step, int32_t **w) {
  int32_t filter = step->in[1];
  *w = &own->axis[(size_t)filter * PL_ONNX_RANK_MAX];
  PL_TRY(relate_points(own, step));
  if (own->has_axes[filter]) return pl_flat_fail(own, step, "its filter is used elsewhere, or computed");
  (void)pl_flat_axes(own, filter);
  relate_filter(own, *w, pl_flat_shape(own, filter), n_points(own, step));
  return PL_OK;
}

static pl_code relate_convolution(pl_flat *own, pl_step *step) {
  const pl_onnx_abstract *shape = pl_flat_shape(own, step->in[1]);
  int64_t groups = pl_onnx_integer_of(step->node, "group", 1);
  int32_t *w;
  PL_TRY(begin_filter(own, step, &w));
  int32_t c = pl_flat_axes(own, step->in[0])[1];
  axes_made(own, step)[1] = w[0];
  if (groups > 1) { /* channels are groups of channels, as filters are */
    pl_axis_list of = {0}, made = {0};
    int64_t each = shape->dims[1];
    int32_t group = pl_axis_new(&own->axes, groups);
    made.leaf[made.n++] = group;
    if (each > 1 && w[1] != PL_AXIS_NONE) made.leaf[made.n++] = w[1];
    (void)pl_axis_unite(&own->axes, pl_axis_of(&own->axes, &made), c);
    if (shape->dims[0] % groups != 0) return pl_flat_fail(own, step, "filters do not divide into groups");
    made.n = 0;
    made.leaf[made.n++] = group;
    if (shape->dims[0] > groups) made.leaf[made.n++] = pl_axis_new(&own->axes, shape->dims[0] / groups);
    w[0] = axes_made(own, step)[1] = pl_axis_of(&own->axes, &made);
    (void)pl_axis_leaves(&own->axes, w[0], &of);
  } else {
    (void)pl_axis_unite(&own->axes, w[1], c);
  }
  if (w[0] != PL_AXIS_NONE) pl_axis_mark(&own->axes, w[0], PL_AXIS_CHANNELS | PL_AXIS_FIXED);
  if (c != PL_AXIS_NONE) pl_axis_mark(&own->axes, c, PL_AXIS_CHANNELS | PL_AXIS_FIXED);
  if (step->n_in > 2 && step->in[2] != PL_ONNX_NONE)
    (void)pl_axis_unite(&own->axes, pl_flat_axes(own, step->in[2])[0], w[0]);
  return PL_OK;
}

/* To what the step has made. */
static pl_code add_bias(pl_flat *own, const pl_step *step) {
  int32_t bias;
  if (step->n_in < 3 || step->in[2] == PL_ONNX_NONE) return PL_OK;
  PL_TRY(pl_flat_value(own, step, step->in[2], &bias));
  PL_TRY(pl_flat_conform(own, step, pl_flat_axes(own, step->in[2])[0], axes_made(own, step)[1], &bias));
  pl_flat_set(own, step, pl_flat_pair(own, "add", "biased", own->made[step->out], bias));
  return PL_OK;
}

static pl_code write_convolution(pl_flat *own, pl_step *step) {
  int32_t x, w, points = n_points(own, step);
  int64_t groups = pl_onnx_integer_of(step->node, "group", 1), kernel[2] = {1, 1};
  pl_ir_name names[2], filter[2], over[PL_AXIS_LEAVES_MAX];
  pl_ir_attribute attributes[ATTRIBUTES_MAX];
  PL_TRY(pl_flat_value(own, step, step->in[0], &x));
  PL_TRY(pl_flat_value(own, step, step->in[1], &w));
  const int32_t *of_w = pl_flat_axes(own, step->in[1]);
  if (groups == 1) PL_TRY(pl_flat_conform(own, step, of_w[1], pl_flat_axes(own, step->in[0])[1], &w));
  PL_TRY(with_points(own, step, &x, names));
  pl_axis_list contracted = {0};
  (void)pl_axis_leaves(&own->axes, groups == 1 ? pl_flat_axes(own, step->in[0])[1] : of_w[1], &contracted);
  int32_t n_over = w == PL_IR_NONE ? 0 : pl_flat_names(own, w, &contracted, over), n = 0;
  for (int32_t i = 0; i < points; i++) {
    kernel[i] = pl_flat_shape(own, step->in[1])->dims[i + 2];
    filter[i] = pl_flat_dim(own, of_w[i + 2]).name;
  }
  if (n_over > 0) attributes[n++] = pl_ir_names("over", n_over, over);
  attributes[n++] = pl_ir_names("kernel", points, filter);
  n = sliding(own, step, names, kernel, attributes, n);
  int32_t made = pl_flat_op2(own, "convolution", "convolution", x, w, n, attributes);
  made = without_ones(own, step, made, names);
  PL_TRY(settle_points(own, step, names, &made));
  pl_flat_set(own, step, made);
  return add_bias(own, step);
}

/* ---- transposed convolution: the derivative of one by its picture ---- */

/* Its operand has the channels that the filter's first axis counts, its result those of the second. */
static pl_code relate_transposed(pl_flat *own, pl_step *step) {
  const pl_onnx_abstract *shape = pl_flat_shape(own, step->in[1]);
  int64_t groups = pl_onnx_integer_of(step->node, "group", 1);
  int32_t *w;
  PL_TRY(begin_filter(own, step, &w));
  int32_t c = pl_flat_axes(own, step->in[0])[1], made = w[1];
  if (groups > 1) {
    pl_axis_list in = {0}, out = {0};
    in.leaf[in.n++] = out.leaf[out.n++] = pl_axis_new(&own->axes, groups);
    if (shape->dims[0] > groups) in.leaf[in.n++] = pl_axis_new(&own->axes, shape->dims[0] / groups);
    if (w[1] != PL_AXIS_NONE) out.leaf[out.n++] = w[1];
    w[0] = pl_axis_of(&own->axes, &in);
    made = pl_axis_of(&own->axes, &out);
  }
  (void)pl_axis_unite(&own->axes, w[0], c);
  axes_made(own, step)[1] = made;
  if (made != PL_AXIS_NONE) pl_axis_mark(&own->axes, made, PL_AXIS_CHANNELS | PL_AXIS_FIXED);
  if (c != PL_AXIS_NONE) pl_axis_mark(&own->axes, c, PL_AXIS_CHANNELS | PL_AXIS_FIXED);
  if (step->n_in > 2 && step->in[2] != PL_ONNX_NONE)
    (void)pl_axis_unite(&own->axes, pl_flat_axes(own, step->in[2])[0], made);
  return PL_OK;
}

/* The picture that is made: samples, its channels, its points, also those of extent 1. */
static pl_code transposed_type(pl_flat *own, const pl_step *step, int32_t x, const pl_ir_name names[2],
                               pl_ir_type *type) {
  const pl_onnx_abstract *out = pl_flat_shape(own, step->out);
  pl_axis_list leaves = {0};
  *type = pl_ir_type_of((pl_ir_element)pl_flat_type(own, x)->element, 0, NULL);
  (void)pl_axis_leaves(&own->axes, axes_made(own, step)[0], &leaves);
  (void)pl_axis_leaves(&own->axes, axes_made(own, step)[1], &leaves);
  if (leaves.n + n_points(own, step) > PL_IR_RANK_MAX) return pl_flat_fail(own, step, "too many dimensions");
  for (int32_t i = 0; i < leaves.n; i++)
    type->dims[type->rank++] = pl_flat_dim(own, leaves.leaf[i]);
  for (int32_t i = 0; i < n_points(own, step); i++)
    type->dims[type->rank++] = (pl_ir_dim){names[i], out->dims[i + 2]};
  return PL_OK;
}

static pl_code write_transposed(pl_flat *own, pl_step *step) {
  int32_t inputs[2], n = 0, points = n_points(own, step);
  int64_t before[2] = {0, 0}, behind[2] = {0, 0};
  pl_ir_name names[2], filter[2], over[PL_AXIS_LEAVES_MAX];
  pl_ir_attribute attributes[ATTRIBUTES_MAX];
  pl_ir_type type;
  PL_ASSERT(points <= 2); /* relate_points has refused others */
  PL_TRY(pl_flat_value(own, step, step->in[0], &inputs[0]));
  PL_TRY(pl_flat_value(own, step, step->in[1], &inputs[1]));
  if (inputs[0] == PL_IR_NONE || inputs[1] == PL_IR_NONE) return PL_OK;
  const int32_t *of_w = pl_flat_axes(own, step->in[1]);
  if (pl_onnx_integer_of(step->node, "group", 1) == 1)
    PL_TRY(pl_flat_conform(own, step, of_w[0], pl_flat_axes(own, step->in[0])[1], &inputs[1]));
  PL_TRY(with_points(own, step, &inputs[0], names));
  PL_TRY(transposed_type(own, step, inputs[0], names, &type));
  for (int32_t i = 0; i < points; i++) {
    int64_t kernel = pl_flat_shape(own, step->in[1])->dims[i + 2], stride = listed(step, "strides", i, 1);
    int64_t in = pl_flat_shape(own, step->in[0])->dims[i + 2], out = pl_flat_shape(own, step->out)->dims[i + 2];
    int64_t seen = (in - 1) * stride + listed(step, "dilations", i, 1) * (kernel - 1) + 1;
    before[i] = listed(step, "pads", i, 0);
    behind[i] = seen - out - before[i] > 0 ? seen - out - before[i] : 0;
    filter[i] = pl_flat_dim(own, of_w[i + 2]).name;
  }
  pl_axis_list summed = {0};
  (void)pl_axis_leaves(&own->axes, of_w[1], &summed);
  int32_t n_over = pl_flat_names(own, inputs[1], &summed, over);
  if (n_over > 0) attributes[n++] = pl_ir_names("over", n_over, over);
  attributes[n++] = pl_ir_names("kernel", points, filter);
  n = slid(own, step, names, before, behind, attributes, n);
  int32_t made = pl_flat_typed(own, "convolution_backward_data", "transposed", NULL, 2, inputs, &type, n, attributes);
  made = without_ones(own, step, made, names);
  PL_TRY(settle_points(own, step, names, &made));
  pl_flat_set(own, step, made);
  return add_bias(own, step);
}

/* ---- pooling ---- */

static pl_code relate_pool(pl_flat *own, pl_step *step) {
  PL_TRY(relate_points(own, step));
  axes_made(own, step)[1] = pl_flat_axes(own, step->in[0])[1];
  return PL_OK;
}

static pl_code write_pool(pl_flat *own, pl_step *step) {
  bool max = strcmp(step->row->op, "MaxPool") == 0, one = true;
  int64_t kernel[2] = {listed(step, "kernel_shape", 0, 1), listed(step, "kernel_shape", 1, 1)};
  bool inside = !max && pl_onnx_integer_of(step->node, "count_include_pad", 0) == 0;
  pl_ir_name names[2];
  pl_ir_attribute attributes[ATTRIBUTES_MAX];
  int32_t x, n = 0;
  PL_TRY(pl_flat_value(own, step, step->in[0], &x));
  const int32_t points = n_points(own, step);
  PL_ASSERT(points <= 2);
  for (int32_t i = 0; i < points; i++) {
    int64_t pads[2];
    pl_onnx_window_pads(step->node, i, points, pl_flat_shape(own, step->in[0])->dims[i + 2], kernel[i], pads);
    one = one && kernel[i] == 1 && listed(step, "strides", i, 1) == 1 && pads[0] == 0;
  }
  if (one) { /* a picture that is as large as is asked for already */
    pl_flat_set(own, step, x);
    return PL_OK;
  }
  PL_TRY(with_points(own, step, &x, names));
  attributes[n++] = pl_ir_text("size", by_points(own, step, "kernel_shape", 1));
  n = sliding(own, step, names, kernel, attributes, n);
  if (inside) attributes[n++] = pl_ir_integer("inside", 1);
  int32_t made = pl_flat_op1(own, max ? "max_pool" : "average_pool", "pool", x, n, attributes);
  made = without_ones(own, step, made, names);
  PL_TRY(settle_points(own, step, names, &made));
  pl_flat_set(own, step, made);
  return PL_OK;
}

static pl_code relate_global(pl_flat *own, pl_step *step) {
  int32_t rank = pl_flat_shape(own, step->out)->rank;
  for (int32_t i = 0; i < rank; i++)
    axes_made(own, step)[i] = i < 2 ? pl_flat_axes(own, step->in[0])[i] : PL_AXIS_NONE;
  for (int32_t i = 2; i < rank; i++)
    if (pl_flat_axes(own, step->in[0])[i] != PL_AXIS_NONE)
      pl_axis_mark(&own->axes, pl_flat_axes(own, step->in[0])[i], PL_AXIS_FIXED);
  return PL_OK;
}

static pl_code write_global(pl_flat *own, pl_step *step) {
  const pl_onnx_abstract *in = pl_flat_shape(own, step->in[0]);
  pl_axis_list over = {0};
  double n = 1;
  int32_t x;
  PL_TRY(pl_flat_value(own, step, step->in[0], &x));
  for (int32_t i = 2; i < in->rank; i++) {
    (void)pl_axis_leaves(&own->axes, pl_flat_axes(own, step->in[0])[i], &over);
    n *= (double)in->dims[i];
  }
  pl_flat_set(own, step, pl_flat_scale(own, pl_flat_over(own, "sum", "mean", x, &over), 1 / n));
  return PL_OK;
}

/* ---- response normalisation over neighbouring channels: x / (bias + alpha * mean of squares) ^ beta ---- */

static pl_code relate_response_norm(pl_flat *own, pl_step *step) {
  int32_t c = pl_flat_axes(own, step->in[0])[1];
  if (c != PL_AXIS_NONE) pl_axis_mark(&own->axes, c, PL_AXIS_CHANNELS | PL_AXIS_FIXED);
  return pl_flat_relate_same(own, step);
}

/* Means of `size` neighbours along channels, (size - 1) / 2 of them in front: zeros beside the first and last count. */
static pl_code mean_of_neighbours(pl_flat *own, const pl_step *step, int64_t size, int32_t a, int32_t *made) {
  long long front = (size - 1) / 2, behind = size - 1 - front;
  pl_axis_list of = {0};
  (void)pl_axis_leaves(&own->axes, pl_flat_axes(own, step->in[0])[1], &of);
  if (of.n == 0) return pl_flat_fail(own, step, "there is one channel: it has no neighbours");
  pl_ir_name name = of.n > 1 ? pl_ir_name_of("joined") : pl_axis_name(&own->axes, of.leaf[0]);
  if (of.n > 1) PL_TRY(pl_flat_join(own, step, &of, name, &a));
  const char *width = pl_arena_printf(own->module->arena, "%lld", (long long)size),
             *before = pl_arena_printf(own->module->arena, "%lld", front),
             *after = pl_arena_printf(own->module->arena, "%lld", behind);
  if (width == NULL || before == NULL || after == NULL) return pl_fail_memory(own->error, "a norm");
  const pl_ir_attribute attributes[] = {pl_ir_names("window", 1, &name), pl_ir_text("size", width),
                                        pl_ir_text("padding", before), pl_ir_text("padding_after", after)};
  *made = pl_flat_op1(own, "average_pool", "neighbours", a, 4, attributes);
  return of.n > 1 ? pl_flat_split(own, step, name, &of, made) : PL_OK;
}

static pl_code write_response_norm(pl_flat *own, pl_step *step) {
  int64_t size = pl_onnx_integer_of(step->node, "size", 0);
  double alpha = pl_onnx_real_of(step->node, "alpha", 1e-4), beta = pl_onnx_real_of(step->node, "beta", 0.75);
  int32_t x, made = 0;
  if (size < 1 || size > 1 << 20) return pl_flat_fail(own, step, "its size is missing, or no number of channels");
  PL_TRY(pl_flat_value(own, step, step->in[0], &x));
  PL_TRY(mean_of_neighbours(own, step, size, pl_flat_op2(own, "multiply", "squares", x, x, 0, NULL), &made));
  made = pl_flat_add_number(own, pl_flat_scale(own, made, alpha), pl_onnx_real_of(step->node, "bias", 1));
  made = pl_flat_scale(own, pl_flat_op1(own, "log", "log", made, 0, NULL), -beta);
  made = pl_flat_op1(own, "exp", "power", made, 0, NULL);
  pl_flat_set(own, step, pl_flat_op2(own, "multiply", "norm", x, made, 0, NULL));
  return PL_OK;
}

/* ---- norms: batch norm by the statistics of the microbatch, as it is trained; instance norm by each sample's ---- */

/* Scales and shifts that a file has as numbers are no weights: GroupNorm is written with ones and zeros in them. */
static pl_code relate_norm(pl_flat *own, pl_step *step) {
  PL_TRY(pl_flat_relate_same(own, step));
  if (step->n_in < 3) return pl_flat_fail(own, step, "it has no scale and shift");
  int32_t c = pl_flat_axes(own, step->in[0])[1];
  for (int32_t k = 1; k < 3; k++)
    if (!pl_flat_is_constant(own, step->in[k])) (void)pl_axis_unite(&own->axes, c, pl_flat_axes(own, step->in[k])[0]);
  if (c != PL_AXIS_NONE) pl_axis_mark(&own->axes, c, PL_AXIS_CHANNELS | PL_AXIS_FIXED);
  return PL_OK;
}

/* Of numbers that are all the same; false: they are not. */
static bool is_one_number(const pl_flat *own, int32_t value, double *number) {
  const pl_onnx_abstract *shape = pl_flat_shape(own, value);
  if (shape->numbers == NULL || pl_onnx_elements(shape) < 1) return false;
  for (int64_t i = 1; i < (int64_t)pl_onnx_elements(shape); i++)
    if (shape->numbers[i] != shape->numbers[0]) return false;
  *number = shape->numbers[0];
  return true;
}

/* Scale and shift, both with the dimensions that one of them has. */
static pl_code norm_operands(pl_flat *own, const pl_step *step, int32_t inputs[3]) {
  double number;
  for (int32_t k = 1; k < 3; k++) {
    if (is_one_number(own, step->in[k], &number)) {
      inputs[k] = pl_flat_constant(own, number, inputs[0]);
      continue;
    }
    if (pl_flat_is_constant(own, step->in[k])) return pl_flat_fail(own, step, "its scale or shift is a constant");
    PL_TRY(pl_flat_value(own, step, step->in[k], &inputs[k]));
    PL_TRY(
        pl_flat_conform(own, step, pl_flat_axes(own, step->in[k])[0], pl_flat_axes(own, step->in[0])[1], &inputs[k]));
  }
  inputs[1] = pl_flat_spread(own, inputs[1], inputs[2]);
  inputs[2] = pl_flat_spread(own, inputs[2], inputs[1]);
  return PL_OK;
}

static pl_code write_norm(pl_flat *own, pl_step *step) {
  bool of_batch = strcmp(step->row->op, "BatchNormalization") == 0;
  int32_t inputs[3];
  pl_axis_list over = {0};
  pl_ir_name names[PL_AXIS_LEAVES_MAX];
  PL_TRY(pl_flat_value(own, step, step->in[0], &inputs[0]));
  if (inputs[0] == PL_IR_NONE) return PL_OK;
  PL_TRY(norm_operands(own, step, inputs));
  for (int32_t i = of_batch ? 0 : 2; i < pl_flat_shape(own, step->in[0])->rank; i++)
    if (i != 1) (void)pl_axis_leaves(&own->axes, pl_flat_axes(own, step->in[0])[i], &over);
  int32_t n_over = pl_flat_names(own, inputs[0], &over, names);
  if (n_over == 0) return pl_flat_fail(own, step, "normalises over nothing");
  const pl_ir_attribute attributes[] = {pl_ir_names("over", n_over, names),
                                        pl_ir_real("epsilon", pl_onnx_real_of(step->node, "epsilon", 1e-5))};
  pl_flat_set(own, step, pl_flat_infer(own, "batch_norm", "norm", 3, inputs, 2, attributes));
  return PL_OK;
}

const pl_flat_row pl_flat_pictures[] = {{"Conv", relate_convolution, write_convolution},
                                        {"ConvTranspose", relate_transposed, write_transposed},
                                        {"MaxPool", relate_pool, write_pool},
                                        {"AveragePool", relate_pool, write_pool},
                                        {"GlobalAveragePool", relate_global, write_global},
                                        {"LRN", relate_response_norm, write_response_norm},
                                        {"BatchNormalization", relate_norm, write_norm},
                                        {"InstanceNormalization", relate_norm, write_norm},
                                        {NULL, NULL, NULL}};
