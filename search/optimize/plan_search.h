/* The search for a plan: dPRO's walk along the critical path (Hu et al. 2022, algorithm 1), and annealing.
 *
 * `walk`    First the coarsened view as a change: ops that make no tensor go with the next one that does. Then, per
 * chain of tensors, the buckets that a dynamic program finds best if tensors travel one by one: with E(j) the end of
 * the first j, E(j) = min over i of max(E(i), date at which j was computed) + time to synchronise i+1..j fused. From
 * there along the critical path, op by op, as long as something pays: ops by theorem 1, their tensors with them by
 * theorem 3; tensors by theorem 2, their ops with them; how many pieces, by the neighbours of what there is. What a
 * theorem rules out is not replayed. `anneal`  Changes at random, by the replayed step; several runs with seeds of
 * their own, the best of them.
 *
 * Every change that is taken was replayed in the coarsened view, and again on the whole graph of the step: both agree
 * to the tick, or the search fails. The same result for any number of threads.
 */
#ifndef PL_SEARCH_PLAN_SEARCH_H
#define PL_SEARCH_PLAN_SEARCH_H

#include "search/optimize/step_plan.h"

typedef enum pl_search_move {
  PL_MOVE_COARSEN = 0, /* ops that make no tensor go with the next that does */
  PL_MOVE_CAP,         /* buckets by size alone */
  PL_MOVE_PIECES,      /* pieces by size alone */
  PL_MOVE_BUCKETS,     /* of a chain, by the dynamic program */
  PL_MOVE_FUSE_OPS,
  PL_MOVE_FUSE_MAKERS, /* the ops that make the tensors of a bucket */
  PL_MOVE_PART_OPS,
  PL_MOVE_FUSE_TENSORS,
  PL_MOVE_PART_TENSORS, /* no longer fused */
  PL_MOVE_CUT,          /* another number of pieces */
  PL_MOVE_ANNEAL,
  PL_MOVE_PASS, /* of a pass of the user's */
  PL_MOVE_NARROW,
  PL_MOVE_COUNT
} pl_search_move;

extern const char *const pl_search_move_names[PL_MOVE_COUNT + 1];

/* A change that was taken. */
typedef struct pl_search_step {
  uint8_t move;
  uint32_t subject, value; /* tensor or unit, and pieces, as the move has it */
  const char *why;
  pl_ticks before, after; /* of the step */
} pl_search_step;

typedef struct pl_plan_options {
  bool op_fusion, tensor_fusion, tensor_partition;
  bool anneal;
  uint64_t seed;
  uint32_t n_runs, n_tries; /* of annealing; tries per run */
  int n_threads;
} pl_plan_options;

enum { PL_SEARCH_MOST_STEPS = 4096 };

typedef struct pl_plan_search {
  const pl_step_model *whole, *coarse;
  const pl_step_costs *costs;
  pl_plan_options options;
  pl_arena *arena;
  pl_step_plan plan; /* the best so far */
  pl_ticks start, best;
  pl_search_step *steps;
  uint32_t n_steps;
  uint32_t n_replays;             /* in the coarsened view */
  uint32_t n_whole_replays;       /* of the whole graph */
  uint32_t n_ruled_out;           /* by a theorem */
  uint32_t *inner_offset, *inner; /* edges within each tensor */
  uint32_t *makes;                /* per unit the tensor that waits for it, PL_NONE */
  pl_error *error;
} pl_plan_search;

/* Everything from `arena`. The plan is empty. */
pl_code pl_plan_search_take(const pl_step_model *whole, const pl_step_model *coarse, const pl_step_costs *costs,
                            const pl_plan_options *options, pl_arena *arena, pl_plan_search *search, pl_error *error);
/* Looks for the best plan. */
pl_code pl_plan_search_run(pl_plan_search *search);

/* ---- parts ---- */

/* The step with `plan`, in the coarsened view. */
pl_ticks pl_plan_search_play(pl_plan_search *search, const pl_step_plan *plan);
/* Takes `plan`, which played in `after`, if it is better than the best: replays the whole graph and notes the step. */
pl_code pl_plan_search_offer(pl_plan_search *search, const pl_step_plan *plan, pl_ticks after, pl_search_step step);
/* Time to synchronise tensors first..end-1 as one in `parts` pieces, alone: a replay of nothing but their tasks. */
pl_ticks pl_plan_sync_time(pl_plan_search *search, uint32_t first, uint32_t end, uint32_t parts);
/* The dates at which each tensor could begin, and ended, in the coarsened view with `plan`. */
bool pl_plan_search_dates(pl_plan_search *search, const pl_step_plan *plan, pl_ticks *ready, pl_ticks *end);
pl_code pl_plan_search_buckets(pl_plan_search *search);
pl_code pl_plan_search_anneal(pl_plan_search *search);
/* True: `plan` may be so (chains are kept, circles are found by replay). */
static inline bool pl_plan_can_join(const pl_step_model *model, uint32_t tensor) {
  return tensor > 0 && model->tensors[tensor].chain == model->tensors[tensor - 1].chain;
}

#endif
