/* How the memory of a run's devices changes over time, for timelines and drawings: the effects of tasks
 * (pl_memory_effect) put in order of time. */
#ifndef PL_CORE_TIMELINE_MEMORY_H
#define PL_CORE_TIMELINE_MEMORY_H

#include "core/engine/engine.h"
#include "core/graph/graph.h"

typedef struct pl_memory_step {
  pl_ticks time;
  int64_t bytes;         /* by which the device's balance changes; what it holds throughout is not in it */
  uint32_t device, task; /* of the graph */
} pl_memory_step;

/* The steps by device and time; at one time what is given back comes before what is taken. O(tasks log tasks). The
 * caller frees. NULL: there is none, or no memory to sort them in (a timeline has no failure but its stream's). */
pl_memory_step *pl_memory_steps_list(const pl_graph *graph, const pl_engine_result *result, size_t *n_steps);

#endif
