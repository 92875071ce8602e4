/* One step of a recorded job as an execution graph of core, and its replay.
 *
 * Each op is two tasks. Its gate waits for what the op waited for, and then for its lag: what lies between the last of
 * those and the recorded start and nothing in the trace explains (a host thread's own work between two calls is of this
 * kind). Its body takes as long as the op did, or:
 *   collective  all members' gates -> one join, as long as from the last arrival to the first end -> each member's
 * body, which is what it took to leave receive     begins once it is posted and the send has begun; takes what is left
 * from the later of both send        likewise where it ended after the receive was posted (it may have waited for it),
 * else it takes its time wait        ends after what it waited for; takes what is left after that A launch lets the
 * kernel's gate open a launch latency after the call's start; the latency is the least that the rank ever showed. What
 * an op of an earlier step holds back is a release at its recorded date.
 *
 * All tasks are delays without streams: the order on streams is edges, sends and receives have streams of their own. So
 * the engine's result is the longest path, which is what a run here computes, in one pass over the tasks; tests hold it
 * to pl_engine_run tick for tick.
 */
#ifndef PL_WORKLOADS_TRACE_REPLAY_H
#define PL_WORKLOADS_TRACE_REPLAY_H

#include "core/graph/graph.h"
#include "workloads/trace/clocks.h"
#include "workloads/trace/meetings.h"
#include "workloads/trace/steps.h"
#include "workloads/trace/trace.h"

typedef enum pl_trace_role {
  PL_TRACE_GATE = 0, /* `subject` is an op */
  PL_TRACE_BODY,     /* an op */
  PL_TRACE_JOIN,     /* a meeting */
  PL_TRACE_FLIGHT,   /* the receive */
  PL_TRACE_LATENCY,  /* the op that is launched */
  PL_TRACE_RELEASE   /* the op that is held back */
} pl_trace_role;

typedef struct pl_trace_replay {
  const pl_trace *trace;
  const pl_trace_meetings *meetings;
  const pl_trace_clocks *clocks;
  pl_trace_span span; /* of the step */
  pl_graph graph;
  uint32_t *gate, *body; /* per op of the trace: its tasks, PL_NONE if it is not of the step */
  uint32_t *join;        /* per meeting, likewise */
  uint8_t *role;         /* per task: pl_trace_role */
  uint32_t *subject;     /* per task */
  pl_ticks *ticks;       /* per task: its duration as recorded */
  uint32_t *order;       /* tasks, each behind its predecessors */
  uint32_t *place;       /* per task: where it stands in `order` */
  uint32_t *pred_offset, *preds;
  uint32_t n_ops;
} pl_trace_replay;

/* Takes everything from `arena`; trace, meetings and clocks must outlive the replay. PL_BAD_INPUT: the dependencies
 * have a cycle, which the message names. O(ops + edges). */
pl_code pl_trace_replay_take(const pl_trace *trace, const pl_trace_meetings *meetings, const pl_trace_clocks *clocks,
                             const pl_trace_step_list *steps, uint32_t step, pl_arena *arena, pl_trace_replay *replay,
                             pl_error *error);

/* Finish dates of all tasks for these durations; returns the makespan, counted from the start of the step's span. */
pl_ticks pl_trace_replay_run(const pl_trace_replay *replay, const pl_ticks *ticks, pl_ticks *finish);
/* The same after the durations of `changed` tasks changed: `finish` is that of the old durations, and becomes what a
 * whole run would give. Looks only at tasks whose date moves. `heap`: room for n_tasks, `queued`: n_tasks zeros, which
 * it leaves as it found them. */
pl_ticks pl_trace_replay_update(const pl_trace_replay *replay, const pl_ticks *ticks, const uint32_t *changed,
                                uint32_t n_changed, uint32_t *heap, uint8_t *queued, pl_ticks *finish);
/* Tasks from the first to the last one whose durations add up to the makespan exactly; returns how many. `path` has
 * room for n_tasks. Of several predecessors that finish at once the one with the lowest id. */
uint32_t pl_trace_replay_critical(const pl_trace_replay *replay, const pl_ticks *ticks, const pl_ticks *finish,
                                  uint32_t *path);

static inline pl_ticks pl_trace_ticks_from_ns(int64_t ns) {
  return ns <= 0 ? 0 : (pl_ticks)(((__extension__(__int128) ns << 40) + 500000000) / 1000000000);
}
/* The step as it was measured. */
static inline pl_ticks pl_trace_replay_measured(const pl_trace_replay *replay) {
  return pl_trace_ticks_from_ns(replay->span.end_ns - replay->span.start_ns);
}

#endif
