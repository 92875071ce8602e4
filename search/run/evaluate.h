/* The sweep's evaluation of a candidate by simulation (pl_evaluate of search/run/sweep.h), and the space of a problem.
 */
#ifndef PL_SEARCH_EVALUATE_H
#define PL_SEARCH_EVALUATE_H

#include "search/run/sweep.h"
#include "search/space/space.h"
#include "workloads/run/simulate.h"
#include "workloads/tree/tree_space.h"

/* All const during a sweep: shared by the threads. */
typedef struct pl_evaluation {
  const pl_cluster *cluster;
  const pl_model *model;
  const pl_job *job;
  const pl_simulate_options *options;
  const pl_tree_space *trees; /* candidates are its trees; NULL: strategies */
  bool by_programs;           /* candidates are programs though the model has blocks: some offload, or run DualPipe */
  uint32_t n_stages;          /* of the features; 0: none */
} pl_evaluation;

/* Whether candidates are simulated as programs (workloads/run/program_row.h). */
static inline bool pl_evaluates_programs(const pl_evaluation *evaluation) {
  return evaluation->trees != NULL || evaluation->by_programs || !pl_model_has_blocks(evaluation->model);
}

/* Gives a strategy without boundaries some, after a check of it. */
pl_code pl_evaluate_assign(const pl_evaluation *evaluation, pl_strategy *strategy, pl_arena *arena, pl_error *error);
/* The tree of this number in the strategy space. */
pl_code pl_evaluate_tree(const pl_evaluation *evaluation, uint32_t index, pl_worker *worker, pl_result_row *row,
                         pl_error *error);
/* A strategy without boundaries is assigned first. row->features is filled if it is not NULL. */
pl_code pl_evaluate_strategy(const pl_evaluation *evaluation, const pl_strategy *strategy, pl_worker *worker,
                             pl_result_row *row, pl_error *error);
/* What is known of a strategy that could not be simulated: itself, and why. Keeps row->features, of which there are
 * `n_features`. */
void pl_evaluate_failed_row(const pl_strategy *strategy, const pl_job *job, uint32_t n_features, const pl_error *why,
                            pl_result_row *row);
/* The same of a tree of the strategy space. */
void pl_evaluate_failed_tree(const pl_tree_space *trees, uint32_t index, const pl_error *why, pl_result_row *row);
/* `context` is a pl_evaluation. */
pl_code pl_evaluate_simulate(const void *context, const pl_space *space, uint32_t index, pl_worker *worker,
                             pl_result_row *row, pl_error *error);
/* The space of a problem: pl_space_take with balanced assignments left out where they equal the uniform ones. */
pl_code pl_evaluate_space(const pl_evaluation *evaluation, const pl_space_choices *choices, pl_arena *arena,
                          pl_space *space, pl_error *error);

#endif
