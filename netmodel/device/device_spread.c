/* See netmodel/device/device_spread.h. */
#include "netmodel/device/device_spread.h"

#include <math.h>

/* P(all of n <= x) = F^n, so that the mean is the integral of 1 - F^n over x > 0 less that of F^n over x < 0; by
 * Simpson's rule on [-9, 9], beyond which nothing is left. */
double pl_spread_greatest(uint32_t n) {
  enum { HALVES = 1800 };
  const double far = 9, step = far / HALVES;
  double sum = 0;
  for (int i = 0; i <= HALVES; i++) {
    double x = i * step, weight = i == 0 || i == HALVES ? 1 : i % 2 == 1 ? 4 : 2;
    double above = 0.5 * erfc(x / sqrt(2)); /* F(-x), 1 - F(x) */
    sum += weight * (-expm1(n * log1p(-above)) - pow(above, n));
  }
  return sum * step / 3;
}

void pl_device_spread_among(pl_device_profile *profile, uint32_t n) {
  profile->compute_drag = 0;
  if (!(profile->compute_spread > 0) || n <= PL_SPREAD_SEEN) return;
  double beyond = pl_spread_greatest(n) - pl_spread_greatest(PL_SPREAD_SEEN);
  profile->compute_drag = expm1(profile->compute_spread * beyond);
}

void pl_device_spread_find(const pl_cluster *cluster, pl_device_profile *profiles) {
  for (uint32_t p = 0; p < cluster->n_profiles; p++) {
    uint32_t n = 0;
    for (uint32_t d = 0; d < cluster->n_devices; d++)
      n += cluster->devices[d].profile == p;
    pl_device_spread_among(&profiles[p], n);
  }
}
