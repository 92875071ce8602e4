/* Rows that need all of a dimension before they give any of it: softmax and normalisation. */
#include "workloads/language/ir_differ.h"
#include "workloads/language/ir_norm.h"
#include "workloads/language/ir_operands.h"

static pl_code names_over(const pl_ir_op *op, const pl_ir_type *inputs, pl_error *error) {
  PL_TRY(pl_ir_operands_are_numbers(op, inputs, error));
  return pl_ir_operand_has_names(op, inputs, 0, "over", error);
}

static pl_code softmax_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(names_over(op, inputs, error));
  if (op->n_inputs > 1) PL_TRY(pl_ir_operands_match(op, inputs, 0, 1, error));
  outputs[0] = pl_ir_type_whole(&inputs[0]);
  return PL_OK;
}

/* Scale and shift have the dimensions that are normalised over, and may have others of x. */
static pl_code scale_fits(const pl_ir_op *op, const pl_ir_type *inputs, int32_t k, pl_error *error) {
  PL_TRY(pl_ir_operand_is_within(op, inputs, k, 0, error));
  return pl_ir_operand_has_names(op, inputs, k, "over", error);
}

static pl_code norm_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(names_over(op, inputs, error));
  for (int32_t k = 1; k < op->n_inputs; k++)
    PL_TRY(scale_fits(op, inputs, k, error));
  if (op->n_inputs > 2) PL_TRY(pl_ir_operands_match(op, inputs, 1, 2, error));
  outputs[0] = pl_ir_type_whole(&inputs[0]);
  return PL_OK;
}

/* dx, dscale and, of layer_norm, dshift, which has the shape of scale. */
static pl_code norm_backward_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(names_over(op, inputs, error));
  PL_TRY(scale_fits(op, inputs, 1, error));
  PL_TRY(pl_ir_operands_match(op, inputs, 0, 2, error));
  outputs[0] = pl_ir_type_whole(&inputs[0]);
  for (int32_t k = 1; k < op->n_outputs; k++)
    outputs[k] = pl_ir_type_whole(&inputs[1]);
  return PL_OK;
}

static pl_code softmax_derive(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  if (!pl_ir_differ_wants(differ, op, 0)) return PL_OK;
  const int32_t inputs[] = {pl_ir_differ_value(differ, op->first_output), pl_ir_differ_gradient(differ, op, 0)};
  pl_ir_differ_give(differ, op, 0,
                    pl_ir_differ_op(differ, "softmax_backward", "da", 2, inputs, op->n_attributes, op->attributes));
  return PL_OK;
}

/* The backward row gives the gradients of all operands at once, one behind the other. */
static pl_code norm_derive(pl_ir_differ *differ, const pl_ir_op *op, const char *backward) {
  const int32_t inputs[] = {pl_ir_differ_value(differ, op->inputs[0]), pl_ir_differ_value(differ, op->inputs[1]),
                            pl_ir_differ_gradient(differ, op, 0)};
  int32_t first = pl_ir_differ_op(differ, backward, "dx", 3, inputs, op->n_attributes, op->attributes);
  for (int32_t k = 0; k < op->n_inputs; k++)
    if (pl_ir_differ_wants(differ, op, k)) pl_ir_differ_give(differ, op, k, first == PL_IR_NONE ? first : first + k);
  return PL_OK;
}

static pl_code layer_norm_derive(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  return norm_derive(differ, op, "layer_norm_backward");
}

static pl_code rms_norm_derive(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  return norm_derive(differ, op, "rms_norm_backward");
}

#define OVER                                                                                                           \
  { "over", PL_IR_NAMES, true, "dimensions that are normalised over" }
#define EPSILON                                                                                                        \
  { "epsilon", PL_IR_REAL, true, "is added to the variance" }

const pl_ir_row pl_ir_rows_norm[] = {
    {.name = "softmax",
     .launches = PL_IR_LAUNCHES_SOFTMAX,
     .meaning = "exp(a) / sum of exp(a) over `over`",
     .least_inputs = 1,
     .most_inputs = 1,
     .n_outputs = 1,
     .attributes = {OVER},
     .opaque = pl_ir_over_is_opaque,
     .infer = softmax_infer,
     .compute = pl_ir_compute_softmax,
     .derive = softmax_derive,
     .onnx = "Softmax"},
    {.name = "softmax_backward",
     .launches = PL_IR_LAUNCHES_SOFTMAX,
     .meaning = "y (dy - sum of y dy over `over`), y the output of softmax",
     .least_inputs = 2,
     .most_inputs = 2,
     .n_outputs = 1,
     .linear = PL_IR_LINEAR_LAST,
     .attributes = {OVER},
     .opaque = pl_ir_over_is_opaque,
     .infer = softmax_infer,
     .compute = pl_ir_compute_softmax_backward},
    {.name = "layer_norm",
     .launches = PL_IR_LAUNCHES_NORM,
     .meaning = "(x - mean) / sqrt(variance + epsilon) scale + shift, mean and variance over `over`",
     .least_inputs = 3,
     .most_inputs = 3,
     .n_outputs = 1,
     .attributes = {OVER, EPSILON},
     .opaque = pl_ir_over_is_opaque,
     .infer = norm_infer,
     .compute = pl_ir_compute_layer_norm,
     .derive = layer_norm_derive,
     .onnx = "LayerNormalization"},
    {.name = "rms_norm",
     .launches = PL_IR_LAUNCHES_NORM,
     .meaning = "x / sqrt(mean of x^2 + epsilon) scale, the mean over `over`",
     .least_inputs = 2,
     .most_inputs = 2,
     .n_outputs = 1,
     .attributes = {OVER, EPSILON},
     .opaque = pl_ir_over_is_opaque,
     .infer = norm_infer,
     .compute = pl_ir_compute_rms_norm,
     .derive = rms_norm_derive,
     .onnx = "RMSNormalization"},
    {.name = "layer_norm_backward",
     .launches = PL_IR_LAUNCHES_NORM,
     .meaning = "dx, dscale, dshift of layer_norm at x, scale for dy",
     .least_inputs = 3,
     .most_inputs = 3,
     .n_outputs = 3,
     .missing = PL_IR_MISSING_SUM,
     .linear = PL_IR_LINEAR_LAST,
     .attributes = {OVER, EPSILON},
     .opaque = pl_ir_over_is_opaque,
     .infer = norm_backward_infer,
     .compute = pl_ir_compute_layer_norm_backward},
    {.name = "rms_norm_backward",
     .launches = PL_IR_LAUNCHES_NORM,
     .meaning = "dx, dscale of rms_norm at x, scale for dy",
     .least_inputs = 3,
     .most_inputs = 3,
     .n_outputs = 2,
     .missing = PL_IR_MISSING_SUM,
     .linear = PL_IR_LINEAR_LAST,
     .attributes = {OVER, EPSILON},
     .opaque = pl_ir_over_is_opaque,
     .infer = norm_backward_infer,
     .compute = pl_ir_compute_rms_norm_backward},
    {.name = NULL}};
_Static_assert(sizeof pl_ir_rows_norm / sizeof pl_ir_rows_norm[0] == PL_IR_N_ROWS_NORM + 1, "as ir_table.h counts");
