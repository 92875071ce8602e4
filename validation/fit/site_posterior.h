/* A site's figures from measured steps (workloads/run/site.h): Bayes on Gaussians.
 *
 * The logarithm of a run's time is taken as linear in the figures t around those that it was simulated with:
 *
 *   y = ln(measured / predicted) + x . t0 = x . t + e,    t ~ N(m, S),   e ~ N(0, s^2)
 *
 * with x the run's sensitivities, m and S the prior, and s one of PL_SITE_SCATTERS values, of which the prior knows how
 * often sites have each; runs that agree make small ones likely, others large ones. For every s mean and covariance of
 * t are exact; they are mixed by the probability of s given the runs. A figure that moves no run keeps its prior. The
 * constant of a step is not negative: where the runs would have it so, it is 0 and the others make up for it.
 */
#ifndef PL_VALIDATION_SITE_POSTERIOR_H
#define PL_VALIDATION_SITE_POSTERIOR_H

#include "workloads/run/site.h"

typedef struct pl_site_run {
  double y;
  double x[PL_SITE_COUNT];
} pl_site_run;

/* Sums over runs, all that a posterior needs of them. */
typedef struct pl_site_sums {
  double xx[PL_SITE_COUNT][PL_SITE_COUNT], xy[PL_SITE_COUNT], yy, n;
} pl_site_sums;

void pl_site_sums_add(pl_site_sums *sums, const pl_site_run *run);
/* Of more than 30 runs each counts less, so that all of them count as 30. */
void pl_site_sums_weaken(pl_site_sums *sums);

/* What the runs make of `prior`; without any the prior. Memory figures are the prior's. */
pl_site pl_site_posterior(const pl_site *prior, const pl_site_sums *sums);
/* Under the scatter `g` alone: mean, covariance, and the logarithm of the runs' probability (but for what does not
 * depend on g or the prior). */
double pl_site_posterior_given(const pl_site *prior, const pl_site_sums *sums, int g, double mean[PL_SITE_COUNT],
                               double covariance[PL_SITE_COUNT][PL_SITE_COUNT]);

/* A posterior under each scatter, and the logarithm of its weight; mixed, with `prior`'s memory. */
typedef struct pl_site_mixture {
  double mean[PL_SITE_SCATTERS][PL_SITE_COUNT], covariance[PL_SITE_SCATTERS][PL_SITE_COUNT][PL_SITE_COUNT];
  double logs[PL_SITE_SCATTERS];
} pl_site_mixture;
pl_site pl_site_mixed(const pl_site *prior, const pl_site_mixture *mixture);

/* `prior` with a constant per step that is known to be nothing. */
pl_site pl_site_without_step(const pl_site *prior);

/* What the site says of a run with these sensitivities, as ln(time / time without a site): the middle, and the
 * half-width that 80 % lie in. */
double pl_site_middle(const pl_site *site, const double x[PL_SITE_COUNT]);

/* Of `n` runs that could be made those `n_chosen` that leave least doubt, one after the other: each is the one that
 * most lowers the sum over `targets` of the variance of what the site says of them. `is_allowed` may be NULL. chosen[]
 * holds indices of `candidates`. */
uint32_t pl_site_suggest(const pl_site *prior, const pl_site_run *candidates, uint32_t n, const bool *is_allowed,
                         const pl_site_run *targets, uint32_t n_targets, uint32_t n_chosen, uint32_t *chosen);

/* `site` as it will be when a run with these sensitivities is known, whatever it takes: its covariance, with the usual
 * scatter. */
void pl_site_expect_run(pl_site *site, const pl_site_run *run);

#endif
