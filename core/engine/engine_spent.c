/* Where each device's time went (core/engine/engine.h, pl_engine_result.spent): one pass over the finished run.
 *
 * The compute stream divides the makespan into tasks and gaps. A gap before a task goes to what it was waited for; see
 * the header for the rule. It is written so that a fused segment and its parts as separate tasks give the same numbers:
 * a communication part inside a segment is TENSOR time, hence so is a communication on the device's feature stream
 * while the compute stream stands still, whether or not the next task waited for it last (it may end a segment); and
 * what a segment waited for must also be found behind the communication that begins it, hence the walk from predecessor
 * to predecessor. Charging only the last predecessor was tried on paper and fails on both.
 *
 * In-order streams are gone through by task id, all devices at once, because that is how the tasks lie in memory:
 * device by device, the whole run took 1.5 times as long on 500,000 tasks. Ready streams have another order on each
 * device.
 */
#include <string.h>

#include "core/engine/engine_state.h"

/* The tasks of a stream in the order in which they ran. Listed are feature and both gradient streams, and with ready
 * streams all. */
typedef struct pl_runs {
  const uint32_t *offset; /* per stream, n_streams + 1 */
  const uint32_t *tasks;
} pl_runs;

typedef struct pl_device_account {
  uint32_t last;                         /* task on the compute stream so far, PL_NONE: none */
  const uint32_t *feature, *feature_end; /* its feature stream from the first task that ends behind it */
} pl_device_account;

typedef struct pl_account {
  const pl_engine *engine;
  const pl_graph *graph;
  pl_runs runs;
  bool *is_listed;                           /* per stream */
  uint32_t (*streams)[PL_STREAM_KIND_COUNT]; /* per device */
  pl_ticks (*totals)[PL_CATEGORY_COUNT];     /* of segments with several parts */
  uint32_t *totals_of;                       /* per segment */
  /* Per totals: how often they were taken on the first device that took them; what others take is added at once. */
  pl_ticks *taken;
  uint32_t *taker;
  pl_device_account *devices;
  pl_ticks *spent, *idle;
  pl_charges *charges; /* NULL: not asked for */
  pl_ticks weight;     /* how often the gap that is being charged comes in the extended run */
  /* Only where lanes drift: dates are those that what is being charged sees, and if it is copied, so must be all that
   * is looked at. */
  const pl_drift_place *place;
  uint32_t copied; /* PL_NONE: it is not */
  /* Only where there are islands: dates are those that the device sees which is charged. */
  uint32_t island;
} pl_account;

/* Tasks of one stream do not overlap, so this order is unique but for tasks of no duration at one tick. */
static bool ran_before(const pl_engine *engine, uint32_t a, uint32_t b) {
  if (engine->start[a] != engine->start[b]) return engine->start[a] < engine->start[b];
  if (engine->finish[a] != engine->finish[b]) return engine->finish[a] < engine->finish[b];
  return a < b;
}

/* Heap sort; a stream that ran in order is left at once. */
static void sink(const pl_engine *engine, uint32_t *tasks, uint32_t at, uint32_t count) {
  uint32_t task = tasks[at];
  for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && ran_before(engine, tasks[child], tasks[child + 1])) child++;
    if (!ran_before(engine, task, tasks[child])) break;
    tasks[at] = tasks[child];
  }
  tasks[at] = task;
}

static void sort_run(const pl_engine *engine, uint32_t *tasks, uint32_t count) {
  uint32_t sorted = 1;
  while (sorted < count && ran_before(engine, tasks[sorted - 1], tasks[sorted]))
    sorted++;
  if (sorted >= count) return;
  for (uint32_t at = count / 2; at-- > 0;)
    sink(engine, tasks, at, count);
  for (uint32_t end = count; end-- > 1;) {
    uint32_t greatest = tasks[0];
    tasks[0] = tasks[end];
    tasks[end] = greatest;
    sink(engine, tasks, 0, end);
  }
}

static uint32_t *count_runs(const pl_account *account, uint32_t *offset) {
  const pl_graph *graph = account->graph;
  uint32_t total = 0;
  for (uint32_t row = 0; row < pl_graph_n_rows(graph); row++)
    for (uint32_t member = 0; member < graph->tasks[row].n_streams; member++) {
      uint32_t stream = graph->task_streams[graph->tasks[row].first_stream + member];
      if (account->is_listed[stream]) offset[stream] += pl_graph_row_count(graph, row);
    }
  for (uint32_t stream = 0; stream < graph->n_streams; stream++)
    offset[stream] = total += offset[stream];
  offset[graph->n_streams] = total;
  return pl_arena_take(account->engine->arena, total * sizeof(uint32_t), _Alignof(uint32_t));
}

static void fill_runs(const pl_account *account, uint32_t *offset, uint32_t *tasks) {
  const pl_graph *graph = account->graph;
  if (offset[graph->n_streams] == 0) return;
  for (uint32_t task = graph->n_tasks; task-- > 0;)
    for (uint32_t member = 0; member < pl_graph_task(graph, task)->n_streams; member++) {
      uint32_t stream = graph->task_streams[pl_graph_task(graph, task)->first_stream + member];
      if (account->is_listed[stream]) tasks[--offset[stream]] = task;
    }
}

static bool take_runs(pl_account *account) {
  const pl_graph *graph = account->graph;
  bool ready = graph->policy == PL_STREAMS_READY;
  uint32_t *offset = PL_TAKE(account->engine->arena, uint32_t, (size_t)graph->n_streams + 1);
  account->is_listed = PL_TAKE(account->engine->arena, bool, graph->n_streams);
  if (offset == NULL || account->is_listed == NULL) return false;
  for (uint32_t stream = 0; stream < graph->n_streams; stream++)
    account->is_listed[stream] = ready || graph->streams[stream].kind == PL_STREAM_FEATURE ||
                                 graph->streams[stream].kind == PL_STREAM_GRADIENT ||
                                 graph->streams[stream].kind == PL_STREAM_EXPERT_GRADIENT;
  uint32_t *tasks = count_runs(account, offset);
  if (tasks == NULL) return false;
  fill_runs(account, offset, tasks);
  for (uint32_t stream = 0; ready && stream < graph->n_streams; stream++)
    sort_run(account->engine, tasks + offset[stream], offset[stream + 1] - offset[stream]);
  account->runs = (pl_runs){.offset = offset, .tasks = tasks};
  return true;
}

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
  account->taken = PL_TAKE(account->engine->arena, pl_ticks, n_totals);
  account->taker = pl_arena_take(account->engine->arena, n_totals * sizeof(uint32_t), _Alignof(uint32_t));
  if (account->totals == NULL || account->taken == NULL || account->taker == NULL) return false;
  memset(account->taker, 0xff, n_totals * sizeof(uint32_t)); /* PL_NONE */
  for (uint32_t at = 0; at < graph->n_segments; at++) {
    if (account->totals_of[at] == PL_NONE) continue;
    const pl_part *parts = graph->parts + graph->segments[at].first_part;
    for (uint32_t part = 0; part < graph->segments[at].n_parts; part++)
      account->totals[account->totals_of[at]][parts[part].category] += parts[part].ticks;
  }
  return true;
}

static bool take_devices(pl_account *account) {
  const pl_graph *graph = account->graph;
  account->devices = PL_TAKE(account->engine->arena, pl_device_account, graph->n_devices);
  if (account->devices == NULL) return false;
  for (uint32_t device = 0; device < graph->n_devices; device++) {
    account->devices[device].last = PL_NONE;
    uint32_t feature = account->streams[device][PL_STREAM_FEATURE];
    if (feature == PL_NONE) continue;
    account->devices[device].feature = account->runs.tasks + account->runs.offset[feature];
    account->devices[device].feature_end = account->runs.tasks + account->runs.offset[feature + 1];
  }
  return true;
}

/* ---- dates ---- */

/* Dates are in the time of the task's island. */
static pl_ticks shift_between_islands(const pl_account *account, uint32_t task) {
  const pl_watch *watch = account->engine->watch;
  uint32_t island = pl_watch_island(watch, task);
  if (island == account->island) return 0;
  const pl_leaps *leaps = &account->engine->leaps;
  pl_ticks finish = account->engine->finish[task];
  for (uint32_t at = leaps->n; at-- > 0;)
    if (account->engine->finish[task] > leaps->leaps[island * leaps->n + at].to)
      finish += watch->watched[island].leaps[at].put_off;
  return finish - account->engine->finish[task] - pl_watch_put_off(&watch->watched[account->island], finish);
}

static pl_ticks shift_of(const pl_account *account, uint32_t task) {
  if (account->place != NULL) return pl_drift_seen(account->engine->drift, task, account->place);
  return account->engine->leaps.island_of == NULL ? 0 : shift_between_islands(account, task);
}

/* Also sets whose dates are seen. `makespan` is that of the extended run. */
static pl_ticks end_of_device(pl_account *account, uint32_t device, pl_ticks makespan) {
  const pl_watch *watch = account->engine->watch;
  if (watch == NULL || account->engine->drift != NULL) return makespan;
  account->island = watch->islands.of_device[device];
  return makespan - pl_watch_put_off(&watch->watched[account->island], makespan);
}

static pl_ticks start_of(const pl_account *account, uint32_t task) {
  return pl_engine_start(account->engine, task) + shift_of(account, task);
}

static pl_ticks finish_of(const pl_account *account, uint32_t task) {
  return account->engine->finish[task] + shift_of(account, task);
}

/* PL_NONE: behind the last task of all. */
static void look_from(pl_account *account, uint32_t task) {
  static const pl_drift_place end = {.zone = {PL_DRIFT_BEHIND, PL_DRIFT_BEHIND}, .region = -1};
  const pl_drift *drift = account->engine->drift;
  account->copied = PL_NONE;
  if (drift == NULL) return;
  account->place = task == PL_NONE ? &end : &drift->places[task];
  if (account->place->region >= 0 && account->place->period >= PL_DRIFT_COPIED) account->copied = task;
}

/* What is looked at for the sake of a copied task must be copied with it. */
static void look_at(const pl_account *account, uint32_t task) {
  pl_drift *drift = account->engine->drift;
  if (account->copied != PL_NONE && (task == PL_NONE || !pl_drift_together(drift, account->copied, task)))
    drift->lost = true;
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

static bool is_communication(const pl_task *task) {
  return task->kind != PL_TASK_WORK && pl_category_is_communication((pl_category)task->category);
}

/* How much of `task` lies in [from, to]. */
static pl_ticks common_ticks(const pl_account *account, uint32_t task, pl_ticks from, pl_ticks to) {
  pl_ticks start = start_of(account, task), finish = finish_of(account, task);
  if (start > from) from = start;
  if (finish < to) to = finish;
  return to > from ? to - from : 0;
}

static void note_charge(const pl_account *account, uint32_t device, uint32_t task, pl_ticks ticks) {
  pl_charges *charges = account->charges;
  pl_arena *arena = account->engine->arena;
  uint32_t row = pl_graph_row(account->graph, task), *recent = &charges->recent[device][row % PL_RECENT_CHARGES];
  if (*recent > 0 && pl_graph_row(account->graph, charges->charges[*recent - 1].task) == row) {
    charges->charges[*recent - 1].ticks += ticks;
    return;
  }
  pl_charge *grown = pl_arena_grown(arena, charges->charges, charges->n, 1, sizeof *grown, &charges->capacity);
  if (grown == NULL) return;
  charges->charges = grown;
  charges->charges[charges->n++] = (pl_charge){.device = device, .task = task, .ticks = ticks};
  *recent = charges->n;
}

/* `ticks` in which the compute stream of `device` stood still go to communication `task`. */
static void charge(const pl_account *account, uint32_t device, uint32_t task, pl_ticks ticks) {
  account->spent[(size_t)device * PL_CATEGORY_COUNT + pl_graph_task(account->graph, task)->category] +=
      ticks * account->weight;
  if (account->charges != NULL && ticks > 0) note_charge(account, device, task, ticks * account->weight);
}

/* A communication on the feature stream of `device` itself: it may begin a fused segment, so the chain goes on behind
 * it. */
static bool is_own_feature(const pl_account *account, uint32_t device, uint32_t task) {
  const pl_task *record = pl_graph_task(account->graph, task);
  uint32_t own = account->streams[device][PL_STREAM_FEATURE];
  if (own == PL_NONE || !is_communication(record)) return false;
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
    look_at(account, cause);
    if (cause == PL_NONE) break;
    if (!pl_engine_communicates(engine, cause) && !is_own_feature(account, device, cause)) break;
    if (follows_copies(account, later, cause)) engine->drift->lost = true;
    pl_ticks ticks = common_ticks(account, cause, from, to);
    charge(account, device, cause, ticks);
    charged += ticks;
    if (start_of(account, cause) <= from) break;
  }
  account->idle[device] += (to - from - charged) * account->weight;
}

static uint32_t before_on_stream(const pl_account *account, uint32_t device, const uint32_t *at) {
  return at > account->runs.tasks + account->runs.offset[account->streams[device][PL_STREAM_FEATURE]] ? at[-1]
                                                                                                      : PL_NONE;
}

/* [from, to], in which the compute stream stands still, up to the end of the last communication on the feature stream
 * that belongs there; returns that end. `task` ends the gap; PL_NONE: nothing does. */
static pl_ticks charge_features(const pl_account *account, uint32_t device, pl_ticks from, pl_ticks to, uint32_t task) {
  pl_device_account *own = &account->devices[device];
  while (own->feature < own->feature_end && finish_of(account, *own->feature) <= from)
    own->feature++;
  for (const uint32_t *at = own->feature; at < own->feature_end; at++) {
    const pl_task *record = pl_graph_task(account->graph, *at);
    if (!is_communication(record)) continue;
    pl_ticks start = start_of(account, *at), finish = finish_of(account, *at);
    /* One that takes no time and comes at the end of the gap belongs there if it comes before the task. */
    if (start > to || (start == to && (finish > to || *at > task))) {
      look_beyond(account, *at);
      break;
    }
    look_at(account, *at);
    if (start > from && follows_copies(account, *at, before_on_stream(account, device, at)))
      account->engine->drift->lost = true;
    if (start > from) charge_wait(account, device, from, start, *at);
    charge(account, device, *at, common_ticks(account, *at, from, to));
    if (finish > from) from = finish < to ? finish : to;
  }
  return from;
}

/* The gap [from, to] before `task` on the compute stream. */
static void charge_gap(const pl_account *account, uint32_t device, pl_ticks from, pl_ticks to, uint32_t task) {
  from = charge_features(account, device, from, to, task);
  if (from < to) charge_wait(account, device, from, to, task);
}

/* The task before `*at` on the stream with the latest finish, taken from the two gradient streams of a device; and the
 * one before it there. */
static uint32_t take_latest(const pl_account *account, const uint32_t streams[2], uint32_t at[2], uint32_t *before) {
  uint32_t latest = PL_NONE, from = 0;
  *before = PL_NONE;
  for (uint32_t i = 0; i < 2; i++) {
    if (streams[i] == PL_NONE || at[i] == account->runs.offset[streams[i]]) continue;
    uint32_t task = account->runs.tasks[at[i] - 1];
    if (latest != PL_NONE && finish_of(account, task) <= finish_of(account, latest)) continue;
    latest = task;
    from = i;
  }
  if (latest == PL_NONE) return PL_NONE;
  at[from]--;
  if (at[from] > account->runs.offset[streams[from]]) *before = account->runs.tasks[at[from] - 1];
  return latest;
}

/* [from, to] as far as a gradient collective covers it, the latest first: those of the two streams may run at once, and
 * what both cover is charged to the later one. Returns how much. */
static pl_ticks charge_gradients(const pl_account *account, uint32_t device, pl_ticks from, pl_ticks to) {
  const uint32_t streams[2] = {account->streams[device][PL_STREAM_GRADIENT],
                               account->streams[device][PL_STREAM_EXPERT_GRADIENT]};
  uint32_t at[2] = {0, 0}, task, before;
  for (uint32_t i = 0; i < 2; i++)
    if (streams[i] != PL_NONE) at[i] = account->runs.offset[streams[i] + 1];
  pl_ticks charged = 0;
  while ((task = take_latest(account, streams, at, &before)) != PL_NONE && finish_of(account, task) > from) {
    if (!is_communication(pl_graph_task(account->graph, task))) continue;
    pl_ticks ticks = common_ticks(account, task, from, to);
    charged += ticks;
    account->spent[(size_t)device * PL_CATEGORY_COUNT + PL_CATEGORY_DATA] += ticks;
    if (account->charges != NULL && ticks > 0) note_charge(account, device, task, ticks);
    if (start_of(account, task) < to) to = start_of(account, task); /* above it all is counted */
    if (to <= from) break;
    if (follows_copies(account, task, before)) account->engine->drift->lost = true;
  }
  return charged;
}

static void charge_tail(pl_account *account, uint32_t device, pl_ticks to) {
  uint32_t last = account->devices[device].last;
  look_from(account, PL_NONE);
  pl_ticks from = last == PL_NONE ? 0 : finish_of(account, last);
  if (from >= to) return;
  account->weight = 1;
  from = charge_features(account, device, from, to, PL_NONE);
  pl_ticks charged = charge_gradients(account, device, from, to);
  account->idle[device] += to - from - charged;
}

static void add_totals(const pl_account *account, uint32_t device, uint32_t totals, pl_ticks weight) {
  for (uint32_t category = 0; category < PL_CATEGORY_COUNT; category++)
    account->spent[(size_t)device * PL_CATEGORY_COUNT + category] += account->totals[totals][category] * weight;
}

static void add_taken(const pl_account *account) {
  for (uint32_t segment = 0; segment < account->graph->n_segments; segment++) {
    uint32_t totals = account->totals_of[segment];
    if (totals == PL_NONE || account->taker[totals] == PL_NONE) continue;
    add_totals(account, account->taker[totals], totals, account->taken[totals]);
  }
}

/* The next task on the compute stream of `device`, and the gap before it. A stretch counts as often as what ends it:
 * the gap as the start of the task, the task as its finish. */
static void charge_task(pl_account *account, uint32_t device, uint32_t task) {
  const pl_task *record = pl_graph_task(account->graph, task);
  pl_device_account *own = &account->devices[device];
  if (account->engine->leaps.island_of != NULL) account->island = account->engine->watch->islands.of_device[device];
  look_from(account, task);
  pl_ticks start = start_of(account, task), finish = finish_of(account, task), free_since = 0;
  pl_ticks *spent = account->spent + (size_t)device * PL_CATEGORY_COUNT;
  const pl_leaps *leaps = &account->engine->leaps;
  account->weight = (pl_ticks)pl_leaps_weight(leaps, task, start);
  if (own->last != PL_NONE) {
    look_at(account, own->last);
    free_since = finish_of(account, own->last);
  }
  if (start > free_since) charge_gap(account, device, free_since, start, task);
  own->last = task;
  pl_ticks weight = (pl_ticks)pl_leaps_weight(leaps, task, finish);
  uint32_t totals = record->kind == PL_TASK_WORK ? account->totals_of[record->index] : PL_NONE;
  if (totals == PL_NONE) {
    spent[record->category] += (finish - start) * weight;
    return;
  }
  if (account->taker[totals] == PL_NONE) account->taker[totals] = device;
  if (account->taker[totals] == device) {
    account->taken[totals] += weight;
  } else {
    add_totals(account, device, totals, weight);
  }
}

/* ---- all ---- */

static void charge_in_order(pl_account *account) {
  const pl_graph *graph = account->graph;
  for (uint32_t task = 0; task < graph->n_tasks; task++) {
    const pl_task *record = pl_graph_task(graph, task);
    for (uint32_t member = 0; member < record->n_streams; member++) {
      const pl_stream *stream = &graph->streams[graph->task_streams[record->first_stream + member]];
      if (stream->kind == PL_STREAM_COMPUTE) charge_task(account, stream->device, task);
    }
  }
}

static void charge_ready(pl_account *account) {
  for (uint32_t stream = 0; stream < account->graph->n_streams; stream++) {
    if (account->graph->streams[stream].kind != PL_STREAM_COMPUTE) continue;
    for (uint32_t at = account->runs.offset[stream]; at < account->runs.offset[stream + 1]; at++)
      charge_task(account, account->graph->streams[stream].device, account->runs.tasks[at]);
  }
}

/* What the overlap factor has added while the run went on. */
static void add_disturbances(const pl_account *account) {
  const pl_engine *engine = account->engine;
  size_t n_devices = account->graph->n_devices, n_spent = n_devices * PL_CATEGORY_COUNT;
  for (size_t at = 0; at < n_spent; at++)
    account->spent[at] += engine->overlap->extra[at];
  for (size_t device = 0; device < n_devices; device++)
    account->idle[device] += engine->overlap->waiting[device];
  if (engine->drift != NULL) pl_drift_add_notes(engine, account->spent, account->idle);
}

bool pl_engine_account(const pl_engine *engine, pl_ticks makespan, pl_ticks *spent, pl_ticks *idle,
                       pl_charges *charges) {
  const pl_graph *graph = engine->graph;
  pl_account account = {.engine = engine, .graph = graph, .spent = spent, .idle = idle, .charges = charges};
  if (charges != NULL)
    charges->recent =
        pl_arena_take_zeroed(engine->arena, graph->n_devices, sizeof *charges->recent, _Alignof(uint32_t));
  if (!take_runs(&account) || !take_device_streams(&account) || !take_totals(&account) || !take_devices(&account))
    return false;
  if (graph->policy == PL_STREAMS_READY) {
    charge_ready(&account);
  } else {
    charge_in_order(&account);
  }
  add_taken(&account);
  for (uint32_t device = 0; device < graph->n_devices; device++)
    charge_tail(&account, device, end_of_device(&account, device, makespan));
  if (engine->overlap != NULL) add_disturbances(&account);
  return !engine->arena->failed;
}
