/* What would fit where a strategy does not: the nearest one by steps. A step is one of: selective or full recomputation
 * (two), sequence parallelism, the next ZeRO stage, half the microbatch; two steps are half the data-parallel degree
 * for twice the tensor or the pipeline degree. Looks at memory only, as a simulation would find it
 * (workloads/memory/stage_peak.h, and the replay of the framework's allocator); of those equally near the first in the
 * order above.
 */
#ifndef PL_WORKLOADS_NEAREST_FIT_H
#define PL_WORKLOADS_NEAREST_FIT_H

#include "workloads/run/simulate.h"

typedef struct pl_nearest_fit {
  const char *changes;  /* "sp=1, zero=1"; NULL: none of the strategies that were looked at fits */
  const char *strategy; /* the whole of it, as --strategy takes it */
} pl_nearest_fit;

/* By how many bytes the worst device is too small (below 0: room left), and its stage. `strategy` passed
 * pl_strategy_check and has boundaries. For tasks in order. `scratch` is reset by the caller. */
pl_code pl_strategy_shortfall(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                              const pl_strategy *strategy, pl_arena *scratch, double *short_bytes, int32_t *stage,
                              pl_error *error);

/* `strategy` has boundaries. Texts in `arena`. Nothing is looked for where tasks run as they are ready. Up to some
 * thousand strategies, tens of microseconds each. */
pl_code pl_nearest_fit_find(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                            const pl_strategy *strategy, const pl_simulate_options *options, pl_arena *arena,
                            pl_nearest_fit *fit, pl_error *error);

#endif
