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

pl_lane_place pl_lanes_place(const pl_lanes *lanes, uint32_t task) {
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
