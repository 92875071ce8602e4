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
  if (!pl_ir_element_is_number((pl_ir_element)value->type.element)) return false;
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

static int32_t add(pl_ir_differ *differ, int32_t left, int32_t right) {
  const int32_t terms[] = {left, right};
  return pl_ir_differ_op(differ, "add", "dsum", 2, terms, 0, NULL);
}

/* One of products, or a sum of such. */
static bool is_of_products(const pl_ir_differ *differ, int32_t gradient) {
  int32_t at = differ->backward->values[gradient].op;
  if (at == PL_IR_NONE) return false;
  const pl_ir_op *op = &differ->backward->ops[at];
  if (pl_ir_op_is(op, "add")) return is_of_products(differ, op->inputs[0]) && is_of_products(differ, op->inputs[1]);
  return pl_ir_op_is(op, "product");
}

/* What several products read (queries, keys and values of a norm behind the sum) gets a gradient that is one product in
 * frameworks, and one of partial sums where they are split: products are added up first, then to what was there before
 * them. The sum that they were in is left to nobody. */
void pl_ir_differ_give(pl_ir_differ *differ, const pl_ir_op *op, int32_t k, int32_t gradient) {
  gradient = in_order(differ, &differ->forward->values[op->inputs[k]].type, gradient);
  int32_t *sum = &differ->gradients[op->inputs[k]];
  int32_t at = *sum != PL_IR_NONE ? differ->backward->values[*sum].op : PL_IR_NONE;
  const pl_ir_op *before = at != PL_IR_NONE ? &differ->backward->ops[at] : NULL;
  if (*sum == PL_IR_NONE) {
    *sum = gradient;
  } else if (gradient != PL_IR_NONE && before != NULL && pl_ir_op_is(before, "add") &&
             is_of_products(differ, gradient) && is_of_products(differ, before->inputs[1]) &&
             !is_of_products(differ, before->inputs[0])) {
    int32_t rest = before->inputs[0], products = add(differ, before->inputs[1], gradient);
    *sum = products != PL_IR_NONE ? add(differ, rest, products) : PL_IR_NONE;
  } else {
    *sum = add(differ, *sum, gradient);
  }
}
