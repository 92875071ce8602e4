/* Copies that a profile makes of queries, keys and values on their way to fused attention (`copies_qkv`). Batch and
 * tokens change places, keys and values are packed side by side and then into the kernel's layout; queries go to a
 * tensor of their own as they are rotated. Back, keys' and values' gradients are packed, the queries' is copied, and
 * all three are packed and permuted. See workloads/passes/kernel_stepping.h.
 */
#include "workloads/passes/kernel_stepping.h"

/* Steps, as copies say them: those of one are one kernel (workloads/fuse/kernel_gradients.c). */
static const int all_forward[] = {1, 0}, keys_forward[] = {1, 2, 3, 0}, queries_back[] = {5, 6, 7, 0},
                 keys_back[] = {4, 6, 7, 0};

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

void pl_step_find_heads(pl_kernel_stepping *own) {
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
    value = pl_step_append_same(own, "copy", value, "on its way to attention", &heads);
  }
  return value;
}
