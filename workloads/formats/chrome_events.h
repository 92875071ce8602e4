/* Chrome traces, whoever wrote them: PyTorch's profiler, TensorFlow's, Horovod, BytePS, patched NCCL. Events one after
 * the other in constant memory; names are indices, dates are fixed point. What their arguments mean, and what stands
 * beside the list of events, the reader says by lists of words.
 */
#ifndef PL_WORKLOADS_FORMATS_CHROME_EVENTS_H
#define PL_WORKLOADS_FORMATS_CHROME_EVENTS_H

#include "workloads/formats/json_events.h"
#include "workloads/trace/trace.h"

enum { PL_CHROME_CATEGORY_BYTES = 24 }; /* longer ones are cut off whole: "" */

typedef struct pl_chrome_event {
  char phase; /* X, B, E, M ...; NUL: not said */
  char category[PL_CHROME_CATEGORY_BYTES];
  bool has_category, has_start, has_duration;
  uint32_t name, process, thread; /* into the trace's names; PL_NONE: absent */
  int64_t start_ns, duration_ns;  /* within 2.2e18; a duration may be below 0, and is 1e18 at most */
} pl_chrome_event;

/* A token of the value of an argument: a string, a number or a bracket. */
typedef struct pl_chrome_argument {
  int meaning;    /* of the argument's key, by `arguments` */
  uint32_t depth; /* 0: the value itself; more: within brackets, an opening or closing one with what is inside of it */
  pl_json_token token;
  const char *text; /* no NUL behind it */
  size_t size;
} pl_chrome_argument;

/* What a callback returns but PL_OK ends the reading. Each but `event` may be NULL. */
typedef struct pl_chrome_reader {
  pl_trace *trace; /* gets the names */
  void *context;
  void (*begin)(void *context);  /* an event: what is known of its arguments is of another one */
  const pl_json_word *arguments; /* those that are asked for, others are skipped; with `argument` */
  pl_code (*argument)(void *context, const pl_chrome_argument *argument, pl_error *error);
  pl_code (*event)(void *context, const pl_chrome_event *event, pl_error *error);
  /* Strings and numbers of the document beside its events, and of the objects in it (`object` is the meaning of their
   * key, else 0), by `words`, which all of their keys are looked up in; meanings are above 0. */
  const pl_json_word *words;
  pl_code (*said)(void *context, int object, int meaning, const char *text, size_t size, pl_error *error);
  void (*progress)(void *context, uint64_t done_bytes, uint64_t size_bytes);
} pl_chrome_reader;

typedef struct pl_chrome_end {
  pl_json_end json;
  bool has_events; /* there was a list of them, if an empty one */
} pl_chrome_end;

/* A list of events, or an object with traceEvents. */
pl_code pl_chrome_events_read(const char *path, const pl_chrome_reader *reader, pl_chrome_end *end, pl_error *error);
/* The same from memory; `name` stands for the path. */
pl_code pl_chrome_events_parse(const char *name, const char *data, size_t size, const pl_chrome_reader *reader,
                               pl_chrome_end *end, pl_error *error);

#endif
