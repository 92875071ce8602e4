/* The part of `paceline calibrate` that fits collective profiles. */
#ifndef PL_VALIDATION_CALIBRATE_COLLECTIVES_H
#define PL_VALIDATION_CALIBRATE_COLLECTIVES_H

#include <stdbool.h>

#include "core/base/status.h"

typedef struct pl_calibrate_collectives {
  const char *rows;     /* CSV file (validation/fit/collective_rows.h) */
  const char *platform; /* for rows that name none; may be NULL */
  const char *profile;  /* whose entries are fitted; NULL: the one that comes with Paceline */
  const char *output;   /* NULL: standard output gets the report only */
  bool check;           /* report the errors of `profile`, fit nothing */
  bool force;
} pl_calibrate_collectives;

/* Prints the report to standard output and writes the profile. */
pl_code pl_calibrate_collectives_run(const pl_calibrate_collectives *options, pl_error *error);

#endif
