/* Writes a run in Perfetto's own format (protos/perfetto/trace/trace.proto of its repository): what
 * pl_timeline_write_chrome writes, in a sixth of the bytes, and packed in a fiftieth, since a microbatch that repeats
 * another is the same bytes. Dates are said as what has passed since the date before and names once per track; a file
 * of JSON says both anew in each event, which no packer can undo. Perfetto opens it, packed with gzip too;
 * chrome://tracing does not.
 *
 * Dates are nanoseconds: of a task rounded, of what lies in a task rounded from its start on, so that passes that take
 * as long are the same bytes. No date is further than 1 ns from the run's.
 */
#ifndef PL_CORE_TIMELINE_PERFETTO_H
#define PL_CORE_TIMELINE_PERFETTO_H

#include <stdio.h>

#include "core/base/status.h"
#include "core/engine/timeline.h"

/* Whether a file of that name is to be in this format: it ends in .pftrace or .perfetto-trace, with or without .gz. */
bool pl_timeline_is_perfetto(const char *path);

/* PL_NO_MEMORY. O(slices log slices) time, some 100 bytes a slice. The caller checks ferror and closes. */
pl_code pl_timeline_write_perfetto(FILE *stream, const pl_graph *graph, const pl_engine_result *result,
                                   const pl_timeline_view *view, pl_error *error);

/* As the view says: in this format, or as a Chrome trace. */
pl_code pl_timeline_write(FILE *stream, const pl_graph *graph, const pl_engine_result *result,
                          const pl_timeline_view *view, pl_error *error);

#endif
