/* Fits the section "sustained" of a device profile: the share of its peak that tensor cores reach over seconds, at the
 * power limit (workloads/cost/op_cost.h), from whole training steps.
 *
 * Kernel timings cannot say it: they are over before the GPU is warm. Training steps can, if all else in them is known;
 * so taken are runs on one machine of the profile's GPU, where no network stands between. One parameter, on a grid of
 * 1 %; the loss is the mean absolute logarithm of predicted over measured. One run of five, by a hash of its
 * configuration, is kept out of the fit. Deterministic, whatever the number of threads.
 *
 * What the fit cannot tell apart: a lower clock, a slower library of the time of the runs, and products that a
 * framework makes and its profile does not list. Rejected: a factor on the time of every product, which leaves larger
 * residuals.
 */
#ifndef PL_VALIDATION_SUSTAINED_FIT_H
#define PL_VALIDATION_SUSTAINED_FIT_H

#include "core/cluster/device_profile.h"
#include "core/text/json_writer.h"
#include "validation/fit/kernel_fit.h"
#include "validation/rows/case.h"

enum { PL_SUSTAINED_RUNS_MIN = 10 };

typedef struct pl_sustained_fit {
  double compute;               /* of peak; 1: the runs show no limit */
  pl_fit_error without, fitted; /* rows of the fit, without the term and with it */
  pl_fit_error without_out, held_out;
  double bias_without, bias_fitted; /* median of predicted / measured - 1 over all of them */
} pl_sustained_fit;

/* Simulates the timed cases on one machine of `base`'s GPU again and again; the others get a reason and are left alone.
 * `profile`: the file of `base`, copied with other shares into a folder of temporary files. Fewer than
 * PL_SUSTAINED_RUNS_MIN such cases: PL_BAD_INPUT. */
pl_code pl_sustained_fit_take(pl_cases *cases, const char *profile, const pl_device_profile *base,
                              const pl_case_options *options, pl_arena *arena, pl_sustained_fit *fit, pl_error *error);

/* For a GPU without such runs: as much less than what its fit of matrix products says of one of 16,384 cubed as on
 * `relative`, which has both. Products of that size run for milliseconds, so that their timings already have part of
 * the power limit in them, more on some GPUs than on others. PL_BAD_INPUT where either lacks what it takes. */
pl_code pl_sustained_transfer(const pl_device_profile *device, const pl_device_profile *relative, double *compute,
                              pl_error *error);

/* {"compute": 0.63}; `content` is the double. */
void pl_sustained_section_write(pl_json *json, const void *content);

#endif
