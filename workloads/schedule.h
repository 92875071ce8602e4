/* Pipeline schedules: in which order a stage runs the forward and backward passes of its chunks and microbatches.
 *
 *   gpipe        all forwards, then all backwards in reverse order (Huang et al. 2019).
 *   1f1b         min(pp - stage - 1, m) forwards, then one forward and one backward in turn, then the rest
 * (PipeDream-flush; Narayanan et al. 2021, section 2.2). interleaved  vpp chunks per stage, microbatches in groups of
 * pp per chunk (Narayanan et al. 2021, section 2.2.2).
 */
#ifndef PL_WORKLOADS_SCHEDULE_H
#define PL_WORKLOADS_SCHEDULE_H

#include "workloads/strategy.h"

typedef struct pl_schedule_step {
  bool backward;
  int32_t chunk; /* of this stage: 0 .. vpp - 1; the model's chunk is chunk * pp + stage */
  int32_t microbatch;
} pl_schedule_step;

/* Steps of one stage: 2 * vpp * n_microbatches of them, from `arena`; NULL: no memory. */
const pl_schedule_step *pl_schedule_take(const pl_strategy *strategy, int32_t n_microbatches, int32_t stage,
                                         pl_arena *arena);
/* Largest number of forward passes whose backward has not run yet, at any time of the stage's steps (activations held).
 */
int32_t pl_schedule_in_flight(const pl_schedule_step *steps, int64_t n_steps);

#endif
