/* See workloads/compile/compile_lanes.h. */
#include "workloads/compile/compile_lanes.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)PL_SCHEDULE_PHASES == (int)PL_LANE_PHASES, "a phase of a schedule is a phase of its lane");

bool pl_lane_making_take(pl_lane_making *making, uint32_t n_lanes, size_t n_steps, pl_arena *arena) {
  size_t n_entries = n_steps + n_lanes + 1; /* what follows each list, and the end of all */
  *making = (pl_lane_making){.n_more = 0};
  making->lanes = PL_TAKE(arena, pl_lane, n_lanes);
  making->first_task = pl_arena_take(arena, n_entries * sizeof *making->first_task, _Alignof(uint32_t));
  return making->lanes != NULL && making->first_task != NULL;
}

pl_lane *pl_lane_begin(pl_lane_making *making, uint32_t n_steps) {
  pl_lane *lane = &making->lanes[making->n_lanes++];
  *lane = (pl_lane){.first = making->n_steps, .n_steps = n_steps + 1};
  return lane;
}

void pl_lane_begin_step(pl_lane_making *making, const pl_graph_builder *builder) {
  making->first_task[making->n_steps++] = pl_graph_builder_n_tasks(builder);
}

uint64_t pl_lane_times(const pl_lane_making *making, const pl_lane *lane, int64_t step) {
  for (int p = 0; p < making->n_phases; p++) {
    int64_t from = lane->phases[p].from;
    if (step >= from && step < from + making->period[p]) return 1 + making->n_more;
  }
  return 1;
}

static bool has_periods(const pl_lane_making *making) {
  for (uint32_t lane = 0; lane < making->n_lanes; lane++)
    for (int p = 0; p < making->n_phases; p++)
      if (making->lanes[lane].phases[p].to - making->lanes[lane].phases[p].from < making->period[p]) return false;
  return true;
}

pl_lanes pl_lane_making_finish(pl_lane_making *making, const pl_graph_builder *builder) {
  pl_lane_begin_step(making, builder);
  if (!has_periods(making)) making->n_more = 0;
  pl_lanes lanes = {.lanes = making->lanes,
                    .n_lanes = making->n_lanes,
                    .first_task = making->first_task,
                    .n_phases = making->n_phases};
  memcpy(lanes.period, making->period, sizeof making->period);
  return lanes;
}

/* ---- of schedules ---- */

pl_schedule pl_lane_schedule(const pl_program *program, const pl_device_class *class, int32_t leapt) {
  const pl_schedule *whole = &program->stages[class->stage].schedules[pl_program_schedule(program, class->replica)];
  return leapt == 0 ? *whole : pl_schedule_of(program->strategy, whole->n_microbatches - leapt, class->stage);
}

bool pl_lane_making_of_schedules(pl_lane_making *making, const pl_program *program, const pl_communication_plan *plan,
                                 int32_t leapt, pl_arena *arena) {
  pl_schedule_phase phases[PL_SCHEDULE_PHASES] = {{0}};
  size_t n_steps = 0;
  int n_phases = 0;
  for (uint32_t c = 0; c < plan->n_device_classes; c++) {
    const pl_schedule schedule = pl_lane_schedule(program, &plan->device_classes[c], leapt);
    n_steps += (size_t)pl_schedule_n_steps(&schedule);
    n_phases = pl_schedule_phases(&schedule, phases);
  }
  if (!pl_lane_making_take(making, plan->n_device_classes, n_steps, arena)) return false;
  making->n_phases = n_phases;
  for (int p = 0; p < n_phases; p++) {
    making->period[p] = (uint32_t)phases[p].period;
    PL_ASSERT(phases[p].microbatches != 0);
    making->n_more = (uint64_t)(leapt / abs(phases[p].microbatches));
    PL_ASSERT(leapt % phases[p].microbatches == 0);
  }
  return true;
}

const pl_lane *pl_lane_begin_schedule(pl_lane_making *making, const pl_schedule *schedule) {
  pl_lane *lane = pl_lane_begin(making, (uint32_t)pl_schedule_n_steps(schedule));
  pl_schedule_phase phases[PL_SCHEDULE_PHASES];
  int n = pl_schedule_phases(schedule, phases);
  for (int p = 0; p < n; p++)
    lane->phases[p] = (pl_lane_phase){(uint32_t)phases[p].from, (uint32_t)phases[p].to};
  return lane;
}
