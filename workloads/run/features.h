/* Fills the features of one candidate (core/graph/features.h) from its explanation. */
#ifndef PL_WORKLOADS_FEATURES_H
#define PL_WORKLOADS_FEATURES_H

#include "core/graph/features.h"
#include "workloads/run/simulate.h"

/* `features`: PL_N_FEATURES + PL_N_STAGE_FEATURES * n_stages numbers, all of them written; n_stages >= pp. The report's
 * row, stages, classes and events must be there. O(classes * ops + members of groups). Scratch from `arena`. */
pl_code pl_features_fill(const pl_explanation *explanation, const pl_model *model, const pl_simulate_report *report,
                         int n_stages, pl_arena *arena, double *features, pl_error *error);

#endif
