/* Lanes: which list of steps made the tasks of a graph, and which of these steps recur.
 *
 * Whoever makes a graph from lists of steps, list after list, may say so: every task belongs to a lane and to one of
 * its steps, and the tasks of a step have consecutive ids. In a phase of a lane the steps recur: what step s + period
 * makes is what step s made, one period later. All lanes have the same phases and the same periods, so that a graph of
 * longer lists has the same tasks and edges with periods put into every phase of every lane.
 *
 * That is what lets the engine pass over periods (core/engine/engine.h, leaps): a task that is there in one period is
 * told from the one of the next by its lane, its step and its place among the tasks of the step.
 */
#ifndef PL_CORE_LANES_H
#define PL_CORE_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"

enum { PL_LANE_PHASES = 2 };

typedef struct pl_lane_phase {
  uint32_t from, to; /* steps; none where from == to */
} pl_lane_phase;

typedef struct pl_lane {
  uint32_t first;   /* entry of its first step in first_task */
  uint32_t n_steps; /* the last of them is what follows the list */
  pl_lane_phase phases[PL_LANE_PHASES];
} pl_lane;

typedef struct pl_lanes {
  const pl_lane *lanes; /* in the order of their tasks */
  uint32_t n_lanes;
  const uint32_t *first_task; /* per step of each lane its first task; one entry more at the end: the number of tasks */
  int n_phases;
  uint32_t period[PL_LANE_PHASES]; /* in steps */
  /* Where tasks are, for those who ask often (pl_lanes_list_places); NULL: searched for. Entry of first_task by task,
   * lane by entry. */
  const uint32_t *entry_of, *lane_of;
} pl_lanes;

/* Where a task is. */
typedef struct pl_lane_place {
  uint32_t lane, step, offset;
} pl_lane_place;

/* Lists where each task is. False: no memory. */
bool pl_lanes_list_places(pl_lanes *lanes, pl_arena *arena);
/* O(log lanes + log steps), or O(1) where places are listed. */
pl_lane_place pl_lanes_place(const pl_lanes *lanes, uint32_t task);

typedef struct pl_lane_tasks {
  uint32_t first, end;
} pl_lane_tasks;

static inline pl_lane_tasks pl_lanes_tasks(const pl_lanes *lanes, uint32_t lane) {
  const pl_lane *own = &lanes->lanes[lane];
  return (pl_lane_tasks){lanes->first_task[own->first], lanes->first_task[own->first + own->n_steps]};
}

static inline uint32_t pl_lanes_step_size(const pl_lanes *lanes, uint32_t lane, uint32_t step) {
  const uint32_t *first = &lanes->first_task[lanes->lanes[lane].first + step];
  return first[1] - first[0];
}

/* The task at the same place `steps` later; PL_NONE when one of the two steps is not in the phase or they are not of
 * one size. */
uint32_t pl_lanes_later(const pl_lanes *lanes, uint32_t task, int phase, uint32_t steps);

#endif
