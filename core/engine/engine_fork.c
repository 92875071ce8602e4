/* See core/engine/engine_fork.h. */
#include "core/engine/engine_fork.h"

#include <string.h>

#include "core/engine/engine_fork_rolled.h"

/* Of an island whose state has come back, or will not. */
typedef struct kept_island {
  pl_island_leap leaps[PL_LANE_PHASES];
  uint32_t distance[PL_LANE_PHASES], n_leaps, next, n_devices;
  int phase;
  uint64_t n_events;
  int64_t *peak;
} kept_island;

struct pl_engine_fork {
  pl_headed_graph of;
  bool is_kept;
  pl_ticks now, makespan;
  uint64_t n_events;
  uint32_t n_finished;
  /* Per task, as the engine has them. */
  pl_ticks *start, *finish; /* finish PL_TICKS_NEVER: has not finished */
  pl_wait *wait;
  pl_rolled_kept *rolled; /* instead, of rolled graphs */
  pl_balance *balance;    /* per device */
  pl_event *timers;
  uint32_t n_timers;
  pl_under_way_list flows;
  bool has_overlap, has_watch;
  pl_walker *walkers; /* per device, with the sums of pl_overlap */
  pl_ticks *extra, *waiting;
  kept_island *islands;
  uint32_t n_islands;
  uint8_t *island_of_lane, *island_of_device;
};

pl_engine_fork *pl_engine_fork_take(const pl_graph *graph, const pl_graph_heads *heads, pl_arena *arena) {
  const pl_transfer_table *table = &graph->transfers;
  pl_engine_fork *fork = PL_TAKE(arena, pl_engine_fork, 1);
  const double *capacity_Bps = PL_COPY(arena, double, table->link_capacity_Bps, table->n_links);
  const uint8_t *policy = PL_COPY(arena, uint8_t, table->link_policy, table->n_links);
  if (fork == NULL || capacity_Bps == NULL || policy == NULL) return NULL;
  fork->of = (pl_headed_graph){graph, heads, capacity_Bps, policy};
  return fork;
}

bool pl_engine_fork_is_kept(const pl_engine_fork *fork) {
  return fork != NULL && fork->is_kept;
}

/* ---- keeping ---- */

static bool tails_are_untouched(const pl_engine *engine, const pl_graph_heads *heads) {
  for (uint32_t lane = 0; lane < heads->n_lanes; lane++)
    for (uint32_t task = heads->lanes[lane].end; task < heads->lanes[lane].behind; task++) {
      uint32_t pending = pl_engine_pending(engine, task);
      if (pending == 0 || pending != pl_graph_n_predecessors(engine->graph, task)) return false;
    }
  return true;
}

/* Its marks are no longer compared. */
static bool is_settled(const pl_watch *watch, const pl_watched *own) {
  return own->n_leaps == (uint32_t)watch->lanes.n_phases ||
         (own->awaited == PL_NONE && own->phase + 1 >= watch->lanes.n_phases);
}

static bool may_keep(const pl_engine *engine) {
  if (!engine->is_native || engine->streams != NULL || engine->spans != NULL || engine->options.drifts) return false;
  if (engine->network != NULL && engine->network->ops->list_under_way == NULL) return false;
  for (uint32_t at = 0; engine->watch != NULL && at < engine->watch->islands.n; at++)
    if (!is_settled(engine->watch, &engine->watch->watched[at])) return false;
  for (uint32_t device = 0; engine->overlap != NULL && device < engine->graph->n_devices; device++) {
    for (int which = 0; which < PL_CROWDING_STREAMS; which++)
      if (engine->overlap->walkers[device].crowd[which] != PL_NONE) return false;
    for (int which = 0; which < PL_GRADIENT_STREAMS; which++)
      if (engine->overlap->walkers[device].gradient[which] != PL_NONE) return false;
  }
  return tails_are_untouched(engine, engine->options.keeps->of.heads);
}

static void keep_dates(const pl_engine *engine, pl_engine_fork *fork) {
  size_t n = engine->graph->n_tasks;
  if (engine->dates != NULL) {
    fork->rolled = pl_rolled_keep(engine, fork->of.graph);
    return;
  }
  fork->finish = pl_arena_copy(engine->arena, engine->finish, n * sizeof *fork->finish, PL_KEPT_ALIGN);
  fork->start = pl_arena_copy(engine->arena, engine->start, n * sizeof *fork->start, PL_KEPT_ALIGN);
  fork->wait = pl_arena_copy(engine->arena, engine->wait, n * sizeof *fork->wait, PL_KEPT_ALIGN);
  if (engine->arena->failed) return;
  for (uint32_t task = 0; task < n; task++)
    if (fork->wait[task].pending > 0) fork->start[task] = fork->finish[task] = PL_TICKS_NEVER;
  for (uint32_t at = 0; at < fork->n_timers; at++)
    fork->finish[fork->timers[at].order] = PL_TICKS_NEVER;
  for (uint32_t at = 0; at < fork->flows.n; at++)
    fork->finish[fork->flows.flows[at].task] = PL_TICKS_NEVER;
}

static void keep_overlap(const pl_engine *engine, pl_engine_fork *fork) {
  uint32_t n = engine->graph->n_devices;
  fork->has_overlap = true;
  fork->walkers = pl_arena_copy(engine->arena, engine->overlap->walkers, n * sizeof *fork->walkers, PL_KEPT_ALIGN);
  fork->extra = pl_arena_copy(engine->arena, engine->overlap->extra,
                              (size_t)n * PL_CATEGORY_COUNT * sizeof *fork->extra, PL_KEPT_ALIGN);
  fork->waiting = pl_arena_copy(engine->arena, engine->overlap->waiting, n * sizeof *fork->waiting, PL_KEPT_ALIGN);
}

static void keep_watch(const pl_engine *engine, pl_engine_fork *fork) {
  const pl_watch *watch = engine->watch;
  fork->has_watch = true;
  fork->n_islands = watch->islands.n;
  fork->islands = PL_TAKE(engine->arena, kept_island, watch->islands.n);
  fork->island_of_lane = pl_arena_copy(engine->arena, watch->islands.of_lane, watch->lanes.n_lanes, PL_KEPT_ALIGN);
  fork->island_of_device =
      pl_arena_copy(engine->arena, watch->islands.of_device, engine->graph->n_devices, PL_KEPT_ALIGN);
  for (uint32_t at = 0; fork->islands != NULL && at < watch->islands.n; at++) {
    const pl_watched *own = &watch->watched[at];
    kept_island *kept = &fork->islands[at];
    *kept = (kept_island){
        .n_leaps = own->n_leaps,
        .next = own->next,
        .n_devices = own->n_devices,
        .phase = own->phase,
        .n_events = own->n_events,
        .peak = pl_arena_copy(engine->arena, own->peak, own->n_devices * sizeof *own->peak, PL_KEPT_ALIGN)};
    memcpy(kept->leaps, own->leaps, sizeof kept->leaps);
    memcpy(kept->distance, own->distance, sizeof kept->distance);
  }
}

void pl_fork_keep(pl_engine *engine, pl_ticks now) {
  pl_engine_fork *fork = engine->options.keeps;
  engine->is_edge = NULL;
  engine->keep_is_due = false;
  if (!may_keep(engine)) return;
  fork->now = now;
  fork->makespan = engine->makespan;
  fork->n_events = engine->n_events;
  fork->n_finished = engine->graph->n_tasks - engine->n_left;
  fork->balance =
      pl_arena_copy(engine->arena, engine->balance, engine->graph->n_devices * sizeof *fork->balance, PL_KEPT_ALIGN);
  fork->n_timers = engine->heap.count;
  fork->timers =
      pl_arena_copy(engine->arena, engine->heap.events, engine->heap.count * sizeof *fork->timers, PL_KEPT_ALIGN);
  if (engine->network != NULL && !engine->network->ops->list_under_way(engine->network, engine->arena, &fork->flows))
    return;
  if (engine->arena->failed) return;
  keep_dates(engine, fork);
  if (engine->overlap != NULL) keep_overlap(engine, fork);
  if (engine->watch != NULL) keep_watch(engine, fork);
  fork->is_kept = !engine->arena->failed;
}

/* ---- going on from what was kept ---- */

typedef struct moving {
  pl_engine *engine;
  const pl_engine_fork *fork;
  const pl_graph_heads *from, *to;
} moving;

static uint32_t moved(const moving *own, uint32_t task) {
  return pl_graph_heads_moved(own->fork->of.graph, own->from, own->to, task);
}

/* What has finished leads to no tail: it would have been touched. */
static bool edges_are_ahead(const moving *own) {
  for (uint32_t lane = 0; lane < own->to->n_lanes; lane++) {
    const pl_lane_head *from = &own->from->lanes[lane], *to = &own->to->lanes[lane];
    for (uint32_t row = to->first_row; row < to->end_row; row++) {
      if (own->to->is_edge[row] == 0) continue;
      uint32_t there = row - to->first_row + from->first_row;
      if (own->fork->rolled != NULL ? pl_rolled_has_finished(own->fork->rolled, there)
                                    : own->fork->finish[there] != PL_TICKS_NEVER)
        return false;
    }
  }
  return true;
}

static bool islands_are_alike(const moving *own) {
  const pl_watch *watch = own->engine->watch;
  const pl_engine_fork *fork = own->fork;
  if (fork->has_watch != (watch != NULL)) return false;
  if (watch == NULL) return true;
  return fork->n_islands == watch->islands.n &&
         memcmp(fork->island_of_lane, watch->islands.of_lane, watch->lanes.n_lanes) == 0 &&
         memcmp(fork->island_of_device, watch->islands.of_device, own->engine->graph->n_devices) == 0;
}

static void move_dates(moving *own) {
  pl_engine *engine = own->engine;
  const pl_engine_fork *fork = own->fork;
  if (fork->rolled != NULL) {
    pl_rolled_move(engine, fork->rolled, own->from, own->to);
    return;
  }
  for (uint32_t lane = 0; lane < own->to->n_lanes; lane++) {
    uint32_t from = own->from->lanes[lane].first, to = own->to->lanes[lane].first;
    uint32_t n = own->to->lanes[lane].end - to;
    memcpy(&engine->finish[to], &fork->finish[from], n * sizeof *engine->finish);
    memcpy(&engine->start[to], &fork->start[from], n * sizeof *engine->start);
    for (uint32_t at = 0; at < n; at++)
      engine->wait[to + at] =
          (pl_wait){.pending = fork->wait[from + at].pending, .last = moved(own, fork->wait[from + at].last)};
  }
}

/* The slot of a timer is the stream of a member, which need not have the same index. */
static uint32_t moved_slot(const moving *own, const pl_event *timer, uint32_t task) {
  pl_engine *engine = own->engine;
  const pl_graph *graph = own->fork->of.graph;
  const pl_task *there = pl_graph_task(graph, timer->order), *here = pl_engine_task(engine, task);
  for (uint32_t member = 0; member < here->n_streams; member++)
    if (graph->task_streams[there->first_stream + member] == timer->id) return pl_task_streams(engine, here)[member];
  return engine->free_slot[--engine->n_free_slots];
}

static void move_timers(moving *own) {
  for (uint32_t at = 0; at < own->fork->n_timers; at++) {
    const pl_event *timer = &own->fork->timers[at];
    uint32_t task = moved(own, timer->order);
    pl_event_heap_put(&own->engine->heap, moved_slot(own, timer, task), timer->time, task);
  }
}

/* ---- what can be disturbed ---- */

/* Devices that a run could not disturb know nothing of what runs on them; all that runs is said anew. */
static void note_running(pl_engine *engine, uint32_t task) {
  uint32_t row = pl_engine_row(engine, task);
  const pl_task *record = &engine->tasks[row];
  if ((engine->overlap->concerns[row] & PL_CONCERN_WORK) == 0) return;
  for (uint32_t member = 0; member < record->n_streams; member++) {
    uint32_t stream = pl_task_streams(engine, record)[member];
    pl_walker *walker = &engine->overlap->walkers[engine->graph->streams[stream].device];
    walker->task = task;
    walker->stream = stream;
  }
}

static void move_walker(const moving *own, uint32_t device) {
  pl_engine *engine = own->engine;
  const pl_graph *graph = own->fork->of.graph;
  const pl_walker *kept = &own->fork->walkers[device];
  pl_walker *walker = &engine->overlap->walkers[device], known = *walker;
  walker->n_rivals = kept->n_rivals;
  if (kept->task == PL_NONE || !kept->walked) return;
  const pl_segment *there = &graph->segments[pl_graph_task(graph, kept->task)->index];
  const pl_segment *here = &engine->graph->segments[pl_engine_task(engine, walker->task)->index];
  *walker = *kept;
  walker->task = known.task;
  walker->stream = known.stream;
  walker->acts = known.acts;
  memcpy(walker->is_crowded, known.is_crowded, sizeof walker->is_crowded);
  walker->contends = known.contends;
  walker->part = kept->part - there->first_part + here->first_part;
  walker->end_part = kept->end_part - there->first_part + here->first_part;
  walker->run_end = 0; /* nothing was beside it */
}

static void move_overlap(moving *own) {
  pl_engine *engine = own->engine;
  const pl_engine_fork *fork = own->fork;
  uint32_t n = engine->graph->n_devices;
  for (uint32_t at = 0; at < fork->n_timers; at++)
    note_running(engine, moved(own, fork->timers[at].order));
  for (uint32_t at = 0; at < fork->flows.n; at++)
    note_running(engine, moved(own, fork->flows.flows[at].task));
  for (uint32_t device = 0; device < n; device++)
    move_walker(own, device);
  memcpy(engine->overlap->extra, fork->extra, (size_t)n * PL_CATEGORY_COUNT * sizeof *fork->extra);
  memcpy(engine->overlap->waiting, fork->waiting, n * sizeof *fork->waiting);
}

/* ---- the network ---- */

/* A work task on the network is in one of its parts. */
static uint32_t moved_spec(const moving *own, uint32_t task) {
  const pl_engine *engine = own->engine;
  const pl_task *record = pl_engine_task(engine, task);
  if (record->kind == PL_TASK_TRANSFER) return record->index;
  const pl_stream *stream = &engine->graph->streams[*pl_task_streams(engine, record)];
  return engine->graph->parts[engine->overlap->walkers[stream->device].part].spec;
}

static bool shares_network(const pl_engine *engine, const pl_engine_fork *fork) {
  const pl_network_ops *ops = engine->network->ops;
  return ops->take_over != NULL && ops->shares_scales(engine->network, &fork->flows);
}

/* Without memory the network reports no further event, and the engine says so in the end. */
static void move_flows(moving *own) {
  pl_engine *engine = own->engine;
  for (uint32_t at = 0; at < own->fork->flows.n; at++) {
    pl_under_way flow = own->fork->flows.flows[at];
    flow.task = moved(own, flow.task);
    flow.spec = moved_spec(own, flow.task);
    if (!engine->network->ops->take_over(engine->network, &flow)) return;
  }
  if (engine->network != NULL) engine->network_next = engine->network->ops->settle(engine->network, own->fork->now);
}

/* ---- sums ---- */

static int64_t more_resident(const moving *own, uint32_t device) {
  return own->engine->graph->devices[device].resident_bytes - own->fork->of.graph->devices[device].resident_bytes;
}

static void move_balances(moving *own) {
  for (uint32_t device = 0; device < own->engine->graph->n_devices; device++) {
    int64_t more = more_resident(own, device);
    own->engine->balance[device] = (pl_balance){.bytes = own->fork->balance[device].bytes + more,
                                                .peak_bytes = own->fork->balance[device].peak_bytes + more};
  }
}

static void move_watch(moving *own) {
  pl_watch *watch = own->engine->watch;
  for (uint32_t at = 0; at < watch->islands.n; at++) {
    pl_watched *to = &watch->watched[at];
    const kept_island *kept = &own->fork->islands[at];
    PL_ASSERT(to->n_devices == kept->n_devices);
    to->n_leaps = kept->n_leaps;
    to->phase = kept->phase;
    to->next = kept->next;
    to->awaited = PL_NONE;
    watch->is_missed |= kept->n_leaps == 0;
    to->n_events = kept->n_events;
    memcpy(to->leaps, kept->leaps, sizeof to->leaps);
    memcpy(to->distance, kept->distance, sizeof to->distance);
    for (uint32_t device = 0; device < to->n_devices; device++)
      to->peak[device] = kept->peak[device] + more_resident(own, to->devices[device]);
  }
}

bool pl_fork_go_on(pl_engine *engine) {
  const pl_engine_fork *fork = engine->options.from;
  const pl_graph_heads *heads = engine->options.heads;
  moving own = {.engine = engine, .fork = fork, .from = fork->of.heads, .to = heads};
  const pl_transfer_table *table = &engine->graph->transfers;
  const pl_headed_graph here = {engine->graph, heads, table->link_capacity_Bps, table->link_policy};
  if (!fork->is_kept || engine->streams != NULL || engine->spans != NULL || engine->options.drifts ||
      fork->has_overlap != (engine->overlap != NULL) || !islands_are_alike(&own) ||
      (fork->rolled != NULL) != (engine->dates != NULL))
    return false;
  if (fork->rolled != NULL && (fork->rolled->spent.account.charges != NULL) != engine->options.record_charges)
    return false;
  if (engine->network == NULL ? fork->flows.n > 0 : !shares_network(engine, fork)) return false;
  if (!pl_graph_heads_alike(&fork->of, &here, engine->arena) || !edges_are_ahead(&own)) return false;
  move_dates(&own);
  if (engine->arena->failed) return true; /* which the engine says in the end */
  move_timers(&own);
  if (engine->overlap != NULL) move_overlap(&own);
  if (engine->watch != NULL) move_watch(&own);
  move_balances(&own);
  engine->n_left = engine->graph->n_tasks - fork->n_finished;
  engine->n_taken_over = fork->n_finished;
  engine->n_events = fork->n_events;
  engine->makespan = fork->makespan;
  move_flows(&own);
  return true;
}
