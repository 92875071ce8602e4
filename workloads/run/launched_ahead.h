/* Memory of tensors that collectives have touched and that nobody needs any more, which the allocator cannot hand out
 * again yet: the host has freed them, but the device has not passed the collective.
 *
 * PyTorch's ProcessGroupNCCL marks what a collective reads and writes as used on its own stream (recordStream), so that
 * a block that is freed waits for an event there: in host order it is gone, on the device it comes free when the launch
 * queue has been worked off. With an eager host far ahead of the device, all that tensor groups have gathered, reduced
 * and scattered since lies beside the tensors (pytorch/pytorch pull request 76861, whose author saw it in Megatron;
 * issue 124260, the same; pytorch/torchtitan pull request 737). TORCH_NCCL_AVOID_RECORD_STREAMS=1 switches it off, and
 * newer versions do without it (pytorch/pytorch pull request 150398).
 *
 * So does DeepSpeed with the parameters that ZeRO-3 gathers: they are gathered into tensors of a stream of their own,
 * and freed behind the layer with a mark on the stream that computes (partition_parameters.py, free_param;
 * partitioned_param_coordinator.py, fetch_sub_module). Those that it keeps for the backward pass are among the tensors.
 *
 * What is counted is what a forward pass has let go of when the host has launched the last of it, which is when most
 * activations are there. Between passes of a pipeline the host waits for the device (Megatron's batch_p2p_sync), so
 * that it is ahead by what the pass takes less what launching it takes; without a pipeline it is ahead from the
 * backward pass before. The queue has room for 1,024 launches (some 1,000 measured:
 * forums.developer.nvidia.com/t/68937), of which an op is one here unless the profile says how many ops that is.
 *
 * It is held memory alone: when the device is full the allocator waits for the events and has the blocks back
 * (CUDACachingAllocator.cpp, synchronize_and_free_events), so that no verdict depends on it.
 */
#ifndef PL_WORKLOADS_LAUNCHED_AHEAD_H
#define PL_WORKLOADS_LAUNCHED_AHEAD_H

#include "workloads/compile/pieces.h"

/* What a forward pass of each class of blocks launches and lets go of: found once for all stages. Empty when zeroed. */
typedef struct pl_let_go {
  int64_t n_launches[PL_MODEL_CLASSES_MAX]; /* 0: not known yet */
  double bytes[PL_MODEL_CLASSES_MAX];
} pl_let_go;

/* Bytes, on a device of `context`'s class. 0: the framework does not do so, or its host is never ahead. O(ops). */
double pl_launched_ahead_bytes(const pl_piece_context *context, pl_let_go *let_go);

#endif
