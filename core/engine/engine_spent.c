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
 * device. Of rolled graphs the same is done while the run goes on (engine_running.c).
 */
#include "core/engine/engine_account.h"

typedef struct spending {
  pl_account account;
  /* Per totals: how often they were taken on the first device that took them, and on the others, if there are any. */
  pl_ticks *taken, **by_others;
  uint32_t *taker;
} spending;

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

/* False: no memory. */
static bool take_runs(pl_account *account) {
  const pl_graph *graph = account->graph;
  pl_arena *arena = account->engine->arena;
  uint32_t *n = PL_TAKE(arena, uint32_t, graph->n_streams);
  account->runs = PL_TAKE(arena, pl_account_run, graph->n_streams);
  if (n == NULL || account->runs == NULL) return false;
  uint32_t total = 0;
  for (uint32_t task = 0; task < graph->n_tasks; task++)
    for (uint32_t member = 0; member < graph->tasks[task].n_streams; member++)
      n[graph->task_streams[graph->tasks[task].first_stream + member]]++;
  for (uint32_t stream = 0; stream < graph->n_streams; stream++)
    if (account->is_listed[stream]) total += n[stream];
  uint32_t *tasks = pl_arena_take(arena, total * sizeof *tasks, _Alignof(uint32_t)), *next = tasks;
  if (tasks == NULL) return false;
  for (uint32_t stream = 0; stream < graph->n_streams; stream++)
    if (account->is_listed[stream]) {
      account->runs[stream] = (pl_account_run){.all = next, .first = next, .end = next};
      next += n[stream];
    }
  for (uint32_t task = 0; task < graph->n_tasks && total > 0; task++)
    for (uint32_t member = 0; member < graph->tasks[task].n_streams; member++) {
      pl_account_run *run = &account->runs[graph->task_streams[graph->tasks[task].first_stream + member]];
      if (run->all != NULL) tasks[run->end++ - tasks] = task;
    }
  for (uint32_t stream = 0; graph->policy == PL_STREAMS_READY && stream < graph->n_streams; stream++)
    sort_run(account->engine, tasks + (account->runs[stream].all - tasks),
             (uint32_t)(account->runs[stream].end - account->runs[stream].all));
  return true;
}

/* ---- one task ---- */

static void add_totals(const pl_account *account, uint32_t device, uint32_t totals, pl_ticks weight) {
  for (uint32_t category = 0; category < PL_CATEGORY_COUNT; category++)
    account->spent[(size_t)device * PL_CATEGORY_COUNT + category] += account->totals[totals][category] * weight;
}

static void add_taken(const spending *own) {
  const pl_account *account = &own->account;
  for (uint32_t segment = 0; segment < account->graph->n_segments; segment++) {
    uint32_t totals = account->totals_of[segment];
    if (totals == PL_NONE || own->taker[totals] == PL_NONE) continue;
    add_totals(account, own->taker[totals], totals, own->taken[totals]);
    for (uint32_t device = 0; own->by_others[totals] != NULL && device < account->graph->n_devices; device++)
      if (own->by_others[totals][device] != 0) add_totals(account, device, totals, own->by_others[totals][device]);
  }
}

/* By a device that is not the first. */
static void take_too(spending *own, uint32_t device, uint32_t totals, pl_ticks weight) {
  const pl_account *account = &own->account;
  pl_ticks **taken = &own->by_others[totals];
  if (*taken == NULL) *taken = PL_TAKE(account->engine->arena, pl_ticks, account->graph->n_devices);
  if (*taken != NULL) (*taken)[device] += weight;
}

/* The next task on the compute stream of `device`, and the gap before it. A stretch counts as often as what ends it:
 * the gap as the start of the task, the task as its finish. */
static void charge_task(spending *own, uint32_t device, uint32_t task) {
  pl_account *account = &own->account;
  const pl_task *record = pl_graph_task(account->graph, task);
  if (account->engine->leaps.island_of != NULL) account->island = account->engine->watch->islands.of_device[device];
  if (account->engine->drift != NULL) pl_account_look_from(account, task);
  pl_ticks start = pl_account_start(account, task), finish = pl_account_finish(account, task), free_since = 0;
  pl_ticks *spent = account->spent + (size_t)device * PL_CATEGORY_COUNT;
  const pl_leaps *leaps = &account->engine->leaps;
  account->weight = (pl_ticks)pl_leaps_weight(leaps, task, start);
  if (account->last[device] != PL_NONE) {
    pl_account_look_at(account, account->last[device]);
    free_since = pl_account_finish(account, account->last[device]);
  }
  if (start > free_since) pl_account_charge_gap(account, device, free_since, start, task);
  account->last[device] = task;
  pl_ticks weight = (pl_ticks)pl_leaps_weight(leaps, task, finish);
  uint32_t totals = record->kind == PL_TASK_WORK ? account->totals_of[record->index] : PL_NONE;
  if (totals == PL_NONE) {
    spent[record->category] += (finish - start) * weight;
    return;
  }
  if (own->taker[totals] == PL_NONE) own->taker[totals] = device;
  if (own->taker[totals] == device) {
    own->taken[totals] += weight;
  } else {
    take_too(own, device, totals, weight);
  }
}

/* ---- all ---- */

static void charge_in_order(spending *own) {
  const pl_graph *graph = own->account.graph;
  for (uint32_t task = 0; task < graph->n_tasks; task++) {
    const pl_task *record = pl_graph_task(graph, task);
    for (uint32_t member = 0; member < record->n_streams; member++) {
      const pl_stream *stream = &graph->streams[graph->task_streams[record->first_stream + member]];
      if (stream->kind == PL_STREAM_COMPUTE) charge_task(own, stream->device, task);
    }
  }
}

static void charge_ready(spending *own) {
  const pl_graph *graph = own->account.graph;
  for (uint32_t stream = 0; stream < graph->n_streams; stream++) {
    if (graph->streams[stream].kind != PL_STREAM_COMPUTE) continue;
    const pl_account_run *run = &own->account.runs[stream];
    for (const uint32_t *at = run->all; at < run->end; at++)
      charge_task(own, graph->streams[stream].device, *at);
  }
}

/* Also sets whose dates are seen. `makespan` is that of the extended run. */
static pl_ticks end_of_device(pl_account *account, uint32_t device, pl_ticks makespan) {
  const pl_watch *watch = account->engine->watch;
  if (watch == NULL || account->engine->drift != NULL) return makespan;
  account->island = watch->islands.of_device[device];
  return makespan - pl_watch_put_off(&watch->watched[account->island], makespan);
}

static bool take(spending *own) {
  pl_account *account = &own->account;
  pl_arena *arena = account->engine->arena;
  if (account->charges != NULL && !pl_account_take_charges(account, account->charges)) return false;
  if (!pl_account_take(account) || !take_runs(account)) return false;
  own->taken = PL_TAKE(arena, pl_ticks, account->n_totals);
  own->by_others = PL_TAKE(arena, pl_ticks *, account->n_totals);
  own->taker = pl_arena_take(arena, account->n_totals * sizeof *own->taker, _Alignof(uint32_t));
  if (own->taken == NULL || own->by_others == NULL || own->taker == NULL) return false;
  for (uint32_t at = 0; at < account->n_totals; at++)
    own->taker[at] = PL_NONE;
  return true;
}

bool pl_engine_account(pl_engine *engine, pl_ticks makespan, pl_ticks *spent, pl_ticks *idle, pl_charges *charges) {
  const pl_graph *graph = engine->graph;
  spending own = {.account = {.engine = engine,
                              .graph = graph,
                              .spent = spent,
                              .idle = idle,
                              .charges = charges,
                              .weight = 1,
                              .copied = PL_NONE}};
  if (!take(&own)) return false;
  if (graph->policy == PL_STREAMS_READY) {
    charge_ready(&own);
  } else {
    charge_in_order(&own);
  }
  add_taken(&own);
  for (uint32_t device = 0; device < graph->n_devices; device++)
    pl_account_charge_tail(&own.account, device, end_of_device(&own.account, device, makespan));
  if (engine->overlap != NULL) pl_account_add_disturbances(&own.account);
  return !engine->arena->failed;
}
