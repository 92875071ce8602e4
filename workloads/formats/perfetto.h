/* A job as one Chrome trace that Perfetto draws, a process per rank, a thread per stream, arrows from what was waited
 * for, and that is read back with nothing lost: what a drawing does not need stands in the arguments of the events.
 *
 * `"paceline_perfetto": 1` opens the object; `base_ns` is what dates of all ranks count from. Events, rank by rank:
 *
 * | event | arguments |
 * |---|---|
 * | M process_name, pid = rank | name; host, world_size |
 * | M paceline_group, before the ops | group: its number in the file; name; members |
 * | M thread_name, tid = stream | name; kind: host, device, network |
 * | X of category step, tid 0 | step: its number |
 * | X of the kind of op (compute, collective ...) | id; step; after: ids that it waits for, launched_by: ids whose
 * start it waits for (of the rank); message: its kind; group, or peer and tag; bytes; sequence | | s, f | the arrows:
 * drawn, and not read |
 */
#ifndef PL_WORKLOADS_FORMATS_PERFETTO_H
#define PL_WORKLOADS_FORMATS_PERFETTO_H

#include <stdio.h>

#include "workloads/formats/kineto_events.h"

enum { PL_PERFETTO_VERSION = 1 };

/* All ranks of the trace; the caller sees to the file. PL_NO_MEMORY. O(ops + edges). */
pl_code pl_perfetto_write(FILE *file, const pl_trace *trace, pl_error *error);

/* Adds the ranks of the file. PL_BAD_INPUT: another version, or events that do not fit together. */
pl_code pl_perfetto_load(const char *path, pl_trace *trace, const pl_trace_progress *progress, pl_error *error);
/* The same from memory; `name` stands for the path. */
pl_code pl_perfetto_parse(const char *name, const char *data, size_t size, pl_trace *trace, pl_error *error);

#endif
