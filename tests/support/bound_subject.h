/* A space whose strategies are simulated beside their lower bounds; what does not hold ends the test (cmocka). */
#ifndef PL_TESTS_SUPPORT_BOUND_SUBJECT_H
#define PL_TESTS_SUPPORT_BOUND_SUBJECT_H

#include "search/bound/lower_bound.h"
#include "search/method/method.h"
#include "search/method/method_space.h"
#include "search/run/evaluate.h"

typedef struct bound_subject {
  pl_search_problem problem;
  pl_arena arena;
  pl_model model;
  pl_job job;
  pl_simulate_options options;
  pl_space_choices choices;
  pl_framework framework;
  pl_worker worker;
  uint32_t n_checked, n_above, n_oom, n_known_oom, n_experts;
  double tightest;
  double *ratios; /* of what was checked and has a bound on its time; NULL: nobody asks */
  uint32_t n_ratios;
} bound_subject;

void bound_subject_init(bound_subject *own, const pl_cluster *cluster);
void bound_subject_release(bound_subject *own);
/* False: it is empty. */
bool bound_subject_space(bound_subject *own, pl_space *space);
/* Every candidate, or `most` at random: none is simulated faster than its bound, and none fits that was said not to.
 * With `changes` half of them are changed to what no space has: boundaries, placements, shards, uneven replicas. */
void bound_subject_check(bound_subject *own, uint64_t *random, const pl_space *space, uint32_t most, bool changes);
/* In the given order bound finds the best of the space, without one nothing worse. Adds what they simulated. */
void bound_subject_compare_searches(bound_subject *own, uint32_t *n_all, uint32_t *n_bound);

#endif
