/* The inner problem of the layer assignment: the least sum of stage times and cuts while no stage and no round trip
 * takes longer than one limit allows, none synchronises longer than another, and each keeps to its memory. For
 * workloads/assign/layer_assignment.c only. */
#ifndef PL_WORKLOADS_ASSIGNMENT_SUM_H
#define PL_WORKLOADS_ASSIGNMENT_SUM_H

#include "workloads/assign/layer_assignment.h"

typedef struct pl_assignment_sum {
  const pl_assignment_problem *problem;
  int32_t *last; /* [n_stages][n_layers + 1]: the largest end of a stage that starts there, by memory alone */
  int32_t *end;  /* the same shape: the end that was chosen */
  double *best;  /* [n_stages + 1][n_layers + 1]: least sum of the stages from there on */
  double *key;   /* n_layers + 1 */
  int32_t *queue;
} pl_assignment_sum;

/* Memory from `arena`; O(stages * layers). */
pl_code pl_assignment_sum_take(const pl_assignment_problem *problem, pl_arena *arena, pl_assignment_sum *sum,
                               pl_error *error);
/* Memory windows anew, with `extra_bytes` more room for every stage. */
void pl_assignment_sum_widen(pl_assignment_sum *sum, double extra_bytes);
/* False: no assignment under these limits. O(stages * layers). */
bool pl_assignment_sum_solve(pl_assignment_sum *sum, double period_limit_s, double sync_limit_s, int32_t *boundary);
/* Among the assignments under these limits with the least sum, the one with the least sum of squares of stage times.
 * False, with `boundary` untouched: there is none. O(stages * layers * the longest stage). */
bool pl_assignment_sum_even(pl_assignment_sum *sum, double period_limit_s, double sync_limit_s, double *squares,
                            int32_t *boundary);

/* Behind a stage that ends at `layer`. */
static inline double pl_assignment_cut_s(const pl_assignment_problem *problem, int32_t stage, int32_t layer) {
  return problem->cut_s != NULL && stage < problem->n_stages - 1 ? problem->cut_s[stage][layer] : 0;
}
/* Does not grow with a, does not shrink with b. */
static inline double pl_assignment_sync_s(const pl_assignment_problem *problem, int32_t stage, int32_t a, int32_t b) {
  double time_s = problem->sync_constant_s != NULL ? problem->sync_constant_s[stage] : 0;
  if (problem->sync_s != NULL) time_s += problem->sync_s[stage][b] - problem->sync_s[stage][a];
  if (problem->sync_slack_s != NULL) time_s -= problem->sync_slack_s[stage][a];
  return time_s > 0 ? time_s : 0;
}

#endif
