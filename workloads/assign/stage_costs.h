/* What the layers of a model cost on the stages of a strategy: the prices of the layer assignment
 * (workloads/assign/layer_assignment.h), from the same op costs, communicators, schedules and memory as the simulation.
 *
 * The unit is a transformer layer: the embedding goes with the first, final norm, head and loss with the last, as
 * frameworks cut. With chunks (vpp > 1) each is a stage of its own on the devices of the stage that has it.
 *
 * time_s: of a microbatch. Forward, backward and recomputation on the slowest of the stage's devices (with an uneven
 * split: times its share of the microbatches of the replica that has most), and the collectives inside blocks that
 * computing waits for, of all replicas at once on the stage's own links.
 *
 * cut_s: the activation down and its gradient up, of all ranks of the stage at once, over the links between the devices
 * of the two stages.
 *
 * sync_s: the gradients of the stage's ranks, as constant + price per parameter, the optimizer and, with ZeRO 1 and 2,
 * the gather of parameters. With overlap only what a layer's reduction takes beyond the layer's own backward pass: the
 * sum over the layers, which does not hide one layer's behind another's. sync_slack_s: the backward passes of the
 * layers before the stage's, each on the fastest of the stages that may have it.
 *
 * memory_bytes: per layer the training state as ZeRO shards it, and what the layer keeps of a microbatch times the
 * number of microbatches that the schedule has in flight at the stage. The room is what the smallest device of the
 * stage leaves for tensors, without buffers and the largest passing need of a pass.
 *
 * Of chunks each counts for itself, where memory and synchronisation are a stage's: a chunk gets a vpp-th of the
 * stage's room and its synchronisation counts vpp times. That is exact when a stage's chunks are alike, and safe for
 * memory. The rounds of chunks: a uniform pipeline of B microbatches takes B vpp + pp - 1 chunk times (Narayanan et al.
 * 2021, section 2.2.2), so rounds = B vpp + pp - 1 - pp vpp, which for vpp = 1 is AMP's B - 1.
 */
#ifndef PL_WORKLOADS_STAGE_COSTS_H
#define PL_WORKLOADS_STAGE_COSTS_H

#include "workloads/assign/layer_assignment.h"
#include "workloads/lower/block_cache.h"
#include "workloads/program/program.h"

/* Arrays in the arena. */
typedef struct pl_stage_costs {
  pl_assignment_problem problem; /* n_layers of the model, pp * vpp stages */
  pl_program program;            /* of the same strategy, cut uniformly */
} pl_stage_costs;

/* `strategy` passed pl_strategy_check but for its boundaries, which are not read; pp * vpp is not above the layers.
 * `blocks`: where programs of blocks and their prices are kept, which begins anew: those of the costs' program are
 * valid until it does so again; NULL = none. Cost: that of the program, and O(devices) routes for each kind of
 * communication; with an op profile a communication plan too. */
pl_code pl_stage_costs_take(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                            const pl_strategy *strategy, const pl_collective_options *options, pl_block_cache *blocks,
                            pl_arena *arena, pl_stage_costs *costs, pl_error *error);

#endif
