/* See workloads/language/ir_differ.h. */
#include "workloads/language/ir_differ.h"

#include <string.h>

int32_t pl_ir_differ_gradient(const pl_ir_differ *differ, const pl_ir_op *op, int32_t k) {
  return differ->gradients[op->first_output + k];
}

int32_t pl_ir_differ_value(pl_ir_differ *differ, int32_t value) {
  if (differ->seen[value] == PL_IR_NONE) differ->seen[value] = differ->see(differ, value);
  return differ->seen[value];
}

bool pl_ir_differ_wants(const pl_ir_differ *differ, const pl_ir_op *op, int32_t k) {
  const pl_ir_value *value = &differ->forward->values[op->inputs[k]];
  if (value->type.element == PL_IR_I32) return false;
  return value->op == PL_IR_NONE || !pl_ir_op_is(&differ->forward->ops[value->op], "input");
}

int32_t pl_ir_differ_op(pl_ir_differ *differ, const char *name_of_row, const char *name, int32_t n_inputs,
                        const int32_t *inputs, int32_t n_attributes, const pl_ir_attribute *attributes) {
  return pl_ir_op_infer(differ->module, differ->backward, name_of_row, name, n_inputs, inputs, n_attributes,
                        attributes);
}

/* The gradient in the value's own order of dimensions. */
static int32_t in_order(pl_ir_differ *differ, const pl_ir_type *own, int32_t gradient) {
  if (gradient == PL_IR_NONE || pl_ir_type_same_shape(&differ->backward->values[gradient].type, own)) return gradient;
  const pl_ir_type whole = pl_ir_type_of((pl_ir_element)own->element, own->rank, own->dims);
  return pl_ir_op_typed(differ->module, differ->backward, "spread", "dordered", NULL, 1, &gradient, &whole, 0, NULL);
}

void pl_ir_differ_give(pl_ir_differ *differ, const pl_ir_op *op, int32_t k, int32_t gradient) {
  gradient = in_order(differ, &differ->forward->values[op->inputs[k]].type, gradient);
  int32_t *sum = &differ->gradients[op->inputs[k]];
  if (*sum == PL_IR_NONE) {
    *sum = gradient;
    return;
  }
  const int32_t terms[] = {*sum, gradient};
  *sum = pl_ir_differ_op(differ, "add", "dsum", 2, terms, 0, NULL);
}
