/* See workloads/language/ir_operands.h. */
#include "workloads/language/ir_operands.h"

#include <inttypes.h>
#include <stdio.h>

const char *pl_ir_op_name(const pl_ir_op *op) {
  return pl_ir_row_at(op->row)->name;
}

const char *pl_ir_shape_text(const pl_ir_type *type, char text[PL_IR_SHAPE_TEXT_BYTES]) {
  int used = snprintf(text, PL_IR_SHAPE_TEXT_BYTES, "[");
  for (int32_t i = 0; i < type->rank; i++)
    used += snprintf(text + used, (size_t)(PL_IR_SHAPE_TEXT_BYTES - used), "%s%s=%" PRId64, i > 0 ? ", " : "",
                     type->dims[i].name.text, type->dims[i].extent);
  (void)snprintf(text + used, (size_t)(PL_IR_SHAPE_TEXT_BYTES - used), "]");
  return text;
}

pl_code pl_ir_operand_is_number(const pl_ir_op *op, const pl_ir_type *inputs, int32_t k, pl_error *error) {
  pl_ir_element element = (pl_ir_element)inputs[k].element;
  if (pl_ir_element_is_number(element)) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "operand %d of %s is %s, which cannot be computed with", k + 1, pl_ir_op_name(op),
                 pl_ir_element_name(element));
}

pl_code pl_ir_operand_is_integer(const pl_ir_op *op, const pl_ir_type *inputs, int32_t k, pl_error *error) {
  if (inputs[k].element == PL_IR_I32) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "operand %d of %s is %s; it is to be i32", k + 1, pl_ir_op_name(op),
                 pl_ir_element_name((pl_ir_element)inputs[k].element));
}

pl_code pl_ir_operands_are_numbers(const pl_ir_op *op, const pl_ir_type *inputs, pl_error *error) {
  for (int32_t k = 0; k < op->n_inputs; k++) {
    PL_TRY(pl_ir_operand_is_number(op, inputs, k, error));
    if (inputs[k].element != inputs[0].element)
      return pl_fail(error, PL_BAD_INPUT, "operand %d of %s is %s and operand 1 is %s: cast one of them", k + 1,
                     pl_ir_op_name(op), pl_ir_element_name(inputs[k].element), pl_ir_element_name(inputs[0].element));
  }
  return PL_OK;
}

static pl_code two_agree(const pl_ir_op *op, const pl_ir_type *inputs, int32_t a, int32_t b, pl_error *error) {
  for (int32_t i = 0; i < inputs[b].rank; i++) {
    const pl_ir_dim *dim = &inputs[b].dims[i];
    int32_t other = pl_ir_type_find(&inputs[a], dim->name);
    if (other >= 0 && inputs[a].dims[other].extent != dim->extent)
      return pl_fail(error, PL_BAD_INPUT,
                     "operand %d of %s has %s=%" PRId64 " and operand %d has %s=%" PRId64
                     ": a dimension that both have needs one extent (rename it where they are not the same)",
                     a + 1, pl_ir_op_name(op), dim->name.text, inputs[a].dims[other].extent, b + 1, dim->name.text,
                     dim->extent);
  }
  return PL_OK;
}

pl_code pl_ir_operands_agree(const pl_ir_op *op, const pl_ir_type *inputs, pl_error *error) {
  for (int32_t b = 1; b < op->n_inputs; b++)
    for (int32_t a = 0; a < b; a++)
      PL_TRY(two_agree(op, inputs, a, b, error));
  return PL_OK;
}

pl_code pl_ir_operand_is_within(const pl_ir_op *op, const pl_ir_type *inputs, int32_t k, int32_t of, pl_error *error) {
  char text[PL_IR_SHAPE_TEXT_BYTES];
  for (int32_t i = 0; i < inputs[k].rank; i++)
    if (pl_ir_type_find(&inputs[of], inputs[k].dims[i].name) < 0)
      return pl_fail(error, PL_BAD_INPUT, "operand %d of %s has dimension %s=%" PRId64 ", which operand %d, %s, lacks",
                     k + 1, pl_ir_op_name(op), inputs[k].dims[i].name.text, inputs[k].dims[i].extent, of + 1,
                     pl_ir_shape_text(&inputs[of], text));
  return two_agree(op, inputs, of, k, error);
}

pl_code pl_ir_operands_match(const pl_ir_op *op, const pl_ir_type *inputs, int32_t a, int32_t b, pl_error *error) {
  PL_TRY(pl_ir_operand_is_within(op, inputs, b, a, error));
  return pl_ir_operand_is_within(op, inputs, a, b, error);
}

pl_code pl_ir_operand_has_names(const pl_ir_op *op, const pl_ir_type *inputs, int32_t k, const char *attribute,
                                pl_error *error) {
  char text[PL_IR_SHAPE_TEXT_BYTES];
  const pl_ir_attribute *names = pl_ir_attribute_find(op, attribute);
  for (int32_t i = 0; names != NULL && i < names->n_names; i++) {
    if (pl_ir_type_find(&inputs[k], names->names[i]) < 0)
      return pl_fail(error, PL_BAD_INPUT, "%s=%s of %s is no dimension of operand %d, which is %s", attribute,
                     names->names[i].text, pl_ir_op_name(op), k + 1, pl_ir_shape_text(&inputs[k], text));
    for (int32_t j = 0; j < i; j++)
      if (pl_ir_name_equal(names->names[i], names->names[j]))
        return pl_fail(error, PL_BAD_INPUT, "%s of %s names %s twice", attribute, pl_ir_op_name(op),
                       names->names[i].text);
  }
  return PL_OK;
}

pl_code pl_ir_written_matches(const pl_ir_op *op, const pl_ir_type *type, const pl_ir_type *written, pl_error *error) {
  char text[PL_IR_SHAPE_TEXT_BYTES], other[PL_IR_SHAPE_TEXT_BYTES];
  bool same = type->rank == written->rank;
  for (int32_t i = 0; same && i < type->rank; i++) {
    int32_t at = pl_ir_type_find(written, type->dims[i].name);
    same = at >= 0 && written->dims[at].extent == type->dims[i].extent;
  }
  if (same) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "result of %s is written as %s, and is %s", pl_ir_op_name(op),
                 pl_ir_shape_text(written, text), pl_ir_shape_text(type, other));
}

bool pl_ir_over_is_opaque(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_name dim) {
  (void)inputs;
  return pl_ir_op_has_name(op, "over", dim);
}

double pl_ir_no_flops(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs) {
  (void)op, (void)inputs, (void)outputs;
  return 0;
}

double pl_ir_flops_of_first(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs) {
  (void)op, (void)outputs;
  return pl_ir_type_elements(&inputs[0]);
}

pl_ir_type pl_ir_type_whole(const pl_ir_type *type) {
  return pl_ir_type_of((pl_ir_element)type->element, type->rank, type->dims);
}

pl_ir_type pl_ir_type_without(const pl_ir_type *type, const pl_ir_op *op, const char *attribute) {
  pl_ir_type left = pl_ir_type_of((pl_ir_element)type->element, 0, NULL);
  for (int32_t i = 0; i < type->rank; i++)
    if (!pl_ir_op_has_name(op, attribute, type->dims[i].name)) left.dims[left.rank++] = type->dims[i];
  return left;
}

pl_ir_type pl_ir_type_without_dim(const pl_ir_type *type, pl_ir_name dim) {
  pl_ir_type left = pl_ir_type_of((pl_ir_element)type->element, 0, NULL);
  for (int32_t i = 0; i < type->rank; i++)
    if (!pl_ir_name_equal(type->dims[i].name, dim)) left.dims[left.rank++] = type->dims[i];
  return left;
}

pl_code pl_ir_op_has_one_name(const pl_ir_op *op, const char *attribute, pl_error *error) {
  const pl_ir_attribute *found = pl_ir_attribute_find(op, attribute);
  if (found != NULL && found->kind == PL_IR_NAMES && found->n_names == 1) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s of %s needs one dimension, not %d", attribute, pl_ir_op_name(op),
                 found != NULL ? found->n_names : 0);
}

pl_ir_name pl_ir_one_name_of(const pl_ir_op *op, const char *attribute) {
  const pl_ir_attribute *found = pl_ir_attribute_find(op, attribute);
  PL_ASSERT(found != NULL && found->n_names == 1);
  return found->names[0];
}
