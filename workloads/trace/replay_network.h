/* Replay on another network: messages take what the flow network of a platform gives them, and feel each other there;
 * all else is as recorded. Rank r is on device r of the platform.
 */
#ifndef PL_WORKLOADS_TRACE_REPLAY_NETWORK_H
#define PL_WORKLOADS_TRACE_REPLAY_NETWORK_H

#include "netmodel/collective/collective_profile.h"
#include "workloads/trace/replay.h"

typedef struct pl_trace_network_options {
  const pl_cluster *cluster;
  const char *platform;                 /* its name, for messages */
  const pl_collective_profile *profile; /* NULL: ideal collectives */
  int64_t n_ranks; /* 0: as many as the job has; else collectives of all its ranks are of that many */
} pl_trace_network_options;

typedef struct pl_trace_network_played {
  pl_ticks makespan;
  uint32_t n_timed, n_kept; /* messages of the step; kept: of unknown size or kind, which take their recorded time */
} pl_trace_network_played;

/* A collective is one of its group on the devices of its members, recorded or not; a message a flow. A send that was
 * recorded about as long as its message flew ends with it. `ticks`: of the other tasks, as pl_trace_replay_run has
 * them; `finish`: room for n_tasks. PL_BAD_INPUT: the platform has too few devices, or `n_ranks` is given and a message
 * is not of all ranks, so that nothing says what more of them would do. */
pl_code pl_trace_network_play(const pl_trace_replay *replay, const pl_ticks *ticks,
                              const pl_trace_network_options *options, pl_arena *arena, pl_ticks *finish,
                              pl_trace_network_played *played, pl_error *error);

#endif
