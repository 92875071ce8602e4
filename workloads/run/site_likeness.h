/* How alike two configurations are: what the figures of a site leave over at one run says something of another that is
 * like it, and nothing of one that is not.
 *
 * exp(-d^2 / 2), d^2 the sum of squares of differences over their lengths: of the logarithms of the numbers below, and
 * 1 for a name that differs. Degrees, microbatch, model and names are known before anything is simulated, so a sweep
 * can ask of each of its candidates; where layers and ranks are put changes nothing.
 */
#ifndef PL_WORKLOADS_SITE_LIKENESS_H
#define PL_WORKLOADS_SITE_LIKENESS_H

#include "workloads/strategy/strategy.h"

/* clang-format off */
/* GPUs that work; FLOPs of a token; sequence; the strategy's. */
#define PL_LIKENESS_NUMBERS(X) X(gpus) X(size) X(seq) X(tmp) X(pp) X(cp) X(ep) X(vpp) X(mbs)
/* The first three are the same all over a site. */
#define PL_LIKENESS_NAMES(X) X(gpu) X(software) X(precision) X(recompute)
/* clang-format on */

typedef enum pl_likeness_axis {
#define PL_LIKENESS_ENUM(name) PL_LIKENESS_##name,
  PL_LIKENESS_NUMBERS(PL_LIKENESS_ENUM) PL_LIKENESS_N_NUMBERS,
  PL_LIKENESS_BEFORE_NAMES = PL_LIKENESS_N_NUMBERS - 1,
  PL_LIKENESS_NAMES(PL_LIKENESS_ENUM) PL_LIKENESS_COUNT
#undef PL_LIKENESS_ENUM
} pl_likeness_axis;
enum { PL_LIKENESS_N_NAMES = PL_LIKENESS_COUNT - PL_LIKENESS_N_NUMBERS };

extern const char *const pl_likeness_names[PL_LIKENESS_COUNT + 1]; /* "gpus"; NULL ends them */

typedef struct pl_configuration {
  double number[PL_LIKENESS_N_NUMBERS]; /* at least 1 */
  const char *name[PL_LIKENESS_N_NAMES];
} pl_configuration;

/* Of each axis, how far apart makes little alike. */
typedef struct pl_likeness {
  double length[PL_LIKENESS_COUNT];
} pl_likeness;

/* FLOPs of a token of the model, of a sample where a sample is none. As dear as the programs of its blocks. */
double pl_configuration_size(const pl_model *model, int64_t seq);
/* Of what is simulated on GPUs of the profile `gpu` (of several kinds: the platform's first). `size`: as
 * pl_configuration_size has it. Its names are those of profiles and types, and last as long as these. */
pl_configuration pl_configuration_of(const char *gpu, double size, const pl_job *job, const pl_strategy *strategy);

/* "bf16", "fp8": that of most products. */
const char *pl_configuration_precision(const pl_job *job);

/* The square of the distance along one axis, lengths left out. */
double pl_configuration_apart(const pl_configuration *a, const pl_configuration *b, int axis);
double pl_likeness_of(const pl_likeness *likeness, const pl_configuration *a, const pl_configuration *b);

#endif
