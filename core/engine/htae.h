/* HTAE, Proteus's hierarchical topology-aware executor (Duan et al. 2023, section VI): another way to run a graph, for
 * the comparison of its rules with the engine's (their figure 9).
 *
 * There is no event queue. Every device has three queues, of computing, of feature and of gradient communication; a
 * task joins the queues of all its members when what it waits for has run. In a round each device runs the first task
 * of its computing queue, then every communication that is first in the queues of all its members runs. What runs
 * starts when its queues are free and its predecessors are over, and its cost is settled there and then:
 *
 *   sharing   among communications of one kind (feature, gradient) that start in one round each link is divided by how
 *             many cross it; a task takes the worst of its links. What overlaps with the last task of the other kind on
 *             one of its links goes at half the rate for as long as it overlaps.
 *   overlap   a computing task that starts while a gradient communication of its device is under way takes
 *             1 + overlap_compute times as long, all of it; a gradient communication that starts while one of its
 * members computes takes 1 + overlap_communication times as long.
 *
 * As in its published code, communications of different rounds do not share although they overlap, and nothing is
 * corrected afterwards: links may carry more than they can. (There, sharing is counted by node and for NICs alone; here
 * by link, as the paper has it.) */
#ifndef PL_CORE_HTAE_H
#define PL_CORE_HTAE_H

#include "core/engine/engine.h"

typedef struct pl_htae_options {
  bool sharing, overlap;
} pl_htae_options;

/* `graph`: of ready streams, no joint or disturbed segments. Of the result: makespan, start, finish, peaks, spent,
 * idle, events, digest. A moment is filed under what the device computes, else its feature, else its gradient
 * communication, else it is idle. Memory from `arena`. */
pl_code pl_htae_run(const pl_graph *graph, const pl_htae_options *options, pl_arena *arena, pl_engine_result *result,
                    pl_error *error);

#endif
