/* Copies that a profile makes of queries, keys and values on their way to fused attention (`copies_qkv`). Batch and
 * tokens change places, keys and values are packed side by side and then into the kernel's layout; queries go to a
 * tensor of their own as they are rotated. Back, keys' and values' gradients are packed, the queries' is copied, and
 * all three are packed and permuted. Where a
 * gated activation is several kernels, the gradients of gate and up projection, which are one weight, are packed. See
 * workloads/fuse/kernel_stepping.h.
 */
#include "workloads/fuse/kernel_stepping.h"

/* Steps, as copies say them: those of one are one kernel (workloads/fuse/kernel_gradients.c). */
static const int all_forward[] = {1, 0}, keys_forward[] = {1, 2, 3, 0}, queries_back[] = {5, 6, 7, 0},
                 keys_back[] = {4, 6, 7, 0}, gate_back[] = {8, 0};

static bool is_passed(const pl_kernel_stepping *own, int32_t op) {
  return pl_step_is(own, op, "rename") || pl_step_is(own, op, "rotary");
}

/* What a product with a weight gave, perhaps with a bias; PL_IR_NONE: something else was done to it. */
static int32_t product_of(const pl_kernel_stepping *own, int32_t value) {
  int32_t op = pl_read_maker(&own->finding.read, value);
  while (op != PL_IR_NONE && is_passed(own, op)) {
    value = pl_read_op(&own->finding.read, op)->inputs[0];
    op = pl_read_maker(&own->finding.read, value);
  }
  bool made = pl_step_is(own, op, "product") || (op != PL_IR_NONE && pl_read_is_bias(&own->finding.read, op));
  return made ? value : PL_IR_NONE;
}

/* What products read of a gradient. */
static int32_t gradient_of(const pl_kernel_stepping *own, int32_t value) {
  for (int32_t op; op = pl_kernel_reader(&own->finding, value), op != PL_IR_NONE && is_passed(own, op);)
    value = pl_read_op(&own->finding.read, op)->first_output;
  return value;
}

/* Of act(gate) * up: the multiplication that gives up's gradient, by what that of act's reads too; PL_IR_NONE: none. */
static int32_t other_half(const pl_kernel_stepping *own, int32_t times_up) {
  const int32_t *factors = pl_read_op(&own->finding.read, times_up)->inputs;
  for (int32_t i = 0; i < own->finding.read.f->n_ops; i++) {
    const int32_t *inputs = pl_read_op(&own->finding.read, i)->inputs;
    if (i == times_up || own->again[i] || !pl_step_is(own, i, "multiply") || inputs[0] == inputs[1]) continue;
    for (int k = 0; k < 4; k++)
      if (inputs[k / 2] == factors[k % 2]) return i;
  }
  return PL_IR_NONE;
}

static void find_gates(pl_kernel_stepping *own) {
  for (int32_t i = 0; i < own->finding.read.f->n_ops; i++) {
    if (!pl_step_is(own, i, "silu_backward") && !pl_step_is(own, i, "gelu_backward")) continue;
    int32_t times_up = pl_read_made(&own->finding.read, i, 1);
    int32_t other = pl_step_is(own, times_up, "multiply") ? other_half(own, times_up) : PL_IR_NONE;
    if (other == PL_IR_NONE) continue;
    own->heads[pl_read_op(&own->finding.read, i)->first_output] = gate_back;
    own->heads[pl_read_op(&own->finding.read, other)->first_output] = gate_back;
  }
}

void pl_step_find_heads(pl_kernel_stepping *own) {
  if (pl_framework_packs_gate(own->options->framework)) find_gates(own);
  if (!own->options->framework->kernels.copies_qkv) return;
  for (int32_t i = 0; i < own->finding.read.f->n_ops; i++) {
    const pl_ir_op *op = pl_read_op(&own->finding.read, i);
    bool forward = pl_step_is(own, i, "attention"), back = pl_step_is(own, i, "attention_backward");
    for (int32_t k = 0; k < 3 && (forward || back); k++) {
      int32_t value = back ? gradient_of(own, op->first_output + k) : product_of(own, op->inputs[k]);
      if (value == PL_IR_NONE) continue;
      own->heads[value] = back ? (k == 0 ? queries_back : keys_back) : k == 0 ? all_forward : keys_forward;
    }
  }
}

int32_t pl_step_copy_heads(pl_kernel_stepping *own, int32_t of, int32_t value) {
  for (const int *step = own->heads[of]; step != NULL && *step != 0; step++) {
    const pl_ir_attribute heads = pl_ir_integer("heads", *step);
    value = pl_step_append_same(own, "copy", value,
                                *step == gate_back[0] ? "both side by side" : "on its way to attention", &heads);
  }
  return value;
}
