/* See workloads/cost/gemm_cost.h. */
#include "workloads/cost/gemm_cost.h"

#include <math.h>
#include <stddef.h>

enum { SPLIT_K_LEAST = 64, SPLIT_WAVES_MOST = 4 };

typedef struct tile {
  int32_t m, n;
  pl_gemm_tile kind;
} tile;

static const tile tiles[] = {
    {256, 128, PL_GEMM_TILE_256X128}, {128, 256, PL_GEMM_TILE_256X128}, {128, 128, PL_GEMM_TILE_128X128},
    {128, 64, PL_GEMM_TILE_128X64},   {64, 128, PL_GEMM_TILE_128X64},   {256, 64, PL_GEMM_TILE_128X64},
    {64, 256, PL_GEMM_TILE_128X64},   {64, 64, PL_GEMM_TILE_64X64},
};
static const int32_t splits[] = {1, 2, 3, 4, 6, 8, 12, 16};

const pl_gemm_fit *pl_gemm_fit_for(const pl_device_profile *profile, pl_dtype dtype) {
  if (profile->peak_flops[dtype] <= 0) return NULL;
  for (uint32_t i = 0; i < profile->gemm.n_fits; i++)
    if (profile->gemm.fits[i].dtypes & 1u << dtype) return &profile->gemm.fits[i];
  return NULL;
}

double pl_gemm_least_bytes(const pl_gemm_shape *shape) {
  double m = (double)shape->m, n = (double)shape->n, k = (double)shape->k, size = pl_dtype_bytes(shape->dtype);
  return (double)shape->batch * (size * (m * k + k * n) + fmax(size, 2) * m * n);
}

int pl_gemm_alignment_of(const pl_gemm_shape *shape) {
  int64_t extents = shape->n | (shape->transposed ? shape->m : shape->k);
  double bytes = (double)(extents & -extents) * pl_dtype_bytes(shape->dtype);
  return bytes >= 16 ? -1 : bytes >= 4 ? PL_GEMM_ALIGNED_4 : PL_GEMM_ALIGNED_2;
}

/* ---- the formula ---- */

/* What does not depend on tile and split. */
typedef struct job {
  const pl_gemm_fit *fit;
  const pl_gemm_shape *shape;
  double multiprocessors, element_bytes;
  double flops_rate;     /* peak of one multiprocessor */
  double unaligned_time; /* 1: aligned */
  double memory_s, split_memory_s;
} job;

static double ceil_div(int64_t value, int64_t by) {
  int64_t parts = (value + by - 1) / by;
  return (double)parts;
}

static double norm4(double a, double b, double c) {
  double a2 = a * a, b2 = b * b, c2 = c * c;
  return sqrt(sqrt(a2 * a2 + b2 * b2 + c2 * c2));
}

static pl_gemm_time time_of(const job *j, const tile *t, double blocks, int32_t split) {
  double k = ceil_div(j->shape->k, split), all = blocks * split, q = j->fit->wave_quantisation;
  double waves = fmax(1, (1 - q) * all / j->multiprocessors + q * ceil(all / j->multiprocessors));
  double block_s = 2.0 * t->m * t->n * k / (j->flops_rate * j->fit->tile_efficiency[t->kind]) * j->unaligned_time;
  double compute_s = waves * (block_s + j->fit->tile_overhead_s);
  double memory_s = j->memory_s + (split > 1 ? split * j->split_memory_s : 0);
  double cache_s = all * (t->m + t->n) * k * j->element_bytes / j->fit->cache_rate_Bps;
  double overhead_s = j->fit->overhead_s + (split > 1 ? j->fit->split_overhead_s : 0);
  return (pl_gemm_time){.time_s = overhead_s + norm4(compute_s, memory_s, cache_s),
                        .compute_s = compute_s,
                        .memory_s = fmax(memory_s, cache_s),
                        .overhead_s = overhead_s};
}

/* The best split of one tile into *best. */
static void try_tile(const job *j, const tile *t, pl_gemm_time *best) {
  double blocks = (double)j->shape->batch * ceil_div(j->shape->m, t->m) * ceil_div(j->shape->n, t->n);
  for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
    int32_t split = splits[i];
    if (split > 1 && (j->shape->k < SPLIT_K_LEAST * split || blocks * split > SPLIT_WAVES_MOST * j->multiprocessors))
      return;
    pl_gemm_time time = time_of(j, t, blocks, split);
    if (time.time_s < best->time_s) *best = time;
  }
}

pl_gemm_time pl_gemm_formula(const pl_device_profile *profile, const pl_gemm_fit *fit, const pl_gemm_shape *shape) {
  double bandwidth_Bps = profile->bandwidth_Bps * fit->memory_efficiency;
  int alignment = pl_gemm_alignment_of(shape);
  job j = {.fit = fit,
           .shape = shape,
           .multiprocessors = profile->gemm.multiprocessors,
           .element_bytes = pl_dtype_bytes(shape->dtype),
           .flops_rate = profile->peak_flops[shape->dtype] / profile->gemm.multiprocessors,
           .unaligned_time = alignment < 0 ? 1 : fit->unaligned_time[alignment],
           .memory_s = fmax(shape->bytes, pl_gemm_least_bytes(shape)) / bandwidth_Bps,
           .split_memory_s = 8.0 * (double)shape->batch * (double)shape->m * (double)shape->n / bandwidth_Bps};
  pl_gemm_time best = {.time_s = INFINITY};
  for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++)
    try_tile(&j, &tiles[i], &best);
  return best;
}

/* ---- the residual ---- */

pl_gemm_knots pl_gemm_residual_knots(const pl_gemm_residual *residual, const pl_gemm_shape *shape) {
  double at[3] = {log2((double)shape->m * (double)shape->batch), log2((double)shape->n), log2((double)shape->k)};
  uint32_t low[3], n[3];
  double part[3];
  for (int i = 0; i < 3; i++) {
    n[i] = (uint32_t)(residual->last[i] - residual->first[i] + 1);
    double x = fmin(fmax(at[i] - residual->first[i], 0), n[i] - 1);
    low[i] = x >= n[i] - 1 ? n[i] - 2 : (uint32_t)x;
    part[i] = x - low[i];
  }
  pl_gemm_knots knots;
  for (uint32_t corner = 0; corner < 8; corner++) {
    double weight = 1;
    uint32_t index = 0;
    for (int i = 0; i < 3; i++) {
      uint32_t high = corner >> i & 1;
      weight *= high ? part[i] : 1 - part[i];
      index = index * n[i] + low[i] + high;
    }
    knots.at[corner] = index;
    knots.weight[corner] = weight;
  }
  return knots;
}

static double residual_factor(const pl_gemm_residual *residual, const pl_gemm_shape *shape) {
  if (residual->milli == NULL) return 1;
  pl_gemm_knots knots = pl_gemm_residual_knots(residual, shape);
  double milli = 0;
  for (int i = 0; i < 8; i++)
    milli += knots.weight[i] * residual->milli[knots.at[i]];
  return exp(milli * 1e-3);
}

pl_gemm_time pl_gemm_cost(const pl_device_profile *profile, const pl_gemm_fit *fit, const pl_gemm_shape *shape) {
  pl_gemm_time time = pl_gemm_formula(profile, fit, shape);
  double flops = 2 * (double)shape->batch * (double)shape->m * (double)shape->n * (double)shape->k;
  double bytes = fmax(shape->bytes, pl_gemm_least_bytes(shape));
  double least_s = fmax(flops / profile->peak_flops[shape->dtype], bytes / profile->bandwidth_Bps);
  time.time_s = fmax(time.time_s * residual_factor(&fit->residual, shape), least_s);
  return time;
}
