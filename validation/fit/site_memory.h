/* Device memory beside tensors, of which a site's measured peaks tell: m + e is what lies between a peak and its
 * prediction without the site, m of the site, e of the run.
 *
 *   m ~ N(0, sd^2),   e ~ N(0, s^2),   s^2 of a scaled inverse chi-squared distribution of `degrees` around scatter^2
 *
 * (workloads/run/site.h, memory_*). Few degrees: sites differ much in how their peaks scatter (what some leave out of
 * their rows moves each peak by gigabytes), and the first peaks say more of it than the prior.
 */
#ifndef PL_VALIDATION_SITE_MEMORY_H
#define PL_VALIDATION_SITE_MEMORY_H

#include "validation/fit/site_rows.h"

/* Of the sites of all sources but `without` (UINT32_MAX: of all): how far the means of their peaks lie from nothing,
 * and peaks from their site's mean; medians, since a few sites' figures are not what they are said to be. `degrees` are
 * those of 0.5, 1, 2 .. 32 that make the sites' variances most likely. */
pl_code pl_site_memory_prior(const pl_site_rows *rows, uint32_t without, pl_arena *arena, pl_site *prior,
                             pl_error *error);
/* memory_* of the site, n_peaks too, from bytes[n] that peaks lie above predictions: mean field, m and s^2 by turns. */
void pl_site_memory_learn(const pl_site *prior, const double *bytes, uint32_t n, pl_site *site);

/* One number of peaks known, of all sites that have three more and six at least: means over sites of the mean error of
 * the others' peaks, without the site and with it, and of the share of them within 80 % of what the site says. */
typedef struct pl_peaks_left_out {
  uint32_t n_known, n_sites;
  double without_pct, with_pct, coverage_pct;
} pl_peaks_left_out;
/* priors[source]: each has seen nothing of its source. The same numbers every time. */
pl_code pl_site_memory_leave_out(const pl_site_rows *rows, const pl_site *priors, uint32_t n_known, pl_arena *arena,
                                 pl_peaks_left_out *left, pl_error *error);

#endif
