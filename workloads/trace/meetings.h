/* Which ops of different ranks are one collective or one transfer.
 *
 * The n-th collective of a group in a step is the same on all its members; the n-th send from a to b with a tag meets
 * the n-th receive of b from a with it. That is how the libraries match them, so no name is needed.
 */
#ifndef PL_WORKLOADS_TRACE_MEETINGS_H
#define PL_WORKLOADS_TRACE_MEETINGS_H

#include "workloads/trace/trace.h"

typedef struct pl_trace_meeting {
  uint32_t first, n; /* ops, by rank; a transfer: the send, then its receive */
  bool is_transfer;
  uint32_t n_absent;    /* members of the group that were not recorded */
  uint32_t n_unmatched; /* members that were recorded and have no such op in the step */
} pl_trace_meeting;

typedef struct pl_trace_meetings {
  pl_trace_meeting *meetings; /* transfers whose other end is missing have n = 1 */
  uint32_t n;
  uint32_t *ops;
  uint32_t *of_op; /* per op its meeting, PL_NONE */
  uint32_t n_collectives, n_transfers, n_unmatched_collectives, n_unmatched_transfers, n_absent;
} pl_trace_meetings;

/* Arrays are released by pl_trace_meetings_release, also after a failure. PL_BAD_INPUT: the ranks part; the message
 * says at which collective of which group, and what each does there. O(messages log messages). */
pl_code pl_trace_meetings_make(const pl_trace *trace, pl_trace_meetings *meetings, pl_error *error);
void pl_trace_meetings_release(pl_trace_meetings *meetings);

#endif
