/* What a prediction is made of, and how much each of it is in doubt: kinds, the half-width that calibration leaves to a
 * kernel or a collective, and how they are composed (workloads/run/interval.h says by which law). What simulations of
 * strategies (interval.h) and of programs (program_interval.h) share.
 */
#ifndef PL_WORKLOADS_DOUBTS_H
#define PL_WORKLOADS_DOUBTS_H

#include "netmodel/collective/collective.h"
#include "workloads/cost/op_cost.h"
#include "workloads/framework/job.h"
#include "workloads/run/residuals.h"
#include "workloads/strategy/strategy.h"

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
/* "120 to 141 s" after a prediction in the same unit, with three digits. */
enum { PL_INTERVAL_TEXT_BYTES = 64 };
const char *pl_interval_format(const pl_interval *interval, char text[PL_INTERVAL_TEXT_BYTES]);

/* ---- what a run is like ---- */

pl_aspects pl_aspects_of(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                         const pl_strategy *strategy);
/* One more, unless it is there already: "schedule" and "1f1b", or "experts" and "". */
void pl_aspects_add(pl_aspects *aspects, const char *what, const char *name);

/* ---- one kernel, one collective ---- */

typedef struct pl_doubt_of_one {
  pl_doubt kind;
  double residual; /* half-width of ln(measured / predicted); 0: it was measured */
} pl_doubt_of_one;

/* Of a kernel on a device, by where its time is from. `op` NULL: the optimizer's step, or the host's time if the
 * category says so. */
pl_doubt_of_one pl_doubt_of_kernel(const pl_residuals *residuals, const pl_device_profile *profile, const pl_op *op,
                                   pl_category category, pl_cost_source source);
/* Of a collective of `size_bytes` in a group; NULL: none prices it. Scratch from `arena`. */
pl_code pl_doubt_of_collective(const pl_residuals *residuals, const pl_collective_group *group, pl_collective_kind kind,
                               double size_bytes, pl_arena *arena, pl_doubt_of_one *found, pl_error *error);

/* ---- composition ---- */

/* In integers sums do not depend on the order: folded and unfolded runs agree. */
typedef unsigned __int128 pl_device_ticks;

typedef struct pl_doubts {
  pl_device_ticks sums[PL_DOUBT_COUNT]; /* of ticks * residual in millionths, over devices */
  pl_device_ticks busy;                 /* over devices, without what they idle */
} pl_doubts;

void pl_doubts_add(pl_doubts *doubts, pl_doubt_of_one of, pl_device_ticks time);
void pl_doubts_compose(const pl_doubts *doubts, const pl_residuals *residuals, const pl_aspects *aspects, double time_s,
                       pl_interval *interval);

#endif
