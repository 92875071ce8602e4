/* What is to be changed in a step, what that costs, and how long the step then takes. */
#ifndef PL_SEARCH_STEP_PLAN_H
#define PL_SEARCH_STEP_PLAN_H

#include "search/optimize/op_costs.h"
#include "search/optimize/step_model.h"
#include "workloads/trace/what_if.h"

enum { PL_STEP_MOST_PARTS = 64 };

/* Caller's storage, one entry per tensor or unit of the model. All zero: nothing is changed. */
typedef struct pl_step_plan {
  uint8_t *joins; /* per tensor: fused with the one before it */
  uint8_t *parts; /* per tensor: into how many pieces its fused tensor is cut (that of the first one counts); 0: one */
  uint8_t *fuses; /* per unit: fused with the one before it */
  uint8_t *narrows; /* per unit: computed in half precision */
} pl_step_plan;

/* What the rewritten durations rest on.
 *
 *   messages  a message takes a latency and then time by its size: two fused save one latency, each piece of one that
 *             is cut costs one. The latency is that of the line through the job's messages of its kind
 *             (workloads/trace/message_line.h), or given.
 *   ops       fused ones take the sum of what they took, with the lags between them, less a launch for each that is
 *             saved; or what the file of op costs says for them. */
typedef struct pl_step_costs {
  const pl_op_costs *given; /* may be NULL */
  pl_ticks *latency;        /* per tensor; -1: not known, it is left as it is */
  double *latency_sd_s;     /* per tensor, of a fitted one */
  pl_ticks launch;          /* saved per op that is fused with the one before it; -1: not known */
  bool launch_given;
  uint32_t n_without;             /* tensors without a latency */
  double half_matrix, half_other; /* per op; factors of half precision where no op cost is given; 0: not known */
} pl_step_costs;

/* `fits`: of the job's messages. */
pl_code pl_step_costs_take(const pl_step_model *model, const pl_op_costs *given, const pl_trace_fits *fits,
                           pl_arena *arena, pl_step_costs *costs, pl_error *error);

/* The arrays of an empty plan; false: no memory. */
bool pl_step_plan_take(const pl_step_model *model, pl_arena *arena, pl_step_plan *plan);
void pl_step_plan_copy(const pl_step_model *model, const pl_step_plan *from, pl_step_plan *to);
static inline uint32_t pl_step_plan_parts(const pl_step_plan *plan, uint32_t tensor) {
  return plan->parts[tensor] > 1 ? plan->parts[tensor] : 1;
}
/* One behind the last tensor that is fused with `tensor`, and the first one of them; so units. */
uint32_t pl_step_plan_end(const pl_step_model *model, const pl_step_plan *plan, uint32_t tensor);
uint32_t pl_step_plan_first(const pl_step_plan *plan, uint32_t tensor);
uint32_t pl_step_plan_unit_end(const pl_step_model *model, const pl_step_plan *plan, uint32_t unit);

/* What a slot takes whatever its size: of a message its latency, of a sum a launch. */
pl_ticks pl_step_slot_latency(const pl_step_costs *costs, uint32_t tensor, pl_step_slot_kind kind);
/* Times of a fused tensor's slot and of its pieces; of a fused unit's body. */
pl_ticks pl_step_slot_ticks(const pl_step_model *model, const pl_step_costs *costs, uint32_t first, uint32_t end,
                            uint32_t slot, uint32_t piece, uint32_t parts);
pl_ticks pl_step_unit_ticks(const pl_step_model *model, const pl_step_costs *costs, const pl_step_plan *plan,
                            uint32_t first, uint32_t end, uint32_t member);

/* The step with the plan in it, in `arena`. `tensor` and `unit` (may be NULL): per task of the graph the first tensor
 * or unit of what it stands for; `now` (may be NULL): per task of the model what it became, of one that is cut its
 * first piece. False: no memory. O(tasks + edges, and pieces). */
bool pl_step_rewrite(const pl_step_model *model, const pl_step_costs *costs, const pl_step_plan *plan, pl_arena *arena,
                     pl_step_graph *graph, uint32_t **tensor, uint32_t **unit, uint32_t **now);

/* The makespan with the plan: PL_TICKS_NEVER where it cannot be (something waits for itself), -1 without memory.
 * Scratch in `arena`, given back. */
pl_ticks pl_step_plan_play(const pl_step_model *model, const pl_step_costs *costs, const pl_step_plan *plan,
                           pl_arena *arena);

#endif
