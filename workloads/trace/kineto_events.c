/* See workloads/trace/kineto_events.h. A state machine over tokens: where an object opens says what it is. */
#include "workloads/trace/kineto_events.h"

#include <stdlib.h>
#include <string.h>

typedef enum field {
  FIELD_OTHER = 0,
  FIELD_PHASE,
  FIELD_CATEGORY,
  FIELD_NAME,
  FIELD_PROCESS,
  FIELD_THREAD,
  FIELD_START,
  FIELD_DURATION,
  FIELD_ARGUMENTS,
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
  FIELD_EVENTS,
  FIELD_DISTRIBUTED,
  FIELD_BASE,
  FIELD_SCHEMA,
  FIELD_RANK,
  FIELD_WORLD
} field;

static const pl_json_word root_keys[] = {{"traceEvents", FIELD_EVENTS},
                                         {"distributedInfo", FIELD_DISTRIBUTED},
                                         {"baseTimeNanoseconds", FIELD_BASE},
                                         {"schemaVersion", FIELD_SCHEMA},
                                         {NULL, FIELD_OTHER}};
static const pl_json_word distributed_keys[] = {{"rank", FIELD_RANK}, {"world_size", FIELD_WORLD}, {NULL, FIELD_OTHER}};
static const pl_json_word event_keys[] = {{"ph", FIELD_PHASE},     {"cat", FIELD_CATEGORY},   {"name", FIELD_NAME},
                                          {"pid", FIELD_PROCESS},  {"tid", FIELD_THREAD},     {"ts", FIELD_START},
                                          {"dur", FIELD_DURATION}, {"args", FIELD_ARGUMENTS}, {NULL, FIELD_OTHER}};
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
                                             {NULL, FIELD_OTHER}};

static field find_field(const pl_json_word *words, const char *text, size_t size) {
  return (field)pl_json_find_word(words, text, size, FIELD_OTHER);
}

enum { WORD_BYTES = 24, RANKS_BYTES = 1 << 16 };

/* The event under construction. */
typedef struct draft {
  char phase, category[WORD_BYTES];
  bool has_category, has_start, has_duration;
  uint32_t name, process, thread;
  int64_t start_ns, duration_ns, correlation;
  pl_kineto_communication message;
  bool says_message;
  int64_t product, row; /* "Input Dims": of the tensor that is open; how many numbers it has */
  char ranks[RANKS_BYTES];
  size_t ranks_size;
} draft;

typedef struct machine {
  pl_kineto *kineto;
  const pl_trace_progress *progress;
  uint32_t depth, events_depth, event_depth, distributed_depth, arguments_depth; /* 0: not in one */
  field key;
  bool saw_events;
  draft event;
} machine;

static const pl_kineto_communication no_message = {PL_NONE, PL_NONE, PL_NONE, PL_NONE, -1, -1,
                                                   -1,      -1,      -1,      -1,      -1, PL_NONE};

static void begin_event(draft *event) {
  event->phase = '\0';
  event->has_category = event->has_start = event->has_duration = event->says_message = false;
  event->category[0] = '\0';
  event->name = event->process = event->thread = PL_NONE;
  event->start_ns = event->duration_ns = event->correlation = 0;
  event->message = no_message;
  event->ranks_size = 0;
}

/* ---- what an event is ---- */

static bool begins(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

static bool is_message_name(const char *name) {
  return begins(name, "nccl:") || begins(name, "gloo:") || strcmp(name, "record_param_comms") == 0;
}

static bool find_category(const draft *event, const char *name, pl_kineto_category *category) {
  static const struct {
    const char *word;
    pl_kineto_category category;
  } words[] = {
      {"cpu_op", PL_KINETO_OP},         {"Operator", PL_KINETO_OP},      {"user_annotation", PL_KINETO_ANNOTATION},
      {"cuda_runtime", PL_KINETO_CALL}, {"cuda_driver", PL_KINETO_CALL}, {"hip_runtime", PL_KINETO_CALL},
      {"Runtime", PL_KINETO_CALL},      {"kernel", PL_KINETO_KERNEL},    {"Kernel", PL_KINETO_KERNEL},
      {"gpu_memcpy", PL_KINETO_COPY},   {"gpu_memset", PL_KINETO_COPY},  {"Memcpy", PL_KINETO_COPY},
      {"Memset", PL_KINETO_COPY}};
  if (!event->has_category) { /* the list of PyTorch without Kineto: host only */
    bool noted = begins(name, "ProfilerStep#") || is_message_name(name);
    *category = noted ? PL_KINETO_ANNOTATION : PL_KINETO_OP;
    return true;
  }
  for (size_t w = 0; w < sizeof words / sizeof *words; w++)
    if (strcmp(words[w].word, event->category) == 0) {
      *category = words[w].category;
      return true;
    }
  return false;
}

static void *larger(void *array, uint32_t n, uint32_t *room, size_t size) {
  if (n < *room) return array;
  if (n >= UINT32_MAX / 4) return NULL;
  uint32_t next = n < 256 ? 512 : n / 2 * 3;
  void *moved = realloc(array, next * size);
  if (moved != NULL) *room = next;
  return moved;
}

static uint32_t find_thread(pl_kineto *kineto, uint32_t process, uint32_t thread, bool is_device) {
  uint64_t hash = pl_hash_word(pl_hash_word(is_device, process), thread);
  uint32_t probe = 0;
  for (const uint32_t *known; (known = pl_hash_index_find(&kineto->thread_index, hash, &probe)) != NULL;) {
    const pl_kineto_thread *other = &kineto->threads[*known];
    if (other->process == process && other->thread == thread && other->is_device == is_device) return *known;
  }
  uint32_t *added = PL_TAKE(&kineto->arena, uint32_t, 1);
  pl_kineto_thread *threads = larger(kineto->threads, kineto->n_threads, &kineto->thread_room, sizeof *threads);
  if (threads != NULL) kineto->threads = threads;
  if (added == NULL || threads == NULL || !pl_hash_index_put(&kineto->thread_index, hash, added, &kineto->arena))
    return PL_NONE;
  *added = kineto->n_threads;
  kineto->threads[kineto->n_threads] = (pl_kineto_thread){process, thread, is_device};
  return kineto->n_threads++;
}

static uint32_t keep_message(pl_kineto *kineto, draft *event) {
  if (event->ranks_size > 0) event->message.ranks = pl_trace_name(kineto->trace, event->ranks, event->ranks_size);
  pl_kineto_communication *all =
      larger(kineto->communications, kineto->n_communications, &kineto->communication_room, sizeof *all);
  if (all == NULL || kineto->n_communications >= (1u << 28) - 2) return 0;
  kineto->communications = all;
  all[kineto->n_communications] = event->message;
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

static pl_code end_event(machine *own, pl_error *error) {
  pl_kineto *kineto = own->kineto;
  draft *event = &own->event;
  if (event->phase != 'X') {
    kineto->n_left_out++;
    return PL_OK;
  }
  pl_kineto_category category;
  const char *name = event->name == PL_NONE ? "" : kineto->trace->names[event->name];
  if (!find_category(event, name, &category) || event->name == PL_NONE) {
    kineto->n_left_out++;
    return PL_OK;
  }
  if (!event->has_start || !event->has_duration) {
    kineto->n_without_time++;
    return PL_OK;
  }
  if (event->duration_ns < 0) {
    kineto->n_negative++;
    event->duration_ns = 0;
  }
  bool is_device = category == PL_KINETO_KERNEL || category == PL_KINETO_COPY;
  if (is_device || category == PL_KINETO_CALL) forget_ops(kineto);
  uint32_t communication = 0;
  if (is_message_name(name) || event->says_message) {
    communication = keep_message(kineto, event);
    if (communication == 0) return pl_fail_memory(error, "a trace");
  }
  if (kineto->has_device && category == PL_KINETO_OP && communication == 0) {
    kineto->n_left_out++;
    return PL_OK;
  }
  uint32_t thread = find_thread(kineto, event->process, event->thread, is_device);
  pl_kineto_event *events = larger(kineto->events, kineto->n_events, &kineto->room, sizeof *events);
  if (events != NULL) kineto->events = events;
  if (thread == PL_NONE || events == NULL) return pl_fail_memory(error, "the events of a trace");
  events[kineto->n_events++] = (pl_kineto_event){
      .start_ns = event->start_ns,
      .duration_ns = event->duration_ns,
      .name = event->name,
      .thread = thread,
      .correlation = (uint32_t)event->correlation,
      .communication = communication & 0xfffffff,
      .category = (unsigned)category & 15,
  };
  return PL_OK;
}

/* ---- tokens ---- */

static pl_code read_word(machine *own, const char *text, size_t size, uint32_t *name, pl_error *error) {
  *name = pl_trace_name(own->kineto->trace, text, size);
  return *name == PL_NONE ? pl_fail_memory(error, "the names of a trace") : PL_OK;
}

static pl_code read_date(machine *own, const char *what, const char *text, size_t size, int64_t *value,
                         pl_error *error) {
  static const int64_t most = (int64_t)1e18; /* sums and differences of dates and bases stay below 2^63 */
  if (pl_fixed_point(text, size, 3, value) && *value >= -2 * most - most / 5 && *value <= 2 * most + most / 5) {
    if (own->key != FIELD_DURATION || *value <= most) return PL_OK;
  }
  return pl_fail(error, PL_BAD_INPUT, "%s: '%s' of an event is '%.*s', which is no time in microseconds",
                 own->kineto->path, what, size < 40 ? (int)size : 40, text);
}

static void read_whole(const char *text, size_t size, int64_t *value) {
  int64_t number;
  if (pl_fixed_point(text, size, 0, &number)) *value = number;
}

static pl_code event_value(machine *own, const char *text, size_t size, pl_error *error) {
  draft *event = &own->event;
  switch (own->key) {
  case FIELD_PHASE:
    event->phase = size == 1 ? text[0] : '?';
    return PL_OK;
  case FIELD_CATEGORY:
    event->has_category = true;
    if (size < WORD_BYTES) {
      memcpy(event->category, text, size);
      event->category[size] = '\0';
    }
    return PL_OK;
  case FIELD_NAME:
    return read_word(own, text, size, &event->name, error);
  case FIELD_PROCESS:
    return read_word(own, text, size, &event->process, error);
  case FIELD_THREAD:
    return read_word(own, text, size, &event->thread, error);
  case FIELD_START:
    event->has_start = true;
    return read_date(own, "ts", text, size, &event->start_ns, error);
  case FIELD_DURATION:
    event->has_duration = true;
    return read_date(own, "dur", text, size, &event->duration_ns, error);
  default:
    return PL_OK;
  }
}

static void read_ranks(draft *event, const char *text, size_t size) {
  if (event->ranks_size + size + 1 >= RANKS_BYTES) return;
  if (event->ranks_size > 0) event->ranks[event->ranks_size++] = ' ';
  memcpy(event->ranks + event->ranks_size, text, size);
  event->ranks_size += size;
}

static pl_code argument_value(machine *own, const char *text, size_t size, pl_error *error) {
  pl_kineto_communication *message = &own->event.message;
  switch (own->key) {
  case FIELD_CORRELATION:
    read_whole(text, size, &own->event.correlation);
    return PL_OK;
  case FIELD_COLLECTIVE:
    own->event.says_message = true;
    return read_word(own, text, size, &message->collective, error);
  case FIELD_GROUP:
    return read_word(own, text, size, &message->group, error);
  case FIELD_RANKS:
    read_ranks(&own->event, text, size);
    return PL_OK;
  case FIELD_TYPE:
    return read_word(own, text, size, &message->type, error);
  case FIELD_IN:
    read_whole(text, size, &message->in_elements);
    return PL_OK;
  case FIELD_OUT:
    read_whole(text, size, &message->out_elements);
    return PL_OK;
  case FIELD_GROUP_SIZE:
    read_whole(text, size, &message->group_size);
    return PL_OK;
  case FIELD_SEQUENCE:
    read_whole(text, size, &message->sequence);
    return PL_OK;
  case FIELD_SOURCE:
    read_whole(text, size, &message->source);
    return PL_OK;
  case FIELD_DESTINATION:
    read_whole(text, size, &message->destination);
    return PL_OK;
  case FIELD_INPUT_TYPE:
    return message->input_type == PL_NONE ? read_word(own, text, size, &message->input_type, error) : PL_OK;
  case FIELD_DIMS: {
    int64_t n = 0;
    read_whole(text, size, &n);
    if (n >= 0 && n < ((int64_t)1 << 40) && own->event.product < ((int64_t)1 << 40) / (n > 0 ? n : 1))
      own->event.product *= n;
    own->event.row++;
    return PL_OK;
  }
  default:
    return PL_OK;
  }
}

static pl_code root_value(machine *own, const char *text, size_t size, pl_error *error) {
  pl_kineto *kineto = own->kineto;
  if (own->key == FIELD_BASE &&
      (!pl_fixed_point(text, size, 0, &kineto->base_ns) || kineto->base_ns < 0 || kineto->base_ns > (int64_t)2.2e18))
    return pl_fail(error, PL_BAD_INPUT, "%s: baseTimeNanoseconds is '%.*s', which is no date", kineto->path,
                   size < 40 ? (int)size : 40, text);
  if (own->key == FIELD_SCHEMA) {
    read_whole(text, size, &kineto->schema);
    if (kineto->schema != 1)
      return pl_fail(error, PL_BAD_INPUT, "%s: schemaVersion %.*s is not known (1 is)", kineto->path,
                     size < 40 ? (int)size : 40, text);
  }
  return PL_OK;
}

static pl_code value(machine *own, const char *text, size_t size, pl_error *error) {
  if (own->arguments_depth > 0) return argument_value(own, text, size, error);
  if (own->event_depth > 0) return own->depth == own->event_depth ? event_value(own, text, size, error) : PL_OK;
  if (own->distributed_depth > 0 && own->depth == own->distributed_depth) {
    if (own->key == FIELD_RANK) read_whole(text, size, &own->kineto->rank);
    if (own->key == FIELD_WORLD) read_whole(text, size, &own->kineto->world_size);
    return PL_OK;
  }
  return own->depth == 1 ? root_value(own, text, size, error) : PL_OK;
}

static void open(machine *own, bool object) {
  own->depth++;
  if (own->depth == 1 && !object) own->events_depth = 1;
  if (own->depth == 2 && !object && own->key == FIELD_EVENTS && own->events_depth == 0) own->events_depth = 2;
  if (own->events_depth > 0) own->saw_events = true;
  if (object && own->events_depth > 0 && own->depth == own->events_depth + 1) {
    own->event_depth = own->depth;
    begin_event(&own->event);
  } else if (object && own->event_depth > 0 && own->depth == own->event_depth + 1 && own->key == FIELD_ARGUMENTS) {
    own->arguments_depth = own->depth;
  } else if (object && own->depth == 2 && own->key == FIELD_DISTRIBUTED && own->events_depth == 0) {
    own->distributed_depth = 2;
  }
  own->event.product = 1;
  own->event.row = 0;
}

static pl_code close(machine *own, pl_error *error) {
  if (own->arguments_depth > 0 && own->key == FIELD_DIMS && own->event.row > 0) {
    int64_t *sum = &own->event.message.input_elements;
    *sum = (*sum < 0 ? 0 : *sum) + own->event.product;
    own->event.row = 0;
    own->event.product = 1;
  }
  uint32_t at = own->depth--;
  if (at == own->arguments_depth) own->arguments_depth = 0;
  if (at == own->distributed_depth) own->distributed_depth = 0;
  if (at == own->events_depth) own->events_depth = 0;
  if (at == own->event_depth) {
    own->event_depth = 0;
    return end_event(own, error);
  }
  return PL_OK;
}

static pl_code take(void *context, pl_json_token token, const char *text, size_t size, pl_error *error) {
  machine *own = context;
  switch (token) {
  case PL_JSON_OPEN_OBJECT:
  case PL_JSON_OPEN_ARRAY:
    open(own, token == PL_JSON_OPEN_OBJECT);
    return PL_OK;
  case PL_JSON_CLOSE_OBJECT:
  case PL_JSON_CLOSE_ARRAY:
    return close(own, error);
  case PL_JSON_KEY: {
    if (own->arguments_depth > 0) {
      if (own->depth == own->arguments_depth) own->key = find_field(argument_keys, text, size);
      return PL_OK;
    }
    const pl_json_word *words = own->event_depth > 0         ? event_keys
                                : own->distributed_depth > 0 ? distributed_keys
                                                             : root_keys;
    uint32_t home = own->event_depth > 0 ? own->event_depth : own->distributed_depth > 0 ? own->distributed_depth : 1;
    own->key = own->depth == home ? find_field(words, text, size) : FIELD_OTHER;
    return PL_OK;
  }
  case PL_JSON_STRING:
  case PL_JSON_NUMBER:
    return value(own, text, size, error);
  default:
    return PL_OK;
  }
}

static void tell(void *context, uint64_t done, uint64_t size) {
  const machine *own = context;
  if (own->progress != NULL) own->progress->tell(own->progress->context, own->kineto->path, done, size);
}

static machine *begin(pl_kineto *kineto, const char *path, pl_trace *trace, const pl_trace_progress *progress) {
  kineto->path = path;
  kineto->trace = trace;
  kineto->rank = kineto->world_size = kineto->schema = -1;
  pl_arena_init(&kineto->arena, 0);
  machine *own = calloc(1, sizeof *own);
  if (own != NULL) *own = (machine){.kineto = kineto, .progress = progress};
  return own;
}

static pl_code judge(const machine *own, pl_error *error) {
  if (!own->saw_events)
    return pl_fail(error, PL_BAD_INPUT, "%s: holds no traceEvents: is no trace of PyTorch's profiler",
                   own->kineto->path);
  if (own->kineto->n_events == 0)
    return pl_fail(error, PL_BAD_INPUT, "%s: none of its events has a duration: nothing was recorded",
                   own->kineto->path);
  return PL_OK;
}

pl_code pl_kineto_read(pl_kineto *kineto, const char *path, pl_trace *trace, const pl_trace_progress *progress,
                       pl_error *error) {
  machine *own = begin(kineto, path, trace, progress);
  if (own == NULL) return pl_fail_memory(error, path);
  const pl_json_reader reader = {take, tell, own};
  pl_code code = pl_json_events_read(path, &reader, &kineto->end, error);
  if (code == PL_OK) code = judge(own, error);
  free(own);
  return code;
}

pl_code pl_kineto_parse(pl_kineto *kineto, const char *name, const char *data, size_t size, pl_trace *trace,
                        pl_error *error) {
  machine *own = begin(kineto, name, trace, NULL);
  if (own == NULL) return pl_fail_memory(error, name);
  const pl_json_reader reader = {take, NULL, own};
  pl_code code = pl_json_events_parse(name, data, size, &reader, &kineto->end, error);
  if (code == PL_OK) code = judge(own, error);
  free(own);
  return code;
}

void pl_kineto_release(pl_kineto *kineto) {
  free(kineto->events);
  free(kineto->threads);
  free(kineto->communications);
  pl_arena_release(&kineto->arena);
  *kineto = (pl_kineto){.path = NULL};
}
