/* Whether a run whose state came back can be extended (core/engine/engine.h, leaps), and by what.
 *
 * The words of two marks say that the future of both is the same if the tasks ahead are. That they are is what lanes
 * promise; here it is looked at once more, and so is the past that accounts look back on. Let the state at `to` be that
 * of `from`. Accounts charge a stretch to what was waited for, and ask how long tasks ran that ended in it, so they see
 * as far back as the horizon: the earliest of what was under way at `from`, be it a task or a gap on a compute stream.
 * From there on to `from` every task must have its likeness a period later, with dates, predecessor that came last,
 * successors and all; and no other task may have ended in the time where the likenesses are. Then each repetition of
 * (from, to] adds to every sum what the first one did, and what comes after `to` sees the past that it would have seen.
 */
#include "core/engine/engine_state.h"

typedef struct extending {
  const pl_engine *engine;
  const pl_graph *graph;
  const pl_lanes *lanes;
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
  pl_ticks *latest = PL_TAKE(engine->arena, pl_ticks, graph->n_streams);
  bool *has_run = PL_TAKE(engine->arena, bool, graph->n_streams);
  bool all = latest != NULL && has_run != NULL;
  for (uint32_t task = 0; all && task < graph->n_tasks; task++) {
    if (engine->finish[task] > own->from) continue;
    for (uint32_t member = 0; member < graph->tasks[task].n_streams; member++) {
      uint32_t stream = graph->task_streams[graph->tasks[task].first_stream + member];
      if (engine->finish[task] > latest[stream]) latest[stream] = engine->finish[task];
      has_run[stream] = true;
    }
  }
  for (uint32_t stream = 0; all && stream < graph->n_streams; stream++) {
    if (graph->streams[stream].kind != PL_STREAM_COMPUTE) continue;
    if (latest[stream] < own->horizon) own->horizon = latest[stream];
    all &= has_run[stream];
  }
  pl_arena_release_to(engine->arena, mark);
  return all;
}

/* When what is under way at `from` began: tasks, and the other tasks of their steps where a communication is several of
 * them. */
static void look_at_steps(extending *own) {
  const pl_engine *engine = own->engine;
  bool together = own->graph->n_streamless_tasks > 0;
  for (uint32_t lane = 0; lane < own->lanes->n_lanes; lane++)
    for (uint32_t step = 0; step < own->lanes->lanes[lane].n_steps; step++) {
      const uint32_t *first = &own->lanes->first_task[own->lanes->lanes[lane].first + step];
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
  for (uint32_t task = 0; task < own->graph->n_tasks; task++) {
    pl_ticks finish = engine->finish[task];
    n_before += finish >= own->horizon && finish <= own->from;
    n_after += finish >= own->horizon + own->period && finish <= own->to;
    if (finish >= own->horizon && engine->start[task] <= own->from && !comes_again(own, task)) return false;
    if (finish <= own->from && !is_waited_for(own, task)) return false;
  }
  return n_before == n_after;
}

/* ---- all ---- */

static bool leap_over(pl_engine *engine, int phase) {
  const pl_recurrence *found = &engine->watch->found[phase];
  const pl_lanes *lanes = &engine->watch->lanes;
  uint64_t n_more = engine->options.n_more;
  if (found->distance == 0 || n_more == 0 || n_more % found->distance != 0) return false;
  extending own = {.engine = engine,
                   .graph = engine->graph,
                   .lanes = lanes,
                   .phase = phase,
                   .shift = found->distance * lanes->period[phase],
                   .from = found->from,
                   .to = found->to,
                   .period = found->to - found->from,
                   .horizon = found->from};
  if (!look_at_gaps(&own)) return false;
  look_at_steps(&own);
  if (!recurs(&own)) return false;
  engine->leaps.leaps[engine->leaps.n++] = (pl_leap){.from = own.from, .to = own.to, .times = n_more / found->distance};
  return true;
}

bool pl_watch_leap(pl_engine *engine) {
  bool can = true;
  for (int phase = 0; can && phase < engine->watch->lanes.n_phases; phase++)
    can = leap_over(engine, phase);
  if (!can) engine->leaps.n = 0;
  return engine->leaps.n > 0;
}

static int64_t greater(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* Before the first recurrence; in each of its repetitions, of which one holds the most, the first or the last; and so
 * on with what all of them have left behind. */
int64_t pl_watch_peak(const pl_engine *engine, uint32_t device) {
  const pl_watch *watch = engine->watch;
  int64_t more = 0, peak = INT64_MIN;
  for (uint32_t at = 0; at < engine->leaps.n; at++) {
    const pl_watch_sums *period = &watch->found[at].sums;
    peak = greater(peak, more + period->peak_before[device]);
    peak = greater(peak, more + period->peak[device]);
    more += period->bytes[device] * (int64_t)engine->leaps.leaps[at].times;
    peak = greater(peak, more + period->peak[device]);
  }
  int64_t after = greater(watch->peak_after[device], engine->balance[device].peak_bytes);
  if (engine->leaps.n == 0) after = greater(after, watch->peak_before[device]);
  return greater(peak, more + after);
}
