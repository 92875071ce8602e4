/* What a few measured runs of a site are worth: of every group of rows with PL_LEAVE_LEAST and more, k runs are learnt
 * from and the others predicted, with a prior that has seen nothing of their source. Linear in the figures around the
 * prediction without a site (validation/fit/site_posterior.h). */
#ifndef PL_VALIDATION_LEAVE_RUNS_OUT_H
#define PL_VALIDATION_LEAVE_RUNS_OUT_H

#include "validation/fit/site_prior.h"

enum { PL_LEAVE_LEAST = 6, PL_LEAVE_DRAWS = 40, PL_LEAVE_SIZES = 5, PL_LEAVE_OF_EACH = 3 };
extern const uint32_t pl_leave_sizes[PL_LEAVE_SIZES]; /* 0, 1, 2, 3, 5 */

/* Over groups, each the same weight: mean and median of their mean errors, per cent; how many runs of 100 lie in their
 * intervals; and over the groups in which something can be chosen among two and more runs of one model on as many of
 * the same GPUs, how much longer the run takes that is predicted to be fastest than the fastest, per cent; without the
 * site, of the same runs. */
typedef struct pl_left_out {
  double mape_pct, median_pct, coverage_pct, regret_pct, regret_without_pct;
} pl_left_out;

/* One group with PL_LEAVE_OF_EACH runs known: mean errors without the site and at it, by random runs and by suggested
 * ones (NaN: none are suggested), per cent. */
typedef struct pl_left_out_one {
  uint32_t source, n_configurations;
  double without_pct, random_pct, suggested_pct;
} pl_left_out_one;

typedef struct pl_leaving {
  uint32_t n_groups, n_choosing;
  const pl_left_out_one *groups;         /* the largest errors by random runs first */
  pl_left_out random[PL_LEAVE_SIZES];    /* runs drawn by chance, PL_LEAVE_DRAWS times; the first is without a site */
  pl_left_out suggested[PL_LEAVE_SIZES]; /* as pl_site_suggest chooses them */
} pl_leaving;

/* Groups are sites; sources, of which each site has so many runs known (but one); or sources, of which so many are
 * known whatever they ran on. A source's sites are relatives: each run is predicted at its own. */
typedef enum pl_leave_by { PL_LEAVE_BY_SITE = 0, PL_LEAVE_BY_RELATIVES, PL_LEAVE_BY_SOURCE } pl_leave_by;

/* The prior of each source that a group is of, by its number, which has seen nothing of that source. */
pl_code pl_leave_priors_take(const pl_site_rows *rows, pl_site_prior *prior, uint32_t n_threads, pl_arena *arena,
                             const pl_site **priors, pl_error *error);
/* The same numbers every time. */
pl_code pl_leave_runs_out(const pl_site_rows *rows, pl_leave_by by, const pl_site *priors, pl_arena *arena,
                          pl_leaving *leaving, pl_error *error);

#endif
