/* See validation/statistics/nelder_mead.h. */
#include "validation/statistics/nelder_mead.h"

#include <math.h>
#include <string.h>

#include "core/base/status.h"

enum { POINTS = PL_NELDER_MEAD_VARIABLES + 1 };

typedef struct simplex {
  pl_objective objective;
  void *context;
  uint32_t n, evaluations;
  double point[POINTS][PL_NELDER_MEAD_VARIABLES];
  double value[POINTS];
} simplex;

static double evaluate(simplex *s, const double *x) {
  s->evaluations++;
  double value = s->objective(x, s->context);
  return isnan(value) ? INFINITY : value;
}

/* By value, by insertion: stable, so that ties keep their order. */
static void sort(simplex *s) {
  for (uint32_t i = 1; i <= s->n; i++)
    for (uint32_t j = i; j > 0 && s->value[j] < s->value[j - 1]; j--) {
      double value = s->value[j], point[PL_NELDER_MEAD_VARIABLES];
      s->value[j] = s->value[j - 1];
      s->value[j - 1] = value;
      memcpy(point, s->point[j], sizeof point);
      memcpy(s->point[j], s->point[j - 1], sizeof point);
      memcpy(s->point[j - 1], point, sizeof point);
    }
}

/* centroid + factor * (centroid - worst). */
static double try_point(simplex *s, const double *centroid, double factor, double *x) {
  for (uint32_t k = 0; k < s->n; k++)
    x[k] = centroid[k] + factor * (centroid[k] - s->point[s->n][k]);
  return evaluate(s, x);
}

static void replace_worst(simplex *s, const double *x, double value) {
  memcpy(s->point[s->n], x, s->n * sizeof *x);
  s->value[s->n] = value;
}

static void shrink(simplex *s) {
  for (uint32_t i = 1; i <= s->n; i++) {
    for (uint32_t k = 0; k < s->n; k++)
      s->point[i][k] = s->point[0][k] + 0.5 * (s->point[i][k] - s->point[0][k]);
    s->value[i] = evaluate(s, s->point[i]);
  }
}

static void step_once(simplex *s) {
  double centroid[PL_NELDER_MEAD_VARIABLES] = {0}, reflected[PL_NELDER_MEAD_VARIABLES], x[PL_NELDER_MEAD_VARIABLES];
  for (uint32_t i = 0; i < s->n; i++)
    for (uint32_t k = 0; k < s->n; k++)
      centroid[k] += s->point[i][k] / (double)s->n;
  double value = try_point(s, centroid, 1, reflected);
  if (value < s->value[0]) {
    double further = try_point(s, centroid, 2, x);
    replace_worst(s, further < value ? x : reflected, fmin(further, value));
  } else if (value < s->value[s->n - 1]) {
    replace_worst(s, reflected, value);
  } else {
    double nearer = try_point(s, centroid, value < s->value[s->n] ? 0.5 : -0.5, x);
    if (nearer < fmin(value, s->value[s->n]))
      replace_worst(s, x, nearer);
    else
      shrink(s);
  }
}

double pl_nelder_mead(pl_objective objective, void *context, double *x, uint32_t n, double step, double tolerance,
                      uint32_t evaluations) {
  PL_ASSERT(n > 0 && n <= PL_NELDER_MEAD_VARIABLES);
  simplex s = {.objective = objective, .context = context, .n = n};
  for (uint32_t i = 0; i <= n; i++) {
    memcpy(s.point[i], x, n * sizeof *x);
    if (i > 0) s.point[i][i - 1] += step;
    s.value[i] = evaluate(&s, s.point[i]);
  }
  sort(&s);
  while (s.evaluations < evaluations && s.value[n] - s.value[0] > tolerance) {
    step_once(&s);
    sort(&s);
  }
  memcpy(x, s.point[0], n * sizeof *x);
  return s.value[0];
}
