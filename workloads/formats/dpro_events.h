/* Chrome traces of dPRO's folders and BytePS: events with the arguments that Horovod, TensorFlow's profiler and patched
 * NCCL give them. */
#ifndef PL_WORKLOADS_FORMATS_DPRO_EVENTS_H
#define PL_WORKLOADS_FORMATS_DPRO_EVENTS_H

#include "workloads/formats/chrome_events.h"

typedef struct pl_dpro_said {
  uint32_t name, long_name;                   /* arguments name and long_name: names of the trace; PL_NONE: absent */
  int64_t group, loop, channel, chunk, slice; /* group_id, loopId ...; -1: absent */
} pl_dpro_said;

typedef struct pl_dpro_reader {
  pl_trace *trace; /* gets the names */
  /* What it returns but PL_OK ends the reading. */
  pl_code (*event)(void *context, const pl_chrome_event *event, const pl_dpro_said *said, pl_error *error);
  void *context;
} pl_dpro_reader;

/* A list of events, or an object with traceEvents. None takes more than 30 days. */
pl_code pl_dpro_events_read(const char *path, const pl_dpro_reader *reader, pl_json_end *end, pl_error *error);
pl_code pl_dpro_events_parse(const char *name, const char *data, size_t size, const pl_dpro_reader *reader,
                             pl_json_end *end, pl_error *error);

#endif
