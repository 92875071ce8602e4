/* nsys' SQLite export (nsys export --type sqlite): kernels, copies and runtime calls of the processes of one host, as
 * events of a profiler (workloads/formats/kineto_events.h), so that launches, streams and messages are made as they are
 * there. NCCL's kernels say their kind by name, and nothing of sizes and groups. Steps are NVTX ranges named
 * ProfilerStep#N, "step N" or "iteration N".
 */
#ifndef PL_WORKLOADS_FORMATS_NSYS_H
#define PL_WORKLOADS_FORMATS_NSYS_H

#include "workloads/formats/kineto_events.h"
#include "workloads/trace/trace.h"

typedef struct pl_nsys_names {
  /* Rank number of process `place` of the `n` in the file (by device); and its host, into names (PL_NONE: no memory).
   */
  int64_t (*rank)(void *context, const char *path, uint32_t place, uint32_t n);
  uint32_t (*host)(void *context, const char *path, int64_t rank, uint32_t n);
  void *context;
} pl_nsys_names;

/* Adds a rank for each process with kernels. */
pl_code pl_nsys_load(const char *path, const pl_nsys_names *names, pl_trace *trace, pl_error *error);
/* The same of a database in memory; `name` stands for the path. */
pl_code pl_nsys_parse(const char *name, const uint8_t *data, size_t size, const pl_nsys_names *names, pl_trace *trace,
                      pl_error *error);

#endif
