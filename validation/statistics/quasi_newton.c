/* See validation/statistics/quasi_newton.h. */
#include "validation/statistics/quasi_newton.h"

#include <math.h>
#include <string.h>

#include "core/base/status.h"
#include "core/base/vectors.h"

enum { MOST = PL_QUASI_NEWTON_VARIABLES, HALVINGS = 30 };
static const double LONGEST = 1; /* of a variable in one step */

static void times(const double *matrix, const double *a, uint32_t n, double *product) {
  for (uint32_t i = 0; i < n; i++)
    product[i] = pl_dot(matrix + (size_t)i * n, a, n);
}

static void be_unit(double *inverse, uint32_t n, double scale) {
  memset(inverse, 0, (size_t)n * n * sizeof *inverse);
  for (uint32_t i = 0; i < n; i++)
    inverse[(size_t)i * n + i] = scale;
}

/* Of the step s over which the gradient changed by y. */
static void learn(double *inverse, const double *s, const double *y, uint32_t n) {
  double curvature = pl_dot(s, y, n), moved[MOST];
  if (!(curvature > 1e-10 * sqrt(pl_dot(s, s, n) * pl_dot(y, y, n)))) return;
  times(inverse, y, n, moved);
  double whole = (1 + pl_dot(y, moved, n) / curvature) / curvature;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < n; k++)
      inverse[(size_t)i * n + k] += whole * s[i] * s[k] - (moved[i] * s[k] + s[i] * moved[k]) / curvature;
}

/* Downhill, no variable by more than LONGEST; false: there is no such way. */
static bool direct(double *inverse, const double *gradient, uint32_t n, double *direction) {
  double longest = 0;
  times(inverse, gradient, n, direction);
  for (uint32_t i = 0; i < n; i++)
    longest = fmax(longest, fabs(direction[i]));
  double shrink = longest > LONGEST ? LONGEST / longest : 1;
  for (uint32_t i = 0; i < n; i++)
    direction[i] *= -shrink;
  return pl_dot(direction, gradient, n) < 0;
}

double pl_quasi_newton(pl_sloped value, void *context, double *x, uint32_t n, double *inverse, double tolerance,
                       uint32_t iterations) {
  double gradient[MOST], direction[MOST], there[MOST], gradient_there[MOST], change[MOST];
  PL_ASSERT(n <= MOST);
  bool is_new = inverse[0] == 0;
  double now = value(x, gradient, context);
  if (is_new) be_unit(inverse, n, 1 / fmax(1, sqrt(pl_dot(gradient, gradient, n))));
  for (uint32_t iteration = 0; iteration < iterations; iteration++) {
    if (!direct(inverse, gradient, n, direction)) {
      be_unit(inverse, n, 1 / fmax(1, sqrt(pl_dot(gradient, gradient, n))));
      if (!direct(inverse, gradient, n, direction)) break;
    }
    double slope = pl_dot(direction, gradient, n), next = INFINITY;
    for (int halving = 0; halving < HALVINGS; halving++) {
      double step = ldexp(1, -halving);
      for (uint32_t i = 0; i < n; i++)
        there[i] = x[i] + step * direction[i];
      next = value(there, gradient_there, context);
      if (next <= now + 1e-4 * step * slope) break;
      next = INFINITY;
    }
    if (!(next < now)) break;
    for (uint32_t i = 0; i < n; i++) {
      change[i] = gradient_there[i] - gradient[i];
      direction[i] = there[i] - x[i];
    }
    if (is_new && iteration == 0)
      be_unit(inverse, n, pl_dot(direction, change, n) / fmax(1e-30, pl_dot(change, change, n)));
    if (inverse[0] <= 0) be_unit(inverse, n, 1 / fmax(1, sqrt(pl_dot(gradient, gradient, n))));
    learn(inverse, direction, change, n);
    memcpy(x, there, n * sizeof *x);
    memcpy(gradient, gradient_there, n * sizeof *gradient);
    double gain = now - next;
    now = next;
    if (gain < tolerance) break;
  }
  return now;
}
