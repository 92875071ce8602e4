/* See validation/statistics/positive_definite.h. */
#include "validation/statistics/positive_definite.h"

#include <math.h>

#include "core/base/status.h"

bool pl_cholesky(double *a, int n) {
  PL_ASSERT(n <= PL_DEFINITE_MOST);
  for (int i = 0; i < n; i++) {
    for (int k = 0; k <= i; k++) {
      double sum = a[i * n + k];
      for (int j = 0; j < k; j++)
        sum -= a[i * n + j] * a[k * n + j];
      if (k < i)
        a[i * n + k] = sum / a[k * n + k];
      else if (sum > 0)
        a[i * n + i] = sqrt(sum);
      else
        return false;
    }
    for (int k = i + 1; k < n; k++)
      a[i * n + k] = 0;
  }
  return true;
}

double pl_cholesky_log_det(const double *factor, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += log(factor[i * n + i]);
  return 2 * sum;
}

void pl_cholesky_solve(const double *factor, int n, const double *b, double *x) {
  for (int i = 0; i < n; i++) {
    double sum = b[i];
    for (int k = 0; k < i; k++)
      sum -= factor[i * n + k] * x[k];
    x[i] = sum / factor[i * n + i];
  }
  for (int i = n - 1; i >= 0; i--) {
    double sum = x[i];
    for (int k = i + 1; k < n; k++)
      sum -= factor[k * n + i] * x[k];
    x[i] = sum / factor[i * n + i];
  }
}

void pl_cholesky_invert(const double *factor, int n, double *inverse) {
  double unit[PL_DEFINITE_MOST], column[PL_DEFINITE_MOST];
  for (int k = 0; k < n; k++) {
    for (int i = 0; i < n; i++)
      unit[i] = i == k;
    pl_cholesky_solve(factor, n, unit, column);
    for (int i = 0; i < n; i++)
      inverse[i * n + k] = column[i];
  }
}
