/* Writes a run as a Chrome trace (JSON array format with metadata) that Perfetto and chrome://tracing open:
 * devices are processes, streams are threads, tasks (and the parts of fused tasks) are complete events in microseconds. */
#ifndef PL_CORE_TIMELINE_H
#define PL_CORE_TIMELINE_H

#include <stdio.h>

#include "core/engine.h"
#include "core/graph.h"

typedef struct pl_timeline_names {
  const char *const *device; /* per graph device: the process name */
} pl_timeline_names;

/* Streams the trace; memory O(1) beyond the result. The caller checks ferror and closes. */
void pl_timeline_write_chrome(FILE *stream, const pl_graph *graph, const pl_engine_result *result,
                              const pl_timeline_names *names);

#endif
