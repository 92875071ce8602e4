/* What is known of a site before any of its runs: how the figures of many sites differ (validation/fit/site_rows.h).
 *
 * The sites' figures are taken for draws of one Gaussian, each figure independent of the others, and a site's scatter
 * for one of PL_SITE_SCATTERS values. Means, variances and probabilities are those that make the runs most likely,
 * found by expectation and maximisation, with two imaginary sites of the variance of 15 % (of the step: 50 ms) that
 * keep figures alive which few runs show. Every site counts the same: of those with more than 30 runs each run counts
 * less.
 */
#ifndef PL_VALIDATION_SITE_PRIOR_H
#define PL_VALIDATION_SITE_PRIOR_H

#include "validation/fit/site_rows.h"

/* All sites but those of the source `without` (UINT32_MAX: all). `start`: the prior of nearly the same sites, from
 * where fewer iterations do; NULL: none. O(iterations * sites). */
pl_code pl_site_prior_take(const pl_site_rows *rows, uint32_t without, const pl_site *start, pl_arena *arena,
                           pl_site *prior, pl_error *error);

#endif
