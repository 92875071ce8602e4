/* `paceline calibrate --sites CSV`: what is known of a site before any of its runs, and what a few of them are worth,
 * from measured runs of many sites. */
#ifndef PL_VALIDATION_CALIBRATE_SITES_H
#define PL_VALIDATION_CALIBRATE_SITES_H

#include <stdbool.h>

#include "core/base/status.h"

typedef struct pl_calibrate_sites {
  const char *rows;   /* as paceline validate --sensitivities --csv writes them */
  const char *output; /* of the prior; NULL: only the report */
  bool force;
} pl_calibrate_sites;

/* Seconds. */
pl_code pl_calibrate_sites_run(const pl_calibrate_sites *options, pl_error *error);

#endif
