/* A program while it is played: few microbatches first, and more until those that are left out are known to repeat
 * others (workloads/run/leap.h). Internal to workloads/run/. */
#ifndef PL_WORKLOADS_PROGRAM_PLAYING_H
#define PL_WORKLOADS_PROGRAM_PLAYING_H

#include "core/engine/engine.h"
#include "workloads/compile/ir_graph.h"
#include "workloads/run/leap.h"
#include "workloads/run/simulate_program.h"

typedef struct pl_program_playing {
  const pl_cluster *cluster;
  const pl_ir_module *module;
  const pl_simulate_options *options;
  pl_ir_graph_options graphing;
  pl_ir_recurrence recurrence;
  pl_leap_search leaps; /* the last attempt, when it has been played */
  pl_whole_reason whole;
  pl_ir_graph_maker *maker;
  pl_ir_graph made;
  pl_engine_result result;
  pl_arena *arena;
  pl_error *error;
} pl_program_playing;

/* Fills what comes behind `graphing`; at the paces of options->stragglers, jitter left out. */
pl_code pl_program_play(pl_program_playing *playing);
/* Fills options->straggling, by more runs of the same program. */
pl_code pl_program_straggle(pl_program_playing *playing);

#endif
