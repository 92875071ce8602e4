/* See workloads/formats/perfetto.h. */
#include "workloads/formats/perfetto.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/growing.h"
#include "core/base/words.h"
#include "workloads/formats/chrome_events.h"
#include "workloads/formats/edges_by_id.h"

typedef enum field {
  FIELD_OTHER = 0,
  FIELD_NAME,
  FIELD_HOST,
  FIELD_WORLD,
  FIELD_KIND,
  FIELD_GROUP,
  FIELD_MEMBERS,
  FIELD_ID,
  FIELD_STEP,
  FIELD_AFTER,
  FIELD_LAUNCHED_BY,
  FIELD_MESSAGE,
  FIELD_PEER,
  FIELD_TAG,
  FIELD_BYTES,
  FIELD_SEQUENCE,
  FIELD_VERSION,
  FIELD_BASE
} field;

static const pl_json_word document_keys[] = {
    {"paceline_perfetto", FIELD_VERSION}, {"base_ns", FIELD_BASE}, {NULL, FIELD_OTHER}};
static const pl_json_word argument_keys[] = {
    {"name", FIELD_NAME},       {"host", FIELD_HOST},   {"world_size", FIELD_WORLD},        {"kind", FIELD_KIND},
    {"group", FIELD_GROUP},     {"id", FIELD_ID},       {"members", FIELD_MEMBERS},         {"step", FIELD_STEP},
    {"after", FIELD_AFTER},     {"bytes", FIELD_BYTES}, {"launched_by", FIELD_LAUNCHED_BY}, {"peer", FIELD_PEER},
    {"message", FIELD_MESSAGE}, {"tag", FIELD_TAG},     {"sequence", FIELD_SEQUENCE},       {NULL, FIELD_OTHER}};

typedef struct numbered {
  int64_t number;
  uint32_t index;
} numbered;

/* What the arguments of the event that is read say; absent: INT64_MIN, PL_NONE, -1. */
typedef struct said {
  int64_t group, id, step, world_size, peer, bytes, sequence;
  uint32_t name, host, kind, message, tag;
  int64_t *members;
  uint32_t n_members, member_room;
  pl_edge_by_id *waits;
  uint32_t n_waits, wait_room;
} said;

typedef struct reading {
  const char *path;
  pl_trace *trace;
  const pl_trace_progress *progress;
  int64_t version, base_ns;
  uint32_t file, first_rank; /* of the file: those from first_rank on */
  uint32_t rank, process;    /* that is open, PL_NONE: none; the name of its number */
  uint32_t first_edge, n_negative;
  numbered *groups, *streams; /* streams: of the rank, by the name of their number */
  uint32_t n_groups, group_room, n_streams, stream_room;
  pl_edges_by_id edges;
  said said;
  pl_json_end end;
} reading;

static pl_code bad(const reading *own, pl_error *error, const char *what, uint32_t name) {
  return pl_fail(error, PL_BAD_INPUT, "%s: %s '%.60s'", own->path, what,
                 name == PL_NONE ? "?" : own->trace->names[name]);
}

/* ---- arguments ---- */

static void begin_event(void *context) {
  said *own = &((reading *)context)->said;
  own->group = own->id = own->step = INT64_MIN;
  own->world_size = 0;
  own->peer = own->bytes = own->sequence = -1;
  own->name = own->host = own->kind = own->message = own->tag = PL_NONE;
  own->n_members = own->n_waits = 0;
}

static uint32_t *word_of(said *own, int meaning) {
  return meaning == FIELD_NAME      ? &own->name
         : meaning == FIELD_HOST    ? &own->host
         : meaning == FIELD_KIND    ? &own->kind
         : meaning == FIELD_MESSAGE ? &own->message
         : meaning == FIELD_TAG     ? &own->tag
                                    : NULL;
}

static int64_t *number_of(said *own, int meaning) {
  return meaning == FIELD_GROUP      ? &own->group
         : meaning == FIELD_ID       ? &own->id
         : meaning == FIELD_STEP     ? &own->step
         : meaning == FIELD_WORLD    ? &own->world_size
         : meaning == FIELD_PEER     ? &own->peer
         : meaning == FIELD_BYTES    ? &own->bytes
         : meaning == FIELD_SEQUENCE ? &own->sequence
                                     : NULL;
}

static bool keep_number(said *own, int meaning, int64_t value) {
  int64_t *number = number_of(own, meaning);
  if (number != NULL) *number = value;
  if (meaning == FIELD_MEMBERS) {
    if (!PL_GROW(own->members, own->n_members, own->member_room)) return false;
    own->members[own->n_members++] = value;
  }
  if (meaning == FIELD_AFTER || meaning == FIELD_LAUNCHED_BY) {
    if (!PL_GROW(own->waits, own->n_waits, own->wait_room)) return false;
    own->waits[own->n_waits++] = (pl_edge_by_id){value, 0, meaning == FIELD_LAUNCHED_BY};
  }
  return true;
}

static pl_code read_argument(void *context, const pl_chrome_argument *found, pl_error *error) {
  reading *own = context;
  if (found->token == PL_JSON_STRING) {
    uint32_t *word = word_of(&own->said, found->meaning);
    if (word != NULL) *word = pl_trace_name(own->trace, found->text, found->size);
    return word == NULL || *word != PL_NONE ? PL_OK : pl_fail_memory(error, "the names of a trace");
  }
  if (found->token != PL_JSON_NUMBER) return PL_OK;
  int64_t value;
  if (!pl_fixed_point(found->text, found->size, 0, &value) || value > (int64_t)1 << 60 || value < -((int64_t)1 << 60))
    return pl_fail(error, PL_BAD_INPUT, "%s: '%.*s' in the arguments of an event is out of range", own->path,
                   found->size < 40 ? (int)found->size : 40, found->text);
  return keep_number(&own->said, found->meaning, value) ? PL_OK : pl_fail_memory(error, own->path);
}

static pl_code read_document(void *context, int object, int meaning, const char *text, size_t size, pl_error *error) {
  reading *own = context;
  int64_t value, most = (int64_t)2.2e18;
  if (object != FIELD_OTHER) return PL_OK;
  bool good = pl_fixed_point(text, size, 0, &value);
  int shown = size < 40 ? (int)size : 40;
  if (meaning == FIELD_VERSION && (!good || value != PL_PERFETTO_VERSION))
    return pl_fail(error, PL_BAD_INPUT, "%s: paceline_perfetto is '%.*s'; %d is known", own->path, shown, text,
                   PL_PERFETTO_VERSION);
  if (meaning == FIELD_BASE && (!good || value < 0 || value > most))
    return pl_fail(error, PL_BAD_INPUT, "%s: base_ns is '%.*s', which is no date", own->path, shown, text);
  if (meaning == FIELD_VERSION) own->version = value;
  if (meaning == FIELD_BASE) own->base_ns = value;
  return PL_OK;
}

/* ---- ranks ---- */

static pl_code end_rank(reading *own, pl_error *error) {
  pl_trace *trace = own->trace;
  if (own->rank == PL_NONE) return PL_OK;
  pl_trace_rank *rank = &trace->ranks[own->rank];
  if (trace->n_ops == rank->first_op)
    return pl_fail(error, PL_BAD_INPUT, "%s: rank %lld has no ops", own->path, (long long)rank->number);
  uint32_t n_lost = 0;
  PL_TRY(
      pl_edges_by_id_add(&own->edges, trace, rank->first_op, own->path, "op", own->end.is_cut ? &n_lost : NULL, error));
  if (n_lost > 0)
    pl_trace_add_note(trace, "%s: rank %lld: %u ops wait for ops behind the end of the file", own->path,
                      (long long)rank->number, n_lost);
  if (own->n_negative > 0)
    pl_trace_add_note(trace, "%s: rank %lld: %u ops with negative durations, taken as 0", own->path,
                      (long long)rank->number, own->n_negative);
  PL_TRY(pl_trace_end_rank(trace, own->rank, own->first_edge, error));
  trace->ranks[own->rank].epoch_ns += own->base_ns;
  pl_edges_by_id_release(&own->edges);
  own->n_streams = own->n_negative = 0;
  own->rank = PL_NONE;
  return PL_OK;
}

static pl_code open_rank(reading *own, const pl_chrome_event *event, pl_error *error) {
  pl_trace *trace = own->trace;
  int64_t number;
  const char *text = event->process == PL_NONE ? "" : trace->names[event->process];
  if (!pl_fixed_point(text, strlen(text), 0, &number) || number < 0 || number > INT32_MAX)
    return bad(own, error, "a process is no number of a rank:", event->process);
  for (uint32_t r = own->first_rank; r < trace->n_ranks; r++)
    if (trace->ranks[r].number == number)
      return pl_fail(error, PL_BAD_INPUT, "%s: rank %lld is there twice", own->path, (long long)number);
  if (own->said.world_size < 0 || own->said.world_size > INT32_MAX)
    return pl_fail(error, PL_BAD_INPUT, "%s: rank %lld is of a world of %lld ranks", own->path, (long long)number,
                   (long long)own->said.world_size);
  uint32_t host = own->said.host != PL_NONE ? own->said.host : pl_trace_name(trace, "", 0);
  const pl_trace_rank rank = {.number = number,
                              .host = host,
                              .file = own->file,
                              .first_op = trace->n_ops,
                              .first_step = trace->n_steps,
                              .world_size = own->said.world_size};
  own->first_edge = trace->n_edges;
  own->process = event->process;
  own->rank = host == PL_NONE ? PL_NONE : pl_trace_add_rank(trace, rank);
  return own->rank != PL_NONE ? PL_OK : pl_fail_memory(error, own->path);
}

static uint32_t find(const numbered *list, uint32_t n, int64_t number) {
  for (uint32_t k = n; k-- > 0;)
    if (list[k].number == number) return list[k].index;
  return PL_NONE;
}

static pl_code add_group(reading *own, pl_error *error) {
  said *says = &own->said;
  for (uint32_t m = 0; m < says->n_members; m++)
    for (uint32_t o = 0; o < m && says->n_members <= 1 << 12; o++)
      if (says->members[o] == says->members[m])
        return pl_fail(error, PL_BAD_INPUT, "%s: group %lld has rank %lld twice", own->path, (long long)says->group,
                       (long long)says->members[m]);
  if (says->n_members > 1 << 12 || find(own->groups, own->n_groups, says->group) != PL_NONE)
    return pl_fail(error, PL_BAD_INPUT, "%s: group %lld is there twice, or has more than 4096 ranks", own->path,
                   (long long)says->group);
  uint32_t name = says->name != PL_NONE ? says->name : pl_trace_name(own->trace, "", 0);
  if (name == PL_NONE || !PL_GROW(own->groups, own->n_groups, own->group_room)) return pl_fail_memory(error, own->path);
  uint32_t group = pl_trace_add_group(own->trace, name, says->members, says->n_members);
  own->groups[own->n_groups++] = (numbered){says->group, group};
  return group != PL_NONE ? PL_OK : pl_fail_memory(error, own->path);
}

static pl_code add_stream(reading *own, const pl_chrome_event *event, pl_error *error) {
  const said *says = &own->said;
  int kind = says->kind == PL_NONE ? -1 : pl_words_find(pl_trace_stream_kind_names, own->trace->names[says->kind]);
  if (kind < 0) return bad(own, error, "a thread is neither of host, device nor network:", says->kind);
  if (event->thread == PL_NONE || says->name == PL_NONE || event->process != own->process ||
      find(own->streams, own->n_streams, event->thread) != PL_NONE)
    return bad(own, error, "a thread has no name, or another's number:", event->thread);
  if (!PL_GROW(own->streams, own->n_streams, own->stream_room)) return pl_fail_memory(error, own->path);
  uint32_t stream = pl_trace_add_stream(own->trace, own->rank, says->name, (pl_trace_stream_kind)kind);
  own->streams[own->n_streams++] = (numbered){event->thread, stream};
  return stream != PL_NONE ? PL_OK : pl_fail_memory(error, own->path);
}

/* ---- steps and ops ---- */

static pl_code find_step(const reading *own, uint32_t *step, pl_error *error) {
  const pl_trace *trace = own->trace;
  *step = PL_NONE;
  if (own->said.step == INT64_MIN) return PL_OK;
  for (uint32_t s = trace->n_steps; s-- > trace->ranks[own->rank].first_step;)
    if (trace->steps[s].number == own->said.step) {
      *step = s;
      return PL_OK;
    }
  return pl_fail(error, PL_BAD_INPUT, "%s: an op is of step %lld, which stands nowhere in front of it", own->path,
                 (long long)own->said.step);
}

static pl_code add_message(reading *own, pl_trace_op *op, pl_error *error) {
  const said *says = &own->said;
  bool alone = op->kind == PL_TRACE_SEND || op->kind == PL_TRACE_RECEIVE;
  if (!alone && op->kind != PL_TRACE_COLLECTIVE) return PL_OK;
  int kind =
      says->message == PL_NONE ? -1 : pl_words_find(pl_trace_message_kind_names, own->trace->names[says->message]);
  if (kind < 0 || (kind == PL_TRACE_POINT_TO_POINT) != alone)
    return bad(own, error, "an op that communicates does not say what:", says->message);
  pl_trace_message message = {(uint8_t)kind, PL_NONE, -1, PL_NONE, says->sequence, says->bytes < 0 ? -1 : says->bytes};
  if (alone && (says->peer < 0 || says->peer > INT32_MAX))
    return bad(own, error, "a message does not say its other end ('peer'):", says->message);
  if (alone) {
    message.peer = (int32_t)says->peer;
    message.tag = says->tag;
  } else {
    message.group = find(own->groups, own->n_groups, says->group);
    if (message.group == PL_NONE)
      return pl_fail(error, PL_BAD_INPUT, "%s: a collective is of a group that is nowhere in front of it (%lld)",
                     own->path, says->group == INT64_MIN ? -1 : (long long)says->group);
  }
  op->message = pl_trace_add_message(own->trace, message);
  return op->message != PL_NONE ? PL_OK : pl_fail_memory(error, own->path);
}

static pl_code add_op(reading *own, const pl_chrome_event *event, int kind, pl_error *error) {
  uint32_t stream = event->thread == PL_NONE ? PL_NONE : find(own->streams, own->n_streams, event->thread), step;
  if (stream == PL_NONE) return bad(own, error, "no thread_name stands in front of an op of thread", event->thread);
  if (event->name == PL_NONE || own->said.id == INT64_MIN)
    return bad(own, error, "an op has no name or no id:", event->name);
  PL_TRY(find_step(own, &step, error));
  own->n_negative += event->duration_ns < 0;
  pl_trace_op op = pl_trace_op_of(event->start_ns, event->duration_ns < 0 ? 0 : event->duration_ns, event->name, stream,
                                  PL_NONE, step, (pl_trace_op_kind)kind);
  PL_TRY(add_message(own, &op, error));
  uint32_t place = own->edges.n_ids;
  bool good = pl_edges_by_id_op(&own->edges, own->said.id) && pl_trace_add_op(own->trace, op) != PL_NONE;
  for (uint32_t w = 0; good && w < own->said.n_waits; w++)
    good = pl_edges_by_id_wait(&own->edges, own->said.waits[w].before, place, own->said.waits[w].from_start);
  return good ? PL_OK : pl_fail_memory(error, own->path);
}

static pl_code add_slice(reading *own, const pl_chrome_event *event, pl_error *error) {
  if (own->rank == PL_NONE || event->process != own->process)
    return bad(own, error, "no process_name stands in front of an op of process", event->process);
  if (!event->has_start || !event->has_duration) return bad(own, error, "no date or duration:", event->name);
  static const int64_t most = (int64_t)1e18; /* a rank's dates count from base_ns */
  if (event->start_ns > most || event->start_ns < -most) return bad(own, error, "a date out of range:", event->name);
  if (strcmp(event->category, "step") != 0) {
    int kind = pl_words_find(pl_trace_op_kind_names, event->category);
    return kind < 0 ? bad(own, error, "an event is of no kind of op:", event->name) : add_op(own, event, kind, error);
  }
  if (own->said.step == INT64_MIN || event->duration_ns < 0)
    return bad(own, error, "a step that is none:", event->name);
  if (own->trace->n_steps > own->trace->ranks[own->rank].first_step &&
      own->trace->steps[own->trace->n_steps - 1].start_ns > event->start_ns)
    return bad(own, error, "steps stand in the order of their starts, but for", event->name);
  const pl_trace_step step = {own->rank, own->said.step, event->start_ns, event->duration_ns};
  return pl_trace_add_step(own->trace, step) != PL_NONE ? PL_OK : pl_fail_memory(error, own->path);
}

static pl_code end_event(void *context, const pl_chrome_event *event, pl_error *error) {
  reading *own = context;
  const char *name = event->name == PL_NONE ? "" : own->trace->names[event->name];
  if (event->phase == 'X') return add_slice(own, event, error);
  if (event->phase != 'M') return PL_OK; /* arrows */
  if (strcmp(name, "paceline_group") == 0) return add_group(own, error);
  if (strcmp(name, "thread_name") == 0 && own->rank == PL_NONE)
    return bad(own, error, "no process_name stands in front of thread", event->thread);
  if (strcmp(name, "thread_name") == 0) return add_stream(own, event, error);
  if (strcmp(name, "process_name") != 0) return PL_OK;
  PL_TRY(end_rank(own, error));
  return open_rank(own, event, error);
}

/* ---- a file ---- */

static void tell(void *context, uint64_t done, uint64_t size) {
  const reading *own = context;
  if (own->progress != NULL) own->progress->tell(own->progress->context, own->path, done, size);
}

static pl_code finish(reading *own, bool has_events, pl_error *error) {
  if (!has_events || own->version < 0)
    return pl_fail(error, PL_BAD_INPUT, "%s: says no paceline_perfetto, or no traceEvents", own->path);
  PL_TRY(end_rank(own, error));
  if (own->trace->n_ranks == own->first_rank)
    return pl_fail(error, PL_BAD_INPUT, "%s: no rank in it: nothing was recorded", own->path);
  if (own->end.is_cut || own->end.is_gzip_cut)
    pl_trace_add_note(own->trace, "%s: ends too early; read as far as it goes", own->path);
  return PL_OK;
}

static pl_code read_all(const char *path, const char *data, size_t size, pl_trace *trace,
                        const pl_trace_progress *progress, pl_error *error) {
  reading own = {.path = path,
                 .trace = trace,
                 .progress = progress,
                 .version = -1,
                 .file = pl_trace_name(trace, path, strlen(path)),
                 .first_rank = trace->n_ranks,
                 .rank = PL_NONE};
  if (own.file == PL_NONE) return pl_fail_memory(error, path);
  const pl_chrome_reader reader = {.trace = trace,
                                   .context = &own,
                                   .begin = begin_event,
                                   .arguments = argument_keys,
                                   .argument = read_argument,
                                   .event = end_event,
                                   .words = document_keys,
                                   .said = read_document,
                                   .progress = tell};
  pl_chrome_end end = {.has_events = false};
  pl_code code = data != NULL ? pl_chrome_events_parse(path, data, size, &reader, &end, error)
                              : pl_chrome_events_read(path, &reader, &end, error);
  own.end = end.json;
  if (code == PL_OK) code = finish(&own, end.has_events, error);
  pl_edges_by_id_release(&own.edges);
  free(own.groups);
  free(own.streams);
  free(own.said.members);
  free(own.said.waits);
  return code;
}

pl_code pl_perfetto_load(const char *path, pl_trace *trace, const pl_trace_progress *progress, pl_error *error) {
  return read_all(path, NULL, 0, trace, progress, error);
}

pl_code pl_perfetto_parse(const char *name, const char *data, size_t size, pl_trace *trace, pl_error *error) {
  return read_all(name, size > 0 ? data : "", size, trace, NULL, error);
}
