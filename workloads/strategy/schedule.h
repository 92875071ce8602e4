/* Pipeline schedules: in which order a stage runs the forward and backward passes of its chunks and microbatches.
 *
 *   gpipe        all forwards, then all backwards in reverse order (Huang et al. 2019).
 *   1f1b         min(pp - stage - 1, m) forwards, then one forward and one backward in turn, then the rest
 * (PipeDream-flush; Narayanan et al. 2021, section 2.2). interleaved  vpp chunks per stage, microbatches in groups of
 * pp per chunk (Narayanan et al. 2021, section 2.2.2).
 *
 * A schedule is a rule of a few numbers: its steps are told one after another and stored nowhere, for there may be
 * millions of them.
 *
 * Most of a schedule recurs. It has one or two phases (pl_schedule_phases); inside a phase the step `period` steps
 * later is the same pass of the same chunk, of a microbatch that is `microbatches` further on. So the schedule of m +
 * microbatches has the steps of that of m, with one period more in every phase, and those behind it moved on.
 */
#ifndef PL_WORKLOADS_SCHEDULE_H
#define PL_WORKLOADS_SCHEDULE_H

#include "workloads/strategy/strategy.h"

typedef struct pl_schedule_step {
  bool backward;
  bool last;     /* the last backward of its chunk */
  int32_t chunk; /* of this stage: 0 .. vpp - 1; the model's chunk is chunk * pp + stage */
  int32_t microbatch;
} pl_schedule_step;

typedef struct pl_schedule {
  pl_schedule_kind kind;
  int32_t pp, vpp, n_microbatches;
  int64_t n_passes; /* forward passes: vpp * n_microbatches, and as many backward */
  int64_t ahead;    /* forward passes before the first that is followed by a backward pass */
} pl_schedule;

/* How far one has come; starts zeroed. */
typedef struct pl_schedule_cursor {
  int64_t forward, backward; /* passes so far */
} pl_schedule_cursor;

enum { PL_SCHEDULE_PHASES = 2 };

/* Steps [from, to) of which each is the one `period` steps before it, `microbatches` later (if both are there). */
typedef struct pl_schedule_phase {
  int64_t from, to;
  int32_t period, microbatches;
} pl_schedule_phase;

pl_schedule pl_schedule_of(const pl_strategy *strategy, int32_t n_microbatches, int32_t stage);
static inline int64_t pl_schedule_n_steps(const pl_schedule *schedule) {
  return 2 * schedule->n_passes;
}
/* The next step of at most n_steps. */
pl_schedule_step pl_schedule_next(const pl_schedule *schedule, pl_schedule_cursor *cursor);
/* Largest number of forward passes whose backward has not run yet, at any time of the stage's steps (activations held).
 */
int32_t pl_schedule_in_flight(const pl_schedule *schedule);
/* How many phases there are; the same for all stages, and period and microbatches too. A phase may be empty. None of
 * them holds the last backward of a chunk. */
int pl_schedule_phases(const pl_schedule *schedule, pl_schedule_phase phases[PL_SCHEDULE_PHASES]);

#endif
