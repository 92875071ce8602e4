/* Runs of one owner's other GPUs and other software: what they say of a site beside its own.
 *
 * The figures of the owner's sites are t_j = m + u + v_gpu(j) + w_software(j) + x_precision(j) + z_j: a part that all
 * of them share, parts that those on one GPU, of one software and in one precision share, and each one's own. With S
 * the prior's covariance and a_k the share of its variance that kind k has,
 *
 *   cov(t_i, t_j) = c_ij S,  c_ij = sum of the a_k of what i and j have in common,  c_ii = 1
 *
 * so that every site is a draw from the prior, as it is alone, and two of one software on one GPU are more alike than
 * two that have only their owner in common. The scatter of runs is one for all of them. Exact for every scatter: all
 * sites of the owner are one Gaussian. Figures of n sites are 8 n unknowns: O(n^3) for each scatter.
 */
#ifndef PL_VALIDATION_SITE_RELATIVES_H
#define PL_VALIDATION_SITE_RELATIVES_H

#include "core/base/arena.h"
#include "validation/fit/site_posterior.h"

/* What a site has, by number: two with one number in common have that in common. */
typedef struct pl_site_kin {
  uint32_t of[PL_SITE_KINDS];
} pl_site_kin;

/* The sites of one owner, and room for what is made of their runs. */
typedef struct pl_site_family {
  uint32_t n;
  const pl_site_kin *kin;       /* of each */
  double *in_common, *inverse;  /* n * n: c, and its inverse */
  double *precision, *at, *one; /* of all figures of all sites: a square, and two of one line */
  pl_site_mixture *mixtures;    /* of each */
} pl_site_family;

/* `kin` stays the caller's. PL_NO_MEMORY alone. */
pl_code pl_site_family_take(const pl_site_kin *kin, uint32_t n, pl_arena *arena, pl_site_family *family,
                            pl_error *error);

/* pl_site_posterior of every site: sums[i] over the runs of site i, which may have none. n_runs counts a site's own.
 * The sum of `shared` is below 1. */
void pl_site_family_learn(const pl_site_family *family, const pl_site *prior, const pl_site_sums *sums,
                          const double shared[PL_SITE_KINDS], pl_site *sites);

/* The logarithm of the probability of all runs, but for what no share changes. */
double pl_site_family_evidence(const pl_site_family *family, const pl_site *prior, const pl_site_sums *sums,
                               const double shared[PL_SITE_KINDS]);

#endif
