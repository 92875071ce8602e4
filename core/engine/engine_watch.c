/* See core/engine/engine_watch.h. */
#include "core/engine/engine_watch.h"

#include <math.h>
#include <string.h>

#include "core/base/digest.h"
#include "core/engine/engine_state.h"

/* ---- life ---- */

/* The lane that enters its first phase last: when it is there, the others are. */
static uint32_t choose_reference(const pl_lanes *lanes, const pl_watched *own) {
  uint32_t latest = own->lanes[0];
  for (uint32_t at = 1; at < own->n_lanes; at++)
    if (lanes->lanes[own->lanes[at]].phases[0].from > lanes->lanes[latest].phases[0].from) latest = own->lanes[at];
  return latest;
}

/* As many marks as the reference lane has in a phase, and no more than PL_WATCH_MARKS. */
static uint32_t count_marks(const pl_lanes *lanes, const pl_watched *own) {
  uint32_t most = 1;
  for (int phase = 0; phase < lanes->n_phases; phase++) {
    const pl_lane_phase *steps = &lanes->lanes[own->reference].phases[phase];
    uint32_t n = (steps->to - steps->from) / lanes->period[phase] + 1;
    if (n > most) most = n;
  }
  return most < PL_WATCH_MARKS ? most : PL_WATCH_MARKS;
}

/* The numbers of those that `island_of` says to be of `island`; PL_NONE: no memory. */
static uint32_t list_members(const uint8_t *island_of, uint32_t n, uint32_t island, pl_arena *arena, uint32_t **list) {
  uint32_t n_members = 0;
  for (uint32_t at = 0; at < n; at++)
    n_members += island_of[at] == island;
  *list = pl_arena_take(arena, n_members * sizeof **list, _Alignof(uint32_t));
  if (*list == NULL) return PL_NONE;
  n_members = 0;
  for (uint32_t at = 0; at < n; at++)
    if (island_of[at] == island) (*list)[n_members++] = at;
  return n_members;
}

static uint32_t count_tasks(const pl_lanes *lanes, const pl_watched *own) {
  uint32_t n = 0;
  for (uint32_t at = 0; at < own->n_lanes; at++) {
    pl_lane_tasks tasks = pl_lanes_tasks(lanes, own->lanes[at]);
    n += tasks.end - tasks.first;
  }
  return n;
}

/* The task whose end is the next mark; PL_NONE: the phase has no further one. */
static uint32_t next_task(const pl_watch *watch, const pl_watched *own) {
  const pl_lane *lane = &watch->lanes.lanes[own->reference];
  uint64_t step = lane->phases[own->phase].from + (uint64_t)own->next * watch->lanes.period[own->phase];
  return step < lane->phases[own->phase].to ? watch->lanes.first_task[lane->first + step] : PL_NONE;
}

static void forget_marks(pl_watched *own) {
  for (uint32_t at = 0; at < own->n_marks; at++)
    own->marks[at].number = own->marks[at].noted = PL_NONE;
}

/* Of so many devices. */
static size_t n_sums(const pl_engine *engine, size_t n_devices) {
  return 1 + n_devices * (engine->overlap == NULL ? 1 : 2 + PL_CATEGORY_COUNT);
}

static bool take_watched(const pl_engine *engine, const pl_watch *watch, uint32_t island, pl_watched *own) {
  const pl_lanes *lanes = &watch->lanes;
  pl_arena *arena = engine->arena;
  own->n_lanes = list_members(watch->islands.of_lane, lanes->n_lanes, island, arena, &own->lanes);
  own->n_devices = list_members(watch->islands.of_device, engine->graph->n_devices, island, arena, &own->devices);
  if (arena->failed) return false;
  own->reference = choose_reference(lanes, own);
  own->n_marks = count_marks(lanes, own);
  own->marks = PL_TAKE(arena, pl_watch_mark, own->n_marks);
  own->peak = PL_TAKE(arena, int64_t, own->n_devices);
  own->touched = pl_arena_take(arena, count_tasks(lanes, own) * sizeof *own->touched, _Alignof(uint32_t));
  if (arena->failed) return false;
  forget_marks(own);
  own->awaited = next_task(watch, own);
  return true;
}

bool pl_watch_take(pl_engine *engine) {
  const pl_graph *graph = engine->graph;
  pl_arena *arena = engine->arena;
  pl_watch *watch = PL_TAKE(arena, pl_watch, 1);
  if (watch == NULL) return false;
  watch->lanes = *engine->options.lanes;
  if (!pl_lanes_list_places(&watch->lanes, arena) || !pl_islands_find(graph, &watch->lanes, arena, &watch->islands))
    return false;
  watch->watched = PL_TAKE(arena, pl_watched, watch->islands.n);
  if (watch->watched == NULL) return false;
  for (uint32_t island = 0; island < watch->islands.n; island++)
    if (!take_watched(engine, watch, island, &watch->watched[island])) return false;
  watch->sums = PL_TAKE(arena, uint64_t, n_sums(engine, graph->n_devices));
  watch->sums_before = PL_TAKE(arena, uint64_t, n_sums(engine, graph->n_devices));
  watch->peak = PL_TAKE(arena, uint64_t, graph->n_devices);
  if (arena->failed) return false;
  for (uint32_t task = 0; task < graph->n_tasks; task++)
    engine->start[task] = engine->finish[task] = PL_TICKS_NEVER;
  engine->watch = watch;
  return true;
}

/* ---- sums ---- */

static void raise(int64_t *most, int64_t value) {
  if (value > *most) *most = value;
}

/* Events; then of each device the bytes held and, where there is an overlap factor, what it added and who waited. */
static void write_sums(const pl_engine *engine, const pl_watched *own, uint64_t *sums) {
  *sums++ = own->n_events;
  for (uint32_t at = 0; at < own->n_devices; at++) {
    uint32_t device = own->devices[at];
    *sums++ = (uint64_t)engine->balance[device].bytes;
    if (engine->overlap == NULL) continue;
    for (uint32_t category = 0; category < PL_CATEGORY_COUNT; category++)
      *sums++ = (uint64_t)engine->overlap->extra[(size_t)device * PL_CATEGORY_COUNT + category];
    *sums++ = (uint64_t)engine->overlap->waiting[device];
  }
}

/* Peaks begin anew at each mark. */
static void write_peaks(pl_engine *engine, pl_watched *own, uint64_t *peak) {
  for (uint32_t at = 0; at < own->n_devices; at++) {
    pl_balance *balance = &engine->balance[own->devices[at]];
    raise(&own->peak[at], balance->peak_bytes);
    peak[at] = (uint64_t)balance->peak_bytes;
    balance->peak_bytes = balance->bytes;
  }
}

/* False: no memory. */
static bool note_sums(pl_engine *engine, pl_watched *own, pl_watch_mark *mark) {
  pl_watch *watch = engine->watch;
  write_sums(engine, own, watch->sums);
  write_peaks(engine, own, watch->peak);
  return pl_packed_fill(&mark->sums, watch->sums, n_sums(engine, own->n_devices), engine->arena) &&
         pl_packed_fill(&mark->peak, watch->peak, own->n_devices, engine->arena);
}

/* ---- recurrences ---- */

static pl_watch_mark *mark_of(const pl_watched *own, uint32_t number) {
  return &own->marks[number % own->n_marks];
}

/* By device: the most that was held from `before` on, until now, into watch->peak. */
static void find_peaks(const pl_engine *engine, const pl_watched *own, uint32_t before, uint32_t mark) {
  const pl_watch *watch = engine->watch;
  size_t per_device = n_sums(engine, 1) - 1;
  for (uint32_t at = 0; at < own->n_devices; at++)
    watch->peak[at] = watch->sums_before[1 + at * per_device];
  for (uint32_t number = before + 1; number <= mark; number++) {
    if (mark_of(own, number)->noted != number) continue;
    uint64_t *since = watch->sums; /* done with */
    pl_packed_read(&mark_of(own, number)->peak, since, own->n_devices);
    for (uint32_t at = 0; at < own->n_devices; at++)
      if ((int64_t)since[at] > (int64_t)watch->peak[at]) watch->peak[at] = since[at];
  }
}

/* What the time since `before` has added, `times` times. Of the repetitions the first or the last holds the most. */
static void repeat_sums(pl_engine *engine, pl_watched *own, const pl_watch_mark *before, const pl_watch_mark *mark,
                        uint64_t times) {
  const pl_watch *watch = engine->watch;
  const uint64_t *past = watch->sums_before;
  pl_packed_read(&before->sums, watch->sums_before, n_sums(engine, own->n_devices));
  find_peaks(engine, own, before->number, mark->number);
  uint64_t n_events = (own->n_events - *past++) * times;
  own->n_events += n_events;
  engine->n_events += n_events;
  for (uint32_t at = 0; at < own->n_devices; at++) {
    pl_balance *balance = &engine->balance[own->devices[at]];
    int64_t more = (balance->bytes - (int64_t)*past++) * (int64_t)times;
    raise(&own->peak[at], (int64_t)watch->peak[at] + more);
    balance->bytes += more;
    balance->peak_bytes += more;
    if (engine->overlap == NULL) continue;
    pl_ticks *extra = &engine->overlap->extra[(size_t)own->devices[at] * PL_CATEGORY_COUNT];
    for (uint32_t category = 0; category < PL_CATEGORY_COUNT; category++)
      extra[category] += (extra[category] - (pl_ticks)*past++) * (pl_ticks)times;
    pl_ticks *waiting = &engine->overlap->waiting[own->devices[at]];
    *waiting += (*waiting - (pl_ticks)*past++) * (pl_ticks)times;
  }
}

static bool same_state(const pl_watch_mark *a, const pl_watch_mark *b) {
  return a->digest == b->digest && pl_packed_same(&a->state, &b->state);
}

/* Leaps from the nearest mark before that has the same state and goes into the periods wanted in whole numbers. If
 * there is none, says how far back the nearest is. */
static void compare(pl_engine *engine, uint32_t island, const pl_watch_mark *mark) {
  pl_watched *own = &engine->watch->watched[island];
  uint64_t n_more = engine->options.n_more;
  uint32_t nearest = 0;
  for (uint32_t distance = 1; distance < own->n_marks && distance <= mark->number; distance++) {
    const pl_watch_mark *before = mark_of(own, mark->number - distance);
    if (before->number != mark->number - distance || !same_state(before, mark)) continue;
    if (nearest == 0) nearest = distance;
    if (n_more == 0 || n_more % distance != 0) continue;
    own->distance[own->phase] = distance;
    const pl_island_leap leap = {.from = before->now, .to = mark->now, .times = n_more / distance};
    if (pl_watch_leap(engine, island, distance, &engine->watch->state, &leap))
      repeat_sums(engine, own, before, mark, leap.times);
    return;
  }
  uint32_t *found = &own->distance[own->phase];
  if (nearest != 0 && (*found == 0 || n_more % *found != 0)) *found = nearest;
}

static void write_state(pl_engine *engine, uint32_t island, uint32_t number, pl_ticks now) {
  pl_watch *watch = engine->watch;
  int phase = watch->watched[island].phase;
  pl_run_state *state = &watch->state;
  state->lanes = &watch->lanes;
  state->island_of = watch->islands.of_task;
  state->island = island;
  state->phase = phase;
  state->shift = number * watch->lanes.period[phase];
  state->now = now;
  state->left_out = engine->options.left_out;
  state->arena = engine->arena;
  pl_watch_write_state(engine, state);
}

static void note_mark(pl_engine *engine, uint32_t island, uint32_t number, pl_ticks now) {
  pl_watched *own = &engine->watch->watched[island];
  const pl_run_state *state = &engine->watch->state;
  pl_watch_mark *mark = mark_of(own, number);
  mark->number = mark->noted = PL_NONE;
  if (!note_sums(engine, own, mark)) return;
  mark->noted = number;
  mark->now = now;
  write_state(engine, island, number, now);
  if (state->outside || !pl_packed_fill(&mark->state, state->words, state->n, engine->arena)) return;
  mark->number = number;
  mark->digest = pl_hash_bytes(mark->state.bytes, mark->state.n, 0);
  compare(engine, island, mark);
}

static bool is_leapt(const pl_watched *own) {
  return own->n_leaps > (uint32_t)own->phase;
}

/* The awaited task has ended, and others after it may have. */
static void look(pl_engine *engine, uint32_t island, pl_ticks now) {
  pl_watch *watch = engine->watch;
  pl_watched *own = &watch->watched[island];
  for (;;) {
    uint32_t passed = PL_NONE;
    while ((own->awaited = next_task(watch, own)) != PL_NONE && engine->finish[own->awaited] <= now)
      passed = own->next++;
    if (passed != PL_NONE && !is_leapt(own)) note_mark(engine, island, passed, now);
    if (own->awaited == PL_NONE && own->n_leaps == 0) watch->is_missed = true;
    if (own->awaited != PL_NONE || own->phase + 1 >= watch->lanes.n_phases) return;
    own->phase++;
    own->next = 0;
    forget_marks(own);
  }
}

void pl_watch_look(pl_engine *engine, pl_ticks now) {
  pl_watch *watch = engine->watch;
  for (uint32_t at = 0; at < watch->n_due; at++)
    look(engine, watch->due[at], now);
  watch->n_due = 0;
}

/* ---- what will not come back ---- */

static pl_ticks start_of_period(const pl_engine *engine, const pl_lane *lane, uint32_t period) {
  const pl_lanes *lanes = &engine->watch->lanes;
  return engine->start[lanes->first_task[lane->first + lane->phases[0].from + period * lanes->period[0]]];
}

/* What is asked of an island that has not leapt is known. */
static bool last_periods_began(const pl_engine *engine, pl_watched *own) {
  const pl_lanes *lanes = &engine->watch->lanes;
  for (; own->n_began < own->n_lanes; own->n_began++) {
    const pl_lane *lane = &lanes->lanes[own->lanes[own->n_began]];
    uint32_t n = (lane->phases[0].to - lane->phases[0].from) / lanes->period[0];
    if (n > 0 && start_of_period(engine, lane, n - 1) == PL_TICKS_NEVER) return false;
  }
  return true;
}

bool pl_watch_has_failed(pl_engine *engine) {
  pl_watch *watch = engine->watch;
  bool has_failed = false;
  for (uint32_t island = 0; island < watch->islands.n; island++) {
    pl_watched *own = &watch->watched[island];
    if (own->n_leaps > 0) continue;
    if ((own->phase == 0 && own->awaited != PL_NONE) || !last_periods_began(engine, own)) return false;
    has_failed |= own->distance[0] == 0;
  }
  watch->is_missed = has_failed; /* else other phases matter, and the run goes on to its end */
  return has_failed;
}

static bool runs_apart(const pl_engine *engine, const pl_watched *own) {
  const pl_lanes *lanes = &engine->watch->lanes;
  pl_ticks least = PL_TICKS_NEVER, most = 0;
  for (uint32_t at = 0; at < own->n_lanes; at++) {
    const pl_lane *lane = &lanes->lanes[own->lanes[at]];
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

/* By how much the fastest lane of the island is ahead of the slowest, per period of the last quarter of them. */
static double lag_of(const pl_engine *engine, const pl_watched *own) {
  const pl_lanes *lanes = &engine->watch->lanes;
  double least = INFINITY, most = 0;
  for (uint32_t at = 0; at < own->n_lanes; at++) {
    const pl_lane *lane = &lanes->lanes[own->lanes[at]];
    uint32_t n = (lane->phases[0].to - lane->phases[0].from) / lanes->period[0];
    if (n < 4) return 0;
    double ticks = (double)(start_of_period(engine, lane, n - 1) - start_of_period(engine, lane, n - 1 - n / 4));
    uint32_t quarter = n / 4;
    double periods = quarter;
    least = fmin(least, ticks / periods);
    most = fmax(most, ticks / periods);
  }
  return most > 0 ? (most - least) / most : 0;
}

double pl_watch_lag(const pl_engine *engine) {
  double lag = 0;
  for (uint32_t island = 0; island < engine->watch->islands.n; island++) {
    const pl_watched *own = &engine->watch->watched[island];
    if (own->n_leaps == 0) lag = fmax(lag, lag_of(engine, own));
  }
  return lag;
}

bool pl_watch_runs_apart(const pl_engine *engine) {
  for (uint32_t island = 0; island < engine->watch->islands.n; island++) {
    const pl_watched *own = &engine->watch->watched[island];
    if (own->n_leaps == 0 && runs_apart(engine, own)) return true;
  }
  return false;
}
