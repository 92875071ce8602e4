/* What `paceline search` prints at its end. */
#ifndef PL_SEARCH_SEARCH_SUMMARY_H
#define PL_SEARCH_SEARCH_SUMMARY_H

#include <stdio.h>

#include "search/method/search.h"
#include "search/run/evaluate.h"
#include "workloads/command/training_cost.h"
#include "workloads/run/sensitivity.h"

/* `path` NULL: no file was written. `sensitivity`: of the best; rows that are nearer to it than that are said not to be
 * told apart. `cost`: of training with the best. `evaluation`: of the rows. */
void pl_search_summary_print(FILE *stream, const char *path, const char *method, const pl_search_outcome *outcome,
                             const pl_sensitivity *sensitivity, const pl_training_cost *cost,
                             const pl_evaluation *evaluation, bool json);

#endif
