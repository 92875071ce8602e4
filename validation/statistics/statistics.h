/* Order statistics of arrays of numbers. */
#ifndef PL_VALIDATION_STATISTICS_H
#define PL_VALIDATION_STATISTICS_H

#include <stdint.h>

/* Sorts `values`. NaN for none; the mean of the two in the middle of an even number. */
double pl_median(double *values, uint32_t n);
/* The smallest value that the share `q` of them does not exceed. Sorts `values`; NaN for none. */
double pl_quantile(double *values, uint32_t n, double q);
/* Spearman's rank correlation, ties at their mean rank; NaN where one side does not vary. `scratch`: 2 n. */
double pl_spearman(const double *a, const double *b, uint32_t n, double *scratch);

#endif
