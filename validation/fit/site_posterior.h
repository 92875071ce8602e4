/* A site's figures from measured steps (workloads/run/site.h), and what they leave (workloads/run/site_remains.h):
 * Bayes on Gaussians.
 *
 * The logarithm of a run's time is taken as linear in the figures t around those that it was simulated with:
 *
 *   y = ln(measured / predicted) + x . t0 = x . t + d(configuration) + e,    t ~ N(m, S),   e ~ N(0, s^2)
 *
 * with x the run's sensitivities, m and S the prior, d what remains, a Gaussian process, and s one of PL_SITE_SCATTERS
 * values, of which the prior knows how often sites have each; runs that agree make small ones likely, others large
 * ones. So is the size of d one of PL_REMAINS_SCALES. For every s and size all is a Gaussian, exactly: runs i and k
 * vary together by x_i . S x_k and by how alike they are. These are mixed by their probability given the runs. A figure
 * that moves no run keeps its prior. The constant of a step is not negative: where the runs would have it so, it is 0
 * and the others make up for it.
 *
 * A run may be odd: where the prior has `degrees`, e is of Student's t with so many and scale s, as a Gaussian whose
 * precision is a draw for each run (variational Bayes, a few rounds). What is far from all others' word then moves
 * little. Prior and intervals are of Gaussians still.
 *
 * Relatives are runs of one owner's other GPUs and other software ("parts"). Their figures are t_j = u + v_j, u shared
 * and v_j each one's own: of the prior's variance they share the part `prior->shared`. What remains knows of parts by
 * the names of configurations.
 */
#ifndef PL_VALIDATION_SITE_POSTERIOR_H
#define PL_VALIDATION_SITE_POSTERIOR_H

#include "workloads/run/site_remains.h"

enum { PL_SITE_RUNS = 512 }; /* that a posterior is of, at most: O(n^3) */

typedef struct pl_site_run {
  double y;
  double x[PL_SITE_COUNT];
  pl_configuration at;
  uint32_t part; /* of the runs of one owner; 0 where all are of one site */
} pl_site_run;

/* What runs tell. */
typedef struct pl_site_knowledge pl_site_knowledge;

/* Of `n` runs (of more than PL_SITE_RUNS so many, evenly spaced), which must outlive it. All in `arena`. */
pl_code pl_site_learn(const pl_site *prior, const pl_site_run *const *runs, uint32_t n, pl_arena *arena,
                      pl_site_knowledge **knowledge, pl_error *error);
/* ln(time / time without a site) of another run: its middle; and its variance, beside the scatter of runs. */
double pl_site_predict(const pl_site_knowledge *knowledge, const pl_site_run *run, double *variance);
/* How probable each scatter of runs is now. */
const double *pl_site_scatter_known(const pl_site_knowledge *knowledge);
/* The site of `part` as a file has it: figures and what remains together, with `prior`'s memory. Of more runs than a
 * file has points for, those far apart. n_runs counts the part's. */
pl_code pl_site_posterior(const pl_site_knowledge *knowledge, uint32_t part, pl_arena *arena, pl_site *site,
                          pl_error *error);

/* Of `n` runs that could be made those `n_chosen` that leave least doubt, one after the other: each is the one that
 * most lowers the sum of the variances of the first `n_targets` of them, figures and what remains together. chosen[]
 * holds their indices, variance[n_chosen * n_targets] those of the targets once the runs up to each are known (NULL:
 * nobody asks). *found: fewer if there are not as many. */
pl_code pl_site_suggest(const pl_site *prior, const pl_site_run *candidates, uint32_t n, uint32_t n_targets,
                        uint32_t n_chosen, pl_arena *arena, uint32_t *chosen, double *variance, uint32_t *found,
                        pl_error *error);

/* How two runs vary together by the prior's figures; what remains is as much as its mean size. */
double pl_site_together(const pl_site *prior, const pl_site_run *a, const pl_site_run *b);

#endif
