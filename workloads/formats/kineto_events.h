/* The events of a Kineto file (PyTorch's profiler, 1.13 to 2.x, and the older list without categories), as many as
 * replay needs, 32 bytes each: names, threads and categories are indices, dates are fixed point. Times of the file are
 * microseconds since `baseTimeNanoseconds`, which newer versions write at its end.
 */
#ifndef PL_WORKLOADS_TRACE_KINETO_EVENTS_H
#define PL_WORKLOADS_TRACE_KINETO_EVENTS_H

#include <stdio.h>

#include "workloads/formats/json_events.h"
#include "workloads/trace/trace.h"

typedef enum pl_kineto_category {
  PL_KINETO_OP = 0,     /* of the framework, on a host thread */
  PL_KINETO_ANNOTATION, /* of the user or a library, on a host thread: ProfilerStep#7, nccl:all_reduce */
  PL_KINETO_CALL,       /* of the CUDA or HIP runtime or driver */
  PL_KINETO_KERNEL,
  PL_KINETO_COPY, /* memcpy and memset of the device */
  PL_KINETO_CATEGORY_COUNT
} pl_kineto_category;

typedef struct pl_kineto_event {
  int64_t start_ns, duration_ns;
  uint32_t name; /* into the trace's names */
  uint32_t thread;
  uint32_t correlation;                      /* 0: none */
  uint32_t communication : 28, category : 4; /* index + 1 into communications; 0: none */
} pl_kineto_event;

/* What an event says of a message; absent: PL_NONE or -1. */
typedef struct pl_kineto_communication {
  uint32_t collective, group, ranks, type; /* names: "allreduce", "0", "[0, 1]", "Float" */
  int64_t in_elements, out_elements, group_size, sequence, source, destination;
  int64_t input_elements; /* sum over the tensors of "Input Dims" */
  uint32_t input_type;    /* name: "float" */
  int64_t external;       /* "External id": the order of records */
} pl_kineto_communication;

/* An event of the allocator, "[memory]": bytes taken (above 0) or given back at an address. */
typedef struct pl_kineto_memory {
  int64_t date_ns, address, bytes;
  uint32_t thread;
  bool of_device;
} pl_kineto_memory;

typedef struct pl_kineto_thread {
  uint32_t process, thread; /* names; of the device and stream where is_device */
  bool is_device;
} pl_kineto_thread;

typedef struct pl_kineto {
  const char *path;
  pl_trace *trace; /* owns names */
  pl_arena arena;
  pl_kineto_event *events;
  uint32_t n_events, room;
  pl_kineto_thread *threads;
  uint32_t n_threads, thread_room;
  pl_hash_index thread_index;
  pl_kineto_communication *communications;
  uint32_t n_communications, communication_room;
  pl_kineto_memory *memory;
  uint32_t n_memory, memory_room, n_nowhere; /* n_nowhere: without an address */
  int64_t base_ns, rank, world_size, schema; /* -1: not said */
  uint32_t host;                             /* name; PL_NONE: not said, as but our own files do */
  bool has_device;                           /* calls of its runtime or tasks on it */
  uint32_t n_negative, n_without_time;
  uint32_t n_foreign;  /* events with durations that are of no category of the profiler */
  uint64_t n_left_out; /* events of kinds that replay needs not */
  pl_json_end end;
} pl_kineto;

typedef struct pl_trace_progress {
  void (*tell)(void *context, const char *path, uint64_t done_bytes, uint64_t size_bytes);
  void *context;
} pl_trace_progress;

/* `kineto` zeroed before; release it also after a failure. Without events nothing was recorded, or it is another list
 * in JSON. */
pl_code pl_kineto_read(pl_kineto *kineto, const char *path, pl_trace *trace, const pl_trace_progress *progress,
                       pl_error *error);
pl_code pl_kineto_parse(pl_kineto *kineto, const char *name, const char *data, size_t size, pl_trace *trace,
                        pl_error *error);
void pl_kineto_release(pl_kineto *kineto);

/* The same from another profiler: begin, events in any order, and the release as above. Process and thread are names;
 * False: no memory. */
void pl_kineto_begin(pl_kineto *kineto, const char *path, pl_trace *trace);
bool pl_kineto_add_event(pl_kineto *kineto, uint32_t process, uint32_t thread, bool is_device,
                         const pl_kineto_event *event);

/* Turns the events into rank `number` of the trace. */
pl_code pl_kineto_add_rank(pl_kineto *kineto, int64_t number, uint32_t host, pl_trace *trace, pl_error *error);

/* Rank `rank` of the trace as a file of the profiler; the caller sees to the file. */
pl_code pl_kineto_write(FILE *file, const pl_trace *trace, uint32_t rank, pl_error *error);

/* By its category (NULL: the list of PyTorch without Kineto, which has none) and its name. False: replay needs it not.
 */
bool pl_kineto_find_category(const char *said, const char *name, pl_kineto_category *category);
/* An annotation of a message: of NCCL, gloo or the framework. */
bool pl_kineto_is_message(const char *name);
/* What kind of message a kernel, an annotation or an op is, by its name. */
pl_trace_message_kind pl_kineto_message_kind(const char *name, bool *receives);

#endif
