/* The replay of a step whose links serve who is ready first.
 *
 * The graph of replay.h holds messages to the order in which they were recorded. Where other hardware makes others
 * ready first that order means nothing: a library sends what is there. So here sends of a network stream claim it when
 * they are ready, and receives wait for their message alone. Whether a link was served so says the recording: only
 * where it comes back this way are links taken so, else the recorded order stands.
 */
#ifndef PL_WORKLOADS_TRACE_REPLAY_LINKS_H
#define PL_WORKLOADS_TRACE_REPLAY_LINKS_H

#include "workloads/trace/replay.h"
#include "workloads/trace/step_graph.h"

typedef struct pl_trace_links {
  pl_step_graph graph; /* of the replay's tasks */
  bool are_served;     /* by readiness; false: there is nothing to serve, or the recording does not come back so */
  pl_arena *arena;
} pl_trace_links;

/* Takes everything from `arena`, which must outlive the links. O((tasks + edges) log tasks). */
pl_code pl_trace_links_take(const pl_trace_replay *replay, pl_arena *arena, pl_trace_links *links, pl_error *error);

/* As pl_trace_replay_run; -1: no memory. */
pl_ticks pl_trace_links_run(const pl_trace_replay *replay, pl_trace_links *links, const pl_ticks *ticks,
                            pl_ticks *finish);

#endif
