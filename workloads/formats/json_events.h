/* JSON of any size, token by token, in constant memory (yajl), gzip or not.
 *
 * Traces are written by jobs that die: a file that ends inside of its document is read as far as it goes, and said.
 * What is wrong before its end is an error with the line.
 */
#ifndef PL_WORKLOADS_TRACE_JSON_EVENTS_H
#define PL_WORKLOADS_TRACE_JSON_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

typedef enum pl_json_token {
  PL_JSON_OPEN_OBJECT,
  PL_JSON_CLOSE_OBJECT,
  PL_JSON_OPEN_ARRAY,
  PL_JSON_CLOSE_ARRAY,
  PL_JSON_KEY,
  PL_JSON_STRING,
  PL_JSON_NUMBER, /* as it stands in the file */
  PL_JSON_TRUE,
  PL_JSON_FALSE,
  PL_JSON_NULL
} pl_json_token;

typedef struct pl_json_reader {
  /* `text` (no NUL behind it) of keys, strings and numbers. What it returns but PL_OK ends the reading. */
  pl_code (*token)(void *context, pl_json_token token, const char *text, size_t size, pl_error *error);
  /* May be NULL. Bytes of the file read so far, and its size. */
  void (*progress)(void *context, uint64_t done_bytes, uint64_t size_bytes);
  void *context;
} pl_json_reader;

typedef struct pl_json_end {
  uint64_t text_bytes; /* of JSON */
  bool is_cut;         /* the document is not closed */
  bool is_gzip_cut;    /* the gzip file ends too early */
} pl_json_end;

/* Deepest nesting, longest token and largest expansion of a gzip file (of traces: 10 to 40 times) that are read. */
enum { PL_JSON_EVENTS_DEPTH = 200, PL_JSON_EVENTS_TOKEN_BYTES = 64 << 20, PL_JSON_EVENTS_EXPANSION = 300 };

/* About 300 MB/s. */
pl_code pl_json_events_read(const char *path, const pl_json_reader *reader, pl_json_end *end, pl_error *error);
/* The same from memory; for fuzzing and small files. `name` stands for the path. */
pl_code pl_json_events_parse(const char *name, const char *data, size_t size, const pl_json_reader *reader,
                             pl_json_end *end, pl_error *error);

/* Keys that a reader knows; text NULL ends a list. */
typedef struct pl_json_word {
  const char *text;
  int meaning;
} pl_json_word;

int pl_json_find_word(const pl_json_word *words, const char *text, size_t size, int otherwise);

/* The decimal number times 10^shift (0 to 18), digits beyond cut off: microseconds to nanoseconds with shift 3, without
 * passing through a double. False: no number or out of range. */
bool pl_fixed_point(const char *text, size_t size, int shift, int64_t *value);

#endif
