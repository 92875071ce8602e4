/* Time of one convolution, or of one of its two derivatives, by the profile's fit for such: the matrix product that it
 * is (implicit GEMM: patches x filters, Chetlur et al. 2014, cuDNN), in thread blocks of tile_m x tile_n. k is cut into
 * s = 1, 2, 4 ... 32 parts, of at least 64 each, that thread blocks share and that are added up in memory; the best s
 * is taken. With T = ceil(m / tile_m) * ceil(n / tile_n) thread blocks per part, and w = waves * (ceil(T s / SMs) SMs /
 * (T s)
 * - 1) for the multiprocessors that the last wave leaves idle,
 *
 *   compute = 2 T tile_m tile_n k / (peak * efficiency) * (1 + w) * (1 + depth s / k)
 *   memory  = (bytes + 8 m n s if s > 1) / (bandwidth * bandwidth_efficiency)
 *   time    = overhead + max(compute, memory)
 *
 * bytes are those of pictures and filters, not of the patches. Filters of 3 x 3 with stride 1 have an efficiency of
 * their own, which may be above 1: Winograd's algorithm needs 2.25 to 4 times fewer multiplications for them (Lavin and
 * Gray 2016). Tensor cores of 16 bits take channels in eights: others are at the fp32 peak.
 */
#ifndef PL_WORKLOADS_CONVOLUTION_COST_H
#define PL_WORKLOADS_CONVOLUTION_COST_H

#include "core/cluster/device_profile.h"
#include "workloads/ir/op.h"

typedef struct pl_convolution_shape {
  double m, n, k, bytes;
  bool is_small; /* 3 x 3, stride 1 */
  bool aligned;  /* channels in eights */
} pl_convolution_shape;

typedef struct pl_convolution_time {
  double compute_s, memory_s, overhead_s;
} pl_convolution_time;

/* The fit for this type and pass; NULL: the profile has none. */
const pl_convolution_fit *pl_convolution_fit_for(const pl_device_profile *profile, pl_dtype dtype,
                                                 pl_convolution_pass pass);

pl_convolution_shape pl_convolution_shape_of(const pl_op *op);

/* Peaks and bandwidth are those of `profile`. */
pl_convolution_time pl_convolution_time_of(const pl_device_profile *profile, const pl_convolution_fit *fit,
                                           pl_dtype dtype, const pl_convolution_shape *shape);

static inline double pl_convolution_seconds(const pl_convolution_time *time) {
  return time->overhead_s + (time->compute_s > time->memory_s ? time->compute_s : time->memory_s);
}

/* The peak at which such a convolution computes. */
double pl_convolution_peak(const pl_device_profile *profile, pl_dtype dtype, bool aligned);

#endif
