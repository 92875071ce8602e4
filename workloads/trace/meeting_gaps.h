/* What ranks lack of the messages of others: a member of a collective's group that was recorded over the step and has
 * no such collective in it, the other end of a transfer. Recordings that begin at another moment, lose events or are of
 * another job look so.
 */
#ifndef PL_WORKLOADS_TRACE_MEETING_GAPS_H
#define PL_WORKLOADS_TRACE_MEETING_GAPS_H

#include "workloads/trace/meetings.h"

typedef struct pl_trace_gap {
  uint32_t n_collectives, n_transfers; /* that the rank lacks */
  uint32_t first;                      /* op of another rank: the first of them; PL_NONE */
} pl_trace_gap;

/* `gaps`: one per rank of the trace. O(messages * members). */
void pl_trace_gaps_find(const pl_trace *trace, const pl_trace_meetings *meetings, pl_trace_gap *gaps);

/* A note to the trace per rank that lacks something. False: no memory. */
bool pl_trace_gaps_note(pl_trace *trace, const pl_trace_meetings *meetings);

#endif
