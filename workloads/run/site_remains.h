/* What a site's figures leave over, and how far it reaches: the discrepancy of Kennedy and O'Hagan (2001, "Bayesian
 * calibration of computer models").
 *
 *   ln(measured) = ln(simulated with the figures t) + d(configuration) + e
 *
 * d is a Gaussian process: 0 in the mean, of the variance v, and as much alike at two configurations as these are
 * (workloads/run/site_likeness.h). At the site's runs ("points") it is known to some extent, together with the figures;
 * a configuration near a run leans to what that run left, one far from all goes back to the figures alone. exp(d) is a
 * factor on a whole step and no physics: it has no cause, so no seconds of computing or communication are its own, and
 * whatever prints a time that it moved says by how much.
 *
 * Given its values at the points, d elsewhere depends on nothing else: with K the likeness among points and k that to
 * them, its mean is w . d(points), w = K^-1 k, and its variance v (1 - w . k) + w . D w.
 */
#ifndef PL_WORKLOADS_SITE_REMAINS_H
#define PL_WORKLOADS_SITE_REMAINS_H

#include "core/text/json_writer.h"
#include "workloads/run/site.h"
#include "workloads/run/site_likeness.h"

/* How much remains differs between sites: the standard deviation is one of these times `sd`. */
enum { PL_REMAINS_SCALES = 3, PL_REMAINS_POINTS = 64 };
extern const double pl_remains_scales[PL_REMAINS_SCALES];

typedef struct pl_site_remains {
  pl_likeness likeness;
  double sd, scale_weight[PL_REMAINS_SCALES]; /* their sum is 1 */
  uint32_t n;                                 /* points; of a prior 0 */
  const pl_configuration *points;
  const double *mean;       /* n, of ln(time) */
  const double *covariance; /* n * n */
  const double *figures;    /* n * PL_SITE_COUNT: covariance with the figures */
  const double *factor;     /* n * n: Cholesky's of K */
  bool is_elsewhere;        /* `figures` are those of a site's `elsewhere` */
} pl_site_remains;

/* v, far from all points. */
double pl_remains_variance(const pl_site_remains *remains);
/* Finds `factor`; `n` and `points` are there. PL_BAD_INPUT never: points that are too alike to tell apart count as
 * nearly alike. */
pl_code pl_remains_prepare(pl_site_remains *remains, pl_arena *arena, pl_error *error);

/* d at one configuration. */
typedef struct pl_remaining {
  double mean, variance; /* of ln(time) */
  double figures[PL_SITE_COUNT];
  double likeness;  /* to the point that it is most like; 0: there is none */
  uint32_t nearest; /* that point */
} pl_remaining;

/* Without remains (NULL) nothing, for certain. O(n^2). */
pl_remaining pl_remaining_at(const pl_site_remains *remains, const pl_configuration *at);

/* GPU, software and precision. */
enum { PL_SITE_NAMES = 3 };
/* "gpu H100-SXM5-80GB, software nemo": what of these is not that of the site, whose first point has its own; names that
 * are NULL are not asked about. Empty: nothing. Returns `text`. */
enum { PL_STRANGE_TEXT_BYTES = 256 };
const char *pl_remains_strange(const pl_site_remains *remains, const char *const name[PL_SITE_NAMES],
                               char text[PL_STRANGE_TEXT_BYTES]);
/* What acts there: the site, or where something is strange `elsewhere`, if that is told: figures that keep of the
 * site's what its owner's sites share, and doubt of the rest. */
const pl_site *pl_site_of(const pl_site *site, const char *const name[PL_SITE_NAMES]);

/* Of `size` (pl_simulate_options, remains_size), or of what is not known the model's. */
static inline double pl_remains_size(double size, const pl_model *model, int64_t seq) {
  return size > 0 ? size : pl_configuration_size(model, seq);
}

/* Far from all points; what has no configuration, such as a program, is there. */
pl_remaining pl_remaining_far(const pl_site_remains *remains);

/* "x1.030 (80 %: 1.00 to 1.06) by what the figures leave ..." */
enum { PL_REMAINING_TEXT_BYTES = 256 };
const char *pl_remaining_format(const pl_remaining *remaining, uint32_t n_points, char text[PL_REMAINING_TEXT_BYTES]);
/* "remains": factor, half_width (80 %, of its logarithm), runs, likeness; not_of_site where something is strange. */
void pl_remaining_json(pl_json *json, const pl_remaining *remaining, const pl_site_remains *remains,
                       const char *const name[PL_SITE_NAMES]);

#endif
