/* See workloads/schedule.h. The interleaved order counts virtual microbatches k: the k-th forward of a stage is chunk
 * (k mod pp vpp) / pp of microbatch (k / (pp vpp)) pp + k mod pp, and its backwards mirror the chunks. */
#include "workloads/schedule.h"

static pl_schedule_step virtual_step(const pl_strategy *strategy, int64_t k, bool backward) {
  int64_t group = (int64_t)strategy->pp * strategy->vpp;
  int32_t chunk = (int32_t)(k % group / strategy->pp);
  return (pl_schedule_step){.backward = backward,
                            .chunk = backward ? strategy->vpp - 1 - chunk : chunk,
                            .microbatch = (int32_t)(k / group * strategy->pp + k % strategy->pp)};
}

static int64_t warmup(const pl_strategy *strategy, int64_t total, int32_t stage) {
  int64_t n = strategy->pp - stage - 1;
  if (strategy->schedule == PL_SCHEDULE_INTERLEAVED) n = 2 * n + (int64_t)(strategy->vpp - 1) * strategy->pp;
  if (strategy->schedule == PL_SCHEDULE_GPIPE || n > total) n = total;
  return n;
}

const pl_schedule_step *pl_schedule_take(const pl_strategy *strategy, int32_t n_microbatches, int32_t stage,
                                         pl_arena *arena) {
  int64_t total = (int64_t)strategy->vpp * n_microbatches, ahead = warmup(strategy, total, stage), n = 0;
  pl_schedule_step *steps = PL_TAKE(arena, pl_schedule_step, 2 * total);
  if (steps == NULL) return NULL;
  bool interleaved = strategy->schedule == PL_SCHEDULE_INTERLEAVED;
  bool reversed = strategy->schedule == PL_SCHEDULE_GPIPE;
  for (int64_t forward = 0, backward = 0; backward < total;) {
    if (forward < total && forward <= backward + ahead) {
      steps[n++] =
          interleaved ? virtual_step(strategy, forward, false) : (pl_schedule_step){false, 0, (int32_t)forward};
      forward++;
    } else {
      int32_t microbatch = (int32_t)(reversed ? total - 1 - backward : backward);
      steps[n++] = interleaved ? virtual_step(strategy, backward, true) : (pl_schedule_step){true, 0, microbatch};
      backward++;
    }
  }
  return steps;
}

int32_t pl_schedule_in_flight(const pl_schedule_step *steps, int64_t n_steps) {
  int32_t held = 0, most = 0;
  for (int64_t i = 0; i < n_steps; i++) {
    held += steps[i].backward ? -1 : 1;
    if (held > most) most = held;
  }
  return most;
}
