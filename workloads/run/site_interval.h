/* What a site says of a run: how its time moves with the figures, and how far it may lie from the prediction. */
#ifndef PL_WORKLOADS_SITE_INTERVAL_H
#define PL_WORKLOADS_SITE_INTERVAL_H

#include "workloads/run/simulate_program.h"
#include "workloads/run/site_remains.h"

/* Whether a figure has anything to act on in this job. */
bool pl_site_can_matter(const pl_cluster *cluster, const pl_job *job, int figure);
/* d ln(time) / d ln(factor), of the step d ln(time) / d seconds, by simulating once more with each factor PL_SITE_STEP
 * larger. `cluster` and `options` as the site has them, `strategy` with boundaries, `time_s` what they were simulated
 * to take, without what remains. Up to seven simulations. Memory is given back. */
pl_code pl_site_sensitivities_take(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                                   const pl_strategy *strategy, const pl_simulate_options *options, double time_s,
                                   pl_arena *arena, double x[PL_SITE_COUNT], pl_error *error);

/* The same of a program, which passed pl_ir_check; without an update there is no step. `options` with its recurrence.
 */
pl_code pl_site_sensitivities_of_program_take(const pl_cluster *cluster, const pl_ir_module *module,
                                              const pl_framework *framework, const pl_simulate_options *options,
                                              double time_s, pl_arena *arena, double x[PL_SITE_COUNT], pl_error *error);

/* The variance of ln(time) of a run with these sensitivities where this remains, without the scatter of runs. */
double pl_site_variance(const pl_site *site, const double x[PL_SITE_COUNT], const pl_remaining *remaining);
/* Half the width of the interval that holds 80 % of ln(time) of such runs. */
double pl_site_half_width(const pl_site *site, const double x[PL_SITE_COUNT], const pl_remaining *remaining);
/* That of a Gaussian of this variance and the site's scatter. */
double pl_site_half_of(const pl_site *site, double variance);
/* That as an interval around a prediction at the site; `half` says which figures it comes from, what remains and
 * scatter as PL_DOUBT_RUN. */
pl_interval pl_site_interval(const pl_site *site, const double x[PL_SITE_COUNT], const pl_remaining *remaining,
                             double time_s);

#endif
