/* Rows of halos: parts of a dimension with what lies beside them. Where the dimension is cut, the devices along `over`
 * have a part each, and neighbours exchange what the other lacks; the executor has their values. */
#include "workloads/language/ir_differ.h"
#include "workloads/language/ir_layout.h"
#include "workloads/language/ir_operands.h"

/* `apart` has the two dimensions that `to` names where `whole` has `dim`. */
static pl_code check_shapes(const pl_ir_op *op, const pl_ir_type *whole, const pl_ir_type *apart, pl_error *error) {
  char text[PL_IR_SHAPE_TEXT_BYTES], other[PL_IR_SHAPE_TEXT_BYTES];
  const pl_ir_attribute *to = pl_ir_attribute_find(op, "to");
  PL_TRY(pl_ir_op_has_one_name(op, "dim", error));
  PL_TRY(pl_ir_operand_has_names(op, whole, 0, "dim", error));
  const pl_ir_type rests[] = {pl_ir_type_without(whole, op, "dim"), pl_ir_type_without(apart, op, "to")};
  bool fits = to->n_names == 2 && pl_ir_type_find(apart, to->names[0]) >= 0 &&
              pl_ir_type_find(apart, to->names[1]) >= 0 && apart->rank == rests[0].rank + 2 &&
              whole->element == apart->element && pl_ir_written_matches(op, &rests[0], &rests[1], NULL) == PL_OK;
  if (!fits)
    return pl_fail(error, PL_BAD_INPUT, "%s of %s and %s: `to` names two dimensions, parts and rows, in place of `dim`",
                   pl_ir_op_name(op), pl_ir_shape_text(whole, text), pl_ir_shape_text(apart, other));
  int64_t parts = apart->dims[pl_ir_type_find(apart, to->names[0])].extent;
  if (whole->dims[pl_ir_type_find(whole, pl_ir_one_name_of(op, "dim"))].extent % parts == 0) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s: %lld parts do not divide %s", pl_ir_op_name(op), (long long)parts,
                 pl_ir_shape_text(whole, text));
}

static pl_code infer_halo(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_operands_are_numbers(op, inputs, error));
  outputs[0] = pl_ir_type_whole(&outputs[0]);
  return check_shapes(op, &inputs[0], &outputs[0], error);
}

static pl_code infer_halo_backward(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_operands_are_numbers(op, inputs, error));
  outputs[0] = pl_ir_type_whole(&outputs[0]);
  return check_shapes(op, &outputs[0], &inputs[0], error);
}

static pl_ir_name halo_called(const pl_ir_op *op, pl_ir_name dim) {
  return pl_ir_op_has_name(op, "dim", dim) ? pl_ir_attribute_find(op, "to")->names[0] : dim;
}

static pl_ir_name halo_backward_called(const pl_ir_op *op, pl_ir_name dim) {
  bool is_parts = pl_ir_name_equal(pl_ir_attribute_find(op, "to")->names[0], dim);
  return is_parts ? pl_ir_one_name_of(op, "dim") : dim;
}

/* The rows of a part are whole. */
static bool is_rows(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_name dim) {
  (void)inputs;
  const pl_ir_attribute *to = pl_ir_attribute_find(op, "to");
  return to->n_names == 2 && pl_ir_name_equal(to->names[1], dim);
}

/* The one rule; and `over` are the axes that cut parts. */
static pl_code layout(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs,
                      pl_error *error) {
  pl_ir_name parts = pl_ir_attribute_find(op, "to")->names[0];
  const pl_ir_type *apart = pl_ir_type_find(&outputs[0], parts) >= 0 ? &outputs[0] : &inputs[0];
  for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
    PL_TRY(pl_ir_layout_check_axis(mesh, op, axis, inputs, outputs, error));
    bool cuts = apart->on[axis] >= 0 && pl_ir_name_equal(apart->dims[apart->on[axis]].name, parts);
    if (cuts != pl_ir_op_has_name(op, "over", mesh->axes[axis].name))
      return pl_fail(error, PL_BAD_INPUT, "axis %s %s %s of %s, and `over` %s", mesh->axes[axis].name.text,
                     cuts ? "cuts" : "does not cut", parts.text, pl_ir_op_name(op),
                     cuts ? "does not name it" : "names it");
  }
  return PL_OK;
}

static pl_code derive_halo(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  if (dy == PL_IR_NONE || !pl_ir_differ_wants(differ, op, 0)) return PL_OK;
  const pl_ir_type *type = &differ->forward->values[op->inputs[0]].type;
  pl_ir_differ_give(differ, op, 0,
                    pl_ir_op_typed(differ->module, differ->backward, "halo_backward", "da", NULL, 1, &dy, type,
                                   op->n_attributes, op->attributes));
  return PL_OK;
}

#define HALO                                                                                                           \
  .least_inputs = 1, .most_inputs = 1, .n_outputs = 1, .typed = true, .effect = PL_IR_COLLECTIVE,                      \
  .flops = pl_ir_no_flops, .opaque = is_rows, .layout = layout,                                                        \
  .attributes = {{"dim", PL_IR_NAMES, true, "the dimension that is taken apart"},                                      \
                 {"to", PL_IR_NAMES, true, "parts, and the rows of a part"},                                           \
                 {"first", PL_IR_INTEGER, true, "where the first part begins; below 0: outside"},                      \
                 {"step", PL_IR_INTEGER, true, "from where a part begins to where the next does"},                     \
                 {"lowest", PL_IR_INTEGER, false, "1: outside is nothing that a maximum would take; else zero"},       \
                 {"over", PL_IR_NAMES, false, "axes that cut the parts"}}

const pl_ir_row pl_ir_rows_halo[] = {
    {.name = "halo",
     .meaning = "y[p, i] = a[first + p step + i], or nothing outside: parts of `dim` with what lies beside them",
     HALO,
     .called = halo_called,
     .infer = infer_halo,
     .derive = derive_halo},
    {.name = "halo_backward",
     .meaning = "da[j] = sum of dy[p, i] where j = first + p step + i",
     HALO,
     .linear = PL_IR_LINEAR_JOINT,
     .called = halo_backward_called,
     .infer = infer_halo_backward},
    {.name = NULL}};
_Static_assert(sizeof pl_ir_rows_halo / sizeof pl_ir_rows_halo[0] == PL_IR_N_ROWS_HALO + 1, "as ir_table.h counts");
