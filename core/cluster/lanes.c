/* See core/cluster/lanes.h. */
#include "core/cluster/lanes.h"

#include "core/cluster/cluster.h"

/* The last of ascending `firsts` that is not above `task`; firsts[0] is not. */
static uint32_t find_entry(const uint32_t *firsts, uint32_t n, uint32_t task) {
  uint32_t low = 0, high = n;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (firsts[middle] <= task)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static uint32_t find_lane(const pl_lanes *lanes, uint32_t task) {
  uint32_t low = 0, high = lanes->n_lanes;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (lanes->first_task[lanes->lanes[middle].first] <= task)
      low = middle;
    else
      high = middle;
  }
  return low;
}

bool pl_lanes_list_places(pl_lanes *lanes, pl_arena *arena) {
  const pl_lane *last = &lanes->lanes[lanes->n_lanes - 1];
  uint32_t n_entries = last->first + last->n_steps;
  uint32_t *lane_of = pl_arena_take(arena, n_entries * sizeof *lane_of, _Alignof(uint32_t));
  uint32_t *entry_of = pl_arena_take(arena, lanes->first_task[n_entries] * sizeof *entry_of, _Alignof(uint32_t));
  if (lane_of == NULL || entry_of == NULL) return false;
  for (uint32_t lane = 0; lane < lanes->n_lanes; lane++)
    for (uint32_t step = 0; step < lanes->lanes[lane].n_steps; step++)
      lane_of[lanes->lanes[lane].first + step] = lane;
  for (uint32_t entry = 0; entry < n_entries; entry++)
    for (uint32_t task = lanes->first_task[entry]; task < lanes->first_task[entry + 1]; task++)
      entry_of[task] = entry;
  lanes->entry_of = entry_of;
  lanes->lane_of = lane_of;
  return true;
}

static pl_lane_place listed_place(const pl_lanes *lanes, uint32_t task) {
  uint32_t entry = lanes->entry_of[task], lane = lanes->lane_of[entry];
  return (pl_lane_place){
      .lane = lane, .step = entry - lanes->lanes[lane].first, .offset = task - lanes->first_task[entry]};
}

pl_lane_place pl_lanes_place(const pl_lanes *lanes, uint32_t task) {
  if (lanes->entry_of != NULL) return listed_place(lanes, task);
  uint32_t lane = find_lane(lanes, task);
  const uint32_t *firsts = &lanes->first_task[lanes->lanes[lane].first];
  uint32_t step = find_entry(firsts, lanes->lanes[lane].n_steps, task);
  return (pl_lane_place){.lane = lane, .step = step, .offset = task - firsts[step]};
}

uint32_t pl_lanes_later(const pl_lanes *lanes, uint32_t task, int phase, uint32_t steps) {
  pl_lane_place place = pl_lanes_place(lanes, task);
  const pl_lane_phase *own = &lanes->lanes[place.lane].phases[phase];
  if (place.step < own->from || place.step >= own->to || own->to - place.step <= steps) return PL_NONE;
  if (pl_lanes_step_size(lanes, place.lane, place.step) != pl_lanes_step_size(lanes, place.lane, place.step + steps))
    return PL_NONE;
  return lanes->first_task[lanes->lanes[place.lane].first + place.step + steps] + place.offset;
}
