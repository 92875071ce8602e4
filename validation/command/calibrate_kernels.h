/* `paceline calibrate --attention`, `--kernels`, `--convolutions`: the sections of these names of a device profile from
 * timings of fused attention, of memory-bound kernels and of convolutions. */
#ifndef PL_VALIDATION_CALIBRATE_KERNELS_H
#define PL_VALIDATION_CALIBRATE_KERNELS_H

#include <stdbool.h>

#include "core/base/status.h"

/* Options as given; NULL: not given. */
typedef struct pl_calibrate_kernels {
  const char *attention, *kernels,
      *convolutions; /* CSV files (validation/fit/kernel_fit.h, convolution_fit.h), one at least */
  const char *base;  /* required: the device profile that the fits go into, and the device they are of */
  const char *provenance;
  const char *output; /* NULL: only the report */
  bool force;
} pl_calibrate_kernels;

/* Fits, prints the report to standard output and writes the profile. */
pl_code pl_calibrate_kernels_run(const pl_calibrate_kernels *options, pl_error *error);

#endif
