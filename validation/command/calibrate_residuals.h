/* `paceline calibrate --residuals FOLDER`: what calibration leaves over (workloads/run/residuals.h), from all tables of
 * the folder. */
#ifndef PL_VALIDATION_CALIBRATE_RESIDUALS_H
#define PL_VALIDATION_CALIBRATE_RESIDUALS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"

typedef struct pl_calibrate_residuals {
  const char *folder; /* with the tables' names of validation/calibration/ */
  const char *output; /* NULL: only the report */
  bool force;
} pl_calibrate_residuals;

/* Prints a table of the residuals. About 20 s. */
pl_code pl_calibrate_residuals_run(const pl_calibrate_residuals *options, pl_error *error);

#endif
