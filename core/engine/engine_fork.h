/* Forks: a run that begins where another one, of a graph with the same heads (core/graph/graph_heads.h), was.
 *
 * Strategies that differ in what becomes of their gradients alone play the same run up to the last backward pass. So a
 * run keeps its state at the last tick at which nothing of a tail had been touched, and a run of another graph whose
 * heads are alike goes on from there: dates of what has started, what is under way on the streams and on the network,
 * what is disturbed, and the sums so far. What such a run comes to is what it would have come to from the beginning,
 * to the bit; only memory held from start to end may differ between the two, and is counted as that of the second.
 *
 * Not with lanes that may drift, with ready streams, parts that are recorded, gradients under way, or where a state
 * that comes back is still being looked for (core/engine/engine_watch.h): then nothing is kept.
 */
#ifndef PL_CORE_ENGINE_FORK_H
#define PL_CORE_ENGINE_FORK_H

#include "core/engine/engine.h"
#include "core/graph/graph_heads.h"

/* NULL: no memory. `graph` and `heads` must stay as long as the fork is used; links are copied. */
pl_engine_fork *pl_engine_fork_take(const pl_graph *graph, const pl_graph_heads *heads, pl_arena *arena);
/* Whether a run has kept its state here. */
bool pl_engine_fork_is_kept(const pl_engine_fork *fork);

#endif
