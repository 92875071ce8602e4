/* Whether an island whose state came back can be leapt over (core/engine/engine.h, leaps), and the leap.
 *
 * The words of two marks say that the future of both is the same if the tasks ahead are. That they are is what lanes
 * promise; here it is looked at once more, and so is the past that accounts look back on. Let the state at `to` be that
 * of `from`. Accounts charge a stretch to what was waited for, and ask how long tasks ran that ended in it, so they see
 * as far back as the horizon: the earliest of what was under way at `from`, be it a task or a gap on a compute stream.
 * From there on to `from` every task must have its likeness a period later, with dates, predecessor that came last,
 * successors and all; and no other task may have ended in the time where the likenesses are. Then each repetition of
 * (from, to] adds to every sum what the first one did, and what comes after `to` sees the past that it would have seen.
 *
 * The leap puts off whatever is under way in the island, and the run goes on with the dates of the longer one. That the
 * other islands leave it alone in between is seen at the end, when it is known what ran then. There, too, the dates of
 * tasks are put back into the time of the shorter run, of which the leaps tell what comes how often.
 */
#include "core/base/multiple.h"
#include "core/engine/engine_state.h"

typedef struct extending {
  const pl_engine *engine;
  const pl_graph *graph;
  const pl_lanes *lanes;
  const pl_watched *island;
  int phase;
  uint32_t shift; /* steps */
  pl_ticks from, to, period, horizon;
} extending;

/* ---- the horizon ---- */

/* When the gaps began that are open at `from`. False: a compute stream has not run yet. */
static bool look_at_gaps(extending *own) {
  const pl_engine *engine = own->engine;
  const pl_graph *graph = own->graph;
  pl_arena_mark mark = pl_arena_mark_here(engine->arena);
  pl_ticks *latest = PL_TAKE(engine->arena, pl_ticks, graph->n_devices);
  bool *has_run = PL_TAKE(engine->arena, bool, graph->n_devices);
  bool all = latest != NULL && has_run != NULL;
  for (uint32_t lane = 0; all && lane < own->island->n_lanes; lane++) {
    pl_lane_tasks tasks = pl_lanes_tasks(own->lanes, own->island->lanes[lane]);
    for (uint32_t task = tasks.first; task < tasks.end; task++) {
      if (engine->finish[task] > own->from) continue;
      for (uint32_t member = 0; member < graph->tasks[task].n_streams; member++) {
        const pl_stream *stream = &graph->streams[graph->task_streams[graph->tasks[task].first_stream + member]];
        if (stream->kind != PL_STREAM_COMPUTE) continue;
        if (engine->finish[task] > latest[stream->device]) latest[stream->device] = engine->finish[task];
        has_run[stream->device] = true;
      }
    }
  }
  for (uint32_t at = 0; all && at < own->island->n_devices; at++) {
    uint32_t device = own->island->devices[at];
    if (latest[device] < own->horizon) own->horizon = latest[device];
    all &= has_run[device];
  }
  pl_arena_release_to(engine->arena, mark);
  return all;
}

/* When what is under way at `from` began: tasks, and the other tasks of their steps where a communication is several of
 * them. */
static void look_at_steps(extending *own) {
  const pl_engine *engine = own->engine;
  bool together = own->graph->n_streamless_tasks > 0;
  for (uint32_t at = 0; at < own->island->n_lanes; at++) {
    const pl_lane *lane = &own->lanes->lanes[own->island->lanes[at]];
    for (uint32_t step = 0; step < lane->n_steps; step++) {
      const uint32_t *first = &own->lanes->first_task[lane->first + step];
      pl_ticks earliest = PL_TICKS_NEVER;
      bool under_way = false;
      for (uint32_t task = first[0]; task < first[1]; task++) {
        bool runs = engine->start[task] <= own->from && engine->finish[task] > own->from;
        under_way |= engine->finish[task] > own->from;
        if ((runs || together) && engine->start[task] < earliest) earliest = engine->start[task];
      }
      if (under_way && earliest < own->horizon) own->horizon = earliest;
    }
  }
}

/* ---- likenesses ---- */

static uint32_t later(const extending *own, uint32_t task) {
  return pl_lanes_later(own->lanes, task, own->phase, own->shift);
}

static bool have_like_successors(const extending *own, const pl_task *a, const pl_task *b) {
  if (a->n_successors != b->n_successors) return false;
  for (uint32_t at = 0; at < a->n_successors; at++) {
    uint32_t successor = own->graph->successors[a->first_successor + at];
    uint32_t other = own->graph->successors[b->first_successor + at];
    if (later(own, successor) != other || !pl_graph_tasks_alike(own->graph, successor, other)) return false;
  }
  return true;
}

static bool have_like_causes(const extending *own, uint32_t task, uint32_t other) {
  const pl_engine *engine = own->engine;
  uint32_t cause = engine->wait[task].last, other_cause = engine->wait[other].last;
  if (cause == PL_NONE || other_cause == PL_NONE) return cause == other_cause;
  return engine->finish[cause] >= own->horizon && later(own, cause) == other_cause;
}

/* A task of the time from the horizon to `from`. */
static bool comes_again(const extending *own, uint32_t task) {
  const pl_engine *engine = own->engine;
  uint32_t other = later(own, task);
  if (other == PL_NONE || !pl_graph_tasks_alike(own->graph, task, other)) return false;
  if (engine->start[task] >= own->horizon &&
      (engine->start[other] != engine->start[task] + own->period || !have_like_causes(own, task, other)))
    return false;
  if (engine->finish[task] > own->from) return engine->finish[other] > own->to;
  return engine->finish[other] == engine->finish[task] + own->period &&
         have_like_successors(own, &own->graph->tasks[task], &own->graph->tasks[other]);
}

/* Tasks that wait at `from` have their likenesses, too. */
static bool is_waited_for(const extending *own, uint32_t task) {
  const pl_graph *graph = own->graph;
  const pl_task *record = &graph->tasks[task];
  for (uint32_t at = record->first_successor; at < record->first_successor + record->n_successors; at++) {
    uint32_t successor = graph->successors[at];
    if (own->engine->start[successor] <= own->from) continue;
    uint32_t other = later(own, successor);
    if (other == PL_NONE || !pl_graph_tasks_alike(own->graph, successor, other)) return false;
  }
  return true;
}

static bool recurs(const extending *own) {
  const pl_engine *engine = own->engine;
  uint32_t n_before = 0, n_after = 0;
  for (uint32_t lane = 0; lane < own->island->n_lanes; lane++) {
    pl_lane_tasks tasks = pl_lanes_tasks(own->lanes, own->island->lanes[lane]);
    for (uint32_t task = tasks.first; task < tasks.end; task++) {
      pl_ticks finish = engine->finish[task];
      n_before += finish >= own->horizon && finish <= own->from;
      n_after += finish >= own->horizon + own->period && finish <= own->to;
      if (finish >= own->horizon && engine->start[task] <= own->from && !comes_again(own, task)) return false;
      if (finish <= own->from && !is_waited_for(own, task)) return false;
    }
  }
  return n_before == n_after;
}

/* ---- the leap ---- */

static pl_ticks put_off(pl_ticks date, pl_ticks by) {
  return date >= PL_TICKS_MAX ? date : pl_later(date, by);
}

static void put_off_walkers(pl_engine *engine, const pl_watched *island, pl_ticks by) {
  for (uint32_t at = 0; at < island->n_devices; at++) {
    pl_walker *walker = &engine->overlap->walkers[island->devices[at]];
    walker->part_start = put_off(walker->part_start, by);
    walker->part_finish = put_off(walker->part_finish, by);
    walker->key = put_off(walker->key, by);
    walker->updated = put_off(walker->updated, by);
    walker->last_arrival = put_off(walker->last_arrival, by);
  }
}

/* Those of streams, and of the tasks that have none. */
static void put_off_timers(pl_engine *engine, uint32_t island, pl_ticks by) {
  pl_event_heap *heap = &engine->heap;
  for (uint32_t slot = 0; slot < heap->capacity; slot++) {
    uint32_t at = heap->position[slot];
    if (at == PL_NONE || pl_watch_island(engine->watch, heap->events[at].order) != island) continue;
    pl_event_heap_put(heap, slot, put_off(heap->events[at].time, by), heap->events[at].order);
  }
}

/* What is under way becomes its likeness of so much later. */
static void put_off_tasks(pl_engine *engine, const pl_watched *island, pl_ticks by) {
  for (uint32_t lane = 0; lane < island->n_lanes; lane++) {
    pl_lane_tasks tasks = pl_lanes_tasks(&engine->watch->lanes, island->lanes[lane]);
    for (uint32_t task = tasks.first; task < tasks.end; task++)
      if (engine->finish[task] == PL_TICKS_NEVER) engine->start[task] = put_off(engine->start[task], by);
  }
}

/* Parts that are recorded go with their tasks. */
static void put_off_spans(pl_engine *engine, uint32_t island, pl_ticks by) {
  for (uint32_t at = 0; engine->spans != NULL && at < engine->n_spans; at++) {
    pl_part_span *span = &engine->spans[at];
    if (engine->finish[span->task] != PL_TICKS_NEVER || pl_watch_island(engine->watch, span->task) != island) continue;
    span->start = put_off(span->start, by);
    span->finish = put_off(span->finish, by);
  }
}

static void put_off_island(pl_engine *engine, uint32_t island, const pl_run_state *state, pl_ticks by) {
  const pl_watched *own = &engine->watch->watched[island];
  put_off_tasks(engine, own, by);
  put_off_spans(engine, island, by);
  put_off_timers(engine, island, by);
  if (engine->overlap != NULL) put_off_walkers(engine, own, by);
  if (engine->network != NULL) engine->network_next = engine->network->ops->put_off(engine->network, state, by);
}

bool pl_watch_leap(pl_engine *engine, uint32_t island, uint32_t distance, const pl_run_state *state,
                   const pl_island_leap *leap) {
  pl_watched *watched = &engine->watch->watched[island];
  extending own = {.engine = engine,
                   .graph = engine->graph,
                   .lanes = &engine->watch->lanes,
                   .island = watched,
                   .phase = watched->phase,
                   .shift = distance * engine->watch->lanes.period[watched->phase],
                   .from = leap->from,
                   .to = leap->to,
                   .period = leap->to - leap->from,
                   .horizon = leap->from};
  if (watched->n_leaps != (uint32_t)watched->phase || !look_at_gaps(&own)) return false;
  look_at_steps(&own);
  if (!recurs(&own)) return false;
  pl_island_leap *done = &watched->leaps[watched->n_leaps++];
  *done = *leap;
  double by = (double)own.period * (double)leap->times;
  done->put_off = by >= (double)PL_TICKS_MAX ? PL_TICKS_MAX : own.period * (pl_ticks)leap->times;
  put_off_island(engine, island, state, done->put_off);
  return true;
}

/* ---- the dates of the shorter run ---- */

pl_ticks pl_watch_put_off(const pl_watched *island, pl_ticks date) {
  pl_ticks by = 0;
  for (uint32_t at = 0; at < island->n_leaps; at++)
    if (date > island->leaps[at].to) by += island->leaps[at].put_off;
  return by;
}

/* Nothing that came to the island from outside ran while it was leapt over. */
static bool was_alone(const pl_engine *engine, uint32_t island) {
  const pl_watch *watch = engine->watch;
  const pl_watched *own = &watch->watched[island];
  if (watch->islands.n == 1) return true;
  for (uint32_t task = 0; task < engine->graph->n_tasks; task++)
    for (uint32_t at = 0; at < own->n_leaps; at++) {
      const pl_island_leap *leap = &own->leaps[at];
      if (watch->islands.of_task[task] == island || engine->finish[task] <= leap->to ||
          engine->start[task] > pl_later(leap->to, leap->put_off))
        continue;
      if (pl_islands_touch(&watch->islands, engine->graph, task, island)) return false;
    }
  return true;
}

static void put_back_dates(pl_engine *engine) {
  const pl_watch *watch = engine->watch;
  for (uint32_t at = 0; engine->spans != NULL && at < engine->n_spans; at++) {
    pl_part_span *span = &engine->spans[at];
    uint32_t island = pl_watch_island(watch, span->task);
    pl_ticks by = pl_watch_put_off(&watch->watched[island], engine->finish[span->task]);
    span->start -= by;
    span->finish -= by;
  }
  for (uint32_t task = 0; task < engine->graph->n_tasks; task++) {
    pl_ticks by = pl_watch_put_off(&watch->watched[pl_watch_island(watch, task)], engine->finish[task]);
    engine->start[task] -= by;
    engine->finish[task] -= by;
  }
}

/* In the time of the shorter run, in which `to` of a second leap is as much earlier as the first one put off. */
static bool list_leaps(pl_engine *engine) {
  const pl_watch *watch = engine->watch;
  uint32_t n_phases = (uint32_t)watch->lanes.n_phases;
  pl_leap *leaps = PL_TAKE(engine->arena, pl_leap, (size_t)watch->islands.n * n_phases);
  if (leaps == NULL) return false;
  for (uint32_t island = 0; island < watch->islands.n; island++) {
    const pl_watched *own = &watch->watched[island];
    for (uint32_t at = 0; at < own->n_leaps; at++) {
      pl_ticks by = pl_watch_put_off(own, own->leaps[at].to);
      leaps[island * n_phases + at] =
          (pl_leap){.from = own->leaps[at].from - by, .to = own->leaps[at].to - by, .times = own->leaps[at].times};
    }
  }
  engine->leaps =
      (pl_leaps){.leaps = leaps, .n = n_phases, .n_islands = watch->islands.n, .island_of = watch->islands.of_task};
  return true;
}

bool pl_watch_finish(pl_engine *engine) {
  const pl_watch *watch = engine->watch;
  for (uint32_t island = 0; island < watch->islands.n; island++)
    if (watch->watched[island].n_leaps < (uint32_t)watch->lanes.n_phases || !was_alone(engine, island)) return false;
  if (watch->lanes.n_phases == 0 || !list_leaps(engine)) return false;
  put_back_dates(engine);
  return true;
}

/* ---- what adds up ---- */

uint32_t pl_watch_distance(const pl_engine *engine, int phase) {
  uint64_t distance = 1;
  for (uint32_t island = 0; island < engine->watch->islands.n; island++) {
    uint32_t own = engine->watch->watched[island].distance[phase];
    if (own == 0) return 0;
    distance = pl_common_multiple(distance, own);
    if (distance > UINT32_MAX) return 0;
  }
  return (uint32_t)distance;
}

void pl_watch_take_peaks(const pl_engine *engine, int64_t *peaks) {
  for (uint32_t island = 0; island < engine->watch->islands.n; island++) {
    const pl_watched *own = &engine->watch->watched[island];
    for (uint32_t at = 0; at < own->n_devices; at++) {
      int64_t last = engine->balance[own->devices[at]].peak_bytes;
      peaks[own->devices[at]] = own->peak[at] > last ? own->peak[at] : last;
    }
  }
}
