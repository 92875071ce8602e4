/* Backward kernels of norms: one, or what autograd runs for an RMS norm of PyTorch ops (lower_norm.c). See
 * workloads/lower/lower_backward.h. */
#include "core/cluster/cluster.h"
#include "workloads/lower/lower_backward.h"

static const double norm_flops = 11;

static void one_kernel(pl_back *d, const pl_tape_node *node, uint32_t g) {
  uint32_t dx = pl_back_fresh(d, node->input);
  uint32_t dw = node->weight != PL_NONE ? pl_back_parameter_gradient(d, node->weight) : PL_NONE;
  pl_tape_sweep(d->tape, node->names.backward, PL_OP_NORM, PL_CATEGORY_BACKWARD, norm_flops, g, node->input,
                node->weight, dx, dw);
  pl_back_arrive(d, node->input, dx);
}

static uint32_t step(pl_back *d, const char *name, uint32_t first, uint32_t second, uint32_t output) {
  pl_op *op =
      pl_tape_sweep(d->tape, name, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, first, second, PL_NONE, output, PL_NONE);
  op->plain = true;
  op->host_free = pl_framework_has_module_launches(d->tape->framework);
  return output;
}

static uint32_t like(pl_back *d, uint32_t of) {
  return pl_tape_like(d->tape, of, d->tape->tensors[of].name, PL_TENSOR_GRADIENT, (pl_dtype)d->tape->tensors[of].dtype);
}

/* 92 bytes for an element, with the cast behind it: MulBackward of the weight's product, ToCopyBackward, MulBackward of
 * the product with 1 / rms, RsqrtBackward for every row, MeanBackward (the row's number is spread out and divided, a
 * tensor as large as x), PowBackward (grad * (2 * x.pow(1)), each a kernel: ATen's pow copies for an exponent of 1),
 * and the sum of what comes to x on its two ways (torch/csrc/autograd/FunctionsManual.cpp: pow_backward,
 * mean_backward). */
static void in_steps(pl_back *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  uint32_t x = node->input, narrow = node->second, row = node->auxiliary;
  pl_back_write_for(d, PL_IR_NONE);
  uint32_t product = step(d, "norm_weight_product", g, narrow, like(d, narrow));
  step(d, "norm_weight_sum", product, PL_NONE, pl_back_parameter_gradient(d, node->weight));
  pl_back_write_for_group(d);
  uint32_t dnarrow = step(d, "norm_weight_backward", g, node->weight, like(d, narrow));
  bool casts = tape->tensors[narrow].dtype != PL_DTYPE_FP32;
  uint32_t wide = casts ? step(d, "norm_narrow_backward", dnarrow, PL_NONE, like(d, x)) : dnarrow;
  uint32_t dx = step(d, node->names.backward, wide, row, like(d, x));
  tape->backward[tape->n_backward - 1].host_free = false;
  uint32_t terms = step(d, "norm_rsqrt_product", wide, x, like(d, x));
  uint32_t drow =
      step(d, "norm_rsqrt_sum", terms, PL_NONE, pl_lower_norm_row(tape, x, "norm_mean", PL_TENSOR_GRADIENT));
  static const char *const of_row[] = {"norm_rsqrt_cube", "norm_rsqrt_half", "norm_rsqrt_backward"};
  for (int i = 0; i < 3; i++)
    step(d, of_row[i], drow, i == 0 ? row : PL_NONE, drow);
  uint32_t spread = step(d, "norm_mean_backward", drow, PL_NONE, like(d, x));
  uint32_t power = step(d, "norm_squares_power", x, PL_NONE, like(d, x));
  step(d, "norm_squares_double", power, PL_NONE, power);
  step(d, "norm_squares_backward", spread, power, spread);
  step(d, "norm_add", dx, spread, dx);
  pl_back_arrive(d, x, dx);
}

void pl_back_norm(pl_back *d, const pl_tape_node *node, uint32_t g) {
  if (node->rule == PL_RULE_NORM && node->second != PL_NONE)
    in_steps(d, node, g);
  else
    one_kernel(d, node, g);
}
