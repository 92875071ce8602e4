/* All that what an allocator and its owner do next depends on, as numbers: two equal ones mean that the same requests
 * have the same effect from there on. Internal to workloads/memory. */
#ifndef PL_WORKLOADS_MEMORY_STATE_H
#define PL_WORKLOADS_MEMORY_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/base/arena.h"

typedef struct pl_memory_state {
  int64_t *words;
  uint32_t n, room;
  bool is_known; /* false: it is equal to none; nothing was written, not all of it could be, or the arena had no memory
                  */
} pl_memory_state;

static inline void pl_memory_state_add(pl_memory_state *state, pl_arena *from, int64_t word) {
  int64_t *words = (int64_t *)pl_arena_grown(from, state->words, state->n, 1, sizeof *words, &state->room);
  if (words == NULL) state->is_known = false;
  if (words == NULL) return;
  state->words = words;
  words[state->n++] = word;
}

static inline bool pl_memory_states_equal(const pl_memory_state *a, const pl_memory_state *b) {
  return a->is_known && b->is_known && a->n == b->n && memcmp(a->words, b->words, a->n * sizeof *a->words) == 0;
}

#endif
