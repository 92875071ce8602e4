/* The product of named dimensions: every matrix product, batched or not. */
#include "workloads/language/ir_operands.h"

/* Dimensions of a that are not summed over, then those of b that a lacks; `order` puts them otherwise. */
static pl_code product_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_operands_are_numbers(op, inputs, error));
  PL_TRY(pl_ir_operands_agree(op, inputs, error));
  for (int32_t k = 0; k < 2; k++)
    PL_TRY(pl_ir_operand_has_names(op, inputs, k, "over", error));
  pl_ir_type made = pl_ir_type_without(&inputs[0], op, "over");
  for (int32_t i = 0; i < inputs[1].rank; i++) {
    if (pl_ir_type_find(&inputs[0], inputs[1].dims[i].name) >= 0) continue;
    if (made.rank == PL_IR_RANK_MAX)
      return pl_fail(error, PL_BAD_INPUT, "result of product would have more than %d dimensions", PL_IR_RANK_MAX);
    made.dims[made.rank++] = inputs[1].dims[i];
  }
  outputs[0] = made;
  const pl_ir_attribute *order = pl_ir_attribute_find(op, "order");
  if (order == NULL) return PL_OK;
  char text[PL_IR_SHAPE_TEXT_BYTES];
  pl_ir_type ordered = pl_ir_type_of((pl_ir_element)made.element, 0, NULL);
  for (int32_t i = 0; i < order->n_names; i++) {
    int32_t at = pl_ir_type_find(&made, order->names[i]);
    if (at < 0 || pl_ir_type_find(&ordered, order->names[i]) >= 0)
      return pl_fail(error, PL_BAD_INPUT, "order of product names %s %s: the result has %s", order->names[i].text,
                     at < 0 ? "wrongly" : "twice", pl_ir_shape_text(&made, text));
    ordered.dims[ordered.rank++] = made.dims[at];
  }
  if (ordered.rank != made.rank)
    return pl_fail(error, PL_BAD_INPUT, "order of product names %d of the dimensions of the result, %s", ordered.rank,
                   pl_ir_shape_text(&made, text));
  outputs[0] = ordered;
  return PL_OK;
}

/* A multiplication and an addition for each pair. */
static double product_flops(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs) {
  double flops = 2 * pl_ir_type_elements(&outputs[0]);
  for (int32_t i = 0; i < inputs[0].rank; i++)
    if (pl_ir_op_has_name(op, "over", inputs[0].dims[i].name)) flops *= (double)inputs[0].dims[i].extent;
  return flops;
}

const pl_ir_row pl_ir_rows_product[] = {
    {.name = "product",
     .meaning = "sum over the dimensions `over` of a times b; the others that both have are matched, all others stay",
     .least_inputs = 2,
     .most_inputs = 2,
     .n_outputs = 1,
     .missing = PL_IR_MISSING_SUM,
     .linear = PL_IR_LINEAR_EACH,
     .attributes = {{"over", PL_IR_NAMES, false, "dimensions of both that are summed over; without it none"},
                    {"order", PL_IR_NAMES, false, "dimensions of the result; without it those of a, then b's own"}},
     .infer = product_infer,
     .flops = product_flops,
     .onnx = "Gemm MatMul Einsum"},
    {.name = NULL}};
