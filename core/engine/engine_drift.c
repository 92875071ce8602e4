/* See core/engine/engine_drift.h. */
#include "core/engine/engine_drift.h"

#include "core/engine/engine_state.h"

typedef struct drifting {
  const pl_engine *engine;
  const pl_graph *graph;
  pl_drift *drift;
  pl_drift_place *places;
  pl_ticks *pace, *shift, *last_shift;
  uint32_t *later, *scratch;
} drifting;

/* ---- places ---- */

/* Periods that every lane has in the phase. */
static uint32_t fewest_periods(const pl_lanes *lanes, int phase) {
  uint32_t fewest = UINT32_MAX;
  for (uint32_t lane = 0; lane < lanes->n_lanes; lane++) {
    const pl_lane_phase *own = &lanes->lanes[lane].phases[phase];
    uint32_t n = (own->to - own->from) / lanes->period[phase];
    if (n < fewest) fewest = n;
  }
  return fewest;
}

/* The region is as late as it can be: one period is left behind it, in which the successors of the region's last are.
 */
static bool choose_regions(const pl_lanes *lanes, uint32_t first[PL_LANE_PHASES]) {
  for (int phase = 0; phase < lanes->n_phases; phase++) {
    uint32_t n = fewest_periods(lanes, phase);
    if (n <= PL_DRIFT_PERIODS) return false;
    first[phase] = n - 1 - PL_DRIFT_PERIODS;
  }
  return true;
}

static pl_drift_place place_of(const pl_lanes *lanes, const pl_lane *lane, uint32_t step,
                               const uint32_t first[PL_LANE_PHASES]) {
  pl_drift_place place = {.region = -1};
  for (int phase = 0; phase < lanes->n_phases; phase++) {
    const pl_lane_phase *own = &lane->phases[phase];
    uint32_t period = lanes->period[phase], from = own->from + first[phase] * period;
    uint8_t *zone = &place.zone[phase];
    if (step < own->from) {
      *zone = PL_DRIFT_AHEAD;
    } else if (step >= own->to) {
      *zone = PL_DRIFT_BEHIND;
    } else if (step < from) {
      *zone = PL_DRIFT_EARLY;
    } else if (step >= from + PL_DRIFT_PERIODS * period) {
      *zone = PL_DRIFT_LATE;
    } else {
      *zone = PL_DRIFT_REGION;
      place.region = (int8_t)phase;
      place.period = (uint8_t)((step - from) / period);
    }
  }
  return place;
}

/* PL_NONE: there is none, or it is not of the same size. */
static uint32_t later_step(const pl_lanes *lanes, uint32_t lane, uint32_t step) {
  for (int phase = 0; phase < lanes->n_phases; phase++) {
    const pl_lane_phase *own = &lanes->lanes[lane].phases[phase];
    uint32_t later = step + lanes->period[phase];
    if (step < own->from || later >= own->to) continue;
    return pl_lanes_step_size(lanes, lane, step) == pl_lanes_step_size(lanes, lane, later) ? later : PL_NONE;
  }
  return PL_NONE;
}

static void place_tasks(drifting *own, const uint32_t first[PL_LANE_PHASES]) {
  const pl_lanes *lanes = own->drift->lanes;
  for (uint32_t lane = 0; lane < lanes->n_lanes; lane++) {
    const uint32_t *firsts = &lanes->first_task[lanes->lanes[lane].first];
    for (uint32_t step = 0; step < lanes->lanes[lane].n_steps; step++) {
      const pl_drift_place place = place_of(lanes, &lanes->lanes[lane], step, first);
      uint32_t later = later_step(lanes, lane, step);
      for (uint32_t task = firsts[step]; task < firsts[step + 1]; task++) {
        own->places[task] = place;
        own->later[task] = later == PL_NONE ? PL_NONE : firsts[later] + (task - firsts[step]);
      }
    }
  }
}

/* ---- regions ---- */

static bool have_like_successors(const drifting *own, const pl_task *a, const pl_task *b) {
  if (a->n_successors != b->n_successors) return false;
  for (uint32_t at = 0; at < a->n_successors; at++)
    if (own->later[own->graph->successors[a->first_successor + at]] != own->graph->successors[b->first_successor + at])
      return false;
  return true;
}

/* Of a task that is not in the last period of its region. */
static bool goes_on(drifting *own, uint32_t task) {
  const pl_engine *engine = own->engine;
  uint32_t other = own->later[task];
  if (other == PL_NONE || !pl_graph_tasks_alike(own->graph, task, other)) return false;
  if (!have_like_successors(own, &own->graph->tasks[task], &own->graph->tasks[other])) return false;
  pl_ticks pace = engine->start[other] - engine->start[task];
  if (own->places[task].period > 0 && pace != own->pace[task]) return false;
  own->pace[task] = own->pace[other] = pace;
  return engine->finish[other] - engine->finish[task] == pace;
}

static bool are_regular(drifting *own) {
  for (uint32_t task = 0; task < own->graph->n_tasks; task++)
    if (own->places[task].region >= 0 && own->places[task].period < PL_DRIFT_PERIODS - 1 && !goes_on(own, task))
      return false;
  return true;
}

/* ---- shifts ---- */

/* Each task is moved by what its last predecessor is moved by. `scratch`: the way back. */
static bool find_shifts(drifting *own) {
  const pl_engine *engine = own->engine;
  for (uint32_t task = 0; task < own->graph->n_tasks; task++)
    own->shift[task] = PL_TICKS_NEVER;
  for (uint32_t task = 0; task < own->graph->n_tasks; task++) {
    uint32_t n = 0;
    for (uint32_t at = task; at != PL_NONE && own->shift[at] == PL_TICKS_NEVER; at = engine->wait[at].last)
      own->scratch[n++] = at;
    while (n-- > 0) {
      uint32_t at = own->scratch[n], cause = engine->wait[at].last;
      pl_ticks shift = cause == PL_NONE ? 0 : pl_drift_seen(own->drift, cause, &own->places[at]);
      pl_ticks more = own->places[at].region >= 0 ? own->pace[at] : 0;
      if ((double)more * (double)own->drift->times + (double)shift >= (double)PL_TICKS_MAX) return false;
      own->shift[at] = shift;
      own->last_shift[at] = shift + more * (pl_ticks)own->drift->times;
    }
  }
  return true;
}

/* Edges between what comes before a region and what comes behind it: only those that pass by the whole phase stay as
 * they are. */
static bool stays(const drifting *own, const pl_drift_place *before, const pl_drift_place *after) {
  for (int phase = 0; phase < own->drift->lanes->n_phases; phase++) {
    uint8_t from = before->zone[phase], to = after->zone[phase];
    if (from >= PL_DRIFT_LATE && to <= PL_DRIFT_REGION) return false;
    if (from <= PL_DRIFT_EARLY && to >= PL_DRIFT_LATE && !(from == PL_DRIFT_AHEAD && to == PL_DRIFT_BEHIND))
      return false;
  }
  return true;
}

/* No predecessor comes later than the one that was last: as what is before the region and in its first copies sees it,
 * and, within a region, behind the last copies as well. In between both move evenly. */
static bool are_ordered(const drifting *own) {
  const pl_graph *graph = own->graph;
  for (uint32_t task = 0; task < graph->n_tasks; task++)
    for (uint32_t at = 0; at < graph->tasks[task].n_successors; at++) {
      uint32_t next = graph->successors[graph->tasks[task].first_successor + at];
      const pl_drift_place *place = &own->places[next];
      if (!stays(own, &own->places[task], place)) return false;
      if (pl_drift_seen(own->drift, task, place) > own->shift[next]) return false;
      if (place->region < 0 || place->region != own->places[task].region) continue;
      if (own->last_shift[task] > own->last_shift[next]) return false;
    }
  return true;
}

/* ---- memory ---- */

/* Held on a device while its compute stream is gone through. Of the copies of a period the first or the last holds the
 * most, and neither more than the original before them or the period behind them. */
typedef struct holding {
  int64_t bytes, peak, copied_bytes;
} holding;

static void leave_copied(holding *own, uint64_t times) {
  own->bytes += own->copied_bytes * (int64_t)times;
  own->copied_bytes = 0;
}

static void hold(holding *own, const pl_drift *drift, uint32_t task, const pl_memory_effect *effect) {
  bool copied = pl_drift_is_copied(drift, task);
  if (!copied) leave_copied(own, drift->times);
  if (own->bytes + effect->peak_bytes > own->peak) own->peak = own->bytes + effect->peak_bytes;
  own->bytes += effect->net_bytes;
  if (copied) own->copied_bytes += effect->net_bytes;
}

bool pl_drift_take_peaks(const pl_engine *engine, int64_t *peaks) {
  const pl_graph *graph = engine->graph;
  holding *devices = PL_TAKE(engine->arena, holding, graph->n_devices);
  if (devices == NULL) return false;
  for (uint32_t device = 0; device < graph->n_devices; device++) {
    int64_t bytes = graph->devices[device].resident_bytes;
    devices[device] = (holding){.bytes = bytes, .peak = bytes};
  }
  for (uint32_t task = 0; task < graph->n_tasks; task++) {
    const pl_task *record = &graph->tasks[task];
    if (record->memory == PL_NONE) continue;
    for (uint32_t member = 0; member < record->n_streams; member++)
      hold(&devices[graph->streams[graph->task_streams[record->first_stream + member]].device], engine->drift, task,
           &graph->effects[record->memory]);
  }
  for (uint32_t device = 0; device < graph->n_devices; device++)
    peaks[device] = devices[device].peak;
  return true;
}

/* Effects of what does not run on compute streams have no order of their own. */
static bool is_held_in_order(const pl_graph *graph) {
  for (uint32_t task = 0; task < graph->n_tasks; task++)
    if (graph->tasks[task].memory != PL_NONE && graph->tasks[task].kind != PL_TASK_WORK) return false;
  return true;
}

/* ---- all ---- */

static bool take(drifting *own, pl_engine *engine) {
  size_t n = engine->graph->n_tasks;
  pl_arena *arena = engine->arena;
  pl_drift *drift = PL_TAKE(arena, pl_drift, 1);
  own->places = PL_TAKE(arena, pl_drift_place, n);
  own->pace = PL_TAKE(arena, pl_ticks, n);
  own->shift = PL_TAKE(arena, pl_ticks, n);
  own->last_shift = PL_TAKE(arena, pl_ticks, n);
  own->later = PL_TAKE(arena, uint32_t, n);
  own->scratch = PL_TAKE(arena, uint32_t, n);
  if (drift == NULL || arena->failed) return false;
  *drift = (pl_drift){.lanes = engine->options.lanes,
                      .times = engine->options.n_more,
                      .places = own->places,
                      .shift = own->shift,
                      .last_shift = own->last_shift,
                      .later = own->later};
  own->drift = drift;
  return true;
}

bool pl_drift_leap(pl_engine *engine) {
  drifting own = {.engine = engine, .graph = engine->graph};
  uint32_t first[PL_LANE_PHASES];
  if (engine->options.n_more == 0 || engine->graph->policy != PL_STREAMS_IN_ORDER) return false;
  if (!choose_regions(engine->options.lanes, first) || !is_held_in_order(engine->graph)) return false;
  if (!take(&own, engine)) return false;
  place_tasks(&own, first);
  engine->doubt = PL_DRIFT_IRREGULAR;
  if (!are_regular(&own)) return false;
  engine->doubt = PL_DRIFT_UNORDERED;
  if (!find_shifts(&own) || !are_ordered(&own)) return false;
  engine->doubt = PL_DRIFT_CONTENDED;
  if (!pl_drift_rivals_keep_apart(engine, own.drift)) return false;
  engine->drift = own.drift;
  return true;
}

pl_ticks pl_drift_makespan(const pl_engine *engine) {
  pl_ticks makespan = 0;
  for (uint32_t task = 0; task < engine->graph->n_tasks; task++) {
    pl_ticks finish = pl_ticks_sum(engine->finish[task], engine->drift->last_shift[task]);
    if (finish > makespan) makespan = finish;
  }
  return makespan;
}

void pl_drift_note(pl_engine *engine, uint32_t task, uint32_t device, uint8_t kind, pl_ticks ticks) {
  pl_drift_notes *notes = &engine->notes;
  pl_drift_addend *grown = pl_arena_grown(engine->arena, notes->addends, notes->n, 1, sizeof *grown, &notes->room);
  if (grown == NULL) return; /* the arena knows */
  notes->addends = grown;
  notes->addends[notes->n++] = (pl_drift_addend){.task = task, .device = device, .ticks = ticks, .kind = kind};
}

uint64_t pl_drift_events(const pl_engine *engine) {
  uint64_t copied = 0;
  for (uint32_t task = 0; task < engine->graph->n_tasks; task++)
    copied += pl_drift_is_copied(engine->drift, task);
  for (uint32_t at = 0; at < engine->notes.n; at++)
    copied += engine->notes.addends[at].kind == PL_DRIFT_EVENT &&
              pl_drift_is_copied(engine->drift, engine->notes.addends[at].task);
  return copied * engine->drift->times;
}

void pl_drift_add_notes(const pl_engine *engine, pl_ticks *spent, pl_ticks *idle) {
  for (uint32_t at = 0; at < engine->notes.n; at++) {
    const pl_drift_addend *addend = &engine->notes.addends[at];
    if (addend->kind == PL_DRIFT_EVENT || !pl_drift_is_copied(engine->drift, addend->task)) continue;
    pl_ticks *sum = addend->kind == PL_DRIFT_WAITING
                        ? &idle[addend->device]
                        : &spent[(size_t)addend->device * PL_CATEGORY_COUNT + addend->kind];
    *sum += addend->ticks * (pl_ticks)engine->drift->times;
  }
}
