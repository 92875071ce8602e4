/* The sweep's evaluation of a candidate by simulation (pl_evaluate of search/run/sweep.h), and the space of a problem.
 */
#ifndef PL_SEARCH_EVALUATE_H
#define PL_SEARCH_EVALUATE_H

#include "search/run/sweep.h"
#include "search/space/space.h"
#include "workloads/run/simulate.h"

/* All const during a sweep: shared by the threads. */
typedef struct pl_evaluation {
  const pl_cluster *cluster;
  const pl_model *model;
  const pl_job *job;
  const pl_simulate_options *options;
  uint32_t n_stages; /* of the features; 0: none */
} pl_evaluation;

/* A strategy without boundaries is assigned first. row->features is filled if it is not NULL. */
pl_code pl_evaluate_strategy(const pl_evaluation *evaluation, const pl_strategy *strategy, pl_worker *worker,
                             pl_result_row *row, pl_error *error);
/* What is known of a strategy that could not be simulated: itself. Keeps row->features, of which there are
 * `n_features`. */
void pl_evaluate_failed_row(const pl_strategy *strategy, const pl_job *job, uint32_t n_features, pl_result_row *row);
/* `context` is a pl_evaluation. */
pl_code pl_evaluate_simulate(const void *context, const pl_space *space, uint32_t index, pl_worker *worker,
                             pl_result_row *row, pl_error *error);
/* The space of a problem: pl_space_take with balanced assignments left out where they equal the uniform ones. */
pl_code pl_evaluate_space(const pl_evaluation *evaluation, const pl_space_choices *choices, pl_arena *arena,
                          pl_space *space, pl_error *error);

#endif
