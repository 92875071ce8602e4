/* Where each device's time went (core/engine.h, pl_engine_result.spent): one pass over the finished run.
 *
 * The compute stream divides the makespan into tasks and gaps. A gap before a task goes to what it was waited for; see
 * the header for the rule. It is written so that a fused segment and its parts as separate tasks give the same numbers:
 * a communication part inside a segment is TENSOR time, hence so is a communication on the device's feature stream
 * while the compute stream stands still, whether or not the next task waited for it last (it may end a segment); and
 * what a segment waited for must also be found behind the communication that begins it, hence the walk from predecessor
 * to predecessor. Charging only the last predecessor was tried on paper and fails on both.
 */
#include <string.h>

#include "core/engine_state.h"

/* The tasks of every stream in the order in which they ran. */
typedef struct pl_runs {
  const uint32_t *offset; /* per stream, n_streams + 1 */
  const uint32_t *tasks;
} pl_runs;

typedef struct pl_account {
  const pl_engine *engine;
  const pl_graph *graph;
  pl_runs runs;
  uint32_t (*streams)[PL_STREAM_KIND_COUNT]; /* per device */
  pl_ticks (*totals)[PL_CATEGORY_COUNT];     /* of segments with several parts */
  uint32_t *totals_of;                       /* per segment */
  /* the device in hand */
  uint32_t device;
  const uint32_t *feature, *feature_end; /* its feature stream from the first task that ends behind the gap's begin */
  pl_ticks *spent, *idle;
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

static bool take_runs(pl_account *account) {
  const pl_graph *graph = account->graph;
  uint32_t *offset = PL_TAKE(account->engine->arena, uint32_t, (size_t)graph->n_streams + 1);
  uint32_t *tasks = pl_arena_take(account->engine->arena, graph->n_task_streams * sizeof *tasks, _Alignof(uint32_t));
  if (offset == NULL || tasks == NULL) return false;
  for (uint32_t at = 0; at < graph->n_task_streams; at++)
    offset[graph->task_streams[at]]++;
  uint32_t total = 0;
  for (uint32_t stream = 0; stream < graph->n_streams; stream++)
    offset[stream] = total += offset[stream];
  offset[graph->n_streams] = total;
  for (uint32_t task = graph->n_tasks; task-- > 0;)
    for (uint32_t member = 0; member < graph->tasks[task].n_streams; member++)
      tasks[--offset[graph->task_streams[graph->tasks[task].first_stream + member]]] = task;
  if (graph->policy == PL_STREAMS_READY)
    for (uint32_t stream = 0; stream < graph->n_streams; stream++)
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
  if (account->totals == NULL) return false;
  for (uint32_t at = 0; at < graph->n_segments; at++) {
    if (account->totals_of[at] == PL_NONE) continue;
    const pl_part *parts = graph->parts + graph->segments[at].first_part;
    for (uint32_t part = 0; part < graph->segments[at].n_parts; part++)
      account->totals[account->totals_of[at]][parts[part].category] += parts[part].ticks;
  }
  return true;
}

/* ---- one device ---- */

static bool is_communication(const pl_task *task) {
  return task->kind != PL_TASK_WORK && pl_category_is_communication((pl_category)task->category);
}

static pl_ticks common_ticks(const pl_engine *engine, uint32_t task, pl_ticks from, pl_ticks to) {
  pl_ticks first = engine->start[task] > from ? engine->start[task] : from;
  pl_ticks last = engine->finish[task] < to ? engine->finish[task] : to;
  return last > first ? last - first : 0;
}

/* How long the feature stream communicated in [from, to]; adds it to the categories if `charge`. */
static pl_ticks feature_ticks(pl_account *account, pl_ticks from, pl_ticks to, bool charge) {
  pl_ticks sum = 0;
  for (const uint32_t *task = account->feature; task < account->feature_end; task++) {
    const pl_task *record = &account->graph->tasks[*task];
    if (account->engine->start[*task] >= to) break;
    if (!is_communication(record)) continue;
    pl_ticks ticks = common_ticks(account->engine, *task, from, to);
    if (charge) account->spent[record->category] += ticks;
    sum += ticks;
  }
  return sum;
}

static bool run_has(const pl_account *account, uint32_t stream, uint32_t task) {
  uint32_t low = account->runs.offset[stream], high = account->runs.offset[stream + 1];
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (account->runs.tasks[middle] == task) return true;
    if (ran_before(account->engine, account->runs.tasks[middle], task)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return false;
}

/* A task of many members is looked up in the device's streams rather than the device among the members. */
static bool concerns_device(const pl_account *account, const pl_task *record, uint32_t task) {
  enum { FEW = 16 };
  if (record->n_streams == 0) return true;
  if (record->n_streams <= FEW) {
    for (uint32_t member = 0; member < record->n_streams; member++)
      if (account->graph->streams[account->graph->task_streams[record->first_stream + member]].device ==
          account->device)
        return true;
    return false;
  }
  for (uint32_t kind = 0; kind < PL_STREAM_KIND_COUNT; kind++) {
    uint32_t stream = account->streams[account->device][kind];
    if (stream != PL_NONE && run_has(account, stream, task)) return true;
  }
  return false;
}

/* The gap [from, to] before `task` on the compute stream. */
static void charge_gap(pl_account *account, pl_ticks from, pl_ticks to, uint32_t task) {
  const pl_engine *engine = account->engine;
  while (account->feature < account->feature_end && engine->finish[*account->feature] <= from)
    account->feature++;
  if (from >= to) return;
  pl_ticks charged = feature_ticks(account, from, to, true);
  for (uint32_t cause = engine->wait[task].last; cause != PL_NONE; cause = engine->wait[cause].last) {
    const pl_task *record = &account->graph->tasks[cause];
    if (!is_communication(record) || !concerns_device(account, record, cause)) break;
    pl_ticks first = engine->start[cause] > from ? engine->start[cause] : from;
    pl_ticks last = engine->finish[cause] < to ? engine->finish[cause] : to;
    if (last > first) {
      pl_ticks ticks = last - first - feature_ticks(account, first, last, false);
      account->spent[record->category] += ticks;
      charged += ticks;
    }
    if (engine->start[cause] <= from) break;
  }
  *account->idle += to - from - charged;
}

static void charge_tail(pl_account *account, pl_ticks from, pl_ticks to) {
  const pl_engine *engine = account->engine;
  if (from >= to) return;
  pl_ticks charged = feature_ticks(account, from, to, true);
  uint32_t gradient = account->streams[account->device][PL_STREAM_GRADIENT];
  for (uint32_t at = gradient == PL_NONE ? 0 : account->runs.offset[gradient + 1];
       gradient != PL_NONE && at > account->runs.offset[gradient]; at--) {
    uint32_t task = account->runs.tasks[at - 1];
    if (engine->finish[task] <= from) break;
    if (!is_communication(&account->graph->tasks[task])) continue;
    pl_ticks first = engine->start[task] > from ? engine->start[task] : from;
    pl_ticks last = engine->finish[task];
    if (last <= first) continue;
    pl_ticks ticks = last - first - feature_ticks(account, first, last, false);
    account->spent[PL_CATEGORY_DATA] += ticks;
    charged += ticks;
  }
  *account->idle += to - from - charged;
}

static void charge_task(pl_account *account, uint32_t task) {
  const pl_task *record = &account->graph->tasks[task];
  uint32_t totals = record->kind == PL_TASK_WORK ? account->totals_of[record->index] : PL_NONE;
  if (totals == PL_NONE) {
    account->spent[record->category] += account->engine->finish[task] - account->engine->start[task];
    return;
  }
  for (uint32_t category = 0; category < PL_CATEGORY_COUNT; category++)
    account->spent[category] += account->totals[totals][category];
}

static void charge_device(pl_account *account, pl_ticks makespan) {
  const pl_engine *engine = account->engine;
  const uint32_t *streams = account->streams[account->device];
  uint32_t feature = streams[PL_STREAM_FEATURE], compute = streams[PL_STREAM_COMPUTE];
  account->feature = account->feature_end = account->runs.tasks;
  if (feature != PL_NONE) {
    account->feature = account->runs.tasks + account->runs.offset[feature];
    account->feature_end = account->runs.tasks + account->runs.offset[feature + 1];
  }
  pl_ticks free_since = 0;
  for (uint32_t at = compute == PL_NONE ? 0 : account->runs.offset[compute];
       compute != PL_NONE && at < account->runs.offset[compute + 1]; at++) {
    uint32_t task = account->runs.tasks[at];
    charge_gap(account, free_since, engine->start[task], task);
    charge_task(account, task);
    free_since = engine->finish[task];
  }
  charge_tail(account, free_since, makespan);
}

bool pl_engine_account(const pl_engine *engine, pl_ticks makespan, pl_ticks *spent, pl_ticks *idle) {
  pl_account account = {.engine = engine, .graph = engine->graph};
  if (!take_runs(&account) || !take_device_streams(&account) || !take_totals(&account)) return false;
  for (uint32_t device = 0; device < engine->graph->n_devices; device++) {
    account.device = device;
    account.spent = spent + (size_t)device * PL_CATEGORY_COUNT;
    account.idle = idle + device;
    charge_device(&account, makespan);
    if (engine->overlap == NULL) continue;
    for (uint32_t category = 0; category < PL_CATEGORY_COUNT; category++)
      account.spent[category] += engine->overlap->extra[(size_t)device * PL_CATEGORY_COUNT + category];
  }
  return true;
}
