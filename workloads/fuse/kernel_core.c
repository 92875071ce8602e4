/* Attention in steps: scale, mask and softmax are one kernel, or mask and softmax one each; backward one. Its products
 * and its dropout are kernels of their own. See workloads/fuse/kernel_groups.h. */
#include "workloads/fuse/kernel_groups.h"

static void join_softmax(pl_kernel_finding *own, int32_t op) {
  int32_t before = pl_read_made(&own->read, op, 0);
  if (pl_read_is(&own->read, before, "mask") && pl_kernel_next(own, before) == op &&
      own->framework->kernels.fuses_softmax)
    pl_kernel_join(own, op, before);
}

/* Gradients of what is not seen are zero already, and a factor is one in passing. */
static void join_backward(pl_kernel_finding *own, int32_t op) {
  int32_t next = pl_kernel_next(own, op);
  if (pl_read_is(&own->read, next, "mask")) {
    pl_kernel_join(own, op, next);
    next = pl_kernel_next(own, next);
  }
  if (pl_read_is(&own->read, next, "scale")) pl_kernel_join(own, op, next);
}

void pl_kernel_cores(pl_kernel_finding *own) {
  for (int32_t i = 0; i < own->read.f->n_ops; i++) {
    if (pl_read_is(&own->read, i, "softmax")) join_softmax(own, i);
    if (pl_read_is(&own->read, i, "softmax_backward")) join_backward(own, i);
  }
}
