/* Pipeline schedules: in which order a stage runs the passes of its chunks and microbatches. A pass is a forward (F), a
 * backward (BW), or the two halves of a backward apart: for inputs (B), which the stage before waits for, and for
 * weights (W), which nobody waits for and which may fill a bubble.
 *
 *   gpipe          all forwards, then all backwards in reverse order (Huang et al. 2019).
 *   fifo           all forwards, then all backwards in the same order (DistIR's; Santhanam et al. 2021).
 *   1f1b           min(pp - stage - 1, m) forwards, then one forward and one backward in turn, then the rest
 *                  (PipeDream-flush; Narayanan et al. 2021, section 2.2).
 *   interleaved    vpp chunks per stage, depth first: microbatches in groups of pp per chunk (Narayanan et al. 2021,
 *                  section 2.2.2).
 *   breadth-first  vpp chunks per stage: all microbatches of a chunk before the next (Lamy-Poirier 2023).
 *   zb-h1, zb-h2   1F1B with B and W apart: pp - stage - 1 or 2 (pp - stage - 1) forwards ahead, and the W of a
 *                  microbatch `stage` or 2 stage backwards behind its B, so that every stage holds pp or 2 pp - 1
 *                  microbatches (Qi et al. 2023, section 3).
 *   zb-v           two chunks per stage in a V, B and W apart; holds what 1F1B holds on its first stage (Qi et al.
 * 2023, section 6). dualpipe-v     DualPipe (DeepSeek-V3) on one copy of the weights: the halves of its two directions
 * as two chunks per stage in a V, as its authors publish it.
 *   dualpipe       DualPipe itself: two copies of the model, of which stage s has the parts s and pp - 1 - s. Half of
 * the microbatches go down the stages on the first copy, the others up on the second; gradients of the copies are added
 * up in the update. In programs alone: chunk 0 of a stage is the first copy's, chunk 1 the second's.
 *   @FILE          as listed (workloads/strategy/listed_schedule.h).
 *
 * With ep_overlap=1 1f1b (of one stage) and interleaved run one forward more ahead, so that a forward pass and the
 * backward pass behind it are of different microbatches, and both of them beside each other: pl_schedule_step.joined,
 * which DualPipe's pairs are, too (Megatron Core, schedules.py: get_pp_rank_microbatches, and combined_1f1b.py).
 *
 * A schedule is a rule of a few numbers: its steps are told one after another and stored nowhere, for there may be
 * millions of them.
 *
 * Most of a schedule recurs. It has up to two phases (pl_schedule_phases); inside a phase the step `period` steps
 * later is the same pass of the same chunk, of a microbatch that is `microbatches` further on. So the schedule of m +
 * microbatches has the steps of that of m, with one period more in every phase, and those behind it moved on.
 */
#ifndef PL_WORKLOADS_STRATEGY_SCHEDULE_H
#define PL_WORKLOADS_STRATEGY_SCHEDULE_H

#include "workloads/strategy/strategy.h"

typedef enum pl_step_kind {
  PL_STEP_FORWARD = PL_PASS_FORWARD,
  PL_STEP_BACKWARD = PL_PASS_BACKWARD, /* for inputs and weights */
  PL_STEP_INPUTS = PL_PASS_INPUTS,
  PL_STEP_WEIGHTS = PL_PASS_WEIGHTS,
  PL_STEP_KIND_COUNT
} pl_step_kind;
/* "F", "BW", "B", "W". */
const char *pl_step_name(pl_step_kind kind);

typedef struct pl_schedule_step {
  uint8_t kind;  /* pl_step_kind */
  bool last;     /* the last of its chunk that makes gradients of weights */
  bool joined;   /* a forward pass that runs beside the next one, a backward pass */
  int32_t chunk; /* of this stage: 0 .. vpp - 1; the model's chunk is pl_strategy_chunk_at */
  int32_t microbatch;
} pl_schedule_step;

/* Whether activations come in from the chunk behind: a backward in whole or for inputs. */
static inline bool pl_step_is_backward(const pl_schedule_step *step) {
  return step->kind == PL_STEP_BACKWARD || step->kind == PL_STEP_INPUTS;
}
/* Whether it lets go of what its forward kept. */
static inline bool pl_step_makes_weights(const pl_schedule_step *step) {
  return step->kind == PL_STEP_BACKWARD || step->kind == PL_STEP_WEIGHTS;
}

typedef struct pl_schedule {
  pl_schedule_kind kind;
  int32_t pp, vpp, stage, n_microbatches;
  int64_t n_passes; /* forward passes: vpp * n_microbatches, and as many backward */
  int64_t ahead;    /* forward passes before the first that is followed by a backward pass */
  int64_t delay;    /* backward passes for inputs before the first that is followed by one for weights */
  const struct pl_listed_schedule *listed;
  bool paired;    /* once the pipeline is filled, every forward pass runs beside a backward one (ep_overlap=1) */
  bool mirrored;  /* dualpipe: of the stages of the other half */
  int32_t second; /* dualpipe: the first microbatch of the second direction, chunk 1 */
} pl_schedule;

/* How far one has come; starts zeroed. */
typedef struct pl_schedule_cursor {
  int64_t forward, backward, weights; /* passes so far */
  /* Of schedules in stretches (schedule_v.c). */
  int32_t stretch, turn, at;
  int32_t passes[PL_STEP_KIND_COUNT][2]; /* by kind and chunk; BW counts as B and as W */
} pl_schedule_cursor;

enum { PL_SCHEDULE_PHASES = 2 };

/* Steps [from, to) of which each is the one `period` steps before it, `microbatches` later (if both are there). */
typedef struct pl_schedule_phase {
  int64_t from, to;
  int32_t period, microbatches;
} pl_schedule_phase;

/* Whether there is a schedule of each number of microbatches, with phases: not of a listed one, and breadth-first ones
 * have a phase for each chunk. */
bool pl_schedule_recurs(const pl_strategy *strategy);
/* Microbatches that its periods are made of, and those that have to be there before it recurs. */
int32_t pl_schedule_round(const pl_strategy *strategy);
int32_t pl_schedule_filling(const pl_strategy *strategy);

pl_schedule pl_schedule_of(const pl_strategy *strategy, int32_t n_microbatches, int32_t stage);
int64_t pl_schedule_n_steps(const pl_schedule *schedule);
/* The next step of at most n_steps. */
pl_schedule_step pl_schedule_next(const pl_schedule *schedule, pl_schedule_cursor *cursor);
/* Largest number of forward passes whose weight gradients have not been made yet, at any time of the stage's steps
 * (activations held). O(steps) for schedules in a V and listed ones. */
int32_t pl_schedule_in_flight(const pl_schedule *schedule);
/* How many phases there are; the same for all stages, and period and microbatches too. A phase may be empty. None of
 * them holds a last step of a chunk. */
int pl_schedule_phases(const pl_schedule *schedule, pl_schedule_phase phases[PL_SCHEDULE_PHASES]);

/* ---- schedules in a V (schedule_v.c) ---- */
int64_t pl_schedule_v_n_steps(const pl_schedule *schedule);
pl_schedule_step pl_schedule_v_next(const pl_schedule *schedule, pl_schedule_cursor *cursor);
pl_schedule_phase pl_schedule_v_phase(const pl_schedule *schedule);

#endif
