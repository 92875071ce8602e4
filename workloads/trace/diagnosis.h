/* Where a step's time goes, and what would shorten it: the critical path over ranks, what each rank's GPU did and
 * waited for, stragglers, and the changes that would pay most, each found by replay.
 */
#ifndef PL_WORKLOADS_TRACE_DIAGNOSIS_H
#define PL_WORKLOADS_TRACE_DIAGNOSIS_H

#include "workloads/trace/replay_window.h"
#include "workloads/trace/what_if.h"

/* What the tasks of a critical path are. */
typedef enum pl_trace_share {
  PL_TRACE_ON_COMPUTE = 0, /* kernels, or ops of a rank without GPU */
  PL_TRACE_ON_COPY,
  PL_TRACE_ON_DATA, /* data moves between ranks */
  PL_TRACE_ON_CALL, /* the host in the device's runtime */
  PL_TRACE_ON_HOST, /* the host's own work, before a call or an op */
  PL_TRACE_ON_LAUNCH,
  PL_TRACE_ON_LAG,     /* before a task of the device or the network: nothing in the trace explains it */
  PL_TRACE_ON_EARLIER, /* something of the step before was still under way */
  PL_TRACE_SHARE_COUNT
} pl_trace_share;

extern const char *const pl_trace_share_names[PL_TRACE_SHARE_COUNT];

/* A rank's time, each moment to the first that holds. */
typedef enum pl_trace_state {
  PL_TRACE_COMPUTES = 0,     /* computing or copying */
  PL_TRACE_EXPOSED,          /* data moves and nothing is computed: exposed communication */
  PL_TRACE_WAITS_FOR_RANK,   /* in a collective that has not begun: a member is missing */
  PL_TRACE_WAITS_FOR_DATA,   /* in a receive whose message was not sent, or is on its way */
  PL_TRACE_WAITS_AFTER_SYNC, /* likewise, and the host had waited for the device meanwhile: it ran dry by that */
  PL_TRACE_WAITS_FOR_HOST,   /* nothing runs on the device, and its next task is not launched yet */
  PL_TRACE_STANDS,           /* nothing runs, for another reason */
  PL_TRACE_IS_DONE,          /* behind its last task of the step */
  PL_TRACE_STATE_COUNT
} pl_trace_state;

extern const char *const pl_trace_state_names[PL_TRACE_STATE_COUNT];

typedef struct pl_trace_on_path {
  uint32_t name; /* into names */
  pl_ticks ticks;
  uint32_t n;
} pl_trace_on_path;

typedef struct pl_trace_rank_times {
  pl_ticks ticks[PL_TRACE_STATE_COUNT]; /* add up to the makespan */
  pl_ticks on_path;
  uint32_t waited_for; /* rank whose lateness held it up longest in collectives; PL_NONE */
  pl_ticks waited;     /* for that one */
  pl_ticks without;    /* makespan if this rank's ops took the median over the ranks; PL_TICKS_NEVER: one rank only */
  double compared;     /* share of the rank's own time whose ops are compared with other ranks' (diagnosis_medians.h) */
} pl_trace_rank_times;

typedef struct pl_trace_change {
  char *what; /* "gemm in half the time" */
  pl_ticks makespan;
} pl_trace_change;

typedef struct pl_trace_diagnosis {
  pl_ticks makespan;
  const uint32_t *path; /* tasks, first to last */
  uint32_t n_path;
  pl_ticks share[PL_TRACE_SHARE_COUNT]; /* add up to the makespan */
  pl_trace_on_path *names;              /* ops on the path, the longest first */
  uint32_t n_names;
  pl_trace_rank_times *ranks;
  pl_trace_change *changes; /* by makespan */
  uint32_t n_changes;
  uint32_t n_replays;
  pl_ticks balanced; /* makespan if all ranks' ops took the median; PL_TICKS_NEVER: one rank only */
  bool are_alike;    /* all ranks do the same ops */
  bool are_served;   /* changes: links served the message that was ready first (replay_links.h) */
} pl_trace_diagnosis;

/* `window`: the same step with the one before it, in which changes are played. `fits`: lines through the job's
 * messages. Takes everything from `arena`. O((ops + edges) * changes), with links that serve by readiness times a
 * logarithm. */
pl_code pl_trace_diagnosis_take(const pl_trace_replay *replay, const pl_trace_window *window, const pl_trace_fits *fits,
                                pl_arena *arena, pl_trace_diagnosis *diagnosis, pl_error *error);

#endif
