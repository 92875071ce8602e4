/* Gather (workloads/onnx/flat.h): words of a table, rows by a list of the file, places beside each other. */
#include <string.h>

#include "workloads/onnx/flat.h"

static int32_t *axes_made(pl_flat *own, const pl_step *step) {
  return &own->axis[(size_t)step->out * PL_ONNX_RANK_MAX];
}

/* first, first + 1 ... */
static bool is_run(const pl_onnx_abstract *ids, int64_t *first) {
  int64_t n = (int64_t)pl_onnx_elements(ids);
  if (ids->numbers == NULL || n == 0) return false;
  *first = pl_onnx_integer(ids->numbers[0]);
  for (int64_t i = 0; i < n; i++)
    if (ids->numbers[i] != (double)(*first + i)) return false;
  return true;
}

/* Rows of a weight, by a list that the file has: of a table of relative positions, each as often as pairs of tokens are
 * so far apart. */
static pl_code relate_picks(pl_flat *own, pl_step *step, int32_t axis) {
  const pl_onnx_abstract *from = pl_flat_shape(own, step->in[0]), *ids = pl_flat_shape(own, step->in[1]);
  const int32_t *of = pl_flat_axes(own, step->in[0]), *places = pl_flat_axes(own, step->in[1]);
  int32_t made = 0, *to = axes_made(own, step);
  if (!pl_flat_is_weight(own, step->in[0]))
    return pl_flat_fail(own, step, "picks places that are no run of neighbours, of what is no weight");
  for (int64_t i = 0; i < (int64_t)pl_onnx_elements(ids); i++)
    if (!(ids->numbers[i] >= 0 && ids->numbers[i] < (double)from->dims[axis]))
      return pl_flat_fail(own, step, "picks places that are not there");
  if (own->below[step->in[1]] == 0 || own->below[step->in[1]] > from->dims[axis])
    own->below[step->in[1]] = from->dims[axis];
  pl_axis_mark(&own->axes, of[axis], PL_AXIS_TABLE | PL_AXIS_FIXED);
  for (int32_t i = 0; i < from->rank; i++) {
    if (i != axis) to[made++] = of[i];
    for (int32_t k = 0; i == axis && k < ids->rank; k++)
      to[made++] = places[k];
  }
  return PL_OK;
}

/* The rows that a list of integers says. */
static pl_code write_picks(pl_flat *own, const pl_step *step, int32_t table, int32_t at, int32_t axis) {
  pl_axis_list over = {0};
  (void)pl_axis_leaves(&own->axes, pl_flat_axes(own, step->in[0])[axis], &over);
  if (over.n != 1 || at == PL_IR_NONE || pl_flat_type(own, at)->element != PL_IR_I32)
    return pl_flat_fail(own, step, "picks by what is no integer of the data");
  pl_ir_name name = pl_axis_name(&own->axes, over.leaf[0]);
  const pl_ir_attribute attribute = pl_ir_names("over", 1, &name);
  pl_flat_set(own, step, pl_flat_op2(own, "embedding", "rows", at, table, 1, &attribute));
  return PL_OK;
}

static pl_code relate_gather(pl_flat *own, pl_step *step) {
  const pl_onnx_abstract *from = pl_flat_shape(own, step->in[0]), *ids = pl_flat_shape(own, step->in[1]);
  int32_t axis = pl_onnx_axis(pl_onnx_integer_of(step->node, "axis", 0), from->rank), made = 0,
          *to = axes_made(own, step);
  const int32_t *of = pl_flat_axes(own, step->in[0]);
  int64_t first = 0, n = (int64_t)pl_onnx_elements(ids);
  if (ids->numbers != NULL && !is_run(ids, &first)) return relate_picks(own, step, axis);
  if (first < 0 && n == 1) first += from->dims[axis];
  if (ids->numbers != NULL && (first < 0 || first + n > from->dims[axis]))
    return pl_flat_fail(own, step, "picks places that are not there");
  int64_t *below = &own->below[pl_flat_source(own, step->in[1])];
  if (ids->numbers == NULL && (*below == 0 || *below > from->dims[axis])) *below = from->dims[axis];
  pl_axis_mark(&own->axes, of[axis], ids->numbers == NULL ? PL_AXIS_VOCABULARY : PL_AXIS_TABLE);
  for (int32_t i = 0; i < from->rank; i++) {
    if (i != axis) to[made++] = of[i];
    for (int32_t k = 0; i == axis && k < ids->rank; k++)
      to[made++] = ids->numbers == NULL               ? pl_flat_axes(own, step->in[1])[k]
                   : ids->dims[k] == 1                ? PL_AXIS_NONE
                   : ids->dims[k] == from->dims[axis] ? of[axis]
                                                      : pl_axis_new(&own->axes, ids->dims[k]);
    if (i != axis && pl_flat_is_weight(own, step->in[0]))
      pl_axis_mark(&own->axes, of[i], PL_AXIS_HIDDEN | PL_AXIS_FIXED);
  }
  if (n == 1 && ids->numbers != NULL) pl_axis_mark(&own->axes, of[axis], PL_AXIS_FIXED);
  return PL_OK;
}

static pl_code write_gather(pl_flat *own, pl_step *step) {
  const pl_onnx_abstract *from = pl_flat_shape(own, step->in[0]), *ids = pl_flat_shape(own, step->in[1]);
  int32_t axis = pl_onnx_axis(pl_onnx_integer_of(step->node, "axis", 0), from->rank), table, at, made;
  int32_t of = pl_flat_axes(own, step->in[0])[axis];
  int64_t first = 0, n = (int64_t)pl_onnx_elements(ids);
  PL_TRY(pl_flat_value(own, step, step->in[0], &table));
  if (ids->numbers == NULL) {
    PL_TRY(pl_flat_value(own, step, step->in[1], &at));
    return write_picks(own, step, table, at, axis);
  }
  if (!is_run(ids, &first)) {
    PL_TRY(pl_flat_list(own, step->in[1], &at));
    return write_picks(own, step, table, at, axis);
  }
  if (first < 0) first += from->dims[axis];
  int32_t into = PL_AXIS_NONE;
  for (int32_t k = 0; k < ids->rank; k++)
    if (axes_made(own, step)[axis + k] != PL_AXIS_NONE && ids->dims[k] > 1) into = axes_made(own, step)[axis + k];
  if (n == from->dims[axis] && n > 1) {
    made = table;
  } else {
    made = table;
    PL_TRY(pl_flat_cut(own, step, of, into, first, n, &made));
  }
  pl_flat_set(own, step, made);
  return PL_OK;
}

const pl_flat_row pl_flat_picks[] = {{"Gather", relate_gather, write_gather}, {NULL, NULL, NULL}};
