/* See workloads/trace/message_line.h. */
#include "workloads/trace/message_line.h"

#include <math.h>

void pl_message_sums_add(pl_message_sums *s, double x, double y) {
  if (!(y > 0) || x < 0) return;
  double w = 1 / (y * y);
  *s = (pl_message_sums){s->n + 1, s->w + w, s->x + w * x, s->y + w * y, s->xx + w * x * x, s->xy + w * x * y};
}

static const double usual_s = 20e-6; /* half of all latencies are below that, as far as nothing else is known */

/* (x - found)^2 / (2 sd^2) + log(1 + (x / usual)^2) */
static double unlikeliness(double x, double found, double sd) {
  return (x - found) * (x - found) / (2 * sd * sd) + log1p(x / usual_s * (x / usual_s));
}

/* Where its derivative is 0, a cubic in x, from `x` by Newton's steps, which stay in 0 .. found. */
static double stationary(double x, double found, double sd) {
  for (int k = 0; k < 60; k++) {
    double slope = usual_s * usual_s + 2 * sd * sd;
    double value = ((x - found) * x + slope) * x - found * usual_s * usual_s;
    double next = x - value / ((3 * x - 2 * found) * x + slope);
    x = next > 0 && next < found ? next : next > 0 ? found : 0;
  }
  return x;
}

/* The likeliest latency; from 0 and from what the line says, for there may be two hollows. */
static double likeliest(double found, double sd) {
  if (sd <= 0) return found;
  double low = stationary(0, found, sd), high = stationary(found, found, sd);
  return unlikeliness(low, found, sd) < unlikeliness(high, found, sd) ? low : high;
}

pl_message_line pl_message_line_fit(const pl_message_sums *s) {
  double det = s->w * s->xx - s->x * s->x;
  pl_message_line line = {0, s->xx > 0 ? s->xy / s->xx : 0, 0, det > 1e-9 * s->w * s->xx};
  if (!line.is_line) return line;
  double slope = (s->w * s->xy - s->x * s->y) / det, latency = (s->y - slope * s->x) / s->w;
  double residue = s->n - latency * s->y - slope * s->xy; /* weights are 1 / y^2 */
  if (s->n > 2 && residue > 0) line.latency_sd_s = sqrt(residue / (s->n - 2) * s->xx / det);
  if (slope < 0) { /* larger ones were not slower: all is latency */
    line.latency_s = s->y / s->w;
    line.slope_s_per_byte = 0;
  } else if (latency > 0) {
    line.latency_s = likeliest(latency, line.latency_sd_s);
    line.slope_s_per_byte = (s->xy - line.latency_s * s->x) / s->xx;
  }
  return line;
}
