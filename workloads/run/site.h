/* A site: what a machine room and its software make of the times that profiles promise, in a handful of physical
 * figures. Each but the last is the logarithm of a factor on time, 0 where nothing is known:
 *
 *   compute          matrix products and attention: the share of the peak that is sustained
 *   memory           memory-bound kernels: the share of the memory bandwidth
 *   host             what the framework's host takes per launch, call and layer
 *   inside_rate      bytes inside nodes, inside_latency: launches, steps and wires there
 *   between_rate     bytes between nodes, between_latency: likewise
 *   step             seconds that every step takes beyond what is simulated
 *
 * and, beside time, device memory that no tensor accounts for. Where they come from: `paceline calibrate --runs` and
 * validation/SITES.md. They act on what a simulation is made from (peaks and bandwidths of the devices,
 * links, the collective profile's launches and steps, the framework's host), so that sharing, overlap, pipelines and
 * search see them as they see any other machine. What is measured on the very machine (op profiles, tables of ops) is
 * not touched.
 *
 * What these figures leave over at a site's runs is told apart from them (workloads/run/site_remains.h).
 *
 * What is not known for certain is a Gaussian: mean and covariance of the figures, and a scatter of ln(time) around
 * what they say, whose standard deviation is one of PL_SITE_SCATTERS values with a probability each.
 */
#ifndef PL_WORKLOADS_SITE_H
#define PL_WORKLOADS_SITE_H

#include "core/cluster/cluster.h"
#include "netmodel/collective/collective_profile.h"
#include "workloads/framework/framework.h"

/* clang-format off */
#define PL_SITE_FIGURES(X) \
  X(compute) X(memory) X(host) X(inside_rate) X(inside_latency) X(between_rate) X(between_latency) X(step)
/* clang-format on */

typedef enum pl_site_figure {
#define PL_SITE_ENUM(name) PL_SITE_##name,
  PL_SITE_FIGURES(PL_SITE_ENUM)
#undef PL_SITE_ENUM
      PL_SITE_COUNT
} pl_site_figure;

extern const char *const pl_site_figure_names[PL_SITE_COUNT + 1]; /* "between_rate"; NULL ends them */

/* How far a logarithm is moved to see what it does: by 10 %. */
#define PL_SITE_STEP 0.0953
enum { PL_SITE_SCATTERS = 8 };
/* Standard deviations that hold 80 % of a Gaussian. */
#define PL_SITE_HALF 1.2816
extern const double pl_site_scatters[PL_SITE_SCATTERS];

typedef struct pl_site {
  double mean[PL_SITE_COUNT];
  double covariance[PL_SITE_COUNT][PL_SITE_COUNT];
  double scatter_weight[PL_SITE_SCATTERS]; /* of each standard deviation; their sum is 1 */
  double shared;                           /* of a prior: the part of its variance that an owner's sites share */
  double degrees;                          /* of a prior: of Student's t, by which a run may be odd; 0: none is */
  double memory_bytes;                     /* beside the tensors; negative: less than the framework's profile has */
  double memory_sd_bytes, memory_scatter_bytes; /* of that; and of a run's peak around it */
  double memory_degrees; /* of a prior: how well that scatter is known; 0: for certain (validation/fit/site_memory.h) */
  uint32_t n_runs, n_peaks;              /* that it was learnt from; 0: what is known before any run */
  const struct pl_site_remains *remains; /* workloads/run/site_remains.h; NULL: the figures leave nothing */
  const struct pl_site *elsewhere; /* the owner's next GPU, software or precision, of which there is no run; NULL: not
                                      told, see workloads/run/site_remains.h */
  uint64_t digest;                 /* of the file */
} pl_site;

/* What a simulation is made from, at a site. */
typedef struct pl_site_view {
  const pl_cluster *cluster;
  const pl_collective_profile *collectives; /* NULL stays NULL */
} pl_site_view;

/* `cluster` and `collectives` as the site has them, in `arena`; what does not change is the given one. Both must
 * outlive the view. PL_BAD_INPUT: a device profile with times of single ops has no peak to vary. O(links + devices). */
pl_code pl_site_view_take(const pl_site *site, const pl_cluster *cluster, const pl_collective_profile *collectives,
                          pl_arena *arena, pl_site_view *view, pl_error *error);
/* A framework whose host is as the site has it. Of the ideal one (no host times) only the constant per step remains. */
pl_framework pl_site_framework(const pl_site *site, const pl_framework *framework);

#endif
