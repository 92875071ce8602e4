/* See workloads/strategy/schedule.h. The interleaved order counts virtual microbatches k: the k-th forward of a stage
 * is chunk (k mod pp vpp) / pp of microbatch (k / (pp vpp)) pp + k mod pp, and its backwards mirror the chunks. */
#include "workloads/strategy/schedule.h"

static pl_schedule_step virtual_step(const pl_schedule *schedule, int64_t k, bool backward) {
  int64_t group = (int64_t)schedule->pp * schedule->vpp;
  int32_t chunk = (int32_t)(k % group / schedule->pp);
  return (pl_schedule_step){.backward = backward,
                            .chunk = backward ? schedule->vpp - 1 - chunk : chunk,
                            .microbatch = (int32_t)(k / group * schedule->pp + k % schedule->pp)};
}

pl_schedule pl_schedule_of(const pl_strategy *strategy, int32_t n_microbatches, int32_t stage) {
  pl_schedule own = {.kind = strategy->schedule,
                     .pp = strategy->pp,
                     .vpp = strategy->vpp,
                     .n_microbatches = n_microbatches,
                     .n_passes = (int64_t)strategy->vpp * n_microbatches,
                     .ahead = strategy->pp - stage - 1};
  if (own.kind == PL_SCHEDULE_INTERLEAVED) own.ahead = 2 * own.ahead + (int64_t)(own.vpp - 1) * own.pp;
  if (own.kind == PL_SCHEDULE_GPIPE || own.ahead > own.n_passes) own.ahead = own.n_passes;
  return own;
}

static int32_t last_microbatch(const pl_schedule *schedule) {
  return schedule->kind == PL_SCHEDULE_GPIPE ? 0 : schedule->n_microbatches - 1;
}

pl_schedule_step pl_schedule_next(const pl_schedule *schedule, pl_schedule_cursor *cursor) {
  bool backward = cursor->forward == schedule->n_passes || cursor->forward > cursor->backward + schedule->ahead;
  int64_t pass = backward ? cursor->backward++ : cursor->forward++;
  bool reversed = backward && schedule->kind == PL_SCHEDULE_GPIPE;
  pl_schedule_step step =
      schedule->kind == PL_SCHEDULE_INTERLEAVED
          ? virtual_step(schedule, pass, backward)
          : (pl_schedule_step){.backward = backward,
                               .microbatch = (int32_t)(reversed ? schedule->n_passes - 1 - pass : pass)};
  step.last = backward && step.microbatch == last_microbatch(schedule);
  return step;
}

int32_t pl_schedule_in_flight(const pl_schedule *schedule) {
  return (int32_t)(schedule->ahead < schedule->n_passes ? schedule->ahead + 1 : schedule->n_passes);
}

/* The first pass, of those of one direction, that is the last of its chunk. */
static int64_t first_last_pass(const pl_schedule *schedule) {
  return schedule->n_passes - (int64_t)schedule->vpp * (schedule->kind == PL_SCHEDULE_INTERLEAVED ? schedule->pp : 1) +
         (schedule->kind == PL_SCHEDULE_INTERLEAVED ? schedule->pp - 1 : 0);
}

int pl_schedule_phases(const pl_schedule *schedule, pl_schedule_phase phases[PL_SCHEDULE_PHASES]) {
  int64_t n = schedule->n_passes;
  if (schedule->kind == PL_SCHEDULE_GPIPE) {
    phases[0] = (pl_schedule_phase){.from = 0, .to = n, .period = 1, .microbatches = 1};
    phases[1] = (pl_schedule_phase){.from = n, .to = 2 * n - 1, .period = 1, .microbatches = -1};
    return 2;
  }
  /* Behind the first forwards one forward and one backward in turn, as long as there are forwards. */
  int64_t turns = n - schedule->ahead, last = first_last_pass(schedule);
  if (last < turns) turns = last;
  int32_t microbatches = schedule->kind == PL_SCHEDULE_INTERLEAVED ? schedule->pp : 1;
  phases[0] = (pl_schedule_phase){.from = schedule->ahead,
                                  .to = schedule->ahead + 2 * turns,
                                  .period = 2 * schedule->vpp * microbatches,
                                  .microbatches = microbatches};
  return 1;
}
