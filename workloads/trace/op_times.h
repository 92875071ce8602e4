/* What each op took, averaged over the steps, with how far the steps lie apart. */
#ifndef PL_WORKLOADS_TRACE_OP_TIMES_H
#define PL_WORKLOADS_TRACE_OP_TIMES_H

#include "workloads/trace/steps.h"
#include "workloads/trace/trace.h"

typedef struct pl_trace_op_times {
  uint32_t name;      /* into names */
  uint8_t kind;       /* pl_trace_op_kind */
  uint32_t n_steps;   /* that have it */
  double per_step;    /* how often, over all ranks, in these */
  double mean_s;      /* of one: mean over the steps of the step's mean */
  double deviation_s; /* of the steps' means; 0 with one step */
  double total_s;     /* over all steps and ranks */
} pl_trace_op_times;

/* Takes the list from `arena`, the most time first; waits of the host, which are no work, left out. O(ops + names). */
pl_code pl_trace_op_times_take(const pl_trace *trace, const pl_trace_step_list *steps, pl_arena *arena,
                               const pl_trace_op_times **times, uint32_t *n, pl_error *error);

#endif
