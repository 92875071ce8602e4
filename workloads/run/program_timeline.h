/* The timeline of a run of a program: as that of a strategy (core/engine/timeline.h), with what its graph does not know
 * of names, layers, work and memory, and with sends, which occupy no stream there, on threads of those who send and
 * receive. */
#ifndef PL_WORKLOADS_RUN_PROGRAM_TIMELINE_H
#define PL_WORKLOADS_RUN_PROGRAM_TIMELINE_H

#include "core/engine/engine.h"
#include "workloads/compile/ir_graph.h"
#include "workloads/memory/program_memory.h"
#include "workloads/run/simulate.h"

/* Writes options->trace. `made` has names, `memory`, per class, its steps. */
pl_code pl_program_timeline_write(const pl_cluster *cluster, const pl_ir_module *module, const pl_ir_graph *made,
                                  const pl_engine_result *result, const pl_class_memory *memory,
                                  const pl_simulate_options *options, pl_arena *arena, pl_error *error);

#endif
