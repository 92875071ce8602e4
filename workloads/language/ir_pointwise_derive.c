/* Derivatives of the pointwise rows: see workloads/language/ir_pointwise.h and ir_differ.h. */
#include "workloads/language/ir_differ.h"
#include "workloads/language/ir_pointwise.h"

static const pl_ir_type *operand_type(const pl_ir_differ *differ, const pl_ir_op *op, int32_t k) {
  return &differ->forward->values[op->inputs[k]].type;
}

static int32_t made(pl_ir_differ *differ, const char *row, const char *name, int32_t a, int32_t b) {
  return pl_ir_differ_op(differ, row, name, 2, (const int32_t[]){a, b}, 0, NULL);
}

static int32_t scaled(pl_ir_differ *differ, int32_t a, double by) {
  const pl_ir_attribute factor = pl_ir_real("by", by);
  return pl_ir_differ_op(differ, "scale", "da", 1, &a, 1, &factor);
}

/* Dimensions of operand 0 that operand 1 lacks. */
static int32_t broadcast_dims(const pl_ir_differ *differ, const pl_ir_op *op, pl_ir_name over[PL_IR_RANK_MAX]) {
  const pl_ir_type *a = operand_type(differ, op, 0), *b = operand_type(differ, op, 1);
  int32_t n = 0;
  for (int32_t i = 0; i < a->rank; i++)
    if (pl_ir_type_find(b, a->dims[i].name) < 0) over[n++] = a->dims[i].name;
  return n;
}

/* The gradient of operand 1, spread over operand 0: the sum along what it lacks. */
static int32_t summed(pl_ir_differ *differ, const pl_ir_op *op, int32_t gradient) {
  pl_ir_name over[PL_IR_RANK_MAX] = {{{0}}};
  int32_t n = broadcast_dims(differ, op, over);
  const pl_ir_attribute attribute = pl_ir_names("over", n, over);
  return n == 0 ? gradient : pl_ir_differ_op(differ, "sum", "db", 1, &gradient, 1, &attribute);
}

/* The same of a times b. */
static int32_t summed_product(pl_ir_differ *differ, const pl_ir_op *op, int32_t a, int32_t b) {
  pl_ir_name over[PL_IR_RANK_MAX] = {{{0}}};
  int32_t n = broadcast_dims(differ, op, over);
  const pl_ir_attribute attribute = pl_ir_names("over", n, over);
  if (n == 0) return made(differ, "multiply", "db", a, b);
  return pl_ir_differ_op(differ, "product", "db", 2, (const int32_t[]){a, b}, 1, &attribute);
}

pl_code pl_ir_derive_add(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  if (pl_ir_differ_wants(differ, op, 0)) pl_ir_differ_give(differ, op, 0, dy);
  if (pl_ir_differ_wants(differ, op, 1)) pl_ir_differ_give(differ, op, 1, summed(differ, op, dy));
  return PL_OK;
}

pl_code pl_ir_derive_subtract(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  if (pl_ir_differ_wants(differ, op, 0)) pl_ir_differ_give(differ, op, 0, dy);
  if (pl_ir_differ_wants(differ, op, 1)) pl_ir_differ_give(differ, op, 1, scaled(differ, summed(differ, op, dy), -1));
  return PL_OK;
}

pl_code pl_ir_derive_multiply(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  if (pl_ir_differ_wants(differ, op, 0))
    pl_ir_differ_give(differ, op, 0, made(differ, "multiply", "da", dy, pl_ir_differ_value(differ, op->inputs[1])));
  if (pl_ir_differ_wants(differ, op, 1))
    pl_ir_differ_give(differ, op, 1, summed_product(differ, op, pl_ir_differ_value(differ, op->inputs[0]), dy));
  return PL_OK;
}

/* da = dy / b, db = - sum of dy y / b. */
pl_code pl_ir_derive_divide(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  int32_t b = pl_ir_differ_value(differ, op->inputs[1]);
  if (pl_ir_differ_wants(differ, op, 0)) pl_ir_differ_give(differ, op, 0, made(differ, "divide", "da", dy, b));
  if (!pl_ir_differ_wants(differ, op, 1)) return PL_OK;
  int32_t sum = summed_product(differ, op, dy, pl_ir_differ_value(differ, op->first_output));
  pl_ir_differ_give(differ, op, 1, scaled(differ, made(differ, "divide", "db", sum, b), -1));
  return PL_OK;
}

/* scale and dropout: the same op once more. */
pl_code pl_ir_derive_again(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  if (!pl_ir_differ_wants(differ, op, 0)) return PL_OK;
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  pl_ir_differ_give(
      differ, op, 0,
      pl_ir_differ_op(differ, pl_ir_row_at(op->row)->name, "da", 1, &dy, op->n_attributes, op->attributes));
  return PL_OK;
}

static int32_t typed(pl_ir_differ *differ, const char *row, int32_t input, const pl_ir_type *type) {
  const pl_ir_type whole = pl_ir_type_of((pl_ir_element)type->element, type->rank, type->dims);
  return pl_ir_op_typed(differ->module, differ->backward, row, "da", NULL, 1, &input, &whole, 0, NULL);
}

pl_code pl_ir_derive_sum(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  if (pl_ir_differ_wants(differ, op, 0))
    pl_ir_differ_give(differ, op, 0,
                      typed(differ, "spread", pl_ir_differ_gradient(differ, op, 0), operand_type(differ, op, 0)));
  return PL_OK;
}

pl_code pl_ir_derive_cast(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  if (pl_ir_differ_wants(differ, op, 0))
    pl_ir_differ_give(differ, op, 0,
                      typed(differ, "cast", pl_ir_differ_gradient(differ, op, 0), operand_type(differ, op, 0)));
  return PL_OK;
}

pl_code pl_ir_derive_spread(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  if (!pl_ir_differ_wants(differ, op, 0)) return PL_OK;
  const pl_ir_type *a = operand_type(differ, op, 0), *y = &differ->forward->values[op->first_output].type;
  pl_ir_name over[PL_IR_RANK_MAX] = {{{0}}};
  int32_t n = 0, dy = pl_ir_differ_gradient(differ, op, 0);
  for (int32_t i = 0; i < y->rank; i++)
    if (pl_ir_type_find(a, y->dims[i].name) < 0) over[n++] = y->dims[i].name;
  const pl_ir_attribute attribute = pl_ir_names("over", n, over);
  pl_ir_differ_give(differ, op, 0, n == 0 ? dy : pl_ir_differ_op(differ, "sum", "da", 1, &dy, 1, &attribute));
  return PL_OK;
}

pl_code pl_ir_derive_rename(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  if (!pl_ir_differ_wants(differ, op, 0)) return PL_OK;
  const pl_ir_attribute back[] = {pl_ir_names("from", 1, pl_ir_attribute_find(op, "to")->names),
                                  pl_ir_names("to", 1, pl_ir_attribute_find(op, "from")->names)};
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  pl_ir_differ_give(differ, op, 0, pl_ir_differ_op(differ, "rename", "da", 1, &dy, 2, back));
  return PL_OK;
}

/* f(other, dy), `other` being the operand or the output. */
static pl_code derive_with(pl_ir_differ *differ, const pl_ir_op *op, const char *row, bool of_output, bool dy_first) {
  if (!pl_ir_differ_wants(differ, op, 0)) return PL_OK;
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  int32_t other = pl_ir_differ_value(differ, of_output ? op->first_output : op->inputs[0]);
  pl_ir_differ_give(differ, op, 0, made(differ, row, "da", dy_first ? dy : other, dy_first ? other : dy));
  return PL_OK;
}

pl_code pl_ir_derive_gelu(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  if (!pl_ir_differ_wants(differ, op, 0)) return PL_OK;
  const int32_t inputs[] = {pl_ir_differ_value(differ, op->inputs[0]), pl_ir_differ_gradient(differ, op, 0)};
  pl_ir_differ_give(differ, op, 0,
                    pl_ir_differ_op(differ, "gelu_backward", "da", 2, inputs, op->n_attributes, op->attributes));
  return PL_OK;
}

pl_code pl_ir_derive_silu(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  return derive_with(differ, op, "silu_backward", false, false);
}

pl_code pl_ir_derive_sigmoid(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  return derive_with(differ, op, "sigmoid_backward", true, false);
}

pl_code pl_ir_derive_softplus(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  return derive_with(differ, op, "softplus_backward", false, false);
}

pl_code pl_ir_derive_hard_sigmoid(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  return derive_with(differ, op, "hard_sigmoid_backward", false, false);
}

pl_code pl_ir_derive_hard_swish(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  return derive_with(differ, op, "hard_swish_backward", false, false);
}

pl_code pl_ir_derive_relu(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  return derive_with(differ, op, "relu_backward", true, false);
}

pl_code pl_ir_derive_tanh(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  return derive_with(differ, op, "tanh_backward", true, false);
}

pl_code pl_ir_derive_exp(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  return derive_with(differ, op, "multiply", true, true);
}

pl_code pl_ir_derive_log(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  return derive_with(differ, op, "divide", false, true);
}

/* - dy y^2 */
pl_code pl_ir_derive_reciprocal(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  if (!pl_ir_differ_wants(differ, op, 0)) return PL_OK;
  int32_t y = pl_ir_differ_value(differ, op->first_output);
  int32_t once = made(differ, "multiply", "da", pl_ir_differ_gradient(differ, op, 0), y);
  pl_ir_differ_give(differ, op, 0, scaled(differ, made(differ, "multiply", "da", once, y), -1));
  return PL_OK;
}
