/* Rows of ops that make values of another extent: constants, and parts of a dimension. */
#include <inttypes.h>
#include <string.h>

#include "workloads/language/ir_differ.h"
#include "workloads/language/ir_operands.h"

static pl_ir_name over_of(const pl_ir_op *op) {
  return pl_ir_attribute_find(op, "over")->names[0];
}

/* ---- shapes ---- */

static pl_code infer_constant(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  (void)op, (void)inputs;
  pl_ir_element element = (pl_ir_element)outputs[0].element;
  if (pl_ir_element_is_number(element)) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "the result of constant cannot be %s", pl_ir_element_name(element));
}

/* `small` is a part of `large`, from place `first` of dimension `over` on. */
static pl_code check_part(const pl_ir_op *op, const pl_ir_type *small, const pl_ir_type *large, pl_error *error) {
  const char *name = pl_ir_row_at(op->row)->name;
  pl_ir_name over = over_of(op);
  int64_t first = pl_ir_integer_of(op, "first", 0);
  if (small->rank != large->rank || small->element != large->element || pl_ir_type_find(small, over) < 0)
    return pl_fail(error, PL_BAD_INPUT, "%s: operand and result have the same element and dimensions, '%s' among them",
                   name, over.text);
  for (int32_t i = 0; i < small->rank; i++) {
    bool is_it = pl_ir_name_equal(small->dims[i].name, over);
    int64_t extent = small->dims[i].extent, whole = large->dims[i].extent;
    if (!pl_ir_name_equal(small->dims[i].name, large->dims[i].name) || (!is_it && extent != whole))
      return pl_fail(error, PL_BAD_INPUT, "%s: operand and result differ in dimension '%s'", name,
                     small->dims[i].name.text);
    if (is_it && (first < 0 || first > whole || extent > whole - first))
      return pl_fail(error, PL_BAD_INPUT, "%s: %" PRId64 " places of '%s' from %" PRId64 " on, and there are %" PRId64,
                     name, extent, over.text, first, whole);
  }
  return PL_OK;
}

static pl_code infer_part(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  return check_part(op, &outputs[0], &inputs[0], error);
}

static pl_code infer_pad(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  return check_part(op, &inputs[0], &outputs[0], error);
}

/* ---- values ---- */

static pl_code compute_constant(const pl_ir_computing *computing, pl_error *error) {
  (void)error;
  double value = pl_ir_real_of(computing->op, "value", 0);
  for (int64_t i = 0; i < computing->outputs[0].n; i++)
    computing->outputs[0].data[i] = value;
  return PL_OK;
}

/* Runs of elements that lie side by side: from dimension `over` on. */
static void copy_runs(const pl_ir_computing *computing, const pl_ir_tensor *from, const pl_ir_tensor *to) {
  const pl_ir_tensor *small = from->n < to->n ? from : to;
  int32_t over = pl_ir_type_find(&from->type, over_of(computing->op));
  int64_t first = pl_ir_integer_of(computing->op, "first", 0), inner = 1, outer = 1;
  for (int32_t i = 0; i < from->type.rank; i++)
    if (i != over) *(i < over ? &outer : &inner) *= from->extent[i];
  int64_t run = small->extent[over] * inner, from_step = from->extent[over] * inner, to_step = to->extent[over] * inner;
  for (int64_t i = 0; i < outer; i++)
    memcpy(to->data + i * to_step + (small == from ? first * inner : 0),
           from->data + i * from_step + (small == from ? 0 : first * inner), (size_t)run * sizeof(double));
}

static pl_code compute_copy(const pl_ir_computing *computing, pl_error *error) {
  (void)error;
  copy_runs(computing, &computing->inputs[0], &computing->outputs[0]);
  return PL_OK;
}

/* ---- derivatives ---- */

static pl_code derive_as(pl_ir_differ *differ, const pl_ir_op *op, const char *row) {
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  if (dy == PL_IR_NONE || !pl_ir_differ_wants(differ, op, 0)) return PL_OK;
  const pl_ir_type *type = &differ->forward->values[op->inputs[0]].type;
  pl_ir_differ_give(differ, op, 0,
                    pl_ir_op_typed(differ->module, differ->backward, row, "da", NULL, 1, &dy, type, op->n_attributes,
                                   op->attributes));
  return PL_OK;
}

static pl_code derive_part(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  return derive_as(differ, op, "pad");
}

static pl_code derive_pad(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  return derive_as(differ, op, "part");
}

/* ---- rows ---- */

#define PART_ATTRIBUTES                                                                                                \
  {                                                                                                                    \
    {.name = "over", .kind = PL_IR_NAMES, .required = true, .meaning = "the dimension that is cut short"}, {           \
      .name = "first", .kind = PL_IR_INTEGER, .required = true, .meaning = "the part's first place of it"              \
    }                                                                                                                  \
  }

const pl_ir_row pl_ir_rows_shape[] = {
    {.name = "constant",
     .launches = PL_IR_LAUNCHES_NOTHING,
     .meaning = "every element is value",
     .n_outputs = 1,
     .typed = true,
     .attributes = {{.name = "value", .kind = PL_IR_REAL, .required = true, .meaning = "of every element"}},
     .infer = infer_constant,
     .flops = pl_ir_no_flops,
     .compute = compute_constant,
     .onnx = "Constant"},
    {.name = "part",
     .meaning = "as many places of a dimension as the written type has, from first on",
     .least_inputs = 1,
     .most_inputs = 1,
     .n_outputs = 1,
     .typed = true,
     .linear = PL_IR_LINEAR_JOINT,
     .attributes = PART_ATTRIBUTES,
     .opaque = pl_ir_over_is_opaque,
     .infer = infer_part,
     .flops = pl_ir_no_flops,
     .compute = compute_copy,
     .derive = derive_part,
     .onnx = "Slice"},
    {.name = "pad",
     .meaning = "a at the places of a dimension from first on, zero elsewhere",
     .least_inputs = 1,
     .most_inputs = 1,
     .n_outputs = 1,
     .typed = true,
     .linear = PL_IR_LINEAR_JOINT,
     .attributes = PART_ATTRIBUTES,
     .opaque = pl_ir_over_is_opaque,
     .infer = infer_pad,
     .flops = pl_ir_no_flops,
     .compute = compute_copy,
     .derive = derive_pad,
     .onnx = "Pad"},
    {.name = NULL}};
_Static_assert(sizeof pl_ir_rows_shape / sizeof pl_ir_rows_shape[0] == PL_IR_N_ROWS_SHAPE + 1, "as ir_table.h counts");
