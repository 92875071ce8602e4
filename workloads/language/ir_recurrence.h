/* What recurs in the step lists of a program, and the same program with fewer microbatches.
 *
 * A list of many microbatches does the same again and again. In a phase of it the step `period` steps later is the same
 * pass of the same chunk, of a microbatch that is `round` further on (or further back: GPipe runs the last one backward
 * first). That is looked for in the lists as they stand, so that what somebody has written or edited by hand counts as
 * well as what a schedule made. All classes have the same phases, at most PL_LANE_PHASES, and each of their passes is
 * in one of these; so periods can be taken out of every phase, and what is left is a program of fewer microbatches,
 * whose lists become the whole ones again when the periods are put back (core/cluster/lanes.h).
 *
 * A phase begins where its steps begin to recur, or, where a pass hands something on to later ones on its device (sums
 * in the host, functions that are gathered for while one or two others run), two periods behind, which is how far that
 * reaches. It holds no last step of a chunk, behind which gradients are reduced, and no microbatch that some devices
 * pass over.
 */
#ifndef PL_WORKLOADS_IR_RECURRENCE_H
#define PL_WORKLOADS_IR_RECURRENCE_H

#include "core/cluster/lanes.h"
#include "workloads/language/ir_module.h"

/* Periods that pass before what a list makes recurs as its steps do, where passes hand something on; else none. */
enum { PL_IR_CARRIED_PERIODS = 2 };

typedef pl_lane_phase pl_ir_phases[PL_LANE_PHASES];

typedef struct pl_ir_recurrence {
  int n_phases;                    /* 0: nothing recurs */
  uint32_t period[PL_LANE_PHASES]; /* steps */
  bool backwards[PL_LANE_PHASES];  /* microbatches come in falling order */
  int32_t round;                   /* microbatches of a period */
  int32_t fewest;                  /* microbatches that every device runs */
  int32_t carried;                 /* periods, as it was asked for */
  int32_t filling;                 /* the most microbatches that a class has outside of a phase */
  int32_t under_way;               /* the most microbatches that a class is in the middle of, where forward and backward
                                      passes take turns; else 0 */
  const pl_ir_phases *phases;      /* per class */
} pl_ir_recurrence;

/* `module` passed pl_ir_check, or chunks of its steps are at least of their classes. False: no memory. O(steps), as a
 * rule. */
bool pl_ir_recurrence_find(const pl_ir_module *module, int32_t carried, pl_arena *arena, pl_ir_recurrence *recurrence);

/* What is played of a program. */
typedef struct pl_ir_played {
  pl_ir_module module; /* shares everything but its lists */
  int n_phases;
  uint32_t period[PL_LANE_PHASES];
  const pl_ir_phases *phases; /* per class, of the shorter lists */
  uint64_t n_more;            /* periods that are left out of every phase */
} pl_ir_played;

/* The program without `leapt` microbatches, whole rounds. *is_possible false: the phases do not have so many, or what
 * is left is no program. False: no memory. */
bool pl_ir_recurrence_shorten(const pl_ir_module *module, const pl_ir_recurrence *recurrence, int32_t leapt,
                              pl_arena *arena, pl_ir_played *played, bool *is_possible);

/* How often what a step makes counts: one period of each phase stands for those that are left out. */
uint64_t pl_ir_played_times(const pl_ir_played *played, int32_t class, int32_t step);

#endif
