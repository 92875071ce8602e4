/* Within the diagnosis: what a rank's ops would take if it were like the others (what-if by substitution, as in Lin et
 * al. 2025, "Understanding Stragglers in Large Model Training Using What-if Analysis").
 *
 * An op is compared with the same one of other ranks: the n-th of its step with its kind and name, and, of a call, with
 * the name of what it launches. Ranks that do another number of these are not compared with it: which of them are the
 * same nobody knows. Of what messages take there is no median: it is not the rank's own.
 */
#ifndef PL_WORKLOADS_TRACE_DIAGNOSIS_MEDIANS_H
#define PL_WORKLOADS_TRACE_DIAGNOSIS_MEDIANS_H

#include "workloads/trace/replay.h"

typedef struct pl_trace_medians {
  pl_ticks *ticks; /* per task: the median over the ranks that have it, else its own */
  double *share;   /* per rank: of its own time, messages apart, what is compared with another rank's; 1: all */
  bool are_alike;  /* all ranks do the same ops */
} pl_trace_medians;

/* Takes everything from `arena`. False: no memory. O(ops log ops). */
bool pl_trace_medians_take(const pl_trace_replay *replay, pl_arena *arena, pl_trace_medians *medians);
/* Sets the durations of rank `rank`, of all ranks if that is PL_NONE. */
void pl_trace_medians_apply(const pl_trace_medians *medians, const pl_trace_replay *replay, uint32_t rank,
                            pl_ticks *ticks);

#endif
