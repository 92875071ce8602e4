/* PyTorch's execution traces (schemas 1.0 and 1.1), which have no times: what their record_param_comms say of messages
 * and the profiler's trace of the same run does not. The two number their records apart, but in one order: the n-th
 * message of one is the n-th of the other.
 */
#ifndef PL_WORKLOADS_FORMATS_EXECUTION_H
#define PL_WORKLOADS_FORMATS_EXECUTION_H

#include "workloads/formats/kineto_events.h"

typedef struct pl_execution_message {
  int64_t record; /* rf_id */
  uint32_t collective, group, type;
  int64_t in_elements, out_elements, group_size, first_rank, rank_stride;
} pl_execution_message;

typedef struct pl_execution_trace {
  const char *path;
  pl_execution_message *messages; /* by record */
  uint32_t n, room;
  int64_t process; /* -1: not said */
  pl_json_end end;
} pl_execution_trace;

/* `execution` zeroed before; release it also after a failure. Names go to the trace's. */
pl_code pl_execution_read(pl_execution_trace *execution, const char *path, pl_trace *trace, pl_error *error);
pl_code pl_execution_parse(pl_execution_trace *execution, const char *name, const char *data, size_t size,
                           pl_trace *trace, pl_error *error);
void pl_execution_release(pl_execution_trace *execution);

/* Completes the messages of a profile; a note in its trace says how many, or why none. */
pl_code pl_execution_join(const pl_execution_trace *execution, pl_kineto *kineto, pl_error *error);

#endif
