/* See validation/statistics/statistics.h. */
#include "validation/statistics/statistics.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/order.h"

double pl_median(double *values, uint32_t n) {
  if (n == 0) return NAN;
  qsort(values, n, sizeof *values, pl_by_double);
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double pl_quantile(double *values, uint32_t n, double q) {
  if (n == 0) return NAN;
  qsort(values, n, sizeof *values, pl_by_double);
  uint32_t rank = (uint32_t)ceil(q * n - 1e-9);
  return values[rank > 0 ? rank - 1 : 0];
}

/* Mean ranks by counting: groups are small. */
static void rank(const double *values, uint32_t n, double *ranks) {
  for (uint32_t i = 0; i < n; i++) {
    uint32_t below = 0, equal = 0;
    for (uint32_t j = 0; j < n; j++) {
      below += values[j] < values[i];
      equal += values[j] == values[i];
    }
    ranks[i] = below + (equal + 1) / 2.0;
  }
}

double pl_spearman(const double *a, const double *b, uint32_t n, double *scratch) {
  double *x = scratch, *y = scratch + n, mean = (n + 1) / 2.0, xy = 0, xx = 0, yy = 0;
  rank(a, n, x);
  rank(b, n, y);
  for (uint32_t i = 0; i < n; i++) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : NAN;
}
