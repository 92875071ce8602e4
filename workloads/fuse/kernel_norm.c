/* An RMS norm in PyTorch ops (`fused_norm` of a profile): 8 kernels forward and 17 backward with those of a number a
 * row. Hugging Face's LlamaRMSNorm, Megatron-LM's rms_norm.py and ATen's own rms_norm before it had a kernel are a
 * kernel for every op:
 *
 *   x = input.to(float32)                     2 bytes read, 4 written     kept
 *   x.pow(2).mean(-1), + epsilon, rsqrt       4 and 4, then 4             a number a row
 *   (x * rsqrt).to(input_dtype)               4 and 4, 4 and 2            kept, for the weight's gradient
 *   weight * that                             2 and 2
 *
 * 36 bytes for an element where one kernel moves 4. Back they are 92, with the cast behind it: MulBackward of the
 * weight's product, ToCopyBackward, MulBackward of the product with 1 / rms, RsqrtBackward for every row, MeanBackward
 * (the row's number is spread out and divided, a tensor as large as x), PowBackward (grad * (2 * x.pow(1)), each a
 * kernel: ATen's pow copies for an exponent of 1), and the sum of what comes to x on its two ways
 * (torch/csrc/autograd/FunctionsManual.cpp: pow_backward, mean_backward). Layer norm, and a norm without parameters, is
 * one kernel everywhere.
 *
 * The op stands for the cast of its result, and back for that of its gradient with what a row's number is spread to;
 * the others say what is moved, and compute nothing that anybody reads. See workloads/fuse/kernel_stepping.h.
 */
#include "workloads/fuse/kernel_stepping.h"
#include "workloads/language/ir_operands.h"

static int32_t step(pl_kernel_stepping *own, const char *row, const char *name, int32_t a, int32_t b) {
  const int32_t pair[] = {a, b};
  if (a == PL_IR_NONE || b == PL_IR_NONE) return PL_IR_NONE;
  const pl_ir_type type = own->function->values[a].type;
  return pl_step_append(own, row, 2, pair, name, &type, PL_READ_NORM_STEPS);
}

static int32_t product(pl_kernel_stepping *own, const char *name, int32_t a, int32_t b) {
  return step(own, "multiply", name, a, b);
}

/* A number a row, of what the norm `op` normalises over. */
static int32_t sum(pl_kernel_stepping *own, const pl_ir_op *op, const char *name, int32_t value) {
  const pl_ir_attribute *over = pl_ir_attribute_find(op, "over");
  if (value == PL_IR_NONE || over == NULL) return PL_IR_NONE;
  const pl_ir_type *of = &own->function->values[value].type;
  pl_ir_type type = pl_ir_type_without(of, op, "over");
  for (int32_t axis = 0; axis < own->to->mesh.n_axes; axis++)
    type.on[axis] = of->on[axis] >= 0 ? (int8_t)pl_ir_type_find(&type, of->dims[of->on[axis]].name) : of->on[axis];
  return pl_ir_op_add(own->to, own->function,
                      &(pl_ir_making){.row = pl_ir_row_of("sum"),
                                      .n_inputs = 1,
                                      .n_outputs = 1,
                                      .n_attributes = 1,
                                      .inputs = &value,
                                      .attributes = over,
                                      .output_names = &name,
                                      .output_types = &type,
                                      .reason = PL_READ_NORM_STEPS,
                                      .callee = PL_IR_NONE});
}

int32_t pl_step_norm(pl_kernel_stepping *own, const pl_ir_op *op, int32_t wide, int32_t output) {
  if (output == PL_IR_NONE) return PL_IR_NONE;
  int32_t row = sum(own, op, "mean", product(own, "squares", wide, wide));
  product(own, "rsqrt", product(own, "epsilon", row, row), row);
  pl_autocast_form form =
      pl_framework_autocast(own->options->framework, (pl_dtype)own->function->values[output].type.element);
  if (form != PL_AUTOCAST_ALL) product(own, "scaled", wide, wide); /* else nothing is cast, neither in nor out */
  return product(own, "weighted", output, output);
}

void pl_step_norm_backward(pl_kernel_stepping *own, const pl_ir_op *op, int32_t wide, int32_t gradient) {
  int32_t dnarrow = step(own, "add", "dnarrow", gradient, gradient); /* which may be a partial sum */
  sum(own, op, "dweight", step(own, "add", "weight.product", gradient, dnarrow));
  int32_t dx = product(own, "dscaled", wide, wide), terms = product(own, "rsqrt.product", wide, dx);
  int32_t row = sum(own, op, "rsqrt.sum", terms);
  product(own, "rsqrt.dsum", product(own, "rsqrt.half", product(own, "rsqrt.cube", row, row), row), row);
  int32_t power = product(own, "squares.power", wide, wide);
  power = product(own, "squares.double", power, power);
  step(own, "add", "dx", dx, product(own, "dsquares", terms, power));
}
