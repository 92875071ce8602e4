/* A node of a Chakra trace as an op of its rank. See workloads/formats/chakra.h. */
#include "workloads/formats/chakra.h"

#include <chakra.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/growing.h"
#include "core/base/words.h"
#include "workloads/formats/chakra_nodes.h"

const uint8_t pl_chakra_collectives[PL_CHAKRA_COLLECTIVES] = {
    PL_TRACE_ALL_REDUCE,       PL_TRACE_REDUCE,    PL_TRACE_ALL_GATHER, PL_TRACE_OTHER_COLLECTIVE,
    PL_TRACE_OTHER_COLLECTIVE, PL_TRACE_BROADCAST, PL_TRACE_ALL_TO_ALL, PL_TRACE_REDUCE_SCATTER,
    PL_TRACE_REDUCE_SCATTER,   PL_TRACE_BARRIER};

/* ---- attributes: writers differ in the type of a number ---- */

static bool integer_of(const Chakra__Attribute *attribute, int64_t *value) {
  switch (attribute->value_case) {
  case CHAKRA__ATTRIBUTE__VALUE_INT32_VALUE:
    *value = attribute->int32_value;
    return true;
  case CHAKRA__ATTRIBUTE__VALUE_INT64_VALUE:
    *value = attribute->int64_value;
    return true;
  case CHAKRA__ATTRIBUTE__VALUE_UINT32_VALUE:
    *value = attribute->uint32_value;
    return true;
  case CHAKRA__ATTRIBUTE__VALUE_UINT64_VALUE:
    *value = (int64_t)attribute->uint64_value;
    return attribute->uint64_value <= INT64_MAX;
  case CHAKRA__ATTRIBUTE__VALUE_BOOL_VALUE:
    *value = attribute->bool_value != 0;
    return true;
  default:
    return false;
  }
}

static const Chakra__Attribute *find(Chakra__Attribute *const *attributes, size_t n, const char *name) {
  for (size_t a = 0; a < n; a++)
    if (strcmp(attributes[a]->name, name) == 0) return attributes[a];
  return NULL;
}

static int64_t integer(const Chakra__Node *node, const char *name, int64_t otherwise) {
  const Chakra__Attribute *found = find(node->attributes, node->n_attributes, name);
  int64_t value;
  return found != NULL && integer_of(found, &value) ? value : otherwise;
}

static const char *text_of(const Chakra__Attribute *found) {
  return found != NULL && found->value_case == CHAKRA__ATTRIBUTE__VALUE_STRING_VALUE ? found->string_value : NULL;
}

static const char *text(const Chakra__Node *node, const char *name) {
  return text_of(find(node->attributes, node->n_attributes, name));
}

static uint32_t intern(pl_chakra *own, const char *word) {
  return pl_trace_name(own->trace, word, strlen(word));
}

/* ---- the head ---- */

static pl_code read_step(pl_chakra *own, const char *word, pl_error *error) {
  long long number, start, length;
  if (sscanf(word, "%lld %lld %lld", &number, &start, &length) != 3 || length < 0 || length > PL_TRACE_SPAN_NS ||
      start < -PL_TRACE_SPAN_NS || start > INT64_MAX / 4)
    return pl_fail(error, PL_BAD_INPUT, "%s: its attribute 'step' is no number, start and duration", own->path);
  const pl_trace_step step = {own->index, number, start, length};
  return pl_trace_add_step(own->trace, step) == PL_NONE ? pl_fail_memory(error, "the steps of a trace") : PL_OK;
}

static pl_code read_head(pl_chakra *own, const Chakra__Metadata *head, pl_error *error) {
  const char *version = head->version;
  if (version[0] != '\0' && strncmp(version, "0.", 2) != 0 && strncmp(version, "1.", 2) != 0)
    return pl_fail(error, PL_BAD_INPUT, "%s: is of version %.40s of Chakra's schema; 0.x and 1.x are known", own->path,
                   version);
  for (size_t a = 0; a < head->n_attributes; a++) {
    const Chakra__Attribute *attribute = head->attributes[a];
    const char *word = text_of(attribute);
    int64_t value = -1;
    bool is_number = integer_of(attribute, &value) && value >= 0 && value <= INT32_MAX;
    if (is_number && strcmp(attribute->name, "rank") == 0) own->rank.number = value;
    if (is_number && strcmp(attribute->name, "world_size") == 0) own->rank.world_size = value;
    if (word != NULL && strcmp(attribute->name, "host") == 0) own->rank.host = intern(own, word);
    if (own->rank.host == PL_NONE) return pl_fail_memory(error, own->path);
    if (word != NULL && strcmp(attribute->name, "step") == 0) PL_TRY(read_step(own, word, error));
  }
  return PL_OK;
}

/* ---- a node ---- */

static pl_code find_stream(pl_chakra *own, const char *name, pl_trace_stream_kind kind, uint32_t *stream,
                           pl_error *error) {
  uint32_t interned = intern(own, name);
  if (interned == PL_NONE) return pl_fail_memory(error, own->path);
  for (uint32_t s = own->n_streams; s-- > 0;) {
    *stream = own->streams[s];
    if (own->trace->streams[*stream].name == interned && own->trace->streams[*stream].kind == kind) return PL_OK;
  }
  *stream = pl_trace_add_stream(own->trace, own->index, interned, kind);
  if (*stream == PL_NONE || !PL_GROW(own->streams, own->n_streams, own->stream_room))
    return pl_fail_memory(error, own->path);
  own->streams[own->n_streams++] = *stream;
  return PL_OK;
}

/* The stream that the node names; else the thread of an op of the host, or the lane of what the device does. */
static pl_code choose_stream(pl_chakra *own, const Chakra__Node *node, bool on_host, uint32_t *stream,
                             pl_error *error) {
  char name[64];
  const char *said = text(node, "stream_name"), *kind = text(node, "stream_kind");
  int known = kind != NULL ? pl_words_find(pl_trace_stream_kind_names, kind) : -1;
  if (said != NULL && known >= 0) return find_stream(own, said, (pl_trace_stream_kind)known, stream, error);
  int64_t lane = integer(node, "stream", -1), thread = integer(node, "tid", -1);
  bool moves = node->type >= PL_CHAKRA_SEND && node->type <= PL_CHAKRA_COLLECTIVE;
  if (on_host && thread >= 0)
    snprintf(name, sizeof name, "thread %lld", (long long)thread);
  else if (on_host)
    snprintf(name, sizeof name, "host");
  else if (lane >= 0 || thread >= 0)
    snprintf(name, sizeof name, "stream %lld", (long long)(lane >= 0 ? lane : thread));
  else
    snprintf(name, sizeof name, "%s",
             moves                             ? "communication"
             : node->type == PL_CHAKRA_COMPUTE ? "computing"
                                               : "memory");
  bool has_stream = lane >= 0 || thread >= 0;
  return find_stream(own, name,
                     on_host                ? PL_TRACE_HOST
                     : moves && !has_stream ? PL_TRACE_NETWORK
                                            : PL_TRACE_DEVICE,
                     stream, error);
}

static uint32_t find_group(pl_chakra *own, const Chakra__Node *node) {
  const char *key = text(node, "pg_name"), *shown = text(node, "group_name");
  uint32_t name = key != NULL ? intern(own, key) : PL_NONE;
  for (uint32_t g = 0; key != NULL && own->groups != NULL && g < own->groups->n; g++)
    if (own->groups->names[g] == name) {
      if (shown == NULL) return own->groups->groups[g];
      const pl_trace_group *group = &own->trace->groups[own->groups->groups[g]];
      uint32_t n = group->n_members;
      int64_t *members = malloc(((size_t)n + 1) * sizeof *members); /* adding may move the members */
      if (members == NULL) return PL_NONE;
      if (n > 0) memcpy(members, own->trace->members + group->first_member, n * sizeof *members);
      uint32_t title = intern(own, shown);
      uint32_t added = title == PL_NONE ? PL_NONE : pl_trace_add_group(own->trace, title, members, n);
      free(members);
      return added;
    }
  own->n_without_group++;
  name = intern(own, shown != NULL ? shown : key != NULL ? key : "");
  return name == PL_NONE ? PL_NONE : pl_trace_add_group(own->trace, name, NULL, 0);
}

static pl_trace_message_kind collective_of(const Chakra__Node *node) {
  const char *said = text(node, "collective");
  int known = said != NULL ? pl_words_find(pl_trace_message_kind_names, said) : -1;
  if (known >= 0 && known != PL_TRACE_POINT_TO_POINT) return (pl_trace_message_kind)known;
  int64_t type = integer(node, "comm_type", -1);
  if (type >= 0 && type < PL_CHAKRA_COLLECTIVES) return (pl_trace_message_kind)pl_chakra_collectives[type];
  bool receives;
  pl_trace_message_kind kind = pl_kineto_message_kind(node->name, &receives);
  return kind == PL_TRACE_POINT_TO_POINT ? PL_TRACE_OTHER_COLLECTIVE : kind;
}

static pl_code add_message(pl_chakra *own, const Chakra__Node *node, pl_trace_op *op, pl_error *error) {
  pl_trace_message message = {PL_TRACE_OTHER_COLLECTIVE, PL_NONE, -1, PL_NONE, integer(node, "sequence", -1), -1};
  int64_t size = integer(node, "comm_size_unknown", 0) != 0 ? -1 : integer(node, "comm_size", -1);
  if (size >= 0 && size <= (int64_t)1 << 56) message.size_bytes = size;
  if (message.sequence < -1) message.sequence = -1;
  int64_t peer = node->type == PL_CHAKRA_COLLECTIVE
                     ? -1
                     : integer(node, node->type == PL_CHAKRA_SEND ? "comm_dst" : "comm_src", -1);
  op->kind = PL_TRACE_COLLECTIVE;
  if (peer >= 0 && peer <= INT32_MAX && peer != own->rank.number) {
    char number[32];
    const char *tag = text(node, "tag");
    int64_t as_number = integer(node, "comm_tag_unknown", 0) != 0 ? -1 : integer(node, "comm_tag", -1);
    snprintf(number, sizeof number, "%lld", (long long)as_number);
    op->kind = node->type == PL_CHAKRA_SEND ? PL_TRACE_SEND : PL_TRACE_RECEIVE;
    message.kind = PL_TRACE_POINT_TO_POINT;
    message.peer = (int32_t)peer;
    if (tag != NULL || as_number >= 0) message.tag = intern(own, tag != NULL ? tag : number);
  } else {
    if (node->type == PL_CHAKRA_COLLECTIVE) message.kind = (uint8_t)collective_of(node);
    message.group = find_group(own, node);
    if (message.group == PL_NONE) return pl_fail_memory(error, "the groups of a trace");
  }
  op->message = pl_trace_add_message(own->trace, message);
  return op->message == PL_NONE ? pl_fail_memory(error, "the messages of a trace") : PL_OK;
}

static pl_code read_dates(pl_chakra *own, const Chakra__Node *node, pl_trace_op *op, pl_error *error) {
  static const int64_t most = PL_TRACE_SPAN_NS;
  op->duration_ns = integer(node, "duration_ns", -1);
  op->start_ns = integer(node, "start_ns", INT64_MIN);
  if (op->start_ns == INT64_MIN && node->start_us > 0) {
    if (node->start_us > (uint64_t)4.4e15)
      return pl_fail(error, PL_BAD_INPUT, "%s: node %llu starts at %llu us: out of range", own->path,
                     (unsigned long long)node->id, (unsigned long long)node->start_us);
    op->start_ns = (int64_t)node->start_us * 1000;
  }
  if (op->duration_ns < 0) {
    if (node->duration_us > (uint64_t)(most / 1000))
      return pl_fail(error, PL_BAD_INPUT, "%s: node %llu takes %llu us, more than 30 days (a negative duration?)",
                     own->path, (unsigned long long)node->id, (unsigned long long)node->duration_us);
    op->duration_ns = (int64_t)node->duration_us * 1000;
  }
  if (op->duration_ns > most || (op->start_ns != INT64_MIN && (op->start_ns < 0 || op->start_ns > (int64_t)4.4e18)))
    return pl_fail(error, PL_BAD_INPUT, "%s: node %llu has dates out of range", own->path,
                   (unsigned long long)node->id);
  own->has_dates |= op->start_ns != INT64_MIN;
  own->n_undated += op->start_ns == INT64_MIN;
  own->n_durations += op->duration_ns > 0;
  return PL_OK;
}

static pl_code find_step(pl_chakra *own, const Chakra__Node *node, pl_trace_op *op, pl_error *error) {
  int64_t number = integer(node, "step", INT64_MIN);
  for (uint32_t s = own->trace->n_steps; number != INT64_MIN && s-- > own->rank.first_step;)
    if (own->trace->steps[s].number == number) {
      op->step = s;
      return PL_OK;
    }
  return number == INT64_MIN
             ? PL_OK
             : pl_fail(error, PL_BAD_INPUT, "%s: node %llu is of step %lld, which its head does not have", own->path,
                       (unsigned long long)node->id, (long long)number);
}

static pl_code add_waits(pl_chakra *own, const Chakra__Node *node, pl_error *error) {
  uint32_t place = own->edges.n_ids;
  bool good = pl_edges_by_id_op(&own->edges, (int64_t)(node->id & INT64_MAX));
  int64_t order = integer(node, "order_after", -1); /* of our own: pl_chakra_order */
  for (size_t d = 0; good && d < node->n_data_dependencies; d++)
    good = (order >= 0 && node->data_dependencies[d] == (uint64_t)order) ||
           pl_edges_by_id_wait(&own->edges, (int64_t)(node->data_dependencies[d] & INT64_MAX), place, false);
  /* Callers, by which simulators do not order, and which with data dependencies can form a circle; launches in files of
   * our own. */
  bool is_ours = integer(node, "start_ns", INT64_MIN) != INT64_MIN;
  for (size_t d = 0; good && is_ours && d < node->n_control_dependencies; d++)
    good = pl_edges_by_id_wait(&own->edges, (int64_t)(node->control_dependencies[d] & INT64_MAX), place, true);
  return good ? PL_OK : pl_fail_memory(error, "the edges of a trace");
}

static pl_code read_node(pl_chakra *own, const Chakra__Node *node, pl_error *error) {
  pl_trace_op op = {.message = PL_NONE, .step = PL_NONE, .kind = PL_TRACE_COMPUTE};
  if (node->id > INT64_MAX)
    return pl_fail(error, PL_BAD_INPUT, "%s: node %llu: an id beyond 2^63", own->path, (unsigned long long)node->id);
  if (node->type >= PL_CHAKRA_TYPE_COUNT || node->type == PL_CHAKRA_INVALID) own->n_unknown_type++;
  bool moves = node->type >= PL_CHAKRA_SEND && node->type <= PL_CHAKRA_COLLECTIVE;
  /* The host's side of a message (c10d::allreduce_) is of the same type as the message. */
  bool on_host = node->type == PL_CHAKRA_METADATA || integer(node, "is_cpu_op", 0) != 0;
  own->has_device |= !on_host;
  PL_TRY(read_dates(own, node, &op, error));
  PL_TRY(find_step(own, node, &op, error));
  PL_TRY(choose_stream(own, node, on_host, &op.stream, error));
  uint32_t name = intern(own, node->name[0] != '\0' ? node->name : "node");
  op.name = name & PL_TRACE_MOST_NAMES;
  if (name == PL_NONE) return pl_fail_memory(error, "the names of a trace");
  if (node->type == PL_CHAKRA_LOAD || node->type == PL_CHAKRA_STORE) op.kind = PL_TRACE_COPY;
  if (on_host) op.kind = PL_TRACE_CALL; /* of a rank without device computing: see pl_chakra_finish */
  const char *kind = text(node, "op_kind");
  int known = kind != NULL ? pl_words_find(pl_trace_op_kind_names, kind) : -1;
  if (known >= 0 && known != PL_TRACE_COLLECTIVE && known != PL_TRACE_SEND && known != PL_TRACE_RECEIVE)
    op.kind = (unsigned)known & 15;
  if (moves && !on_host) PL_TRY(add_message(own, node, &op, error));
  own->n_messages_undone += moves && !on_host && op.duration_ns == 0;
  if (pl_trace_add_op(own->trace, op) == PL_NONE) return pl_fail_memory(error, "the ops of a trace");
  return add_waits(own, node, error);
}

pl_code pl_chakra_record(void *context, const uint8_t *data, size_t size, pl_error *error) {
  pl_chakra *own = context;
  pl_code code;
  if (own->n_records++ == 0) {
    Chakra__Metadata *head = chakra__metadata__unpack(NULL, size, data);
    if (head == NULL)
      return pl_fail(error, PL_BAD_INPUT,
                     "%s: does not begin with Chakra's metadata: no trace of its schema 0.0.4 or later", own->path);
    code = read_head(own, head, error);
    chakra__metadata__free_unpacked(head, NULL);
    return code;
  }
  Chakra__Node *node = chakra__node__unpack(NULL, size, data);
  if (node == NULL)
    return pl_fail(error, PL_BAD_INPUT, "%s: message %llu is no node of a Chakra trace", own->path,
                   (unsigned long long)own->n_records - 1);
  code = read_node(own, node, error);
  chakra__node__free_unpacked(node, NULL);
  return code;
}

/* ---- a file ---- */

static void tell(void *context, uint64_t done, uint64_t size) {
  const pl_chakra *own = context;
  if (own->progress != NULL) own->progress->tell(own->progress->context, own->path, done, size);
}

static pl_code load(pl_chakra *own, const uint8_t *data, size_t size, int64_t number, pl_error *error) {
  pl_trace *trace = own->trace;
  uint32_t file = pl_trace_name(trace, own->path, strlen(own->path)), host = pl_trace_name(trace, "", 0);
  own->index = trace->n_ranks;
  own->first_edge = trace->n_edges;
  own->rank = (pl_trace_rank){
      .number = number, .host = host, .file = file, .first_op = trace->n_ops, .first_step = trace->n_steps};
  if (host == PL_NONE || file == PL_NONE || pl_trace_add_rank(trace, own->rank) == PL_NONE)
    return pl_fail_memory(error, "a trace");
  const pl_records_reader reader = {pl_chakra_record, tell, own};
  if (data != NULL) {
    PL_TRY(pl_records_parse(own->path, data, size, &reader, &own->end, error));
  } else {
    PL_TRY(pl_records_read(own->path, &reader, &own->end, error));
  }
  return pl_chakra_finish(own, error);
}

static pl_code load_and_release(pl_chakra *own, const uint8_t *data, size_t size, int64_t number, pl_error *error) {
  pl_code code = load(own, data, size, number, error);
  pl_edges_by_id_release(&own->edges);
  free(own->streams);
  return code;
}

pl_code pl_chakra_load(const char *path, int64_t number, const pl_chakra_groups *groups, pl_trace *trace,
                       const pl_trace_progress *progress, pl_error *error) {
  pl_chakra own = {.path = path, .trace = trace, .groups = groups, .progress = progress};
  return load_and_release(&own, NULL, 0, number, error);
}

pl_code pl_chakra_parse(const char *name, const uint8_t *data, size_t size, int64_t number,
                        const pl_chakra_groups *groups, pl_trace *trace, pl_error *error) {
  pl_chakra own = {.path = name, .trace = trace, .groups = groups};
  static const uint8_t nothing = 0;
  return load_and_release(&own, size > 0 ? data : &nothing, size, number, error);
}
