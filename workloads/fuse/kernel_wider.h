/* What torch.autocast (`autocast` of a profile) has in memory beside what a program of level kernels says, in layers:
 * types stay as the program has them (kernel_autocast.c), so this is how many times as large a value is.
 *
 * Of `all` the residual stream is in fp32, forward and backward: what a layer is handed, its sums, and what its norms
 * make, of it and of their gradients. Of `norms` what a norm is given is cast to fp32 and kept so. What products read
 * is there as often as they have cast it, each for itself: what is kept as often as gradients of weights read it. Of a
 * norm's output that is all; the fp32 tensor between is not counted, which goes at once.
 */
#ifndef PL_WORKLOADS_KERNEL_WIDER_H
#define PL_WORKLOADS_KERNEL_WIDER_H

#include "workloads/framework/framework.h"
#include "workloads/language/ir_module.h"

/* Per value of a function, from the arena: how many times as large it is; NULL in *times: all are as they say. Of
 * `norms` only what is kept is larger than what is handed on. False: no memory. O(operands). */
bool pl_kernel_wider_take(const pl_ir_module *module, const pl_ir_function *function, const pl_framework *framework,
                          pl_arena *arena, const uint8_t **times);

#endif
