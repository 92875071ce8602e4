/* See workloads/run/beside.h. */
#include "workloads/run/beside.h"

#include <math.h>

#include "core/engine/timeline_perfetto.h"
#include "core/graph/graph_join.h"
#include "workloads/run/simulate_program.h"
#include "workloads/run/simulate_state.h"
#include "workloads/run/tree_prices.h"

typedef struct besides {
  const pl_cluster *cluster;
  pl_beside_job *jobs;
  uint32_t n_jobs;
  const pl_simulate_options *options;
  pl_arena *arena;
  pl_error *error;
  pl_joined_job *joined;
  pl_graph graph;
  pl_engine_result result;
} besides;

/* The options of one job, without what is told of the whole. */
static pl_simulate_options options_of(const besides *own, const pl_beside_job *job) {
  pl_simulate_options options = pl_simulate_options_quiet(own->options);
  options.recording = NULL;
  options.stragglers = NULL;
  options.collective_profile = job->collectives;
  return options;
}

static pl_code run_program_alone(const besides *own, pl_beside_job *job) {
  const pl_simulate_options options = options_of(own, job);
  pl_program_report report;
  pl_arena_mark mark = pl_arena_mark_here(own->arena);
  pl_code code =
      pl_simulate_program(job->part, job->program, job->job->framework, &options, own->arena, &report, own->error);
  job->alone_s = report.iter_time_s;
  pl_arena_release_to(own->arena, mark);
  return code;
}

static pl_code run_alone(const besides *own, pl_beside_job *job) {
  pl_simulate_options options = options_of(own, job);
  pl_simulate_report report;
  if (job->program != NULL) return run_program_alone(own, job);
  pl_arena_mark mark = pl_arena_mark_here(own->arena);
  if (options.network == PL_NETWORK_SIMGRID) {
    options.network = PL_NETWORK_FLOW; /* SimGrid names devices of the whole platform; flow gives the same dates */
    options.chunked = true;
  }
  pl_code code = pl_simulate(job->part, job->model, job->job, job->strategy, &options, own->arena, &report, own->error);
  job->alone_s = report.row.iter_time_s;
  pl_arena_release_to(own->arena, mark);
  return code;
}

static pl_code compile_program(const besides *own, const pl_beside_job *job, const pl_graph **graph) {
  const pl_simulate_options options = options_of(own, job);
  const pl_ir_graph_options graphing = {.collective = pl_program_collectives(&options),
                                        .framework = job->job->framework,
                                        .names = own->options->trace != NULL,
                                        .no_overlap_factor = options.no_overlap_factor};
  pl_ir_graph *made = PL_TAKE(own->arena, pl_ir_graph, 1);
  if (made == NULL) return pl_fail_memory(own->error, "the jobs");
  *graph = &made->graph;
  return pl_ir_graph_take(job->part, job->program, &graphing, own->arena, made, own->error);
}

static pl_code compile_job(const besides *own, const pl_beside_job *job, const pl_graph **graph) {
  if (job->program != NULL) return compile_program(own, job, graph);
  pl_simulate_options *options = PL_TAKE(own->arena, pl_simulate_options, 1);
  pl_simulation *state = PL_TAKE(own->arena, pl_simulation, 1);
  if (own->arena->failed) return pl_fail_memory(own->error, "the jobs");
  *options = options_of(own, job);
  *state = (pl_simulation){.cluster = job->part,
                           .model = job->model,
                           .job = job->job,
                           .strategy = job->strategy,
                           .options = options,
                           .arena = own->arena,
                           .error = own->error,
                           .chunked = options->chunked || options->network == PL_NETWORK_SIMGRID,
                           .has_neighbours = true};
  PL_TRY(pl_simulation_build(state));
  state->compile.names = own->options->trace != NULL;
  state->leaps = pl_leap_search_begin(&state->program, false);
  PL_TRY(pl_simulation_compile(state));
  *graph = &state->compiled.graph;
  return PL_OK;
}

static uint32_t iterations_of(const besides *own, const pl_beside_job *job) {
  if (job->n_iterations > 0) return job->n_iterations;
  double fit = floor((own->jobs[0].alone_s - job->offset_s) / job->alone_s);
  return fit < 1 ? 1 : fit > PL_BESIDE_ITERATIONS_MAX ? PL_BESIDE_ITERATIONS_MAX : (uint32_t)fit;
}

static pl_code join(besides *own) {
  own->joined = PL_TAKE(own->arena, pl_joined_job, own->n_jobs);
  if (own->joined == NULL) return pl_fail_memory(own->error, "the jobs");
  for (uint32_t j = 0; j < own->n_jobs; j++) {
    pl_beside_job *job = &own->jobs[j];
    job->n_iterations = iterations_of(own, job);
    own->joined[j] = (pl_joined_job){
        .devices = job->devices, .offset = pl_ticks_from_s(job->offset_s), .n_iterations = job->n_iterations};
    PL_TRY(compile_job(own, job, &own->joined[j].graph));
  }
  return pl_graph_join(own->joined, own->n_jobs, own->arena, &own->graph, own->error);
}

static void tell_times(const besides *own, uint32_t number) {
  pl_beside_job *job = &own->jobs[number];
  pl_ticks sum = 0, longest = 0, begin = 0, end = 0;
  for (uint32_t i = 0; i < job->n_iterations; i++) {
    pl_joined_span(&own->joined[number], i, own->result.finish, &begin, &end);
    if (i == 0) job->begin_s = pl_ticks_to_s(begin);
    if (end - begin > longest) longest = end - begin;
    sum += end - begin;
  }
  job->end_s = pl_ticks_to_s(end);
  job->longest_s = pl_ticks_to_s(longest);
  job->beside_s = pl_ticks_to_s(sum) / job->n_iterations;
}

static pl_code write_trace(const besides *own) {
  const char **names = PL_TAKE(own->arena, const char *, own->graph.n_devices);
  for (uint32_t j = 0, d = 0; names != NULL && j < own->n_jobs; j++)
    for (uint32_t i = 0; i < own->joined[j].graph->n_devices; i++, d++)
      names[d] = pl_arena_printf(own->arena, "%s: %s", own->jobs[j].name,
                                 own->cluster->devices[own->graph.devices[d].device].name);
  if (own->arena->failed) return pl_fail_memory(own->error, "the names of the timeline");
  pl_timeline_view view = own->options->view != NULL ? *own->options->view : (pl_timeline_view){0};
  view.device = names;
  return pl_timeline_write(own->options->trace, &own->graph, &own->result, &view, own->error);
}

pl_code pl_beside_run(const pl_cluster *cluster, pl_beside_job *jobs, uint32_t n_jobs,
                      const pl_simulate_options *options, pl_arena *arena, pl_beside_report *report, pl_error *error) {
  besides own = {
      .cluster = cluster, .jobs = jobs, .n_jobs = n_jobs, .options = options, .arena = arena, .error = error};
  for (uint32_t j = 0; j < n_jobs; j++)
    PL_TRY(run_alone(&own, &jobs[j]));
  PL_TRY(join(&own));
  const pl_engine_options engine = {.record_parts = options->trace != NULL};
  PL_TRY(pl_simulate_graph(&own.graph, options, &engine, arena, &own.result, error));
  for (uint32_t j = 0; j < n_jobs; j++)
    tell_times(&own, j);
  *report = (pl_beside_report){.makespan_s = pl_ticks_to_s(own.result.makespan),
                               .n_devices = own.graph.n_devices,
                               .n_tasks = own.graph.n_tasks,
                               .run_digest = own.result.digest};
  return options->trace == NULL ? PL_OK : write_trace(&own);
}
