/* Models and frameworks that cases have in common: rows of a table are mostly of few models, and what says the same
 * lies at one address, by which simulations know what they can take from the last one (workloads/lower/block_cache.h).
 */
#ifndef PL_VALIDATION_CASE_SHARED_H
#define PL_VALIDATION_CASE_SHARED_H

#include "validation/rows/case.h"

typedef struct pl_case_shared {
  const pl_model **models;
  const pl_framework **frameworks;
  uint32_t n_models, n_frameworks;
} pl_case_shared;

/* For n cases. Memory comes from the arena. */
pl_code pl_case_shared_take(uint32_t n, pl_arena *arena, pl_case_shared *shared, pl_error *error);
/* `c` has a model and a job with a framework: those of an earlier case that say the same take their place. */
void pl_case_share(pl_case_shared *shared, pl_case *c);

#endif
