/* One strategy on variations of a platform (netmodel/platform/platform_vary.h): what `paceline simulate --vary` prints.
 */
#ifndef PL_WORKLOADS_SIMULATE_VARY_H
#define PL_WORKLOADS_SIMULATE_VARY_H

#include <stdio.h>

#include "netmodel/platform/platform_vary.h"
#include "workloads/command/job_session.h"
#include "workloads/command/simulate_report.h"

typedef struct pl_varied_run {
  uint64_t platform_digest;
  pl_result_row row;
} pl_varied_run;

/* Simulates `strategy`, as parsed (boundaries not yet assigned, so that a balanced assignment follows the devices), on
 * every point of the grid; `runs` has room for grid->n_points. The session has its platform. Memory of the simulations
 * is given back to the session's arena. PL_UNSUPPORTED for --network simgrid, which has the file's figures only. A
 * variation on which the job cannot run at all (a data type that the device lacks, a strategy for another number of
 * devices) fails, and the message names it; one that does not fit in memory is a row. */
pl_code pl_vary_simulate(pl_job_session *session, pl_job_options *options, const pl_strategy *strategy,
                         const pl_vary_grid *grid, pl_varied_run *runs, pl_error *error);

/* The table: the base and every point, with the ratio of iteration times to the base's. */
void pl_vary_print(FILE *stream, const pl_simulate_subject *subject, const pl_simulate_report *base,
                   const pl_vary_grid *grid, const pl_varied_run *runs);
/* The base's columns at the top, as `simulate --json`; under "variations" an object each: what varies, platform_digest,
 * ratio_to_base and the columns. */
void pl_vary_json(FILE *stream, const pl_simulate_subject *subject, const pl_simulate_report *base,
                  const pl_vary_grid *grid, const pl_varied_run *runs);

#endif
