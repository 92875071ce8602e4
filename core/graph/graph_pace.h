/* A graph whose devices compute at paces of their own: each computing part takes its ticks times the factor of the
 * device that runs it, rounded to a tick. Communication, delays and what a device waits for (its host) keep their
 * times.
 *
 * Made once for a frozen graph and set as often as wanted: a set costs O(parts + tasks) and builds nothing. Rejected: a
 * factor in the engine, which would walk the parts of every segment in every run.
 */
#ifndef PL_CORE_GRAPH_PACE_H
#define PL_CORE_GRAPH_PACE_H

#include "core/graph/graph.h"

/* Segments keep their indices, and so do their parts: the copies of segments that several kinds of devices run come
 * behind. */
typedef struct pl_graph_pace {
  pl_graph graph;          /* what is run: the base's, with tasks, segments and parts of its own */
  const pl_ticks *ticks;   /* per part of `graph`, at factor 1 */
  const uint32_t *part_of; /* per part of `graph`: the base's that it is or is a copy of */
  const uint32_t *pacer;   /* per segment of `graph`: the graph device that runs it; PL_NONE: nobody does */
  pl_task *own_tasks;      /* what `graph` has, to write to */
  pl_segment *own_segments;
  pl_part *own_parts;
} pl_graph_pace;

/* At factor 1 everywhere; `base` must outlive it. `kind` per graph device: devices of one kind always have the same
 * factor, and need no copies of what they share; NULL: each is of its own. A joint segment goes by the device of its
 * first stream. Memory from `arena`. */
pl_code pl_graph_pace_take(const pl_graph *base, const uint32_t *kind, pl_arena *arena, pl_graph_pace *pace,
                           pl_error *error);
/* `factor` > 0 per graph device. */
void pl_graph_pace_set(pl_graph_pace *pace, const double *factor);

#endif
