/* A block as what its kernels are: the passes that write kernels of programs (workloads/fuse/kernels.h) are run on the
 * block's function and its derivative, and what they made is noted on the tape, op by op: kernels as they are described
 * for programs (workloads/cost/ir_kernel.h), collectives between them, and the tensors that they read and write.
 *
 * Values of the function become tensors; names for the same elements (renames, cuts) are one tensor. What frameworks
 * hold in one allocation is one: weights of products that are one kernel, what such a kernel gives, a norm's scale and
 * shift. What they do in place is done in the tensor that is there: sums of partial results over a group, gradients
 * that are added up where nobody reads one of them later (autograd's input buffers), losses by their form.
 */
#ifndef PL_WORKLOADS_LAUNCHED_BLOCK_H
#define PL_WORKLOADS_LAUNCHED_BLOCK_H

#include "workloads/block/block_tape.h"
#include "workloads/lower/block_function.h"

/* Its kernels under the framework (NULL: ideal), in `arena`. */
pl_code pl_launch_kernels(const pl_block_shard *shard, pl_arena *arena, pl_block_function *block, pl_error *error);
/* Forward and backward pass of these, all that the tape says of a block but its FLOPs. */
pl_code pl_launch_block(const pl_block_function *block, pl_tape *tape, pl_error *error);
/* Forward FLOPs of the whole block for one microbatch, unsharded and unpadded (block_flops.c). */
double pl_block_model_flops(const pl_block_function *block, const pl_block_shard *shard);

#endif
