/* What `paceline sweep` prints at its end, read back from the results file. */
#ifndef PL_SEARCH_SWEEP_SUMMARY_H
#define PL_SEARCH_SWEEP_SUMMARY_H

#include <stdbool.h>
#include <stdio.h>

#include "core/base/arena.h"
#include "core/text/json_writer.h"
#include "search/run/evaluate.h"
#include "search/run/sweep.h"

/* `evaluation`: of the rows. `stream` NULL: nothing is printed. *n_fit: rows that fit in memory, *n_failed: that
 * could not be simulated. */
pl_code pl_sweep_summary_print(FILE *stream, const char *path, const pl_space *space, const pl_sweep_outcome *outcome,
                               const pl_evaluation *evaluation, bool json, pl_arena *arena, uint32_t *n_fit,
                               uint32_t *n_failed, pl_error *error);

#endif
