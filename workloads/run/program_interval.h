/* Prediction interval of a program's iteration time: that of workloads/run/interval.h, by the same residuals, of what a
 * program's devices compute and wait for.
 *
 * Differences: a device's waiting is doubted collective by collective, as the run charged it (a strategy's passes may
 * be fused, so that of tensor communication only the sum is known there); and messages between lists that a device
 * waits for are those that it receives. Copies to and from hosts count as idle time, as in the breakdown.
 */
#ifndef PL_WORKLOADS_PROGRAM_INTERVAL_H
#define PL_WORKLOADS_PROGRAM_INTERVAL_H

#include "core/engine/engine.h"
#include "workloads/compile/ir_graph.h"
#include "workloads/run/doubts.h"

/* What a program is like: axes of its mesh as partition names them ("cp": context parallelism, "dp": data, any other:
 * tensor). `schedule`: of its lists, if there are several. `experts`: the model has some. `trains`: a forward pass
 * alone is a thing that no calibration run was. */
typedef struct pl_program_kind {
  const pl_job *job;
  const char *schedule;
  bool experts, trains;
} pl_program_kind;

pl_aspects pl_aspects_of_program(const pl_cluster *cluster, const pl_ir_module *module, const pl_program_kind *kind);

/* Of a run with charges, of a graph with spendings. Scratch from `arena`. O(spendings * devices + charges). */
pl_code pl_program_interval_take(const pl_cluster *cluster, const pl_ir_module *module, const pl_ir_graph *made,
                                 const pl_engine_result *result, const pl_residuals *residuals,
                                 const pl_aspects *aspects, pl_arena *arena, pl_interval *interval, pl_error *error);

#endif
