/* A rank without GPU (gloo, or a profile of the host alone). Ops of the framework nest; each moment of a thread belongs
 * to the innermost op, so an op becomes as many tasks as it has stretches of its own. Collectives stand on streams of
 * their own: the libraries' workers. See workloads/formats/kineto_rank.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/growing.h"
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

/* What of an event that is open is needed later, when it may be gone. */
typedef struct open_event {
  int64_t end_ns;
  uint32_t name;
} open_event;

typedef struct nesting {
  open_event *open; /* outermost first */
  uint32_t n_open, room;
  int64_t date; /* up to which the thread is told */
  uint32_t stream;
  pl_kineto_event *collectives; /* of the thread */
  uint32_t n_collectives, collective_room;
} nesting;

/* The stretch from where the thread is told to `until` belongs to the innermost op. */
static bool tell_until(pl_kineto_rank *own, nesting *nest, int64_t until) {
  if (nest->n_open > 0 && until > nest->date) {
    uint32_t name = nest->open[nest->n_open - 1].name;
    pl_trace_op op =
        pl_trace_op_of(nest->date, until - nest->date, name, nest->stream, PL_NONE, PL_NONE, PL_TRACE_COMPUTE);
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
      int64_t end = nest->open[nest->n_open - 1].end_ns;
      if (!last && end > event->start_ns) break;
      if (!tell_until(own, nest, end)) return false;
      nest->n_open--;
    }
    if (last) break;
    if (!tell_until(own, nest, event->start_ns)) return false;
    nest->date = event->start_ns > nest->date ? event->start_ns : nest->date;
    if (!PL_GROW(nest->open, nest->n_open, nest->room)) return false;
    nest->open[nest->n_open++] = (open_event){pl_kineto_end(event), event->name};
    pl_kineto_forget_before(own, k + 1);
  }
  return true;
}

static bool add_collective(pl_kineto_rank *own, const pl_kineto_event *event, uint32_t stream) {
  const char *name = own->trace->names[event->name];
  pl_trace_op_kind kind;
  uint32_t message = pl_kineto_message(own, name, event->communication, 0, &kind);
  pl_trace_op op = pl_trace_op_of(event->start_ns, event->duration_ns, event->name, stream, message, PL_NONE, kind);
  return message != PL_NONE && pl_trace_add_op(own->trace, op) != PL_NONE;
}

/* The library's annotation lies inside of record_param_comms where both are there: the outer one is left out. */
static bool is_collective(const pl_kineto_rank *own, const pl_kineto_event *event) {
  return event->communication > 0 && strcmp(own->trace->names[event->name], "record_param_comms") != 0;
}

static bool add_thread(pl_kineto_rank *own, uint32_t thread, nesting *nest) {
  uint32_t n_ops = 0;
  nest->n_collectives = 0;
  for (uint32_t k = own->first_event[thread]; k < own->first_event[thread + 1]; k++) {
    const pl_kineto_event *event = pl_kineto_at(own, k);
    n_ops += event->communication == 0 && !is_step(own->trace, event);
    if (!is_collective(own, event)) continue;
    if (!PL_GROW(nest->collectives, nest->n_collectives, nest->collective_room)) return false;
    nest->collectives[nest->n_collectives++] = *event;
  }
  if (n_ops > 0) {
    nest->stream = add_stream(own, thread, "thread", PL_TRACE_HOST);
    if (nest->stream == PL_NONE || !flatten(own, thread, nest)) return false;
  }
  if (nest->n_collectives == 0) return true;
  uint32_t stream = add_stream(own, thread, n_ops > 0 ? "collectives of thread" : "worker", PL_TRACE_NETWORK);
  for (uint32_t k = 0; stream != PL_NONE && k < nest->n_collectives; k++)
    if (!add_collective(own, &nest->collectives[k], stream)) return false;
  return stream != PL_NONE;
}

pl_code pl_kineto_host_ops(pl_kineto_rank *own, pl_error *error) {
  nesting nest = {.open = NULL};
  bool good = true;
  for (uint32_t thread = 0; good && thread < own->kineto->n_threads; thread++)
    good = add_thread(own, thread, &nest);
  free(nest.open);
  free(nest.collectives);
  return good ? PL_OK : pl_fail_memory(error, "the ops of a trace");
}
