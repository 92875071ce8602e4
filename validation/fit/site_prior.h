/* What is known of a site before any of its runs: how the sites of many sources differ (validation/fit/site_rows.h).
 *
 * Figures are draws of one Gaussian, each independent of the others; what they leave is a draw of one Gaussian process;
 * a site's scatter and the size of what remains are each one of a few values. Means, variances, what of them an owner's
 * sites share, and the lengths of likeness are those that make the runs most likely, each source's together (type II
 * maximum likelihood), a source counting by the root of how many it has (sources with many would speak for all), with
 * two imaginary sites of the variance of 15 % (of the step: 50 ms) that keep figures alive which few runs show, and
 * weak beliefs of the rest (site_prior.c). How often which scatter and size occur is then told by single sites. Of a
 * site at most 20 runs count, of a source 160: none of them is what all others are held to.
 */
#ifndef PL_VALIDATION_SITE_PRIOR_H
#define PL_VALIDATION_SITE_PRIOR_H

#include "validation/fit/site_rows.h"

typedef struct pl_site_prior pl_site_prior;

/* The runs that count, with their distances. In `arena`. */
pl_code pl_site_prior_prepare(const pl_site_rows *rows, pl_arena *arena, pl_site_prior **prior, pl_error *error);
/* Of all sources but `without` (UINT32_MAX: all). Is quicker once that of all is known. What remains lies in `arena`.
 * On n_threads threads; the same for any number. */
pl_code pl_site_prior_take(pl_site_prior *prior, uint32_t without, uint32_t n_threads, pl_arena *arena, pl_site *site,
                           pl_error *error);

#endif
