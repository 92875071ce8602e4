/* See workloads/formats/execution.h. Root object 1, "nodes" 2, a node 3, its "inputs" and "attrs" 4 and deeper. */
#include "workloads/formats/execution.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/growing.h"

typedef enum field {
  OTHER = 0,
  SCHEMA,
  PROCESS,
  NODES,
  NAME,
  RECORD,
  INPUTS,
  TYPES,
  ATTRIBUTES,
  VALUES,
  ATTRIBUTE_NAME,
  ATTRIBUTE_VALUE
} field;

static const pl_json_word root_words[] = {{"schema", SCHEMA}, {"pid", PROCESS}, {"nodes", NODES}, {NULL, OTHER}};
static const pl_json_word node_words[] = {{"name", NAME},         {"rf_id", RECORD},     {"inputs", INPUTS},
                                          {"input_types", TYPES}, {"attrs", ATTRIBUTES}, {NULL, OTHER}};
static const pl_json_word input_words[] = {{"values", VALUES}, {"types", TYPES}, {NULL, OTHER}};
static const pl_json_word attribute_words[] = {{"name", ATTRIBUTE_NAME}, {"value", ATTRIBUTE_VALUE}, {NULL, OTHER}};

enum { WORD_BYTES = 40 };

typedef struct machine {
  pl_execution_trace *execution;
  pl_trace *trace;
  uint32_t depth;
  field root_key, node_key, key;
  bool is_message, types_seen;
  pl_execution_message message;
  int64_t numbers[5]; /* of the array that is open */
  uint32_t n_numbers, n_strings;
  char attribute[WORD_BYTES];
} machine;

static pl_code schema(const machine *own, const char *text, size_t size, pl_error *error) {
  if (size >= 2 && (memcmp(text, "1.", 2) == 0 || memcmp(text, "0.", 2) == 0)) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s: is an execution trace of schema '%.*s'; 1.x are known", own->execution->path,
                 size < 40 ? (int)size : 40, text);
}

static pl_code word(machine *own, const char *text, size_t size, uint32_t *name, pl_error *error) {
  *name = pl_trace_name(own->trace, text, size);
  return *name == PL_NONE ? pl_fail_memory(error, own->execution->path) : PL_OK;
}

static pl_code attribute_value(machine *own, bool is_string, const char *text, size_t size, pl_error *error) {
  static const struct {
    const char *name;
    size_t offset;
  } numbers[] = {{"rf_id", offsetof(pl_execution_message, record)},
                 {"in_msg_nelems", offsetof(pl_execution_message, in_elements)},
                 {"out_msg_nelems", offsetof(pl_execution_message, out_elements)},
                 {"pg_size", offsetof(pl_execution_message, group_size)},
                 {"global_rank_start", offsetof(pl_execution_message, first_rank)},
                 {"global_rank_stride", offsetof(pl_execution_message, rank_stride)}},
    words[] = {{"collective_name", offsetof(pl_execution_message, collective)},
               {"dtype", offsetof(pl_execution_message, type)},
               {"pg_name", offsetof(pl_execution_message, group)}};
  int64_t value;
  uint32_t name;
  for (size_t k = 0; !is_string && k < sizeof numbers / sizeof *numbers; k++)
    if (strcmp(own->attribute, numbers[k].name) == 0 && pl_fixed_point(text, size, 0, &value))
      memcpy((char *)&own->message + numbers[k].offset, &value, sizeof value);
  for (size_t k = 0; is_string && k < sizeof words / sizeof *words; k++)
    if (strcmp(own->attribute, words[k].name) == 0) {
      PL_TRY(word(own, text, size, &name, error));
      memcpy((char *)&own->message + words[k].offset, &name, sizeof name);
    }
  return PL_OK;
}

/* A collective's name among the inputs: small letters and lines. */
static bool is_collective(const char *text, size_t size) {
  bool receives;
  char name[WORD_BYTES];
  if (size == 0 || size >= sizeof name || strspn(text, "abcdefghijklmnopqrstuvwxyz_") < size) return false;
  snprintf(name, sizeof name, "%.*s", (int)size, text);
  return strcmp(name, "wait") == 0 || pl_kineto_message_kind(name, &receives) != PL_TRACE_OTHER_COLLECTIVE;
}

static pl_code input_value(machine *own, bool is_string, const char *text, size_t size, pl_error *error) {
  int64_t value;
  if (own->key == TYPES && is_string && !own->types_seen) {
    own->types_seen = true;
    return own->message.type == PL_NONE ? word(own, text, size, &own->message.type, error) : PL_OK;
  }
  if (own->key == TYPES) return PL_OK;
  own->n_strings += is_string;
  if (is_string && own->message.collective == PL_NONE) {
    char copy[WORD_BYTES]; /* tokens have no end of their own */
    if (size >= sizeof copy) return PL_OK;
    memcpy(copy, text, size);
    copy[size] = '\0';
    if (is_collective(copy, size)) return word(own, text, size, &own->message.collective, error);
  }
  if (!is_string && pl_fixed_point(text, size, 0, &value)) {
    if (own->n_numbers < 5) own->numbers[own->n_numbers] = value;
    own->n_numbers++;
  }
  return PL_OK;
}

static pl_code value(machine *own, bool is_string, const char *text, size_t size, pl_error *error) {
  if (own->depth == 1 && own->root_key == SCHEMA) return schema(own, text, size, error);
  if (own->depth == 1 && own->root_key == PROCESS) pl_fixed_point(text, size, 0, &own->execution->process);
  if (own->root_key != NODES || own->depth < 3) return PL_OK;
  if (own->depth == 3 && own->node_key == NAME)
    own->is_message = is_string && size == 18 && memcmp(text, "record_param_comms", 18) == 0;
  if (own->depth == 3 && own->node_key == RECORD) pl_fixed_point(text, size, 0, &own->message.record);
  if (own->depth == 5 && own->node_key == ATTRIBUTES) {
    if (own->key == ATTRIBUTE_VALUE) return attribute_value(own, is_string, text, size, error);
    if (own->key == ATTRIBUTE_NAME)
      snprintf(own->attribute, sizeof own->attribute, "%.*s", size < WORD_BYTES ? (int)size : 0, text);
  }
  if (own->depth >= 4 && (own->node_key == INPUTS || own->node_key == TYPES))
    return input_value(own, is_string, text, size, error);
  return PL_OK;
}

static void open(machine *own, bool object) {
  own->depth++;
  own->n_numbers = own->n_strings = 0;
  if (own->depth == 3) {
    own->message = (pl_execution_message){-1, PL_NONE, PL_NONE, PL_NONE, -1, -1, -1, -1, -1};
    own->is_message = own->types_seen = false;
    own->node_key = OTHER;
  }
  if (own->depth == 4) own->key = own->node_key == TYPES ? TYPES : !object ? VALUES : OTHER;
}

static pl_code close(machine *own, pl_error *error) {
  uint32_t at = own->depth--;
  /* A tensor: [id, storage, offset, elements, bytes of one, "cuda:0"]. */
  if (at > 4 && own->node_key == INPUTS && own->key == VALUES && own->n_numbers == 5 && own->n_strings == 1 &&
      own->numbers[3] >= 0 && own->numbers[3] < (int64_t)1 << 50) {
    int64_t *sum = &own->message.in_elements;
    *sum = (*sum < 0 ? 0 : *sum) + own->numbers[3];
    if (*sum > (int64_t)1 << 51) *sum = -1;
  }
  own->n_numbers = own->n_strings = 0;
  if (at != 3 || own->root_key != NODES || !own->is_message) return PL_OK;
  pl_execution_trace *all = own->execution;
  if (!PL_GROW(all->messages, all->n, all->room)) return pl_fail_memory(error, all->path);
  all->messages[all->n++] = own->message;
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
  case PL_JSON_KEY:
    if (own->depth == 1) own->root_key = (field)pl_json_find_word(root_words, text, size, OTHER);
    if (own->depth == 3) own->node_key = (field)pl_json_find_word(node_words, text, size, OTHER);
    if (own->depth == 4) own->key = (field)pl_json_find_word(input_words, text, size, OTHER);
    if (own->depth == 5 && own->node_key == ATTRIBUTES)
      own->key = (field)pl_json_find_word(attribute_words, text, size, OTHER);
    return PL_OK;
  case PL_JSON_STRING:
  case PL_JSON_NUMBER:
    return value(own, token == PL_JSON_STRING, text, size, error);
  default:
    return PL_OK;
  }
}

static int by_record(const void *a_, const void *b_) {
  const pl_execution_message *a = a_, *b = b_;
  return (a->record > b->record) - (a->record < b->record);
}

static pl_code load(pl_execution_trace *execution, const char *path, const char *data, size_t size, pl_trace *trace,
                    pl_error *error) {
  machine own = {.execution = execution, .trace = trace};
  const pl_json_reader reader = {take, NULL, &own};
  execution->path = path;
  execution->process = -1;
  if (data != NULL) {
    PL_TRY(pl_json_events_parse(path, data, size, &reader, &execution->end, error));
  } else {
    PL_TRY(pl_json_events_read(path, &reader, &execution->end, error));
  }
  if (execution->n > 1) qsort(execution->messages, execution->n, sizeof *execution->messages, by_record);
  return PL_OK;
}

pl_code pl_execution_read(pl_execution_trace *execution, const char *path, pl_trace *trace, pl_error *error) {
  return load(execution, path, NULL, 0, trace, error);
}

pl_code pl_execution_parse(pl_execution_trace *execution, const char *name, const char *data, size_t size,
                           pl_trace *trace, pl_error *error) {
  static const char nothing = '\0';
  return load(execution, name, size > 0 ? data : &nothing, size, trace, error);
}

void pl_execution_release(pl_execution_trace *execution) {
  free(execution->messages);
  *execution = (pl_execution_trace){.n = 0};
}
