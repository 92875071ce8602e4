/* See validation/fit/site_posterior.h. */
#include "validation/fit/site_posterior.h"

#include <math.h>
#include <string.h>

#include "validation/statistics/positive_definite.h"

enum { N = PL_SITE_COUNT, FULL_RUNS = 30 };
static const double NEARLY_NOTHING = 1e-12; /* a variance: what is known already */

void pl_site_sums_add(pl_site_sums *sums, const pl_site_run *run) {
  for (int i = 0; i < N; i++) {
    for (int k = 0; k < N; k++)
      sums->xx[i][k] += run->x[i] * run->x[k];
    sums->xy[i] += run->x[i] * run->y;
  }
  sums->yy += run->y * run->y;
  sums->n++;
}

void pl_site_sums_weaken(pl_site_sums *sums) {
  double share = FULL_RUNS / sums->n;
  if (share >= 1) return;
  for (int i = 0; i < N; i++) {
    for (int k = 0; k < N; k++)
      sums->xx[i][k] *= share;
    sums->xy[i] *= share;
  }
  sums->yy *= share;
  sums->n *= share;
}

double pl_site_middle(const pl_site *site, const double x[PL_SITE_COUNT]) {
  double sum = 0;
  for (int i = 0; i < N; i++)
    sum += site->mean[i] * x[i];
  return sum;
}

/* The inverse of the prior's covariance, and the logarithm of its determinant. */
static double precision_of(const pl_site *prior, double precision[N * N]) {
  double factor[N * N];
  for (int i = 0; i < N; i++)
    for (int k = 0; k < N; k++)
      factor[i * N + k] = prior->covariance[i][k] + (i == k ? NEARLY_NOTHING : 0);
  bool good = pl_cholesky(factor, N);
  PL_ASSERT(good);
  pl_cholesky_invert(factor, N, precision);
  return pl_cholesky_log_det(factor, N);
}

double pl_site_posterior_given(const pl_site *prior, const pl_site_sums *sums, int g, double mean[PL_SITE_COUNT],
                               double covariance[PL_SITE_COUNT][PL_SITE_COUNT]) {
  double a[N * N], b[N], moved[N], weight = 1 / (pl_site_scatters[g] * pl_site_scatters[g]), square = sums->yy;
  double log_prior = precision_of(prior, a), log_probability;
  for (int i = 0; i < N; i++) {
    double known = 0;
    for (int k = 0; k < N; k++) {
      known += sums->xx[i][k] * prior->mean[k];
      a[i * N + k] += weight * sums->xx[i][k];
    }
    b[i] = weight * (sums->xy[i] - known);
    square += prior->mean[i] * (known - 2 * sums->xy[i]);
  }
  bool good = pl_cholesky(a, N);
  PL_ASSERT(good);
  pl_cholesky_solve(a, N, b, moved);
  log_probability =
      -weight * square + 2 * sums->n * log(1 / pl_site_scatters[g]) - pl_cholesky_log_det(a, N) - log_prior;
  for (int i = 0; i < N; i++) {
    log_probability += b[i] * moved[i];
    mean[i] = prior->mean[i] + moved[i];
  }
  pl_cholesky_invert(a, N, &covariance[0][0]);
  return log_probability / 2;
}

pl_site pl_site_mixed(const pl_site *prior, const pl_site_mixture *mixture) {
  double most = -INFINITY, sum = 0;
  pl_site site = *prior;
  memset(site.mean, 0, sizeof site.mean);
  memset(site.covariance, 0, sizeof site.covariance);
  for (int g = 0; g < PL_SITE_SCATTERS; g++)
    most = fmax(most, mixture->logs[g]);
  for (int g = 0; g < PL_SITE_SCATTERS; g++)
    sum += exp(mixture->logs[g] - most);
  for (int g = 0; g < PL_SITE_SCATTERS; g++) {
    site.scatter_weight[g] = exp(mixture->logs[g] - most) / sum;
    for (int i = 0; i < N; i++)
      site.mean[i] += site.scatter_weight[g] * mixture->mean[g][i];
  }
  for (int g = 0; g < PL_SITE_SCATTERS; g++)
    for (int i = 0; i < N; i++)
      for (int k = 0; k < N; k++)
        site.covariance[i][k] +=
            site.scatter_weight[g] * (mixture->covariance[g][i][k] +
                                      (mixture->mean[g][i] - site.mean[i]) * (mixture->mean[g][k] - site.mean[k]));
  return site;
}

static pl_site mix(const pl_site *prior, const pl_site_sums *sums) {
  pl_site_mixture mixture;
  for (int g = 0; g < PL_SITE_SCATTERS; g++)
    mixture.logs[g] =
        log(prior->scatter_weight[g]) + pl_site_posterior_given(prior, sums, g, mixture.mean[g], mixture.covariance[g]);
  return pl_site_mixed(prior, &mixture);
}

pl_site pl_site_without_step(const pl_site *prior) {
  pl_site without = *prior;
  without.mean[PL_SITE_step] = 0;
  for (int i = 0; i < N; i++)
    without.covariance[i][PL_SITE_step] = without.covariance[PL_SITE_step][i] = 0;
  return without;
}

pl_site pl_site_posterior(const pl_site *prior, const pl_site_sums *sums) {
  if (sums->n <= 0) return *prior;
  pl_site site = mix(prior, sums);
  if (site.mean[PL_SITE_step] < 0) {
    const pl_site without = pl_site_without_step(prior);
    site = mix(&without, sums);
    site.mean[PL_SITE_step] = 0;
  }
  site.n_runs = (uint32_t)sums->n;
  return site;
}

/* ---- which runs ---- */

static double bilinear(double s[N][N], const double *x, const double *z) {
  double sum = 0;
  for (int i = 0; i < N; i++)
    for (int k = 0; k < N; k++)
      sum += x[i] * s[i][k] * z[k];
  return sum;
}

/* The scatter in the middle of its distribution: what a new run is taken to stray by. */
static double usual_scatter(const pl_site *prior) {
  double sum = 0;
  for (int g = 0; g < PL_SITE_SCATTERS; g++) {
    sum += prior->scatter_weight[g];
    if (sum >= 0.5) return pl_site_scatters[g];
  }
  return pl_site_scatters[PL_SITE_SCATTERS - 1];
}

/* s becomes what it is when a run with x is known. */
static void learn(double s[N][N], const double *x, double scatter) {
  double v[N], all = bilinear(s, x, x) + scatter * scatter;
  for (int i = 0; i < N; i++) {
    v[i] = 0;
    for (int k = 0; k < N; k++)
      v[i] += s[i][k] * x[k];
  }
  for (int i = 0; i < N; i++)
    for (int k = 0; k < N; k++)
      s[i][k] -= v[i] * v[k] / all;
}

void pl_site_expect_run(pl_site *site, const pl_site_run *run) {
  learn(site->covariance, run->x, usual_scatter(site));
}

static double gain_of(double s[N][N], const double *x, double scatter, const pl_site_run *targets, uint32_t n) {
  double gain = 0;
  for (uint32_t t = 0; t < n; t++) {
    double shared = bilinear(s, x, targets[t].x);
    gain += shared * shared;
  }
  return gain / (bilinear(s, x, x) + scatter * scatter);
}

uint32_t pl_site_suggest(const pl_site *prior, const pl_site_run *candidates, uint32_t n, const bool *is_allowed,
                         const pl_site_run *targets, uint32_t n_targets, uint32_t n_chosen, uint32_t *chosen) {
  double s[N][N], scatter = usual_scatter(prior);
  memcpy(s, prior->covariance, sizeof s);
  uint32_t found = 0;
  while (found < n_chosen) {
    uint32_t best = UINT32_MAX;
    double most = -1;
    for (uint32_t c = 0; c < n; c++) {
      bool taken = is_allowed != NULL && !is_allowed[c];
      for (uint32_t i = 0; i < found; i++)
        taken |= chosen[i] == c;
      double gain = taken ? -1 : gain_of(s, candidates[c].x, scatter, targets, n_targets);
      if (gain <= most) continue;
      most = gain;
      best = c;
    }
    if (best == UINT32_MAX) break;
    learn(s, candidates[best].x, scatter);
    chosen[found++] = best;
  }
  return found;
}
