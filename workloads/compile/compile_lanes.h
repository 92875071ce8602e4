/* The lanes of a graph while it is compiled (core/cluster/lanes.h): a lane per list of steps, without the microbatches
 * that are leapt over, and what follows the list. Of a strategy's program a crew has a list, its schedule and the
 * epilogue; of a program in the language a class has one. */
#ifndef PL_WORKLOADS_COMPILE_LANES_H
#define PL_WORKLOADS_COMPILE_LANES_H

#include "core/cluster/lanes.h"
#include "core/graph/graph.h"
#include "workloads/compile/communication.h"

typedef struct pl_lane_making {
  pl_lane *lanes;
  uint32_t n_lanes;
  uint32_t *first_task, n_steps; /* of all lanes so far */
  int n_phases;
  uint32_t period[PL_LANE_PHASES]; /* steps */
  uint64_t n_more;                 /* periods that are leapt over */
} pl_lane_making;

/* Room for so many lanes, whose lists have so many steps together. n_phases, period and n_more are the caller's to set.
 * False: no memory. */
bool pl_lane_making_take(pl_lane_making *making, uint32_t n_lanes, size_t n_steps, pl_arena *arena);
/* A lane of a list of so many steps; its phases are the caller's to set. */
pl_lane *pl_lane_begin(pl_lane_making *making, uint32_t n_steps);
/* The next step of the lane begins with the task that comes next; also called at the end of all. */
void pl_lane_begin_step(pl_lane_making *making, const pl_graph_builder *builder);
/* How often what a step makes counts: one period of each phase, whichever it is, stands for those that are leapt over.
 */
uint64_t pl_lane_times(const pl_lane_making *making, const pl_lane *lane, int64_t step);
/* n_more becomes 0 if a phase is too short to hold a period. */
pl_lanes pl_lane_making_finish(pl_lane_making *making, const pl_graph_builder *builder);

/* ---- of schedules ---- */
/* What the device class plays. */
pl_schedule pl_lane_schedule(const pl_program *program, const pl_device_class *class, int32_t leapt);
/* `leapt`: microbatches, whole periods of the schedule. False: no memory. */
bool pl_lane_making_of_schedules(pl_lane_making *making, const pl_program *program, const pl_communication_plan *plan,
                                 int32_t leapt, pl_arena *arena);
const pl_lane *pl_lane_begin_schedule(pl_lane_making *making, const pl_schedule *schedule);

#endif
