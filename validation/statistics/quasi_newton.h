/* Minimum of a smooth function of up to some dozens of variables, by its gradient: the quasi-Newton method of Broyden,
 * Fletcher, Goldfarb and Shanno, with steps that are halved until they descend (Nocedal and Wright, Numerical
 * Optimization, algorithm 6.1). Deterministic: the same input takes the same steps.
 */
#ifndef PL_VALIDATION_QUASI_NEWTON_H
#define PL_VALIDATION_QUASI_NEWTON_H

#include <stdint.h>

enum { PL_QUASI_NEWTON_VARIABLES = 64 };

/* The value at x[n], and its gradient there. */
typedef double (*pl_sloped)(const double *x, double *gradient, void *context);

/* Starts at x[n], writes the best point found back to x and returns its value. Stops when a step gains less than
 * `tolerance` or after `iterations`. inverse[n * n]: the inverse of the second derivatives as far as it is known, in
 * and out, so that a function that is nearly the same is done in a few steps; all zero: nothing is known. */
double pl_quasi_newton(pl_sloped value, void *context, double *x, uint32_t n, double *inverse, double tolerance,
                       uint32_t iterations);

#endif
