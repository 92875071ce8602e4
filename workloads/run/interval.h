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

#include "workloads/run/explanation.h"
#include "workloads/run/residuals.h"

/* Kinds of doubt; what is in one goes together. */
typedef enum pl_doubt {
  PL_DOUBT_GEMM = 0,
  PL_DOUBT_ATTENTION,
  PL_DOUBT_KERNELS, /* memory-bound, the optimizer's too */
  PL_DOUBT_HOST,
  PL_DOUBT_OVERLAP,
  PL_DOUBT_NVLINK,  /* communication inside nodes */
  PL_DOUBT_PCIE,    /* likewise, without NVLink */
  PL_DOUBT_NETWORK, /* between nodes */
  PL_DOUBT_IDEAL,   /* communication that no entry of the collective profile prices */
  PL_DOUBT_RUN,
  PL_DOUBT_SOURCE,
  PL_DOUBT_COUNT
} pl_doubt;

extern const char *const pl_doubt_names[PL_DOUBT_COUNT]; /* "matrix products" */

enum { PL_ASPECTS_MAX = 12, PL_ASPECT_BYTES = 48 };

/* What a run is like beyond its kernels: "framework nanotron", "architecture hopper", "schedule interleaved", "tensor
 * parallelism" ... */
typedef struct pl_aspects {
  char text[PL_ASPECTS_MAX][PL_ASPECT_BYTES];
  uint32_t n;
} pl_aspects;

typedef struct pl_interval {
  double low_s, high_s;
  double half[PL_DOUBT_COUNT]; /* of ln(time) */
  pl_aspects unseen;
} pl_interval;

/* No interval: NaN. */
pl_interval pl_interval_none(void);

pl_aspects pl_aspects_of(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                         const pl_strategy *strategy);

/* Of a run that was explained with charges recorded. Scratch from `arena`. O(classes * ops). */
pl_code pl_interval_take(const pl_explanation *explanation, const pl_residuals *residuals, pl_arena *arena,
                         pl_interval *interval, pl_error *error);

/* "120 to 141 s" after a prediction in the same unit, with three digits. */
enum { PL_INTERVAL_TEXT_BYTES = 64 };
const char *pl_interval_format(const pl_interval *interval, char text[PL_INTERVAL_TEXT_BYTES]);

#endif
