/* `paceline calibrate --runs CSV -o site.json`: one's own site from a few measured steps (workloads/run/site.h). */
#ifndef PL_VALIDATION_CALIBRATE_RUNS_H
#define PL_VALIDATION_CALIBRATE_RUNS_H

#include <stdbool.h>

#include "core/base/status.h"

typedef struct pl_calibrate_runs {
  const char *rows;      /* a table as paceline validate reads it */
  const char *platform;  /* that all rows ran on; NULL: as the rows say */
  const char *framework; /* of all rows; NULL: likewise */
  const char *output;    /* NULL: only the report */
  bool force;
} pl_calibrate_runs;

/* Prints what each figure became, its doubt, and what remains of each run. Up to six rounds of simulating every row
 * once and once more per figure. */
pl_code pl_calibrate_runs_run(const pl_calibrate_runs *options, pl_error *error);

#endif
