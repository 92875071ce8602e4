/* A replayed step as a Chrome trace, which Perfetto and chrome://tracing open: ranks are processes, streams threads,
 * ops complete events in microseconds. */
#ifndef PL_SEARCH_TRACE_REPLAY_TIMELINE_H
#define PL_SEARCH_TRACE_REPLAY_TIMELINE_H

#include "workloads/trace/replay.h"

/* `finish` as pl_trace_replay_run gives it. Whole or not at all; an existing file only with `force`. */
pl_code pl_replay_timeline_store(const char *path, bool force, const pl_trace_replay *replay, const pl_ticks *finish,
                                 pl_error *error);

#endif
