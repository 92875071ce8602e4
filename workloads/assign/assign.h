/* Layer assignments of every recipe, for commands: those of workloads/strategy/strategy.h, and those that need the
 * price of communication between the devices of the strategy.
 *
 * optimal  the exact optimum of the pipeline objective (workloads/assign/layer_assignment.h) on the prices of
 *          workloads/assign/stage_costs.h. When no assignment keeps to the memory, the one that is best when every
 * stage has as much more room as the least that lets one fit: a candidate that does not fit is a result, not an error.
 * amp-dp AMP's dynamic program (workloads/assign/amp_assignment.h, equation 8) on AMP's costs
 * (workloads/assign/amp_cost.h).
 */
#ifndef PL_WORKLOADS_ASSIGN_H
#define PL_WORKLOADS_ASSIGN_H

#include "workloads/run/simulate.h"

/* Fills the boundaries in `arena`; nothing to do for given ones. Of the options how communication is simulated. Cost:
 * for optimal that of the prices, about what the plan of a simulation without folding costs; for amp-dp as at
 * pl_amp_assignment_solve, PL_UNSUPPORTED beyond its limit. */
pl_code pl_assign(pl_strategy *strategy, const pl_model *model, const pl_job *job, const pl_cluster *cluster,
                  const pl_simulate_options *options, pl_arena *arena, pl_error *error);

#endif
