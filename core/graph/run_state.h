/* The state of a run at one instant, written out as words so that two instants can be compared: relative to the tick
 * they are written at, and to the step that the lanes (core/cluster/lanes.h) have got to. Two instants with the same
 * words have the same future, as long as the steps ahead recur.
 *
 * Only what decides the future is in it. Dates are differences to now, doubles their bits, tasks their places with the
 * step counted from the mark. What the engine or the network derives from this (the order of its heaps, slots, the
 * lists of links) is not, nor is anything that only adds up (balances, accounts, counts of events).
 */
#ifndef PL_CORE_RUN_STATE_H
#define PL_CORE_RUN_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/ticks.h"
#include "core/cluster/lanes.h"

/* X(name): what a word says. The names are for tests, which leave out one after another. */
/* clang-format off */
#define PL_STATE_FIELDS(X) \
  X(WAITING)          /* a task of which some predecessors have ended */ \
  X(PENDING)          /* how many have not */ \
  X(READY)            /* a task whose streams are not free */ \
  X(TIMER)            /* a task that has a date */ \
  X(TIMER_DATE) \
  X(FLOW)             /* a transfer under way */ \
  X(FLOW_PHASE) \
  X(FLOW_DATE)        /* of its next event */ \
  X(FLOW_REST)        /* bytes left ... */ \
  X(FLOW_SINCE)       /* ... at this tick ... */ \
  X(FLOW_PACE)        /* ... and what it moves per second since */ \
  X(FLOW_SPEED)       /* share of its rate that it may use */ \
  X(WALKER)           /* what runs on a device whose segments can be disturbed */ \
  X(WALKER_GRADIENT)  /* what runs on its gradient streams */ \
  X(WALKER_RIVALS) \
  X(WALKER_FLAGS) \
  X(WALKER_PART) \
  X(WALKER_START)     /* of the part */ \
  X(WALKER_FINISH) \
  X(WALKER_KEY)       /* date that the loop was told */ \
  X(WALKER_UPDATED) \
  X(WALKER_REMAINING) \
  X(WALKER_SLOWDOWN) \
  X(WALKER_ARRIVALS)  /* members of a joint segment that wait for others */ \
  X(GRADIENT_SLOWING) \
  X(GRADIENT_SPEED)
/* clang-format on */

typedef enum pl_state_field {
#define PL_STATE_FIELD(name) PL_STATE_##name,
  PL_STATE_FIELDS(PL_STATE_FIELD)
#undef PL_STATE_FIELD
      PL_STATE_N_FIELDS
} pl_state_field;

typedef struct pl_run_state {
  const pl_lanes *lanes;
  /* Of which tasks it is: those of `island`; all where island_of is NULL (core/engine/engine_islands.h). */
  const uint8_t *island_of;
  uint32_t island;
  int phase;
  uint32_t shift; /* steps that every lane is further than at the phase's first mark */
  pl_ticks now;
  uint64_t left_out; /* bit per field: not written (tests) */
  pl_arena *arena;
  uint64_t *words;
  uint32_t n, capacity;
  bool outside; /* a task is not in the phase, or something cannot be compared: the state is of no use */
} pl_run_state;

static inline bool pl_run_state_is_of(const pl_run_state *state, uint32_t task) {
  return state->island_of == NULL || state->island_of[task] == state->island;
}

/* Room for one word more. False: no memory, said by `outside`. */
bool pl_run_state_grow(pl_run_state *state);

static inline void pl_run_state_put(pl_run_state *state, pl_state_field field, uint64_t word) {
  if (state->left_out >> field & 1) return;
  if (state->n == state->capacity && !pl_run_state_grow(state)) return;
  state->words[state->n++] = word;
}

static inline void pl_run_state_put_double(pl_run_state *state, pl_state_field field, double value) {
  uint64_t word;
  memcpy(&word, &value, sizeof word);
  pl_run_state_put(state, field, word);
}

/* PL_TICKS_NEVER and PL_TICKS_MAX stay what they are. */
static inline void pl_run_state_put_date(pl_run_state *state, pl_state_field field, pl_ticks date) {
  pl_run_state_put(state, field, (uint64_t)(date >= PL_TICKS_MAX ? date : date - state->now));
}

/* PL_NONE stays what it is. */
void pl_run_state_put_task(pl_run_state *state, pl_state_field field, uint32_t task);

#endif
