/* See core/graph/run_state.h. */
#include "core/graph/run_state.h"

#include "core/cluster/cluster.h"

enum { FIRST_WORDS = 256 };

bool pl_run_state_grow(pl_run_state *state) {
  uint32_t capacity = state->capacity == 0 ? FIRST_WORDS : 2 * state->capacity;
  uint64_t *bigger = capacity <= state->capacity ? NULL : pl_arena_take(state->arena, capacity * sizeof *bigger, 8);
  if (bigger == NULL) {
    state->outside = true;
    return false;
  }
  if (state->n > 0) memcpy(bigger, state->words, state->n * sizeof *bigger);
  state->words = bigger;
  state->capacity = capacity;
  return true;
}

void pl_run_state_put_task(pl_run_state *state, pl_state_field field, uint32_t task) {
  if (task == PL_NONE) {
    pl_run_state_put(state, field, UINT64_MAX);
    return;
  }
  pl_lane_place place = pl_lanes_place(state->lanes, task);
  const pl_lane_phase *own = &state->lanes->lanes[place.lane].phases[state->phase];
  state->outside |= place.step < own->from || place.step >= own->to;
  pl_run_state_put(state, field, (uint64_t)place.lane << 32 | (uint32_t)(place.step - state->shift));
  pl_run_state_put(state, field, place.offset);
}
