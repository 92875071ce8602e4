/* Which microbatches a timeline shows: the options --trace-microbatches and --trace-ops. */
#ifndef PL_WORKLOADS_TRACE_WINDOW_H
#define PL_WORKLOADS_TRACE_WINDOW_H

#include "core/base/status.h"
#include "core/engine/timeline.h"

/* "3" or "0-3" each, or NULL: all. PL_BAD_INPUT: neither. */
pl_code pl_trace_windows_read(const char *microbatches, const char *ops, pl_timeline_view *view, pl_error *error);
/* The first of the two of a program with so many microbatches, whose timeline goes to `trace_path`. */
pl_code pl_trace_window_of(const char *microbatches, const char *trace_path, int32_t n_microbatches,
                           pl_timeline_view *view, pl_error *error);

#endif
