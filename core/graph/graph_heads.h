/* Heads of lanes: what graphs that differ from some step of each list on have in common.
 *
 * A graph made from lists of steps (core/cluster/lanes.h) has of each list a head, the tasks before a step that the
 * caller names, and a tail. Two graphs whose heads are alike, task by task and edge by edge, run alike until the first
 * task of a tail could start: the run of one can begin where that of the other was then (core/engine/engine_fork.h).
 * Tasks of heads correspond by lane and place in it; their ids, and those of segments, specs and streams, need not be
 * the same.
 */
#ifndef PL_CORE_GRAPH_HEADS_H
#define PL_CORE_GRAPH_HEADS_H

#include "core/cluster/lanes.h"
#include "core/graph/graph.h"

/* Tasks [first, end) are the head, [end, behind) the tail; their rows likewise. */
typedef struct pl_lane_head {
  uint32_t first, end, behind;
  uint32_t first_row, end_row, behind_row;
} pl_lane_head;

typedef struct pl_graph_heads {
  pl_lane_head *lanes;
  uint32_t n_lanes;
  uint32_t *lane_of; /* per row */
  /* Per row: a task of it has a successor in a tail, or one without duration that has. Once none of these has started,
   * nothing of a tail knows that the run has begun. */
  uint8_t *is_edge;
} pl_graph_heads;

/* `tails`: per lane the step with which its tail begins. `lanes` are those of the graph, or of the short one that a
 * rolled graph was made from. Memory from `arena`; false: none, or tails that are rolled. O(graph's rows). */
bool pl_graph_heads_take(const pl_graph *graph, const pl_lanes *lanes, const uint32_t *tails, pl_arena *arena,
                         pl_graph_heads *heads);

/* The task of `to` that `task`, of a head or a tail of `from`, corresponds to by its place; PL_NONE stays what it is.
 */
static inline uint32_t pl_graph_heads_moved(const pl_graph *graph, const pl_graph_heads *from, const pl_graph_heads *to,
                                            uint32_t task) {
  if (task == PL_NONE) return PL_NONE;
  uint32_t lane = from->lane_of[pl_graph_row(graph, task)];
  return task - from->lanes[lane].first + to->lanes[lane].first;
}

/* A graph, its heads, and the links of its transfers, which may not outlive the graph as the rest does. */
typedef struct pl_headed_graph {
  const pl_graph *graph;
  const pl_graph_heads *heads;
  const double *link_capacity_Bps;
  const uint8_t *link_policy;
} pl_headed_graph;

/* Whether the heads of both graphs run alike: tasks, their segments, specs, streams and effects on memory, and edges
 * among them; devices but for what they hold from the start; links. O(rows and edges of heads, parts, uses); scratch
 * from `arena`. */
bool pl_graph_heads_alike(const pl_headed_graph *a, const pl_headed_graph *b, pl_arena *arena);

#endif
