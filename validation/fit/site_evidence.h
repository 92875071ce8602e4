/* How probable the runs of many sources are, each source's together, under what is believed of sites before any run;
 * and the slope of that, for validation/fit/site_prior.c to climb.
 */
#ifndef PL_VALIDATION_SITE_EVIDENCE_H
#define PL_VALIDATION_SITE_EVIDENCE_H

#include "validation/fit/site_posterior.h"

/* What is believed, as numbers without bounds. */
enum {
  PL_BELIEF_VARIANCE = 0,                                  /* logarithms, of the figures */
  PL_BELIEF_MEAN = PL_BELIEF_VARIANCE + PL_SITE_COUNT,     /* of the step the logarithm */
  PL_BELIEF_SCATTER = PL_BELIEF_MEAN + PL_SITE_COUNT,      /* logarithms of the weights, but for their sum */
  PL_BELIEF_SCALE = PL_BELIEF_SCATTER + PL_SITE_SCATTERS,  /* likewise */
  PL_BELIEF_REMAINS = PL_BELIEF_SCALE + PL_REMAINS_SCALES, /* logarithm of the standard deviation */
  PL_BELIEF_SHARED,                                        /* logit */
  PL_BELIEF_LENGTH,                                        /* logarithms */
  PL_BELIEF_COUNT = PL_BELIEF_LENGTH + PL_LIKENESS_COUNT
};

/* Runs that vary together. The logarithm of their probability counts `weight` times. */
typedef struct pl_evidence_group {
  const pl_site_run *const *runs;
  uint32_t n, source;
  double weight;
  double *apart[PL_LIKENESS_COUNT]; /* n * n: squares of distances */
} pl_evidence_group;

typedef struct pl_evidence {
  const pl_evidence_group *groups;
  uint32_t n_groups, without, n_threads; /* a source that is left out; UINT32_MAX: none */
  pl_arena *arena;                       /* for what a value needs while it is found */
  bool failed;                           /* no memory */
} pl_evidence;

/* From where the climb begins. */
void pl_belief_begin(double belief[PL_BELIEF_COUNT]);
/* As a site has it. */
void pl_belief_site(const double belief[PL_BELIEF_COUNT], pl_site *site, pl_site_remains *remains);
/* Minus the logarithm of probability of runs and beliefs, and its slope; `evidence` is a pl_evidence. */
double pl_evidence_against(const double *belief, double *slope, void *evidence);
/* Of one group alone, the logarithms of its probability under each size of what remains and each scatter, weights left
 * out. */
pl_code pl_evidence_of_group(const pl_evidence_group *group, const pl_site *site, const pl_site_remains *remains,
                             pl_arena *arena, double logs[PL_REMAINS_SCALES][PL_SITE_SCATTERS], pl_error *error);

#endif
