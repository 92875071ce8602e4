/* `paceline calibrate --gemm`: the section "gemm" of a device profile from timings of matrix products. */
#ifndef PL_VALIDATION_CALIBRATE_GEMM_H
#define PL_VALIDATION_CALIBRATE_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"

enum { PL_CALIBRATE_FILES_MAX = 64 };

/* Options as given; NULL: not given. */
typedef struct pl_calibrate_gemm {
  const char *rows[PL_CALIBRATE_FILES_MAX]; /* CSV files */
  uint32_t n_rows;                          /* of these; more than PL_CALIBRATE_FILES_MAX: too many were given */
  const char *transfer;                     /* instead of rows: the profile of a relative */
  const char *base; /* the device profile that the fit goes into; NULL: the shipped one of the GPU that the rows name */
  const char *gpu, *dtypes, *multiprocessors, *provenance;
  const char *output; /* NULL: only the report */
  bool force;
} pl_calibrate_gemm;

/* Fits, prints the report to standard output and writes the profile. */
pl_code pl_calibrate_gemm_run(const pl_calibrate_gemm *options, pl_error *error);

#endif
