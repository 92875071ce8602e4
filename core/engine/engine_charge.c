/* One stretch in which the compute stream of a device stands still (core/engine/engine_account.h), by the rule of
 * core/engine/engine.h: what it was waited for. */
#include "core/engine/engine_account.h"

#include <string.h>

static bool take_device_streams(pl_account *account) {
  const pl_graph *graph = account->graph;
  size_t size = graph->n_devices * sizeof *account->streams;
  account->streams = pl_arena_take(account->engine->arena, size, _Alignof(uint32_t));
  if (account->streams == NULL) return false;
  memset(account->streams, 0xff, size); /* PL_NONE */
  for (uint32_t stream = 0; stream < graph->n_streams; stream++)
    account->streams[graph->streams[stream].device][graph->streams[stream].kind] = stream;
  return true;
}

/* Segments are few and used often: their time by category is added up once. */
static bool take_totals(pl_account *account) {
  const pl_graph *graph = account->graph;
  uint32_t n_totals = 0;
  account->totals_of = pl_arena_take(account->engine->arena, graph->n_segments * sizeof(uint32_t), _Alignof(uint32_t));
  if (account->totals_of == NULL) return false;
  for (uint32_t at = 0; at < graph->n_segments; at++)
    account->totals_of[at] = graph->segments[at].n_parts > 1 ? n_totals++ : PL_NONE;
  account->totals = pl_arena_take_zeroed(account->engine->arena, n_totals, sizeof *account->totals, _Alignof(pl_ticks));
  if (account->totals == NULL) return false;
  account->n_totals = n_totals;
  for (uint32_t at = 0; at < graph->n_segments; at++) {
    if (account->totals_of[at] == PL_NONE) continue;
    const pl_part *parts = graph->parts + graph->segments[at].first_part;
    for (uint32_t part = 0; part < graph->segments[at].n_parts; part++)
      account->totals[account->totals_of[at]][parts[part].category] += parts[part].ticks;
  }
  return true;
}

bool pl_account_take(pl_account *account) {
  const pl_graph *graph = account->graph;
  pl_arena *arena = account->engine->arena;
  account->is_listed = PL_TAKE(arena, bool, graph->n_streams);
  account->last = pl_arena_take(arena, graph->n_devices * sizeof *account->last, _Alignof(uint32_t));
  if (account->is_listed == NULL || account->last == NULL) return false;
  for (uint32_t stream = 0; stream < graph->n_streams; stream++)
    account->is_listed[stream] =
        graph->policy == PL_STREAMS_READY || graph->streams[stream].kind == PL_STREAM_FEATURE ||
        graph->streams[stream].kind == PL_STREAM_GRADIENT || graph->streams[stream].kind == PL_STREAM_EXPERT_GRADIENT;
  for (uint32_t device = 0; device < graph->n_devices; device++)
    account->last[device] = PL_NONE;
  return take_device_streams(account) && take_totals(account);
}

bool pl_account_take_charges(const pl_account *account, pl_charges *charges) {
  pl_arena *arena = account->engine->arena;
  if (pl_graph_is_rolled(account->graph)) {
    charges->of_row = PL_TAKE(arena, uint32_t, pl_graph_n_rows(account->graph));
    return charges->of_row != NULL;
  }
  charges->recent = pl_arena_take_zeroed(arena, account->graph->n_devices, sizeof *charges->recent, _Alignof(uint32_t));
  return charges->recent != NULL;
}

/* ---- dates ---- */

/* Dates are in the time of the task's island. */
static pl_ticks shift_between_islands(const pl_account *account, uint32_t task) {
  const pl_watch *watch = account->engine->watch;
  uint32_t island = pl_watch_island(watch, task);
  if (island == account->island) return 0;
  const pl_leaps *leaps = &account->engine->leaps;
  pl_ticks finish = pl_engine_finish_of(account->engine, task);
  for (uint32_t at = leaps->n; at-- > 0;)
    if (pl_engine_finish_of(account->engine, task) > leaps->leaps[island * leaps->n + at].to)
      finish += watch->watched[island].leaps[at].put_off;
  return finish - pl_engine_finish_of(account->engine, task) -
         pl_watch_put_off(&watch->watched[account->island], finish);
}

pl_ticks pl_account_shift(const pl_account *account, uint32_t task) {
  if (account->place != NULL) return pl_drift_seen(account->engine->drift, task, account->place);
  return shift_between_islands(account, task);
}

void pl_account_look_from(pl_account *account, uint32_t task) {
  static const pl_drift_place end = {.zone = {PL_DRIFT_BEHIND, PL_DRIFT_BEHIND}, .region = -1};
  const pl_drift *drift = account->engine->drift;
  account->copied = PL_NONE;
  if (drift == NULL) return;
  account->place = task == PL_NONE ? &end : &drift->places[task];
  if (account->place->region >= 0 && account->place->period >= PL_DRIFT_COPIED) account->copied = task;
}

/* The same of one that is too late to matter: it must stay so. */
static void look_beyond(const pl_account *account, uint32_t task) {
  pl_drift *drift = account->engine->drift;
  if (account->copied != PL_NONE && !pl_drift_together(drift, account->copied, task) &&
      drift->shift[task] < drift->last_shift[account->copied])
    drift->lost = true;
}

/* Whether copies lie in front of a task that is seen from behind its region: it is the first of it, of those that are
 * looked at one before the other (PL_NONE: there is none before it). The copies are not among them. */
static bool follows_copies(const pl_account *account, uint32_t task, uint32_t before) {
  if (account->place == NULL) return false;
  const pl_drift *drift = account->engine->drift;
  int8_t region = drift->places[task].region;
  if (region < 0 || account->place->zone[region] <= PL_DRIFT_REGION) return false;
  return before == PL_NONE || drift->places[before].region != region;
}

/* ---- one stretch of a device ---- */

/* How much of `task` lies in [from, to]. */
static pl_ticks common_ticks(const pl_account *account, uint32_t task, pl_ticks from, pl_ticks to) {
  pl_ticks start = pl_account_start(account, task), finish = pl_account_finish(account, task);
  if (start > from) from = start;
  if (finish < to) to = finish;
  return to > from ? to - from : 0;
}

/* False: no memory. */
static bool make_room(pl_charges *charges, pl_arena *arena) {
  pl_charge *grown = pl_arena_grown(arena, charges->charges, charges->n, 1, sizeof *grown, &charges->capacity);
  if (grown == NULL) return false;
  charges->charges = grown;
  if (charges->of_row == NULL) return true;
  uint32_t *next = pl_arena_grown(arena, charges->next, charges->n, 1, sizeof *next, &charges->next_capacity);
  if (next == NULL) return false;
  charges->next = next;
  return true;
}

/* Of rolled graphs, whose rows are few: where the row and device have their entry, + 1; 0: nowhere. */
static uint32_t entry_of_row(const pl_charges *charges, uint32_t device, uint32_t row) {
  uint32_t entry = charges->of_row[row];
  while (entry != 0 && charges->charges[entry - 1].device != device)
    entry = charges->next[entry - 1];
  return entry;
}

/* Of others: where a task that was charged of late has it. */
static uint32_t entry_of_task(const pl_charges *charges, uint32_t device, uint32_t task) {
  uint32_t entry = charges->recent[device][task % PL_RECENT_CHARGES];
  return entry != 0 && charges->charges[entry - 1].task == task ? entry : 0;
}

static void note_charge(const pl_account *account, uint32_t device, uint32_t task, pl_ticks ticks) {
  pl_charges *charges = account->charges;
  uint32_t row = pl_engine_row(account->engine, task);
  bool by_row = charges->of_row != NULL;
  uint32_t entry = by_row ? entry_of_row(charges, device, row) : entry_of_task(charges, device, task);
  if (entry != 0) {
    charges->charges[entry - 1].ticks += ticks;
    return;
  }
  if (!make_room(charges, account->engine->arena)) return;
  charges->charges[charges->n++] = (pl_charge){.device = device, .task = task, .ticks = ticks};
  if (by_row) {
    charges->next[charges->n - 1] = charges->of_row[row];
    charges->of_row[row] = charges->n;
  } else {
    charges->recent[device][row % PL_RECENT_CHARGES] = charges->n;
  }
}

/* `ticks` in which the compute stream of `device` stood still go to communication `task`. */
static void charge(const pl_account *account, uint32_t device, uint32_t task, pl_ticks ticks) {
  account->spent[(size_t)device * PL_CATEGORY_COUNT + pl_engine_task(account->engine, task)->category] +=
      ticks * account->weight;
  if (account->charges != NULL && ticks > 0) note_charge(account, device, task, ticks * account->weight);
}

/* A communication on the feature stream of `device` itself: it may begin a fused segment, so the chain goes on behind
 * it. */
static bool is_own_feature(const pl_account *account, uint32_t device, uint32_t task) {
  const pl_task *record = pl_engine_task(account->engine, task);
  uint32_t own = account->streams[device][PL_STREAM_FEATURE];
  if (own == PL_NONE || !pl_account_is_communication(record)) return false;
  for (uint32_t member = 0; member < record->n_streams; member++)
    if (account->graph->task_streams[record->first_stream + member] == own) return true;
  return false;
}

/* [from, to], in which both the compute and the feature stream of `device` stand still until `target` starts on one of
 * them: what was waited for. */
static void charge_wait(const pl_account *account, uint32_t device, pl_ticks from, pl_ticks to, uint32_t target) {
  const pl_engine *engine = account->engine;
  pl_ticks charged = 0;
  for (uint32_t later = target, cause = pl_engine_cause(engine, target);;
       later = cause, cause = pl_engine_cause(engine, cause)) {
    pl_account_look_at(account, cause);
    if (cause == PL_NONE) break;
    if (!pl_engine_communicates(engine, cause) && !is_own_feature(account, device, cause)) break;
    if (follows_copies(account, later, cause)) engine->drift->lost = true;
    pl_ticks ticks = common_ticks(account, cause, from, to);
    charge(account, device, cause, ticks);
    charged += ticks;
    if (pl_account_start(account, cause) <= from) break;
  }
  account->idle[device] += (to - from - charged) * account->weight;
}

/* [from, to], in which the compute stream stands still, up to the end of the last communication on the feature stream
 * that belongs there; returns that end. `task` ends the gap; PL_NONE: nothing does. */
static pl_ticks charge_features(const pl_account *account, uint32_t device, pl_ticks from, pl_ticks to, uint32_t task) {
  uint32_t stream = account->streams[device][PL_STREAM_FEATURE];
  if (stream == PL_NONE) return from;
  pl_account_run *run = &account->runs[stream];
  while (run->first < run->end && pl_account_finish(account, *run->first) <= from)
    run->first++;
  for (const uint32_t *at = run->first; at < run->end; at++) {
    const pl_task *record = pl_engine_task(account->engine, *at);
    if (!pl_account_is_communication(record)) continue;
    pl_ticks start = pl_account_start(account, *at), finish = pl_account_finish(account, *at);
    /* One that takes no time and comes at the end of the gap belongs there if it comes before the task. */
    if (start > to || (start == to && (finish > to || *at > task))) {
      look_beyond(account, *at);
      break;
    }
    pl_account_look_at(account, *at);
    if (start > from && follows_copies(account, *at, at > run->all ? at[-1] : PL_NONE))
      account->engine->drift->lost = true;
    if (start > from) charge_wait(account, device, from, start, *at);
    charge(account, device, *at, common_ticks(account, *at, from, to));
    if (finish > from) from = finish < to ? finish : to;
  }
  return from;
}

void pl_account_charge_gap(const pl_account *account, uint32_t device, pl_ticks from, pl_ticks to, uint32_t task) {
  from = charge_features(account, device, from, to, task);
  if (from < to) charge_wait(account, device, from, to, task);
}

/* The task before `*at` on the stream with the latest finish, taken from the two gradient streams of a device; and the
 * one before it there. */
static uint32_t take_latest(const pl_account *account, const pl_account_run *runs[2], const uint32_t *at[2],
                            uint32_t *before) {
  uint32_t latest = PL_NONE, from = 0;
  *before = PL_NONE;
  for (uint32_t i = 0; i < 2; i++) {
    if (runs[i] == NULL || at[i] == runs[i]->first) continue;
    uint32_t task = at[i][-1];
    if (latest != PL_NONE && pl_account_finish(account, task) <= pl_account_finish(account, latest)) continue;
    latest = task;
    from = i;
  }
  if (latest == PL_NONE) return PL_NONE;
  at[from]--;
  if (at[from] > runs[from]->all) *before = at[from][-1];
  return latest;
}

/* [from, to] as far as a gradient collective covers it, the latest first: those of the two streams may run at once, and
 * what both cover is charged to the later one. Returns how much. */
static pl_ticks charge_gradients(const pl_account *account, uint32_t device, pl_ticks from, pl_ticks to) {
  const uint32_t streams[2] = {account->streams[device][PL_STREAM_GRADIENT],
                               account->streams[device][PL_STREAM_EXPERT_GRADIENT]};
  const pl_account_run *runs[2] = {NULL, NULL};
  const uint32_t *at[2] = {NULL, NULL};
  uint32_t task, before;
  for (uint32_t i = 0; i < 2; i++) {
    if (streams[i] == PL_NONE) continue;
    runs[i] = &account->runs[streams[i]];
    at[i] = runs[i]->end;
  }
  pl_ticks charged = 0;
  while ((task = take_latest(account, runs, at, &before)) != PL_NONE && pl_account_finish(account, task) > from) {
    if (!pl_account_is_communication(pl_engine_task(account->engine, task))) continue;
    pl_ticks ticks = common_ticks(account, task, from, to);
    charged += ticks;
    account->spent[(size_t)device * PL_CATEGORY_COUNT + PL_CATEGORY_DATA] += ticks;
    if (account->charges != NULL && ticks > 0) note_charge(account, device, task, ticks);
    if (pl_account_start(account, task) < to) to = pl_account_start(account, task); /* above it all is counted */
    if (to <= from) break;
    if (follows_copies(account, task, before)) account->engine->drift->lost = true;
  }
  return charged;
}

void pl_account_charge_tail(pl_account *account, uint32_t device, pl_ticks to) {
  uint32_t last = account->last[device];
  pl_account_look_from(account, PL_NONE);
  pl_ticks from = last == PL_NONE ? 0 : pl_account_finish(account, last);
  if (from >= to) return;
  account->weight = 1;
  from = charge_features(account, device, from, to, PL_NONE);
  pl_ticks charged = charge_gradients(account, device, from, to);
  account->idle[device] += to - from - charged;
}

/* What the overlap factor has added while the run went on. */
void pl_account_add_disturbances(const pl_account *account) {
  const pl_engine *engine = account->engine;
  size_t n_devices = account->graph->n_devices, n_spent = n_devices * PL_CATEGORY_COUNT;
  for (size_t at = 0; at < n_spent; at++)
    account->spent[at] += engine->overlap->extra[at];
  for (size_t device = 0; device < n_devices; device++)
    account->idle[device] += engine->overlap->waiting[device];
  if (engine->drift != NULL) pl_drift_add_notes(engine, account->spent, account->idle);
}
