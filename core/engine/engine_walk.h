/* The walkers of a segment that may be disturbed: where each of its devices is, what it has left behind, how fast it
 * is. When anything changes is engine_overlap.c's business, which alone includes this.
 *
 * Per device a walker follows the segment on the compute stream, but only while something disturbs it: otherwise one
 * event stands for the whole rest of the segment, and the parts that it has passed are caught up with when a gradient
 * task or a rival starts or the segment ends. A segment of many parts and the same parts as tasks of their own see the
 * same sequence of roundings, and end on the same ticks.
 *
 * The members of a joint segment have a walker each, for the overlap factor slows them one by one; at a communication
 * part the first to come wait for the last.
 */
#ifndef PL_CORE_ENGINE_WALK_H
#define PL_CORE_ENGINE_WALK_H

#include <math.h>

#include "core/engine/engine_state.h"

static inline pl_walker *pl_walker_of(const pl_engine *engine, const pl_task *record, uint32_t member) {
  return &engine->overlap->walkers[engine->graph->streams[pl_task_streams(engine, record)[member]].device];
}

/* The same where that of the first member is known: most segments have no other. */
static inline pl_walker *pl_walker_at(const pl_engine *engine, const pl_task *record, pl_walker *first,
                                      uint32_t member) {
  return member == 0 ? first : pl_walker_of(engine, record, member);
}

static inline uint32_t pl_walker_device(const pl_engine *engine, const pl_walker *walker) {
  return (uint32_t)(walker - engine->overlap->walkers);
}

static inline pl_ticks pl_walk_date_after(pl_ticks now, double ticks) {
  return ticks >= (double)PL_TICKS_MAX ? PL_TICKS_MAX : pl_later(now, (pl_ticks)llrint(ticks));
}

/* From `now` on the current part takes `slowdown` times as long. */
static inline void pl_walk_change_speed(pl_walker *walker, pl_ticks now, double slowdown) {
  if (slowdown == walker->slowdown) return;
  double left = walker->remaining - (double)(now - walker->updated) / walker->slowdown;
  walker->remaining = left > 0 ? left : 0;
  walker->updated = now;
  walker->slowdown = slowdown;
  walker->part_finish = pl_walk_date_after(now, walker->remaining * slowdown);
}

/* All members are in the same part, and get out of it at once. */
static inline bool pl_walk_is_in_step(const pl_engine *engine, const pl_task *record, const pl_walker *first) {
  for (uint32_t member = 1; member < record->n_streams; member++) {
    const pl_walker *walker = pl_walker_of(engine, record, member);
    if (walker->part != first->part || walker->part_finish != first->part_finish) return false;
  }
  return true;
}

/* Puts all members to the beginning of the segment. */
void pl_walk_begin(pl_engine *engine, uint32_t task);
/* Leaves every part that a member has ended by `now`, until none gets further. False: the segment is over. */
bool pl_walk_to(pl_engine *engine, const pl_task *record, pl_walker *first, pl_ticks now);
/* The same of one member in a run, whose parts end without events: those that one would have come for are counted. */
void pl_walk_run(pl_engine *engine, const pl_task *record, pl_walker *walker, pl_ticks now);

#endif
