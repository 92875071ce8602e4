/* Least absolute deviations on a grid of knots between which values are interpolated, smoothed. Internal to the fits.
 */
#ifndef PL_VALIDATION_RESIDUAL_FIT_H
#define PL_VALIDATION_RESIDUAL_FIT_H

#include "core/base/arena.h"
#include "core/base/status.h"
#include "workloads/cost/gemm_cost.h"

typedef struct pl_residual_row {
  pl_gemm_knots knots;
  double value, weight;
} pl_residual_row;

/* table[n[0] * n[1] * n[2]], last index fastest, such that the sum over rows of weight * |value - interpolated| and the
 * squared differences of neighbours (and, much less, the squares themselves) are small. Scratch from the arena. */
pl_code pl_residual_fit(const pl_residual_row *rows, uint32_t n_rows, const uint32_t n[3], pl_arena *arena,
                        double *table, pl_error *error);

#endif
