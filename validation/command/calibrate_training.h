/* `paceline calibrate --training`, `--sustained-like`: the section "sustained" of a device profile, from training steps
 * on one machine or from a relative. */
#ifndef PL_VALIDATION_CALIBRATE_TRAINING_H
#define PL_VALIDATION_CALIBRATE_TRAINING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"

enum { PL_CALIBRATE_TRAINING_MAX = 16 };

/* Options as given; NULL, 0: not given. */
typedef struct pl_calibrate_training {
  const char *rows[PL_CALIBRATE_TRAINING_MAX];    /* tables of measurements (validation/rows/measured.h) */
  uint32_t n_rows;                                /* may exceed the bound, which is refused */
  const char *sources[PL_CALIBRATE_TRAINING_MAX]; /* take only rows whose source mentions one of these; none: all */
  uint32_t n_sources;
  const char *relative;   /* instead of rows: the profile of a relative that has the section */
  const char *base;       /* required: the device profile that the section goes into */
  const char *provenance; /* NULL: the names of the files */
  const char *output;     /* NULL: only the report */
  bool force;
} pl_calibrate_training;

/* Fits, prints the report to standard output and writes the profile. */
pl_code pl_calibrate_training_run(const pl_calibrate_training *options, pl_error *error);

#endif
