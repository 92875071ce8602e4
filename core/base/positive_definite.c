/* See core/base/positive_definite.h. */
#include "core/base/positive_definite.h"

#include <math.h>
#include <string.h>

static double dot(const double *a, const double *b, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += a[i] * b[i];
  return sum;
}

bool pl_cholesky(double *a, int n) {
  for (int i = 0; i < n; i++) {
    double *row = a + i * n;
    for (int k = 0; k < i; k++)
      row[k] = (row[k] - dot(row, a + k * n, k)) / a[k * n + k];
    double left = row[i] - dot(row, row, i);
    if (!(left > 0)) return false;
    row[i] = sqrt(left);
    for (int k = i + 1; k < n; k++)
      row[k] = 0;
  }
  return true;
}

double pl_cholesky_log_det(const double *factor, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += log(factor[i * n + i]);
  return 2 * sum;
}

void pl_cholesky_solve_half(const double *factor, int n, const double *b, double *x) {
  for (int i = 0; i < n; i++)
    x[i] = (b[i] - dot(factor + i * n, x, i)) / factor[i * n + i];
}

void pl_cholesky_solve(const double *factor, int n, const double *b, double *x) {
  pl_cholesky_solve_half(factor, n, b, x);
  for (int i = n - 1; i >= 0; i--) {
    x[i] /= factor[i * n + i];
    for (int k = 0; k < i; k++)
      x[k] -= factor[i * n + k] * x[i];
  }
}

void pl_cholesky_invert(const double *factor, int n, double *inverse) {
  memset(inverse, 0, (size_t)n * (size_t)n * sizeof *inverse);
  for (int k = 0; k < n; k++) {
    inverse[k * n + k] = 1;
    pl_cholesky_solve(factor, n, inverse + k * n, inverse + k * n);
  }
}
