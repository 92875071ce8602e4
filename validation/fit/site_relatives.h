/* Runs of one owner's other GPUs and other software: what they say of a site beside its own.
 *
 * The figures of the owner's sites are t_j = u + v_j, u shared and v_j each one's own: u ~ N(m, c S), v_j ~ N(0, (1 -
 * c) S), with m and S the prior and c the share of the variance that is shared. So every site is a draw from the prior,
 * as it is alone, and two of one owner are alike by c. The scatter of runs is one for all of them. Exact for every
 * scatter: a relative's runs with its v_i integrated out are a Gaussian's information on u. c = 1: all runs are the
 * site's own.
 */
#ifndef PL_VALIDATION_SITE_RELATIVES_H
#define PL_VALIDATION_SITE_RELATIVES_H

#include "validation/fit/site_rows.h"

/* pl_site_posterior with `n` relatives, of whom `relatives` has the sums over runs. n_runs counts the site's own. */
pl_site pl_site_posterior_beside(const pl_site *prior, const pl_site_sums *own, const pl_site_sums *relatives,
                                 uint32_t n, double shared);

/* The shared part that makes the runs of all sources but `without` (UINT32_MAX: all) most likely, of tenths. Of a site
 * with more than 30 runs each counts less. */
pl_code pl_site_shared_take(const pl_site_rows *rows, uint32_t without, const pl_site *prior, pl_arena *arena,
                            double *shared, pl_error *error);

#endif
