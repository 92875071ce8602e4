/* The accounts of a run that goes on, as those see it who keep one and go on from it (core/engine/engine_fork.h). Part
 * of the engine's own state.
 */
#ifndef PL_CORE_ENGINE_RUNNING_H
#define PL_CORE_ENGINE_RUNNING_H

#include "core/engine/engine_account.h"

typedef struct pl_ended {
  uint32_t task, device;
} pl_ended;

typedef struct pl_running_account {
  pl_account account;
  pl_charges charges;
  pl_ticks *until; /* per device: that it is accounted */
  uint32_t *room;  /* per stream: of its run */
  pl_ended *ended; /* since the clock moved: tasks of compute streams */
  uint32_t n_ended, ended_room;
} pl_running_account;

static inline bool pl_running_is_due(const pl_engine *engine) {
  return engine->spent->n_ended > 0 || pl_dates_are_many(engine->dates);
}

/* Behind the others of the stream. Without memory arena->failed is set. */
void pl_running_append(pl_running_account *own, uint32_t stream, uint32_t task);

#endif
