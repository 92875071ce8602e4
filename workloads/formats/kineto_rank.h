/* Within the Kineto reader: the events of one rank in order, and what its two kinds of jobs share. */
#ifndef PL_WORKLOADS_TRACE_KINETO_RANK_H
#define PL_WORKLOADS_TRACE_KINETO_RANK_H

#include "core/base/permutation.h"
#include "workloads/formats/kineto_events.h"

typedef struct pl_kineto_rank {
  pl_kineto *kineto;
  pl_trace *trace;
  uint32_t rank;         /* index in the trace */
  int64_t number;        /* of the rank */
  uint32_t *first_event; /* per thread, n_threads + 1: events stand by (thread, start, longest first) */
  size_t given_back;     /* events in front of this place are gone: ops were made of them */
  uint32_t n_assumed_group;
} pl_kineto_rank;

/* A rank without GPU: framework ops are the tasks, each moment that of the innermost one. */
pl_code pl_kineto_host_ops(pl_kineto_rank *own, pl_error *error);
/* A rank with GPU: calls of the runtime, and the kernels and copies that they launch. */
pl_code pl_kineto_device_ops(pl_kineto_rank *own, pl_error *error);

/* After the ops: what was allocated, on the device or on the host. */
pl_code pl_kineto_memory_blocks(pl_kineto_rank *own, bool of_device, pl_error *error);

/* Adds a message from what the event and, where that says too little, the host's annotations `around` it say (both may
 * be 0 or indices + 1 of communications). `name` is that of the op. PL_NONE: no memory. */
uint32_t pl_kineto_message(pl_kineto_rank *own, const char *name, uint32_t communication, uint32_t around,
                           pl_trace_op_kind *kind);

static inline const pl_kineto_event *pl_kineto_at(const pl_kineto_rank *own, uint32_t place) {
  return &own->kineto->events[place];
}
/* Events and the ops that they become would not both fit: what is done with is given back as ops are made. */
static inline void pl_kineto_forget_before(pl_kineto_rank *own, uint32_t place) {
  if (place > own->given_back)
    own->given_back = pl_give_back(own->kineto->events, sizeof *own->kineto->events, own->given_back, place);
}
static inline int64_t pl_kineto_end(const pl_kineto_event *event) {
  return event->start_ns + event->duration_ns;
}

#endif
