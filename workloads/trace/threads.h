/* What threads of a rank wait for each other, where no format says it.
 *
 * A thread that stood still while another worked, and goes on after it, waited for that other one: the autograd
 * engine's thread for the one that called backward(), and the other way round when it is done. A library's worker
 * begins a collective at the call that is under way at that moment; a thread that stood still until a collective ended
 * waited for it. These are conclusions from dates, and `trace check` counts them.
 */
#ifndef PL_WORKLOADS_TRACE_THREADS_H
#define PL_WORKLOADS_TRACE_THREADS_H

#include "workloads/trace/trace.h"

/* Of a rank that has ended; adds edges between ops of its host threads and network streams. O(ops log ops). */
pl_code pl_trace_link_threads(pl_trace *trace, uint32_t rank, pl_error *error);

#endif
