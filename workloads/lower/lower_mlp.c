/* MLPs: gate and up projection are one product; bias and activation, or the activation of one half times the other, are
 * one kernel where the profile fuses them. */
#include "core/cluster/cluster.h"
#include "workloads/lower/lowering.h"

static const double activation_flops = 8;

/* `op`, or the addition of a bias behind it. */
static int32_t value_behind(const pl_lowering *to, int32_t op, int32_t *bias) {
  *bias = pl_read_bias_behind(&to->read, pl_read_op(&to->read, op)->first_output);
  return pl_read_op(&to->read, *bias != PL_IR_NONE ? *bias : op)->first_output;
}

/* The gate whose activation is multiplied with `up`. */
static bool find_gate(const pl_lowering *to, int32_t up, pl_mlp_ops *found) {
  int32_t multiply = pl_read_user(&to->read, up), gate = pl_read_gate(&to->read, multiply);
  pl_head_ops ops;
  if (gate < 0 || pl_read_op(&to->read, multiply)->inputs[gate] == up) return false;
  found->activation = pl_read_activation(&to->read, pl_read_op(&to->read, multiply)->inputs[gate], &found->squared);
  if (!pl_read_heads(&to->read, pl_read_op(&to->read, found->activation)->inputs[0], &ops)) return false;
  found->gate = ops.product;
  found->gate_bias = ops.bias;
  found->multiply = multiply;
  return true;
}

/* The activation behind an ungated projection. */
static bool find_plain(const pl_lowering *to, int32_t up, pl_mlp_ops *found) {
  int32_t user = pl_read_user(&to->read, up);
  if (!pl_read_is_activation(&to->read, user)) return false;
  found->activation = user;
  int32_t behind = to->read.user[pl_read_op(&to->read, user)->first_output];
  if (pl_read_is_square(&to->read, behind)) found->squared = behind;
  return true;
}

/* SwiGLU in PyTorch ops: silu of one half is a tensor of its own, kept for the product's derivative. */
static void eager_gated(pl_tape *tape, const pl_tape_names *names, uint32_t up, uint32_t active) {
  double half = tape->tensors[active].size_bytes;
  uint32_t gate = pl_tape_like(tape, active, "gate", PL_TENSOR_ACTIVATION, tape->shard->dtype);
  pl_tape_sweep(tape, "gate", PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, activation_flops / 2, up, PL_NONE, PL_NONE, gate,
                PL_NONE)
      ->bytes = 2 * half;
  pl_tape_sweep(tape, names->forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, gate, up, PL_NONE, active, PL_NONE)
      ->bytes = 3 * half;
  pl_tape_node *node = pl_tape_note(tape, PL_RULE_GATED, *names, up, active);
  node->second = gate;
  node->first_op = node->op - 1;
}

/* GELU's form with tanh as Hugging Face's NewGELUActivation and Google's BERT have it, op by op:
 * 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). Autograd keeps the tanh and both factors of the last product.
 * Under autocast the cube is in fp32, and all that is made of it. */
static void eager_gelu(pl_tape *tape, const pl_tape_names *names, uint32_t x, uint32_t y) {
  static const char *const inner_ops[] = {"gelu_cube", "gelu_cube_scale", "gelu_inner", "gelu_inner_scale"};
  uint32_t inner = pl_tape_like(tape, y, "gelu_inner", PL_TENSOR_ACTIVATION, tape->normed);
  uint32_t tangent = pl_tape_like(tape, y, "gelu_tanh", PL_TENSOR_ACTIVATION, tape->normed);
  uint32_t sum = pl_tape_like(tape, y, "gelu_sum", PL_TENSOR_ACTIVATION, tape->normed);
  uint32_t half = pl_tape_like(tape, y, "gelu_half", PL_TENSOR_ACTIVATION, tape->shard->dtype);
  uint32_t first_op = tape->n_forward;
  bool casts = tape->normed != tape->shard->dtype;
  if (casts) {
    pl_tape_sweep(tape, "gelu_autocast", PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, x, PL_NONE, PL_NONE, inner,
                  PL_NONE);
    pl_tape_retype(tape, y, tape->normed);
  }
  for (int i = 0; i < 4; i++) /* the third adds x, the others work on one tensor */
    pl_tape_sweep(tape, inner_ops[i], PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, i == 0 && !casts ? x : inner,
                  i == 2 ? x : PL_NONE, PL_NONE, inner, PL_NONE);
  pl_tape_sweep(tape, "gelu_tanh", PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, activation_flops, inner, PL_NONE, PL_NONE,
                tangent, PL_NONE);
  pl_tape_sweep(tape, "gelu_sum", PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, tangent, PL_NONE, PL_NONE, sum, PL_NONE);
  pl_tape_sweep(tape, "gelu_half", PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, x, PL_NONE, PL_NONE, half, PL_NONE);
  pl_tape_sweep(tape, names->forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, half, sum, PL_NONE, y, PL_NONE);
  pl_tape_node *node = pl_tape_note(tape, PL_RULE_GELU, *names, x, y);
  node->second = half;
  node->auxiliary = sum;
  node->bias = tangent;
  node->first_op = first_op;
}

static void activate(pl_lowering *to, const pl_tape_names *names, const pl_mlp_ops *found, bool bias, uint32_t up,
                     uint32_t active) {
  pl_tape *tape = to->tape;
  bool fuses = tape->framework->kernels.fuses_activation, gated = found->multiply != PL_IR_NONE;
  if (gated && !pl_framework_fuses_gate(tape->framework)) {
    eager_gated(tape, names, up, active);
    return;
  }
  if (!fuses && bias) /* the bias by a kernel of its own, in place */
    pl_tape_sweep(tape, "mlp_up_bias", PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, up, PL_NONE, PL_NONE, up, PL_NONE);
  if (!gated && !tape->framework->kernels.fuses_gelu && pl_read_is(&to->read, found->activation, "gelu")) {
    eager_gelu(tape, names, up, active);
    return;
  }
  pl_tape_sweep(tape, names->forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, activation_flops, up, PL_NONE, PL_NONE,
                active, PL_NONE);
  pl_tape_note(tape, PL_RULE_POINTWISE, *names, up, active);
}

int32_t pl_lower_mlp_last(const pl_mlp_ops *found) {
  return found->weighted != PL_IR_NONE   ? found->weighted
         : found->multiply != PL_IR_NONE ? found->multiply
         : found->squared != PL_IR_NONE  ? found->squared
                                         : found->activation;
}

bool pl_lower_find_mlp(const pl_lowering *to, int32_t up, pl_mlp_ops *found) {
  *found = (pl_mlp_ops){up, PL_IR_NONE, PL_IR_NONE, PL_IR_NONE, PL_IR_NONE, PL_IR_NONE, PL_IR_NONE, PL_IR_NONE};
  if (!pl_lower_is_param(to, pl_read_op(&to->read, up)->inputs[1])) return false;
  int32_t value = value_behind(to, up, &found->up_bias);
  if (!find_gate(to, value, found) && !find_plain(to, value, found)) return false;
  int32_t weighted = pl_read_user(&to->read, pl_read_op(&to->read, pl_lower_mlp_last(found))->first_output);
  if (pl_read_chosen(&to->read, weighted) != PL_IR_NONE) found->weighted = weighted;
  return pl_read_is(&to->read, pl_read_user(&to->read, pl_read_op(&to->read, pl_lower_mlp_last(found))->first_output),
                    "product");
}

bool pl_lower_mlp(pl_lowering *to, int32_t op) {
  static const pl_tape_names plain = PL_OP_NAMES("activation");
  pl_mlp_ops found;
  if (!pl_lower_find_mlp(to, op, &found)) return false;
  bool gated = found.multiply != PL_IR_NONE;
  pl_tape *tape = to->tape;
  pl_linear linear = pl_lower_linear(to, op);
  int64_t f = linear.out, rows = linear.m / tape->mbs;
  uint32_t up = gated ? pl_tape_tensor(tape, linear.names.forward, PL_TENSOR_ACTIVATION, tape->shard->dtype, "bsgf",
                                       (const int64_t[]){tape->mbs, rows, 2, f})
                      : pl_tape_activation(tape, linear.names.forward, rows, 'f', f);
  linear.bias = found.up_bias != PL_IR_NONE;
  if (gated) {
    const pl_linear gate = pl_lower_linear(to, found.gate);
    pl_lower_beside(&linear, &gate);
  }
  pl_tape_linear(tape, &linear, pl_lower_input(to, op, 0), PL_NONE, up);
  const pl_tape_names *names = to->block->names[found.activation];
  uint32_t active = pl_tape_activation(tape, names != NULL ? names->forward : plain.forward, rows, 'f', f);
  activate(to, names != NULL ? names : &plain, &found, linear.bias, up, active);
  const int32_t all[] = {found.up_bias, found.gate, found.gate_bias, found.activation, found.squared, found.multiply};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (all[i] != PL_IR_NONE) pl_lower_done(to, all[i]);
  pl_lower_set(to, pl_lower_mlp_last(&found), 0, active);
  return true;
}
