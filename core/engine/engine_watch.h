/* What the engine looks out for when it is told of lanes (core/cluster/lanes.h): that the state of an island comes
 * back. Part of the engine's own state: engine_watch.c sees that it does while the run goes on, engine_leap.c asks
 * whether what has been seen allows to pass over periods, and moves the island past them.
 *
 * Marks are the steps of one lane, a period apart. When the first task of such a step has ended, the state of the
 * lane's island is written out once the tick is drained; equal words at two marks of a phase are a recurrence. The
 * first one that allows it is leapt over there and then: all that is under way in the island is put off by the time of
 * the periods that are left out, and the run goes on. Islands have nothing to do with each other meanwhile, so each
 * leaps when it can; where they meet afterwards, dates are those of the longer run.
 */
#ifndef PL_CORE_ENGINE_WATCH_H
#define PL_CORE_ENGINE_WATCH_H

#include "core/base/packed.h"
#include "core/engine/engine.h"
#include "core/engine/engine_islands.h"
#include "core/graph/run_state.h"

/* Marks that are kept: a longer cycle is not found. */
enum { PL_WATCH_MARKS = 256 };

/* Words are packed: a state of 1,300 words and the sums of 64 devices take 9 kB, where they were 37. */
typedef struct pl_watch_mark {
  uint32_t number; /* of the phase, from 0; PL_NONE: none that can be compared */
  uint32_t noted;  /* the number of the mark of which the sums are */
  pl_ticks now;
  uint64_t digest;
  pl_packed state; /* core/graph/run_state.h */
  pl_packed sums;  /* what has added up by then: see engine_watch.c */
  pl_packed peak;  /* bytes held since the mark before, by device of the island */
} pl_watch_mark;

/* What was leapt over: the state at `to` was that of `from`, and what came after `to` was put off. */
typedef struct pl_island_leap {
  pl_ticks from, to, put_off;
  uint64_t times;
} pl_island_leap;

typedef struct pl_watched {
  uint32_t *lanes, n_lanes, *devices, n_devices;
  uint32_t reference; /* the lane whose steps are marks */
  int phase;
  uint32_t next;        /* mark that is to come ... */
  uint32_t awaited;     /* ... when this task ends; PL_NONE: none is */
  pl_watch_mark *marks; /* ring of PL_WATCH_MARKS, or as many as there can be */
  uint32_t n_marks;
  int64_t *peak;                /* per device, until the last mark */
  uint32_t *touched, n_touched; /* tasks of which some predecessors have ended, and some that have started since */
  uint64_t n_events;
  uint32_t distance[PL_LANE_PHASES]; /* marks after which the state came back; 0: it did not */
  pl_island_leap leaps[PL_LANE_PHASES];
  uint32_t n_leaps; /* as many as phases were leapt in, from the first one on */
  uint32_t n_began; /* so many of its lanes have begun the last period of their first phase */
} pl_watched;

typedef struct pl_watch {
  pl_lanes lanes;
  pl_islands islands;
  pl_watched *watched;                 /* per island */
  pl_run_state state;                  /* of the mark that is noted */
  uint64_t *sums, *sums_before, *peak; /* room for those of a mark of any island */
  uint32_t due[PL_ISLANDS_MAX], n_due; /* islands whose awaited task has ended in this tick */
  bool is_missed;                      /* an island has come through a phase and has not leapt */
} pl_watch;

static inline uint32_t pl_watch_island(const pl_watch *watch, uint32_t task) {
  return watch->islands.of_task == NULL ? 0 : watch->islands.of_task[task];
}

/* A task of which some predecessors have ended. */
static inline void pl_watch_note_touched(pl_watch *watch, uint32_t task) {
  pl_watched *own = &watch->watched[pl_watch_island(watch, task)];
  own->touched[own->n_touched++] = task;
}

/* An event of `task`; its last one if it ends. */
static inline void pl_watch_note_event(pl_watch *watch, uint32_t task, bool ends) {
  uint32_t island = pl_watch_island(watch, task);
  pl_watched *own = &watch->watched[island];
  own->n_events++;
  if (ends && task == own->awaited) watch->due[watch->n_due++] = island;
}

#endif
