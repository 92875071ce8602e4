/* One simulation while it runs: what simulate.c hands from step to step. Internal to workloads/run/. */
#ifndef PL_WORKLOADS_SIMULATE_STATE_H
#define PL_WORKLOADS_SIMULATE_STATE_H

#include "core/engine/engine.h"
#include "workloads/compile/communication.h"
#include "workloads/compile/compile.h"
#include "workloads/program/program.h"
#include "workloads/run/leap.h"
#include "workloads/run/siblings.h"
#include "workloads/run/simulate.h"

typedef struct pl_simulation {
  const pl_cluster *cluster;
  const pl_model *model;
  const pl_job *job;
  const pl_strategy *strategy;
  const pl_simulate_options *options;
  pl_arena *arena;
  pl_error *error;
  bool chunked;
  bool has_neighbours; /* other jobs are on the same links: nothing is folded, and no transfer is known to have no rival
                        */
  pl_program program;
  pl_communication_plan plan;
  pl_compile_options compile;
  pl_origins origins;
  pl_compiled compiled;
  pl_engine_result result;
  pl_leap_search leaps;
  pl_siblings *siblings; /* NULL: runs neither keep anything nor go on from others */
  bool begins_siblings;
  int n_runs; /* so far */
} pl_simulation;

/* Program and communication plan; then the graph, without the microbatches that state->leaps leaves out. */
pl_code pl_simulation_build(pl_simulation *state);
pl_code pl_simulation_compile(pl_simulation *state);

/* One run of a graph on the network of `options`. */
pl_code pl_simulate_graph(const pl_graph *graph, const pl_simulate_options *options, const pl_engine_options *engine,
                          pl_arena *arena, pl_engine_result *result, pl_error *error);

/* ---- simulate_remains.c ---- */
/* What the site's figures leave of this run, as a factor on its times; 1: nothing. */
double pl_simulation_remains_factor(const pl_simulation *state);
/* On all times of the report alike: nothing says which of them it is in. */
pl_code pl_simulation_report_remains(const pl_simulation *state, pl_simulate_report *report);

/* ---- simulate_memory.c ---- */
/* Of state->result.peak_bytes: the stages, and the columns of the row that are about memory. */
pl_code pl_simulation_report_memory(pl_simulation *state, pl_simulate_report *report);
/* The same from the program alone, to the byte, before anything ran. *is_known: false, and nothing is reported, where
 * that cannot be. */
pl_code pl_simulation_foresee_memory(pl_simulation *state, pl_simulate_report *report, bool *is_known);

/* simulate_diagram.c: to options->diagram, of what ran. */
pl_code pl_simulation_draw(pl_simulation *state, const pl_simulate_report *report);

/* ---- simulate_stragglers.c ---- */
/* The compiled graph at the paces of options->stragglers, jitter left out. */
pl_code pl_simulation_slow_down(pl_simulation *state);
/* Fills options->straggling. */
pl_code pl_simulation_straggle(pl_simulation *state);

#endif
