/* See workloads/formats/dpro_events.h. */
#include "workloads/formats/dpro_events.h"

typedef enum field { OTHER = 0, SAID_NAME, LONG_NAME, GROUP, LOOP, CHANNEL, CHUNK, SLICE } field;

static const pl_json_word words[] = {
    {"name", SAID_NAME},    {"long_name", LONG_NAME}, {"group_id", GROUP}, {"loopId", LOOP},
    {"channelId", CHANNEL}, {"chunkId", CHUNK},       {"sliceId", SLICE},  {NULL, OTHER}};

typedef struct reading {
  const char *path;
  const pl_dpro_reader *reader;
  pl_dpro_said said;
} reading;

static void begin(void *context) {
  ((reading *)context)->said = (pl_dpro_said){PL_NONE, PL_NONE, -1, -1, -1, -1, -1};
}

static pl_code argument(void *context, const pl_chrome_argument *found, pl_error *error) {
  reading *own = context;
  pl_dpro_said *said = &own->said;
  int64_t number;
  int64_t *const numbers[] = {[GROUP] = &said->group,
                              [LOOP] = &said->loop,
                              [CHANNEL] = &said->channel,
                              [CHUNK] = &said->chunk,
                              [SLICE] = &said->slice};
  if (found->depth > 0) return PL_OK;
  if (found->meaning == SAID_NAME || found->meaning == LONG_NAME) {
    uint32_t *name = found->meaning == SAID_NAME ? &said->name : &said->long_name;
    *name = pl_trace_name(own->reader->trace, found->text, found->size);
    return *name == PL_NONE ? pl_fail_memory(error, own->path) : PL_OK;
  }
  if (pl_fixed_point(found->text, found->size, 0, &number) && number >= 0 && number <= INT32_MAX)
    *numbers[found->meaning] = number;
  return PL_OK;
}

static pl_code event(void *context, const pl_chrome_event *found, pl_error *error) {
  const reading *own = context;
  if (found->duration_ns > PL_TRACE_SPAN_NS)
    return pl_fail(error, PL_BAD_INPUT, "%s: an event of more than 30 days", own->path);
  return own->reader->event(own->reader->context, found, &own->said, error);
}

static pl_chrome_reader reader_of(reading *own) {
  return (pl_chrome_reader){.trace = own->reader->trace,
                            .context = own,
                            .begin = begin,
                            .arguments = words,
                            .argument = argument,
                            .event = event};
}

pl_code pl_dpro_events_read(const char *path, const pl_dpro_reader *reader, pl_json_end *end, pl_error *error) {
  reading own = {.path = path, .reader = reader};
  const pl_chrome_reader chrome = reader_of(&own);
  pl_chrome_end chrome_end = {.has_events = false};
  pl_code code = pl_chrome_events_read(path, &chrome, &chrome_end, error);
  *end = chrome_end.json;
  return code;
}

pl_code pl_dpro_events_parse(const char *name, const char *data, size_t size, const pl_dpro_reader *reader,
                             pl_json_end *end, pl_error *error) {
  reading own = {.path = name, .reader = reader};
  const pl_chrome_reader chrome = reader_of(&own);
  pl_chrome_end chrome_end = {.has_events = false};
  pl_code code = pl_chrome_events_parse(name, data, size, &chrome, &chrome_end, error);
  *end = chrome_end.json;
  return code;
}
