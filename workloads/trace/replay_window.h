/* A step with the one before it, for what-if.
 *
 * Steps overlap: servers still answer the last one, ranks that were early have begun the next. Replayed by itself, a
 * step holds what the one before left under way to its recorded dates (replay.h), which other hardware would have moved
 * too: links twice as fast made steps behind the first 2 % too long where a server is bound by communication. Here both
 * are one graph, and the time of the step is from its own first start to its own last end. What the step before found
 * under way stays as recorded.
 */
#ifndef PL_WORKLOADS_TRACE_REPLAY_WINDOW_H
#define PL_WORKLOADS_TRACE_REPLAY_WINDOW_H

#include "workloads/trace/replay.h"

typedef struct pl_trace_window {
  pl_trace_replay replay; /* of both, with what stands between them */
  const uint32_t *ops;    /* of the step */
  uint32_t n_ops;
} pl_trace_window;

/* As pl_trace_replay_take. `step` is the index of the second one; of the first step that there is, it alone. */
pl_code pl_trace_window_take(const pl_trace *trace, const pl_trace_meetings *meetings, const pl_trace_clocks *clocks,
                             const pl_trace_step_list *steps, uint32_t step, pl_arena *arena, pl_trace_window *window,
                             pl_error *error);

/* How long the step takes, by the finish dates of a run of `replay`. */
pl_ticks pl_trace_window_time(const pl_trace_window *window, const pl_ticks *finish);
/* The same run as dates of the step by itself, `alone`, from its first start: of gates and bodies. */
void pl_trace_window_dates(const pl_trace_window *window, const pl_ticks *finish, const pl_trace_replay *alone,
                           pl_ticks *alone_finish);

#endif
