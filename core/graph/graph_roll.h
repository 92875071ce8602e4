/* Rolled graphs: the graph of long lists of steps, made from that of short ones.
 *
 * A graph made from lists of steps that recur (core/cluster/lanes.h) has the tasks and edges of that of shorter lists,
 * with periods put into every phase of every lane. What is put in need not be made, nor kept: its tasks are those of
 * one period of the short graph, shifted. So a rolled graph keeps the short graph's rows and of its lanes which period
 * comes how often, and nothing of a task; streams, durations, memory are the row's, and successors are told by their
 * distance from the task. That distance is the same for all tasks of a row, or, where the lanes of the two make unlike
 * numbers of tasks in a period, grows by the same number from each to the next.
 *
 *     lane of the short graph   a b [c d c d c d] e f          a phase of three periods
 *     with two periods more     a b  c d c d c d c d c d  e f
 *     rows                      a b  c d C D C D C D c d  e f  C and D come three times, the others once
 *
 * Tasks have the ids that the long lists would have given them, so a run of the rolled graph is that of the other, to
 * the bit. Only the names of the microbatches stay those of the short lists.
 */
#ifndef PL_CORE_GRAPH_ROLL_H
#define PL_CORE_GRAPH_ROLL_H

#include "core/cluster/lanes.h"
#include "core/graph/graph.h"

/* The graph with `n_more` periods more in each phase of each of its lanes; memory from `arena`, and much of it shared
 * with `graph`. O(graph). False: no memory (arena->failed), or the lists are too short to
 * show what a period is: every phase needs three, of which the second and the third must be alike in all that counts,
 * and no edge may lead from what comes before a phase to what comes behind it. */
bool pl_graph_roll(const pl_graph *graph, const pl_lanes *lanes, uint64_t n_more, pl_arena *arena, pl_graph *rolled);

#endif
