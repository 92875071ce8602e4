/* Where each second of a run comes from, op by op: what `explain` prints and what a sweep's features are made of.
 *
 * For every device class and every op that it runs or waits for: calls, time alone (each call by itself on the
 * machine), time in the run (overlap factor and contention included) and exposed time, of which it holds exactly that
 *
 *   sum of exposed over the ops + idle = iteration time
 *
 * on every device. All time of computing is exposed. A communication is exposed where the device computes nothing and
 * waits for it (core/engine/engine.h, `spent`); the rest of its time in the run is hidden. A device may wait for
 * communication that it has no part in (a send between two other stages): such an op has no calls and no time of its
 * own there, only exposed time.
 */
#ifndef PL_WORKLOADS_EXPLANATION_H
#define PL_WORKLOADS_EXPLANATION_H

#include "core/engine/engine.h"
#include "workloads/compile/compile.h"
#include "workloads/compile/origins.h"
#include "workloads/run/explained_group.h"

/* What is the same on all devices. */
typedef struct pl_explained_op {
  const pl_op *op;            /* NULL: the optimizer, an empty pass, communication */
  int8_t block;               /* pl_block_kind; -1 likewise */
  const char *name;           /* "qkv", "reduce gradients" ...; NULL: without names (pl_compile_options) */
  uint8_t category;           /* pl_category */
  uint32_t family, family_op; /* communication; PL_NONE: it computes */
} pl_explained_op;

typedef struct pl_explained_time {
  uint64_t calls;
  pl_ticks alone; /* over all calls; -1: not known (chunked) */
  pl_ticks run;
  pl_ticks exposed, foreign; /* foreign: of exposed, what it waited for others to communicate among themselves */
  double flops, bytes;       /* computing: over all calls, which differ where the op is no op of a block; 0 where
                                origins say that nobody asks (times_only) */
  pl_op_time cost;           /* computing: of one of the calls */
  uint32_t group_class;      /* communication: of the plan; PL_NONE: the device has no part in it */
} pl_explained_time;

typedef struct pl_explanation {
  const pl_cluster *cluster;
  const pl_program *program;
  const pl_communication_plan *plan;
  const pl_explained_op *ops; /* in the order in which the program has them, stage by stage */
  uint32_t n_ops;
  const pl_explained_time *times; /* [n_device_classes][n_ops] */
  const pl_ticks *idle, *spent;   /* as in pl_engine_result */
  pl_ticks makespan;
  bool exact; /* parts were recorded; otherwise the computing and the collectives inside fused passes have their time
                 alone for their time in the run, and the difference is only in `spent` */
} pl_explanation;

/* Of a run of `compiled` with charges recorded. Memory from `arena`. O(tasks + parts + spans + classes * (ops +
 * segments)). */
pl_code pl_explanation_take(const pl_cluster *cluster, const pl_program *program, const pl_communication_plan *plan,
                            const pl_graph *graph, const pl_origins *origins, const pl_engine_result *result,
                            pl_arena *arena, pl_explanation *explanation, pl_error *error);

/* Time of a communication in the run that the device did not wait for. */
static inline pl_ticks pl_explained_hidden(const pl_explained_time *time) {
  return time->run - (time->exposed - time->foreign);
}

static inline const pl_explained_time *pl_explained_times(const pl_explanation *explanation, uint32_t device_class) {
  return explanation->times + (size_t)device_class * explanation->n_ops;
}

/* The device class of `stage` that is idle least, the first among equals: the one that the others wait for. */
uint32_t pl_explanation_busiest(const pl_explanation *explanation, int32_t stage);
/* The stage whose busiest device is idle least, the first among equals. */
int32_t pl_explanation_worst_stage(const pl_explanation *explanation);

pl_code pl_explained_group_take(const pl_explanation *explanation, const pl_explained_op *op, uint32_t group_class,
                                pl_arena *arena, pl_explained_group *group, pl_error *error);

#endif
