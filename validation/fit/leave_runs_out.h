/* What a few measured runs of a site are worth: of every group of rows with PL_LEAVE_LEAST and more, k runs are learnt
 * from and the others predicted, with a prior that has seen nothing of their source. Linear in the figures around the
 * prediction without a site (validation/fit/site_posterior.h). */
#ifndef PL_VALIDATION_LEAVE_RUNS_OUT_H
#define PL_VALIDATION_LEAVE_RUNS_OUT_H

#include "validation/fit/site_rows.h"

enum { PL_LEAVE_LEAST = 6, PL_LEAVE_DRAWS = 40, PL_LEAVE_SIZES = 5 };
extern const uint32_t pl_leave_sizes[PL_LEAVE_SIZES]; /* 0, 1, 2, 3, 5 */

/* Over groups, each the same weight: mean and median of their mean errors, per cent; and how many runs of 100 lie in
 * their intervals. */
typedef struct pl_left_out {
  double mape_pct, median_pct, coverage_pct;
} pl_left_out;

typedef struct pl_leaving {
  uint32_t n_groups;
  pl_left_out random[PL_LEAVE_SIZES];    /* runs drawn by chance, PL_LEAVE_DRAWS times; the first is without a site */
  pl_left_out suggested[PL_LEAVE_SIZES]; /* as pl_site_suggest chooses them */
} pl_leaving;

/* Groups are sites; sources, taken for one site whatever they ran on; or sources whose sites are relatives
 * (validation/fit/site_relatives.h), each run predicted at its own, with a shared part that has seen nothing of the
 * source either. */
typedef enum pl_leave_by { PL_LEAVE_BY_SITE = 0, PL_LEAVE_BY_SOURCE, PL_LEAVE_BY_RELATIVES } pl_leave_by;

/* `prior` is that of all sources: each group's is found from it. The same numbers every time. */
pl_code pl_leave_runs_out(const pl_site_rows *rows, pl_leave_by by, const pl_site *prior, pl_arena *arena,
                          pl_leaving *leaving, pl_error *error);

#endif
