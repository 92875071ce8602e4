/* A rewritten step as it is played: tasks with durations, what each waits for, and links that serve who is ready first.
 *
 * The graph of workloads/trace/replay.h holds messages to their recorded order. Once messages are fused or cut that
 * order means nothing, so here a task may claim a link before it begins and another gives it back when it ends; of
 * those that wait for a link the one that was ready first is next (of several, the lowest id). Without links the result
 * is the longest path.
 */
#ifndef PL_WORKLOADS_TRACE_STEP_GRAPH_H
#define PL_WORKLOADS_TRACE_STEP_GRAPH_H

#include "core/base/arena.h"
#include "core/base/ticks.h"
#include "core/cluster/cluster.h"

typedef struct pl_step_arc {
  uint32_t before, after;
} pl_step_arc;

typedef struct pl_step_graph {
  uint32_t n, n_links;
  pl_ticks *ticks;
  uint32_t *claims, *frees; /* per task a link or PL_NONE */
  uint32_t *next_offset, *next;
  uint32_t *n_before;
} pl_step_graph;

/* `ticks`, `claims` and `frees` stay the caller's; the arcs are indexed in `arena`. False: no memory. O(n + arcs). */
bool pl_step_graph_take(uint32_t n, pl_ticks *ticks, uint32_t *claims, uint32_t *frees, uint32_t n_links,
                        const pl_step_arc *arcs, uint32_t n_arcs, pl_arena *arena, pl_step_graph *graph);

/* Finish dates, and per task what it began after (PL_NONE: nothing; `cause` may be NULL). Returns the makespan,
 * PL_TICKS_NEVER if the tasks wait for each other in a circle or for a link that is never given back, -1 without
 * memory. Scratch in `arena`, given back. O(n + arcs), with links times a logarithm. */
pl_ticks pl_step_graph_play(const pl_step_graph *graph, pl_arena *arena, pl_ticks *finish, uint32_t *cause);

/* Tasks from the first to the last one that determine the makespan; returns how many. */
uint32_t pl_step_graph_path(const pl_step_graph *graph, const pl_ticks *finish, const uint32_t *cause, uint32_t *path);

#endif
