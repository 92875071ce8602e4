/* A job from the files that its ranks wrote: which files of a folder are traces, of which format and of which rank, and
 * whether they are one job. */
#ifndef PL_WORKLOADS_TRACE_IMPORT_H
#define PL_WORKLOADS_TRACE_IMPORT_H

#include "workloads/formats/kineto_events.h"
#include "workloads/trace/trace.h"

typedef struct pl_trace_import_options {
  /* Ranks 0 to n - 1 are on one host, and so on; 0: files in a folder of their own below the job's are of the host with
   * its name, all others have a clock each. */
  int64_t ranks_per_host;
  const pl_trace_progress *progress; /* NULL: not told */
} pl_trace_import_options;

/* `path` is a trace or a folder of them (three levels deep). `trace` is empty before; release it also after a failure.
 */
pl_code pl_trace_import(const char *path, const pl_trace_import_options *options, pl_trace *trace, pl_error *error);

#endif
