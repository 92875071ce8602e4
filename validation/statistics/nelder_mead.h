/* Minimum of a function of a few variables without derivatives: the downhill simplex (Nelder and Mead 1965).
 *
 * Fits here have three to twelve parameters, kinks (maxima, whole tiles) and absolute errors as loss, so gradients are
 * of no use; a fit takes well under a second. Deterministic: the same input takes the same steps.
 */
#ifndef PL_VALIDATION_NELDER_MEAD_H
#define PL_VALIDATION_NELDER_MEAD_H

#include <stdint.h>

enum { PL_NELDER_MEAD_VARIABLES = 24 };

typedef double (*pl_objective)(const double *x, void *context);

/* Starts at x[n] with a simplex of edge `step`, writes the best point found back to x and returns its value. Stops
 * when values differ by less than `tolerance` or after `evaluations`. n <= PL_NELDER_MEAD_VARIABLES. */
double pl_nelder_mead(pl_objective objective, void *context, double *x, uint32_t n, double step, double tolerance,
                      uint32_t evaluations);

#endif
