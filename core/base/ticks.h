/* Time is a 64-bit count of ticks of 2^-40 s (0.9 ps; 97 days each side of zero).
 *
 * Durations, latencies and finish dates are rounded onto this grid when they are made. Contention is
 * ill-conditioned, so dates in doubles neither fold nor reproduce exactly; ticks do.
 */
#ifndef PL_CORE_TICKS_H
#define PL_CORE_TICKS_H

#include <math.h>
#include <stdint.h>

typedef int64_t pl_ticks;

#define PL_TICKS_PER_S 0x1p40
#define PL_TICKS_NEVER INT64_MAX
/* No duration may exceed this (48 days): sums of two stay representable. A date that reaches it stays there, whatever
 * follows; a run that ends there has no time, and is refused (core/engine/engine.h). */
#define PL_TICKS_MAX ((pl_ticks)1 << 62)

/* Nearest tick (ties to even); saturates at PL_TICKS_MAX. `time_s` must be >= 0 and not NaN. */
static inline pl_ticks pl_ticks_from_s(double time_s) {
  double ticks = time_s * PL_TICKS_PER_S;
  return ticks >= (double)PL_TICKS_MAX ? PL_TICKS_MAX : (pl_ticks)llrint(ticks);
}

/* The sum of two durations or of a date and a duration, each from 0 to PL_TICKS_MAX; saturates there. */
static inline pl_ticks pl_ticks_sum(pl_ticks a, pl_ticks b) {
  return b > PL_TICKS_MAX - a ? PL_TICKS_MAX : a + b;
}

/* A duration `factor` times as long; saturates at PL_TICKS_MAX. */
static inline pl_ticks pl_ticks_scaled(pl_ticks ticks, double factor) {
  double scaled = (double)ticks * factor;
  return scaled >= (double)PL_TICKS_MAX ? PL_TICKS_MAX : (pl_ticks)llrint(scaled);
}

/* Nearest nanosecond. */
static inline int64_t pl_ticks_to_ns(pl_ticks ticks) {
  return (int64_t)(((__extension__(__int128) ticks * 1000000000) + ((pl_ticks)1 << 39)) >> 40);
}

static inline double pl_ticks_to_s(pl_ticks ticks) {
  return (double)ticks * (1.0 / PL_TICKS_PER_S);
}

#endif
