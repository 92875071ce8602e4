/* See validation/fit/site_relatives.h. With P = c (x) S the covariance of all figures before any run and A the runs'
 * information, block by block, all that is asked for is in the factor of P^-1 + A. */
#include "validation/fit/site_relatives.h"

#include <math.h>

#include "validation/statistics/positive_definite.h"

enum { N = PL_SITE_COUNT };
static const double NEARLY_NOTHING = 1e-12; /* a variance: what is known already */

pl_code pl_site_family_take(const pl_site_kin *kin, uint32_t n, pl_arena *arena, pl_site_family *family,
                            pl_error *error) {
  size_t all = (size_t)n * N, pairs = (size_t)n * n;
  *family = (pl_site_family){.n = n,
                             .kin = kin,
                             .in_common = PL_TAKE(arena, double, pairs),
                             .inverse = PL_TAKE(arena, double, pairs),
                             .precision = PL_TAKE(arena, double, all *all),
                             .at = PL_TAKE(arena, double, all),
                             .one = PL_TAKE(arena, double, all),
                             .mixtures = PL_TAKE(arena, pl_site_mixture, n)};
  return arena->failed ? pl_fail_memory(error, "the sites of an owner") : PL_OK;
}

static double in_common(const pl_site_kin *a, const pl_site_kin *b, const double shared[PL_SITE_KINDS]) {
  double sum = 0;
  for (int kind = 0; kind < PL_SITE_KINDS; kind++)
    sum += a->of[kind] == b->of[kind] ? shared[kind] : 0;
  return sum;
}

/* c and its inverse; returns ln det c. */
static double relate(const pl_site_family *own, const double shared[PL_SITE_KINDS]) {
  uint32_t n = own->n;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < n; k++)
      own->in_common[i * n + k] = i == k ? 1 : in_common(&own->kin[i], &own->kin[k], shared);
  bool good = pl_cholesky(own->in_common, (int)n);
  PL_ASSERT(good);
  for (uint32_t k = 0; k < n; k++) {
    for (uint32_t i = 0; i < n; i++)
      own->one[i] = i == k;
    pl_cholesky_solve(own->in_common, (int)n, own->one, own->at);
    for (uint32_t i = 0; i < n; i++)
      own->inverse[i * n + k] = own->at[i];
  }
  return pl_cholesky_log_det(own->in_common, (int)n);
}

/* The inverse of the prior's covariance; returns ln det of the covariance. */
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

/* What a site's runs add around the prior's mean: the pull, b; returns their square. */
static double pull_of(const pl_site *prior, const pl_site_sums *sums, double weight, double pull[N]) {
  double square = sums->yy;
  for (int i = 0; i < N; i++) {
    double known = 0;
    for (int k = 0; k < N; k++)
      known += sums->xx[i][k] * prior->mean[k];
    pull[i] = weight * (sums->xy[i] - known);
    square += prior->mean[i] * (known - 2 * sums->xy[i]);
  }
  return square;
}

/* own->precision becomes the factor of P^-1 + A, own->at the mean of all figures around the prior's under the scatter
 * g; returns the logarithm of the runs' probability, but for what no share changes. */
static double solve(const pl_site_family *own, const pl_site *prior, const pl_site_sums *sums, double log_in_common,
                    int g) {
  uint32_t n = own->n, all = n * N;
  double alone[N * N], weight = 1 / (pl_site_scatters[g] * pl_site_scatters[g]), log_twice = 0;
  log_twice -= n * precision_of(prior, alone) + N * log_in_common;
  for (uint32_t a = 0; a < n; a++) {
    for (uint32_t b = 0; b <= a; b++)
      for (uint32_t i = 0; i < N; i++)
        for (uint32_t k = 0; k < N; k++)
          own->precision[(a * N + i) * all + b * N + k] =
              own->inverse[a * n + b] * alone[i * N + k] + (a == b ? weight * sums[a].xx[i][k] : 0);
    log_twice -= weight * pull_of(prior, &sums[a], weight, &own->one[a * N]);
    log_twice -= 2 * sums[a].n * log(pl_site_scatters[g]);
  }
  bool good = pl_cholesky(own->precision, (int)all);
  PL_ASSERT(good);
  pl_cholesky_solve(own->precision, (int)all, own->one, own->at);
  log_twice -= pl_cholesky_log_det(own->precision, (int)all);
  for (uint32_t i = 0; i < all; i++)
    log_twice += own->one[i] * own->at[i];
  return log_twice / 2;
}

/* The block of one site of the inverse. */
static void covariance_of(const pl_site_family *own, uint32_t site, double covariance[N][N]) {
  uint32_t all = own->n * N;
  for (uint32_t k = 0; k < N; k++) {
    for (uint32_t i = 0; i < all; i++)
      own->one[i] = i == site * N + k;
    pl_cholesky_solve(own->precision, (int)all, own->one, own->at);
    for (uint32_t i = 0; i < N; i++)
      covariance[i][k] = own->at[site * N + i];
  }
}

/* Of all sites, or of those that have a negative constant of a step. */
static void learn(const pl_site_family *own, const pl_site *prior, const pl_site_sums *sums, double log_in_common,
                  bool only_negative, pl_site *sites) {
  for (int g = 0; g < PL_SITE_SCATTERS; g++) {
    double log_runs = log(prior->scatter_weight[g]) + solve(own, prior, sums, log_in_common, g);
    for (uint32_t s = 0; s < own->n; s++) {
      own->mixtures[s].logs[g] = log_runs;
      for (uint32_t i = 0; i < N; i++)
        own->mixtures[s].mean[g][i] = prior->mean[i] + own->at[s * N + i];
    }
    for (uint32_t s = 0; s < own->n; s++)
      covariance_of(own, s, own->mixtures[s].covariance[g]);
  }
  for (uint32_t s = 0; s < own->n; s++) {
    if (only_negative && sites[s].mean[PL_SITE_step] >= 0) continue;
    sites[s] = pl_site_mixed(prior, &own->mixtures[s]);
    sites[s].n_runs = (uint32_t)sums[s].n;
    if (only_negative) sites[s].mean[PL_SITE_step] = 0;
  }
}

void pl_site_family_learn(const pl_site_family *family, const pl_site *prior, const pl_site_sums *sums,
                          const double shared[PL_SITE_KINDS], pl_site *sites) {
  double n_runs = 0;
  for (uint32_t s = 0; s < family->n; s++) {
    n_runs += sums[s].n;
    sites[s] = *prior;
  }
  if (n_runs <= 0) return;
  if (family->n == 1) {
    sites[0] = pl_site_posterior(prior, &sums[0]);
    return;
  }
  double log_in_common = relate(family, shared);
  learn(family, prior, sums, log_in_common, false, sites);
  bool is_negative = false;
  for (uint32_t s = 0; s < family->n; s++)
    is_negative |= sites[s].mean[PL_SITE_step] < 0;
  if (!is_negative) return;
  const pl_site without = pl_site_without_step(prior);
  learn(family, &without, sums, log_in_common, true, sites);
}

double pl_site_family_evidence(const pl_site_family *family, const pl_site *prior, const pl_site_sums *sums,
                               const double shared[PL_SITE_KINDS]) {
  double logs[PL_SITE_SCATTERS], most = -INFINITY, sum = 0, log_in_common = relate(family, shared);
  for (int g = 0; g < PL_SITE_SCATTERS; g++) {
    logs[g] = log(prior->scatter_weight[g]) + solve(family, prior, sums, log_in_common, g);
    most = fmax(most, logs[g]);
  }
  for (int g = 0; g < PL_SITE_SCATTERS; g++)
    sum += exp(logs[g] - most);
  return most + log(sum);
}
