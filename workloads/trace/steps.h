/* The steps of a job: those that all recorded ranks have, on the common clock. */
#ifndef PL_WORKLOADS_TRACE_STEPS_H
#define PL_WORKLOADS_TRACE_STEPS_H

#include "workloads/trace/clocks.h"
#include "workloads/trace/trace.h"

/* From the first start of an op of the step to the last end, over all ranks. */
typedef struct pl_trace_span {
  int64_t number;
  int64_t start_ns, end_ns;
} pl_trace_span;

typedef struct pl_trace_step_list {
  pl_trace_span *steps; /* by number */
  uint32_t n;
  uint32_t n_partial; /* steps that some rank lacks */
  bool is_whole;      /* no rank has steps: all ops are one, with number 0 */
  uint32_t *first_op; /* n + 1, into ops */
  uint32_t *ops;      /* by step, ascending */
  /* What all steps share: the trace's edges by the op that waits (first_edge: ops + 1), and per rank the least time
   * from the start of a call to the start of what it launched. */
  uint32_t *first_edge, *edges;
  int64_t *latency_ns;
} pl_trace_step_list;

typedef struct pl_trace_step_spread {
  double mean_s, least_s, most_s, deviation_s;
} pl_trace_step_spread;

pl_code pl_trace_steps_make(const pl_trace *trace, const pl_trace_clocks *clocks, pl_trace_step_list *steps,
                            pl_error *error);
void pl_trace_steps_release(pl_trace_step_list *steps);
pl_trace_step_spread pl_trace_steps_spread(const pl_trace_step_list *steps);
#endif
