/* Rows that move values between devices, or take a device's part: they change how a value lies and not what it is
 * (shift apart: it turns it round the ring). What they allow is said here; the executor has their values. */
#include <string.h>

#include "workloads/language/ir_operands.h"

static pl_code same_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  (void)op, (void)error;
  for (int32_t k = 0; k < op->n_outputs; k++)
    outputs[k] = pl_ir_type_whole(&inputs[k]);
  return PL_OK;
}

static pl_code number_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_operand_is_number(op, inputs, 0, error));
  return same_infer(op, inputs, outputs, error);
}

/* The one dimension that `attribute` names. */
static pl_code one_dim(const pl_ir_op *op, const pl_ir_type *inputs, const char *attribute, pl_error *error) {
  const pl_ir_attribute *found = pl_ir_attribute_find(op, attribute);
  if (found == NULL || found->n_names != 1)
    return pl_fail(error, PL_BAD_INPUT, "%s of %s needs one dimension, not %d", attribute, pl_ir_op_name(op),
                   found != NULL ? found->n_names : 0);
  return pl_ir_operand_has_names(op, inputs, 0, attribute, error);
}

static pl_code cutting_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(one_dim(op, inputs, "dim", error));
  return same_infer(op, inputs, outputs, error);
}

static pl_code reduce_scatter_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs,
                                    pl_error *error) {
  PL_TRY(pl_ir_operand_is_number(op, inputs, 0, error));
  return cutting_infer(op, inputs, outputs, error);
}

static pl_code all_to_all_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(one_dim(op, inputs, "from", error));
  PL_TRY(one_dim(op, inputs, "to", error));
  if (pl_ir_name_equal(pl_ir_attribute_find(op, "from")->names[0], pl_ir_attribute_find(op, "to")->names[0]))
    return pl_fail(error, PL_BAD_INPUT, "from and to of all_to_all are both %s",
                   pl_ir_attribute_find(op, "to")->names[0].text);
  return same_infer(op, inputs, outputs, error);
}

/* The part that the result's origin and extents ask for. */
static pl_code cut_compute(const pl_ir_computing *computing, pl_error *error) {
  (void)error;
  const pl_ir_tensor *from = &computing->inputs[0], *to = &computing->outputs[0];
  int64_t index[PL_IR_RANK_MAX] = {0};
  for (int64_t done = 0; done < to->n; done++) {
    int64_t at = 0;
    for (int32_t i = 0; i < from->type.rank; i++)
      at = at * from->extent[i] + to->origin[i] - from->origin[i] + index[i];
    to->data[done] = from->data[at];
    for (int32_t i = to->type.rank - 1; i >= 0 && ++index[i] == to->extent[i]; i--)
      index[i] = 0;
  }
  return PL_OK;
}

/* ---- layouts ---- */

static const char *lies(const pl_ir_type *type, int32_t axis, char text[PL_IR_NAME_MAX + 8]) {
  int8_t on = type->on[axis];
  if (on < 0) return on == PL_IR_SAME ? "the same" : on == PL_IR_PARTIAL ? "a partial sum" : "a partial maximum";
  memcpy(text, "cut on ", 8);
  memcpy(text + 7, type->dims[on].name.text, PL_IR_NAME_MAX);
  return text;
}

static pl_code axes_are_known(const pl_ir_mesh *mesh, const pl_ir_op *op, pl_error *error) {
  const pl_ir_attribute *over = pl_ir_attribute_find(op, "over");
  for (int32_t i = 0; over != NULL && i < over->n_names; i++)
    if (pl_ir_mesh_find(mesh, over->names[i]) < 0)
      return pl_fail(error, PL_BAD_INPUT, "over=%s of %s is no axis of the mesh", over->names[i].text,
                     pl_ir_op_name(op));
  return PL_OK;
}

/* The result lies as the operand does along all axes, or all but those of `over`. */
static pl_code lies_alike(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *in, const pl_ir_type *out,
                          bool over_too, pl_error *error) {
  char is[PL_IR_NAME_MAX + 8], should[PL_IR_NAME_MAX + 8];
  for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
    if (in->on[axis] == out->on[axis]) continue;
    if (!over_too && pl_ir_op_has_name(op, "over", mesh->axes[axis].name)) continue;
    return pl_fail(error, PL_BAD_INPUT, "the result of %s is %s along axis %s and needs to be %s, as its operand is",
                   pl_ir_op_name(op), lies(out, axis, is), mesh->axes[axis].name.text, lies(in, axis, should));
  }
  return PL_OK;
}

static pl_code along_others(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *in, const pl_ir_type *out,
                            pl_error *error) {
  PL_TRY(axes_are_known(mesh, op, error));
  return lies_alike(mesh, op, in, out, false, error);
}

/* Along every axis of `over`, `type` lies as `on` says. */
static pl_code lies_so(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *type, int8_t on, bool result,
                       pl_error *error) {
  char is[PL_IR_NAME_MAX + 8], should[PL_IR_NAME_MAX + 8];
  for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
    if (!pl_ir_op_has_name(op, "over", mesh->axes[axis].name) || type->on[axis] == on) continue;
    pl_ir_type wanted = *type;
    wanted.on[axis] = on;
    return pl_fail(error, PL_BAD_INPUT, "%s of %s is %s along axis %s and needs to be %s",
                   result ? "the result" : "operand 1", pl_ir_op_name(op), lies(type, axis, is),
                   mesh->axes[axis].name.text, lies(&wanted, axis, should));
  }
  return PL_OK;
}

/* Parts of a dimension are numbered with the mesh's first axis outermost, so devices along an axis hold neighbouring
 * parts only where no axis further right cuts the same dimension. */
static pl_code is_innermost(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *type, int32_t dim,
                            pl_error *error) {
  int32_t outer = -1;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
    if (pl_ir_op_has_name(op, "over", mesh->axes[axis].name)) {
      outer = axis;
    } else if (outer >= 0 && type->on[axis] == dim) {
      return pl_fail(error, PL_BAD_INPUT,
                     "%s over %s of dimension %s, which axis %s, further right in the mesh, cuts too: parts along %s "
                     "are no neighbours",
                     pl_ir_op_name(op), mesh->axes[outer].name.text, type->dims[dim].name.text,
                     mesh->axes[axis].name.text, mesh->axes[outer].name.text);
    }
  }
  return PL_OK;
}

static int32_t dim_of(const pl_ir_op *op, const pl_ir_type *type, const char *attribute) {
  return pl_ir_type_find(type, pl_ir_attribute_find(op, attribute)->names[0]);
}

static pl_code all_reduce_layout(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *inputs,
                                 const pl_ir_type *outputs, pl_error *error) {
  PL_TRY(along_others(mesh, op, inputs, outputs, error));
  int8_t on = PL_IR_PARTIAL;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (pl_ir_op_has_name(op, "over", mesh->axes[axis].name) && inputs[0].on[axis] == PL_IR_MAXIMUM) on = PL_IR_MAXIMUM;
  PL_TRY(lies_so(mesh, op, inputs, on, false, error));
  return lies_so(mesh, op, outputs, PL_IR_SAME, true, error);
}

/* Into parts of `dim`, from what `on` says. */
static pl_code into_parts(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *inputs,
                          const pl_ir_type *outputs, int8_t on, pl_error *error) {
  int32_t dim = dim_of(op, outputs, "dim");
  PL_TRY(along_others(mesh, op, inputs, outputs, error));
  PL_TRY(lies_so(mesh, op, inputs, on, false, error));
  PL_TRY(lies_so(mesh, op, outputs, (int8_t)dim, true, error));
  return is_innermost(mesh, op, outputs, dim, error);
}

static pl_code reduce_scatter_layout(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *inputs,
                                     const pl_ir_type *outputs, pl_error *error) {
  return into_parts(mesh, op, inputs, outputs, PL_IR_PARTIAL, error);
}

static pl_code cut_layout(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *inputs,
                          const pl_ir_type *outputs, pl_error *error) {
  return into_parts(mesh, op, inputs, outputs, PL_IR_SAME, error);
}

static pl_code all_gather_layout(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *inputs,
                                 const pl_ir_type *outputs, pl_error *error) {
  int32_t dim = dim_of(op, inputs, "dim");
  PL_TRY(along_others(mesh, op, inputs, outputs, error));
  PL_TRY(lies_so(mesh, op, inputs, (int8_t)dim, false, error));
  PL_TRY(lies_so(mesh, op, outputs, PL_IR_SAME, true, error));
  return is_innermost(mesh, op, inputs, dim, error);
}

static pl_code all_to_all_layout(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *inputs,
                                 const pl_ir_type *outputs, pl_error *error) {
  int32_t from = dim_of(op, inputs, "from"), to = dim_of(op, outputs, "to");
  PL_TRY(along_others(mesh, op, inputs, outputs, error));
  PL_TRY(lies_so(mesh, op, inputs, (int8_t)from, false, error));
  PL_TRY(lies_so(mesh, op, outputs, (int8_t)to, true, error));
  PL_TRY(is_innermost(mesh, op, inputs, from, error));
  return is_innermost(mesh, op, outputs, to, error);
}

/* shift, sum_classes: along every axis. */
static pl_code alike_layout(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *inputs,
                            const pl_ir_type *outputs, pl_error *error) {
  PL_TRY(axes_are_known(mesh, op, error));
  return lies_alike(mesh, op, inputs, outputs, true, error);
}

static pl_code anyhow(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs,
                      pl_error *error) {
  (void)mesh, (void)op, (void)inputs, (void)outputs, (void)error;
  return PL_OK;
}

#define ONE_TO_ONE .least_inputs = 1, .most_inputs = 1, .n_outputs = 1, .flops = pl_ir_no_flops
#define OVER                                                                                                           \
  { "over", PL_IR_NAMES, true, "axes of the mesh" }

const pl_ir_row pl_ir_rows_collective[] = {
    {.name = "all_reduce",
     .meaning = "a partial sum added up, or the largest of a partial maximum, given to all along `over`",
     ONE_TO_ONE,
     .effect = PL_IR_COLLECTIVE,
     .attributes = {OVER},
     .infer = number_infer,
     .layout = all_reduce_layout},
    {.name = "reduce_scatter",
     .meaning = "a partial sum added up, each device along `over` given its part of `dim`",
     ONE_TO_ONE,
     .effect = PL_IR_COLLECTIVE,
     .attributes = {OVER, {"dim", PL_IR_NAMES, true, "the dimension that is cut"}},
     .infer = reduce_scatter_infer,
     .layout = reduce_scatter_layout},
    {.name = "all_gather",
     .meaning = "parts of `dim` along `over` put together, given to all",
     ONE_TO_ONE,
     .effect = PL_IR_COLLECTIVE,
     .attributes = {OVER, {"dim", PL_IR_NAMES, true, "the dimension that becomes whole"}},
     .infer = cutting_infer,
     .layout = all_gather_layout},
    {.name = "all_to_all",
     .meaning = "what was cut on `from` along `over` is cut on `to`",
     ONE_TO_ONE,
     .effect = PL_IR_COLLECTIVE,
     .attributes = {OVER,
                    {"from", PL_IR_NAMES, true, "the dimension that becomes whole"},
                    {"to", PL_IR_NAMES, true, "the dimension that is cut"}},
     .infer = all_to_all_infer,
     .layout = all_to_all_layout},
    {.name = "cut",
     .launches = PL_IR_LAUNCHES_NOTHING,
     .meaning = "this device's part of `dim` along `over`; nothing is exchanged",
     ONE_TO_ONE,
     .attributes = {OVER, {"dim", PL_IR_NAMES, true, "the dimension that is cut"}},
     .infer = cutting_infer,
     .layout = cut_layout,
     .compute = cut_compute},
    {.name = "shift",
     .meaning = "what the device `by` places before along the ring `over` has",
     ONE_TO_ONE,
     .effect = PL_IR_COLLECTIVE,
     .attributes = {OVER, {"by", PL_IR_INTEGER, true, "places; below 0: from the device behind"}},
     .infer = same_infer,
     .layout = alike_layout},
    {.name = "send",
     .meaning = "a to the devices of class `to` with the same other coordinates",
     .least_inputs = 1,
     .most_inputs = 1,
     .effect = PL_IR_SENDS,
     .attributes = {{"to", PL_IR_NAMES, true, "a class"}, {"tag", PL_IR_TEXT, true, "that of the receive"}},
     .layout = anyhow,
     .flops = pl_ir_no_flops},
    {.name = "receive",
     .meaning = "what the devices of class `from` with the same other coordinates send under this tag",
     .n_outputs = 1,
     .typed = true,
     .effect = PL_IR_SENDS,
     .attributes = {{"from", PL_IR_NAMES, true, "a class"}, {"tag", PL_IR_TEXT, true, "that of the send"}},
     .layout = anyhow,
     .flops = pl_ir_no_flops},
    {.name = "sum_classes",
     .meaning = "sum of what the devices of these classes with the same other coordinates have, given to all",
     ONE_TO_ONE,
     .effect = PL_IR_SENDS,
     .attributes = {{"classes", PL_IR_NAMES, true, "those that meet"}, {"tag", PL_IR_TEXT, true, "that of the others"}},
     .infer = number_infer,
     .layout = alike_layout},
    {.name = NULL}};
_Static_assert(sizeof pl_ir_rows_collective / sizeof pl_ir_rows_collective[0] == PL_IR_N_ROWS_COLLECTIVE + 1,
               "as ir_table.h counts");
