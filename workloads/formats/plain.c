/* See workloads/formats/plain.h. Groups and streams may stand behind the ops that name them: names are looked up at the
 * end. */
#include "workloads/formats/plain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/growing.h"
#include "core/base/order.h"
#include "core/base/words.h"
#include "workloads/formats/plain_state.h"

typedef enum field {
  OTHER = 0,
  VERSION,
  RANK,
  HOST,
  WORLD,
  GROUPS,
  STREAMS,
  STEPS,
  OPS,
  ID,
  NAME,
  STREAM,
  KIND,
  START,
  DURATION,
  AFTER,
  LAUNCHED_BY,
  STEP,
  GROUP,
  COLLECTIVE,
  BYTES,
  SEQUENCE,
  PEER,
  TAG,
  NUMBER
} field;

static const pl_json_word root_words[] = {
    {"paceline_trace", VERSION}, {"rank", RANK},   {"host", HOST}, {"world_size", WORLD}, {"groups", GROUPS},
    {"streams", STREAMS},        {"steps", STEPS}, {"ops", OPS},   {NULL, OTHER}};
static const pl_json_word step_words[] = {
    {"number", NUMBER}, {"start_ns", START}, {"duration_ns", DURATION}, {NULL, OTHER}};
static const pl_json_word op_words[] = {{"id", ID},
                                        {"name", NAME},
                                        {"stream", STREAM},
                                        {"kind", KIND},
                                        {"start_ns", START},
                                        {"duration_ns", DURATION},
                                        {"after", AFTER},
                                        {"launched_by", LAUNCHED_BY},
                                        {"step", STEP},
                                        {"group", GROUP},
                                        {"collective", COLLECTIVE},
                                        {"bytes", BYTES},
                                        {"sequence", SEQUENCE},
                                        {"peer", PEER},
                                        {"tag", TAG},
                                        {NULL, OTHER}};

static pl_code bad(const pl_plain *own, pl_error *error, const char *key, const char *text, size_t size,
                   const char *wanted) {
  return pl_fail(error, PL_BAD_INPUT, "%s: op %u: '%s' is '%.*s'; %s", own->path, own->n_ops, key,
                 size < 60 ? (int)size : 60, text, wanted);
}

static pl_code whole(const pl_plain *own, const char *key, const char *text, size_t size, int64_t least, int64_t most,
                     int64_t *value, pl_error *error) {
  if (pl_fixed_point(text, size, 0, value) && *value >= least && *value <= most) return PL_OK;
  return bad(own, error, key, text, size, "not a whole number in range");
}

static uint32_t find_stream(pl_plain *own, uint32_t name) {
  for (uint32_t s = own->n_streams; s-- > 0;)
    if (own->streams[s].name == name) return own->streams[s].index;
  if (!PL_GROW(own->streams, own->n_streams, own->stream_room)) return PL_NONE;
  uint32_t index = pl_trace_add_stream(own->trace, own->index, name, PL_TRACE_STREAM_KIND_COUNT);
  own->streams[own->n_streams++] = (pl_plain_name){name, index};
  return index;
}

static pl_code op_text(pl_plain *own, const char *text, size_t size, pl_error *error) {
  char word[32];
  uint32_t name = pl_trace_name(own->trace, text, size);
  if (name == PL_NONE) return pl_fail_memory(error, "the names of a trace");
  snprintf(word, sizeof word, "%.*s", size < 31 ? (int)size : 31, text);
  int kind;
  switch ((field)own->key) {
  case NAME:
    own->op.name = name & PL_TRACE_MOST_NAMES;
    own->has_name = true;
    return PL_OK;
  case STREAM:
    own->op.stream = find_stream(own, name);
    return own->op.stream == PL_NONE ? pl_fail_memory(error, "the streams of a trace") : PL_OK;
  case KIND:
    kind = pl_words_find(pl_trace_op_kind_names, word);
    if (kind < 0)
      return bad(own, error, "kind", text, size, "it is compute, copy, collective, send, receive, call or wait");
    own->op.kind = (unsigned)kind & 15;
    return PL_OK;
  case COLLECTIVE:
    kind = pl_words_find(pl_trace_message_kind_names, word);
    if (kind < 0 || kind == PL_TRACE_POINT_TO_POINT)
      return bad(own, error, "collective", text, size,
                 "it is all-reduce, reduce-scatter, all-gather, broadcast, all-to-all, reduce, barrier or collective");
    own->message.kind = (uint8_t)kind;
    return PL_OK;
  case GROUP:
    own->more.group = name;
    return PL_OK;
  case TAG:
    own->message.tag = name;
    return PL_OK;
  default:
    return own->key == OTHER ? PL_OK : bad(own, error, "a value", text, size, "a number belongs there");
  }
}

static pl_code add_wait(pl_plain *own, int64_t id, bool from_start, pl_error *error) {
  return pl_edges_by_id_wait(&own->edges, id, own->n_ops, from_start) ? PL_OK
                                                                      : pl_fail_memory(error, "the edges of a trace");
}

static pl_code op_number(pl_plain *own, const char *text, size_t size, pl_error *error) {
  static const int64_t most = (int64_t)4.4e18;
  int64_t value;
  switch ((field)own->key) {
  case ID:
    return whole(own, "id", text, size, 0, INT64_MAX, &own->id, error);
  case START:
    own->has_start = true;
    return whole(own, "start_ns", text, size, -most, most, &own->op.start_ns, error);
  case DURATION:
    own->has_duration = true;
    return whole(own, "duration_ns", text, size, -most / 4, most / 4, &own->op.duration_ns, error);
  case AFTER:
    PL_TRY(whole(own, "after", text, size, 0, INT64_MAX, &value, error));
    return add_wait(own, value, false, error);
  case LAUNCHED_BY:
    PL_TRY(whole(own, "launched_by", text, size, 0, INT64_MAX, &value, error));
    return add_wait(own, value, true, error);
  case STEP:
    return whole(own, "step", text, size, -most, most, &own->more.step, error);
  case BYTES:
    return whole(own, "bytes", text, size, 0, (int64_t)1 << 56, &own->message.size_bytes, error);
  case SEQUENCE:
    return whole(own, "sequence", text, size, 0, most, &own->message.sequence, error);
  case PEER:
    PL_TRY(whole(own, "peer", text, size, 0, INT32_MAX, &value, error));
    own->message.peer = (int32_t)value;
    return PL_OK;
  default:
    return own->key == OTHER ? PL_OK : bad(own, error, "a value", text, size, "a string belongs there");
  }
}

/* The op's step, by its place among the numbers that ops say, until all steps are known. */
static bool number_step(pl_plain *own) {
  if (own->more.step == INT64_MIN) return true;
  for (uint32_t k = own->n_step_numbers; k-- > 0 && own->op.step == PL_NONE;)
    if (own->step_numbers[k] == own->more.step) own->op.step = k;
  if (own->op.step != PL_NONE) return true;
  if (!PL_GROW(own->step_numbers, own->n_step_numbers, own->step_number_room)) return false;
  own->op.step = own->n_step_numbers;
  own->step_numbers[own->n_step_numbers++] = own->more.step;
  return true;
}

static pl_code end_op(pl_plain *own, pl_error *error) {
  const char *missing = !own->has_name                                                      ? "name"
                        : own->op.stream == PL_NONE                                         ? "stream"
                        : !own->has_start                                                   ? "start_ns"
                        : !own->has_duration                                                ? "duration_ns"
                        : own->op.kind == PL_TRACE_COLLECTIVE && own->more.group == PL_NONE ? "group"
                                                                                            : NULL;
  bool alone = own->op.kind == PL_TRACE_SEND || own->op.kind == PL_TRACE_RECEIVE;
  if (missing == NULL && alone && own->message.peer < 0) missing = "peer";
  if (missing != NULL) return pl_fail(error, PL_BAD_INPUT, "%s: op %u has no '%s'", own->path, own->n_ops, missing);
  if (own->op.duration_ns < 0) {
    own->n_negative++;
    own->op.duration_ns = 0;
  }
  if (alone) own->message.kind = PL_TRACE_POINT_TO_POINT;
  if (!number_step(own)) return pl_fail_memory(error, "the steps of a trace");
  if (own->op.kind == PL_TRACE_COLLECTIVE) own->message.group = own->more.group; /* its name, until all are known */
  if (alone || own->op.kind == PL_TRACE_COLLECTIVE) {
    own->op.message = pl_trace_add_message(own->trace, own->message);
    if (own->op.message == PL_NONE) return pl_fail_memory(error, "the messages of a trace");
  }
  if (!pl_edges_by_id_op(&own->edges, own->id) || pl_trace_add_op(own->trace, own->op) == PL_NONE)
    return pl_fail_memory(error, "the ops of a trace");
  own->n_ops++;
  return PL_OK;
}

static void begin_op(pl_plain *own) {
  own->op = (pl_trace_op){.stream = PL_NONE, .message = PL_NONE, .step = PL_NONE};
  own->message = (pl_trace_message){PL_TRACE_OTHER_COLLECTIVE, PL_NONE, -1, PL_NONE, -1, -1};
  own->more = (pl_plain_op){INT64_MIN, PL_NONE};
  own->id = own->n_ops;
  own->has_start = own->has_duration = own->has_name = false;
}

/* ---- the parts beside the ops ---- */

static pl_code root_value(pl_plain *own, bool is_string, const char *text, size_t size, pl_error *error) {
  if (own->root_key == HOST && is_string) {
    own->rank.host = pl_trace_name(own->trace, text, size);
    return own->rank.host == PL_NONE ? pl_fail_memory(error, "a name") : PL_OK;
  }
  int64_t *value = own->root_key == VERSION ? &own->version
                   : own->root_key == RANK  ? &own->rank.number
                   : own->root_key == WORLD ? &own->rank.world_size
                                            : NULL;
  if (value == NULL) return PL_OK;
  if (!pl_fixed_point(text, size, 0, value) || *value < 0 || *value > INT32_MAX)
    return pl_fail(error, PL_BAD_INPUT, "%s: '%.*s' is no rank, number of ranks or version", own->path,
                   size < 60 ? (int)size : 60, text);
  if (own->root_key == VERSION && own->version != PL_TRACE_PLAIN_VERSION)
    return pl_fail(error, PL_BAD_INPUT, "%s: paceline_trace is version %.*s; %d is known", own->path,
                   size < 60 ? (int)size : 60, text, PL_TRACE_PLAIN_VERSION);
  return PL_OK;
}

static pl_code stream_value(pl_plain *own, const char *text, size_t size, pl_error *error) {
  char word[32];
  snprintf(word, sizeof word, "%.*s", size < 31 ? (int)size : 31, text);
  int kind = pl_words_find(pl_trace_stream_kind_names, word);
  if (kind < 0)
    return pl_fail(error, PL_BAD_INPUT, "%s: stream '%s' is of kind '%s'; it is host, device or network", own->path,
                   own->trace->names[own->entry], word);
  uint32_t stream = find_stream(own, own->entry);
  if (stream == PL_NONE) return pl_fail_memory(error, "the streams of a trace");
  own->trace->streams[stream].kind = (uint8_t)kind;
  return PL_OK;
}

static pl_code step_value(pl_plain *own, const char *text, size_t size, pl_error *error) {
  static const int64_t most = (int64_t)4.4e18;
  int64_t *value = own->key == NUMBER     ? &own->step.number
                   : own->key == START    ? &own->step.start_ns
                   : own->key == DURATION ? &own->step.duration_ns
                                          : NULL;
  if (value == NULL) return PL_OK;
  if (!pl_fixed_point(text, size, 0, value) || *value < -most || *value > most ||
      (own->key == DURATION && (*value < 0 || *value > most / 4)))
    return pl_fail(error, PL_BAD_INPUT, "%s: '%.*s' of a step is no number in range", own->path,
                   size < 60 ? (int)size : 60, text);
  return PL_OK;
}

static pl_code group_value(pl_plain *own, const char *text, size_t size, pl_error *error) {
  int64_t member;
  PL_TRY(whole(own, "groups", text, size, 0, INT32_MAX, &member, error));
  if (!PL_GROW(own->members, own->n_members, own->member_room)) return pl_fail_memory(error, "a group");
  own->members[own->n_members++] = member;
  return PL_OK;
}

static pl_code end_group(pl_plain *own, pl_error *error) {
  if (own->n_members > 1) qsort(own->members, own->n_members, sizeof *own->members, pl_by_int64);
  for (uint32_t m = 1; m < own->n_members; m++)
    if (own->members[m] == own->members[m - 1])
      return pl_fail(error, PL_BAD_INPUT, "%s: group '%s' has rank %lld twice", own->path,
                     own->trace->names[own->entry], (long long)own->members[m]);
  uint32_t group = pl_trace_add_group(own->trace, own->entry, own->members, own->n_members);
  if (group == PL_NONE || !PL_GROW(own->groups, own->n_groups, own->group_room))
    return pl_fail_memory(error, "a group");
  own->groups[own->n_groups++] = (pl_plain_name){own->entry, group};
  return PL_OK;
}

/* ---- tokens: root object 1; "ops", "steps", "groups", "streams" 2; an op, a step, a group's members 3; "after" 4 ----
 */

static pl_code open(pl_plain *own, pl_json_token token) {
  own->depth++;
  if (own->depth == 3 && own->root_key == OPS) begin_op(own);
  if (own->depth == 3 && own->root_key == STEPS) own->step = (pl_trace_step){own->index, 0, 0, 0};
  if (own->depth == 3 && own->root_key == GROUPS) own->n_members = 0;
  (void)token;
  return PL_OK;
}

static pl_code close(pl_plain *own, pl_json_token token, pl_error *error) {
  uint32_t at = own->depth--;
  if (at == 3 && own->root_key == OPS && token == PL_JSON_CLOSE_OBJECT) return end_op(own, error);
  if (at == 3 && own->root_key == GROUPS && token == PL_JSON_CLOSE_ARRAY) return end_group(own, error);
  if (at == 3 && own->root_key == STEPS && token == PL_JSON_CLOSE_OBJECT &&
      pl_trace_add_step(own->trace, own->step) == PL_NONE)
    return pl_fail_memory(error, "the steps of a trace");
  return PL_OK;
}

static pl_code key(pl_plain *own, const char *text, size_t size, pl_error *error) {
  if (own->depth == 1) own->root_key = pl_json_find_word(root_words, text, size, OTHER);
  if (own->depth == 2) {
    own->entry = pl_trace_name(own->trace, text, size);
    if (own->entry == PL_NONE) return pl_fail_memory(error, "the names of a trace");
  }
  if (own->depth == 3) own->key = pl_json_find_word(own->root_key == STEPS ? step_words : op_words, text, size, OTHER);
  return PL_OK;
}

static pl_code value(pl_plain *own, bool is_string, const char *text, size_t size, pl_error *error) {
  if (own->depth == 1) return root_value(own, is_string, text, size, error);
  if (own->root_key == STREAMS && own->depth == 2 && is_string) return stream_value(own, text, size, error);
  if (own->root_key == GROUPS && own->depth == 3) return group_value(own, text, size, error);
  if (own->root_key == STEPS && own->depth == 3) return step_value(own, text, size, error);
  if (own->root_key != OPS || own->depth < 3 || (own->depth == 4 && own->key != AFTER) || own->depth > 4) return PL_OK;
  return is_string ? op_text(own, text, size, error) : op_number(own, text, size, error);
}

static pl_code take(void *context, pl_json_token token, const char *text, size_t size, pl_error *error) {
  pl_plain *own = context;
  switch (token) {
  case PL_JSON_OPEN_OBJECT:
  case PL_JSON_OPEN_ARRAY:
    return open(own, token);
  case PL_JSON_CLOSE_OBJECT:
  case PL_JSON_CLOSE_ARRAY:
    return close(own, token, error);
  case PL_JSON_KEY:
    return key(own, text, size, error);
  case PL_JSON_STRING:
  case PL_JSON_NUMBER:
    return value(own, token == PL_JSON_STRING, text, size, error);
  default:
    return PL_OK;
  }
}

static void tell(void *context, uint64_t done, uint64_t size) {
  const pl_plain *own = context;
  if (own->progress != NULL) own->progress->tell(own->progress->context, own->path, done, size);
}

/* From the file, or from `data`. */
static pl_code load(pl_plain *own, const char *data, size_t size, pl_error *error) {
  pl_trace *trace = own->trace;
  own->version = -1;
  own->index = trace->n_ranks;
  own->first_edge = trace->n_edges;
  own->entry = pl_trace_name(trace, "", 0);
  uint32_t file = pl_trace_name(trace, own->path, strlen(own->path));
  own->rank = (pl_trace_rank){
      .number = -1, .host = own->entry, .file = file, .first_op = trace->n_ops, .first_step = trace->n_steps};
  if (own->entry == PL_NONE || file == PL_NONE || pl_trace_add_rank(trace, own->rank) == PL_NONE)
    return pl_fail_memory(error, "a trace");
  const pl_json_reader reader = {take, tell, own};
  if (data != NULL) {
    PL_TRY(pl_json_events_parse(own->path, data, size, &reader, &own->end, error));
  } else {
    PL_TRY(pl_json_events_read(own->path, &reader, &own->end, error));
  }
  return pl_plain_finish(own, error);
}

static pl_code load_and_release(pl_plain *own, const char *data, size_t size, pl_error *error) {
  pl_code code = load(own, data, size, error);
  free(own->step_numbers);
  pl_edges_by_id_release(&own->edges);
  free(own->streams);
  free(own->groups);
  free(own->members);
  return code;
}

pl_code pl_plain_load(const char *path, pl_trace *trace, const pl_trace_progress *progress, pl_error *error) {
  pl_plain own = {.path = path, .trace = trace, .progress = progress};
  return load_and_release(&own, NULL, 0, error);
}

pl_code pl_plain_parse(const char *name, const char *data, size_t size, pl_trace *trace, pl_error *error) {
  pl_plain own = {.path = name, .trace = trace};
  return load_and_release(&own, data, size, error);
}
