/* See workloads/run/recording.h. */
#include "workloads/run/recording.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t message_kinds[PL_COLLECTIVE_COUNT] = {
    [PL_ALL_REDUCE] = PL_TRACE_ALL_REDUCE, [PL_REDUCE_SCATTER] = PL_TRACE_REDUCE_SCATTER,
    [PL_ALL_GATHER] = PL_TRACE_ALL_GATHER, [PL_BROADCAST] = PL_TRACE_BROADCAST,
    [PL_ALL_TO_ALL] = PL_TRACE_ALL_TO_ALL, [PL_SEND] = PL_TRACE_POINT_TO_POINT};

typedef struct recording {
  const pl_recorded_run *run;
  const pl_graph *graph;
  pl_trace *trace;
  int64_t *rank_of; /* per graph device: its number */
  uint32_t *device; /* per rank number: the graph device; PL_NONE */
  uint32_t *stream; /* per graph stream, in the trace */
  uint32_t *op;     /* per place in graph->task_streams: the op on that stream */
  uint32_t *stack, *seen;
  uint32_t n_apart; /* dependencies between ranks that no message carries */
} recording;

static uint32_t name_of(const recording *own, const char *text) {
  return pl_trace_name(own->trace, text, strlen(text));
}

static bool take(recording *own) {
  const pl_graph *graph = own->graph;
  uint32_t n_ranks = pl_strategy_n_ranks(own->run->strategy);
  own->rank_of = malloc(((size_t)graph->n_devices + 1) * sizeof *own->rank_of);
  own->device = malloc(((size_t)n_ranks + 1) * sizeof *own->device);
  own->stream = malloc(((size_t)graph->n_streams + 1) * sizeof *own->stream);
  own->op = malloc(((size_t)graph->n_task_streams + 1) * sizeof *own->op);
  own->stack = malloc(((size_t)graph->n_tasks + 1) * sizeof *own->stack);
  own->seen = malloc(((size_t)graph->n_tasks + 1) * sizeof *own->seen);
  if (own->rank_of == NULL || own->device == NULL || own->stream == NULL || own->op == NULL || own->stack == NULL ||
      own->seen == NULL)
    return false;
  memset(own->op, 0xff, graph->n_task_streams * sizeof *own->op);
  memset(own->seen, 0xff, graph->n_tasks * sizeof *own->seen);
  for (uint32_t rank = 0; rank < n_ranks; rank++) {
    own->device[rank] = PL_NONE;
    for (uint32_t d = 0; d < graph->n_devices; d++)
      if (graph->devices[d].device == pl_strategy_device_of_rank(own->run->strategy, rank)) {
        own->device[rank] = d;
        own->rank_of[d] = rank;
      }
    if (own->device[rank] == PL_NONE) return false;
  }
  return true;
}

static void release(recording *own) {
  free(own->rank_of);
  free(own->device);
  free(own->stream);
  free(own->op);
  free(own->stack);
  free(own->seen);
}

/* ---- messages ---- */

static const pl_communication *communication_of(const recording *own, uint32_t task) {
  const pl_task_origin *origin = pl_origins_task(own->run->origins, task);
  if (origin == NULL || origin->family == PL_NONE) return NULL;
  return &own->run->program->families[origin->family].ops[origin->family_op];
}

static int64_t rank_at(const recording *own, const pl_task *task, uint32_t place) {
  return own->rank_of[own->graph->streams[own->graph->task_streams[task->first_stream + place]].device];
}

static bool receives(const recording *own, const pl_task *task, uint32_t place) {
  uint8_t kind = own->graph->streams[own->graph->task_streams[task->first_stream + place]].kind;
  return kind == PL_STREAM_RECEIVE_DOWN || kind == PL_STREAM_RECEIVE_UP || kind == PL_STREAM_RECEIVE_DOWN_2 ||
         kind == PL_STREAM_RECEIVE_UP_2;
}

/* Of the op of `task` at `place` among its streams. */
static bool add_message(const recording *own, uint32_t index, uint32_t place, uint32_t name, pl_trace_op *op) {
  const pl_task *task = &own->graph->tasks[index];
  const pl_communication *says = communication_of(own, index);
  pl_trace_message message = {message_kinds[says->kind], PL_NONE, -1, PL_NONE, -1, llrint(says->size_bytes)};
  bool transfer = says->kind == PL_SEND && task->n_streams == 2;
  op->kind = !transfer ? PL_TRACE_COLLECTIVE : receives(own, task, place) ? PL_TRACE_RECEIVE : PL_TRACE_SEND;
  if (transfer) {
    message.peer = (int32_t)rank_at(own, task, 1 - place);
    message.tag = name;
  } else {
    int64_t *members = malloc(task->n_streams * sizeof *members);
    if (members == NULL) return false;
    for (uint32_t m = 0; m < task->n_streams; m++)
      members[m] = rank_at(own, task, m);
    if (message.kind == PL_TRACE_POINT_TO_POINT) message.kind = PL_TRACE_OTHER_COLLECTIVE;
    uint32_t family = name_of(own, pl_category_name((pl_category)task->category));
    message.group = family == PL_NONE ? PL_NONE : pl_trace_add_group(own->trace, family, members, task->n_streams);
    free(members);
    if (message.group == PL_NONE) return false;
  }
  op->message = pl_trace_add_message(own->trace, message);
  return op->message != PL_NONE;
}

/* ---- ops ---- */

static const char *label_of(const recording *own, uint32_t index) {
  const pl_task *task = &own->graph->tasks[index];
  if (task->label != PL_NONE) return own->graph->names[task->label];
  if (task->kind == PL_TASK_WORK) {
    const pl_part *part = &own->graph->parts[own->graph->segments[task->index].first_part];
    if (part->name != PL_NONE) return own->graph->names[part->name];
  }
  return pl_category_name((pl_category)task->category);
}

/* The ops of the rank on graph device `device`. */
static bool add_ops(recording *own, uint32_t device, uint32_t step) {
  const pl_graph *graph = own->graph;
  for (uint32_t t = 0; t < graph->n_tasks; t++) {
    const pl_task *task = &graph->tasks[t];
    for (uint32_t m = 0; m < task->n_streams; m++) {
      uint32_t stream = graph->task_streams[task->first_stream + m];
      if (graph->streams[stream].device != device) continue;
      uint32_t name = name_of(own, label_of(own, t));
      int64_t start_ns = pl_ticks_to_ns(own->run->result->start[t]);
      if (name == PL_NONE) return false;
      pl_trace_op op = pl_trace_op_of(start_ns, pl_ticks_to_ns(own->run->result->finish[t]) - start_ns, name,
                                      own->stream[stream], PL_NONE, step, PL_TRACE_COMPUTE);
      if (task->n_streams > 1 && communication_of(own, t) != NULL && !add_message(own, t, m, name, &op)) return false;
      uint32_t added = pl_trace_add_op(own->trace, op);
      if (added == PL_NONE) return false;
      own->op[task->first_stream + m] = added;
    }
  }
  return true;
}

static uint32_t op_on(const recording *own, uint32_t t, uint32_t device) {
  const pl_task *task = &own->graph->tasks[t];
  for (uint32_t m = 0; m < task->n_streams; m++)
    if (own->graph->streams[own->graph->task_streams[task->first_stream + m]].device == device)
      return own->op[task->first_stream + m];
  return PL_NONE;
}

static bool shares_a_device(const recording *own, uint32_t t, uint32_t next) {
  const pl_task *task = &own->graph->tasks[t];
  for (uint32_t m = 0; m < task->n_streams; m++) {
    uint32_t device = own->graph->streams[own->graph->task_streams[task->first_stream + m]].device;
    const pl_task *other = &own->graph->tasks[next];
    for (uint32_t o = 0; o < other->n_streams; o++)
      if (own->graph->streams[own->graph->task_streams[other->first_stream + o]].device == device) return true;
  }
  return false;
}

/* What waits for task `t` on `device`, also behind tasks that are on no stream. */
static bool add_edges_from(recording *own, uint32_t t, uint32_t device, uint32_t op) {
  uint32_t n = 0;
  own->stack[n++] = t;
  while (n > 0) {
    const pl_task *at = &own->graph->tasks[own->stack[--n]];
    for (uint32_t s = 0; s < at->n_successors; s++) {
      uint32_t next = own->graph->successors[at->first_successor + s];
      if (own->graph->tasks[next].n_streams == 0) {
        if (own->seen[next] != op) own->stack[n++] = next;
        own->seen[next] = op;
        continue;
      }
      uint32_t after = op_on(own, next, device);
      if (after != PL_NONE && after != op && pl_trace_previous(own->trace, after) != op &&
          pl_trace_add_edge(own->trace, op, after, false) == PL_NONE)
        return false;
      own->n_apart += after == PL_NONE && !shares_a_device(own, t, next);
    }
  }
  return true;
}

static bool add_edges(recording *own, uint32_t device) {
  for (uint32_t t = 0; t < own->graph->n_tasks; t++) {
    uint32_t op = op_on(own, t, device);
    if (op != PL_NONE && !add_edges_from(own, t, device, op)) return false;
  }
  return true;
}

static pl_code add_rank(recording *own, uint32_t number, pl_error *error) {
  pl_trace *trace = own->trace;
  const pl_graph *graph = own->graph;
  uint32_t device = own->device[number], index = trace->n_ranks, first_edge = trace->n_edges, step = trace->n_steps;
  pl_trace_rank rank = {.number = number,
                        .host = name_of(own, "simulated"),
                        .file = name_of(own, own->run->name),
                        .first_op = trace->n_ops,
                        .first_step = step,
                        .world_size = pl_strategy_n_ranks(own->run->strategy)};
  pl_trace_step whole = {index, 0, 0, pl_ticks_to_ns(own->run->result->makespan)};
  if (rank.host == PL_NONE || rank.file == PL_NONE || pl_trace_add_rank(trace, rank) == PL_NONE ||
      pl_trace_add_step(trace, whole) == PL_NONE)
    return pl_fail_memory(error, "a recording");
  for (uint32_t s = 0; s < graph->n_streams; s++) {
    if (graph->streams[s].device != device) continue;
    uint32_t name = name_of(own, pl_stream_kind_name((pl_stream_kind)graph->streams[s].kind));
    bool computes = graph->streams[s].kind == PL_STREAM_COMPUTE;
    own->stream[s] = pl_trace_add_stream(trace, index, name, computes ? PL_TRACE_DEVICE : PL_TRACE_NETWORK);
    if (name == PL_NONE || own->stream[s] == PL_NONE) return pl_fail_memory(error, "a recording");
  }
  if (!add_ops(own, device, step) || !add_edges(own, device)) return pl_fail_memory(error, "a recording");
  return pl_trace_end_rank(trace, index, first_edge, error);
}

pl_code pl_recording_take(const pl_recorded_run *run, pl_trace *trace, pl_error *error) {
  recording own = {.run = run, .graph = run->graph, .trace = trace};
  pl_code code = take(&own) ? PL_OK : pl_fail_memory(error, "a recording");
  for (uint32_t number = 0; code == PL_OK && number < pl_strategy_n_ranks(run->strategy); number++)
    code = add_rank(&own, number, error);
  if (code == PL_OK && own.n_apart > 0)
    pl_trace_add_note(trace, "%u dependencies between ranks that no message carries, kept as dates only", own.n_apart);
  release(&own);
  return code;
}
