/* The graph of a step (see workloads/trace/replay.h). */
#include "workloads/trace/replay.h"

#include <stdlib.h>
#include <string.h>

typedef struct making {
  pl_trace_replay *replay;
  const pl_trace *trace;
  const uint32_t *ops; /* of the step */
  uint32_t n_ops;
  pl_graph_builder *builder;
  pl_arena *arena;
  uint32_t n_tasks, most_tasks;
  const uint32_t *first_edge, *edge; /* edges of the trace by the op that waits */
  const int64_t *latency_ns;         /* per rank */
  bool is_eager;                     /* messages travel before they are asked for */
} making;

/* Recorded dates on the common clock, from the start of the step. */
static int64_t start_of(const making *own, uint32_t op) {
  const pl_trace *trace = own->trace;
  uint32_t rank = pl_trace_rank_of(trace, op);
  return pl_trace_clocks_date(trace, own->replay->clocks, rank, trace->ops[op].start_ns) - own->replay->span.start_ns;
}

static int64_t end_of(const making *own, uint32_t op) {
  const pl_trace *trace = own->trace;
  uint32_t rank = pl_trace_rank_of(trace, op);
  return pl_trace_clocks_date(trace, own->replay->clocks, rank, pl_trace_end_ns(&trace->ops[op])) -
         own->replay->span.start_ns;
}

static uint32_t add_task(making *own, pl_trace_role role, uint32_t subject, int64_t duration_ns) {
  pl_trace_replay *replay = own->replay;
  pl_ticks ticks = pl_trace_ticks_from_ns(duration_ns);
  uint32_t label = pl_graph_builder_name(
      own->builder, role == PL_TRACE_JOIN
                        ? pl_trace_op_name(own->trace, replay->meetings->ops[replay->meetings->meetings[subject].first])
                        : pl_trace_op_name(own->trace, subject));
  uint32_t task = pl_graph_builder_delay(own->builder, ticks, PL_CATEGORY_OTHER, NULL, 0, label, -1);
  if (task == PL_NONE || task >= own->most_tasks) return PL_NONE;
  replay->role[task] = (uint8_t)role;
  replay->subject[task] = subject;
  replay->ticks[task] = ticks;
  own->n_tasks = task + 1;
  return task;
}

static void add_edge(making *own, uint32_t before, uint32_t after) {
  pl_graph_builder_edge(own->builder, before, after);
}

/* ---- gates ---- */

static int64_t later(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* What `before` lets begin: directly, after a launch, or, where it is of another step, at its recorded date. Returns
 * that date. */
static int64_t hold(making *own, uint32_t before, uint32_t op, bool from_start, bool linking) {
  pl_trace_replay *replay = own->replay;
  int64_t launch = 0;
  if (from_start && own->trace->ops[before].kind == PL_TRACE_CALL)
    launch = own->latency_ns[pl_trace_rank_of(own->trace, op)];
  int64_t date = from_start ? start_of(own, before) + launch : end_of(own, before);
  if (!linking) return date;
  uint32_t task;
  if (replay->gate[before] == PL_NONE) {
    if (date <= 0) return date;
    task = add_task(own, PL_TRACE_RELEASE, op, date);
  } else if (!from_start) {
    task = replay->body[before];
  } else if (launch > 0) {
    task = add_task(own, PL_TRACE_LATENCY, op, launch);
    add_edge(own, replay->gate[before], task);
  } else {
    task = replay->gate[before];
  }
  add_edge(own, task, replay->gate[op]);
  return date;
}

/* Of all that the op's start waits for: the latest date; with `linking` the edges are made. */
static int64_t hold_all(making *own, uint32_t op, bool linking) {
  const pl_trace *trace = own->trace;
  int64_t date = 0;
  uint32_t previous = pl_trace_previous(trace, op);
  if (previous != PL_NONE) date = later(date, hold(own, previous, op, false, linking));
  bool waits = trace->ops[op].kind == PL_TRACE_WAIT;
  for (uint32_t k = own->first_edge[op]; k < own->first_edge[op + 1]; k++) {
    const pl_trace_edge *edge = &trace->edges[own->edge[k]];
    bool from_host = trace->streams[trace->ops[edge->before].stream].kind == PL_TRACE_HOST;
    if (waits && !from_host) continue; /* holds its end, not its start */
    date = later(date, hold(own, edge->before, op, edge->from_start, linking));
  }
  return date;
}

static bool add_gates(making *own) {
  pl_trace_replay *replay = own->replay;
  const pl_trace *trace = own->trace;
  memset(replay->gate, 0xff, trace->n_ops * sizeof *replay->gate);
  memset(replay->body, 0xff, trace->n_ops * sizeof *replay->body);
  replay->n_ops = own->n_ops;
  for (uint32_t k = 0; k < own->n_ops; k++) {
    uint32_t op = own->ops[k];
    replay->gate[op] = add_task(own, PL_TRACE_GATE, op, start_of(own, op) - hold_all(own, op, false));
    if (replay->gate[op] == PL_NONE) return false;
  }
  return true;
}

/* ---- bodies ---- */

static bool is_in(const making *own, uint32_t op) {
  return own->replay->gate[op] != PL_NONE;
}

/* ---- messages: sent into buffers, or only once the receiver is there? ---- */

typedef struct timed {
  int64_t size_bytes, time_ns;
} timed;

static int by_size_and_time(const void *a_, const void *b_) {
  const timed *a = a_, *b = b_;
  if (a->size_bytes != b->size_bytes) return a->size_bytes < b->size_bytes ? -1 : 1;
  return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* The median of this size; -1: none. */
static int64_t usual_time(const timed *all, uint32_t n, int64_t size_bytes) {
  uint32_t low = 0, high = n;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (all[middle].size_bytes < size_bytes)
      low = middle + 1;
    else
      high = middle;
  }
  for (high = low; high < n && all[high].size_bytes == size_bytes;)
    high++;
  return high == low ? -1 : all[low + (high - low) / 2].time_ns;
}

/* The recording says, by the messages whose receiver came last: their usual time, that of messages whose sender came
 * last, fits from the send or from the receive. Without such messages they count as sent into buffers. */
static bool judge_messages(making *own) {
  const pl_trace_meetings *meetings = own->replay->meetings;
  timed *usual = PL_TAKE(own->arena, timed, meetings->n + 1);
  if (usual == NULL) return false;
  uint32_t n = 0, eager = 0, late = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t m = 0; m < meetings->n; m++) {
      const uint32_t *ops = meetings->ops + meetings->meetings[m].first;
      if (!meetings->meetings[m].is_transfer || meetings->meetings[m].n != 2 || !is_in(own, ops[0]) ||
          !is_in(own, ops[1]))
        continue;
      int64_t sent = start_of(own, ops[0]), posted = start_of(own, ops[1]), end = end_of(own, ops[1]);
      int64_t size = own->trace->messages[own->trace->ops[ops[0]].message].size_bytes;
      if (pass == 0 && sent >= posted) usual[n++] = (timed){size, end - sent};
      int64_t time = pass == 1 && posted > sent ? usual_time(usual, n, size) : -1;
      if (time < 0) continue;
      late++;
      eager += llabs(end - sent - time) < llabs(end - posted - time) || end - posted < time / 2;
    }
    qsort(usual, n, sizeof *usual, by_size_and_time);
  }
  own->is_eager = 2 * eager >= late;
  return true;
}

static bool add_join(making *own, uint32_t m) {
  pl_trace_replay *replay = own->replay;
  const pl_trace_meeting *meeting = &replay->meetings->meetings[m];
  const uint32_t *ops = replay->meetings->ops + meeting->first;
  replay->join[m] = PL_NONE;
  if (meeting->is_transfer || !is_in(own, ops[0])) return true;
  int64_t arrival = INT64_MIN, leave = INT64_MAX;
  for (uint32_t k = 0; k < meeting->n; k++) {
    arrival = later(arrival, start_of(own, ops[k]));
    int64_t end = end_of(own, ops[k]);
    if (end < leave) leave = end;
  }
  replay->join[m] = add_task(own, PL_TRACE_JOIN, m, leave - arrival);
  if (replay->join[m] == PL_NONE) return false;
  for (uint32_t k = 0; k < meeting->n; k++)
    add_edge(own, replay->gate[ops[k]], replay->join[m]);
  return true;
}

/* From the date at which the join ended, in the recording. */
static int64_t leaving_time(const making *own, uint32_t op, uint32_t m) {
  const pl_trace_meeting *meeting = &own->replay->meetings->meetings[m];
  const uint32_t *ops = own->replay->meetings->ops + meeting->first;
  int64_t arrival = INT64_MIN, leave = INT64_MAX;
  for (uint32_t k = 0; k < meeting->n; k++) {
    arrival = later(arrival, start_of(own, ops[k]));
    if (end_of(own, ops[k]) < leave) leave = end_of(own, ops[k]);
  }
  return end_of(own, op) - later(arrival, leave);
}

/* The other end of a transfer, if it is of the step. */
static uint32_t partner(const making *own, uint32_t op) {
  uint32_t m = own->replay->meetings->of_op[op];
  if (m == PL_NONE) return PL_NONE;
  const pl_trace_meeting *meeting = &own->replay->meetings->meetings[m];
  if (!meeting->is_transfer || meeting->n != 2) return PL_NONE;
  const uint32_t *ops = own->replay->meetings->ops + meeting->first;
  uint32_t other = ops[0] == op ? ops[1] : ops[0];
  return is_in(own, other) ? other : PL_NONE;
}

/* Sent into buffers: the message flies from when it was sent; received is it once it is there and asked for. A receive
 * that was asked for after all had come says nothing of the flight: the send's own time does. */
static bool add_arrival(making *own, uint32_t op, uint32_t send) {
  pl_trace_replay *replay = own->replay;
  int64_t sent = start_of(own, send), posted = start_of(own, op), end = end_of(own, op);
  int64_t sending = own->trace->ops[send].duration_ns;
  int64_t flight = sent + sending < posted && end - posted < sending / 2 ? sending : end - sent;
  uint32_t task = add_task(own, PL_TRACE_FLIGHT, op, flight);
  replay->body[op] = add_task(own, PL_TRACE_BODY, op, end - later(posted, sent + flight));
  add_edge(own, replay->gate[send], task);
  add_edge(own, task, replay->body[op]);
  add_edge(own, replay->gate[op], replay->body[op]);
  return replay->body[op] != PL_NONE;
}

/* A collective of a group is matched within one step, so all its members are in or none is. Arrivals of a meeting are
 * computed once per member: groups are small beside the ops of a step. */
static bool add_body(making *own, uint32_t op) {
  pl_trace_replay *replay = own->replay;
  const pl_trace_op *o = &own->trace->ops[op];
  uint32_t m = replay->meetings->of_op[op];
  uint32_t join = m != PL_NONE ? replay->join[m] : PL_NONE, other = partner(own, op);
  int64_t begun = start_of(own, op);
  if (join != PL_NONE) {
    replay->body[op] = add_task(own, PL_TRACE_BODY, op, leaving_time(own, op, m));
    add_edge(own, join, replay->body[op]);
    return replay->body[op] != PL_NONE;
  }
  if (other != PL_NONE && own->is_eager && o->kind == PL_TRACE_RECEIVE) return add_arrival(own, op, other);
  bool meets =
      other != PL_NONE && !own->is_eager && (o->kind == PL_TRACE_RECEIVE || end_of(own, op) > start_of(own, other));
  if (meets) begun = later(begun, start_of(own, other));
  if (o->kind == PL_TRACE_WAIT)
    for (uint32_t k = own->first_edge[op]; k < own->first_edge[op + 1]; k++) {
      uint32_t before = own->trace->edges[own->edge[k]].before;
      if (own->trace->streams[own->trace->ops[before].stream].kind != PL_TRACE_HOST)
        begun = later(begun, end_of(own, before));
    }
  replay->body[op] = add_task(own, PL_TRACE_BODY, op, end_of(own, op) - begun);
  add_edge(own, replay->gate[op], replay->body[op]);
  if (meets) add_edge(own, replay->gate[other], replay->body[op]);
  return replay->body[op] != PL_NONE;
}

/* What ends a wait: bodies are all there. */
static void hold_wait(making *own, uint32_t op) {
  if (own->trace->ops[op].kind != PL_TRACE_WAIT) return;
  for (uint32_t k = own->first_edge[op]; k < own->first_edge[op + 1]; k++) {
    uint32_t before = own->trace->edges[own->edge[k]].before;
    if (own->trace->streams[own->trace->ops[before].stream].kind == PL_TRACE_HOST) continue;
    if (is_in(own, before)) {
      add_edge(own, own->replay->body[before], own->replay->body[op]);
    } else if (end_of(own, before) > 0) {
      uint32_t release = add_task(own, PL_TRACE_RELEASE, op, end_of(own, before));
      add_edge(own, release, own->replay->body[op]);
    }
  }
}

static bool add_all(making *own) {
  if (!add_gates(own)) return false;
  if (!judge_messages(own)) return false;
  for (uint32_t m = 0; m < own->replay->meetings->n; m++)
    if (!add_join(own, m)) return false;
  for (uint32_t k = 0; k < own->n_ops; k++)
    if (!add_body(own, own->ops[k])) return false;
  for (uint32_t k = 0; k < own->n_ops; k++) {
    hold_all(own, own->ops[k], true);
    hold_wait(own, own->ops[k]);
  }
  return true;
}

/* ---- order ---- */

static bool index_order(pl_trace_replay *replay, pl_arena *arena) {
  const pl_graph *graph = &replay->graph;
  uint32_t n = graph->n_tasks, done = 0;
  replay->order = PL_TAKE(arena, uint32_t, n + 1);
  replay->place = PL_TAKE(arena, uint32_t, n + 1);
  replay->pred_offset = PL_TAKE(arena, uint32_t, n + 2);
  replay->preds = PL_TAKE(arena, uint32_t, graph->n_edges + 1);
  uint32_t *missing = PL_TAKE(arena, uint32_t, n + 1);
  if (replay->order == NULL || replay->place == NULL || replay->pred_offset == NULL || replay->preds == NULL ||
      missing == NULL)
    return false;
  for (uint32_t t = 0; t < n; t++) {
    missing[t] = graph->n_predecessors[t];
    replay->pred_offset[t + 1] = replay->pred_offset[t] + missing[t];
    if (missing[t] == 0) replay->order[done++] = t;
  }
  for (uint32_t head = 0; head < done; head++) {
    uint32_t task = replay->order[head];
    replay->place[task] = head;
    for (uint32_t e = graph->successor_offset[task]; e < graph->successor_offset[task + 1]; e++)
      if (--missing[graph->successors[e]] == 0) replay->order[done++] = graph->successors[e];
  }
  for (uint32_t t = 0; t < n; t++) /* ascending, so preds of a task ascend */
    for (uint32_t e = graph->successor_offset[t]; e < graph->successor_offset[t + 1]; e++) {
      uint32_t after = graph->successors[e];
      replay->preds[replay->pred_offset[after] + missing[after]++] = t;
    }
  return true;
}

pl_code pl_trace_replay_take(const pl_trace *trace, const pl_trace_meetings *meetings, const pl_trace_clocks *clocks,
                             const pl_trace_step_list *steps, uint32_t step, pl_arena *arena, pl_trace_replay *replay,
                             pl_error *error) {
  *replay = (pl_trace_replay){.trace = trace, .meetings = meetings, .clocks = clocks, .span = steps->steps[step]};
  making own = {.replay = replay,
                .trace = trace,
                .ops = steps->ops + steps->first_op[step],
                .n_ops = steps->first_op[step + 1] - steps->first_op[step],
                .first_edge = steps->first_edge,
                .edge = steps->edges,
                .latency_ns = steps->latency_ns,
                .arena = arena};
  /* gate, body and at most one task of its own for each thing that an op waits for */
  uint64_t most = 4 * (uint64_t)own.n_ops + 2 * (uint64_t)trace->n_edges + meetings->n + 1;
  if (most > UINT32_MAX / 4) return pl_fail(error, PL_UNSUPPORTED, "more than %u tasks in one step", UINT32_MAX / 4);
  own.most_tasks = (uint32_t)most;
  replay->gate = PL_TAKE(arena, uint32_t, (size_t)trace->n_ops + 1);
  replay->body = PL_TAKE(arena, uint32_t, (size_t)trace->n_ops + 1);
  replay->join = PL_TAKE(arena, uint32_t, meetings->n + 1);
  replay->role = PL_TAKE(arena, uint8_t, most);
  replay->subject = PL_TAKE(arena, uint32_t, most);
  replay->ticks = PL_TAKE(arena, pl_ticks, most);
  own.builder = pl_graph_builder_take(arena, PL_STREAMS_IN_ORDER);
  bool good = replay->gate != NULL && replay->body != NULL && replay->join != NULL && replay->role != NULL &&
              replay->subject != NULL && replay->ticks != NULL && own.builder != NULL;
  if (!good) return pl_fail_memory(error, "the graph of a step");
  bool whole = add_all(&own);
  PL_TRY(pl_graph_builder_freeze(own.builder, &replay->graph, error));
  if (!whole || !index_order(replay, arena)) return pl_fail_memory(error, "the graph of a step");
  return PL_OK;
}
