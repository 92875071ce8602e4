/* Within the diagnosis: what each rank did at each moment, and what its ops would take on a rank like the others. */
#ifndef PL_WORKLOADS_TRACE_DIAGNOSIS_RANKS_H
#define PL_WORKLOADS_TRACE_DIAGNOSIS_RANKS_H

#include "workloads/trace/diagnosis.h"

/* diagnosis->ranks but `on_path` and `without`. False: no memory. */
bool pl_trace_rank_times_read(const pl_trace_replay *replay, const pl_ticks *finish, pl_arena *arena,
                              pl_trace_diagnosis *diagnosis);

/* Per task the median over the ranks of what the task at the same place takes; only where ranks are alike: the same ops
 * in the same order on as many streams. Of what messages take there is none: it is not the rank's own. */
typedef struct pl_trace_medians {
  pl_ticks *ticks;
} pl_trace_medians;

bool pl_trace_medians_take(const pl_trace_replay *replay, pl_arena *arena, pl_trace_medians *medians, bool *are_alike);
/* Sets the durations of rank `rank`. */
void pl_trace_medians_apply(const pl_trace_medians *medians, const pl_trace_replay *replay, uint32_t rank,
                            pl_ticks *ticks);

#endif
