/* See validation/fit/residual_fit.h. Iteratively reweighted least squares: a row counts with weight / max(|its error|,
 * FLOOR), so that squares become absolute values; each round solves (A'WA + smoothness) x = A'W b by conjugate
 * gradients, starting from the round before. The matrix is never formed: a row has 8 knots. */
#include "validation/fit/residual_fit.h"

#include <math.h>
#include <string.h>

#include "core/base/vectors.h"

enum { ROUNDS = 6, STEPS = 80 };
/* Chosen on the rows that are fitted, before those held out were looked at. */
static const double SMOOTH = 0.3, SHRINK = 0.01, FLOOR = 0.02;

typedef struct grid_system {
  const pl_residual_row *rows;
  uint32_t n_rows, n_knots, n[3];
  double *weights;    /* of the rows, this round */
  double *r, *p, *ap; /* conjugate gradients */
} grid_system;

static double interpolate(const pl_gemm_knots *knots, const double *table) {
  double value = 0;
  for (int i = 0; i < 8; i++)
    value += knots->weight[i] * table[knots->at[i]];
  return value;
}

/* out += SMOOTH * (differences to the neighbours along one axis). */
static void add_smoothness(const uint32_t n[3], int axis, const double *x, double *out) {
  uint32_t stride = axis == 2 ? 1 : axis == 1 ? n[2] : n[1] * n[2];
  uint32_t n_knots = n[0] * n[1] * n[2];
  for (uint32_t i = 0; i < n_knots; i++) {
    if (i / stride % n[axis] + 1 == n[axis]) continue;
    double d = SMOOTH * (x[i + stride] - x[i]);
    out[i + stride] += d;
    out[i] -= d;
  }
}

static void apply(const grid_system *s, const double *x, double *out) {
  for (uint32_t i = 0; i < s->n_knots; i++)
    out[i] = SHRINK * x[i];
  for (int axis = 0; axis < 3; axis++)
    add_smoothness(s->n, axis, x, out);
  for (uint32_t row = 0; row < s->n_rows; row++) {
    const pl_gemm_knots *knots = &s->rows[row].knots;
    double y = s->weights[row] * interpolate(knots, x);
    for (int i = 0; i < 8; i++)
      out[knots->at[i]] += knots->weight[i] * y;
  }
}

/* r = A'W b - (A'WA + smoothness) x; returns |A'W b|^2. */
static double first_rest(const grid_system *s, const double *x) {
  memset(s->r, 0, s->n_knots * sizeof *s->r);
  for (uint32_t row = 0; row < s->n_rows; row++)
    for (int i = 0; i < 8; i++)
      s->r[s->rows[row].knots.at[i]] += s->rows[row].knots.weight[i] * s->weights[row] * s->rows[row].value;
  double size = pl_dot(s->r, s->r, s->n_knots);
  apply(s, x, s->ap);
  for (uint32_t i = 0; i < s->n_knots; i++)
    s->r[i] -= s->ap[i];
  return size;
}

static void solve(const grid_system *s, double *x) {
  double size = first_rest(s, x), rest = pl_dot(s->r, s->r, s->n_knots);
  memcpy(s->p, s->r, s->n_knots * sizeof *s->p);
  for (int step = 0; step < STEPS && rest > 1e-14 * size; step++) {
    apply(s, s->p, s->ap);
    double length = rest / pl_dot(s->p, s->ap, s->n_knots), before = rest;
    for (uint32_t i = 0; i < s->n_knots; i++) {
      x[i] += length * s->p[i];
      s->r[i] -= length * s->ap[i];
    }
    rest = pl_dot(s->r, s->r, s->n_knots);
    for (uint32_t i = 0; i < s->n_knots; i++)
      s->p[i] = s->r[i] + rest / before * s->p[i];
  }
}

pl_code pl_residual_fit(const pl_residual_row *rows, uint32_t n_rows, const uint32_t n[3], pl_arena *arena,
                        double *table, pl_error *error) {
  grid_system s = {.rows = rows, .n_rows = n_rows, .n_knots = n[0] * n[1] * n[2], .n = {n[0], n[1], n[2]}};
  pl_arena_mark mark = pl_arena_mark_here(arena);
  s.weights = PL_TAKE(arena, double, n_rows);
  s.r = PL_TAKE(arena, double, s.n_knots);
  s.p = PL_TAKE(arena, double, s.n_knots);
  s.ap = PL_TAKE(arena, double, s.n_knots);
  if (s.weights == NULL || s.r == NULL || s.p == NULL || s.ap == NULL)
    return pl_fail_memory(error, "the fit of residuals");
  memset(table, 0, s.n_knots * sizeof *table);
  for (int round = 0; round < ROUNDS; round++) {
    for (uint32_t row = 0; row < n_rows; row++) {
      double off = fabs(rows[row].value - interpolate(&rows[row].knots, table));
      s.weights[row] = rows[row].weight * (round == 0 ? 1 : FLOOR / fmax(off, FLOOR));
    }
    solve(&s, table);
  }
  pl_arena_release_to(arena, mark);
  return PL_OK;
}
