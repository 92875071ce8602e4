/* Attention in steps: scale, mask and softmax are one kernel, or mask and softmax one each; backward one. Its products
 * and its dropout are kernels of their own. See workloads/passes/kernel_groups.h. */
#include "workloads/language/ir_core.h"
#include "workloads/passes/kernel_groups.h"

bool pl_kernel_core_of(const pl_kernel_finding *own, int32_t op, int32_t operands[3]) {
  pl_ir_core core;
  if (!pl_ir_core_find(own->f, op, &core)) return false;
  operands[0] = pl_kernel_op(own, core.scores)->inputs[0];
  operands[1] = pl_kernel_op(own, core.scores)->inputs[1];
  operands[2] = pl_kernel_op(own, op)->inputs[1];
  return true;
}

static void join_softmax(pl_kernel_finding *own, int32_t op) {
  int32_t before = pl_kernel_made(own, op, 0);
  if (pl_kernel_is(own, before, "mask") && pl_kernel_next(own, before) == op && own->framework->kernels.fuses_softmax)
    pl_kernel_join(own, op, before);
}

/* Gradients of what is not seen are zero already, and a factor is one in passing. */
static void join_backward(pl_kernel_finding *own, int32_t op) {
  int32_t next = pl_kernel_next(own, op);
  if (pl_kernel_is(own, next, "mask")) {
    pl_kernel_join(own, op, next);
    next = pl_kernel_next(own, next);
  }
  if (pl_kernel_is(own, next, "scale")) pl_kernel_join(own, op, next);
}

void pl_kernel_cores(pl_kernel_finding *own) {
  for (int32_t i = 0; i < own->f->n_ops; i++) {
    if (pl_kernel_is(own, i, "softmax")) join_softmax(own, i);
    if (pl_kernel_is(own, i, "softmax_backward")) join_backward(own, i);
  }
}
