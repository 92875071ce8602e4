/* A simulated run as a trace, as if its ranks had recorded it: for the files that other tools read, and for replay. */
#ifndef PL_WORKLOADS_RUN_RECORDING_H
#define PL_WORKLOADS_RUN_RECORDING_H

#include "core/engine/engine.h"
#include "workloads/compile/communication.h"
#include "workloads/compile/origins.h"
#include "workloads/program/program.h"
#include "workloads/strategy/strategy.h"
#include "workloads/trace/trace.h"

typedef struct pl_recorded_run {
  const pl_cluster *cluster;
  const pl_strategy *strategy;
  const pl_program *program;
  const pl_graph *graph; /* neither folded nor fused nor chunked: each device and op is there */
  const pl_origins *origins;
  const pl_engine_result *result;
  const char *name; /* of where it comes from */
} pl_recorded_run;

/* Fills `trace`, which is empty before (release it also after a failure): one step, streams as the graph has them,
 * dates in nanoseconds. O((tasks + edges) * ranks). */
pl_code pl_recording_take(const pl_recorded_run *run, pl_trace *trace, pl_error *error);

#endif
