/* Passes that save memory: gradients accumulated over smaller batches, activations computed again.
 *
 * What a rank holds is counted from what the trace and the file of op costs say:
 *   state        the gradients' bytes times --state-copies (4: weights, gradients, two moments of Adam);
 *   activations  `activation_bytes` of the ops that are named in the file, from that op to the one that reads it; if it
 *                names none, what the trace recorded of the allocator (trace_memory.h).
 * If that is within the budget nothing is changed. Else of what was asked for the one with the shorter step is taken,
 * as dPRO does (Hu et al. 2022, section 5.2), of those that fit: accumulate   m times all that gradients wait for, each
 * op in 1/m of its time (a launch, a lag and a message's latency stay), gradients synchronised after the last;
 * activations are 1/m; recompute    ops in s segments of equal numbers (Chen et al. 2016): kept is what the last op of
 * each holds, the others are run again before the first op that reads one of them; most at once is the kept and one
 * segment.
 */
#ifndef PL_SEARCH_MEMORY_PASS_H
#define PL_SEARCH_MEMORY_PASS_H

#include "search/optimize/step_plan.h"

enum { PL_MEMORY_MOST_PARTS = 64 };

typedef enum pl_memory_way { PL_MEMORY_AS_IS = 0, PL_MEMORY_RECOMPUTE, PL_MEMORY_ACCUMULATE } pl_memory_way;

typedef struct pl_memory_options {
  bool recompute, accumulate;
  double budget_bytes; /* negative: not given */
  int64_t state_copies;
} pl_memory_options;

typedef struct pl_memory_plan {
  pl_memory_way way;
  uint32_t n; /* batches, or segments */
  double before_bytes, after_bytes, state_bytes;
  pl_ticks before, after; /* of the step with nothing else changed */
  bool *again;            /* per unit: run again */
  bool is_recorded;       /* activations are what the trace says of the allocator */
} pl_memory_plan;

/* `model` becomes what is taken. PL_BAD_INPUT: something is not known (the message says what), or nothing fits. */
pl_code pl_memory_pass(pl_step_model *model, const pl_step_costs *costs, const pl_memory_options *options,
                       pl_arena *arena, pl_memory_plan *plan, pl_error *error);

/* The parts: the model with the step's batch in `n` parts; with tasks in front of others. False: no memory. */
bool pl_step_model_repeat(const pl_step_model *model, const pl_step_costs *costs, uint32_t n, pl_arena *arena,
                          pl_step_model *out);
typedef struct pl_step_insertion {
  uint32_t gate; /* task that the new one is put in front of */
  pl_ticks ticks;
} pl_step_insertion;
bool pl_step_model_insert(const pl_step_model *model, const pl_step_insertion *insertions, uint32_t n, pl_arena *arena,
                          pl_step_model *out);

#endif
