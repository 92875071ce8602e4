/* Islands: lanes that, while they recur, have nothing to do with those of other islands. Part of the engine's own
 * state.
 *
 * Replicas of unlike pace (uneven batches, other routes to their nodes) meet only when gradients are reduced. Their
 * states never come back together, but each of them does by itself. Two lanes are of one island if, in their phases,
 * one's task waits for the other's, runs on a device of the other, or shares a link with it on the network.
 */
#ifndef PL_CORE_ENGINE_ISLANDS_H
#define PL_CORE_ENGINE_ISLANDS_H

#include "core/engine/engine.h"

enum { PL_ISLANDS_MAX = 64 };

/* What the lanes have to themselves. */
typedef struct pl_islands {
  uint32_t n;
  uint8_t *of_lane;
  uint8_t *of_task;   /* NULL where there is one island */
  uint8_t *of_device; /* that computes in a phase; else 0 */
  uint8_t *of_link;   /* PL_ISLANDS_MAX: of none; NULL where there is one island */
} pl_islands;

/* One island where streams are not in order, or where there are more than PL_ISLANDS_MAX. False: no memory. At most
 * O(tasks + edges), and much less where all lanes meet soon. */
bool pl_islands_find(const pl_graph *graph, const pl_lanes *lanes, pl_arena *arena, pl_islands *islands);

/* `task` runs on a device of the island, or over one of its links. */
bool pl_islands_touch(const pl_islands *islands, const pl_graph *graph, uint32_t task, uint32_t island);

#endif
