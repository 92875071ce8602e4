/* Leaps over lanes that drift apart. Part of the engine's own state.
 *
 * In GPipe each stage runs at a pace of its own, and a fast one runs away from the slower one behind it: the state of
 * the whole run never comes back. But each list of steps by itself becomes regular: what its step s + period does
 * happens a constant time after what step s did, its pace. Such a run is extended list by list and not instant by
 * instant: periods are put into every phase of every lane, and each task moves by a shift of its own.
 *
 * Let a run be known up to n periods per phase, and let a region be three consecutive periods (the same for all lanes)
 * in which each task has its likeness a period later, by one pace. What is put in are copies of the middle one of the
 * three. A copy starts when the last of its predecessors has finished, hence is where its pace says if none of them has
 * a greater one. A task behind the region is moved by what its last predecessor is moved by; this is right if no other
 * predecessor is moved by more. That the last predecessors of likenesses are likenesses need not be asked: another one
 * at the same tick with less pace would have been later a period before. Accounts, which name it, find out whether
 * what they look back on is copied as well (`lost`).
 * That is all as long as tasks take the time that they take. Those that contend, for links or by the overlap factor, do
 * so if whoever met in the short run is moved alike, and whoever did not is not moved towards each other
 * (engine_rivals.c). What being disturbed adds to the sums of a device is noted by task, so that copies add it, too.
 *
 * Everything here is looked at after the run, in the graph and in the dates. Not for ready streams, whose order may
 * change.
 */
#ifndef PL_CORE_ENGINE_DRIFT_H
#define PL_CORE_ENGINE_DRIFT_H

#include "core/engine/engine.h"

/* Where a task is with respect to a phase of its lane. */
typedef enum pl_drift_zone {
  PL_DRIFT_AHEAD = 0, /* before the phase */
  PL_DRIFT_EARLY,     /* in the phase, before the region */
  PL_DRIFT_REGION,
  PL_DRIFT_LATE,  /* in the phase, behind the region */
  PL_DRIFT_BEHIND /* behind the phase */
} pl_drift_zone;

enum { PL_DRIFT_PERIODS = 3 /* of a region */, PL_DRIFT_COPIED = 1 /* of these */ };

typedef struct pl_drift_place {
  uint8_t zone[PL_LANE_PHASES];
  uint8_t period; /* of the region, if it is in one */
  int8_t region;  /* phase of the region that it is in, or -1 */
} pl_drift_place;

typedef struct pl_drift {
  const pl_lanes *lanes;
  uint64_t times; /* copies */
  const pl_drift_place *places;
  /* By how much each task is moved: what is in a region is there twice, before what is put in and behind it. */
  const pl_ticks *shift, *last_shift;
  const uint32_t *later; /* the likeness a period later of what is in a phase */
  bool lost;             /* what was asked of the past reaches beyond the region */
} pl_drift;

/* What a disturbed task has added to the sums of a device (pl_overlap): ticks of a category, or of these. */
enum { PL_DRIFT_WAITING = PL_CATEGORY_COUNT, PL_DRIFT_EVENT };

typedef struct pl_drift_addend {
  uint32_t task, device;
  pl_ticks ticks;
  uint8_t kind;
} pl_drift_addend;

typedef struct pl_drift_notes {
  pl_drift_addend *addends;
  uint32_t n, room;
} pl_drift_notes;

/* The shift of `task` as what is at `place` sees it. */
static inline pl_ticks pl_drift_seen(const pl_drift *drift, uint32_t task, const pl_drift_place *place) {
  int8_t region = drift->places[task].region;
  return region >= 0 && place->zone[region] > PL_DRIFT_REGION ? drift->last_shift[task] : drift->shift[task];
}

static inline bool pl_drift_is_copied(const pl_drift *drift, uint32_t task) {
  return drift->places[task].region >= 0 && drift->places[task].period == PL_DRIFT_COPIED;
}

/* Both in one region and at one pace. */
static inline bool pl_drift_together(const pl_drift *drift, uint32_t a, uint32_t b) {
  return drift->places[a].region >= 0 && drift->places[a].region == drift->places[b].region &&
         drift->shift[a] == drift->shift[b] && drift->last_shift[a] == drift->last_shift[b];
}

#endif
