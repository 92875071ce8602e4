/* What a placement is worth before it is simulated: the pipeline objective (workloads/assign/layer_assignment.h) with
 * the layers that minimise it, on the simulator's own prices (workloads/assign/stage_costs.h), and microbatches dealt
 * out to unlike replicas. */
#ifndef PL_SEARCH_PLACEMENT_SCORE_H
#define PL_SEARCH_PLACEMENT_SCORE_H

#include "search/method/method.h"

/* `strategy` has a placement or none, and no boundaries; where replicas are unlike and may have different numbers of
 * microbatches, the split that makes the objective smallest is set if it beats equal shares: numbers in proportion to
 * the replicas' paces under the layers found so far, then layers again, until nothing is gained (at most four times).
 * *estimate_s: of the whole iteration; INFINITY: no assignment of layers keeps to the memory; NAN: the strategy is not
 * one for this problem. Split in `arena`. */
pl_code pl_placement_score(const pl_search_problem *problem, pl_strategy *strategy, pl_arena *arena, double *estimate_s,
                           pl_error *error);

/* Deals `n_units` of `unit` microbatches out so that the replica that is done last is done as early as can be, each at
 * least one unit: pace_s per microbatch. Exact. False: fewer units than replicas. */
bool pl_placement_deal(int32_t n_replicas, const double *pace_s, int64_t n_units, int32_t unit, int32_t *split);

#endif
