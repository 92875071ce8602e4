/* See collective_run.h. The driver keeps the contract of core/network.h as the engine does (drain a tick, settle,
 * advance), over a plain list of dependencies; steps run on no stream. */
#include "tests/support/collective_run.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/network.h"

typedef struct run_task {
  uint32_t spec, job;
  double size_bytes;
  uint32_t waiting;         /* dependencies not yet finished */
  uint32_t first_successor; /* linked list through edges */
} run_task;

typedef struct run_edge {
  uint32_t task, next;
} run_edge;

typedef struct run_state {
  const pl_cluster *cluster;
  pl_arena arena;
  collective_job *jobs;
  uint32_t n_jobs;
  pl_transfer_spec *specs;
  pl_link_use *uses;
  run_task *tasks;
  run_edge *edges;
  uint32_t n_specs, n_uses, n_tasks, n_edges, spec_capacity, use_capacity, task_capacity, edge_capacity;
  uint32_t *pair_spec; /* n_devices^2, for the step overhead in pair_overhead */
  pl_ticks pair_overhead;
  pl_network *network;
  uint32_t *ready, n_ready;
} run_state;

static void must(bool good, const char *what, const pl_error *error) {
  if (good) return;
  fprintf(stderr, "collective run: %s: %s\n", what, error != NULL ? error->message : "out of memory");
  abort();
}

#define GROW(array, count, capacity)                                                                                   \
  do {                                                                                                                 \
    if ((count) == (capacity)) {                                                                                       \
      (capacity) = (capacity) == 0 ? 1024 : 2 * (capacity);                                                            \
      (array) = realloc((array), (capacity) * sizeof *(array));                                                        \
      must((array) != NULL, "grow", NULL);                                                                             \
    }                                                                                                                  \
  } while (0)

static uint32_t add_spec(run_state *run, pl_transfer_spec spec, const pl_link_use *uses) {
  GROW(run->specs, run->n_specs, run->spec_capacity);
  spec.first_use = run->n_uses;
  run->specs[run->n_specs] = spec;
  for (uint32_t i = 0; i < spec.n_uses; i++) {
    GROW(run->uses, run->n_uses, run->use_capacity);
    run->uses[run->n_uses++] = uses[i];
  }
  return run->n_specs++;
}

static uint32_t add_task(run_state *run, uint32_t job, uint32_t spec, double size_bytes) {
  GROW(run->tasks, run->n_tasks, run->task_capacity);
  run->tasks[run->n_tasks] = (run_task){.spec = spec, .job = job, .size_bytes = size_bytes, .first_successor = PL_NONE};
  return run->n_tasks++;
}

static void add_edge(run_state *run, uint32_t before, uint32_t after) {
  GROW(run->edges, run->n_edges, run->edge_capacity);
  run->edges[run->n_edges] = (run_edge){.task = after, .next = run->tasks[before].first_successor};
  run->tasks[before].first_successor = run->n_edges++;
  run->tasks[after].waiting++;
}

static uint32_t step_spec(run_state *run, uint32_t source, uint32_t destination, pl_ticks overhead) {
  uint32_t n = run->cluster->n_devices;
  if (overhead != run->pair_overhead || run->pair_spec == NULL) {
    if (run->pair_spec == NULL) run->pair_spec = malloc((size_t)n * n * sizeof *run->pair_spec);
    must(run->pair_spec != NULL, "pairs", NULL);
    for (size_t i = 0; i < (size_t)n * n; i++)
      run->pair_spec[i] = PL_NONE;
    run->pair_overhead = overhead;
  }
  uint32_t *kept = &run->pair_spec[(size_t)source * n + destination];
  if (*kept != PL_NONE) return *kept;
  pl_link_use *uses;
  pl_transfer_spec spec;
  pl_error error = PL_ERROR_INIT;
  must(pl_route_spec(run->cluster, PL_SHARING_EQUAL, source, destination, &run->arena, &uses, &spec, &error) == PL_OK,
       "route", &error);
  spec.latency += overhead;
  return *kept = add_spec(run, spec, uses);
}

static void add_fluid(run_state *run, uint32_t job) {
  const collective_job *j = &run->jobs[job];
  pl_fluid_collective *fluid = PL_TAKE(&run->arena, pl_fluid_collective, 1);
  pl_error error = PL_ERROR_INIT;
  must(fluid != NULL && pl_collective_fluid(j->group, j->kind, j->size_bytes, &run->arena, fluid, &error) == PL_OK,
       "fluid", &error);
  uint32_t last = PL_NONE;
  for (const pl_fluid_collective *phase = fluid; phase != NULL; phase = phase->next) {
    uint32_t task = add_task(run, job, add_spec(run, phase->spec, phase->uses), phase->progress_bytes);
    if (last != PL_NONE) add_edge(run, last, task);
    last = task;
  }
}

static void add_chunked(run_state *run, uint32_t job) {
  const collective_job *j = &run->jobs[job];
  pl_chunked_collective chunked;
  pl_error error = PL_ERROR_INIT;
  must(pl_collective_chunked(j->group, j->kind, j->size_bytes, j->chunks, &run->arena, &chunked, &error) == PL_OK,
       "chunked", &error);
  uint32_t first = run->n_tasks;
  for (uint32_t i = 0; i < chunked.n_steps; i++) {
    const pl_collective_step *step = &chunked.steps[i];
    uint32_t spec = step_spec(run, step->source, step->destination, chunked.step_overhead);
    uint32_t task = add_task(run, job, spec, step->size_bytes);
    for (uint32_t d = 0; d < step->n_dependencies; d++)
      add_edge(run, first + chunked.dependencies[step->first_dependency + d], task);
  }
}

static void start_ready(run_state *run, pl_ticks now) {
  for (uint32_t i = 0; i < run->n_ready; i++) {
    const run_task *task = &run->tasks[run->ready[i]];
    run->network->ops->start(run->network, now, run->ready[i], task->spec, task->size_bytes);
  }
  run->n_ready = 0;
}

static void finish(run_state *run, uint32_t task, pl_ticks now) {
  collective_job *job = &run->jobs[run->tasks[task].job];
  if (now > job->finish) job->finish = now;
  for (uint32_t edge = run->tasks[task].first_successor; edge != PL_NONE; edge = run->edges[edge].next)
    if (--run->tasks[run->edges[edge].task].waiting == 0) run->ready[run->n_ready++] = run->edges[edge].task;
}

static int by_task(const void *a, const void *b) {
  uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
  return (left > right) - (left < right);
}

/* Drains the tick `now`: completions and what they release, until nothing more happens at it. */
static pl_ticks drain(run_state *run, pl_ticks now) {
  for (;;) {
    uint32_t task;
    while ((task = run->network->ops->advance(run->network, now)) != PL_NONE)
      finish(run, task, now);
    qsort(run->ready, run->n_ready, sizeof *run->ready, by_task);
    start_ready(run, now);
    pl_ticks next = run->network->ops->settle(run->network, now);
    if (next > now) return next;
  }
}

static pl_ticks next_start(const run_state *run, pl_ticks after) {
  pl_ticks next = PL_TICKS_NEVER;
  for (uint32_t job = 0; job < run->n_jobs; job++)
    if (run->jobs[job].start > after && run->jobs[job].start < next) next = run->jobs[job].start;
  return next;
}

static void play(run_state *run) {
  for (pl_ticks now = 0, network_next = PL_TICKS_NEVER;;) {
    for (uint32_t task = 0; task < run->n_tasks; task++)
      if (run->jobs[run->tasks[task].job].start == now && run->tasks[task].waiting == 0)
        run->ready[run->n_ready++] = task;
    network_next = drain(run, now);
    pl_ticks start = next_start(run, now);
    while (network_next < start)
      network_next = drain(run, network_next);
    if (start == PL_TICKS_NEVER) return;
    now = start;
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

void collective_run(const pl_cluster *cluster, collective_job *jobs, uint32_t n_jobs) {
  run_state run = {.cluster = cluster, .jobs = jobs, .n_jobs = n_jobs};
  pl_arena_init(&run.arena, 0);
  for (uint32_t job = 0; job < n_jobs; job++) {
    jobs[job].finish = jobs[job].start;
    (jobs[job].chunks == 0 ? add_fluid : add_chunked)(&run, job);
  }
  double *capacity = PL_TAKE(&run.arena, double, cluster->n_links + 1);
  uint8_t *policy = PL_TAKE(&run.arena, uint8_t, cluster->n_links + 1);
  run.ready = PL_TAKE(&run.arena, uint32_t, run.n_tasks + 1);
  must(capacity != NULL && policy != NULL && run.ready != NULL, "run", NULL);
  list_links(cluster, capacity, policy);
  pl_transfer_table table = {.link_capacity_Bps = capacity,
                             .link_policy = policy,
                             .n_links = cluster->n_links,
                             .specs = run.specs,
                             .n_specs = run.n_specs,
                             .uses = run.uses,
                             .n_uses = run.n_uses};
  run.network = pl_flow_network_take(&table, &run.arena);
  must(run.network != NULL, "network", NULL);
  play(&run);
  for (uint32_t task = 0; task < run.n_tasks; task++)
    must(run.tasks[task].waiting == 0, "a task never started", NULL);
  run.network->ops->destroy(run.network);
  pl_arena_release(&run.arena);
  free(run.specs);
  free(run.uses);
  free(run.tasks);
  free(run.edges);
  free(run.pair_spec);
}
