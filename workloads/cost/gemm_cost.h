/* Time of a matrix product from what was fitted to measured ones (core/cluster/gemm_profile.h).
 *
 * batch x [m, k] x [k, n] is cut into output tiles of tm x tn, and k, when there are too few tiles for the
 * multiprocessors, into s parts that a second kernel adds up. With t = batch * ceil(m/tm) * ceil(n/tn) * s thread
 * blocks on S multiprocessors:
 *
 *   waves   w = max(1, (1 - q) t/S + q ceil(t/S))                     q = wave_quantisation
 *   compute   = w * (2 tm tn ceil(k/s) / (peak/S * tile_efficiency) * unaligned_time + tile_overhead)
 *   memory    = (bytes + 8 batch m n s if s > 1) / (bandwidth * memory_efficiency)
 *   cache     = t (tm + tn) ceil(k/s) * element size / cache_rate
 *   time      = overhead + (split_overhead if s > 1) + (compute^4 + memory^4 + cache^4)^(1/4)
 *
 * The library's heuristic picks a good tile and split: the least time of 8 tiles and up to 8 splits. That is then
 * multiplied by exp(residual), interpolated trilinearly in log2 of (m * batch, n, k) and constant beyond its table, and
 * never less than the arithmetic at peak or the bytes at nominal bandwidth take: kernels timed over and over find their
 * operands in the cache, those of a training step do not.
 *
 * Why both: the formula alone, 10 parameters, has the edges (one row more than a tile, a wave more than fits), which a
 * table on any affordable grid smears; the table has what depends on the library's taste and on clocks that drop under
 * load. Rejected: interpolating measured times (4 to 8 % error between powers of two, and nothing to say off the grid).
 * The formulas of waves and tiles are those of NVIDIA's Matrix Multiplication Background User's Guide, sections 3 to 5.
 */
#ifndef PL_WORKLOADS_GEMM_COST_H
#define PL_WORKLOADS_GEMM_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cluster/device_profile.h"

typedef struct pl_gemm_shape {
  int64_t batch, m, n, k; /* all > 0 */
  pl_dtype dtype;
  double bytes;    /* traffic to device memory; at least every operand once counts whatever is said here */
  bool transposed; /* the first operand lies as [k, m]: its rows, and those of the other two, are m and n long */
} pl_gemm_shape;

typedef struct pl_gemm_time {
  double time_s;
  double compute_s, memory_s, overhead_s; /* of the tile chosen, before the residual; memory: or cache, the longer */
} pl_gemm_time;

/* The fit for a data type, NULL if there is none or the device has no peak for it. */
const pl_gemm_fit *pl_gemm_fit_for(const pl_device_profile *profile, pl_dtype dtype);

/* O(tiles * splits), 0.2 to 1 us. */
pl_gemm_time pl_gemm_cost(const pl_device_profile *profile, const pl_gemm_fit *fit, const pl_gemm_shape *shape);

/* For those who fit: every operand once, in bytes; which unaligned_time applies (-1: rows begin on 16 bytes); knots of
 * the residual's table around a shape with their weights, which add up to 1; the formula without the residual. */
double pl_gemm_least_bytes(const pl_gemm_shape *shape);
int pl_gemm_alignment_of(const pl_gemm_shape *shape);
typedef struct pl_gemm_knots {
  uint32_t at[8];
  double weight[8];
} pl_gemm_knots;
pl_gemm_knots pl_gemm_residual_knots(const pl_gemm_residual *residual, const pl_gemm_shape *shape);
pl_gemm_time pl_gemm_formula(const pl_device_profile *profile, const pl_gemm_fit *fit, const pl_gemm_shape *shape);

#endif
