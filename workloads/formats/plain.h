/* The plain format: one JSON file per rank, for whatever has no other. README.md in this folder has all keys. */
#ifndef PL_WORKLOADS_TRACE_PLAIN_H
#define PL_WORKLOADS_TRACE_PLAIN_H

#include "workloads/formats/kineto_events.h"
#include "workloads/trace/trace.h"

enum { PL_TRACE_PLAIN_VERSION = 1 };

/* Adds the rank that the file holds. */
pl_code pl_plain_load(const char *path, pl_trace *trace, const pl_trace_progress *progress, pl_error *error);
pl_code pl_plain_parse(const char *name, const char *data, size_t size, pl_trace *trace, pl_error *error);

#endif
