/* Shape rules of products, convolutions and pooling (see workloads/onnx/onnx_shape.h). */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "workloads/onnx/onnx_shape.h"

/* ---- products ---- */

pl_code pl_onnx_shape_matmul(pl_onnx_op *op) {
  PL_TRY(pl_onnx_shape_needs(op, 2));
  const pl_onnx_abstract *a = op->in[0], *b = op->in[1];
  char first[PL_ONNX_SHAPE_TEXT_BYTES], second[PL_ONNX_SHAPE_TEXT_BYTES];
  bool fits = a->rank >= 2 && b->rank >= 2 && a->dims[a->rank - 1] == b->dims[b->rank - 2];
  if (!fits)
    return pl_onnx_op_fail(op, "%s times %s: matrices that do not fit, or vectors", pl_onnx_shape_text(a, first),
                           pl_onnx_shape_text(b, second));
  pl_onnx_abstract batches = *b;
  PL_TRY(pl_onnx_shape_same(op));
  op->out.rank -= 2;
  batches.rank -= 2;
  PL_TRY(pl_onnx_shape_spread(op, &batches));
  if (op->out.rank + 2 > PL_ONNX_RANK_MAX) return pl_onnx_op_fail(op, "too many dimensions");
  op->out.dims[op->out.rank++] = a->dims[a->rank - 2];
  op->out.dims[op->out.rank++] = b->dims[b->rank - 1];
  return PL_OK;
}

pl_code pl_onnx_shape_gemm(pl_onnx_op *op) {
  PL_TRY(pl_onnx_shape_needs(op, 2));
  const pl_onnx_abstract *a = op->in[0], *b = op->in[1];
  int64_t turned_a = pl_onnx_integer_of(op->node, "transA", 0) != 0,
          turned_b = pl_onnx_integer_of(op->node, "transB", 0) != 0;
  if (a->rank != 2 || b->rank != 2 || a->dims[1 - turned_a] != b->dims[turned_b])
    return pl_onnx_op_fail(op, "matrices that do not fit");
  op->out = (pl_onnx_abstract){.type = a->type, .rank = 2, .dims = {a->dims[turned_a], b->dims[1 - turned_b]}};
  return PL_OK;
}

/* Letters of an equation without an ellipsis: "bhid,bhjd->bhij". */
pl_code pl_onnx_shape_einsum(pl_onnx_op *op) {
  const pl_onnx_attribute *equation = pl_onnx_attribute_find(op->node, "equation");
  int64_t extent[256] = {0};
  if (equation == NULL || equation->text == NULL || op->n_in > 2)
    return pl_onnx_op_fail(op, "an equation of one or two operands is read");
  const char *at = equation->text;
  PL_TRY(pl_onnx_shape_needs(op, op->n_in));
  for (int32_t k = 0; k < op->n_in; k++) {
    int32_t dim = 0;
    for (; *at != 0 && *at != ',' && *at != '-'; at++) {
      if (*at == ' ') continue;
      if (*at == '.' || dim == op->in[k]->rank) return pl_onnx_op_fail(op, "equation '%s' is not read", equation->text);
      int64_t *of = &extent[(unsigned char)*at];
      if (*of != 0 && *of != op->in[k]->dims[dim]) return pl_onnx_op_fail(op, "dimensions %c differ", *at);
      *of = op->in[k]->dims[dim++];
    }
    if (dim != op->in[k]->rank || (k + 1 < op->n_in) != (*at == ','))
      return pl_onnx_op_fail(op, "equation '%s' is not read", equation->text);
    at += *at == ',';
  }
  if (strncmp(at, "->", 2) != 0) return pl_onnx_op_fail(op, "equation '%s' does not say its result", equation->text);
  op->out = (pl_onnx_abstract){.type = op->in[0]->type};
  for (at += 2; *at != 0; at++) {
    if (*at == ' ') continue;
    if (op->out.rank == PL_ONNX_RANK_MAX) return pl_onnx_op_fail(op, "equation '%s' is not read", equation->text);
    if (extent[(unsigned char)*at] == 0)
      return pl_onnx_op_fail(op, "equation '%s' makes a dimension of nothing", equation->text);
    op->out.dims[op->out.rank++] = extent[(unsigned char)*at];
  }
  return PL_OK;
}

/* ---- pictures ---- */

static int64_t listed(const pl_onnx_node *node, const char *name, int32_t index, int64_t otherwise) {
  const pl_onnx_attribute *list = pl_onnx_attribute_find(node, name);
  return list != NULL && index < list->n_integers ? list->integers[index] : otherwise;
}

/* What pads follow from; "NOTSET": they are listed. */
static const char *auto_pad_of(const pl_onnx_node *node) {
  const pl_onnx_attribute *pad = pl_onnx_attribute_find(node, "auto_pad");
  return pad != NULL && pad->text != NULL ? pad->text : "NOTSET";
}

void pl_onnx_window_pads(const pl_onnx_node *node, int32_t axis, int32_t points, int64_t in, int64_t kernel,
                         int64_t pads[2]) {
  const char *rule = auto_pad_of(node);
  bool listed_ones = strcmp(rule, "NOTSET") == 0, lower = strcmp(rule, "SAME_LOWER") == 0;
  pads[0] = listed_ones ? listed(node, "pads", axis, 0) : 0;
  pads[1] = listed_ones ? listed(node, "pads", axis + points, 0) : 0;
  if (!lower && strcmp(rule, "SAME_UPPER") != 0) return;
  int64_t stride = listed(node, "strides", axis, 1), seen = listed(node, "dilations", axis, 1) * (kernel - 1) + 1;
  int64_t lacks = ((in + stride - 1) / stride - 1) * stride + seen - in;
  if (lacks <= 0) return;
  pads[0] = lower ? lacks - lacks / 2 : lacks / 2;
  pads[1] = lacks - pads[0];
}

static pl_code slide(pl_onnx_op *op, int32_t axis, int64_t kernel) {
  int32_t points = op->in[0]->rank - 2;
  const char *rule = auto_pad_of(op->node);
  bool same = strcmp(rule, "SAME_UPPER") == 0 || strcmp(rule, "SAME_LOWER") == 0;
  int64_t stride = listed(op->node, "strides", axis, 1), dilation = listed(op->node, "dilations", axis, 1),
          in = op->in[0]->dims[axis + 2], most = 1 << 20, pads[2];
  if (!same && strcmp(rule, "NOTSET") != 0 && strcmp(rule, "VALID") != 0)
    return pl_onnx_op_fail(op, "auto_pad=%s is not known: NOTSET, VALID, SAME_UPPER or SAME_LOWER", rule);
  if (stride < 1 || dilation < 1 || kernel < 1 || stride > most || dilation > most || kernel > most)
    return pl_onnx_op_fail(op, "strides, dilations or kernel_shape are out of range");
  pl_onnx_window_pads(op->node, axis, points, in, kernel, pads);
  if (pads[0] < 0 || pads[1] < 0 || (!same && (pads[0] > most || pads[1] > most)))
    return pl_onnx_op_fail(op, "pads are out of range");
  int64_t padding = pads[0] + pads[1];
  int64_t seen = dilation * (kernel - 1) + 1, room = in + padding - seen;
  if (room < 0) return pl_onnx_op_fail(op, "a window of %" PRId64 " does not fit into %" PRId64, seen, in + padding);
  bool up = !same && pl_onnx_integer_of(op->node, "ceil_mode", 0) != 0;
  op->out.dims[axis + 2] = (room + (up ? stride - 1 : 0)) / stride + 1;
  return PL_OK;
}

pl_code pl_onnx_shape_convolution(pl_onnx_op *op) {
  PL_TRY(pl_onnx_shape_needs(op, 2));
  const pl_onnx_abstract *x = op->in[0], *w = op->in[1];
  int64_t groups = pl_onnx_integer_of(op->node, "group", 1);
  if (x->rank < 3 || w->rank != x->rank || groups < 1 || x->dims[1] != w->dims[1] * groups)
    return pl_onnx_op_fail(op, "picture and filter do not fit");
  PL_TRY(pl_onnx_shape_same(op));
  op->out.dims[1] = w->dims[0];
  for (int32_t i = 0; i + 2 < x->rank; i++)
    PL_TRY(slide(op, i, w->dims[i + 2]));
  return PL_OK;
}

/* (in - 1) stride + what a window sees, less pads, plus output_padding. */
static pl_code slide_back(pl_onnx_op *op, int32_t axis, int64_t kernel) {
  int32_t points = op->in[0]->rank - 2;
  int64_t stride = listed(op->node, "strides", axis, 1), dilation = listed(op->node, "dilations", axis, 1),
          more = listed(op->node, "output_padding", axis, 0), in = op->in[0]->dims[axis + 2], most = 1 << 20;
  int64_t pads[2] = {listed(op->node, "pads", axis, 0), listed(op->node, "pads", axis + points, 0)};
  if (stride < 1 || dilation < 1 || kernel < 1 || stride > most || dilation > most || kernel > most)
    return pl_onnx_op_fail(op, "strides, dilations or kernel_shape are out of range");
  if (pads[0] < 0 || pads[1] < 0 || pads[0] > most || pads[1] > most || more < 0 || more >= stride)
    return pl_onnx_op_fail(op, "pads or output_padding are out of range");
  if (in > most * most / stride) return pl_onnx_op_fail(op, "its result is too large");
  op->out.dims[axis + 2] = (in - 1) * stride + dilation * (kernel - 1) + 1 - pads[0] - pads[1] + more;
  if (op->out.dims[axis + 2] < 1) return pl_onnx_op_fail(op, "its pads leave nothing");
  return PL_OK;
}

pl_code pl_onnx_shape_transposed(pl_onnx_op *op) {
  PL_TRY(pl_onnx_shape_needs(op, 2));
  const pl_onnx_abstract *x = op->in[0], *w = op->in[1];
  int64_t groups = pl_onnx_integer_of(op->node, "group", 1);
  if (x->rank < 3 || w->rank != x->rank || groups < 1 || x->dims[1] != w->dims[0] || w->dims[0] % groups != 0)
    return pl_onnx_op_fail(op, "picture and filter do not fit");
  if (strcmp(auto_pad_of(op->node), "NOTSET") != 0 || pl_onnx_attribute_find(op->node, "output_shape") != NULL)
    return pl_onnx_op_fail(op, "auto_pad and output_shape are not read; export it with pads and output_padding");
  PL_TRY(pl_onnx_shape_same(op));
  op->out.dims[1] = w->dims[1] * groups;
  for (int32_t i = 0; i + 2 < x->rank; i++)
    PL_TRY(slide_back(op, i, w->dims[i + 2]));
  return PL_OK;
}

pl_code pl_onnx_shape_pool(pl_onnx_op *op) {
  PL_TRY(pl_onnx_shape_same(op));
  if (op->out.rank < 3) return pl_onnx_op_fail(op, "a picture has at least 3 dimensions");
  for (int32_t i = 0; i + 2 < op->in[0]->rank; i++)
    PL_TRY(slide(op, i, listed(op->node, "kernel_shape", i, 0)));
  return PL_OK;
}

static const char *text_of(const pl_onnx_op *op, const char *name, const char *otherwise) {
  const pl_onnx_attribute *text = pl_onnx_attribute_find(op->node, name);
  return text != NULL && text->text != NULL ? text->text : otherwise;
}

/* Whether the places that are looked at make of `times` copies of an element that element. */
static bool repeats(const pl_onnx_op *op, double times) {
  const char *places = text_of(op, "coordinate_transformation_mode", "half_pixel"),
             *nearest = text_of(op, "nearest_mode", "round_prefer_floor");
  if (strcmp(op->node->op, "Upsample") == 0) return true;
  if (strcmp(places, "asymmetric") == 0)
    return strcmp(nearest, "floor") == 0 || (strcmp(nearest, "round_prefer_floor") == 0 && times == 2);
  /* (j + 1/2) / times - 1/2 of the j-th copy is between -1/2 and 1/2, and neither. */
  bool rounds = strcmp(nearest, "round_prefer_floor") == 0 || strcmp(nearest, "round_prefer_ceil") == 0;
  return rounds && (strcmp(places, "half_pixel") == 0 || strcmp(places, "pytorch_half_pixel") == 0);
}

/* Operands: x, scales; or x, regions, scales, sizes, of which one of the last two is there. */
pl_code pl_onnx_shape_resize(pl_onnx_op *op) {
  int32_t at = strcmp(op->node->op, "Upsample") == 0 || op->own->graph->opset < 11 ? 1 : 2;
  bool has_sizes = at == 2 && op->n_in > 3 && op->in[3] != NULL;
  const pl_onnx_abstract *by = has_sizes ? op->in[3] : op->n_in > at ? op->in[at] : NULL;
  if (strcmp(text_of(op, "mode", "nearest"), "nearest") != 0)
    return pl_onnx_op_fail(op, "mode '%s' is not read: only nearest is", text_of(op, "mode", ""));
  if (by == NULL || by->numbers == NULL || by->rank != 1 || by->dims[0] != op->in[0]->rank)
    return pl_onnx_op_fail(op, "its scales are missing, follow from data, or are not one for each dimension");
  PL_TRY(pl_onnx_shape_same(op));
  for (int32_t i = 0; i < op->out.rank; i++) {
    double in = (double)op->in[0]->dims[i], times = has_sizes ? by->numbers[i] / in : by->numbers[i];
    if (!(times >= 1 && times <= 1 << 20) || times != nearbyint(times) || (times > 1 && !repeats(op, times)))
      return pl_onnx_op_fail(op, "dimension %d gets %g times as large: only whole numbers of the nearest are read",
                             i + 1, times);
    if (in * times > 0x1p53) return pl_onnx_op_fail(op, "its result has too many elements to count");
    op->out.dims[i] *= (int64_t)times;
  }
  return PL_OK;
}

pl_code pl_onnx_shape_global_pool(pl_onnx_op *op) {
  PL_TRY(pl_onnx_shape_same(op));
  for (int32_t i = 2; i < op->out.rank; i++)
    op->out.dims[i] = 1;
  return PL_OK;
}
