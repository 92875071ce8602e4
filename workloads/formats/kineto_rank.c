/* From events to a rank of the trace: order, steps, and then the ops of one of the two kinds of jobs. */
#include "workloads/formats/kineto_rank.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/trace/threads.h"

static int compare_events(const pl_kineto_event *a, const pl_kineto_event *b) {
  if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  return (a->duration_ns < b->duration_ns) - (a->duration_ns > b->duration_ns);
}

static int by_place(const void *a_, const void *b_, void *events_) {
  const pl_kineto_event *events = events_;
  uint32_t a = *(const uint32_t *)a_, b = *(const uint32_t *)b_;
  int order = compare_events(&events[a], &events[b]);
  return order != 0 ? order : (a > b) - (a < b);
}

/* Threads of the host first, for that is the order in which they become ops. */
static void number_threads(pl_kineto *kineto, uint32_t *number) {
  uint32_t n = 0;
  for (int device = 0; device < 2; device++)
    for (uint32_t t = 0; t < kineto->n_threads; t++)
      if (kineto->threads[t].is_device == (device == 1)) number[t] = n++;
}

static bool sort_threads(pl_kineto *kineto) {
  uint32_t n = kineto->n_threads;
  uint32_t *number = malloc(((size_t)n + 1) * sizeof *number);
  pl_kineto_thread *threads = malloc(((size_t)n + 1) * sizeof *threads);
  bool good = number != NULL && threads != NULL;
  if (good) number_threads(kineto, number);
  for (uint32_t t = 0; good && t < n; t++)
    threads[number[t]] = kineto->threads[t];
  if (good && n > 0) memcpy(kineto->threads, threads, n * sizeof *threads);
  for (uint32_t k = 0; good && k < kineto->n_events; k++)
    kineto->events[k].thread = number[kineto->events[k].thread];
  for (uint32_t k = 0; good && k < kineto->n_memory; k++)
    kineto->memory[k].thread = number[kineto->memory[k].thread];
  free(number);
  free(threads);
  return good;
}

static bool sort_events(pl_kineto_rank *own) {
  pl_kineto *kineto = own->kineto;
  uint32_t *order = malloc(((size_t)kineto->n_events + 1) * sizeof *order);
  if (order == NULL || !sort_threads(kineto)) {
    free(order);
    return false;
  }
  for (uint32_t k = 0; k < kineto->n_events; k++)
    order[k] = k;
  qsort_r(order, kineto->n_events, sizeof *order, by_place, kineto->events);
  pl_permute(kineto->events, kineto->n_events, sizeof *kineto->events, order);
  free(order);
  uint32_t thread = 0;
  own->first_event[0] = 0;
  for (uint32_t k = 0; k < kineto->n_events; k++)
    while (thread < pl_kineto_at(own, k)->thread)
      own->first_event[++thread] = k;
  while (thread < kineto->n_threads)
    own->first_event[++thread] = kineto->n_events;
  return true;
}

/* ProfilerStep#7, on the host; the same number once. */
static bool add_steps(pl_kineto_rank *own) {
  pl_trace *trace = own->trace;
  uint32_t first = trace->n_steps;
  for (uint32_t k = 0; k < own->kineto->n_events; k++) {
    const pl_kineto_event *event = &own->kineto->events[k];
    const char *name = trace->names[event->name];
    if (strncmp(name, "ProfilerStep#", 13) != 0 || own->kineto->threads[event->thread].is_device) continue;
    pl_trace_step step = {own->rank, strtoll(name + 13, NULL, 10), event->start_ns, event->duration_ns};
    bool known = false;
    for (uint32_t s = first; s < trace->n_steps; s++)
      known |= trace->steps[s].number == step.number;
    if (!known && pl_trace_add_step(trace, step) == PL_NONE) return false;
  }
  if (trace->n_steps > first)
    qsort(trace->steps + first, trace->n_steps - first, sizeof *trace->steps, pl_trace_step_by_start);
  return true;
}

static pl_code make_ops(pl_kineto_rank *own, pl_error *error) {
  if (!add_steps(own)) return pl_fail_memory(error, "the steps of a trace"); /* in the order of the file */
  if (!sort_events(own)) return pl_fail_memory(error, "the events of a trace");
  bool has_device = false;
  for (uint32_t t = 0; t < own->kineto->n_threads; t++)
    has_device |= own->kineto->threads[t].is_device;
  if (has_device) {
    PL_TRY(pl_kineto_device_ops(own, error));
  } else {
    PL_TRY(pl_kineto_host_ops(own, error));
  }
  free(own->kineto->events); /* every event is an op now, or left out */
  own->kineto->events = NULL;
  own->kineto->n_events = own->kineto->room = 0;
  return pl_kineto_memory_blocks(own, has_device, error);
}

static void note(const pl_kineto_rank *own) {
  const pl_kineto *kineto = own->kineto;
  long long number = (long long)own->number;
  if (kineto->end.is_gzip_cut)
    pl_trace_add_note(own->trace, "%s: rank %lld: the gzip file ends too early; read as far as it goes", kineto->path,
                      number);
  else if (kineto->end.is_cut)
    pl_trace_add_note(own->trace, "%s: rank %lld: the JSON is never closed; read as far as it goes", kineto->path,
                      number);
  if (kineto->n_negative > 0)
    pl_trace_add_note(own->trace, "%s: rank %lld: %u events with negative durations, taken as 0", kineto->path, number,
                      kineto->n_negative);
  if (kineto->n_without_time > 0)
    pl_trace_add_note(own->trace, "%s: rank %lld: %u events without start or duration, left out", kineto->path, number,
                      kineto->n_without_time);
  if (kineto->n_nowhere > 0)
    pl_trace_add_note(own->trace, "%s: rank %lld: %u events of the allocator without an address, left out",
                      kineto->path, number, kineto->n_nowhere);
  if (own->n_assumed_group > 0)
    pl_trace_add_note(own->trace, "%s: rank %lld: %u messages do not say their group; taken as %s", kineto->path,
                      number, own->n_assumed_group,
                      kineto->world_size > 0 ? "all ranks" : "all ranks that were recorded");
}

pl_code pl_kineto_add_rank(pl_kineto *kineto, int64_t number, uint32_t host, pl_trace *trace, pl_error *error) {
  uint32_t file = pl_trace_name(trace, kineto->path, strlen(kineto->path));
  pl_kineto_rank own = {.kineto = kineto, .trace = trace, .number = number, .rank = trace->n_ranks};
  uint32_t first_edge = trace->n_edges;
  pl_trace_rank rank = {.number = number,
                        .host = host,
                        .file = file,
                        .first_op = trace->n_ops,
                        .first_step = trace->n_steps,
                        .world_size = kineto->world_size > 0 ? kineto->world_size : 0};
  if (file == PL_NONE || pl_trace_add_rank(trace, rank) == PL_NONE) return pl_fail_memory(error, "a trace");
  own.first_event = malloc(((size_t)kineto->n_threads + 2) * sizeof *own.first_event);
  pl_code code = own.first_event == NULL ? pl_fail_memory(error, "a trace") : make_ops(&own, error);
  free(own.first_event);
  PL_TRY(code);
  if (trace->n_ops == rank.first_op)
    return pl_fail(error, PL_BAD_INPUT, "%s: rank %lld: no op, call or kernel in it", kineto->path, (long long)number);
  note(&own);
  PL_TRY(pl_trace_end_rank(trace, own.rank, first_edge, error));
  trace->ranks[own.rank].epoch_ns += kineto->base_ns;
  /* What the device does belongs to the step that launched it. */
  for (uint32_t e = first_edge; e < trace->n_edges; e++)
    if (trace->edges[e].from_start) trace->ops[trace->edges[e].after].step = trace->ops[trace->edges[e].before].step;
  return pl_trace_link_threads(trace, own.rank, error);
}
