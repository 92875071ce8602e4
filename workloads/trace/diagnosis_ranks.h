/* Within the diagnosis: what each rank did at each moment. */
#ifndef PL_WORKLOADS_TRACE_DIAGNOSIS_RANKS_H
#define PL_WORKLOADS_TRACE_DIAGNOSIS_RANKS_H

#include "workloads/trace/diagnosis.h"

/* diagnosis->ranks but `on_path`, `without` and `compared`. False: no memory. */
bool pl_trace_rank_times_read(const pl_trace_replay *replay, const pl_ticks *finish, pl_arena *arena,
                              pl_trace_diagnosis *diagnosis);

#endif
