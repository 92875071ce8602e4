/* The engine (core/engine/engine.h): the state machine and the native loop.
 *
 * A tick is worked off in rounds: first every completion of the tick (they commute: counters fall, memory is given
 * back), then every start that they made possible, by increasing task id; a task that takes no time completes in the
 * next round of the same tick. So nothing recurses, and what happens depends neither on the order in which edges were
 * added nor on how the loop handed in the completions. When no round is left, the overlap factor and the network are
 * settled.
 *
 * The native loop is not a pl_engine_host: the two calls that a task costs (its date, its transfer) go to the heap and
 * the network directly behind one predictable branch. Through the host's pointers they cost about as much as the heap.
 */
#include "core/engine/engine.h"

#include <string.h>

#include "core/engine/engine_running.h"
#include "core/graph/graph_heads.h"

void pl_sort_tasks(uint32_t *tasks, uint32_t count) {
  /* Shell sort (Ciura's gaps): lists are short and nearly sorted, and no memory is taken. */
  static const uint32_t gaps[] = {1750, 701, 301, 132, 57, 23, 10, 4, 1};
  for (size_t at = 0; at < sizeof gaps / sizeof *gaps; at++) {
    uint32_t gap = gaps[at];
    for (uint32_t from = gap; from < count; from++) {
      uint32_t task = tasks[from], to = from;
      for (; to >= gap && tasks[to - gap] > task; to -= gap)
        tasks[to] = tasks[to - gap];
      tasks[to] = task;
    }
  }
}

/* ---- starts ---- */

static inline uint32_t slot_of(pl_engine *engine, const pl_task *record) {
  if (record->n_streams > 0) return *pl_task_streams(engine, record);
  return engine->free_slot[--engine->n_free_slots];
}

/* Tells the loop when `task` (a work or a delay) is due. */
static inline void set_timer(pl_engine *engine, const pl_task *record, uint32_t task, pl_ticks finish) {
  if (engine->is_native) {
    pl_event_heap_put(&engine->heap, slot_of(engine, record), finish, task);
  } else {
    engine->host.timer(engine->host_data, task, finish);
  }
}

void pl_engine_set_member_timer(pl_engine *engine, uint32_t task, uint32_t stream, pl_ticks finish) {
  PL_ASSERT(engine->is_native || stream == *pl_task_streams(engine, pl_engine_task(engine, task)));
  if (engine->is_native) {
    pl_event_heap_put(&engine->heap, stream, finish, task);
  } else {
    engine->host.timer(engine->host_data, task, finish);
  }
}

void pl_engine_clear_timer(pl_engine *engine, uint32_t stream) {
  PL_ASSERT(engine->is_native);
  pl_event_heap_remove(&engine->heap, stream);
}

/* Devices whose memory a task changes: see pl_memory_effect. */
static inline uint32_t n_affected(const pl_task *record) {
  return record->kind == PL_TASK_WORK ? record->n_streams : 1;
}

static inline pl_balance *balance_of(pl_engine *engine, const pl_task *record, uint32_t member) {
  return &engine->balance[engine->graph->streams[pl_task_streams(engine, record)[member]].device];
}

static void take_memory(pl_engine *engine, const pl_task *record) {
  for (uint32_t member = 0; member < n_affected(record); member++) {
    pl_balance *balance = balance_of(engine, record, member);
    balance->bytes += engine->graph->effects[record->memory].peak_bytes;
    if (balance->bytes > balance->peak_bytes) balance->peak_bytes = balance->bytes;
  }
}

static void give_memory(pl_engine *engine, const pl_task *record) {
  const pl_memory_effect *effect = &engine->graph->effects[record->memory];
  for (uint32_t member = 0; member < n_affected(record); member++)
    balance_of(engine, record, member)->bytes += effect->net_bytes - effect->peak_bytes;
}

static uint32_t start_transfer(pl_engine *engine, const pl_task *record, uint32_t task, pl_ticks now) {
  if (!engine->is_native) {
    engine->host.transfer(engine->host_data, now, task, record->index, record->size_bytes);
    return PL_NONE;
  }
  engine->network_touched = true;
  return engine->network->ops->start(engine->network, now, task, record->index, record->size_bytes);
}

void pl_engine_start_task(pl_engine *engine, uint32_t task, pl_ticks now) {
  const pl_task *record;
  uint32_t network_slot = PL_NONE;
  if (engine->dates == NULL) {
    record = &engine->tasks[task];
    engine->start[task] = now;
  } else {
    pl_dated *dated = pl_dates_at(engine->dates, task);
    record = &engine->tasks[dated->row];
    dated->start = now;
    if ((engine->accounted[dated->row] & PL_IS_LISTED) != 0) pl_running_note_listed(engine, task, dated);
  }
  if (engine->is_edge != NULL) engine->keep_is_due |= engine->is_edge[record - engine->tasks] != 0;
  if (record->memory != PL_NONE) take_memory(engine, record);
  if (record->kind == PL_TASK_TRANSFER) {
    network_slot = start_transfer(engine, record, task, now);
  } else if (record->ticks == 0) {
    engine->instant[engine->n_instant++] = task;
  } else {
    set_timer(engine, record, task, pl_later(now, record->ticks));
  }
  if (engine->overlap != NULL) pl_overlap_note_start(engine, record, task, network_slot);
}

static void start_ready(pl_engine *engine, pl_ticks now) {
  if (engine->sorts_ready && engine->n_ready > 1) pl_sort_tasks(engine->ready, engine->n_ready);
  if (engine->streams != NULL) {
    pl_ready_streams_start(engine, now);
    return;
  }
  uint32_t n_ready = engine->n_ready;
  engine->n_ready = 0;
  for (uint32_t at = 0; at < n_ready; at++)
    pl_engine_start_task(engine, engine->ready[at], now);
}

/* ---- completions ---- */

/* Keeps when the parts of a work task ran that was never walked: one after the other at speed 1. */
static void record_parts(pl_engine *engine, uint32_t task) {
  const pl_task *record = pl_engine_task(engine, task);
  const pl_segment *segment = &engine->graph->segments[record->index];
  pl_ticks date = pl_engine_start(engine, task);
  for (uint32_t part = segment->first_part; part < segment->first_part + segment->n_parts; part++) {
    pl_ticks end = pl_later(date, engine->graph->parts[part].ticks);
    for (uint32_t member = 0; member < record->n_streams; member++)
      engine->spans[engine->n_spans++] =
          (pl_part_span){.task = task, .part = part, .member = member, .start = date, .finish = end};
    date = end;
  }
}

static bool was_walked(const pl_engine *engine, const pl_task *record, uint32_t task) {
  if (engine->overlap == NULL) return false;
  const pl_walker *walker = &engine->overlap->walkers[engine->graph->streams[*pl_task_streams(engine, record)].device];
  return walker->task == task && walker->walked;
}

/* What no fused task can hide comes first: a communication off the feature streams, then one of several members. */
static int explanation_rank(const pl_engine *engine, uint32_t task) {
  const pl_task *record = pl_engine_task(engine, task);
  if (pl_engine_communicates(engine, task)) return 3;
  return record->kind == PL_TASK_WORK ? 1 : record->n_streams > 1 ? 2 : 0;
}

/* Of two predecessors that finish at one tick, the one that the report names: a communication that is a task in every
 * graph (those on feature streams may be parts of fused tasks) before work before anything else, and of such the one
 * that has run longest. Ids come last: they differ between a folded graph and the unfolded one. */
static bool explains_better(const pl_engine *engine, uint32_t task, uint32_t than) {
  int rank = explanation_rank(engine, task), other_rank = explanation_rank(engine, than);
  if (rank != other_rank) return rank > other_rank;
  pl_ticks start = pl_engine_start(engine, task), other_start = pl_engine_start(engine, than);
  if (start != other_start) return start < other_start;
  uint32_t category = pl_engine_task(engine, task)->category, other = pl_engine_task(engine, than)->category;
  return category != other ? category < other : task < than;
}

/* Whether `task`, which ends now, is what its successor waited for, and not the one that was so far. */
static inline bool is_last(const pl_engine *engine, uint32_t task, uint32_t so_far, pl_ticks now) {
  return so_far == PL_NONE || pl_engine_finish_of(engine, so_far) != now || explains_better(engine, task, so_far);
}

static inline void release(pl_engine *engine, uint32_t successor, uint32_t task, pl_ticks now) {
  pl_wait *wait = &engine->wait[successor];
  if (wait->last == PL_NONE && engine->watch != NULL && wait->pending > 1)
    pl_watch_note_touched(engine->watch, successor);
  if (is_last(engine, task, wait->last, now)) wait->last = task;
  if (--wait->pending == 0) engine->ready[engine->n_ready++] = successor;
}

/* The same in a rolled graph; without memory for the dates of the successor it never starts. */
static inline void release_rolled(pl_engine *engine, uint32_t successor, uint32_t task, pl_ticks now) {
  pl_dated *dated = pl_dates_touch(engine->dates, successor);
  if (dated == NULL) return;
  if (is_last(engine, task, dated->last, now)) dated->last = task;
  if (++dated->finish < 0) return;
  dated->finish = PL_TICKS_NEVER;
  engine->ready[engine->n_ready++] = successor;
}

static inline void release_successors(pl_engine *engine, const pl_task *record, uint32_t task, pl_ticks now) {
  uint32_t end = record->first_successor + record->n_successors, row = (uint32_t)(record - engine->tasks);
  for (uint32_t at = record->first_successor; at < end; at++) {
    uint32_t successor = engine->successors[at];
    if (engine->dates != NULL) {
      successor += pl_graph_roll_shift(&engine->graph->roll, row, task, at);
      release_rolled(engine, successor, task, now);
      continue;
    }
    /* The record is the one thing a start needs that is not in the cache yet: 20 of 55 ns per task were spent waiting
     * for it. */
    __builtin_prefetch((const char *)&engine->tasks[successor]);
    __builtin_prefetch((const char *)&engine->tasks[successor] + sizeof(pl_task) - 1);
    release(engine, successor, task, now);
  }
}

static inline void complete(pl_engine *engine, const pl_task *record, uint32_t task, pl_ticks now) {
  if (engine->dates == NULL) {
    engine->finish[task] = now;
  } else {
    pl_dated *dated = pl_dates_at(engine->dates, task);
    pl_dates_finish(engine->dates, task, dated, now);
    if ((engine->accounted[dated->row] & PL_IS_COMPUTED) != 0) pl_running_note_computed(engine, task, dated);
  }
  engine->makespan = now;
  engine->n_left--;
  pl_engine_count_event(engine, task, true);
  if (record->memory != PL_NONE) give_memory(engine, record);
  if (engine->spans != NULL && record->kind == PL_TASK_WORK && !was_walked(engine, record, task))
    record_parts(engine, task);
  if (engine->overlap != NULL) pl_overlap_note_finish(engine, record, task);
  if (engine->streams != NULL) pl_ready_streams_free(engine, task);
  release_successors(engine, record, task, now);
}

/* An event of `task` is due; it may be the end of a part only. */
static inline void handle(pl_engine *engine, uint32_t task, pl_ticks now) {
  const pl_task *record = pl_engine_task(engine, task);
  if (engine->overlap != NULL && record->kind == PL_TASK_WORK && !pl_overlap_is_over(engine, record, task, now)) {
    pl_engine_count_event(engine, task, false);
    return;
  }
  complete(engine, record, task, now);
}

/* The rounds that are left of a tick once the loop's completions are in. */
static void run_rounds(pl_engine *engine, pl_ticks now) {
  while (engine->n_ready > 0 || (engine->streams != NULL && engine->streams->n_freed > 0)) {
    start_ready(engine, now);
    uint32_t n_instant = engine->n_instant;
    engine->n_instant = 0;
    for (uint32_t at = 0; at < n_instant; at++)
      handle(engine, engine->instant[at], now);
  }
}

/* ---- life ---- */

static void find_features(const pl_graph *graph, bool *has_overlap) {
  *has_overlap = graph->rivals != NULL && graph->rival_offset[graph->transfers.n_specs] > 0;
  for (uint32_t device = 0; device < graph->n_devices; device++)
    *has_overlap |= graph->devices[device].overlap_compute > 0 || graph->devices[device].overlap_communication > 0 ||
                    graph->devices[device].overlap_exchange > 0 || graph->devices[device].overlap_tensor > 0;
}

static bool take_arrays(pl_engine *engine) {
  const pl_graph *graph = engine->graph;
  pl_arena *arena = engine->arena;
  size_t n_tasks = graph->n_tasks;
  if (pl_graph_is_rolled(graph)) {
    engine->dates = pl_dates_take(graph, engine->options.sweeps_always, arena);
    if (engine->dates == NULL || !pl_running_take(engine)) return false;
  } else {
    engine->start = pl_arena_take(arena, n_tasks * sizeof *engine->start, 64);
    engine->finish = pl_arena_take(arena, n_tasks * sizeof *engine->finish, 64);
    engine->wait = pl_arena_take(arena, n_tasks * sizeof *engine->wait, 64);
  }
  /* In order, what is ready has its streams to itself. */
  size_t n_ready = graph->policy == PL_STREAMS_READY ? n_tasks : (size_t)graph->n_streams + graph->n_streamless_tasks;
  engine->ready = pl_arena_take(arena, n_ready * sizeof *engine->ready, 64);
  engine->instant = pl_arena_take(arena, n_ready * sizeof *engine->instant, 64);
  engine->balance = pl_arena_take(arena, graph->n_devices * sizeof *engine->balance, 64);
  return !arena->failed;
}

static bool take_spans(pl_engine *engine) {
  const pl_graph *graph = engine->graph;
  uint64_t n_spans = 0;
  for (uint32_t task = 0; task < graph->n_tasks; task++)
    if (pl_graph_task(graph, task)->kind == PL_TASK_WORK)
      n_spans +=
          (uint64_t)graph->segments[pl_graph_task(graph, task)->index].n_parts * pl_graph_task(graph, task)->n_streams;
  if (n_spans >= PL_NONE) return false;
  engine->spans = pl_arena_take(engine->arena, n_spans * sizeof *engine->spans, 64);
  return engine->spans != NULL;
}

/* Slots of the heap: the streams, then one for each task without a stream. */
static bool take_native(pl_engine *engine) {
  const pl_graph *graph = engine->graph;
  uint64_t n_slots = (uint64_t)graph->n_streams + graph->n_streamless_tasks;
  if (n_slots >= PL_NONE || !pl_event_heap_init(&engine->heap, (uint32_t)n_slots, engine->arena)) return false;
  engine->free_slot = pl_arena_take(engine->arena, graph->n_streamless_tasks * sizeof(uint32_t), _Alignof(uint32_t));
  if (engine->free_slot == NULL) return false;
  for (uint32_t slot = (uint32_t)n_slots; slot-- > graph->n_streams;)
    engine->free_slot[engine->n_free_slots++] = slot;
  return true;
}

static void set_waits(pl_engine *engine) {
  const pl_graph *graph = engine->graph;
  for (uint32_t task = 0; task < graph->n_tasks; task++)
    engine->wait[task] = (pl_wait){.pending = pl_graph_n_predecessors(graph, task), .last = PL_NONE};
}

static void set_initial_state(pl_engine *engine) {
  const pl_graph *graph = engine->graph;
  if (engine->dates == NULL) set_waits(engine);
  for (uint32_t device = 0; device < graph->n_devices; device++)
    engine->balance[device] =
        (pl_balance){graph->devices[device].resident_bytes, graph->devices[device].resident_bytes};
  engine->n_left = graph->n_tasks;
  engine->network_next = PL_TICKS_NEVER;
}

static pl_engine *take_engine(const pl_graph *graph, const pl_engine_options *options, const pl_engine_host *host,
                              void *host_data, pl_network *network, pl_arena *arena) {
  PL_ASSERT(!pl_graph_is_rolled(graph) || options == NULL || options->lanes == NULL); /* of tasks that share rows */
  PL_ASSERT(!pl_graph_is_rolled(graph) || (graph->policy == PL_STREAMS_IN_ORDER && host == NULL));
  PL_ASSERT(!pl_graph_is_rolled(graph) || options == NULL || !options->record_parts);
  pl_engine *engine = PL_TAKE(arena, pl_engine, 1);
  if (engine == NULL) return NULL;
  engine->graph = graph;
  engine->tasks = graph->tasks;
  engine->successors = graph->successors;
  engine->arena = arena;
  engine->network = network;
  engine->is_native = host == NULL;
  if (options != NULL) engine->options = *options;
  if (host != NULL) engine->host = *host;
  engine->host_data = host_data;
  engine->sorts_ready = host != NULL || graph->n_transfer_tasks > 0 || graph->policy == PL_STREAMS_READY;
  bool has_overlap;
  find_features(graph, &has_overlap);
  if (!take_arrays(engine)) return NULL;
  if (engine->options.record_parts && !take_spans(engine)) return NULL;
  if (engine->is_native && !take_native(engine)) return NULL;
  if (has_overlap && !pl_overlap_take(engine)) return NULL;
  if (graph->policy == PL_STREAMS_READY && !pl_ready_streams_take(engine)) return NULL;
  if (engine->options.lanes != NULL && !engine->options.drifts && !pl_watch_take(engine)) return NULL;
  set_initial_state(engine);
  return engine;
}

pl_engine *pl_engine_take(const pl_graph *graph, const pl_engine_options *options, const pl_engine_host *host,
                          void *host_data, pl_arena *arena) {
  return take_engine(graph, options, host, host_data, NULL, arena);
}

/* Those that wait for nothing. */
static void list_first(pl_engine *engine) {
  const pl_graph *graph = engine->graph;
  for (uint32_t row = 0; row < pl_graph_n_rows(graph); row++) {
    if (graph->n_predecessors[row] > 0) continue;
    for (uint32_t k = 0; k < pl_graph_row_count(graph, row); k++) {
      uint32_t task = pl_graph_row_task(graph, row, k);
      if (engine->dates == NULL || pl_dates_touch(engine->dates, task) != NULL) engine->ready[engine->n_ready++] = task;
    }
  }
}

void pl_engine_begin(pl_engine *engine) {
  list_first(engine);
  pl_engine_flush(engine, 0);
}

void pl_engine_complete(pl_engine *engine, uint32_t task, pl_ticks now) {
  handle(engine, task, now);
}

void pl_engine_flush(pl_engine *engine, pl_ticks now) {
  run_rounds(engine, now);
  if (engine->overlap != NULL) pl_overlap_settle(engine, now);
  if (engine->network_touched) {
    engine->network_next = engine->network->ops->settle(engine->network, now);
    engine->network_touched = false;
  }
}

bool pl_engine_is_done(const pl_engine *engine) {
  return engine->n_left == 0;
}

/* ---- the native loop ---- */

/* Hands in every completion of the heap and of the network at `now`. */
static void take_completions(pl_engine *engine, pl_ticks now) {
  while (pl_event_heap_next(&engine->heap) == now) {
    pl_event event = pl_event_heap_pop(&engine->heap);
    if (event.id >= engine->graph->n_streams) engine->free_slot[engine->n_free_slots++] = event.id;
    handle(engine, event.order, now);
  }
  if (engine->network_next != now) return;
  engine->network_touched = true;
  for (uint32_t task; (task = engine->network->ops->advance(engine->network, now)) != PL_NONE;) {
    /* A work task on the network: one of its parts. */
    const pl_task *record = pl_engine_task(engine, task);
    if (record->kind == PL_TASK_WORK && !pl_overlap_flow_is_over(engine, task, now)) {
      pl_engine_count_event(engine, task, false);
      continue;
    }
    complete(engine, record, task, now);
  }
}

static void run_native(pl_engine *engine) {
  if (engine->options.from == NULL || !pl_fork_go_on(engine)) pl_engine_begin(engine);
  for (pl_ticks before = 0;;) {
    pl_ticks now = pl_event_heap_next(&engine->heap);
    if (engine->network_next < now) now = engine->network_next;
    if (now > before && engine->spent != NULL && pl_running_is_due(engine)) pl_running_settle(engine);
    before = now;
    if (now == PL_TICKS_NEVER) return;
    if (now >= PL_TICKS_MAX) { /* dates of what follows would all be the same */
      engine->makespan = PL_TICKS_MAX;
      return;
    }
    take_completions(engine, now);
    pl_engine_flush(engine, now);
    if (engine->watch != NULL && engine->watch->n_due > 0) pl_watch_look(engine, now);
    if (engine->keep_is_due) pl_fork_keep(engine, now);
    if (engine->watch != NULL && engine->watch->is_missed && !engine->options.plays_on && pl_watch_has_failed(engine)) {
      engine->has_failed = true;
      return;
    }
  }
}

pl_code pl_engine_run(const pl_graph *graph, pl_network *network, const pl_engine_options *options, pl_arena *arena,
                      pl_engine_result *result, pl_error *error) {
  PL_ASSERT(network == NULL || network->ops->resume != NULL || graph->rivals == NULL);
  if (network == NULL && graph->n_transfer_tasks > 0)
    return pl_fail(error, PL_UNSUPPORTED, "the graph has %u transfers, but there is no network to run them on",
                   graph->n_transfer_tasks);
  pl_engine *engine = take_engine(graph, options, NULL, NULL, network, arena);
  if (engine == NULL) return pl_fail_memory(error, "the run of an execution graph");
  if (engine->options.keeps != NULL) engine->is_edge = engine->options.heads->is_edge;
  run_native(engine);
  return pl_engine_finish(engine, result, error);
}
