/* What training runs that calibration may use leave over, end to end: the entries run and source, the centre, and what
 * these runs have in common with others.
 *
 * r = ln(measured / predicted) of a run is taken apart. Runs of one family on one type of GPU are a group, with the
 * median m_g of theirs.
 *
 *   centre  mean of the m_g: the bias that a new group is expected to have
 *   source  how far a new group lies from the centre: t * s * sqrt(1 + 1/G), with s the standard deviation of the m_g
 * of G groups and t Student's 90th percentile for G - 1 degrees of freedom, since s is itself known from G values only
 *   run     inside a group: the least h such that |r - m_g| <= sqrt(k^2 + h^2) for 80 % of the runs, where k is the
 *           half-width that the run's own kinds of doubt come to; each group has the same weight. What kinds explain is
 *           not counted twice.
 */
#ifndef PL_VALIDATION_TRAINING_RESIDUALS_H
#define PL_VALIDATION_TRAINING_RESIDUALS_H

#include "validation/rows/case.h"

/* Of cases that were simulated with `residuals`, whose entries run and source are not looked at and then filled.
 * PL_BAD_INPUT with fewer than two groups of ten. */
pl_code pl_training_residuals_take(const pl_cases *cases, pl_arena *arena, pl_residuals *residuals, pl_error *error);

#endif
