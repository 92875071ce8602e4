/* See core/engine/htae.h. */
#include "core/engine/htae.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/digest.h"

enum { COMPUTE = 0, FEATURE, GRADIENT, N_QUEUES };

/* Tasks in the order in which they joined; those before `head` have run. */
typedef struct queue {
  uint32_t *tasks;
  uint32_t head, n;
  pl_ticks clock; /* when the last of them ended */
} queue;

/* The last communication of a kind on a link. */
typedef struct passage {
  pl_ticks start, finish;
} passage;

typedef struct htae {
  const pl_graph *graph;
  const pl_htae_options *options;
  pl_arena *arena;
  queue *queues; /* N_QUEUES per device */
  uint32_t *n_waits;
  uint32_t *n_firsts; /* per task: of how many of its queues it is the first */
  pl_ticks *ready, *start, *finish;
  uint32_t *heads; /* communications that are first in all their queues */
  uint32_t n_heads;
  uint32_t *crossings; /* per link, of the round and kind */
  passage *last[N_QUEUES];
  uint32_t *free_tasks; /* delays without streams, ready */
  uint32_t n_free;
  uint64_t n_run;
} htae;

static uint32_t kind_of_stream(uint8_t kind) {
  if (kind == PL_STREAM_COMPUTE) return COMPUTE;
  return kind == PL_STREAM_GRADIENT || kind == PL_STREAM_EXPERT_GRADIENT || kind == PL_STREAM_TIED ? GRADIENT : FEATURE;
}

static queue *queue_of(const htae *own, const pl_task *task, uint32_t member) {
  const pl_stream *stream = &own->graph->streams[own->graph->task_streams[task->first_stream + member]];
  return &own->queues[stream->device * N_QUEUES + kind_of_stream(stream->kind)];
}

/* A message that is on no stream (of a program) is a feature's. */
static uint32_t kind_of(const htae *own, const pl_task *task) {
  if (task->n_streams == 0) return FEATURE;
  return kind_of_stream(own->graph->streams[own->graph->task_streams[task->first_stream]].kind);
}

/* ---- queues ---- */

static bool take_queues(htae *own) {
  const pl_graph *graph = own->graph;
  own->queues = PL_TAKE(own->arena, queue, (size_t)graph->n_devices * N_QUEUES);
  if (own->queues == NULL) return false;
  for (uint32_t t = 0; t < graph->n_tasks; t++)
    for (uint32_t m = 0; m < graph->tasks[t].n_streams; m++)
      queue_of(own, &graph->tasks[t], m)->n++;
  for (uint32_t q = 0; q < graph->n_devices * N_QUEUES; q++) {
    own->queues[q].tasks = PL_TAKE(own->arena, uint32_t, own->queues[q].n);
    own->queues[q].n = 0;
  }
  return !own->arena->failed;
}

static void become_first(htae *own, uint32_t task) {
  const pl_task *of = &own->graph->tasks[task];
  if (++own->n_firsts[task] == of->n_streams && kind_of(own, of) != COMPUTE) own->heads[own->n_heads++] = task;
}

static void put(htae *own, uint32_t task) {
  const pl_task *of = &own->graph->tasks[task];
  if (of->n_streams == 0 && of->kind == PL_TASK_TRANSFER)
    own->heads[own->n_heads++] = task; /* of the round: nothing stands in front of it */
  else if (of->n_streams == 0)
    own->free_tasks[own->n_free++] = task;
  for (uint32_t m = 0; m < of->n_streams; m++) {
    queue *into = queue_of(own, of, m);
    into->tasks[into->n++] = task;
    if (into->head + 1 == into->n) become_first(own, task);
  }
}

/* The task has run from `start` to `finish`: its queues go on, and what waited for it alone joins its own. */
static void complete(htae *own, uint32_t task) {
  const pl_graph *graph = own->graph;
  const pl_task *of = &graph->tasks[task];
  own->n_run++;
  for (uint32_t m = 0; m < of->n_streams; m++) {
    queue *from = queue_of(own, of, m);
    from->clock = own->finish[task];
    from->head++;
    if (from->head < from->n) become_first(own, from->tasks[from->head]);
  }
  for (uint32_t s = 0; s < of->n_successors; s++) {
    uint32_t next = graph->successors[of->first_successor + s];
    if (own->finish[task] > own->ready[next]) own->ready[next] = own->finish[task];
    if (--own->n_waits[next] == 0) put(own, next);
  }
}

/* ---- costs ---- */

/* Whether something that ran on the queue is under way at `date`. */
static bool is_busy(const htae *own, const queue *on, pl_ticks date) {
  for (uint32_t i = on->head; i-- > 0;)
    if (own->start[on->tasks[i]] <= date) return own->finish[on->tasks[i]] > date;
  return false;
}

static pl_ticks longer(pl_ticks ticks, double by) {
  return (pl_ticks)llrint((double)ticks * (1 + by));
}

static void begin(htae *own, uint32_t task) {
  const pl_task *of = &own->graph->tasks[task];
  own->start[task] = own->ready[task];
  for (uint32_t m = 0; m < of->n_streams; m++)
    if (queue_of(own, of, m)->clock > own->start[task]) own->start[task] = queue_of(own, of, m)->clock;
}

static void compute(htae *own, uint32_t task) {
  const pl_task *of = &own->graph->tasks[task];
  uint32_t device = own->graph->streams[own->graph->task_streams[of->first_stream]].device;
  pl_ticks ticks = of->ticks;
  begin(own, task);
  if (own->options->overlap && is_busy(own, &own->queues[device * N_QUEUES + GRADIENT], own->start[task]))
    ticks = longer(ticks, own->graph->devices[device].overlap_compute);
  own->finish[task] = own->start[task] + ticks;
}

static void count_crossings(htae *own, const pl_task *task, uint32_t by) {
  const pl_transfer_table *table = &own->graph->transfers;
  if (task->kind != PL_TASK_TRANSFER) return;
  const pl_transfer_spec *spec = &table->specs[task->index];
  for (uint32_t u = spec->first_use; u < spec->first_use + spec->n_uses; u++)
    own->crossings[table->uses[u].link] += by;
}

/* Latency and bytes at the least share of the task's links. */
static pl_ticks shared_ticks(const htae *own, const pl_task *task) {
  const pl_transfer_table *table = &own->graph->transfers;
  const pl_transfer_spec *spec = &table->specs[task->index];
  double rate = spec->rate_cap_Bps;
  for (uint32_t u = spec->first_use; u < spec->first_use + spec->n_uses; u++) {
    const pl_link_use *use = &table->uses[u];
    uint32_t n = own->options->sharing ? own->crossings[use->link] : 1;
    rate = fmin(rate, table->link_capacity_Bps[use->link] / (use->weight * n));
  }
  return pl_ticks_sum(spec->latency, isinf(rate) ? 0 : pl_ticks_from_s(task->size_bytes / rate));
}

/* The longest time that the task is beside the last one of the other kind on one of its links; becomes the last of its
 * own kind. */
static pl_ticks pass_links(htae *own, uint32_t task, uint32_t kind) {
  const pl_transfer_table *table = &own->graph->transfers;
  const pl_transfer_spec *spec = &table->specs[own->graph->tasks[task].index];
  pl_ticks longest = 0;
  for (uint32_t u = spec->first_use; u < spec->first_use + spec->n_uses; u++) {
    uint32_t link = table->uses[u].link;
    const passage *other = &own->last[kind == FEATURE ? GRADIENT : FEATURE][link];
    pl_ticks from = other->start > own->start[task] ? other->start : own->start[task];
    pl_ticks to = other->finish < own->finish[task] ? other->finish : own->finish[task];
    if (to - from > longest) longest = to - from;
    own->last[kind][link] = (passage){own->start[task], own->finish[task]};
  }
  return longest;
}

static double factor_of_members(const htae *own, uint32_t task) {
  const pl_task *of = &own->graph->tasks[task];
  double most = 0;
  for (uint32_t m = 0; m < of->n_streams; m++) {
    uint32_t device = own->graph->streams[own->graph->task_streams[of->first_stream + m]].device;
    if (is_busy(own, &own->queues[device * N_QUEUES + COMPUTE], own->start[task]))
      most = fmax(most, own->graph->devices[device].overlap_communication);
  }
  return most;
}

static void communicate(htae *own, uint32_t task, uint32_t kind) {
  const pl_task *of = &own->graph->tasks[task];
  begin(own, task);
  pl_ticks ticks = of->kind == PL_TASK_TRANSFER ? shared_ticks(own, of) : of->ticks;
  if (own->options->overlap && kind == GRADIENT) ticks = longer(ticks, factor_of_members(own, task));
  own->finish[task] = own->start[task] + ticks;
  if (of->kind != PL_TASK_TRANSFER) return;
  pl_ticks beside = pass_links(own, task, kind);
  if (own->options->sharing) own->finish[task] += beside;
}

/* ---- rounds ---- */

static void run_free(htae *own) {
  while (own->n_free > 0) {
    uint32_t task = own->free_tasks[--own->n_free];
    begin(own, task);
    own->finish[task] = own->start[task] + own->graph->tasks[task].ticks;
    complete(own, task);
  }
}

static void run_computing(htae *own) {
  for (uint32_t d = 0; d < own->graph->n_devices; d++) {
    const queue *on = &own->queues[d * N_QUEUES + COMPUTE];
    if (on->head == on->n) continue;
    uint32_t task = on->tasks[on->head];
    compute(own, task);
    complete(own, task);
  }
}

/* `n` tasks of one round; they leave the list of those that may run. */
static void run_communication(htae *own, uint32_t *tasks, uint32_t n) {
  for (uint32_t kind = FEATURE; kind <= GRADIENT; kind++) {
    for (uint32_t i = 0; i < n; i++)
      if (kind_of(own, &own->graph->tasks[tasks[i]]) == kind) count_crossings(own, &own->graph->tasks[tasks[i]], 1);
    for (uint32_t i = 0; i < n; i++)
      if (kind_of(own, &own->graph->tasks[tasks[i]]) == kind) communicate(own, tasks[i], kind);
    for (uint32_t i = 0; i < n; i++)
      if (kind_of(own, &own->graph->tasks[tasks[i]]) == kind)
        count_crossings(own, &own->graph->tasks[tasks[i]], UINT32_MAX);
  }
  for (uint32_t i = 0; i < n; i++)
    complete(own, tasks[i]);
}

static bool run_round(htae *own, uint32_t *tasks) {
  uint64_t before = own->n_run;
  run_free(own);
  run_computing(own);
  run_free(own);
  uint32_t n = own->n_heads;
  for (uint32_t i = 0; i < n; i++)
    tasks[i] = own->heads[i];
  own->n_heads = 0;
  run_communication(own, tasks, n);
  return own->n_run > before;
}

/* ---- what is told ---- */

typedef struct balance {
  pl_ticks date;
  int64_t bytes;
} balance;

/* What is given back counts before what is taken. */
static int by_date(const void *a, const void *b) {
  const balance *x = a, *y = b;
  if (x->date != y->date) return x->date < y->date ? -1 : 1;
  return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int64_t peak_of(const htae *own, uint32_t device, balance *changes) {
  const pl_graph *graph = own->graph;
  uint32_t n = 0;
  for (uint32_t q = 0; q < N_QUEUES; q++) {
    const queue *on = &own->queues[device * N_QUEUES + q];
    for (uint32_t i = 0; i < on->n; i++) {
      const pl_task *task = &graph->tasks[on->tasks[i]];
      if (task->memory == PL_NONE || graph->streams[graph->task_streams[task->first_stream]].device != device) continue;
      const pl_memory_effect *effect = &graph->effects[task->memory];
      changes[n++] = (balance){own->start[on->tasks[i]], effect->peak_bytes};
      changes[n++] = (balance){own->finish[on->tasks[i]], effect->net_bytes - effect->peak_bytes};
    }
  }
  qsort(changes, n, sizeof(*changes), by_date);
  int64_t held = graph->devices[device].resident_bytes, peak = held;
  for (uint32_t i = 0; i < n; i++) {
    held += changes[i].bytes;
    if (held > peak) peak = held;
  }
  return peak;
}

/* Files [from, to) of a device under what its queues from `level` on ran then; `at`: where each has got to. */
static void file_time(const htae *own, uint32_t device, uint32_t level, pl_ticks from, pl_ticks to, uint32_t *at,
                      pl_ticks *spent, pl_ticks *idle) {
  if (from >= to) return;
  if (level == N_QUEUES) {
    *idle += to - from;
    return;
  }
  const queue *on = &own->queues[device * N_QUEUES + level];
  for (; at[level] < on->n && own->start[on->tasks[at[level]]] < to; at[level]++) {
    uint32_t task = on->tasks[at[level]];
    pl_ticks start = own->start[task] > from ? own->start[task] : from;
    pl_ticks end = own->finish[task] < to ? own->finish[task] : to;
    file_time(own, device, level + 1, from, start, at, spent, idle);
    if (end > start) spent[own->graph->tasks[task].category] += end - start;
    if (end > from) from = end;
    if (own->finish[task] > to) break;
  }
  file_time(own, device, level + 1, from, to, at, spent, idle);
}

static pl_code tell(const htae *own, pl_engine_result *result, pl_error *error) {
  const pl_graph *graph = own->graph;
  int64_t *peaks = PL_TAKE(own->arena, int64_t, graph->n_devices);
  pl_ticks *spent = PL_TAKE(own->arena, pl_ticks, (size_t)graph->n_devices * PL_CATEGORY_COUNT);
  pl_ticks *idle = PL_TAKE(own->arena, pl_ticks, graph->n_devices);
  balance *changes = PL_TAKE(own->arena, balance, 2 * ((size_t)graph->n_task_streams + 1));
  if (own->arena->failed) return pl_fail_memory(error, "the run");
  *result = (pl_engine_result){.is_whole = true,
                               .start = own->start,
                               .finish = own->finish,
                               .peak_bytes = peaks,
                               .spent = spent,
                               .idle = idle,
                               .n_events = own->n_run};
  for (uint32_t t = 0; t < graph->n_tasks; t++)
    if (own->finish[t] > result->makespan) result->makespan = own->finish[t];
  for (uint32_t d = 0; d < graph->n_devices; d++) {
    uint32_t at[N_QUEUES] = {0};
    peaks[d] = peak_of(own, d, changes);
    file_time(own, d, COMPUTE, 0, result->makespan, at, &spent[(size_t)d * PL_CATEGORY_COUNT], &idle[d]);
  }
  pl_digest digest;
  pl_digest_init(&digest);
  pl_digest_bytes(&digest, own->start, graph->n_tasks * sizeof(*own->start));
  pl_digest_bytes(&digest, own->finish, graph->n_tasks * sizeof(*own->finish));
  pl_digest_bytes(&digest, peaks, graph->n_devices * sizeof(*peaks));
  result->digest = digest.value;
  return PL_OK;
}

pl_code pl_htae_run(const pl_graph *graph, const pl_htae_options *options, pl_arena *arena, pl_engine_result *result,
                    pl_error *error) {
  htae own = {.graph = graph, .options = options, .arena = arena};
  uint32_t n = graph->n_tasks, *tasks = PL_TAKE(arena, uint32_t, n);
  own.n_waits = PL_TAKE(arena, uint32_t, n);
  own.n_firsts = PL_TAKE(arena, uint32_t, n);
  own.ready = PL_TAKE(arena, pl_ticks, n);
  own.start = PL_TAKE(arena, pl_ticks, n);
  own.finish = PL_TAKE(arena, pl_ticks, n);
  own.heads = PL_TAKE(arena, uint32_t, n);
  own.free_tasks = PL_TAKE(arena, uint32_t, n);
  own.crossings = PL_TAKE(arena, uint32_t, graph->transfers.n_links);
  own.last[FEATURE] = PL_TAKE(arena, passage, graph->transfers.n_links);
  own.last[GRADIENT] = PL_TAKE(arena, passage, graph->transfers.n_links);
  if (arena->failed || !take_queues(&own)) return pl_fail_memory(error, "the run");
  for (uint32_t t = 0; t < n; t++)
    own.n_waits[t] = graph->n_predecessors[t];
  for (uint32_t t = 0; t < n; t++)
    if (graph->n_predecessors[t] == 0) put(&own, t);
  while (run_round(&own, tasks)) {
  }
  if (own.n_run < n)
    return pl_fail(error, PL_BAD_INPUT, "%u of %u tasks can never start: their queues wait for each other",
                   n - (uint32_t)own.n_run, n);
  return tell(&own, result, error);
}
