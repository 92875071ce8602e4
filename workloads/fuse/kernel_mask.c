/* Masks in PyTorch ops (`mask_kernels`, `mask_gradients` of a profile), where attention is not fused and the mask not a
 * part of its softmax. Forward there is one kernel anyhow, which reads scores and writes them:
 *
 *   scores.masked_fill_(mask, -10000)           1 and, back, a copy of the gradient and a fill: 2
 *   scores * mask - 10000 * (1 - mask)          2 and 1
 *   where(mask, scores, -inf), and again of the softmax with zeros   2 and 2
 *   where(mask, scores, -inf) + mask            2 and 1
 *   scores + mask                               1 and none
 *
 * (torch/csrc: derivatives.yaml.) What is masked is as large as the scores; the masks themselves are a sequence's, and
 * stay in the cache. See workloads/fuse/kernel_stepping.h.
 */
#include "workloads/fuse/kernel_stepping.h"

void pl_step_mask(pl_kernel_stepping *own, int32_t index) {
  const pl_framework *framework = own->options->framework;
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  if (!pl_framework_masks_apart(framework)) return;
  bool forward = pl_step_is(own, index, "softmax"), backward = pl_step_is(own, index, "softmax_backward");
  bool masked = forward ? pl_step_is(own, pl_read_made(&own->finding.read, index, 0), "mask")
                        : backward && pl_step_is(own, pl_kernel_next(&own->finding, index), "mask");
  int64_t kernels = forward ? framework->kernels.mask_kernels - 1 : framework->kernels.mask_gradients;
  int32_t value = masked && kernels > 0 ? own->map[forward ? op->first_output : op->inputs[1]] : PL_IR_NONE;
  if (value == PL_IR_NONE) return;
  double element = pl_ir_element_bytes((pl_ir_element)own->function->values[value].type.element);
  pl_step_move(own, value, forward ? "scores.masked" : "scores.dmasked", (int)kernels, (double)kernels * 2 * element);
}
