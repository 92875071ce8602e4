/* See workloads/trace/replay_trace.h. */
#include "workloads/trace/replay_trace.h"

#include <stdlib.h>
#include <string.h>

typedef struct recording {
  const pl_trace_replay *replay;
  const pl_trace *from;
  pl_trace *to;
  uint32_t *name, *group, *op; /* of `from` in `to`; PL_NONE: not there yet */
} recording;

static uint32_t name_of(recording *own, uint32_t name) {
  if (name == PL_NONE) return PL_NONE;
  if (own->name[name] == PL_NONE)
    own->name[name] = pl_trace_name(own->to, own->from->names[name], strlen(own->from->names[name]));
  return own->name[name];
}

static uint32_t message_of(recording *own, uint32_t index) {
  pl_trace_message message = own->from->messages[index];
  if (message.tag != PL_NONE && (message.tag = name_of(own, message.tag)) == PL_NONE) return PL_NONE;
  if (message.kind != PL_TRACE_POINT_TO_POINT) {
    const pl_trace_group *group = &own->from->groups[message.group];
    uint32_t *known = &own->group[message.group];
    if (*known == PL_NONE) {
      uint32_t name = name_of(own, group->name);
      static const int64_t nobody = 0;
      const int64_t *members = group->n_members > 0 ? own->from->members + group->first_member : &nobody;
      *known = name == PL_NONE ? PL_NONE : pl_trace_add_group(own->to, name, members, group->n_members);
    }
    message.group = *known;
    if (message.group == PL_NONE) return PL_NONE;
  }
  return pl_trace_add_message(own->to, message);
}

static bool add_ops(recording *own, const pl_trace_rank *rank, uint32_t step, const pl_ticks *finish, int64_t *end_ns) {
  uint32_t from = PL_NONE, stream = PL_NONE, r = own->to->n_ranks - 1;
  for (uint32_t k = rank->first_op; k < rank->first_op + rank->n_ops; k++) {
    if (own->replay->gate[k] == PL_NONE) continue;
    pl_trace_op op = own->from->ops[k];
    if (op.stream != from) {
      from = op.stream;
      stream = pl_trace_add_stream(own->to, r, name_of(own, own->from->streams[from].name),
                                   (pl_trace_stream_kind)own->from->streams[from].kind);
    }
    uint32_t name = name_of(own, op.name);
    op.name = name & PL_TRACE_MOST_NAMES;
    op.stream = stream;
    op.step = step;
    op.start_ns = pl_ticks_to_ns(finish[own->replay->gate[k]]);
    op.duration_ns = pl_ticks_to_ns(finish[own->replay->body[k]]) - op.start_ns;
    if (op.start_ns + op.duration_ns > *end_ns) *end_ns = op.start_ns + op.duration_ns;
    if (op.message != PL_NONE && (op.message = message_of(own, op.message)) == PL_NONE) return false;
    own->op[k] = pl_trace_add_op(own->to, op);
    if (name == PL_NONE || stream == PL_NONE || own->op[k] == PL_NONE) return false;
  }
  return true;
}

static bool add_edges(recording *own, const pl_trace_rank *rank) {
  for (uint32_t e = 0; e < own->from->n_edges; e++) {
    const pl_trace_edge *edge = &own->from->edges[e];
    if (edge->after < rank->first_op || edge->after >= rank->first_op + rank->n_ops) continue;
    if (own->op[edge->before] == PL_NONE || own->op[edge->after] == PL_NONE) continue;
    if (pl_trace_add_edge(own->to, own->op[edge->before], own->op[edge->after], edge->from_start) == PL_NONE)
      return false;
  }
  return true;
}

static pl_code add_rank(recording *own, uint32_t r, const pl_ticks *finish, pl_error *error) {
  pl_trace *to = own->to;
  const pl_trace_rank *rank = &own->from->ranks[r];
  uint32_t first_edge = to->n_edges, index = to->n_ranks, step = to->n_steps;
  pl_trace_rank added = {.number = rank->number,
                         .host = pl_trace_name(to, "replayed", 8), /* dates are on one clock already */
                         .file = name_of(own, rank->file),
                         .first_op = to->n_ops,
                         .first_step = step,
                         .world_size = rank->world_size};
  int64_t end_ns = 0;
  if (added.host == PL_NONE || added.file == PL_NONE || pl_trace_add_rank(to, added) == PL_NONE ||
      pl_trace_add_step(to, (pl_trace_step){index, own->replay->span.number, 0, 0}) == PL_NONE ||
      !add_ops(own, rank, step, finish, &end_ns) || !add_edges(own, rank))
    return pl_fail_memory(error, "a trace");
  to->steps[step].duration_ns = end_ns;
  return pl_trace_end_rank(to, index, first_edge, error);
}

pl_code pl_trace_replay_record(const pl_trace_replay *replay, const pl_ticks *finish, pl_trace *out, pl_error *error) {
  const pl_trace *from = replay->trace;
  recording own = {.replay = replay, .from = from, .to = out};
  own.name = malloc(((size_t)from->n_names + 1) * sizeof *own.name);
  own.group = malloc(((size_t)from->n_groups + 1) * sizeof *own.group);
  own.op = malloc(((size_t)from->n_ops + 1) * sizeof *own.op);
  pl_code code = own.name == NULL || own.group == NULL || own.op == NULL ? pl_fail_memory(error, "a trace") : PL_OK;
  if (code == PL_OK) {
    memset(own.name, 0xff, from->n_names * sizeof *own.name);
    memset(own.group, 0xff, from->n_groups * sizeof *own.group);
    memset(own.op, 0xff, from->n_ops * sizeof *own.op);
  }
  for (uint32_t r = 0; code == PL_OK && r < from->n_ranks; r++)
    code = add_rank(&own, r, finish, error);
  free(own.name);
  free(own.group);
  free(own.op);
  return code;
}
