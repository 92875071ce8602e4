/* Small dense symmetric positive definite matrices, row by row in arrays of n * n. */
#ifndef PL_VALIDATION_POSITIVE_DEFINITE_H
#define PL_VALIDATION_POSITIVE_DEFINITE_H

#include <stdbool.h>

enum { PL_DEFINITE_MOST = 16 };

/* The lower factor L of a = L L^T, in place, zeros above it; false: `a` is not positive definite. n <=
 * PL_DEFINITE_MOST. O(n^3). */
bool pl_cholesky(double *a, int n);
/* ln det a, of its factor. */
double pl_cholesky_log_det(const double *factor, int n);
/* x with a x = b, of a's factor. `x` may be `b`. */
void pl_cholesky_solve(const double *factor, int n, const double *b, double *x);
/* a's inverse, of its factor. */
void pl_cholesky_invert(const double *factor, int n, double *inverse);

#endif
