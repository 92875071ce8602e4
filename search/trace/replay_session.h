/* What `replay`, `diagnose` and `optimize` begin with: a job file, its messages matched, its clocks aligned, one step
 * as a graph. */
#ifndef PL_SEARCH_TRACE_REPLAY_SESSION_H
#define PL_SEARCH_TRACE_REPLAY_SESSION_H

#include <stdio.h>

#include "workloads/trace/replay.h"
#include "workloads/trace/replay_window.h"
#include "workloads/trace/what_if.h"

typedef struct pl_replay_session {
  pl_trace trace;
  pl_trace_meetings meetings;
  pl_trace_clocks clocks;
  pl_trace_step_list steps;
} pl_replay_session;

/* Release it also after a failure. */
pl_code pl_replay_session_open(const char *path, pl_replay_session *session, pl_error *error);
void pl_replay_session_release(pl_replay_session *session);
/* Index of the step with this number; that of the median length if `number` is INT64_MIN. */
pl_code pl_replay_session_step(const pl_replay_session *session, const char *path, int64_t number, uint32_t *step,
                               pl_error *error);
/* Lines through the messages of all steps (each is made for it): what a latency is, the job says. Scratch in
 * `arena`, which must be empty. */
pl_code pl_replay_session_fit(const pl_replay_session *session, pl_arena *arena, pl_trace_fits *fits, pl_error *error);
static inline pl_code pl_replay_session_take(const pl_replay_session *session, uint32_t step, pl_arena *arena,
                                             pl_trace_replay *replay, pl_error *error) {
  return pl_trace_replay_take(&session->trace, &session->meetings, &session->clocks, &session->steps, step, arena,
                              replay, error);
}
/* A line if ranks lack messages of others (workloads/trace/meeting_gaps.h). */
void pl_replay_session_put_lacking(FILE *out, const pl_replay_session *session);
/* The step with the one before it, for what-if. */
static inline pl_code pl_replay_session_window(const pl_replay_session *session, uint32_t step, pl_arena *arena,
                                               pl_trace_window *window, pl_error *error) {
  return pl_trace_window_take(&session->trace, &session->meetings, &session->clocks, &session->steps, step, arena,
                              window, error);
}

#endif
