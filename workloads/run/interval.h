/* Prediction interval of an iteration time: the range in which 80 % of such runs are expected, composed from what
 * calibration leaves over (workloads/run/residuals.h) of that which the prediction is made of.
 *
 * With s_k the share of kind k in the time that devices are busy (a pipeline's bubble is others' time, and grows with
 * it in proportion: it is left out of the whole), a small error e_k of kind k moves ln(time) by s_k e_k. Inside a kind
 * errors go together: all products of a run are of one device, one library and a dozen shapes, so that a fit's bias
 * does not average out. Kinds are measured and fitted apart: independent. So, of half-widths of the logarithm,
 *
 *   half^2 = sum over kinds (sum over the kind's ops of their share * their residual)^2 + run^2 + source^2 (1 + u)
 *
 * A device's tensor communication is divided among its tensor collectives as their times alone: of those that are
 * parts of fused passes the run knows only the sum, and fusing and folding must not show.
 *
 * run: what calibration's training runs scatter beyond their kinds; source: what lies between runs of different people
 * on different machines; u: how many aspects this run has that none of those had (pl_aspects). A table entry of a
 * profile is a measurement on that very device and adds nothing; nor does a layer of an op profile at the point at
 * which it was measured. The interval is
 *
 *   time * exp(centre - half) .. time * exp(centre + half)
 *
 * where the centre is the bias of the predictions on calibration's training runs. It moves the interval and not the
 * prediction: a prediction is the sum of what is understood, and a factor on it without a cause would be carried into
 * comparisons between strategies, where it does not belong.
 *
 * Rejected: adding up half-widths (kinds as dependent: twice too wide on calibration's runs), and independence between
 * the ops of a kind (half-widths would vanish with the number of layers).
 */
#ifndef PL_WORKLOADS_INTERVAL_H
#define PL_WORKLOADS_INTERVAL_H

#include "workloads/run/doubts.h"
#include "workloads/run/explanation.h"

/* Of a run that was explained with charges recorded. Scratch from `arena`. O(classes * ops). */
pl_code pl_interval_take(const pl_explanation *explanation, const pl_residuals *residuals, pl_arena *arena,
                         pl_interval *interval, pl_error *error);

#endif
