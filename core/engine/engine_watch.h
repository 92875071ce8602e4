/* What the engine looks out for when it is told of lanes (core/cluster/lanes.h): that its state comes back. Part of the
 * engine's own state: engine_watch.c sees that it does while the run goes on, engine_leap.c asks afterwards whether
 * what has been seen allows to pass over periods, and what they add.
 *
 * Marks are the steps of one lane, a period apart. When the first task of such a step has ended, the state of the run
 * is written out once the tick is drained; equal words at two marks of a phase are a recurrence. Of the recurrences of
 * a phase the last one counts: the longer the run, the more has settled.
 */
#ifndef PL_CORE_ENGINE_WATCH_H
#define PL_CORE_ENGINE_WATCH_H

#include "core/engine/engine.h"
#include "core/graph/run_state.h"

/* Marks that are kept: a longer cycle is not found. */
enum { PL_WATCH_MARKS = 256 };

/* What has added up by a mark. Arrays per device, or per device and category. */
typedef struct pl_watch_sums {
  uint64_t n_events;
  pl_ticks *extra, *waiting; /* of the overlap factor; NULL without */
  int64_t *bytes;            /* held */
  int64_t *peak;             /* since the mark before */
  int64_t *peak_before;      /* since the phase began, or the recurrence of the phase before */
} pl_watch_sums;

typedef struct pl_watch_mark {
  uint32_t number; /* of the phase, from 0; PL_NONE: none that can be compared */
  uint32_t noted;  /* the number of the mark of which the sums are */
  pl_ticks now;
  uint64_t digest;
  pl_run_state state;
  pl_watch_sums sums;
} pl_watch_mark;

/* The state at `to` is that of `from`. The sums: what the time between adds. */
typedef struct pl_recurrence {
  uint32_t distance; /* marks; 0: none was found */
  pl_ticks from, to;
  pl_watch_sums sums; /* peak: of the time between; peak_before: of what came before; bytes: how much more is held */
} pl_recurrence;

typedef struct pl_watch {
  pl_lanes lanes;
  uint32_t reference; /* the lane whose steps are marks */
  int phase;
  uint32_t next;                     /* mark that is to come */
  pl_watch_mark *marks;              /* ring of PL_WATCH_MARKS */
  int64_t *peak_before, *peak_after; /* since the phase began; since its last recurrence */
  pl_recurrence found[PL_LANE_PHASES];
  uint32_t *touched, n_touched; /* tasks of which some predecessors have ended, and some that have started since */
} pl_watch;

#endif
