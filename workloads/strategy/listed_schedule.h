/* Schedules that a file lists: strategy ...,schedule=@FILE.
 *
 *   # two stages, two microbatches (DistIR's FIFO)
 *   chunks loop
 *   0: F0.0 F0.1 BW0.0 BW0.1
 *   1: F0.0 F0.1 BW0.0 BW0.1
 *
 * One line per stage: its number, a colon, its passes in order. A pass is F (forward), BW (backward), or the halves of
 * a backward, B (for inputs) and W (for weights); then the chunk of the stage, a point and the microbatch, all counted
 * from 0. A stage may have several lines; they follow one another. `chunks v`, before the first pass: two chunks per
 * stage in a V, down the stages and back; `chunks loop`, or nothing: chunk c of stage s is chunk c * pp + s of the
 * model. `holds N`, likewise: no stage holds the activations of more than N passes. # begins a comment.
 *
 * Checked is that every pass is there once, that no stage waits for ever, and that what goes from one stage to another
 * is taken in the order in which it is sent, as one communicator hands it over.
 */
#ifndef PL_WORKLOADS_STRATEGY_LISTED_SCHEDULE_H
#define PL_WORKLOADS_STRATEGY_LISTED_SCHEDULE_H

#include "workloads/strategy/schedule.h"

typedef struct pl_listed_schedule {
  const char *path;
  int32_t pp, vpp, n_microbatches;
  int32_t most_held; /* forwards of a stage whose weight gradients are still to be made; 0: not said */
  bool is_v, splits; /* splits: there are B and W */
  const pl_schedule_step *const *steps; /* by stage */
  const int64_t *n_steps;               /* by stage */
} pl_listed_schedule;

/* Reads and checks FILE. Memory from `arena`. */
pl_code pl_listed_schedule_read(const char *path, pl_arena *arena, const pl_listed_schedule **schedule,
                                pl_error *error);
/* The same of a text of `size` bytes with a NUL behind it; `name` stands for the path in messages. */
pl_code pl_listed_schedule_parse(const char *name, const char *text, size_t size, pl_arena *arena,
                                 const pl_listed_schedule **schedule, pl_error *error);

/* ---- the checker (schedule_check.c), of any schedule ---- */

typedef enum pl_schedule_fault_kind {
  PL_SCHEDULE_SOUND = 0,
  PL_SCHEDULE_TWICE,      /* the step at `at` of `stage` was there before */
  PL_SCHEDULE_MISSING,    /* `step` of `stage` is not there; `at`: its number of steps */
  PL_SCHEDULE_TOO_EARLY,  /* the step comes before `step` of its own stage, on which it depends */
  PL_SCHEDULE_DEADLOCK,   /* the step waits for `step` of stage `other`, and that for ever */
  PL_SCHEDULE_OVERTAKING, /* the step takes what stage `other` sends after what `step` takes, which comes later */
  PL_SCHEDULE_HOLDS_MORE, /* with this step the stage holds more than it may */
  PL_SCHEDULE_NO_MEMORY
} pl_schedule_fault_kind;

typedef struct pl_schedule_fault {
  pl_schedule_fault_kind kind;
  int32_t stage, other;
  int64_t at;
  pl_schedule_step step;
} pl_schedule_fault;

/* The first fault of a listed schedule. Every step's chunk is below vpp and its microbatch below n_microbatches.
 * O(steps); memory from `arena` is given back. */
pl_schedule_fault pl_schedule_check(const pl_listed_schedule *schedule, pl_arena *arena);

#endif
