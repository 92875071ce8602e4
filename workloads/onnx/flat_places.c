/* Ops that move elements (workloads/onnx/flat.h): most are nothing but another list of axes. */
#include <string.h>

#include "workloads/onnx/flat.h"

static int32_t *axes_made(pl_flat *own, const pl_step *step) {
  return &own->axis[(size_t)step->out * PL_ONNX_RANK_MAX];
}

/* The same value, under other axes. */
static pl_code write_view(pl_flat *own, pl_step *step) {
  int32_t a;
  PL_TRY(pl_flat_value(own, step, step->in[0], &a));
  pl_flat_set(own, step, a);
  return PL_OK;
}

/* ---- Reshape and its like: leaves grouped anew ---- */

typedef struct leaves {
  pl_axis_list list;
  int32_t at;
} leaves;

static int64_t extent_of(const pl_flat *own, int32_t leaf) {
  return own->axes.all[pl_axis_find(&own->axes, leaf)].extent;
}

/* The next leaves, of `extent` together; false: they do not come to that. */
static bool take(pl_flat *own, leaves *from, int64_t extent, pl_axis_list *taken) {
  int64_t got = 1;
  if (extent == 1 && from->at < from->list.n && extent_of(own, from->list.leaf[from->at]) == 1)
    taken->leaf[taken->n++] = from->list.leaf[from->at++];
  while (got < extent) {
    if (from->at == from->list.n || taken->n == PL_AXIS_LEAVES_MAX) return false;
    int32_t leaf = from->list.leaf[from->at];
    int64_t has = extent_of(own, leaf), needs = extent / got;
    if (needs % has != 0) {
      if (has % needs != 0 || from->list.n == PL_AXIS_LEAVES_MAX) return false;
      pl_axis_take_apart(&own->axes, leaf, needs);
      if (own->axes.arena->failed) return false;
      pl_axis_list apart = {0};
      (void)pl_axis_leaves(&own->axes, leaf, &apart);
      memmove(&from->list.leaf[from->at + 2], &from->list.leaf[from->at + 1],
              (size_t)(from->list.n - from->at - 1) * sizeof(int32_t));
      from->list.leaf[from->at] = leaf = apart.leaf[0];
      from->list.leaf[from->at + 1] = apart.leaf[1];
      from->list.n++;
      has = needs;
    }
    taken->leaf[taken->n++] = leaf;
    from->at++;
    got *= has;
  }
  return got == extent;
}

/* As many leaves as the graph for more samples has there. False: there is none, or here they do not come to `extent`.
 */
static bool take_as_larger(const pl_flat *own, const pl_step *step, int32_t axis, leaves *from, int64_t extent,
                           pl_axis_list *taken) {
  if (own->larger == NULL) return false;
  const pl_step *like = &own->larger->steps[step - own->steps];
  int32_t n = like->taken[axis];
  int64_t got = 1;
  if (like->node != step->node || like->irregular || from->at + n > from->list.n) return false;
  for (int32_t i = 0; i < n; i++)
    got *= extent_of(own, from->list.leaf[from->at + i]);
  if (got != extent) return false;
  for (int32_t i = 0; i < n; i++)
    taken->leaf[taken->n++] = from->list.leaf[from->at++];
  return true;
}

static pl_code relate_reshape(pl_flat *own, pl_step *step) {
  const pl_onnx_abstract *in = pl_flat_shape(own, step->in[0]), *out = pl_flat_shape(own, step->out);
  int32_t *to = axes_made(own, step);
  leaves from = {.at = 0};
  if (!pl_flat_leaves(own, step->in[0], 0, in->rank, &from.list)) return pl_flat_fail(own, step, "too many dimensions");
  for (int32_t i = 0; i < out->rank && !step->irregular; i++) {
    pl_axis_list taken = {0};
    step->irregular =
        !take_as_larger(own, step, i, &from, out->dims[i], &taken) && !take(own, &from, out->dims[i], &taken);
    while (i + 1 == out->rank && from.at < from.list.n && taken.n < PL_AXIS_LEAVES_MAX)
      taken.leaf[taken.n++] = from.list.leaf[from.at++];
    step->taken[i] = taken.n;
    to[i] = pl_axis_of(&own->axes, &taken);
  }
  if (out->rank == 0 && from.list.n > 0) return pl_flat_fail(own, step, "one sample cannot lose its dimension");
  for (int32_t i = 0; i < out->rank && step->irregular; i++)
    to[i] = out->dims[i] > 1 ? pl_axis_new(&own->axes, out->dims[i]) : PL_AXIS_NONE;
  return PL_OK;
}

/* All of it joined, and taken apart anew: rows and columns that do not nest. */
static pl_code write_reshape(pl_flat *own, pl_step *step) {
  if (!step->irregular) return write_view(own, step);
  return pl_flat_fail(
      own, step,
      "its dimensions do not nest: neither are those of the result made of the operand's, nor the other way round");
}

static pl_code relate_transpose(pl_flat *own, pl_step *step) {
  const pl_onnx_attribute *perm = pl_onnx_attribute_find(step->node, "perm");
  const int32_t *from = pl_flat_axes(own, step->in[0]);
  int32_t rank = pl_flat_shape(own, step->out)->rank;
  for (int32_t i = 0; i < rank; i++)
    axes_made(own, step)[i] = from[perm != NULL ? perm->integers[i] : rank - 1 - i];
  return PL_OK;
}

/* Axes in their order, those of extent 1 put in or left out where the shapes differ. */
static pl_code relate_squeeze(pl_flat *own, pl_step *step) {
  pl_onnx_op op = pl_flat_op(own, step);
  int64_t listed[PL_ONNX_RANK_MAX * 8];
  bool puts = strcmp(step->row->op, "Unsqueeze") == 0, special[PL_ONNX_RANK_MAX] = {false};
  int32_t n = 0, rank = puts ? op.out.rank : op.in[0]->rank, made = 0;
  bool said = pl_onnx_op_integers(&op, 1, "axes", listed, &n);
  for (int32_t i = 0; i < n; i++)
    special[pl_onnx_axis(listed[i], rank)] = true;
  for (int32_t i = 0; !said && !puts && i < rank; i++)
    special[i] = op.in[0]->dims[i] == 1;
  const int32_t *from = pl_flat_axes(own, step->in[0]);
  for (int32_t i = 0; i < rank; i++) {
    if (puts) axes_made(own, step)[i] = special[i] ? PL_AXIS_NONE : from[made++];
    if (!puts && !special[i]) axes_made(own, step)[made++] = from[i];
  }
  return PL_OK;
}

/* A broadcast is nothing but an axis that the value lacks. */
static pl_code relate_expand(pl_flat *own, pl_step *step) {
  const pl_onnx_abstract *in = pl_flat_shape(own, step->in[0]), *out = pl_flat_shape(own, step->out);
  const int32_t *from = pl_flat_axes(own, step->in[0]);
  for (int32_t i = 0; i < out->rank; i++) {
    int32_t at = i - (out->rank - in->rank);
    bool spread = at < 0 || (in->dims[at] == 1 && out->dims[i] > 1);
    axes_made(own, step)[i] = !spread            ? from[at]
                              : out->dims[i] > 1 ? pl_axis_new(&own->axes, out->dims[i])
                                                 : PL_AXIS_NONE;
  }
  return PL_OK;
}

/* ---- parts ---- */

/* Samples and tokens stay whole where they can. */
static bool may_be_apart(const pl_flat *own, const pl_axis_list *of) {
  for (int32_t i = 0; i < of->n; i++)
    if (pl_axis_is(&own->axes, of->leaf[i], PL_AXIS_BATCH | PL_AXIS_TOKENS)) return false;
  return true;
}

/* The axis of places first .. first + count - 1: where these are one of several equal parts, the axis is so many times
 * what the part has; else an axis of its own. */
static int32_t part_axis(pl_flat *own, int32_t axis, int64_t extent, int64_t first, int64_t count) {
  pl_axis_list of = {0}, rest = {0};
  (void)pl_axis_leaves(&own->axes, axis, &of);
  if (count == 1) {
    pl_axis_mark(&own->axes, axis, PL_AXIS_FIXED);
    return PL_AXIS_NONE;
  }
  bool chunk = count > 0 && extent % count == 0 && first % count == 0 && may_be_apart(own, &of);
  if (chunk && of.n == 1) {
    pl_axis_take_apart(&own->axes, of.leaf[0], extent / count);
    of.n = 0;
    (void)pl_axis_leaves(&own->axes, axis, &of);
  }
  if (of.n > 1 && chunk && extent_of(own, of.leaf[0]) == extent / count) {
    pl_axis_mark(&own->axes, of.leaf[0], PL_AXIS_FIXED);
    for (int32_t i = 1; i < of.n; i++)
      rest.leaf[rest.n++] = of.leaf[i];
    return pl_axis_of(&own->axes, &rest);
  }
  pl_axis_mark(&own->axes, axis, PL_AXIS_FIXED);
  return count > 0 ? pl_axis_new(&own->axes, count) : PL_AXIS_NONE;
}

/* Places of one leaf, and that leaf gone if it is one place. */
static int32_t cut_leaf(pl_flat *own, int32_t made, int32_t leaf, int64_t first, int64_t count) {
  pl_ir_name over = pl_axis_name(&own->axes, leaf);
  if (made == PL_IR_NONE || !pl_flat_has(own, made, leaf)) return made; /* the same everywhere along it */
  pl_ir_type type = *pl_flat_type(own, made);
  type.dims[pl_ir_type_find(&type, over)].extent = count;
  const pl_ir_attribute attributes[] = {pl_ir_names("over", 1, &over), pl_ir_integer("first", first)};
  made = pl_flat_typed(own, "part", "part", NULL, 1, &made, &type, 2, attributes);
  const pl_axis_list gone = {.n = 1, .leaf = {leaf}};
  return count == 1 ? pl_flat_over(own, "sum", "part", made, &gone) : made;
}

/* Rows 0, 1 ... of a table of positions: the data says which, so that a sequence may stand in another order. */
static int32_t positions_of(pl_flat *own, int32_t table, int32_t leaf, int64_t rows, pl_ir_name over) {
  const pl_ir_dim dim = pl_flat_dim(own, leaf);
  const pl_ir_type type = pl_ir_type_of(PL_IR_I32, 1, &dim);
  const pl_ir_attribute below = pl_ir_integer("below", rows), attribute = pl_ir_names("over", 1, &over);
  int32_t ids = pl_flat_typed(own, "input", "positions", "positions", 0, NULL, &type, 1, &below);
  return pl_flat_op2(own, "embedding", "rows", ids, table, 1, &attribute);
}

/* Places of a dimension that is made of several (a picture's rows by windows): of them joined. */
static pl_code cut_joined(pl_flat *own, const pl_step *step, const pl_axis_list *of, const pl_axis_list *into,
                          int64_t first, int64_t count, int32_t *made) {
  pl_ir_name joined = pl_ir_name_of("joined");
  PL_TRY(pl_flat_join(own, step, of, joined, made));
  if (*made == PL_IR_NONE || pl_ir_type_find(pl_flat_type(own, *made), joined) < 0)
    return PL_OK; /* the same along it */
  pl_ir_type type = *pl_flat_type(own, *made);
  type.dims[pl_ir_type_find(&type, joined)].extent = count;
  const pl_ir_attribute attributes[] = {pl_ir_names("over", 1, &joined), pl_ir_integer("first", first)};
  *made = pl_flat_typed(own, "part", "part", NULL, 1, made, &type, 2, attributes);
  if (into->n > 1) return pl_flat_split(own, step, joined, into, made);
  *made = pl_flat_rename(own, *made, joined, pl_axis_name(&own->axes, into->leaf[0]));
  return PL_OK;
}

pl_code pl_flat_cut(pl_flat *own, const pl_step *step, int32_t from, int32_t to, int64_t first, int64_t count,
                    int32_t *made) {
  pl_axis_list of = {0}, into = {0};
  (void)pl_axis_leaves(&own->axes, from, &of);
  (void)pl_axis_leaves(&own->axes, to, &into);
  if (count == 1) { /* one place: of every leaf one */
    for (int32_t i = of.n - 1; i >= 0; i--) {
      int64_t extent = extent_of(own, of.leaf[i]);
      *made = cut_leaf(own, *made, of.leaf[i], first % extent, 1);
      first /= extent;
    }
    return PL_OK;
  }
  int64_t rest = 1;
  for (int32_t i = 1; i < of.n; i++)
    rest *= extent_of(own, of.leaf[i]);
  if (of.n > 1 && rest == count) {
    *made = cut_leaf(own, *made, of.leaf[0], first / count, 1);
    pl_axis_list behind = {0};
    for (int32_t i = 1; i < of.n; i++)
      behind.leaf[behind.n++] = of.leaf[i];
    int32_t axis = pl_axis_of(&own->axes, &behind);
    return pl_flat_conform(own, step, axis, to, made);
  }
  if (of.n > 1) return cut_joined(own, step, &of, &into, first, count, made);
  if (of.n == 0) return pl_flat_fail(own, step, "takes a part of a dimension that is not there");
  if (first == 0 && pl_flat_is_weight(own, step->in[0]) && into.n == 1 && pl_axis_is(&own->axes, to, PL_AXIS_TOKENS)) {
    *made = positions_of(own, *made, to, extent_of(own, of.leaf[0]), pl_axis_name(&own->axes, of.leaf[0]));
    return PL_OK;
  }
  *made = cut_leaf(own, *made, of.leaf[0], first, count);
  if (into.n != 1) return pl_flat_fail(own, step, "takes a part that is taken apart later");
  if (*made != PL_IR_NONE && pl_flat_has(own, *made, of.leaf[0]) &&
      !pl_ir_name_equal(pl_axis_name(&own->axes, of.leaf[0]), pl_axis_name(&own->axes, into.leaf[0])))
    *made = pl_flat_rename(own, *made, pl_axis_name(&own->axes, of.leaf[0]), pl_axis_name(&own->axes, into.leaf[0]));
  return PL_OK;
}

static pl_code relate_slice(pl_flat *own, pl_step *step) {
  pl_onnx_op op = pl_flat_op(own, step);
  int64_t first[PL_ONNX_RANK_MAX], by[PL_ONNX_RANK_MAX], count[PL_ONNX_RANK_MAX];
  const int32_t *from = pl_flat_axes(own, step->in[0]);
  if (!pl_onnx_slice(&op, first, by, count)) return pl_flat_fail(own, step, "its part follows from data");
  for (int32_t i = 0; i < op.in[0]->rank; i++) {
    bool whole = count[i] == op.in[0]->dims[i];
    if (by[i] != 1 && count[i] > 1) return pl_flat_fail(own, step, "takes every %lld-th element", (long long)by[i]);
    axes_made(own, step)[i] = whole ? from[i] : part_axis(own, from[i], op.in[0]->dims[i], first[i], count[i]);
  }
  return PL_OK;
}

static pl_code write_slice(pl_flat *own, pl_step *step) {
  pl_onnx_op op = pl_flat_op(own, step);
  int64_t first[PL_ONNX_RANK_MAX], by[PL_ONNX_RANK_MAX], count[PL_ONNX_RANK_MAX];
  int32_t a;
  PL_TRY(pl_flat_value(own, step, step->in[0], &a));
  (void)pl_onnx_slice(&op, first, by, count);
  for (int32_t i = 0; i < op.in[0]->rank; i++)
    if (count[i] != op.in[0]->dims[i])
      PL_TRY(
          pl_flat_cut(own, step, pl_flat_axes(own, step->in[0])[i], axes_made(own, step)[i], first[i], count[i], &a));
  pl_flat_set(own, step, a);
  return PL_OK;
}

static pl_code relate_split(pl_flat *own, pl_step *step) {
  const pl_onnx_abstract *in = pl_flat_shape(own, step->in[0]);
  int32_t axis = pl_onnx_axis(pl_onnx_integer_of(step->node, "axis", 0), in->rank);
  int64_t first = 0;
  const int32_t *from = pl_flat_axes(own, step->in[0]);
  for (int32_t k = 0; k < step->node->n_outputs; k++) {
    int32_t value = step->node->outputs[k];
    if (value == PL_ONNX_NONE) return pl_flat_fail(own, step, "leaves out a part");
    int64_t count = pl_flat_shape(own, value)->dims[axis];
    int32_t *to = &own->axis[(size_t)value * PL_ONNX_RANK_MAX];
    memcpy(to, from, PL_ONNX_RANK_MAX * sizeof(*to));
    if (count != in->dims[axis]) to[axis] = part_axis(own, from[axis], in->dims[axis], first, count);
    own->has_axes[value] = true;
    first += count;
  }
  return PL_OK;
}

static pl_code write_split(pl_flat *own, pl_step *step) {
  const pl_onnx_abstract *in = pl_flat_shape(own, step->in[0]);
  int32_t axis = pl_onnx_axis(pl_onnx_integer_of(step->node, "axis", 0), in->rank), a;
  int64_t first = 0;
  PL_TRY(pl_flat_value(own, step, step->in[0], &a));
  for (int32_t k = 0; k < step->node->n_outputs; k++) {
    int32_t value = step->node->outputs[k], part = a;
    int64_t count = pl_flat_shape(own, value)->dims[axis];
    if (count != in->dims[axis])
      PL_TRY(pl_flat_cut(own, step, pl_flat_axes(own, step->in[0])[axis], pl_flat_axes(own, value)[axis], first, count,
                         &part));
    own->made[value] = part;
    first += count;
  }
  return PL_OK;
}

/* ---- Concat ---- */

/* Several equal parts: so many times what one has. */
static pl_code relate_concat(pl_flat *own, pl_step *step) {
  const pl_onnx_abstract *out = pl_flat_shape(own, step->out);
  int32_t axis = pl_onnx_axis(pl_onnx_integer_of(step->node, "axis", 0), out->rank), *to = axes_made(own, step);
  bool equal = step->n_in > 1;
  for (int32_t k = 0; k < step->n_in; k++)
    equal = equal && pl_flat_shape(own, step->in[k])->dims[axis] * step->n_in == out->dims[axis];
  for (int32_t i = 0; i < out->rank; i++) {
    to[i] = PL_AXIS_NONE;
    for (int32_t k = 0; k < step->n_in; k++) {
      int32_t one = pl_flat_axes(own, step->in[k])[i];
      if (i == axis && !equal) continue;
      if (to[i] == PL_AXIS_NONE) to[i] = one;
      if (to[i] != one && !pl_axis_unite(&own->axes, to[i], one))
        return pl_flat_fail(own, step, "operands do not agree in dimension %d", i + 1);
    }
  }
  if (step->n_in == 1) return pl_flat_relate_same(own, step);
  pl_axis_list made = {0};
  if (equal) {
    made.leaf[made.n++] = pl_axis_new(&own->axes, step->n_in);
    if (made.leaf[0] != PL_AXIS_NONE) pl_axis_mark(&own->axes, made.leaf[0], PL_AXIS_FIXED);
    (void)pl_axis_leaves(&own->axes, to[axis], &made);
    step->column = made.leaf[0];
    to[axis] = pl_axis_of(&own->axes, &made);
    return PL_OK;
  }
  to[axis] = pl_axis_new(&own->axes, out->dims[axis]);
  for (int32_t k = 0; k < step->n_in; k++) {
    pl_axis_list of = {0};
    (void)pl_axis_leaves(&own->axes, pl_flat_axes(own, step->in[k])[axis], &of);
    if (of.n == 1 && to[axis] != PL_AXIS_NONE) pl_axis_same_name(&own->axes, to[axis], of.leaf[0]);
  }
  pl_axis_mark(&own->axes, to[axis], PL_AXIS_FIXED);
  return PL_OK;
}

/* `value` with the dimension that parts are put one behind the other along. */
static pl_code with_dim(pl_flat *own, pl_ir_dim dim, int32_t *made) {
  pl_ir_type type = *pl_flat_type(own, *made);
  if (pl_ir_type_find(&type, dim.name) >= 0) return PL_OK;
  type.dims[type.rank++] = dim;
  *made = pl_flat_typed(own, "spread", "spread", NULL, 1, made, &type, 0, NULL);
  return PL_OK;
}

/* The dimension that a part is put behind others along, under the name of all. */
static pl_code call_part(pl_flat *own, const pl_step *step, int32_t axis, pl_ir_name name, int32_t *made) {
  pl_axis_list of = {0};
  (void)pl_axis_leaves(&own->axes, axis, &of);
  if (of.n > 1 && *made != PL_IR_NONE) return pl_flat_join(own, step, &of, name, made);
  if (of.n == 0 || *made == PL_IR_NONE || pl_ir_name_equal(pl_axis_name(&own->axes, of.leaf[0]), name)) return PL_OK;
  if (pl_flat_has(own, *made, of.leaf[0]))
    *made = pl_flat_rename(own, *made, pl_axis_name(&own->axes, of.leaf[0]), name);
  return PL_OK;
}

static pl_code write_concat(pl_flat *own, pl_step *step) {
  const pl_onnx_abstract *out = pl_flat_shape(own, step->out);
  int32_t axis = pl_onnx_axis(pl_onnx_integer_of(step->node, "axis", 0), out->rank), inputs[PL_STEP_INPUTS_MAX],
          widest = 0;
  bool equal = step->column != PL_AXIS_NONE;
  pl_axis_list over = {0};
  (void)pl_axis_leaves(&own->axes, axes_made(own, step)[axis], &over);
  if (step->n_in > PL_STEP_INPUTS_MAX || over.n == 0)
    return pl_flat_fail(own, step, "has %d operands; at most %d are read", step->n_in, PL_STEP_INPUTS_MAX);
  pl_ir_name name =
      !equal && over.n > 1 ? pl_ir_name_of("joined") : pl_axis_name(&own->axes, equal ? step->column : over.leaf[0]);
  for (int32_t k = 0; k < step->n_in; k++) {
    PL_TRY(pl_flat_value(own, step, step->in[k], &inputs[k]));
    for (int32_t i = 0; i < out->rank; i++)
      if (i != axis)
        PL_TRY(pl_flat_conform(own, step, pl_flat_axes(own, step->in[k])[i], axes_made(own, step)[i], &inputs[k]));
    int64_t extent = equal ? 1 : pl_flat_shape(own, step->in[k])->dims[axis];
    if (!equal) PL_TRY(call_part(own, step, pl_flat_axes(own, step->in[k])[axis], name, &inputs[k]));
    if (inputs[k] == PL_IR_NONE || pl_flat_type(own, inputs[k])->rank == PL_IR_RANK_MAX)
      return pl_flat_fail(own, step, "too many dimensions");
    PL_TRY(with_dim(own, (pl_ir_dim){name, extent}, &inputs[k]));
    if (inputs[k] == PL_IR_NONE) return PL_OK;
    if (pl_flat_type(own, inputs[k])->rank > pl_flat_type(own, inputs[widest])->rank) widest = k;
  }
  if (step->n_in == 1) {
    pl_flat_set(own, step, inputs[0]);
    return PL_OK;
  }
  for (int32_t k = 0; k < step->n_in; k++) /* what one of them is broadcast along, all are */
    inputs[k] = pl_flat_spread(own, inputs[k], inputs[widest]);
  const pl_ir_attribute attribute = pl_ir_names("over", 1, &name);
  for (int32_t k = 0; k < step->n_in; k++)
    if (inputs[k] == PL_IR_NONE) return PL_OK;
  int32_t made = pl_flat_infer(own, "concatenate", "joined", step->n_in, inputs, 1, &attribute);
  if (!equal && over.n > 1) PL_TRY(pl_flat_split(own, step, name, &over, &made));
  pl_flat_set(own, step, made);
  return PL_OK;
}

const pl_flat_row pl_flat_places[] = {
    {"Reshape", relate_reshape, write_reshape},  {"Flatten", relate_reshape, write_reshape},
    {"Transpose", relate_transpose, write_view}, {"Unsqueeze", relate_squeeze, write_view},
    {"Squeeze", relate_squeeze, write_view},     {"Expand", relate_expand, write_view},
    {"Slice", relate_slice, write_slice},        {"Split", relate_split, write_split},
    {"Concat", relate_concat, write_concat},     {NULL, NULL, NULL}};
