/* AMP's cost model (Li et al. 2022, section 3.4, equations 3 to 5), for comparison with simulation and as the guide of
 * the methods `amp` and `anneal`. What it leaves out is its own: no memory, no contention, no latency, nothing runs
 * beside anything else, one speed for all devices.
 *
 *   layer        t = 3 * mbs * forward pass of one sequence, all-reduces of the tensor group inside; on a mixed cluster
 *                the mean over the devices that work
 *   all-reduce   2 (n - 1) M / (n B), B the lowest bandwidth between neighbours of the ring (equation 3)
 *   experts      with tensor ranks: under sequence parallelism, which AMP does not know and they cannot do without;
 *                all-gather and reduce-scatter are half an all-reduce each
 *   cut          e = v / b of the two devices
 *   pipeline     (microbatches - 1) max t + sum e + sum t (equation 5)
 *   iteration    the slowest pipeline, then the slowest all-reduce of gradients (equation 4)
 *
 * AMP looks forward passes up in a table that it measured: the job's op profile, where it has the block at this tensor
 * degree; else they are the sums of this program's op costs.
 */
#ifndef PL_WORKLOADS_AMP_COST_H
#define PL_WORKLOADS_AMP_COST_H

#include "workloads/assign/amp_assignment.h"
#include "workloads/strategy/strategy.h"

/* Arrays in the arena. The unit is a transformer layer, as in workloads/assign/stage_costs.h; chunks count as stages.
 */
typedef struct pl_amp_costs {
  pl_amp_problem problem;   /* its cuts: of the slowest pipeline */
  const double *parameters; /* prefix sums over layers, of one rank */
  const double *sync_s;     /* per stage: of one parameter */
  const double *send_s;     /* [replicas * tmp][stages - 1] */
  int32_t n_pipelines, pp;
} pl_amp_costs;

/* `strategy` passed pl_strategy_check but for its boundaries, which are not read. Cost: one route per device and kind
 * of communication. */
pl_code pl_amp_costs_take(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                          const pl_strategy *strategy, pl_arena *arena, pl_amp_costs *costs, pl_error *error);

/* Equation 4 for boundaries in layers. O(pipelines * stages). */
double pl_amp_costs_time(const pl_amp_costs *costs, const int32_t *boundary);

#endif
