/* Rows of pictures: convolutions, pooling, batch norm. Windows: ir_window.h; values: ir_picture.c. Dimensions that
 * windows slide over are opaque: a device has them whole. */
#include "workloads/language/ir_differ.h"
#include "workloads/language/ir_norm.h"
#include "workloads/language/ir_operands.h"
#include "workloads/language/ir_picture.h"
#include "workloads/language/ir_window.h"

/* ---- shapes ---- */

/* w has `over` and `kernel`, x has `over` and `window`; neither has the other's. */
static pl_code check_roles(const pl_ir_op *op, const pl_ir_type *types, pl_error *error) {
  PL_TRY(pl_ir_operand_has_names(op, types, 0, "over", error));
  PL_TRY(pl_ir_operand_has_names(op, types, 0, "window", error));
  PL_TRY(pl_ir_operand_has_names(op, types, 1, "over", error));
  PL_TRY(pl_ir_operand_has_names(op, types, 1, "kernel", error));
  for (int32_t k = 0; k < 2; k++)
    for (int32_t i = 0; i < types[k].rank; i++) {
      if (!pl_ir_op_has_name(op, k == 0 ? "kernel" : "window", types[k].dims[i].name)) continue;
      return pl_fail(error, PL_BAD_INPUT, "%s of %s have dimension %s, which is the other's alone",
                     k == 0 ? "elements" : "weights", pl_ir_op_name(op), types[k].dims[i].name.text);
    }
  return PL_OK;
}

/* y of x and w: x's dimensions, w's own instead of those that are summed over. */
static pl_code infer_types(const pl_ir_op *op, const pl_ir_type *x, const pl_ir_type *w, pl_ir_type *y,
                           pl_error *error) {
  const pl_ir_type types[] = {*x, *w};
  pl_ir_windows windows;
  PL_TRY(check_roles(op, types, error));
  const pl_ir_op both = {.row = op->row, .n_inputs = 2, .n_attributes = op->n_attributes, .attributes = op->attributes};
  PL_TRY(pl_ir_operands_agree(&both, types, error));
  PL_TRY(pl_ir_windows_of(op, x, w, &windows, error));
  const pl_ir_type picture = pl_ir_windows_result(op, x, &windows);
  pl_ir_dim dims[2 * PL_IR_RANK_MAX];
  int32_t rank = 0;
  bool placed = false;
  for (int32_t i = 0; i < picture.rank; i++) {
    bool is_summed = pl_ir_op_has_name(op, "over", picture.dims[i].name);
    if (!is_summed) dims[rank++] = picture.dims[i];
    for (int32_t k = 0; is_summed && !placed && k < w->rank; k++)
      if (pl_ir_type_find(x, w->dims[k].name) < 0 && !pl_ir_op_has_name(op, "kernel", w->dims[k].name))
        dims[rank++] = w->dims[k];
    placed |= is_summed;
  }
  for (int32_t k = 0; !placed && k < w->rank; k++) /* nothing is summed over but windows: each channel by itself */
    if (pl_ir_type_find(x, w->dims[k].name) < 0 && !pl_ir_op_has_name(op, "kernel", w->dims[k].name))
      dims[rank++] = w->dims[k];
  if (rank > PL_IR_RANK_MAX)
    return pl_fail(error, PL_BAD_INPUT, "the result of %s has more than %d dimensions", pl_ir_op_name(op),
                   PL_IR_RANK_MAX);
  *y = pl_ir_type_of((pl_ir_element)x->element, rank, dims);
  return PL_OK;
}

static pl_code infer_convolution(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_operands_are_numbers(op, inputs, error));
  return infer_types(op, &inputs[0], &inputs[1], &outputs[0], error);
}

/* The gradient that comes in has the dimensions of the result. */
static pl_code check_gradient(const pl_ir_op *op, const pl_ir_type *dy, const pl_ir_type *y, pl_error *error) {
  char text[PL_IR_SHAPE_TEXT_BYTES], other[PL_IR_SHAPE_TEXT_BYTES];
  if (pl_ir_written_matches(op, y, dy, NULL) == PL_OK) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "the gradient that %s is given is %s; it is to be %s", pl_ir_op_name(op),
                 pl_ir_shape_text(dy, text), pl_ir_shape_text(y, other));
}

/* Of x and w one is written. */
static pl_code check_backward(const pl_ir_op *op, const pl_ir_type *x, const pl_ir_type *w, const pl_ir_type *dy,
                              pl_ir_type *written, pl_error *error) {
  pl_ir_type y;
  if (!pl_ir_element_is_number((pl_ir_element)written->element))
    return pl_fail(error, PL_BAD_INPUT, "result of %s is written as %s, which cannot be computed with",
                   pl_ir_op_name(op), pl_ir_element_name((pl_ir_element)written->element));
  PL_TRY(infer_types(op, x, w, &y, error));
  *written = pl_ir_type_whole(written);
  return check_gradient(op, dy, &y, error);
}

static pl_code infer_backward_data(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_operands_are_numbers(op, inputs, error));
  return check_backward(op, &outputs[0], &inputs[1], &inputs[0], &outputs[0], error);
}

static pl_code infer_backward_weights(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs,
                                      pl_error *error) {
  PL_TRY(pl_ir_operands_are_numbers(op, inputs, error));
  return check_backward(op, &inputs[0], &outputs[0], &inputs[1], &outputs[0], error);
}

static pl_code pool(const pl_ir_op *op, const pl_ir_type *x, pl_ir_type *y, pl_error *error) {
  pl_ir_windows windows;
  PL_TRY(pl_ir_operand_has_names(op, x, 0, "window", error));
  PL_TRY(pl_ir_windows_of(op, x, NULL, &windows, error));
  *y = pl_ir_windows_result(op, x, &windows);
  return PL_OK;
}

static pl_code infer_pool(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_operands_are_numbers(op, inputs, error));
  return pool(op, &inputs[0], &outputs[0], error);
}

static pl_code infer_max_pool_backward(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs,
                                       pl_error *error) {
  pl_ir_type y;
  PL_TRY(pl_ir_operands_are_numbers(op, inputs, error));
  PL_TRY(pool(op, &inputs[0], &y, error));
  outputs[0] = pl_ir_type_whole(&inputs[0]);
  return check_gradient(op, &inputs[1], &y, error);
}

static pl_code infer_average_pool_backward(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs,
                                           pl_error *error) {
  pl_ir_type y;
  PL_TRY(pl_ir_operands_are_numbers(op, inputs, error));
  PL_TRY(pool(op, &outputs[0], &y, error));
  outputs[0] = pl_ir_type_whole(&outputs[0]);
  return check_gradient(op, &inputs[0], &y, error);
}

/* Scale and shift have dimensions of x that are not normalised over. */
static pl_code infer_batch_norm(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_operands_are_numbers(op, inputs, error));
  PL_TRY(pl_ir_operand_has_names(op, inputs, 0, "over", error));
  PL_TRY(pl_ir_operand_is_within(op, inputs, 1, 0, error));
  for (int32_t i = 0; i < inputs[1].rank; i++)
    if (pl_ir_op_has_name(op, "over", inputs[1].dims[i].name))
      return pl_fail(error, PL_BAD_INPUT, "operand 2 of %s has dimension %s, which is normalised over",
                     pl_ir_op_name(op), inputs[1].dims[i].name.text);
  PL_TRY(pl_ir_operands_match(op, inputs, op->n_outputs == 1 ? 1 : 0, 2, error)); /* shift is like scale, dy like x */
  outputs[0] = pl_ir_type_whole(&inputs[0]);
  for (int32_t k = 1; k < op->n_outputs; k++)
    outputs[k] = pl_ir_type_whole(&inputs[1]);
  return PL_OK;
}

static bool is_windowed(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_name dim) {
  (void)inputs;
  return pl_ir_op_has_name(op, "window", dim) || pl_ir_op_has_name(op, "kernel", dim);
}

/* ---- work ---- */

static double points_of_kernel(const pl_ir_op *op, const pl_ir_type *w) {
  double n = 1;
  for (int32_t i = 0; i < w->rank; i++)
    if (pl_ir_op_has_name(op, "over", w->dims[i].name) || pl_ir_op_has_name(op, "kernel", w->dims[i].name))
      n *= (double)w->dims[i].extent;
  return n;
}

static double flops_convolution(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs) {
  return 2 * pl_ir_type_elements(&outputs[0]) * points_of_kernel(op, &inputs[1]);
}

static double flops_backward_data(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs) {
  (void)outputs;
  return 2 * pl_ir_type_elements(&inputs[0]) * points_of_kernel(op, &inputs[1]);
}

static double flops_backward_weights(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs) {
  return 2 * pl_ir_type_elements(&inputs[1]) * points_of_kernel(op, &outputs[0]);
}

static double seen_of(const pl_ir_op *op, const pl_ir_type *picture) {
  pl_ir_windows windows;
  if (pl_ir_windows_of(op, picture, NULL, &windows, NULL) != PL_OK) return 0;
  return pl_ir_type_elements(picture) / (double)windows.n_in * (double)windows.n_out * (double)windows.n_size;
}

static double flops_pool(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs) {
  (void)outputs;
  return seen_of(op, &inputs[0]);
}

static double flops_average_pool_backward(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs) {
  (void)inputs;
  return seen_of(op, &outputs[0]);
}

/* ---- derivatives ---- */

/* Input `of` gets what the row whose type is written gives for two operands, or one. */
static void give_typed(pl_ir_differ *differ, const pl_ir_op *op, const char *row, const char *name, int32_t of,
                       int32_t n, const int32_t *inputs) {
  const pl_ir_type *type = &differ->forward->values[op->inputs[of]].type;
  pl_ir_differ_give(differ, op, of,
                    pl_ir_op_typed(differ->module, differ->backward, row, name, NULL, n, inputs, type, op->n_attributes,
                                   op->attributes));
}

static pl_code derive_convolution(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  if (dy == PL_IR_NONE) return PL_OK;
  if (pl_ir_differ_wants(differ, op, 0)) {
    const int32_t inputs[] = {dy, pl_ir_differ_value(differ, op->inputs[1])};
    give_typed(differ, op, "convolution_backward_data", "dx", 0, 2, inputs);
  }
  if (pl_ir_differ_wants(differ, op, 1)) {
    const int32_t inputs[] = {pl_ir_differ_value(differ, op->inputs[0]), dy};
    give_typed(differ, op, "convolution_backward_weights", "dw", 1, 2, inputs);
  }
  return PL_OK;
}

/* dx is linear in dy and in w: by dy its derivative is the convolution itself, by w that of the convolution. */
static pl_code derive_transposed(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  int32_t given = pl_ir_differ_gradient(differ, op, 0);
  if (given == PL_IR_NONE) return PL_OK;
  if (pl_ir_differ_wants(differ, op, 0)) {
    const int32_t inputs[] = {given, pl_ir_differ_value(differ, op->inputs[1])};
    pl_ir_differ_give(differ, op, 0,
                      pl_ir_differ_op(differ, "convolution", "dx", 2, inputs, op->n_attributes, op->attributes));
  }
  if (pl_ir_differ_wants(differ, op, 1)) {
    const int32_t inputs[] = {given, pl_ir_differ_value(differ, op->inputs[0])};
    give_typed(differ, op, "convolution_backward_weights", "dw", 1, 2, inputs);
  }
  return PL_OK;
}

static pl_code derive_max_pool(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  if (dy == PL_IR_NONE || !pl_ir_differ_wants(differ, op, 0)) return PL_OK;
  const int32_t inputs[] = {pl_ir_differ_value(differ, op->inputs[0]), dy};
  pl_ir_differ_give(differ, op, 0,
                    pl_ir_differ_op(differ, "max_pool_backward", "dx", 2, inputs, op->n_attributes, op->attributes));
  return PL_OK;
}

static pl_code derive_average_pool(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  if (dy == PL_IR_NONE || !pl_ir_differ_wants(differ, op, 0)) return PL_OK;
  give_typed(differ, op, "average_pool_backward", "dx", 0, 1, &dy);
  return PL_OK;
}

static pl_code derive_batch_norm(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  if (dy == PL_IR_NONE) return PL_OK;
  const int32_t inputs[] = {pl_ir_differ_value(differ, op->inputs[0]), pl_ir_differ_value(differ, op->inputs[1]), dy};
  int32_t first = pl_ir_differ_op(differ, "batch_norm_backward", "dx", 3, inputs, op->n_attributes, op->attributes);
  if (first == PL_IR_NONE) return pl_fail_memory(error, "a backward function");
  for (int32_t k = 0; k < 3; k++)
    if (pl_ir_differ_wants(differ, op, k)) pl_ir_differ_give(differ, op, k, first + k);
  return PL_OK;
}

/* ---- rows ---- */

#define NAMES(attribute, text)                                                                                         \
  { .name = attribute, .kind = PL_IR_NAMES, .required = true, .meaning = text }
#define NUMBERS(attribute, text)                                                                                       \
  { .name = attribute, .kind = PL_IR_TEXT, .meaning = text }
#define SLIDING                                                                                                        \
  NUMBERS("stride", "\"2\", or \"2x1\" for each dimension; 1"), NUMBERS("padding", "in front of the picture; 0"),      \
      NUMBERS("padding_after", "behind it; as in front"), NUMBERS("dilation", "between elements of a window; 1")
#define CONVOLUTION                                                                                                    \
  {                                                                                                                    \
    {.name = "over", .kind = PL_IR_NAMES, .meaning = "dimensions of both that are summed over"},                       \
        NAMES("window", "dimensions of the picture"),                                                                  \
        NAMES("kernel", "dimensions of the weights, one for each of the window's"), SLIDING                            \
  }
#define SIZE                                                                                                           \
  NAMES("window", "dimensions of the picture"),                                                                        \
      {.name = "size", .kind = PL_IR_TEXT, .required = true, .meaning = "of the window: \"3\" or \"3x1\""}, SLIDING
#define POOL                                                                                                           \
  { SIZE }
#define AVERAGE_POOL                                                                                                   \
  {                                                                                                                    \
    SIZE, {                                                                                                            \
      .name = "inside", .kind = PL_IR_INTEGER, .meaning = "1: the mean of what is inside of the picture"               \
    }                                                                                                                  \
  }
#define BATCH_NORM                                                                                                     \
  {                                                                                                                    \
    NAMES("over", "dimensions that are normalised over: pictures and points"), {                                       \
      .name = "epsilon", .kind = PL_IR_REAL, .required = true, .meaning = "is added to the variance"                   \
    }                                                                                                                  \
  }

const pl_ir_row pl_ir_rows_picture[] = {
    {.name = "convolution",
     .launches = PL_IR_LAUNCHES_CONVOLUTION,
     .meaning = "y[o, i] = sum over c and k of x[c, i stride + k dilation - padding] w[o, c, k]",
     .least_inputs = 2,
     .most_inputs = 2,
     .n_outputs = 1,
     .missing = PL_IR_MISSING_SUM,
     .linear = PL_IR_LINEAR_EACH,
     .attributes = CONVOLUTION,
     .opaque = is_windowed,
     .infer = infer_convolution,
     .flops = flops_convolution,
     .compute = pl_ir_compute_convolution,
     .derive = derive_convolution,
     .onnx = "Conv"},
    {.name = "convolution_backward_data",
     .launches = PL_IR_LAUNCHES_CONVOLUTION,
     .meaning =
         "of dy, w: dx[c, j] = sum over o and k, i where j = i stride + k dilation - padding, of dy[o, i] w[o, c, k]",
     .least_inputs = 2,
     .most_inputs = 2,
     .n_outputs = 1,
     .typed = true,
     .missing = PL_IR_MISSING_SUM,
     .linear = PL_IR_LINEAR_EACH,
     .attributes = CONVOLUTION,
     .opaque = is_windowed,
     .infer = infer_backward_data,
     .flops = flops_backward_data,
     .compute = pl_ir_compute_convolution_backward_data,
     .derive = derive_transposed,
     .onnx = "ConvTranspose"},
    {.name = "convolution_backward_weights",
     .launches = PL_IR_LAUNCHES_CONVOLUTION,
     .meaning = "of x, dy: dw[o, c, k] = sum over i of x[c, i stride + k dilation - padding] dy[o, i]",
     .least_inputs = 2,
     .most_inputs = 2,
     .n_outputs = 1,
     .typed = true,
     .missing = PL_IR_MISSING_SUM,
     .linear = PL_IR_LINEAR_EACH,
     .attributes = CONVOLUTION,
     .opaque = is_windowed,
     .infer = infer_backward_weights,
     .flops = flops_backward_weights,
     .compute = pl_ir_compute_convolution_backward_weights},
    {.name = "max_pool",
     .meaning = "the largest element that each window sees",
     .least_inputs = 1,
     .most_inputs = 1,
     .n_outputs = 1,
     .attributes = POOL,
     .opaque = is_windowed,
     .infer = infer_pool,
     .flops = flops_pool,
     .compute = pl_ir_compute_max_pool,
     .derive = derive_max_pool,
     .onnx = "MaxPool"},
    {.name = "max_pool_backward",
     .meaning = "of x, dy: dx is the sum of dy of the windows whose largest element (of equal ones the first) it is",
     .least_inputs = 2,
     .most_inputs = 2,
     .n_outputs = 1,
     .linear = PL_IR_LINEAR_LAST,
     .attributes = POOL,
     .opaque = is_windowed,
     .infer = infer_max_pool_backward,
     .flops = flops_pool,
     .compute = pl_ir_compute_max_pool_backward},
    {.name = "average_pool",
     .meaning = "the mean of what each window sees, zeros outside counted unless `inside`",
     .least_inputs = 1,
     .most_inputs = 1,
     .n_outputs = 1,
     .linear = PL_IR_LINEAR_JOINT,
     .attributes = AVERAGE_POOL,
     .opaque = is_windowed,
     .infer = infer_pool,
     .flops = flops_pool,
     .compute = pl_ir_compute_average_pool,
     .derive = derive_average_pool,
     .onnx = "AveragePool"},
    {.name = "average_pool_backward",
     .meaning = "of dy: dx is the sum of the shares of dy of the windows that see it",
     .least_inputs = 1,
     .most_inputs = 1,
     .n_outputs = 1,
     .typed = true,
     .linear = PL_IR_LINEAR_JOINT,
     .attributes = AVERAGE_POOL,
     .opaque = is_windowed,
     .infer = infer_average_pool_backward,
     .flops = flops_average_pool_backward,
     .compute = pl_ir_compute_average_pool_backward},
    {.name = "batch_norm",
     .launches = PL_IR_LAUNCHES_NORM,
     .meaning = "(x - mean) / sqrt(variance + epsilon) scale + shift, mean and variance over `over`, which scale lacks",
     .least_inputs = 3,
     .most_inputs = 3,
     .n_outputs = 1,
     .attributes = BATCH_NORM,
     .opaque = pl_ir_over_is_opaque,
     .infer = infer_batch_norm,
     .compute = pl_ir_compute_layer_norm, /* which spreads scale and shift along what they lack */
     .derive = derive_batch_norm,
     .onnx = "BatchNormalization InstanceNormalization"},
    {.name = "batch_norm_backward",
     .launches = PL_IR_LAUNCHES_NORM,
     .meaning = "dx, dscale, dshift of batch_norm at x, scale for dy",
     .least_inputs = 3,
     .most_inputs = 3,
     .n_outputs = 3,
     .missing = PL_IR_MISSING_SUM,
     .linear = PL_IR_LINEAR_LAST,
     .attributes = BATCH_NORM,
     .opaque = pl_ir_over_is_opaque,
     .infer = infer_batch_norm,
     .compute = pl_ir_compute_layer_norm_backward},
    {.name = NULL},
};
_Static_assert(sizeof pl_ir_rows_picture / sizeof pl_ir_rows_picture[0] == PL_IR_N_ROWS_PICTURE + 1,
               "as ir_table.h counts");
