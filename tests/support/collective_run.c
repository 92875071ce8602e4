/* See collective_run.h. Steps and phases become transfer tasks of an execution graph on no stream; a job that starts
 * later hangs on a delay. */
#include "tests/support/collective_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine/engine.h"
#include "core/graph/graph.h"

typedef struct collective_runner {
  const pl_cluster *cluster;
  pl_arena arena;
  pl_graph_builder *builder;
  pl_transfer_spec *specs;
  pl_link_use *uses;
  uint32_t n_specs, n_uses, spec_capacity, use_capacity;
  uint32_t *pair_spec; /* n_devices^2 x 2 */
} collective_runner;

static void must(bool good, const char *what, const pl_error *error) {
  if (good) return;
  fprintf(stderr, "collective run: %s: %s\n", what, error != NULL ? error->message : "out of memory");
  abort();
}

static void *grown(void *array, uint32_t count, uint32_t *capacity, size_t size) {
  if (count < *capacity) return array;
  *capacity = *capacity == 0 ? 1024 : 2 * *capacity;
  array = realloc(array, *capacity * size);
  must(array != NULL, "grow", NULL);
  return array;
}

static uint32_t add_spec(collective_runner *run, pl_transfer_spec spec, const pl_link_use *uses) {
  run->specs = grown(run->specs, run->n_specs, &run->spec_capacity, sizeof *run->specs);
  spec.first_use = run->n_uses;
  run->specs[run->n_specs] = spec;
  for (uint32_t i = 0; i < spec.n_uses; i++) {
    run->uses = grown(run->uses, run->n_uses, &run->use_capacity, sizeof *run->uses);
    run->uses[run->n_uses++] = uses[i];
  }
  return run->n_specs++;
}

/* A spec per ordered pair, with and without latency; a pair of another latency than the one kept gets a spec of its
 * own. */
static uint32_t step_spec(collective_runner *run, const pl_collective_step *step) {
  size_t n = run->cluster->n_devices;
  if (run->pair_spec == NULL) {
    run->pair_spec = malloc(2 * n * n * sizeof *run->pair_spec);
    must(run->pair_spec != NULL, "pairs", NULL);
    memset(run->pair_spec, 0xff, 2 * n * n * sizeof *run->pair_spec);
  }
  uint32_t *kept = &run->pair_spec[2 * (step->source * n + step->destination) + (step->latency > 0)];
  if (*kept != PL_NONE && run->specs[*kept].latency == step->latency) return *kept;
  pl_link_use *uses;
  pl_transfer_spec spec;
  pl_error error = PL_ERROR_INIT;
  must(pl_route_spec(run->cluster, PL_SHARING_EQUAL, step->source, step->destination, &run->arena, &uses, &spec,
                     &error) == PL_OK,
       "route", &error);
  spec.latency = step->latency;
  return *kept = add_spec(run, spec, uses);
}

static uint32_t add_transfer(collective_runner *run, uint32_t spec, double size_bytes) {
  return pl_graph_builder_transfer(run->builder, spec, size_bytes, PL_CATEGORY_DATA, NULL, 0, PL_NONE, -1);
}

static void add_fluid(collective_runner *run, const collective_job *job, uint32_t start) {
  pl_fluid_collective fluid;
  pl_error error = PL_ERROR_INIT;
  must(pl_collective_fluid(job->group, job->kind, job->size_bytes, &run->arena, &fluid, &error) == PL_OK, "fluid",
       &error);
  for (const pl_fluid_collective *phase = &fluid; phase != NULL; phase = phase->next) {
    uint32_t task = add_transfer(run, add_spec(run, phase->spec, phase->uses), phase->progress_bytes);
    pl_graph_builder_edge(run->builder, start, task);
    start = task;
  }
}

static void add_chunked(collective_runner *run, const collective_job *job, uint32_t start) {
  pl_chunked_collective chunked;
  pl_error error = PL_ERROR_INIT;
  must(pl_collective_chunked(job->group, job->kind, job->size_bytes, job->chunks, &run->arena, &chunked, &error) ==
           PL_OK,
       "chunked", &error);
  for (uint32_t i = 0; i < chunked.n_steps; i++) {
    const pl_collective_step *step = &chunked.steps[i];
    uint32_t task = add_transfer(run, step_spec(run, step), step->size_bytes);
    if (step->n_dependencies == 0) pl_graph_builder_edge(run->builder, start, task);
    for (uint32_t d = 0; d < step->n_dependencies; d++)
      pl_graph_builder_edge(run->builder, start + 1 + chunked.dependencies[step->first_dependency + d], task);
  }
}

static void list_links(const pl_cluster *cluster, double *capacity, uint8_t *policy) {
  for (uint32_t link = 0; link < cluster->n_links; link++) {
    capacity[link] = cluster->links[link].capacity_Bps;
    policy[link] = cluster->links[link].policy;
  }
}

pl_ticks collective_solo_ticks(const pl_cluster *cluster, const pl_fluid_collective *fluid) {
  pl_ticks sum = 0;
  double *capacity = malloc((cluster->n_links + 1) * sizeof *capacity);
  uint8_t *policy = malloc(cluster->n_links + 1);
  must(capacity != NULL && policy != NULL, "links", NULL);
  list_links(cluster, capacity, policy);
  for (; fluid != NULL; fluid = fluid->next) {
    pl_transfer_table table = {.link_capacity_Bps = capacity,
                               .link_policy = policy,
                               .n_links = cluster->n_links,
                               .specs = &fluid->spec,
                               .n_specs = 1,
                               .uses = fluid->uses,
                               .n_uses = fluid->spec.n_uses};
    sum += pl_transfer_solo_ticks(&table, 0, fluid->progress_bytes);
  }
  free(capacity);
  free(policy);
  return sum;
}

static void add_jobs(collective_runner *run, const collective_job *jobs, uint32_t n_jobs) {
  run->builder = pl_graph_builder_take(&run->arena, PL_STREAMS_IN_ORDER);
  must(run->builder != NULL, "graph", NULL);
  for (uint32_t job = 0; job < n_jobs; job++) {
    uint32_t start = pl_graph_builder_delay(run->builder, jobs[job].start, PL_CATEGORY_OTHER, NULL, 0, PL_NONE, -1);
    (jobs[job].chunks == 0 ? add_fluid : add_chunked)(run, &jobs[job], start);
  }
}

/* Tasks of job k follow its delay. */
static void read_finishes(const pl_graph *graph, const pl_engine_result *result, collective_job *jobs) {
  collective_job *job = jobs - 1;
  for (uint32_t task = 0; task < graph->n_tasks; task++) {
    if (graph->tasks[task].kind == PL_TASK_DELAY) {
      job++;
      job->finish = 0;
    }
    if (result->finish[task] > job->finish) job->finish = result->finish[task];
  }
}

void collective_run(const pl_cluster *cluster, collective_job *jobs, uint32_t n_jobs) {
  collective_runner run = {.cluster = cluster};
  pl_error error = PL_ERROR_INIT;
  pl_arena_init(&run.arena, 0);
  add_jobs(&run, jobs, n_jobs);
  double *capacity = PL_TAKE(&run.arena, double, cluster->n_links + 1);
  uint8_t *policy = PL_TAKE(&run.arena, uint8_t, cluster->n_links + 1);
  must(capacity != NULL && policy != NULL, "links", NULL);
  list_links(cluster, capacity, policy);
  pl_transfer_table table = {.link_capacity_Bps = capacity,
                             .link_policy = policy,
                             .n_links = cluster->n_links,
                             .specs = run.specs,
                             .n_specs = run.n_specs,
                             .uses = run.uses,
                             .n_uses = run.n_uses};
  pl_graph graph;
  pl_engine_result result;
  pl_engine_options options = {0};
  pl_graph_builder_transfers(run.builder, &table);
  must(pl_graph_builder_freeze(run.builder, &graph, &error) == PL_OK, "freeze", &error);
  pl_network *network = pl_flow_network_take(&table, &run.arena);
  must(network != NULL, "network", NULL);
  must(pl_engine_run(&graph, network, &options, &run.arena, &result, &error) == PL_OK, "engine", &error);
  read_finishes(&graph, &result, jobs);
  network->ops->destroy(network);
  pl_arena_release(&run.arena);
  free(run.specs);
  free(run.uses);
  free(run.pair_spec);
}
