/* Several graphs over the same links as one: jobs beside each other on a fabric, each for as many iterations as wanted.
 *
 * The tasks of an iteration start after those of the one before it have all ended; those of the first after a delay.
 * Devices, streams, segments, names and specs are put side by side, so that nothing but the links is shared. */
#ifndef PL_CORE_GRAPH_JOIN_H
#define PL_CORE_GRAPH_JOIN_H

#include "core/graph/graph.h"

typedef struct pl_joined_job {
  const pl_graph *graph;
  const uint32_t *devices; /* per device that the graph names: its index in the cluster of all */
  pl_ticks offset;
  uint32_t n_iterations;
  /* Filled by pl_graph_join. Tasks of iteration i: first_task + i * (tasks + 1), one that starts it in front of those
   * of the graph. */
  uint32_t first_task, first_device;
} pl_joined_job;

/* The graphs have one policy, equal links and no rivals. Memory from `arena`; names and links stay those of the graphs.
 */
pl_code pl_graph_join(pl_joined_job *jobs, uint32_t n_jobs, pl_arena *arena, pl_graph *joined, pl_error *error);

/* When the iteration began and when its last task ended, from the dates of the joined run. */
void pl_joined_span(const pl_joined_job *job, uint32_t iteration, const pl_ticks *finish, pl_ticks *begin,
                    pl_ticks *end);

#endif
