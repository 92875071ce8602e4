/* See workloads/memory/replay_recurrence.h. */
#include "workloads/memory/replay_recurrence.h"

static bool has_gathered(const pl_replay *replay) {
  for (int32_t block = 0; replay->units != NULL && block < pl_model_n_blocks(replay->program->model); block++)
    for (int experts = 0; experts <= 1; experts++) {
      const pl_gathered_unit *unit = &replay->units[block][experts];
      if (unit->n_came > 0) return true;
      for (uint32_t i = 0; unit->copied != NULL && i < pl_replay_block(replay, block)->n_tensors; i++)
        if (unit->copied[i] != PL_NONE) return true;
    }
  return false;
}

static bool name(pl_replay_recurrence *own, pl_replay *replay, const uint32_t *held, uint32_t n) {
  uint32_t *named =
      (uint32_t *)pl_arena_grown(replay->arena, own->named, own->n_named, n, sizeof *named, &own->named_room);
  if (named == NULL) return false;
  own->named = named;
  if (n > 0) memcpy(named + own->n_named, held, n * sizeof *held);
  own->n_named += n;
  return true;
}

/* All that is there between passes and may go. */
static bool name_all(pl_replay_recurrence *own, pl_replay *replay) {
  const pl_replay_list *const lists[] = {&replay->of_pass, &replay->pending[0], &replay->pending[1], &replay->of_step};
  const uint32_t held[] = {replay->gathered[0].held, replay->gathered[1].held, replay->last_come, replay->last_reduced};
  own->n_named = 0;
  if (!name(own, replay, held, 4)) return false;
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    const uint32_t end = PL_NONE;
    if (!name(own, replay, lists[i]->held, lists[i]->n) || !name(own, replay, &end, 1)) return false;
  }
  return true;
}

static void write_state(pl_replay_recurrence *own, pl_replay *replay, pl_memory_state *state) {
  state->is_known = false;
  if (replay->n_ahead > 0 || replay->failed || has_gathered(replay) || !name_all(own, replay)) return;
  pl_caching_allocator_state(&replay->allocator, own->named, own->n_named, state);
}

bool pl_replay_recurs(pl_replay_recurrence *own, pl_replay *replay, int32_t iteration) {
  own->iteration = iteration;
  own->behind[0].is_known = own->behind[1].is_known = false;
  own->behind_first[iteration % 2].is_known = false;
  write_state(own, replay, &own->at_beginning[iteration % 2]);
  return iteration > 1 && pl_memory_states_equal(&own->at_beginning[0], &own->at_beginning[1]);
}

bool pl_replay_settles(pl_replay_recurrence *own, pl_replay *replay, int32_t microbatch, bool *whole) {
  *whole = false;
  if (microbatch == 0) {
    write_state(own, replay, &own->behind_first[own->iteration % 2]);
    *whole = own->iteration > 1 && pl_memory_states_equal(&own->behind_first[0], &own->behind_first[1]);
    if (*whole) return true;
  }
  write_state(own, replay, &own->behind[microbatch % 2]);
  return microbatch > 0 && pl_memory_states_equal(&own->behind[0], &own->behind[1]);
}
