/* See core/engine/engine_watch.h. */
#include "core/engine/engine_watch.h"

#include <string.h>

#include "core/base/digest.h"
#include "core/engine/engine_state.h"

/* ---- life ---- */

/* The lane that enters its first phase last: when it is there, the others are. */
static uint32_t choose_reference(const pl_lanes *lanes) {
  uint32_t latest = 0;
  for (uint32_t lane = 1; lane < lanes->n_lanes; lane++)
    if (lanes->lanes[lane].phases[0].from > lanes->lanes[latest].phases[0].from) latest = lane;
  return latest;
}

static bool take_sums(const pl_engine *engine, pl_watch_sums *sums) {
  size_t n = engine->graph->n_devices;
  pl_arena *arena = engine->arena;
  sums->bytes = PL_TAKE(arena, int64_t, n);
  sums->peak = PL_TAKE(arena, int64_t, n);
  sums->peak_before = PL_TAKE(arena, int64_t, n);
  if (engine->overlap != NULL) {
    sums->extra = PL_TAKE(arena, pl_ticks, n * PL_CATEGORY_COUNT);
    sums->waiting = PL_TAKE(arena, pl_ticks, n);
  }
  return !arena->failed;
}

bool pl_watch_take(pl_engine *engine) {
  const pl_graph *graph = engine->graph;
  pl_arena *arena = engine->arena;
  pl_watch *watch = PL_TAKE(arena, pl_watch, 1);
  if (watch == NULL) return false;
  watch->lanes = *engine->options.lanes;
  watch->reference = choose_reference(&watch->lanes);
  watch->marks = PL_TAKE(arena, pl_watch_mark, PL_WATCH_MARKS);
  watch->peak_before = PL_TAKE(arena, int64_t, graph->n_devices);
  watch->peak_after = PL_TAKE(arena, int64_t, graph->n_devices);
  watch->touched = pl_arena_take(arena, graph->n_tasks * sizeof *watch->touched, _Alignof(uint32_t));
  if (arena->failed || !pl_lanes_list_places(&watch->lanes, arena) || watch->marks == NULL || watch->touched == NULL)
    return false;
  for (uint32_t at = 0; at < PL_WATCH_MARKS; at++)
    watch->marks[at].number = watch->marks[at].noted = PL_NONE;
  for (int phase = 0; phase < watch->lanes.n_phases; phase++)
    if (!take_sums(engine, &watch->found[phase].sums)) return false;
  for (uint32_t task = 0; task < graph->n_tasks; task++)
    engine->finish[task] = PL_TICKS_NEVER;
  engine->watch = watch;
  return true;
}

/* ---- sums ---- */

static void raise(int64_t *most, int64_t value) {
  if (value > *most) *most = value;
}

/* The peaks since the last mark go where they belong, and begin anew. */
static void note_peaks(pl_engine *engine, pl_watch_sums *sums) {
  pl_watch *watch = engine->watch;
  for (uint32_t device = 0; device < engine->graph->n_devices; device++) {
    pl_balance *balance = &engine->balance[device];
    raise(&watch->peak_before[device], balance->peak_bytes);
    raise(&watch->peak_after[device], balance->peak_bytes);
    sums->bytes[device] = balance->bytes;
    sums->peak[device] = balance->peak_bytes;
    sums->peak_before[device] = watch->peak_before[device];
    balance->peak_bytes = balance->bytes;
  }
}

static void note_sums(pl_engine *engine, pl_watch_sums *sums) {
  size_t n = engine->graph->n_devices;
  note_peaks(engine, sums);
  sums->n_events = engine->n_events;
  if (engine->overlap == NULL) return;
  memcpy(sums->extra, engine->overlap->extra, n * PL_CATEGORY_COUNT * sizeof *sums->extra);
  memcpy(sums->waiting, engine->overlap->waiting, n * sizeof *sums->waiting);
}

/* ---- recurrences ---- */

static pl_watch_mark *mark_of(const pl_watch *watch, uint32_t number) {
  return &watch->marks[number % PL_WATCH_MARKS];
}

/* What the time between two marks adds. */
static void keep(pl_engine *engine, const pl_watch_mark *before, const pl_watch_mark *mark) {
  pl_watch *watch = engine->watch;
  pl_recurrence *found = &watch->found[watch->phase];
  size_t n = engine->graph->n_devices;
  found->distance = mark->number - before->number;
  found->from = before->now;
  found->to = mark->now;
  found->sums.n_events = mark->sums.n_events - before->sums.n_events;
  for (size_t at = 0; engine->overlap != NULL && at < n * PL_CATEGORY_COUNT; at++)
    found->sums.extra[at] = mark->sums.extra[at] - before->sums.extra[at];
  for (size_t device = 0; device < n; device++) {
    if (engine->overlap != NULL)
      found->sums.waiting[device] = mark->sums.waiting[device] - before->sums.waiting[device];
    found->sums.bytes[device] = mark->sums.bytes[device] - before->sums.bytes[device];
    found->sums.peak_before[device] = before->sums.peak_before[device];
    found->sums.peak[device] = before->sums.bytes[device];
    for (uint32_t number = before->number + 1; number <= mark->number; number++)
      if (mark_of(watch, number)->noted == number)
        raise(&found->sums.peak[device], mark_of(watch, number)->sums.peak[device]);
    watch->peak_after[device] = mark->sums.bytes[device];
  }
}

static bool same_state(const pl_watch_mark *a, const pl_watch_mark *b) {
  return a->digest == b->digest && a->state.n == b->state.n &&
         memcmp(a->state.words, b->state.words, a->state.n * sizeof *a->state.words) == 0;
}

/* The nearest mark before that has the same state, in whole numbers of which the periods wanted can be made; failing
 * that, the nearest. */
static void compare(pl_engine *engine, const pl_watch_mark *mark) {
  const pl_watch *watch = engine->watch;
  const pl_watch_mark *nearest = NULL;
  for (uint32_t distance = 1; distance < PL_WATCH_MARKS && distance <= mark->number; distance++) {
    const pl_watch_mark *before = mark_of(watch, mark->number - distance);
    if (before->number != mark->number - distance || !same_state(before, mark)) continue;
    if (engine->options.n_more % distance == 0) {
      keep(engine, before, mark);
      return;
    }
    if (nearest == NULL) nearest = before;
  }
  bool is_of_use =
      watch->found[watch->phase].distance > 0 && engine->options.n_more % watch->found[watch->phase].distance == 0;
  if (nearest != NULL && !is_of_use) keep(engine, nearest, mark);
}

static void note_mark(pl_engine *engine, uint32_t number, pl_ticks now) {
  pl_watch *watch = engine->watch;
  pl_watch_mark *mark = mark_of(watch, number);
  mark->state.lanes = &watch->lanes;
  mark->state.phase = watch->phase;
  mark->state.shift = number * watch->lanes.period[watch->phase];
  mark->state.now = now;
  mark->state.left_out = engine->options.left_out;
  mark->state.arena = engine->arena;
  mark->number = PL_NONE;
  if (mark->sums.bytes == NULL && !take_sums(engine, &mark->sums)) return;
  pl_watch_write_state(engine, &mark->state);
  note_sums(engine, &mark->sums);
  mark->noted = number;
  mark->now = now;
  if (mark->state.outside) {
    mark->digest = 0;
    mark->state.n = 0;
    return;
  }
  mark->number = number;
  mark->digest = pl_hash_bytes(mark->state.words, mark->state.n * sizeof *mark->state.words, 0);
  compare(engine, mark);
}

static void begin_phase(pl_engine *engine) {
  pl_watch *watch = engine->watch;
  if (watch->found[watch->phase].distance > 0)
    memcpy(watch->peak_before, watch->peak_after, engine->graph->n_devices * sizeof *watch->peak_before);
  for (uint32_t at = 0; at < PL_WATCH_MARKS; at++)
    watch->marks[at].number = watch->marks[at].noted = PL_NONE;
  watch->phase++;
  watch->next = 0;
}

/* The task whose end is the next mark; PL_NONE: the phase has no further one. */
static uint32_t next_task(const pl_watch *watch) {
  const pl_lane *lane = &watch->lanes.lanes[watch->reference];
  uint64_t step = lane->phases[watch->phase].from + (uint64_t)watch->next * watch->lanes.period[watch->phase];
  return step < lane->phases[watch->phase].to ? watch->lanes.first_task[lane->first + step] : PL_NONE;
}

void pl_watch_look(pl_engine *engine, pl_ticks now) {
  pl_watch *watch = engine->watch;
  while (watch->phase < watch->lanes.n_phases) {
    uint32_t passed = PL_NONE, task;
    while ((task = next_task(watch)) != PL_NONE && engine->finish[task] <= now)
      passed = watch->next++;
    if (passed != PL_NONE) note_mark(engine, passed, now);
    if (task != PL_NONE) return;
    begin_phase(engine);
  }
}

/* ---- what will not come back ---- */

static pl_ticks start_of_period(const pl_engine *engine, const pl_lane *lane, uint32_t period) {
  const pl_lanes *lanes = &engine->watch->lanes;
  return engine->start[lanes->first_task[lane->first + lane->phases[0].from + period * lanes->period[0]]];
}

bool pl_watch_runs_apart(const pl_engine *engine) {
  const pl_lanes *lanes = &engine->watch->lanes;
  pl_ticks least = PL_TICKS_NEVER, most = 0;
  for (uint32_t at = 0; at < lanes->n_lanes; at++) {
    const pl_lane *lane = &lanes->lanes[at];
    uint32_t n = (lane->phases[0].to - lane->phases[0].from) / lanes->period[0];
    if (n < 4) return false;
    pl_ticks last = start_of_period(engine, lane, n - 2);
    pl_ticks pace = start_of_period(engine, lane, n - 1) - last;
    if (last - start_of_period(engine, lane, n - 3) != pace) return false;
    if (pace < least) least = pace;
    if (pace > most) most = pace;
  }
  return least < most;
}
