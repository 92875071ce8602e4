/* Small dense symmetric positive definite matrices, row by row in arrays of n * n. */
#ifndef PL_CORE_POSITIVE_DEFINITE_H
#define PL_CORE_POSITIVE_DEFINITE_H

#include <stdbool.h>

/* The lower factor L of a = L L^T, in place, zeros above it; false: `a` is not positive definite. O(n^3). */
bool pl_cholesky(double *a, int n);
/* ln det a, of its factor. */
double pl_cholesky_log_det(const double *factor, int n);
/* x with L x = b, of a's factor L. `x` may be `b`. O(n^2). */
void pl_cholesky_solve_half(const double *factor, int n, const double *b, double *x);
/* x with a x = b, of a's factor. `x` may be `b`. */
void pl_cholesky_solve(const double *factor, int n, const double *b, double *x);
/* a's inverse, of its factor. */
void pl_cholesky_invert(const double *factor, int n, double *inverse);

#endif
