/* What a run has come to (core/engine/engine.h, pl_engine_result), and its extension by what is leapt over. */
#include <string.h>

#include "core/base/digest.h"
#include "core/engine/engine_drift.h"
#include "core/engine/engine_state.h"

static pl_code report_stuck(const pl_engine *engine, pl_error *error) {
  /* A network that runs out of memory in the middle of a run goes silent (core/graph/network.h has no status). */
  if (engine->arena->failed) return pl_fail_memory(error, "the transfers of a run");
  uint32_t stuck = 0;
  while (stuck < engine->graph->n_tasks && pl_engine_pending(engine, stuck) == 0)
    stuck++;
  if (stuck == engine->graph->n_tasks)
    return pl_fail(error, PL_BAD_INPUT, "%u tasks were started and never ended: a transfer without progress",
                   engine->n_left);
  const pl_task *task = pl_graph_task(engine->graph, stuck);
  return pl_fail(error, PL_BAD_INPUT,
                 "%u tasks can never start or end, among them task %u (%s), which waits for %u others", engine->n_left,
                 stuck, task->label == PL_NONE ? "unnamed" : engine->graph->names[task->label],
                 pl_engine_pending(engine, stuck));
}

static bool is_span_before(const pl_part_span *a, const pl_part_span *b) {
  if (a->start != b->start) return a->start < b->start;
  if (a->task != b->task) return a->task < b->task;
  return a->part != b->part ? a->part < b->part : a->member < b->member;
}

/* Bottom-up merge sort; false: no memory for the second array. */
static bool sort_spans(pl_part_span **spans, uint32_t count, pl_arena *arena) {
  pl_part_span *from = *spans, *to = pl_arena_take(arena, count * sizeof *to, _Alignof(pl_part_span));
  if (to == NULL) return false;
  for (size_t width = 1; width < count; width *= 2) {
    for (size_t first = 0; first < count; first += 2 * width) {
      size_t middle = first + width < count ? first + width : count;
      size_t end = first + 2 * width < count ? first + 2 * width : count;
      size_t left = first, right = middle;
      for (size_t at = first; at < end; at++)
        to[at] = right == end || (left < middle && !is_span_before(&from[right], &from[left])) ? from[left++]
                                                                                               : from[right++];
    }
    pl_part_span *swap = from;
    from = to;
    to = swap;
  }
  *spans = from;
  return true;
}

/* A sum, so that it may be added up in any order. */
static uint64_t digest_dates(const pl_engine *engine) {
  uint64_t sum = 0;
  for (uint32_t row = 0; engine->dates != NULL && row < pl_graph_n_rows(engine->graph); row++)
    sum += engine->dates->sums[row].summand;
  for (uint32_t task = 0; engine->dates == NULL && task < engine->graph->n_tasks; task++)
    sum += pl_digest_summand(task, pl_hash_pair(pl_engine_start(engine, task), engine->finish[task]));
  return sum;
}

static uint64_t digest_run(const pl_engine *engine, const int64_t *peaks) {
  pl_digest digest;
  pl_digest_init(&digest);
  pl_digest_u64(&digest, digest_dates(engine));
  pl_digest_bytes(&digest, peaks, engine->graph->n_devices * sizeof *peaks);
  if (engine->drift != NULL) pl_digest_u64(&digest, engine->leaps.n_copies);
  for (uint32_t at = 0; at < engine->leaps.n * engine->leaps.n_islands; at++) {
    pl_digest_u64(&digest, (uint64_t)engine->leaps.leaps[at].from);
    pl_digest_u64(&digest, (uint64_t)engine->leaps.leaps[at].to);
    pl_digest_u64(&digest, engine->leaps.leaps[at].times);
  }
  return digest.value;
}

/* Dates stop at PL_TICKS_MAX, and with them the makespan, whether one task lasts so long or all of them together. */
static pl_code check_makespan(pl_ticks makespan, pl_error *error) {
  if (makespan < PL_TICKS_MAX) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED,
                 "the run takes more than 48 days (4.19e6 s), and dates reach no further; make it shorter (a smaller "
                 "batch or sequence, more devices), or look at the units of rates and latencies");
}

static bool leap(pl_engine *engine) {
  if (engine->options.lanes == NULL) return true;
  return engine->watch != NULL ? pl_watch_finish(engine) : pl_drift_leap(engine);
}

static bool take_peaks(const pl_engine *engine, int64_t *peaks) {
  if (engine->drift != NULL) return pl_drift_take_peaks(engine, peaks);
  for (uint32_t device = 0; device < engine->graph->n_devices; device++)
    peaks[device] = engine->balance[device].peak_bytes;
  if (engine->watch != NULL) pl_watch_take_peaks(engine, peaks);
  return true;
}

static bool list_copied(pl_engine *engine) {
  bool *is_copied = PL_TAKE(engine->arena, bool, engine->graph->n_tasks);
  if (is_copied == NULL) return false;
  for (uint32_t task = 0; task < engine->graph->n_tasks; task++)
    is_copied[task] = pl_drift_is_copied(engine->drift, task);
  engine->leaps.is_copied = is_copied;
  engine->leaps.n_copies = engine->drift->times;
  return true;
}

static pl_code report_memory(pl_error *error) {
  return pl_fail_memory(error, "the result of a run");
}

/* Where the time went; with lanes that drift the accounts may still find that the run cannot be extended. */
static pl_code account(pl_engine *engine, pl_engine_result *result, pl_error *error) {
  uint32_t n_devices = engine->graph->n_devices;
  pl_ticks *spent = PL_TAKE(engine->arena, pl_ticks, (size_t)n_devices * PL_CATEGORY_COUNT);
  pl_ticks *idle = PL_TAKE(engine->arena, pl_ticks, n_devices);
  pl_charges charges = {.charges = NULL};
  if (spent == NULL || idle == NULL ||
      !(engine->dates == NULL ? pl_engine_account : pl_running_finish)(
          engine, result->makespan, spent, idle, engine->options.record_charges ? &charges : NULL))
    return report_memory(error);
  result->spent = spent;
  result->idle = idle;
  result->charges = charges.charges;
  result->n_charges = charges.n;
  result->is_whole = engine->drift == NULL || !engine->drift->lost;
  return PL_OK;
}

pl_code pl_engine_finish(pl_engine *engine, pl_engine_result *result, pl_error *error) {
  PL_TRY(check_makespan(engine->makespan, error));
  if (!engine->has_failed && !pl_engine_is_done(engine)) return report_stuck(engine, error);
  bool is_whole = !engine->has_failed && leap(engine);
  *result = (pl_engine_result){.is_whole = is_whole,
                               .n_taken_over = engine->n_taken_over,
                               .makespan = engine->drift != NULL ? pl_drift_makespan(engine) : engine->makespan};
  PL_TRY(check_makespan(result->makespan, error));
  if (engine->watch != NULL) {
    result->n_phases = engine->watch->lanes.n_phases;
    for (int phase = 0; phase < result->n_phases; phase++)
      result->distance[phase] = pl_watch_distance(engine, phase);
  }
  result->lag = !is_whole && engine->watch != NULL ? pl_watch_lag(engine) : 0;
  result->doubt = is_whole || engine->watch != NULL ? PL_DRIFT_NO_DOUBT : engine->doubt;
  result->runs_apart = !is_whole && engine->watch != NULL && pl_watch_runs_apart(engine);
  if (!result->is_whole) return PL_OK;
  if (engine->drift != NULL && !list_copied(engine)) return report_memory(error);
  PL_TRY(account(engine, result, error));
  if (!result->is_whole) return PL_OK;
  int64_t *peaks = PL_TAKE(engine->arena, int64_t, engine->graph->n_devices);
  if (peaks == NULL || !take_peaks(engine, peaks)) return report_memory(error);
  if (engine->spans != NULL && !sort_spans(&engine->spans, engine->n_spans, engine->arena))
    return pl_fail_memory(error, "the parts of a timeline");
  result->leaps = engine->leaps;
  result->start = engine->start;
  if (engine->dates != NULL) {
    result->rows = engine->dates->sums;
    result->n_dates = engine->dates->n_most * PL_DATES_PAGE;
  }
  result->finish = engine->finish;
  result->peak_bytes = peaks;
  result->part_spans = engine->spans;
  result->n_part_spans = engine->n_spans;
  result->n_events = engine->n_events + (engine->drift != NULL ? pl_drift_events(engine) : 0);
  result->digest = digest_run(engine, peaks);
  return PL_OK;
}
