/* The events of a Kineto file (PyTorch's profiler, 1.13 to 2.x, and the older list without categories), as many as
 * replay needs, 32 bytes each: names, threads and categories are indices, dates are fixed point. Times of the file are
 * microseconds since `baseTimeNanoseconds`, which newer versions write at its end.
 */
#ifndef PL_WORKLOADS_TRACE_KINETO_EVENTS_H
#define PL_WORKLOADS_TRACE_KINETO_EVENTS_H

#include "workloads/trace/json_events.h"
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
} pl_kineto_communication;

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
  int64_t base_ns, rank, world_size, schema; /* -1: not said */
  bool has_device;                           /* calls of its runtime or tasks on it */
  uint32_t n_negative, n_without_time;
  uint64_t n_left_out; /* events of kinds that replay needs not */
  pl_json_end end;
} pl_kineto;

typedef struct pl_trace_progress {
  void (*tell)(void *context, const char *path, uint64_t done_bytes, uint64_t size_bytes);
  void *context;
} pl_trace_progress;

/* `kineto` zeroed before; release it also after a failure. */
pl_code pl_kineto_read(pl_kineto *kineto, const char *path, pl_trace *trace, const pl_trace_progress *progress,
                       pl_error *error);
pl_code pl_kineto_parse(pl_kineto *kineto, const char *name, const char *data, size_t size, pl_trace *trace,
                        pl_error *error);
void pl_kineto_release(pl_kineto *kineto);

/* Turns the events into rank `number` of the trace. */
pl_code pl_kineto_add_rank(pl_kineto *kineto, int64_t number, uint32_t host, pl_trace *trace, pl_error *error);

#endif
