/* A rank without GPU (gloo, or a profile of the host alone). Ops of the framework nest; each moment of a thread belongs
 * to the innermost op, so an op becomes as many tasks as it has stretches of its own. Collectives stand on streams of
 * their own: the libraries' workers. See workloads/formats/kineto_rank.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/formats/kineto_rank.h"

static bool is_step(const pl_trace *trace, const pl_kineto_event *event) {
  return strncmp(trace->names[event->name], "ProfilerStep#", 13) == 0;
}

static uint32_t add_stream(pl_kineto_rank *own, uint32_t thread, const char *what, pl_trace_stream_kind kind) {
  char text[96];
  const pl_kineto_thread *t = &own->kineto->threads[thread];
  int n = snprintf(text, sizeof text, "%s %.60s", what, t->thread == PL_NONE ? "?" : own->trace->names[t->thread]);
  uint32_t name = pl_trace_name(own->trace, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
  return name == PL_NONE ? PL_NONE : pl_trace_add_stream(own->trace, own->rank, name, kind);
}

typedef struct nesting {
  uint32_t *open; /* places of the events that are open, outermost first */
  uint32_t n_open;
  int64_t date; /* up to which the thread is told */
  uint32_t stream;
} nesting;

/* The stretch from where the thread is told to `until` belongs to the innermost op. */
static bool tell_until(pl_kineto_rank *own, nesting *nest, int64_t until) {
  if (nest->n_open > 0 && until > nest->date) {
    const pl_kineto_event *event = pl_kineto_at(own, nest->open[nest->n_open - 1]);
    pl_trace_op op = {nest->date, until - nest->date, event->name, nest->stream, PL_NONE, PL_NONE, PL_TRACE_COMPUTE};
    if (pl_trace_add_op(own->trace, op) == PL_NONE) return false;
  }
  if (until > nest->date) nest->date = until;
  return true;
}

static bool flatten(pl_kineto_rank *own, uint32_t thread, nesting *nest) {
  nest->n_open = 0;
  nest->date = INT64_MIN;
  for (uint32_t k = own->first_event[thread]; k <= own->first_event[thread + 1]; k++) {
    bool last = k == own->first_event[thread + 1];
    const pl_kineto_event *event = last ? NULL : pl_kineto_at(own, k);
    if (!last && (event->communication > 0 || is_step(own->trace, event))) continue;
    while (nest->n_open > 0) {
      int64_t end = pl_kineto_end(pl_kineto_at(own, nest->open[nest->n_open - 1]));
      if (!last && end > event->start_ns) break;
      if (!tell_until(own, nest, end)) return false;
      nest->n_open--;
    }
    if (last) break;
    if (!tell_until(own, nest, event->start_ns)) return false;
    nest->date = event->start_ns > nest->date ? event->start_ns : nest->date;
    nest->open[nest->n_open++] = k;
  }
  return true;
}

static bool add_collective(pl_kineto_rank *own, uint32_t place, uint32_t stream) {
  const pl_kineto_event *event = pl_kineto_at(own, place);
  const char *name = own->trace->names[event->name];
  pl_trace_op_kind kind;
  uint32_t message = pl_kineto_message(own, name, event->communication, 0, &kind);
  pl_trace_op op = {event->start_ns, event->duration_ns, event->name, stream, message, PL_NONE, (uint8_t)kind};
  return message != PL_NONE && pl_trace_add_op(own->trace, op) != PL_NONE;
}

/* The library's annotation lies inside of record_param_comms where both are there: the outer one is left out. */
static bool is_collective(const pl_kineto_rank *own, uint32_t place) {
  const pl_kineto_event *event = pl_kineto_at(own, place);
  return event->communication > 0 && strcmp(own->trace->names[event->name], "record_param_comms") != 0;
}

static bool add_thread(pl_kineto_rank *own, uint32_t thread, nesting *nest) {
  uint32_t n_collectives = 0, n_ops = 0;
  for (uint32_t k = own->first_event[thread]; k < own->first_event[thread + 1]; k++) {
    n_collectives += is_collective(own, k);
    n_ops += pl_kineto_at(own, k)->communication == 0 && !is_step(own->trace, pl_kineto_at(own, k));
  }
  if (n_ops > 0) {
    nest->stream = add_stream(own, thread, "thread", PL_TRACE_HOST);
    if (nest->stream == PL_NONE || !flatten(own, thread, nest)) return false;
  }
  if (n_collectives == 0) return true;
  uint32_t stream = add_stream(own, thread, n_ops > 0 ? "collectives of thread" : "worker", PL_TRACE_NETWORK);
  for (uint32_t k = own->first_event[thread]; stream != PL_NONE && k < own->first_event[thread + 1]; k++)
    if (is_collective(own, k) && !add_collective(own, k, stream)) return false;
  return stream != PL_NONE;
}

pl_code pl_kineto_host_ops(pl_kineto_rank *own, pl_error *error) {
  nesting nest = {.open = malloc((own->kineto->n_events + 1) * sizeof(uint32_t))};
  bool good = nest.open != NULL;
  for (uint32_t thread = 0; good && thread < own->kineto->n_threads; thread++)
    good = add_thread(own, thread, &nest);
  free(nest.open);
  return good ? PL_OK : pl_fail_memory(error, "the ops of a trace");
}
