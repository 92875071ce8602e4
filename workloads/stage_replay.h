/* What the allocator of a stage's devices holds beyond the tensors: the passes of the stage are replayed, tensor by
 * tensor, against workloads/caching_allocator.h, until the schedule has settled. Weights, gradients and optimizer are
 * not in it: they are made once and stay.
 */
#ifndef PL_WORKLOADS_STAGE_REPLAY_H
#define PL_WORKLOADS_STAGE_REPLAY_H

#include "workloads/program.h"

typedef struct pl_replayed_memory {
  double peak;  /* largest sum of tensors */
  double held;  /* bytes of all segments less the largest sum of tensors */
  double stuck; /* of these, in segments that some tensor is in when that sum is reached: never given back */
} pl_replayed_memory;

/* Cost: the ops of about twice as many microbatches as the stage has in flight. */
pl_code pl_stage_replay(const pl_program *program, int32_t stage, pl_arena *arena, pl_replayed_memory *memory,
                        pl_error *error);

#endif
