/* See core/graph/graph_join.h. */
#include "core/graph/graph_join.h"

#include <string.h>

/* What the arrays of all graphs together need, and how far they are filled. */
typedef struct sizes {
  uint64_t tasks, edges, task_streams, streams, devices, segments, parts, effects, names, specs, uses;
} sizes;

typedef struct joining {
  pl_arena *arena;
  sizes at;
  pl_task *tasks;
  uint32_t *successor_offset, *successors, *n_predecessors, *task_streams;
  pl_stream *streams;
  pl_graph_device *devices;
  pl_segment *segments;
  pl_part *parts;
  pl_memory_effect *effects;
  const char **names;
  pl_transfer_spec *specs;
  pl_link_use *uses;
} joining;

static uint32_t count_sources(const pl_graph *graph) {
  uint32_t n = 0;
  for (uint32_t t = 0; t < graph->n_tasks; t++)
    n += graph->n_predecessors[t] == 0;
  return n;
}

static uint32_t count_sinks(const pl_graph *graph) {
  uint32_t n = 0;
  for (uint32_t t = 0; t < graph->n_tasks; t++)
    n += graph->tasks[t].n_successors == 0;
  return n;
}

static sizes measure(const pl_joined_job *jobs, uint32_t n_jobs) {
  sizes all = {0};
  for (uint32_t j = 0; j < n_jobs; j++) {
    const pl_graph *graph = jobs[j].graph;
    uint64_t times = jobs[j].n_iterations;
    all.tasks += times * ((uint64_t)graph->n_tasks + 1);
    all.edges += times * ((uint64_t)graph->n_edges + count_sources(graph)) + (times - 1) * count_sinks(graph);
    all.task_streams += times * graph->n_task_streams;
    all.streams += graph->n_streams;
    all.devices += graph->n_devices;
    all.segments += graph->n_segments;
    all.parts += graph->n_parts;
    all.effects += graph->n_effects;
    all.names += graph->n_names;
    all.specs += graph->transfers.n_specs;
    all.uses += graph->transfers.n_uses;
  }
  return all;
}

static bool take(joining *own, const sizes *all) {
  own->tasks = PL_TAKE(own->arena, pl_task, all->tasks);
  own->successor_offset = PL_TAKE(own->arena, uint32_t, all->tasks + 1);
  own->successors = PL_TAKE(own->arena, uint32_t, all->edges);
  own->n_predecessors = PL_TAKE(own->arena, uint32_t, all->tasks);
  own->task_streams = PL_TAKE(own->arena, uint32_t, all->task_streams);
  own->streams = PL_TAKE(own->arena, pl_stream, all->streams);
  own->devices = PL_TAKE(own->arena, pl_graph_device, all->devices);
  own->segments = PL_TAKE(own->arena, pl_segment, all->segments);
  own->parts = PL_TAKE(own->arena, pl_part, all->parts);
  own->effects = PL_TAKE(own->arena, pl_memory_effect, all->effects);
  own->names = PL_TAKE(own->arena, const char *, all->names);
  own->specs = PL_TAKE(own->arena, pl_transfer_spec, all->specs);
  own->uses = PL_TAKE(own->arena, pl_link_use, all->uses);
  return !own->arena->failed;
}

static uint32_t moved(uint32_t index, uint64_t by) {
  return index == PL_NONE ? PL_NONE : index + (uint32_t)by;
}

/* ---- what tasks refer to ---- */

static void put_devices(joining *own, const pl_joined_job *job) {
  const pl_graph *graph = job->graph;
  for (uint32_t d = 0; d < graph->n_devices; d++) {
    own->devices[own->at.devices + d] = graph->devices[d];
    own->devices[own->at.devices + d].device = job->devices[graph->devices[d].device];
  }
  for (uint32_t s = 0; s < graph->n_streams; s++) {
    own->streams[own->at.streams + s] = graph->streams[s];
    own->streams[own->at.streams + s].device += (uint32_t)own->at.devices;
  }
}

static void put_segments(joining *own, const pl_graph *graph) {
  for (uint32_t s = 0; s < graph->n_segments; s++) {
    own->segments[own->at.segments + s] = graph->segments[s];
    own->segments[own->at.segments + s].first_part += (uint32_t)own->at.parts;
  }
  for (uint32_t p = 0; p < graph->n_parts; p++) {
    pl_part *part = &own->parts[own->at.parts + p];
    *part = graph->parts[p];
    part->name = moved(part->name, own->at.names);
    if (part->transfers) part->spec += (uint32_t)own->at.specs;
  }
  if (graph->n_effects > 0)
    memcpy(&own->effects[own->at.effects], graph->effects, graph->n_effects * sizeof(*graph->effects));
  if (graph->n_names > 0) memcpy(&own->names[own->at.names], graph->names, graph->n_names * sizeof(*graph->names));
}

static void put_specs(joining *own, const pl_joined_job *job) {
  const pl_transfer_table *table = &job->graph->transfers;
  for (uint32_t s = 0; s < table->n_specs; s++) {
    pl_transfer_spec *spec = &own->specs[own->at.specs + s];
    *spec = table->specs[s];
    spec->first_use += (uint32_t)own->at.uses;
    if (spec->source != PL_NONE) spec->source = job->devices[spec->source];
    if (spec->destination != PL_NONE) spec->destination = job->devices[spec->destination];
  }
  if (table->n_uses > 0) memcpy(&own->uses[own->at.uses], table->uses, table->n_uses * sizeof(*table->uses));
}

/* ---- tasks ---- */

static void add_successor(joining *own, uint32_t task) {
  own->successors[own->at.edges++] = task;
  own->n_predecessors[task]++;
}

/* The task in front of an iteration: ends when it may begin. */
static void put_start(joining *own, const pl_joined_job *job, uint32_t iteration, uint32_t first) {
  pl_task *start = &own->tasks[own->at.tasks];
  *start = (pl_task){.kind = PL_TASK_DELAY,
                     .category = PL_CATEGORY_OTHER,
                     .ticks = iteration == 0 ? job->offset : 0,
                     .first_stream = (uint32_t)own->at.task_streams,
                     .memory = PL_NONE,
                     .label = PL_NONE,
                     .microbatch = -1,
                     .first_successor = (uint32_t)own->at.edges};
  own->successor_offset[own->at.tasks] = (uint32_t)own->at.edges;
  for (uint32_t t = 0; t < job->graph->n_tasks; t++)
    if (job->graph->n_predecessors[t] == 0) add_successor(own, first + t);
  start->n_successors = (uint32_t)own->at.edges - start->first_successor;
}

static void put_task(joining *own, const pl_graph *graph, uint32_t task, uint32_t first, uint32_t next) {
  pl_task *made = &own->tasks[first + task];
  *made = graph->tasks[task];
  if (made->kind == PL_TASK_WORK) made->index += (uint32_t)own->at.segments;
  if (made->kind == PL_TASK_TRANSFER) made->index += (uint32_t)own->at.specs;
  made->first_stream += (uint32_t)own->at.task_streams;
  made->memory = moved(made->memory, own->at.effects);
  made->label = moved(made->label, own->at.names);
  made->first_successor = own->successor_offset[first + task] = (uint32_t)own->at.edges;
  for (uint32_t s = 0; s < graph->tasks[task].n_successors; s++)
    add_successor(own, first + graph->successors[graph->tasks[task].first_successor + s]);
  if (graph->tasks[task].n_successors == 0 && next != PL_NONE) add_successor(own, next);
  made->n_successors = (uint32_t)own->at.edges - made->first_successor;
}

static void put_iteration(joining *own, const pl_joined_job *job, uint32_t iteration) {
  const pl_graph *graph = job->graph;
  uint32_t first = (uint32_t)own->at.tasks + 1, last = first + graph->n_tasks;
  put_start(own, job, iteration, first);
  for (uint32_t t = 0; t < graph->n_tasks; t++)
    put_task(own, graph, t, first, iteration + 1 < job->n_iterations ? last : PL_NONE);
  for (uint32_t s = 0; s < graph->n_task_streams; s++)
    own->task_streams[own->at.task_streams + s] = graph->task_streams[s] + (uint32_t)own->at.streams;
  own->at.task_streams += graph->n_task_streams;
  own->at.tasks += graph->n_tasks + 1;
}

static void put_job(joining *own, pl_joined_job *job) {
  const pl_graph *graph = job->graph;
  job->first_task = (uint32_t)own->at.tasks;
  job->first_device = (uint32_t)own->at.devices;
  put_devices(own, job);
  put_segments(own, graph);
  put_specs(own, job);
  for (uint32_t i = 0; i < job->n_iterations; i++)
    put_iteration(own, job, i);
  own->at.devices += graph->n_devices;
  own->at.streams += graph->n_streams;
  own->at.segments += graph->n_segments;
  own->at.parts += graph->n_parts;
  own->at.effects += graph->n_effects;
  own->at.names += graph->n_names;
  own->at.specs += graph->transfers.n_specs;
  own->at.uses += graph->transfers.n_uses;
}

static void count_tasks(pl_graph *graph) {
  for (uint32_t t = 0; t < graph->n_tasks; t++) {
    graph->n_transfer_tasks += graph->tasks[t].kind == PL_TASK_TRANSFER;
    graph->n_streamless_tasks += graph->tasks[t].n_streams == 0;
  }
}

pl_code pl_graph_join(pl_joined_job *jobs, uint32_t n_jobs, pl_arena *arena, pl_graph *joined, pl_error *error) {
  joining own = {.arena = arena};
  sizes all = measure(jobs, n_jobs);
  if (all.tasks >= PL_NONE || all.edges >= PL_NONE || all.task_streams >= PL_NONE)
    return pl_fail(error, PL_UNSUPPORTED, "the jobs beside each other have too many tasks for one run");
  if (!take(&own, &all)) return pl_fail_memory(error, "the graph of the jobs");
  for (uint32_t j = 0; j < n_jobs; j++) {
    PL_ASSERT(jobs[j].n_iterations > 0 && jobs[j].graph->policy == jobs[0].graph->policy);
    PL_ASSERT(jobs[j].graph->transfers.n_links == jobs[0].graph->transfers.n_links);
    put_job(&own, &jobs[j]);
  }
  PL_ASSERT(own.at.tasks == all.tasks && own.at.edges == all.edges);
  own.successor_offset[all.tasks] = (uint32_t)all.edges;
  *joined = (pl_graph){.tasks = own.tasks,
                       .n_tasks = (uint32_t)all.tasks,
                       .successor_offset = own.successor_offset,
                       .successors = own.successors,
                       .n_predecessors = own.n_predecessors,
                       .n_edges = (uint32_t)all.edges,
                       .task_streams = own.task_streams,
                       .n_task_streams = (uint32_t)all.task_streams,
                       .streams = own.streams,
                       .n_streams = (uint32_t)all.streams,
                       .devices = own.devices,
                       .n_devices = (uint32_t)all.devices,
                       .segments = own.segments,
                       .n_segments = (uint32_t)all.segments,
                       .parts = own.parts,
                       .n_parts = (uint32_t)all.parts,
                       .effects = own.effects,
                       .n_effects = (uint32_t)all.effects,
                       .names = own.names,
                       .n_names = (uint32_t)all.names,
                       .transfers = jobs[0].graph->transfers,
                       .policy = jobs[0].graph->policy};
  joined->transfers.specs = own.specs;
  joined->transfers.n_specs = (uint32_t)all.specs;
  joined->transfers.uses = own.uses;
  joined->transfers.n_uses = (uint32_t)all.uses;
  count_tasks(joined);
  return PL_OK;
}

void pl_joined_span(const pl_joined_job *job, uint32_t iteration, const pl_ticks *finish, pl_ticks *begin,
                    pl_ticks *end) {
  uint32_t start = job->first_task + iteration * (job->graph->n_tasks + 1);
  *begin = *end = finish[start];
  for (uint32_t t = start + 1; t <= start + job->graph->n_tasks; t++)
    if (finish[t] > *end) *end = finish[t];
}
