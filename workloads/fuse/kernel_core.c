/* Attention in steps: scale, mask and softmax are one kernel, or mask and softmax one each; backward one. Its products
 * and its dropout are kernels of their own. See workloads/fuse/kernel_groups.h. */
#include "workloads/fuse/kernel_groups.h"
#include "workloads/language/ir_core.h"
#include "workloads/language/ir_latent.h"

static void join_softmax(pl_kernel_finding *own, int32_t op) {
  int32_t before = pl_read_made(&own->read, op, 0);
  if (pl_read_is(&own->read, before, "mask") && pl_kernel_next(own, before) == op &&
      !pl_framework_masks_apart(own->framework))
    pl_kernel_join(own, op, before);
}

/* Gradients of what is not seen are zero already, and a factor is one in passing. */
static void join_backward(pl_kernel_finding *own, int32_t op) {
  int32_t next = pl_kernel_next(own, op);
  if (pl_read_is(&own->read, next, "mask")) {
    pl_kernel_join(own, op, next);
    next = pl_kernel_next(own, next);
  }
  if (pl_read_is(&own->read, next, "scale") && own->framework->kernels.fuses_scale) pl_kernel_join(own, op, next);
}

/* Of latent attention one kernel rotates queries and the keys' share, and lays the shares into heads. */
static void join_latent(pl_kernel_finding *own, int32_t attention) {
  int32_t operands[3];
  pl_ir_latent of;
  if (!pl_ir_core_operands(own->read.f, attention, operands) || !pl_ir_latent_find(own->read.f, operands, &of)) return;
  int32_t sum = pl_read_maker(&own->read, operands[1]);
  while (pl_read_is_view(&own->read, sum) || pl_read_is_collective(&own->read, sum)) /* gathered over context ranks */
    sum = pl_read_made(&own->read, sum, 0);
  for (int32_t i = 0; i < 2; i++) {
    int32_t at = pl_read_made(&own->read, sum, i);
    for (; at != PL_IR_NONE && !pl_read_is(&own->read, at, "product"); at = pl_read_made(&own->read, at, 0))
      if (!pl_read_is_collective(&own->read, at)) pl_kernel_join(own, sum, at);
  }
  int32_t queries = pl_read_maker(&own->read, operands[0]);
  if (pl_read_is(&own->read, queries, "rotary")) pl_kernel_join(own, sum, queries);
}

/* Back: the heads' sum of the rotated share turned again, and the rest of each head. */
static void join_latent_backward(pl_kernel_finding *own, int32_t rotary) {
  int32_t part = pl_read_made(&own->read, rotary, 0), sum = pl_read_made(&own->read, part, 0);
  if (!pl_read_is(&own->read, part, "part") || !pl_read_is(&own->read, sum, "sum")) return;
  pl_kernel_join(own, rotary, part);
  pl_kernel_join(own, rotary, sum);
  for (int32_t i = 0; i < own->read.f->n_ops; i++)
    if (pl_read_is(&own->read, i, "part") &&
        pl_read_op(&own->read, i)->inputs[0] == pl_read_op(&own->read, sum)->inputs[0])
      pl_kernel_join(own, rotary, i);
}

/* Probabilities of experts and the choice of the largest are one kernel. */
static void join_choice(pl_kernel_finding *own, int32_t op, int32_t other, const char *row) {
  if (pl_read_is(&own->read, other, row)) pl_kernel_join(own, op, other);
}

void pl_kernel_cores(pl_kernel_finding *own) {
  for (int32_t i = 0; i < own->read.f->n_ops; i++) {
    join_latent(own, i);
    if (pl_read_is(&own->read, i, "rotary")) join_latent_backward(own, i);
    if (pl_read_is(&own->read, i, "top_k")) join_choice(own, i, pl_read_made(&own->read, i, 0), "softmax");
    if (pl_read_is(&own->read, i, "top_k_backward")) join_choice(own, i, pl_kernel_next(own, i), "softmax_backward");
    if (pl_read_is(&own->read, i, "softmax")) join_softmax(own, i);
    if (pl_read_is(&own->read, i, "softmax_backward")) join_backward(own, i);
  }
}
