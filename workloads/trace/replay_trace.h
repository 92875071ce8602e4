/* A replayed step as a trace of its own, for what reads recordings. */
#ifndef PL_WORKLOADS_TRACE_REPLAY_TRACE_H
#define PL_WORKLOADS_TRACE_REPLAY_TRACE_H

#include "workloads/trace/replay.h"

/* Fills `out`, which is empty before (release it also after a failure): the ranks and ops of the step at the dates of
 * `finish` (pl_trace_replay_run), what they wait for within the step, one clock for all. */
pl_code pl_trace_replay_record(const pl_trace_replay *replay, const pl_ticks *finish, pl_trace *out, pl_error *error);

#endif
