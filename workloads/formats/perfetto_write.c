/* See workloads/formats/perfetto.h. */
#include "workloads/formats/perfetto.h"

#include <stdlib.h>

#include "core/text/json_writer.h"
#include "workloads/trace/meetings.h"

typedef struct writing {
  const pl_trace *trace;
  int64_t base_ns;
  pl_json json;
  uint32_t *first_edge, *edges; /* by the op that waits: edges[first_edge[op]] .. */
  int64_t n_arrows;
} writing;

static const pl_trace_rank *rank_of(const writing *own, uint32_t op) {
  return &own->trace->ranks[pl_trace_rank_of(own->trace, op)];
}

static int64_t date_of(const writing *own, const pl_trace_rank *rank, int64_t date_ns) {
  return date_ns + (rank->epoch_ns - own->base_ns);
}

static void open_event(writing *own, const char *phase, const char *name, const pl_trace_rank *rank, int64_t thread) {
  pl_json_open_object(&own->json);
  pl_json_put_string(&own->json, "ph", phase);
  pl_json_put_string(&own->json, "name", name);
  pl_json_put_integer(&own->json, "pid", rank->number);
  pl_json_put_integer(&own->json, "tid", thread);
}

static void open_arguments(writing *own) {
  pl_json_key(&own->json, "args");
  pl_json_open_object(&own->json);
}

static void close_event(writing *own) {
  pl_json_close_object(&own->json);
  pl_json_close_object(&own->json);
}

static bool index_edges(writing *own) {
  const pl_trace *trace = own->trace;
  own->first_edge = calloc((size_t)trace->n_ops + 2, sizeof *own->first_edge);
  own->edges = malloc(((size_t)trace->n_edges + 1) * sizeof *own->edges);
  if (own->first_edge == NULL || own->edges == NULL) return false;
  for (uint32_t e = 0; e < trace->n_edges; e++)
    own->first_edge[trace->edges[e].after + 2]++;
  for (uint32_t k = 2; k < trace->n_ops + 2; k++)
    own->first_edge[k] += own->first_edge[k - 1];
  for (uint32_t e = 0; e < trace->n_edges; e++)
    own->edges[own->first_edge[trace->edges[e].after + 1]++] = e;
  return true;
}

/* ---- what ranks, groups and streams are ---- */

static void put_rank(writing *own, const pl_trace_rank *rank) {
  char name[32];
  snprintf(name, sizeof name, "rank %lld", (long long)rank->number);
  open_event(own, "M", "process_name", rank, 0);
  open_arguments(own);
  pl_json_put_string(&own->json, "name", name);
  pl_json_put_string(&own->json, "host", own->trace->names[rank->host]);
  if (rank->world_size > 0) pl_json_put_integer(&own->json, "world_size", rank->world_size);
  close_event(own);
}

static void put_group(writing *own, uint32_t g) {
  const pl_trace_group *group = &own->trace->groups[g];
  open_event(own, "M", "paceline_group", &own->trace->ranks[0], 0);
  open_arguments(own);
  pl_json_put_integer(&own->json, "group", g);
  pl_json_put_string(&own->json, "name", own->trace->names[group->name]);
  pl_json_key(&own->json, "members");
  pl_json_open_array(&own->json);
  for (uint32_t m = 0; m < group->n_members; m++)
    pl_json_integer(&own->json, own->trace->members[group->first_member + m]);
  pl_json_close_array(&own->json);
  close_event(own);
}

static void put_stream(writing *own, uint32_t s) {
  const pl_trace_stream *stream = &own->trace->streams[s];
  open_event(own, "M", "thread_name", &own->trace->ranks[stream->rank], (int64_t)s + 1);
  open_arguments(own);
  pl_json_put_string(&own->json, "name", own->trace->names[stream->name]);
  pl_json_put_string(&own->json, "kind", pl_trace_stream_kind_names[stream->kind]);
  close_event(own);
}

/* ---- steps and ops ---- */

static void put_slice(writing *own, const char *name, const char *category, const pl_trace_rank *rank, int64_t thread,
                      int64_t start_ns, int64_t duration_ns) {
  open_event(own, "X", name, rank, thread);
  pl_json_put_string(&own->json, "cat", category);
  pl_json_put_thousandths(&own->json, "ts", date_of(own, rank, start_ns));
  pl_json_put_thousandths(&own->json, "dur", duration_ns);
  open_arguments(own);
}

static void put_step(writing *own, const pl_trace_rank *rank, const pl_trace_step *step) {
  char name[40];
  snprintf(name, sizeof name, "step %lld", (long long)step->number);
  put_slice(own, name, "step", rank, 0, step->start_ns, step->duration_ns);
  pl_json_put_integer(&own->json, "step", step->number);
  close_event(own);
}

static void put_waits(writing *own, uint32_t op, const char *key, bool from_start) {
  bool open = false;
  for (uint32_t k = own->first_edge[op]; k < own->first_edge[op + 1]; k++) {
    const pl_trace_edge *edge = &own->trace->edges[own->edges[k]];
    if (edge->from_start != from_start) continue;
    if (!open) pl_json_key(&own->json, key);
    if (!open) pl_json_open_array(&own->json);
    open = true;
    pl_json_integer(&own->json, edge->before);
  }
  if (open) pl_json_close_array(&own->json);
}

static void put_message(writing *own, const pl_trace_message *message) {
  pl_json_put_string(&own->json, "message", pl_trace_message_kind_names[message->kind]);
  if (message->group != PL_NONE) pl_json_put_integer(&own->json, "group", message->group);
  if (message->peer >= 0) pl_json_put_integer(&own->json, "peer", message->peer);
  if (message->tag != PL_NONE) pl_json_put_string(&own->json, "tag", own->trace->names[message->tag]);
  if (message->size_bytes >= 0) pl_json_put_integer(&own->json, "bytes", message->size_bytes);
  if (message->sequence >= 0) pl_json_put_integer(&own->json, "sequence", message->sequence);
}

static void put_op(writing *own, const pl_trace_rank *rank, uint32_t k) {
  const pl_trace_op *op = &own->trace->ops[k];
  put_slice(own, pl_trace_op_name(own->trace, k), pl_trace_op_kind_names[op->kind], rank, (int64_t)op->stream + 1,
            op->start_ns, op->duration_ns);
  pl_json_put_integer(&own->json, "id", k);
  if (op->step != PL_NONE) pl_json_put_integer(&own->json, "step", own->trace->steps[op->step].number);
  put_waits(own, k, "after", false);
  put_waits(own, k, "launched_by", true);
  if (op->message != PL_NONE) put_message(own, &own->trace->messages[op->message]);
  close_event(own);
}

/* ---- arrows ---- */

/* From within a slice to the beginning of another. Perfetto binds the tail to the slice around its date. */
static void put_arrow(writing *own, uint32_t before, uint32_t after, bool from_start) {
  const pl_trace_op *ends[2] = {&own->trace->ops[before], &own->trace->ops[after]};
  int64_t id = own->n_arrows++, last = pl_trace_end_ns(ends[0]) - 1;
  int64_t dates[2] = {from_start || last < ends[0]->start_ns ? ends[0]->start_ns : last, ends[1]->start_ns};
  for (int e = 0; e < 2; e++) {
    const pl_trace_rank *rank = rank_of(own, e == 0 ? before : after);
    open_event(own, e == 0 ? "s" : "f", "waits for", rank, (int64_t)ends[e]->stream + 1);
    pl_json_put_string(&own->json, "cat", "dependency");
    pl_json_put_integer(&own->json, "id", id);
    if (e == 1) pl_json_put_string(&own->json, "bp", "e");
    pl_json_put_thousandths(&own->json, "ts", date_of(own, rank, dates[e]));
    pl_json_close_object(&own->json);
  }
}

static void put_arrows(writing *own) {
  const pl_trace *trace = own->trace;
  for (uint32_t e = 0; e < trace->n_edges; e++) {
    const pl_trace_edge *edge = &trace->edges[e];
    if (trace->ops[edge->before].stream != trace->ops[edge->after].stream)
      put_arrow(own, edge->before, edge->after, edge->from_start);
  }
}

/* Of messages whose ends were both recorded; where ranks part nothing is drawn. */
static pl_code put_message_arrows(writing *own, pl_error *error) {
  pl_trace_meetings meetings;
  pl_error parts = PL_ERROR_INIT;
  pl_code code = pl_trace_meetings_make(own->trace, &meetings, &parts);
  for (uint32_t m = 0; code == PL_OK && m < meetings.n; m++) {
    const pl_trace_meeting *meeting = &meetings.meetings[m];
    if (meeting->is_transfer && meeting->n == 2)
      put_arrow(own, meetings.ops[meeting->first], meetings.ops[meeting->first + 1], true);
  }
  pl_trace_meetings_release(&meetings);
  return code == PL_OK || code == PL_BAD_INPUT ? PL_OK : pl_fail(error, code, "%s", parts.message);
}

/* ---- the file ---- */

static pl_code put_all(writing *own, pl_error *error) {
  const pl_trace *trace = own->trace;
  pl_json *json = &own->json;
  pl_json_open_object(json);
  pl_json_put_integer(json, "paceline_perfetto", PL_PERFETTO_VERSION);
  pl_json_put_integer(json, "base_ns", own->base_ns);
  pl_json_put_string(json, "displayTimeUnit", "ms");
  pl_json_key(json, "traceEvents");
  pl_json_open_array(json);
  for (uint32_t g = 0; trace->n_ranks > 0 && g < trace->n_groups; g++)
    put_group(own, g);
  for (uint32_t r = 0; r < trace->n_ranks; r++) {
    const pl_trace_rank *rank = &trace->ranks[r];
    put_rank(own, rank);
    for (uint32_t s = 0; s < trace->n_streams; s++)
      if (trace->streams[s].rank == r) put_stream(own, s);
    for (uint32_t s = rank->first_step; s < rank->first_step + rank->n_steps; s++)
      put_step(own, rank, &trace->steps[s]);
    for (uint32_t k = rank->first_op; k < rank->first_op + rank->n_ops; k++)
      put_op(own, rank, k);
  }
  put_arrows(own);
  PL_TRY(put_message_arrows(own, error));
  pl_json_close_array(json);
  pl_json_close_object(json);
  fputc('\n', own->json.stream);
  return PL_OK;
}

pl_code pl_perfetto_write(FILE *file, const pl_trace *trace, pl_error *error) {
  writing own = {.trace = trace, .base_ns = INT64_MAX};
  for (uint32_t r = 0; r < trace->n_ranks; r++)
    if (trace->ranks[r].epoch_ns < own.base_ns) own.base_ns = trace->ranks[r].epoch_ns;
  if (trace->n_ranks == 0 || own.base_ns < 0) own.base_ns = 0;
  pl_json_init(&own.json, file, false);
  pl_code code = index_edges(&own) ? put_all(&own, error) : pl_fail_memory(error, "a trace");
  free(own.first_edge);
  free(own.edges);
  return code;
}
