/* The inner problem of the layer assignment: the least sum of stage times and cuts while no stage takes longer than one
 * limit, none synchronises longer than another, and each keeps to its memory. For workloads/layer_assignment.c only. */
#ifndef PL_WORKLOADS_ASSIGNMENT_SUM_H
#define PL_WORKLOADS_ASSIGNMENT_SUM_H

#include "workloads/layer_assignment.h"

typedef struct pl_assignment_sum {
  const pl_assignment_problem *problem;
  int32_t *first; /* [n_stages][n_layers + 1]: the smallest start of a stage that ends there, by memory alone */
  int32_t *start; /* the same shape: the start that was chosen */
  double *best, *previous, *key; /* n_layers + 1 */
  int32_t *queue;
} pl_assignment_sum;

/* Memory from `arena`; O(stages * layers). */
pl_code pl_assignment_sum_take(const pl_assignment_problem *problem, pl_arena *arena, pl_assignment_sum *sum,
                               pl_error *error);
/* Memory windows anew, with `extra_bytes` more room for every stage. */
void pl_assignment_sum_widen(pl_assignment_sum *sum, double extra_bytes);
/* False: no assignment under these limits. O(stages * layers). */
bool pl_assignment_sum_solve(pl_assignment_sum *sum, double stage_limit_s, double sync_limit_s, int32_t *boundary);
/* Among the assignments under these limits with the least sum, the one with the least sum of squares of stage times;
 * `boundary` holds one of them before. O(stages * layers * the longest stage). */
pl_code pl_assignment_sum_even(pl_assignment_sum *sum, double stage_limit_s, double sync_limit_s, pl_arena *arena,
                               int32_t *boundary, pl_error *error);

static inline double pl_assignment_cut_s(const pl_assignment_problem *problem, int32_t stage, int32_t layer) {
  return problem->cut_s != NULL && stage > 0 ? problem->cut_s[stage - 1][layer] : 0;
}
static inline double pl_assignment_sync_s(const pl_assignment_problem *problem, int32_t stage, int32_t a, int32_t b) {
  double constant = problem->sync_constant_s != NULL ? problem->sync_constant_s[stage] : 0;
  return problem->sync_s != NULL ? constant + (problem->sync_s[stage][b] - problem->sync_s[stage][a]) : constant;
}

#endif
