/* Memory-bound kernels of several ops: residual additions, activations, rotary positions and norms of heads, learned
 * positions. See workloads/fuse/kernel_groups.h.
 */
#include <string.h>

#include "workloads/fuse/kernel_groups.h"

/* x + dropout(branch + bias). */
static void join_residual(pl_kernel_finding *own, int32_t op) {
  pl_residual_ops of;
  pl_read_residual(&own->read, op, &of);
  if (of.reduction != PL_IR_NONE) return;
  if (own->framework->kernels.fuses_residual) pl_kernel_join(own, op, of.dropout);
  if (!own->framework->kernels.fuses_bias && !own->framework->kernels.fuses_residual) return;
  for (int32_t i = 0; i < of.n_biases; i++)
    pl_kernel_join(own, of.dropout != PL_IR_NONE ? of.dropout : op, of.biases[i]);
}

static void join_activation(pl_kernel_finding *own, int32_t op) {
  int32_t behind = own->read.user[pl_read_op(&own->read, op)->first_output];
  if (pl_read_is_square(&own->read, behind)) {
    pl_kernel_join(own, op, behind);
  } else if (pl_framework_fuses_gate(own->framework) && pl_read_is(&own->read, pl_kernel_next(own, op), "multiply")) {
    pl_kernel_join(own, op, behind);
    int32_t weighted = pl_kernel_next(own, behind);
    if (pl_read_chosen(&own->read, weighted) != PL_IR_NONE) pl_kernel_join(own, op, weighted);
  }
}

static bool is_activation_backward(const pl_kernel_finding *own, int32_t op) {
  return pl_read_is(&own->read, op, "gelu_backward") || pl_read_is(&own->read, op, "silu_backward") ||
         pl_read_is(&own->read, op, "relu_backward");
}

/* Kept, or made again: no gradient. */
static bool is_forward(const pl_kernel_finding *own, int32_t value) {
  int32_t op = pl_read_maker(&own->read, value);
  if (op == PL_IR_NONE || pl_read_is(&own->read, op, "kept") || pl_read_is_bias(&own->read, op)) return true;
  return pl_read_is(&own->read, op, "product") &&
         pl_kernel_pack_of(own->packs, pl_read_weight(&own->read, op)) != PL_IR_NONE;
}

/* By one number for each row of another value: weights of experts' answers. */
static bool is_weighted(const pl_kernel_finding *own, int32_t op) {
  if (!pl_read_is(&own->read, op, "multiply")) return false;
  const int32_t *inputs = pl_read_op(&own->read, op)->inputs;
  return pl_read_type(&own->read, inputs[1])->rank < pl_read_type(&own->read, inputs[0])->rank;
}

/* In front of an activation's derivative, that of the weights: the gradient times them, and the sum over its rows of it
 * times the activation, which is made again. */
static void join_weights_backward(pl_kernel_finding *own, int32_t op, int32_t dy) {
  int32_t weighted = pl_read_maker(&own->read, dy);
  if (!is_weighted(own, weighted)) return;
  pl_kernel_join(own, op, weighted);
  for (int32_t i = 0; i < own->read.f->n_ops; i++) {
    const pl_ir_op *is = pl_read_op(&own->read, i);
    if (!pl_read_is(&own->read, i, "product") || is->inputs[1] != pl_read_op(&own->read, weighted)->inputs[0]) continue;
    int32_t activated = pl_read_made(&own->read, i, 0);
    bool one = pl_read_is(&own->read, activated, "multiply") || pl_read_is_activation(&own->read, activated);
    if (pl_read_weight(&own->read, i) != NULL || !one) continue;
    pl_kernel_join(own, op, i);
    pl_kernel_join(own, op, pl_read_made(&own->read, i, 0));
  }
}

/* Of act(gate) * up: both gradients come out of one kernel, dy times each of the other two. */
static void join_gate_backward(pl_kernel_finding *own, int32_t op) {
  int32_t times_up = pl_read_made(&own->read, op, 1);
  if (!pl_framework_fuses_gate(own->framework) || !pl_read_is(&own->read, times_up, "multiply")) return;
  if (is_weighted(own, times_up)) { /* no gate */
    join_weights_backward(own, op, pl_read_op(&own->read, op)->inputs[1]);
    return;
  }
  const int32_t *factors = pl_read_op(&own->read, times_up)->inputs;
  int32_t dy = factors[is_forward(own, factors[0])];
  pl_kernel_join(own, op, times_up);
  for (int32_t i = 0; i < own->read.f->n_ops; i++) {
    const pl_ir_op *is = pl_read_op(&own->read, i);
    if (pl_read_is(&own->read, i, "multiply") && (is->inputs[0] == dy || is->inputs[1] == dy))
      pl_kernel_join(own, op, i);
  }
  join_weights_backward(own, op, dy);
}

/* Of act(x)^2: the activation made again, its product with dy from both sides, their sum, the derivative. */
static void join_square_backward(pl_kernel_finding *own, int32_t op) {
  int32_t sum = pl_read_made(&own->read, op, 1),
          sides[] = {pl_read_made(&own->read, sum, 0), pl_read_made(&own->read, sum, 1)};
  if (!pl_read_is(&own->read, sum, "add") || !pl_read_is(&own->read, sides[0], "multiply") ||
      !pl_read_is(&own->read, sides[1], "multiply"))
    return;
  for (int i = 0; i < 2; i++) {
    pl_kernel_join(own, op, sides[i]);
    for (int32_t k = 0; k < 2; k++)
      if (pl_read_is_activation(&own->read, pl_read_made(&own->read, sides[i], k)))
        pl_kernel_join(own, op, pl_read_made(&own->read, sides[i], k));
  }
  pl_kernel_join(own, op, sum);
}

/* The same op on queries and on keys: rotary positions turn both in one kernel, norms of heads work on both. */
static void join_alike(pl_kernel_finding *own, int32_t op, int32_t operand) {
  const pl_ir_op *is = pl_read_op(&own->read, op);
  for (int32_t i = op + 1; i < own->read.f->n_ops; i++) {
    const pl_ir_op *other = pl_read_op(&own->read, i);
    if (other->row != is->row || pl_ir_integer_of(other, "inverse", 0) != pl_ir_integer_of(is, "inverse", 0)) continue;
    if (operand >= 0 && other->inputs[operand] != is->inputs[operand]) continue;
    if (strcmp(pl_ir_text_of(other, "over"), pl_ir_text_of(is, "over")) != 0) continue;
    pl_kernel_join(own, op, i);
    return; /* which joins the next */
  }
}

static bool is_norm_of_heads(const pl_kernel_finding *own, int32_t op) {
  static const char *const rows[] = {"rms_norm", "layer_norm", "rms_norm_backward", "layer_norm_backward"};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (pl_read_is(&own->read, op, rows[i])) return strcmp(pl_ir_text_of(pl_read_op(&own->read, op), "over"), "d") == 0;
  return false;
}

/* Learned positions are looked up by the kernel that adds them, one for all tables that are added. */
static void join_positions(pl_kernel_finding *own, int32_t op) {
  int32_t at = pl_read_lookup(&own->read, pl_read_op(&own->read, op)->inputs[1]);
  if (at == PL_IR_NONE) return;
  for (int32_t view = pl_read_made(&own->read, op, 1); view != at; view = pl_read_made(&own->read, view, 0))
    pl_kernel_join(own, op, view);
  pl_kernel_join(own, op, at);
  int32_t before = pl_read_made(&own->read, op, 0);
  bool positions = pl_read_is(&own->read, before, "add") && pl_kernel_group(own, before) != before;
  if (positions && pl_kernel_next(own, before) == op) pl_kernel_join(own, op, before);
}

/* Parts laid side by side (torch.cat): each padded with zeros, and the sum of these; of more than two parts one of the
 * two is such a sum. */
static void join_side_by_side(pl_kernel_finding *own, int32_t op) {
  int32_t pads[2];
  for (int i = 0; i < 2; i++) {
    pads[i] = pl_read_made(&own->read, op, i);
    if (!pl_read_is(&own->read, pads[i], "pad") || pl_kernel_next(own, pads[i]) != op) return;
  }
  for (int i = 0; i < 2; i++) {
    int32_t before = pl_read_made(&own->read, pads[i], 0);
    pl_kernel_join(own, op, pads[i]);
    if (pl_read_is(&own->read, before, "add") && pl_kernel_next(own, before) == pads[i] &&
        pl_read_is(&own->read, pl_read_made(&own->read, before, 0), "pad"))
      pl_kernel_join(own, op, before);
  }
}

/* The activation of a value that may be kept besides; PL_IR_NONE: none. */
static int32_t activation_of(const pl_kernel_finding *own, int32_t value) {
  for (int32_t i = 0; i < own->read.f->n_ops; i++)
    if (pl_read_is_activation(&own->read, i) && pl_read_op(&own->read, i)->inputs[0] == value) return i;
  return PL_IR_NONE;
}

/* Convolution along tokens, bias and activation are one kernel (causal_conv1d). */
static void join_convolution(pl_kernel_finding *own, int32_t op) {
  const pl_ir_attribute *over = pl_ir_attribute_find(pl_read_op(&own->read, op), "over"),
                        *window = pl_ir_attribute_find(pl_read_op(&own->read, op), "window");
  if ((over != NULL && over->n_names > 0) || window == NULL || window->n_names != 1) return;
  int32_t bias = pl_kernel_next(own, op), last = op;
  if (bias != PL_IR_NONE && pl_read_is_bias(&own->read, bias)) {
    pl_kernel_join(own, op, bias);
    last = bias;
  }
  pl_kernel_join(own, op, activation_of(own, pl_read_op(&own->read, last)->first_output));
}

/* A norm in PyTorch ops works in fp32: what it gives is in the type of the rest, as are its scale and the gradient that
 * it is given. */
static void join_casts(pl_kernel_finding *own, int32_t op) {
  bool back = pl_read_is(&own->read, op, "rms_norm_backward");
  if (own->framework->kernels.fuses_norm || (!back && !pl_read_is(&own->read, op, "rms_norm"))) return;
  int32_t casts[] = {pl_read_made(&own->read, op, 1),
                     back ? pl_read_made(&own->read, op, 2) : pl_read_next(&own->read, op)};
  for (int i = 0; i < 2; i++)
    if (pl_read_is(&own->read, casts[i], "cast")) pl_kernel_join(own, op, casts[i]);
}

void pl_kernel_sweeps(pl_kernel_finding *own) {
  for (int32_t i = 0; i < own->read.f->n_ops; i++) {
    if (pl_read_is(&own->read, i, "add") && !pl_read_is_bias(&own->read, i) && pl_kernel_group(own, i) == i) {
      join_positions(own, i);
      join_residual(own, i);
    }
    if (pl_read_is(&own->read, i, "add")) join_side_by_side(own, i);
    if (pl_read_is(&own->read, i, "convolution")) join_convolution(own, i);
    if (pl_read_is_activation(&own->read, i)) join_activation(own, i);
    if (is_activation_backward(own, i)) {
      join_gate_backward(own, i);
      join_square_backward(own, i);
    }
    if (pl_read_is(&own->read, i, "rotary")) join_alike(own, i, 1);
    if (is_norm_of_heads(own, i)) join_alike(own, i, -1);
    join_casts(own, i);
  }
}
