/* See workloads/formats/chrome_events.h. A state machine over tokens: where an object opens says what it is. */
#include "workloads/formats/chrome_events.h"

#include <string.h>

typedef enum field { OTHER = 0, PHASE, CATEGORY, NAME, PROCESS, THREAD, START, DURATION, ARGUMENTS } field;

static const pl_json_word event_words[] = {{"ph", PHASE},     {"cat", CATEGORY},   {"name", NAME},
                                           {"pid", PROCESS},  {"tid", THREAD},     {"ts", START},
                                           {"dur", DURATION}, {"args", ARGUMENTS}, {NULL, OTHER}};

typedef struct machine {
  const char *path;
  const pl_chrome_reader *reader;
  uint32_t depth, list_depth, event_depth, arguments_depth; /* 0: not in one */
  uint32_t object_depth;                                    /* of an object in the document; 0: not in one */
  bool opens_list, has_events;                              /* opens_list: the document's last key was traceEvents */
  field key;                                                /* of the event */
  int argument, object, word;                               /* meanings of the last keys, by the reader's lists */
  pl_chrome_event event;
} machine;

static pl_code read_word(const machine *own, const char *text, size_t size, uint32_t *name, pl_error *error) {
  *name = pl_trace_name(own->reader->trace, text, size);
  return *name == PL_NONE ? pl_fail_memory(error, own->path) : PL_OK;
}

/* Sums and differences of dates and bases stay below 2^63. */
static pl_code read_date(const machine *own, const char *what, int64_t most, const char *text, size_t size,
                         int64_t *value, pl_error *error) {
  static const int64_t least = -(int64_t)2.2e18;
  if (pl_fixed_point(text, size, 3, value) && *value >= least && *value <= most) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s: '%s' of an event is '%.*s', which is no time in microseconds", own->path,
                 what, size < 40 ? (int)size : 40, text);
}

static pl_code event_value(machine *own, const char *text, size_t size, pl_error *error) {
  pl_chrome_event *event = &own->event;
  switch (own->key) {
  case PHASE:
    event->phase = size == 1 ? text[0] : '?';
    return PL_OK;
  case CATEGORY:
    event->has_category = true;
    if (size < PL_CHROME_CATEGORY_BYTES) {
      memcpy(event->category, text, size);
      event->category[size] = '\0';
    }
    return PL_OK;
  case NAME:
    return read_word(own, text, size, &event->name, error);
  case PROCESS:
    return read_word(own, text, size, &event->process, error);
  case THREAD:
    return read_word(own, text, size, &event->thread, error);
  case START:
    event->has_start = true;
    return read_date(own, "ts", (int64_t)2.2e18, text, size, &event->start_ns, error);
  case DURATION:
    event->has_duration = true;
    return read_date(own, "dur", (int64_t)1e18, text, size, &event->duration_ns, error);
  default:
    return PL_OK;
  }
}

/* `inside`: how far the depth is below that of the arguments. */
static pl_code give_argument(machine *own, uint32_t inside, pl_json_token token, const char *text, size_t size,
                             pl_error *error) {
  if (own->argument == OTHER || own->reader->argument == NULL) return PL_OK;
  const pl_chrome_argument argument = {own->argument, inside, token, text, size};
  return own->reader->argument(own->reader->context, &argument, error);
}

static pl_code value(machine *own, pl_json_token token, const char *text, size_t size, pl_error *error) {
  if (own->arguments_depth > 0) return give_argument(own, own->depth - own->arguments_depth, token, text, size, error);
  if (own->event_depth > 0) return own->depth == own->event_depth ? event_value(own, text, size, error) : PL_OK;
  bool beside = own->list_depth == 0 && own->word != OTHER && own->reader->said != NULL;
  if (!beside || own->depth != (own->object_depth > 0 ? own->object_depth : 1)) return PL_OK;
  return own->reader->said(own->reader->context, own->object_depth > 0 ? own->object : OTHER, own->word, text, size,
                           error);
}

static pl_code open_nest(machine *own, pl_json_token token, pl_error *error) {
  bool object = token == PL_JSON_OPEN_OBJECT;
  own->depth++;
  if (own->arguments_depth > 0) return give_argument(own, own->depth - own->arguments_depth, token, "", 0, error);
  if (own->event_depth > 0) {
    if (object && own->depth == own->event_depth + 1 && own->key == ARGUMENTS) {
      own->arguments_depth = own->depth;
      own->argument = OTHER;
    }
  } else if (own->list_depth > 0) {
    if (!object || own->depth != own->list_depth + 1) return PL_OK;
    own->event_depth = own->depth;
    own->event = (pl_chrome_event){.name = PL_NONE, .process = PL_NONE, .thread = PL_NONE};
    own->key = OTHER;
    if (own->reader->begin != NULL) own->reader->begin(own->reader->context);
  } else if (!object && (own->depth == 1 || (own->depth == 2 && own->opens_list))) {
    own->list_depth = own->depth;
    own->has_events = true;
  } else if (object && own->depth == 2) {
    own->object_depth = 2;
    own->object = own->word;
    own->word = OTHER;
  }
  return PL_OK;
}

static pl_code close(machine *own, pl_json_token token, pl_error *error) {
  uint32_t at = own->depth--;
  if (own->arguments_depth > 0 && at > own->arguments_depth)
    return give_argument(own, at - own->arguments_depth, token, "", 0, error);
  if (at == own->arguments_depth) own->arguments_depth = 0;
  if (at == own->object_depth) own->object_depth = 0;
  if (at == own->list_depth) own->list_depth = 0;
  if (at != own->event_depth) return PL_OK;
  own->event_depth = 0;
  return own->reader->event(own->reader->context, &own->event, error);
}

static int find(const pl_json_word *words, const char *text, size_t size) {
  return words == NULL ? OTHER : pl_json_find_word(words, text, size, OTHER);
}

static void read_key(machine *own, const char *text, size_t size) {
  static const char events[] = "traceEvents";
  if (own->arguments_depth > 0) {
    if (own->depth == own->arguments_depth) own->argument = find(own->reader->arguments, text, size);
  } else if (own->event_depth > 0) {
    own->key = own->depth == own->event_depth ? (field)find(event_words, text, size) : OTHER;
  } else if (own->list_depth == 0) {
    bool beside = own->depth == (own->object_depth > 0 ? own->object_depth : 1);
    own->word = beside ? find(own->reader->words, text, size) : OTHER;
    if (own->depth == 1) own->opens_list = size == sizeof events - 1 && memcmp(text, events, size) == 0;
  }
}

static pl_code take(void *context, pl_json_token token, const char *text, size_t size, pl_error *error) {
  machine *own = context;
  switch (token) {
  case PL_JSON_OPEN_OBJECT:
  case PL_JSON_OPEN_ARRAY:
    return open_nest(own, token, error);
  case PL_JSON_CLOSE_OBJECT:
  case PL_JSON_CLOSE_ARRAY:
    return close(own, token, error);
  case PL_JSON_KEY:
    read_key(own, text, size);
    return PL_OK;
  case PL_JSON_STRING:
  case PL_JSON_NUMBER:
    return value(own, token, text, size, error);
  default:
    return PL_OK;
  }
}

static void tell(void *context, uint64_t done, uint64_t size) {
  const machine *own = context;
  if (own->reader->progress != NULL) own->reader->progress(own->reader->context, done, size);
}

pl_code pl_chrome_events_read(const char *path, const pl_chrome_reader *reader, pl_chrome_end *end, pl_error *error) {
  machine own = {.path = path, .reader = reader};
  const pl_json_reader json = {take, tell, &own};
  pl_code code = pl_json_events_read(path, &json, &end->json, error);
  end->has_events = own.has_events;
  return code;
}

pl_code pl_chrome_events_parse(const char *name, const char *data, size_t size, const pl_chrome_reader *reader,
                               pl_chrome_end *end, pl_error *error) {
  machine own = {.path = name, .reader = reader};
  const pl_json_reader json = {take, NULL, &own};
  pl_code code = pl_json_events_parse(name, data, size, &json, &end->json, error);
  end->has_events = own.has_events;
  return code;
}
