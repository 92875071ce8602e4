/* Prediction intervals from the residuals of calibration rows: in which range, as a factor of the prediction, the
 * measured time lay for all but a tenth at either end.
 *
 * End to end, on rows that calibration may use and validation does not: whatever the constants of Paceline cannot say
 * is in it. It does not know what a prediction is made of, so that a run on one GPU gets the same range as one on a
 * thousand. Rejected: adding up the residuals of kernels and collectives, which are half as large and leave out what
 * lies between them.
 */
#ifndef PL_VALIDATION_INTERVAL_H
#define PL_VALIDATION_INTERVAL_H

#include "validation/case.h"

#define PL_INTERVAL_SHARE 0.8

typedef struct pl_interval {
  double low, high; /* factors of a prediction */
  uint32_t n_cases; /* that they are from */
} pl_interval;

/* Quantiles of measured / predicted over the timed cases, every family with the same weight however many cases it has.
 * PL_BAD_INPUT with fewer than ten timed cases. */
pl_code pl_interval_of(const pl_cases *residuals, pl_arena *arena, pl_interval *interval, pl_error *error);
/* Gives every expressed case its range. */
void pl_interval_apply(const pl_interval *interval, pl_cases *cases);

#endif
