/* See workloads/formats/kineto_events.h. */
#include "workloads/formats/kineto_events.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/growing.h"
#include "workloads/formats/chrome_events.h"

typedef enum field {
  FIELD_OTHER = 0,
  FIELD_CORRELATION,
  FIELD_COLLECTIVE,
  FIELD_GROUP,
  FIELD_RANKS,
  FIELD_TYPE,
  FIELD_IN,
  FIELD_OUT,
  FIELD_GROUP_SIZE,
  FIELD_SEQUENCE,
  FIELD_SOURCE,
  FIELD_DESTINATION,
  FIELD_DIMS,
  FIELD_INPUT_TYPE,
  FIELD_EXTERNAL,
  FIELD_ADDRESS,
  FIELD_BYTES,
  FIELD_DEVICE_TYPE,
  FIELD_DISTRIBUTED,
  FIELD_BASE,
  FIELD_SCHEMA,
  FIELD_RANK,
  FIELD_WORLD,
  FIELD_PACELINE,
  FIELD_HOST
} field;

/* Beside the events; rank and world_size of distributedInfo, host of what pl_kineto_write adds. */
static const pl_json_word document_keys[] = {{"distributedInfo", FIELD_DISTRIBUTED},
                                             {"paceline", FIELD_PACELINE},
                                             {"host", FIELD_HOST},
                                             {"baseTimeNanoseconds", FIELD_BASE},
                                             {"schemaVersion", FIELD_SCHEMA},
                                             {"rank", FIELD_RANK},
                                             {"world_size", FIELD_WORLD},
                                             {NULL, FIELD_OTHER}};
static const pl_json_word argument_keys[] = {{"correlation", FIELD_CORRELATION},
                                             {"Collective name", FIELD_COLLECTIVE},
                                             {"Process Group Name", FIELD_GROUP},
                                             {"Process Group Ranks", FIELD_RANKS},
                                             {"dtype", FIELD_TYPE},
                                             {"In msg nelems", FIELD_IN},
                                             {"Out msg nelems", FIELD_OUT},
                                             {"Group size", FIELD_GROUP_SIZE},
                                             {"Seq", FIELD_SEQUENCE},
                                             {"Src Rank", FIELD_SOURCE},
                                             {"Dst Rank", FIELD_DESTINATION},
                                             {"Input Dims", FIELD_DIMS},
                                             {"Input type", FIELD_INPUT_TYPE},
                                             {"External id", FIELD_EXTERNAL},
                                             {"Addr", FIELD_ADDRESS},
                                             {"Bytes", FIELD_BYTES},
                                             {"Device Type", FIELD_DEVICE_TYPE},
                                             {NULL, FIELD_OTHER}};

enum { RANKS_BYTES = 1 << 16 };

/* What the arguments of an event say. */
typedef struct said {
  int64_t correlation, address, bytes, device_type; /* the last three of the allocator's events */
  pl_kineto_communication message;
  bool says_message;
  int64_t product, row; /* "Input Dims": of the tensor that is open; how many numbers it has */
  char ranks[RANKS_BYTES];
  size_t ranks_size;
} said;

typedef struct reading {
  pl_kineto *kineto;
  const pl_trace_progress *progress;
  said said;
} reading;

static const pl_kineto_communication no_message = {PL_NONE, PL_NONE, PL_NONE, PL_NONE, -1,      -1, -1,
                                                   -1,      -1,      -1,      -1,      PL_NONE, -1};

static void begin_event(void *context) {
  said *own = &((reading *)context)->said;
  own->says_message = false;
  own->correlation = own->bytes = own->device_type = 0;
  own->address = -1;
  own->message = no_message;
  own->product = 1;
  own->row = 0;
  own->ranks_size = 0;
}

/* ---- what an event is ---- */

static uint32_t find_thread(pl_kineto *kineto, uint32_t process, uint32_t thread, bool is_device) {
  uint64_t hash = pl_hash_word(pl_hash_word(is_device, process), thread);
  uint32_t probe = 0;
  for (const uint32_t *known; (known = pl_hash_index_find(&kineto->thread_index, hash, &probe)) != NULL;) {
    const pl_kineto_thread *other = &kineto->threads[*known];
    if (other->process == process && other->thread == thread && other->is_device == is_device) return *known;
  }
  uint32_t *added = PL_TAKE(&kineto->arena, uint32_t, 1);
  if (added == NULL || !PL_GROW(kineto->threads, kineto->n_threads, kineto->thread_room) ||
      !pl_hash_index_put(&kineto->thread_index, hash, added, &kineto->arena))
    return PL_NONE;
  *added = kineto->n_threads;
  kineto->threads[kineto->n_threads] = (pl_kineto_thread){process, thread, is_device};
  return kineto->n_threads++;
}

static uint32_t keep_message(pl_kineto *kineto, said *own) {
  if (own->ranks_size > 0) own->message.ranks = pl_trace_name(kineto->trace, own->ranks, own->ranks_size);
  if (!PL_GROW(kineto->communications, kineto->n_communications, kineto->communication_room) ||
      kineto->n_communications >= (1u << 28) - 2)
    return 0;
  kineto->communications[kineto->n_communications] = own->message;
  return ++kineto->n_communications;
}

/* Of a rank with GPU the calls are the host's tasks: ops of the framework say nothing more, and are most of a file. */
static void forget_ops(pl_kineto *kineto) {
  if (kineto->has_device) return;
  kineto->has_device = true;
  uint32_t n = 0;
  for (uint32_t k = 0; k < kineto->n_events; k++)
    if (kineto->events[k].category != PL_KINETO_OP || kineto->events[k].communication > 0)
      kineto->events[n++] = kineto->events[k];
  kineto->n_left_out += kineto->n_events - n;
  kineto->n_events = n;
}

bool pl_kineto_add_event(pl_kineto *kineto, uint32_t process, uint32_t thread, bool is_device,
                         const pl_kineto_event *event) {
  uint32_t index = find_thread(kineto, process, thread, is_device);
  if (index == PL_NONE || !PL_GROW(kineto->events, kineto->n_events, kineto->room)) return false;
  kineto->events[kineto->n_events] = *event;
  kineto->events[kineto->n_events++].thread = index;
  return true;
}

static pl_code end_memory(pl_kineto *kineto, const pl_chrome_event *event, const said *own, pl_error *error) {
  static const int64_t most = (int64_t)1 << 50;
  if (!event->has_start || own->bytes == 0 || own->bytes > most || own->bytes < -most) return PL_OK;
  if (own->address == -1) { /* as PyTorch 1.8 and 1.9 write them */
    kineto->n_nowhere++;
    return PL_OK;
  }
  uint32_t thread = find_thread(kineto, event->process, event->thread, false);
  if (thread == PL_NONE || !PL_GROW(kineto->memory, kineto->n_memory, kineto->memory_room))
    return pl_fail_memory(error, "the memory of a trace");
  kineto->memory[kineto->n_memory++] =
      (pl_kineto_memory){event->start_ns, own->address, own->bytes, thread, own->device_type != 0};
  return PL_OK;
}

static pl_code end_event(void *context, const pl_chrome_event *event, pl_error *error) {
  reading *own = context;
  pl_kineto *kineto = own->kineto;
  if (event->phase == 'i' && event->name != PL_NONE && strcmp(kineto->trace->names[event->name], "[memory]") == 0)
    return end_memory(kineto, event, &own->said, error);
  if (event->phase != 'X') {
    kineto->n_left_out++;
    return PL_OK;
  }
  pl_kineto_category category;
  const char *name = event->name == PL_NONE ? "" : kineto->trace->names[event->name];
  if (!pl_kineto_find_category(event->has_category ? event->category : NULL, name, &category) ||
      event->name == PL_NONE) {
    kineto->n_left_out++;
    kineto->n_foreign += event->has_duration;
    return PL_OK;
  }
  if (!event->has_start || !event->has_duration) {
    kineto->n_without_time++;
    return PL_OK;
  }
  if (event->duration_ns < 0) kineto->n_negative++;
  bool is_device = category == PL_KINETO_KERNEL || category == PL_KINETO_COPY;
  if (is_device || category == PL_KINETO_CALL) forget_ops(kineto);
  uint32_t communication = 0;
  if (pl_kineto_is_message(name) || own->said.says_message) {
    communication = keep_message(kineto, &own->said);
    if (communication == 0) return pl_fail_memory(error, "a trace");
  }
  if (kineto->has_device && category == PL_KINETO_OP && communication == 0) {
    kineto->n_left_out++;
    return PL_OK;
  }
  const pl_kineto_event kept = {
      .start_ns = event->start_ns,
      .duration_ns = event->duration_ns > 0 ? event->duration_ns : 0,
      .name = event->name,
      .correlation = (uint32_t)own->said.correlation,
      .communication = communication & 0xfffffff,
      .category = (unsigned)category & 15,
  };
  return pl_kineto_add_event(kineto, event->process, event->thread, is_device, &kept)
             ? PL_OK
             : pl_fail_memory(error, "the events of a trace");
}

/* ---- arguments, and what stands beside the events ---- */

static pl_code read_word(reading *own, const pl_chrome_argument *found, uint32_t *name, pl_error *error) {
  *name = pl_trace_name(own->kineto->trace, found->text, found->size);
  return *name == PL_NONE ? pl_fail_memory(error, "the names of a trace") : PL_OK;
}

static void read_whole(const char *text, size_t size, int64_t *value) {
  int64_t number;
  if (pl_fixed_point(text, size, 0, &number)) *value = number;
}

static void read_ranks(said *own, const char *text, size_t size) {
  if (own->ranks_size + size + 1 >= RANKS_BYTES) return;
  if (own->ranks_size > 0) own->ranks[own->ranks_size++] = ' ';
  memcpy(own->ranks + own->ranks_size, text, size);
  own->ranks_size += size;
}

/* "Input Dims": [[8, 16], [16]]: elements of all tensors together. */
static void read_dims(said *own, const pl_chrome_argument *found) {
  bool opens = found->token == PL_JSON_OPEN_ARRAY || found->token == PL_JSON_OPEN_OBJECT;
  if (found->token == PL_JSON_STRING || found->token == PL_JSON_NUMBER) {
    int64_t n = 0;
    read_whole(found->text, found->size, &n);
    if (n >= 0 && n < ((int64_t)1 << 40) && own->product < ((int64_t)1 << 40) / (n > 0 ? n : 1)) own->product *= n;
    own->row++;
    return;
  }
  if (!opens && own->row > 0) {
    int64_t *sum = &own->message.input_elements;
    *sum = (*sum < 0 ? 0 : *sum) + own->product;
  }
  own->row = 0;
  own->product = 1;
}

static int64_t *number_of(said *own, int meaning) {
  pl_kineto_communication *message = &own->message;
  switch (meaning) {
  case FIELD_CORRELATION:
    return &own->correlation;
  case FIELD_IN:
    return &message->in_elements;
  case FIELD_OUT:
    return &message->out_elements;
  case FIELD_GROUP_SIZE:
    return &message->group_size;
  case FIELD_SEQUENCE:
    return &message->sequence;
  case FIELD_SOURCE:
    return &message->source;
  case FIELD_DESTINATION:
    return &message->destination;
  case FIELD_EXTERNAL:
    return &message->external;
  case FIELD_ADDRESS:
    return &own->address;
  case FIELD_BYTES:
    return &own->bytes;
  case FIELD_DEVICE_TYPE:
    return &own->device_type;
  default:
    return NULL;
  }
}

static pl_code read_argument(void *context, const pl_chrome_argument *found, pl_error *error) {
  reading *own = context;
  pl_kineto_communication *message = &own->said.message;
  if (found->meaning == FIELD_DIMS) {
    read_dims(&own->said, found);
    return PL_OK;
  }
  if (found->token != PL_JSON_STRING && found->token != PL_JSON_NUMBER) return PL_OK;
  int64_t *number = number_of(&own->said, found->meaning);
  if (number != NULL) read_whole(found->text, found->size, number);
  switch (found->meaning) {
  case FIELD_COLLECTIVE:
    own->said.says_message = true;
    return read_word(own, found, &message->collective, error);
  case FIELD_GROUP:
    return read_word(own, found, &message->group, error);
  case FIELD_RANKS:
    read_ranks(&own->said, found->text, found->size);
    return PL_OK;
  case FIELD_TYPE:
    return read_word(own, found, &message->type, error);
  case FIELD_INPUT_TYPE:
    return message->input_type == PL_NONE ? read_word(own, found, &message->input_type, error) : PL_OK;
  default:
    return PL_OK;
  }
}

static pl_code read_document(void *context, int object, int meaning, const char *text, size_t size, pl_error *error) {
  pl_kineto *kineto = ((reading *)context)->kineto;
  int shown = size < 40 ? (int)size : 40;
  if (object == FIELD_DISTRIBUTED && meaning == FIELD_RANK) read_whole(text, size, &kineto->rank);
  if (object == FIELD_DISTRIBUTED && meaning == FIELD_WORLD) read_whole(text, size, &kineto->world_size);
  if (object == FIELD_PACELINE && meaning == FIELD_HOST) {
    kineto->host = pl_trace_name(kineto->trace, text, size);
    return kineto->host != PL_NONE ? PL_OK : pl_fail_memory(error, "the names of a trace");
  }
  if (object != FIELD_OTHER) return PL_OK;
  if (meaning == FIELD_BASE &&
      (!pl_fixed_point(text, size, 0, &kineto->base_ns) || kineto->base_ns < 0 || kineto->base_ns > (int64_t)2.2e18))
    return pl_fail(error, PL_BAD_INPUT, "%s: baseTimeNanoseconds is '%.*s', which is no date", kineto->path, shown,
                   text);
  if (meaning != FIELD_SCHEMA) return PL_OK;
  read_whole(text, size, &kineto->schema);
  if (kineto->schema == 1) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s: schemaVersion %.*s is not known (1 is)", kineto->path, shown, text);
}

static void tell(void *context, uint64_t done, uint64_t size) {
  const reading *own = context;
  if (own->progress != NULL) own->progress->tell(own->progress->context, own->kineto->path, done, size);
}

/* ---- files ---- */

void pl_kineto_begin(pl_kineto *kineto, const char *path, pl_trace *trace) {
  *kineto = (pl_kineto){.path = path, .trace = trace, .rank = -1, .world_size = -1, .schema = -1, .host = PL_NONE};
  pl_arena_init(&kineto->arena, 0);
}

/* From `data`, or from the file if that is NULL. */
static pl_code read_all(pl_kineto *kineto, const char *path, const char *data, size_t size, pl_trace *trace,
                        const pl_trace_progress *progress, pl_error *error) {
  pl_kineto_begin(kineto, path, trace);
  reading *own = calloc(1, sizeof *own); /* too much for the stack */
  if (own == NULL) return pl_fail_memory(error, path);
  own->kineto = kineto;
  own->progress = progress;
  const pl_chrome_reader reader = {.trace = trace,
                                   .context = own,
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
  kineto->end = end.json;
  if (code == PL_OK && !end.has_events)
    code = pl_fail(error, PL_BAD_INPUT, "%s: holds no traceEvents: is no trace of PyTorch's profiler", path);
  free(own);
  return code;
}

pl_code pl_kineto_read(pl_kineto *kineto, const char *path, pl_trace *trace, const pl_trace_progress *progress,
                       pl_error *error) {
  return read_all(kineto, path, NULL, 0, trace, progress, error);
}

pl_code pl_kineto_parse(pl_kineto *kineto, const char *name, const char *data, size_t size, pl_trace *trace,
                        pl_error *error) {
  return read_all(kineto, name, size > 0 ? data : "", size, trace, NULL, error);
}

void pl_kineto_release(pl_kineto *kineto) {
  free(kineto->events);
  free(kineto->threads);
  free(kineto->communications);
  free(kineto->memory);
  pl_arena_release(&kineto->arena);
  *kineto = (pl_kineto){.path = NULL};
}
