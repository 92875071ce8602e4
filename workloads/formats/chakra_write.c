/* A rank as a Chakra trace. Simulators read types, durations, data dependencies and comm_*; the order on a stream is a
 * data dependency, for they know no streams. What else a trace holds goes into attributes of our own. */
#include <chakra.pb-c.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/formats/chakra.h"

enum { MOST_ATTRIBUTES = 20 };

typedef struct draft {
  Chakra__Attribute attributes[MOST_ATTRIBUTES], *list[MOST_ATTRIBUTES];
  size_t n;
} draft;

static Chakra__Attribute *add(draft *own, const char *name, Chakra__Attribute__ValueCase type) {
  Chakra__Attribute *attribute = &own->attributes[own->n];
  PL_ASSERT(own->n < MOST_ATTRIBUTES);
  chakra__attribute__init(attribute);
  attribute->name = (char *)name;
  attribute->value_case = type;
  own->list[own->n++] = attribute;
  return attribute;
}

static void add_integer(draft *own, const char *name, int64_t value) {
  add(own, name, CHAKRA__ATTRIBUTE__VALUE_INT64_VALUE)->int64_value = value;
}

/* ASTRA-sim reads ends and tags as 32 bits. */
static void add_short(draft *own, const char *name, int64_t value) {
  add(own, name, CHAKRA__ATTRIBUTE__VALUE_INT32_VALUE)->int32_value = (int32_t)value;
}

static void add_text(draft *own, const char *name, const char *value) {
  add(own, name, CHAKRA__ATTRIBUTE__VALUE_STRING_VALUE)->string_value = (char *)value;
}

/* ---- records ---- */

static pl_code put(FILE *file, const ProtobufCMessage *message, uint8_t **buffer, size_t *room, pl_error *error) {
  size_t size = protobuf_c_message_get_packed_size(message);
  if (size > *room) {
    uint8_t *larger = realloc(*buffer, 2 * size);
    if (larger == NULL) return pl_fail_memory(error, "a Chakra trace");
    *buffer = larger;
    *room = 2 * size;
  }
  protobuf_c_message_pack(message, *buffer);
  for (size_t left = size;; left >>= 7) {
    fputc((int)(left < 0x80 ? left : 0x80 | (left & 0x7f)), file);
    if (left < 0x80) break;
  }
  fwrite(*buffer, 1, size, file);
  return PL_OK;
}

static pl_code put_head(FILE *file, const pl_trace *trace, const pl_trace_rank *rank, uint8_t **buffer, size_t *room,
                        pl_error *error) {
  enum { STEP_BYTES = 80 };
  Chakra__Metadata head = CHAKRA__METADATA__INIT;
  size_t n = 0, most = 3 + (size_t)rank->n_steps;
  Chakra__Attribute *attributes = calloc(most, sizeof *attributes), **list = calloc(most, sizeof *list);
  char(*steps)[STEP_BYTES] = calloc((size_t)rank->n_steps + 1, STEP_BYTES);
  pl_code code = PL_OK;
  if (attributes == NULL || list == NULL || steps == NULL) code = pl_fail_memory(error, "a Chakra trace");
  for (; code == PL_OK && n < most; n++) {
    chakra__attribute__init(&attributes[n]);
    list[n] = &attributes[n];
    attributes[n].value_case = n < 2 ? CHAKRA__ATTRIBUTE__VALUE_INT64_VALUE : CHAKRA__ATTRIBUTE__VALUE_STRING_VALUE;
    attributes[n].name = n == 0 ? "rank" : n == 1 ? "world_size" : n == 2 ? "host" : "step";
    if (n == 0) attributes[n].int64_value = rank->number;
    if (n == 1) attributes[n].int64_value = rank->world_size;
    if (n == 2) attributes[n].string_value = (char *)trace->names[rank->host];
    if (n < 3) continue;
    const pl_trace_step *step = &trace->steps[rank->first_step + n - 3];
    const long long start_ns = (long long)step->start_ns + (long long)rank->epoch_ns;
    snprintf(steps[n - 3], STEP_BYTES, "%lld %lld %lld", (long long)step->number, start_ns,
             (long long)step->duration_ns);
    attributes[n].string_value = steps[n - 3];
  }
  if (code == PL_OK) {
    head.version = "1.0.0";
    head.n_attributes = n;
    head.attributes = list;
    code = put(file, &head.base, buffer, room, error);
  }
  free(steps);
  free(attributes);
  free(list);
  return code;
}

/* ---- nodes ---- */

static uint32_t type_of(const pl_trace_op *op) {
  return op->kind == PL_TRACE_COLLECTIVE ? PL_CHAKRA_COLLECTIVE
         : op->kind == PL_TRACE_SEND     ? PL_CHAKRA_SEND
         : op->kind == PL_TRACE_RECEIVE  ? PL_CHAKRA_RECEIVE
                                         : PL_CHAKRA_COMPUTE; /* copies too: loads and stores are of remote memory */
}

/* ASTRA-sim times all-reduces, all-to-alls, all-gathers and reduce-scatters of known sizes and gives up at others but
 * broadcasts, which it takes as long as recorded: so the others are called broadcasts, and `collective` says what they
 * are. */
static int64_t comm_type_of(const pl_trace_message *message) {
  bool timed =
      message->size_bytes >= 0 && (message->kind == PL_TRACE_ALL_REDUCE || message->kind == PL_TRACE_ALL_TO_ALL ||
                                   message->kind == PL_TRACE_ALL_GATHER || message->kind == PL_TRACE_REDUCE_SCATTER);
  uint8_t kind = timed ? message->kind : PL_TRACE_BROADCAST;
  for (int64_t type = 0; type < PL_CHAKRA_COLLECTIVES; type++)
    if (pl_chakra_collectives[type] == kind) return type;
  return -1;
}

/* `group` has room for the group's number as text. */
static void add_message(draft *own, const pl_trace *trace, const pl_trace_rank *rank, const pl_trace_op *op,
                        char group[16]) {
  const pl_trace_message *message = &trace->messages[op->message];
  add_integer(own, "comm_size", message->size_bytes >= 0 ? message->size_bytes : 0); /* it has to be there */
  if (message->size_bytes < 0) add_integer(own, "comm_size_unknown", 1);
  if (message->sequence >= 0) add_integer(own, "sequence", message->sequence);
  if (op->kind == PL_TRACE_COLLECTIVE) {
    add_integer(own, "comm_type", comm_type_of(message));
    snprintf(group, 16, "%u", message->group + PL_CHAKRA_FIRST_GROUP);
    add_text(own, "collective", pl_trace_message_kind_names[message->kind]);
    if (trace->groups[message->group].n_members > 0) add_text(own, "pg_name", group);
    add_text(own, "group_name", trace->names[trace->groups[message->group].name]);
    return;
  }
  bool sends = op->kind == PL_TRACE_SEND;
  add_short(own, "comm_src", sends ? rank->number : message->peer);
  add_short(own, "comm_dst", sends ? message->peer : rank->number);
  add_short(own, "comm_tag", message->tag == PL_NONE ? 0 : message->tag & 0x7fffffff);
  if (message->tag == PL_NONE) add_integer(own, "comm_tag_unknown", 1);
  if (message->tag == PL_NONE) return;
  add_text(own, "tag", trace->names[message->tag]);
}

/* Edges of the rank by the op that waits. */
typedef struct waits {
  uint32_t *first, *edge;
  uint64_t *finish, *start; /* room for the dependencies of one node */
  uint32_t *order;          /* per op: see pl_chakra_order */
} waits;

static bool list_waits(const pl_trace *trace, const pl_trace_rank *rank, waits *own) {
  uint32_t n = 0, first_op = rank->first_op;
  own->first = calloc((size_t)rank->n_ops + 2, sizeof *own->first);
  for (uint32_t e = 0; own->first != NULL && e < trace->n_edges; e++) {
    uint32_t k = trace->edges[e].after - first_op;
    if (trace->edges[e].after < first_op || k >= rank->n_ops) continue;
    own->first[k + 2]++;
    n++;
  }
  own->edge = malloc(((size_t)n + 1) * sizeof *own->edge);
  own->finish = malloc(((size_t)n + 3) * sizeof *own->finish);
  own->start = malloc(((size_t)n + 2) * sizeof *own->start);
  own->order = malloc(((size_t)rank->n_ops + 1) * sizeof *own->order);
  if (own->first == NULL || own->edge == NULL || own->finish == NULL || own->start == NULL || own->order == NULL)
    return false;
  for (uint32_t k = 2; k < rank->n_ops + 2; k++)
    own->first[k] += own->first[k - 1];
  for (uint32_t e = 0; e < trace->n_edges; e++) {
    uint32_t k = trace->edges[e].after - first_op;
    if (trace->edges[e].after >= first_op && k < rank->n_ops) own->edge[own->first[k + 1]++] = e;
  }
  return true;
}

static void add_waits(const pl_trace *trace, uint32_t op, const waits *own, uint32_t first_op, Chakra__Node *node) {
  uint32_t previous = pl_trace_previous(trace, op);
  node->data_dependencies = own->finish;
  node->control_dependencies = own->start;
  if (previous != PL_NONE) own->finish[node->n_data_dependencies++] = previous;
  for (uint32_t k = own->first[op - first_op]; k < own->first[op - first_op + 1]; k++) {
    const pl_trace_edge *edge = &trace->edges[own->edge[k]];
    if (edge->from_start)
      own->start[node->n_control_dependencies++] = edge->before;
    else if (edge->before != previous)
      own->finish[node->n_data_dependencies++] = edge->before;
  }
}

/* Behind the message that the rank did before it. True: that is no dependency otherwise. */
static bool add_order(uint32_t before, const waits *own, Chakra__Node *node) {
  for (size_t d = 0; d < node->n_data_dependencies; d++)
    if (own->finish[d] == before) return false;
  if (before != PL_NONE) own->finish[node->n_data_dependencies++] = before;
  return before != PL_NONE;
}

static pl_code put_op(FILE *file, const pl_trace *trace, const pl_trace_rank *rank, uint32_t k, const waits *edges,
                      uint8_t **buffer, size_t *room, pl_error *error) {
  const pl_trace_op *op = &trace->ops[k];
  const pl_trace_stream *stream = &trace->streams[op->stream];
  draft own = {.n = 0};
  char group[16];
  Chakra__Node node = CHAKRA__NODE__INIT;
  node.id = k;
  node.name = (char *)pl_trace_op_name(trace, k);
  node.type = type_of(op);
  int64_t start_ns = op->start_ns + rank->epoch_ns;
  node.start_us = start_ns > 0 ? (uint64_t)start_ns / 1000 : 0;
  node.duration_us = ((uint64_t)op->duration_ns + 999) / 1000;
  add_waits(trace, k, edges, rank->first_op, &node);
  uint32_t before = edges->order[k - rank->first_op];
  if (add_order(before, edges, &node)) add_integer(&own, "order_after", before);
  add(&own, "is_cpu_op", CHAKRA__ATTRIBUTE__VALUE_BOOL_VALUE)->bool_value =
      stream->kind == PL_TRACE_HOST && op->message == PL_NONE;
  add_integer(&own, "start_ns", start_ns);
  add_integer(&own, "duration_ns", op->duration_ns);
  add_text(&own, "stream_name", trace->names[stream->name]);
  add_text(&own, "stream_kind", pl_trace_stream_kind_names[stream->kind]);
  add_text(&own, "op_kind", pl_trace_op_kind_names[op->kind]);
  if (op->step != PL_NONE) add_integer(&own, "step", trace->steps[op->step].number);
  if (op->message != PL_NONE) add_message(&own, trace, rank, op, group);
  node.attributes = own.list;
  node.n_attributes = own.n;
  return put(file, &node.base, buffer, room, error);
}

pl_code pl_chakra_write(FILE *file, const pl_trace *trace, uint32_t r, pl_error *error) {
  const pl_trace_rank *rank = &trace->ranks[r];
  waits edges = {.first = NULL};
  uint8_t *buffer = NULL;
  size_t room = 0;
  pl_code code = list_waits(trace, rank, &edges) && pl_chakra_order(trace, r, edges.order)
                     ? PL_OK
                     : pl_fail_memory(error, "a Chakra trace");
  if (code == PL_OK) code = put_head(file, trace, rank, &buffer, &room, error);
  for (uint32_t k = rank->first_op; k < rank->first_op + rank->n_ops && code == PL_OK; k++)
    code = put_op(file, trace, rank, k, &edges, &buffer, &room, error);
  free(edges.first);
  free(edges.edge);
  free(edges.finish);
  free(edges.start);
  free(edges.order);
  free(buffer);
  return code;
}
