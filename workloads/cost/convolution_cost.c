/* See workloads/cost/convolution_cost.h. */
#include "workloads/cost/convolution_cost.h"

#include <math.h>

#include "workloads/ir/chain.h"

enum { PARTS_MAX = 32, LEAST_DEPTH = 64, CHANNELS_STEP = 8 };

const pl_convolution_fit *pl_convolution_fit_for(const pl_device_profile *profile, pl_dtype dtype,
                                                 pl_convolution_pass pass) {
  for (uint32_t i = 0; i < profile->n_convolutions; i++)
    if (profile->convolutions[i].pass == pass && profile->convolutions[i].dtypes & 1u << dtype)
      return &profile->convolutions[i];
  return NULL;
}

pl_convolution_shape pl_convolution_shape_of(const pl_op *op) {
  const pl_chain_step *step = op->convolution;
  return (pl_convolution_shape){.m = (double)op->m,
                                .n = (double)op->n,
                                .k = (double)op->k,
                                .bytes = op->bytes,
                                .is_small = step->filter_height == 3 && step->filter_width == 3 && step->stride == 1,
                                .aligned =
                                    step->in.channels % CHANNELS_STEP == 0 && step->out.channels % CHANNELS_STEP == 0};
}

double pl_convolution_peak(const pl_device_profile *profile, pl_dtype dtype, bool aligned) {
  bool on_tensor_cores = dtype == PL_DTYPE_FP16 || dtype == PL_DTYPE_BF16;
  double peak = profile->peak_flops[dtype], plain = profile->peak_flops[PL_DTYPE_FP32];
  return on_tensor_cores && !aligned && plain > 0 && plain < peak ? plain : peak;
}

pl_convolution_time pl_convolution_time_of(const pl_device_profile *profile, const pl_convolution_fit *fit,
                                           pl_dtype dtype, const pl_convolution_shape *shape) {
  double rate =
      pl_convolution_peak(profile, dtype, shape->aligned) * (shape->is_small ? fit->efficiency_3x3 : fit->efficiency);
  double bandwidth = profile->bandwidth_Bps * fit->bandwidth_efficiency;
  double tiles = ceil(shape->m / fit->tile_m) * ceil(shape->n / fit->tile_n);
  double flops = 2 * tiles * fit->tile_m * fit->tile_n * shape->k;
  pl_convolution_time best = {.compute_s = INFINITY};
  for (int parts = 1; parts <= PARTS_MAX; parts *= 2) {
    if (parts > 1 && shape->k / parts < LEAST_DEPTH) break;
    double blocks = tiles * parts, idle = ceil(blocks / fit->multiprocessors) * fit->multiprocessors / blocks - 1;
    pl_convolution_time time = {
        .compute_s = flops / rate * (1 + fit->waves * idle) * (1 + fit->depth * parts / shape->k),
        .memory_s = (shape->bytes + (parts > 1 ? 8 * shape->m * shape->n * parts : 0)) / bandwidth,
        .overhead_s = fit->overhead_s};
    if (pl_convolution_seconds(&time) < pl_convolution_seconds(&best)) best = time;
  }
  return best;
}
