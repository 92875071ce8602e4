/* Writes a run as a Chrome trace (JSON object format) that Perfetto and chrome://tracing open: devices of the graph are
 * processes, streams are threads, tasks are complete events in microseconds with the picosecond as the last decimal. A
 * fused task appears as its parts when they were recorded (pl_engine_options.record_parts), else as one event. Events
 * carry their category, their task id and, where there is one, the microbatch. */
#ifndef PL_CORE_TIMELINE_H
#define PL_CORE_TIMELINE_H

#include <stdio.h>

#include "core/engine/engine.h"
#include "core/graph/graph.h"

typedef struct pl_timeline_names {
  const char *const *device; /* per graph device: the process name (UTF-8; say here for how many devices it stands) */
} pl_timeline_names;

/* Streams the trace; memory O(1) beyond the result. `names` or its array may be NULL: "device 0". The caller checks
 * ferror and closes. */
void pl_timeline_write_chrome(FILE *stream, const pl_graph *graph, const pl_engine_result *result,
                              const pl_timeline_names *names);

#endif
