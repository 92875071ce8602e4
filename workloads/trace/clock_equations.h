/* Within the alignment of clocks: the least squares behind the first estimates. */
#ifndef PL_WORKLOADS_TRACE_CLOCK_EQUATIONS_H
#define PL_WORKLOADS_TRACE_CLOCK_EQUATIONS_H

#include "workloads/trace/clocks.h"

/* A collective whose members leave it at one moment, as far as its kind goes. */
bool pl_trace_ends_together(const pl_trace *trace, const pl_trace_meetings *meetings, uint32_t meeting);
/* more_ns, drifts, deviations, residuals and counts of `clocks`, whose first estimates and middle are there. */
pl_code pl_trace_clocks_refine(const pl_trace *trace, const pl_trace_meetings *meetings, pl_trace_clocks *clocks,
                               pl_error *error);

#endif
