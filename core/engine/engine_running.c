/* Where each device's time goes, found out while a run goes on (core/engine/engine.h, pl_engine_result.spent).
 *
 * Of rolled graphs dates are not kept to the end, so the gap before a task of a compute stream is accounted when the
 * task has ended and the clock moves on. All that the rule asks is known by then: what ended before the task began, and
 * what has begun on the feature stream. How long segments of several parts took is known beforehand; there are as many
 * as the rows say.
 *
 * What accounts look back on is kept: of each stream that they go through, the tasks that end behind the last task that
 * was accounted on the device's compute stream.
 */
#include "core/engine/engine_running.h"

static void set_flags(const pl_account *account, uint8_t *flags) {
  const pl_graph *graph = account->graph;
  for (uint32_t row = 0; row < pl_graph_n_rows(graph); row++) {
    const pl_task *record = &graph->tasks[row];
    for (uint32_t member = 0; member < record->n_streams; member++) {
      uint32_t stream = graph->task_streams[record->first_stream + member];
      if (graph->streams[stream].kind == PL_STREAM_COMPUTE) flags[row] |= PL_IS_COMPUTED;
      if (account->is_listed[stream] && pl_account_is_communication(record)) flags[row] |= PL_IS_LISTED;
    }
  }
}

bool pl_running_take(pl_engine *engine) {
  const pl_graph *graph = engine->graph;
  pl_arena *arena = engine->arena;
  pl_running_account *own = PL_TAKE(arena, pl_running_account, 1);
  if (own == NULL) return false;
  pl_account *account = &own->account;
  *account = (pl_account){.engine = engine, .graph = graph, .weight = 1, .copied = PL_NONE};
  account->spent = PL_TAKE(arena, pl_ticks, (size_t)graph->n_devices * PL_CATEGORY_COUNT);
  account->idle = PL_TAKE(arena, pl_ticks, graph->n_devices);
  account->runs = PL_TAKE(arena, pl_account_run, graph->n_streams);
  uint8_t *flags = PL_TAKE(arena, uint8_t, pl_graph_n_rows(graph));
  own->until = PL_TAKE(arena, pl_ticks, graph->n_devices);
  own->room = PL_TAKE(arena, uint32_t, graph->n_streams);
  if (arena->failed || !pl_account_take(account)) return false;
  if (engine->options.record_charges) {
    account->charges = &own->charges;
    if (!pl_account_take_charges(account, account->charges)) return false;
  }
  set_flags(account, flags);
  engine->accounted = flags;
  engine->spent = own;
  return true;
}

/* ---- what is noted ---- */

/* Leaves out what nobody will ask for. */
static void shorten(const pl_running_account *own, uint32_t stream) {
  const pl_account *account = &own->account;
  pl_account_run *run = &account->runs[stream];
  pl_ticks since = own->until[account->graph->streams[stream].device];
  while (run->first < run->end && pl_engine_finish_of(account->engine, *run->first) <= since)
    run->first++;
}

/* What was gone past makes room. */
void pl_running_append(pl_running_account *own, uint32_t stream, uint32_t task) {
  pl_account *account = &own->account;
  pl_account_run *run = &account->runs[stream];
  uint32_t n_all = (uint32_t)(run->end - run->all), n = (uint32_t)(run->end - run->first);
  if (n_all == own->room[stream] || run->all == NULL) {
    bool fits = run->all != NULL && n <= own->room[stream] / 2;
    uint32_t room = fits ? own->room[stream] : 2 * own->room[stream] + 8;
    uint32_t *to = fits ? run->all : pl_arena_take(account->engine->arena, room * sizeof *to, _Alignof(uint32_t));
    if (to == NULL) return;
    for (uint32_t at = 0; at < n; at++)
      to[at] = run->first[at];
    *run = (pl_account_run){.all = to, .first = to, .end = to + n};
    own->room[stream] = room;
  }
  *run->end++ = task;
}

void pl_running_note_listed(pl_engine *engine, uint32_t task, const pl_dated *dated) {
  pl_running_account *own = engine->spent;
  const pl_task *record = &engine->tasks[dated->row];
  for (uint32_t member = 0; member < record->n_streams; member++) {
    uint32_t stream = pl_task_streams(engine, record)[member];
    if (!own->account.is_listed[stream]) continue;
    shorten(own, stream);
    pl_running_append(own, stream, task);
  }
}

static void charge_task(pl_running_account *own, uint32_t device, uint32_t task, const pl_dated *dated) {
  pl_account *account = &own->account;
  const pl_task *record = &account->graph->tasks[dated->row];
  if (dated->start > own->until[device]) pl_account_charge_gap(account, device, own->until[device], dated->start, task);
  account->last[device] = task;
  own->until[device] = dated->finish;
  if (record->kind != PL_TASK_WORK || account->totals_of[record->index] == PL_NONE)
    account->spent[(size_t)device * PL_CATEGORY_COUNT + record->category] += dated->finish - dated->start;
}

/* Where there is no gap, nothing more has to be known. */
void pl_running_note_computed(pl_engine *engine, uint32_t task, const pl_dated *dated) {
  pl_running_account *own = engine->spent;
  const pl_task *record = &engine->tasks[dated->row];
  for (uint32_t member = 0; member < record->n_streams; member++) {
    const pl_stream *stream = &engine->graph->streams[pl_task_streams(engine, record)[member]];
    if (stream->kind != PL_STREAM_COMPUTE) continue;
    if (own->n_ended == 0 && dated->start == own->until[stream->device]) {
      charge_task(own, stream->device, task, dated);
      continue;
    }
    pl_ended *grown = pl_arena_grown(engine->arena, own->ended, own->n_ended, 1, sizeof *grown, &own->ended_room);
    if (grown == NULL) return;
    own->ended = grown;
    own->ended[own->n_ended++] = (pl_ended){.task = task, .device = stream->device};
  }
}

/* ---- what is kept ---- */

/* Of a task that has not finished: accounts go back to where its own devices are accounted, of others to where any is.
 */
static pl_ticks looked_back(const pl_running_account *own, const pl_dated *dated, pl_ticks least) {
  const pl_graph *graph = own->account.graph;
  const pl_task *record = &graph->tasks[dated->row];
  pl_ticks since = PL_TICKS_NEVER;
  for (uint32_t member = 0; member < record->n_streams; member++) {
    const pl_stream *stream = &graph->streams[graph->task_streams[record->first_stream + member]];
    if (stream->kind != PL_STREAM_COMPUTE) return least;
    if (own->until[stream->device] < since) since = own->until[stream->device];
  }
  return since < PL_TICKS_NEVER ? since : least;
}

static void mark_open(const pl_running_account *own, const pl_dates_page *page, pl_ticks least) {
  for (uint32_t at = 0; at < PL_DATES_PAGE; at++) {
    const pl_dated *dated = &page->dated[at];
    uint32_t task = page->number * PL_DATES_PAGE + at;
    if (task >= own->account.graph->n_tasks) return;
    if ((dated->finish >= 0 && dated->finish != PL_TICKS_NEVER) || dated->last == PL_NONE) continue;
    pl_dates_mark_causes(own->account.engine->dates, task, looked_back(own, dated, least));
  }
}

static void sweep(const pl_running_account *own) {
  const pl_account *account = &own->account;
  const pl_graph *graph = account->graph;
  pl_dates *dates = account->engine->dates;
  pl_ticks least = PL_TICKS_NEVER;
  for (uint32_t device = 0; device < graph->n_devices; device++)
    if (own->until[device] < least) least = own->until[device];
  pl_dates_begin_sweep(dates);
  for (uint32_t device = 0; device < graph->n_devices; device++)
    if (account->last[device] != PL_NONE) pl_dates_mark(dates, account->last[device]);
  for (uint32_t stream = 0; stream < graph->n_streams; stream++) {
    if (!account->is_listed[stream]) continue;
    shorten(own, stream);
    for (const uint32_t *at = account->runs[stream].first; at < account->runs[stream].end; at++) {
      pl_dates_mark(dates, *at);
      pl_dates_mark_causes(dates, *at, own->until[graph->streams[stream].device]);
    }
  }
  for (uint32_t at = 0; at < dates->n_open; at++)
    if (dates->open[at]->n_open > 0) mark_open(own, dates->open[at], least);
  pl_dates_end_sweep(dates);
}

void pl_running_settle(pl_engine *engine) {
  pl_running_account *own = engine->spent;
  for (uint32_t at = 0; at < own->n_ended; at++)
    charge_task(own, own->ended[at].device, own->ended[at].task, pl_dates_at(engine->dates, own->ended[at].task));
  own->n_ended = 0;
  if (pl_dates_are_many(engine->dates)) sweep(own);
}

/* ---- the end ---- */

/* Segments of several parts. */
static void add_segments(const pl_account *account) {
  const pl_graph *graph = account->graph;
  for (uint32_t row = 0; row < pl_graph_n_rows(graph); row++) {
    const pl_task *record = &graph->tasks[row];
    uint32_t totals = record->kind == PL_TASK_WORK ? account->totals_of[record->index] : PL_NONE;
    if (totals == PL_NONE) continue;
    for (uint32_t member = 0; member < record->n_streams; member++) {
      const pl_stream *stream = &graph->streams[graph->task_streams[record->first_stream + member]];
      if (stream->kind != PL_STREAM_COMPUTE) continue;
      for (uint32_t category = 0; category < PL_CATEGORY_COUNT; category++)
        account->spent[(size_t)stream->device * PL_CATEGORY_COUNT + category] +=
            account->totals[totals][category] * pl_graph_row_count(graph, row);
    }
  }
}

bool pl_running_finish(pl_engine *engine, pl_ticks makespan, pl_ticks *spent, pl_ticks *idle, pl_charges *charges) {
  pl_running_account *own = engine->spent;
  pl_account *account = &own->account;
  const pl_graph *graph = engine->graph;
  pl_running_settle(engine);
  add_segments(account);
  for (uint32_t device = 0; device < graph->n_devices; device++)
    pl_account_charge_tail(account, device, makespan);
  if (engine->overlap != NULL) pl_account_add_disturbances(account);
  for (size_t at = 0; at < (size_t)graph->n_devices * PL_CATEGORY_COUNT; at++)
    spent[at] = account->spent[at];
  for (uint32_t device = 0; device < graph->n_devices; device++)
    idle[device] = account->idle[device];
  if (charges != NULL) *charges = own->charges;
  return !engine->arena->failed;
}
