/* See validation/fit/site_relatives.h. */
#include "validation/fit/site_relatives.h"

#include <math.h>
#include <string.h>

#include "validation/statistics/positive_definite.h"

enum { N = PL_SITE_COUNT, TENTHS = 10 };
static const double NEARLY_NOTHING = 1e-12; /* a variance: what is known already */

/* The inverse of `share` of the prior's covariance, and the logarithm of its determinant. */
static double precision_of(const pl_site *prior, double share, double precision[N * N]) {
  double factor[N * N];
  for (int i = 0; i < N; i++)
    for (int k = 0; k < N; k++)
      factor[i * N + k] = share * prior->covariance[i][k] + (i == k ? NEARLY_NOTHING : 0);
  bool good = pl_cholesky(factor, N);
  PL_ASSERT(good);
  pl_cholesky_invert(factor, N, precision);
  return -pl_cholesky_log_det(factor, N);
}

/* What is known of u, around the prior's mean: precision and precision times mean; and the logarithm of the probability
 * of what it is known from, twice. */
typedef struct knowledge {
  double precision[N * N], pull[N], log_twice;
} knowledge;

static void learn(knowledge *own, const pl_site *prior, const double alone[N * N], double log_alone,
                  const pl_site_sums *sums, int g) {
  double a[N * N], b[N], both[N * N], inverse[N * N], at[N], weight = 1 / (pl_site_scatters[g] * pl_site_scatters[g]);
  double square = sums->yy, pulled = 0;
  for (int i = 0; i < N; i++) {
    double known = 0;
    for (int k = 0; k < N; k++) {
      known += sums->xx[i][k] * prior->mean[k];
      a[i * N + k] = weight * sums->xx[i][k];
      both[i * N + k] = a[i * N + k] + alone[i * N + k];
    }
    b[i] = weight * (sums->xy[i] - known);
    square += prior->mean[i] * (known - 2 * sums->xy[i]);
  }
  bool good = pl_cholesky(both, N);
  PL_ASSERT(good);
  pl_cholesky_invert(both, N, inverse);
  pl_cholesky_solve(both, N, b, at);
  for (int i = 0; i < N; i++) {
    double moved[N];
    for (int k = 0; k < N; k++) {
      moved[k] = 0;
      for (int j = 0; j < N; j++)
        moved[k] += a[i * N + j] * inverse[j * N + k];
    }
    own->pull[i] += b[i];
    pulled += b[i] * at[i];
    for (int k = 0; k < N; k++) {
      double taken = 0;
      for (int j = 0; j < N; j++)
        taken += moved[j] * a[j * N + k];
      own->precision[i * N + k] += a[i * N + k] - taken;
      own->pull[i] -= moved[k] * b[k];
    }
  }
  own->log_twice +=
      log_alone - pl_cholesky_log_det(both, N) + pulled - weight * square - 2 * sums->n * log(pl_site_scatters[g]);
}

/* The prior of a site whose relatives are known, under the scatter `g`: mean and covariance; returns the logarithm of
 * the relatives' probability. */
static double beside(pl_site *prior, const pl_site_sums *relatives, uint32_t n, double shared, int g) {
  knowledge own = {.pull = {0}};
  double alone[N * N], log_alone = precision_of(prior, 1 - shared, alone), u[N], spread[N * N];
  own.log_twice = precision_of(prior, shared, own.precision);
  for (uint32_t r = 0; r < n; r++)
    learn(&own, prior, alone, log_alone, &relatives[r], g);
  bool good = pl_cholesky(own.precision, N);
  PL_ASSERT(good);
  pl_cholesky_solve(own.precision, N, own.pull, u);
  pl_cholesky_invert(own.precision, N, spread);
  own.log_twice -= pl_cholesky_log_det(own.precision, N);
  for (int i = 0; i < N; i++) {
    own.log_twice += own.pull[i] * u[i];
    prior->mean[i] += u[i];
    for (int k = 0; k < N; k++)
      prior->covariance[i][k] = spread[i * N + k] + (1 - shared) * prior->covariance[i][k];
  }
  return own.log_twice / 2;
}

static pl_site mix(const pl_site *prior, const pl_site_sums *own, const pl_site_sums *relatives, uint32_t n,
                   double shared) {
  pl_site_mixture mixture;
  for (int g = 0; g < PL_SITE_SCATTERS; g++) {
    pl_site near = *prior;
    double log_relatives = beside(&near, relatives, n, shared, g);
    mixture.logs[g] = log(prior->scatter_weight[g]) + log_relatives +
                      pl_site_posterior_given(&near, own, g, mixture.mean[g], mixture.covariance[g]);
  }
  return pl_site_mixed(prior, &mixture);
}

pl_site pl_site_posterior_beside(const pl_site *prior, const pl_site_sums *own, const pl_site_sums *relatives,
                                 uint32_t n, double shared) {
  if (n == 0) return pl_site_posterior(prior, own);
  pl_site site = mix(prior, own, relatives, n, shared);
  if (site.mean[PL_SITE_step] < 0) {
    pl_site without = pl_site_without_step(prior);
    site = mix(&without, own, relatives, n, shared);
    site.mean[PL_SITE_step] = 0;
  }
  site.n_runs = (uint32_t)own->n;
  return site;
}

/* ---- how much is shared ---- */

/* Of all runs of a source, twice the logarithm of their probability but for what no share changes. */
static double log_evidence(const pl_site *prior, const pl_site_sums *sums, uint32_t n, double shared) {
  double logs[PL_SITE_SCATTERS], most = -INFINITY, sum = 0;
  for (int g = 0; g < PL_SITE_SCATTERS; g++) {
    pl_site near = *prior;
    logs[g] = log(prior->scatter_weight[g]) + beside(&near, sums, n, shared, g);
    most = fmax(most, logs[g]);
  }
  for (int g = 0; g < PL_SITE_SCATTERS; g++)
    sum += exp(logs[g] - most);
  return most + log(sum);
}

/* Of the sites of `source` those that have runs, side by side. */
static uint32_t sites_of(const pl_site_rows *rows, uint32_t source, pl_site_sums *sums) {
  uint32_t n = 0;
  memset(sums, 0, rows->n_sites * sizeof *sums);
  for (uint32_t i = 0; i < rows->n; i++)
    if (rows->rows[i].source == source) pl_site_sums_add(&sums[rows->rows[i].site], &rows->rows[i].run);
  for (uint32_t s = 0; s < rows->n_sites; s++)
    if (sums[s].n > 0) sums[n++] = sums[s];
  for (uint32_t s = 0; s < n; s++)
    pl_site_sums_weaken(&sums[s]);
  return n;
}

pl_code pl_site_shared_take(const pl_site_rows *rows, uint32_t without, const pl_site *prior, pl_arena *arena,
                            double *shared, pl_error *error) {
  pl_arena_mark mark = pl_arena_mark_here(arena);
  pl_site_sums *sums = PL_TAKE(arena, pl_site_sums, rows->n_sites);
  if (sums == NULL) return pl_fail_memory(error, "what sites share");
  double total[TENTHS + 1] = {0};
  for (uint32_t source = 0; source < rows->n_sources; source++) {
    uint32_t n = source == without ? 0 : sites_of(rows, source, sums);
    for (int t = 0; t <= TENTHS && n > 1; t++)
      total[t] += log_evidence(prior, sums, n, (double)t / TENTHS);
  }
  int best = 0;
  for (int t = 1; t <= TENTHS; t++)
    if (total[t] > total[best]) best = t;
  *shared = (double)best / TENTHS;
  pl_arena_release_to(arena, mark);
  return PL_OK;
}
