/* Lower bounds on what a simulation will say of a strategy: its iteration time, and the memory that it needs.
 *
 * The bound on time holds for the simulation, not for the world: it is made of the same op costs, programs and
 * collectives, leaves out what only adds (contention, the slow-down of overlap, waiting that it cannot prove), and
 * never counts what may hide. A reduction of the last backward pass begins when the blocks before its bucket are done,
 * and counts with what it takes beyond the pass. For stage s with m microbatches, F and B a microbatch's passes with
 * the collectives that they wait for (alone on their links), J = F + B and not below what the host needs to launch
 * both, h the sends of an activation and its gradient, e what follows a stage's last backward pass (gradients not yet
 * reduced, tied embedding, optimizer, ZeRO's gather):
 *
 *   full stage   sum_{i<s} (J_i + h_i) + m J_s + e_0      the stage works without a pause, and the pipeline before it
 *                sum_{i<s} (F_i + h_i/2) + m J_s + e_s    fills and drains; of chunks the first ones
 *   round trip   sum_{i<>s} J_i + sum h_i + (m - w) J_s + w B_s + e_0    the first backward pass waits for the last
 *                stage, before which 1F1B fits w + 1 = min(pp - s, m) forward passes; GPipe w = 0
 *   streams      m (gathers and reductions) of ZeRO 2 and 3, which share one stream
 *
 * Gathers and reductions of ZeRO 2 and 3 count in J_s alone, and there not of one microbatch: the first ones run while
 * a stage waits for its first activation, the last ones while its gradient is on its way.
 *
 * With backward passes in halves only the second of the full stage's holds (J of all three), and no reduction counts
 * that may run beside a pass; a listed schedule has no round trip that is known.
 *
 * The largest of these over all stages, and over ranks on unlike devices. For like stages the first is exact but for
 * communication. Peaks of memory are those of the schedule's passes on the stage, which is what a simulation finds as
 * well, as tasks of a device run in order.
 *
 * With an op profile (measured layers) computing counts nothing here, since its scale is found from what the
 * communication plan knows. With chunked collectives, and with ready streams, where other
 * microbatches compute while a pass waits, communication counts nothing.
 *
 * Rejected: the longest path through all passes of all microbatches (exact without contention, but as long as the
 * simulation is); bounds per block kind instead of per strategy (they hold for boxes of strategies and prune earlier,
 * but the spaces are small enough to look at each of their strategies for tens of microseconds).
 */
#ifndef PL_SEARCH_LOWER_BOUND_H
#define PL_SEARCH_LOWER_BOUND_H

#include "core/base/arena.h"
#include "workloads/run/simulate.h"

typedef struct pl_lower_bound {
  double time_s;          /* 0 where shortfall_bytes is above 0: nobody will ask for it */
  double shortfall_bytes; /* by which at least one device is too small: above 0, it certainly does not fit */
  int32_t stage;          /* of that device */
} pl_lower_bound;

/* What bounds of one problem share: blocks by how they are cut, communicators by where they are. One thread's. */
typedef struct pl_lower_bounds pl_lower_bounds;

/* Everything in `arena`; what is given must outlive it. NULL: no memory. */
pl_lower_bounds *pl_lower_bounds_take(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                                      const pl_simulate_options *options, pl_arena *arena);
/* Gives back what does not lie in the arena; NULL is allowed. */
void pl_lower_bounds_release(pl_lower_bounds *bounds);
/* `strategy` passed pl_strategy_check and has boundaries. Tens of microseconds where blocks and communicators are
 * known. */
pl_code pl_lower_bound_of(pl_lower_bounds *bounds, const pl_strategy *strategy, pl_lower_bound *bound, pl_error *error);
/* What no placement on the cluster's devices, no cut of the layers and no split of the batch can go below, of this
 * strategy's degrees, microbatch and recomputation: all passes of all blocks over what so many of the fastest devices
 * do together, where a device counts as fast as it is on the block that suits it best; no communication, no host, no
 * bubble. O(blocks * profiles + devices). */
pl_code pl_lower_bound_anywhere(pl_lower_bounds *bounds, const pl_strategy *strategy, double *time_s, pl_error *error);

#endif
