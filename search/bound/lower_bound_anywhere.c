/* What holds wherever a strategy is placed: see pl_lower_bound_anywhere in search/bound/lower_bound.h. */
#include <math.h>

#include "search/bound/lower_bound_parts.h"

/* Both passes of a block, seconds. */
static double pass_s(const pl_bound_blocks *blocks, int32_t block_class, uint32_t profile) {
  const pl_bound_pass *passes = blocks->passes[block_class];
  return pl_ticks_to_s(passes[PL_BOUND_FORWARD].compute[profile] + passes[PL_BOUND_BACKWARD].compute[profile]);
}

static double fastest_pass_s(const pl_lower_bounds *bounds, const pl_bound_blocks *blocks, int32_t block_class) {
  double least_s = INFINITY;
  for (uint32_t p = 0; p < bounds->cluster->n_profiles; p++)
    least_s = fmin(least_s, pass_s(blocks, block_class, p));
  return least_s;
}

/* At most so much of the work that the fastest devices do in a second, of any mixture of blocks. */
static double speed_of(const pl_lower_bounds *bounds, const pl_bound_blocks *blocks, uint32_t profile) {
  double speed = 0;
  for (int32_t c = 0; c < pl_model_n_classes(bounds->model); c++) {
    double own_s = pass_s(blocks, c, profile);
    if (own_s > 0) speed = fmax(speed, fastest_pass_s(bounds, blocks, c) / own_s);
  }
  return speed;
}

/* Of the `n` fastest devices together. */
static double capacity_of(const pl_lower_bounds *bounds, const pl_bound_blocks *blocks, uint32_t n) {
  const pl_cluster *cluster = bounds->cluster;
  double capacity = 0, below = INFINITY;
  while (n > 0) {
    double speed = -1;
    uint32_t n_like = 0;
    for (uint32_t p = 0; p < cluster->n_profiles; p++) {
      double own = speed_of(bounds, blocks, p);
      if (own < below) speed = fmax(speed, own);
    }
    if (speed <= 0) break;
    for (uint32_t d = 0; d < cluster->n_devices; d++)
      n_like += speed_of(bounds, blocks, cluster->devices[d].profile) == speed;
    n_like = n_like < n ? n_like : n;
    capacity += speed * n_like;
    n -= n_like;
    below = speed;
  }
  return capacity;
}

pl_code pl_lower_bound_anywhere(pl_lower_bounds *bounds, const pl_strategy *strategy, double *time_s, pl_error *error) {
  const pl_bound_blocks *blocks;
  PL_TRY(pl_bound_blocks_find(bounds, strategy, &blocks, error));
  int64_t n_microbatches = bounds->job->gbs / strategy->mbs;
  double work_s = 0, n_passes = (double)n_microbatches * pl_strategy_cp(strategy) * strategy->tmp;
  for (int32_t block = 0; block < pl_model_n_blocks(bounds->model); block++)
    work_s += fastest_pass_s(bounds, blocks, pl_model_block_class(bounds->model, block));
  double capacity = capacity_of(bounds, blocks, pl_strategy_n_ranks(strategy));
  *time_s = capacity > 0 ? n_passes * work_s / capacity * (1 - 1e-6) : 0;
  *time_s *= pl_bound_remains(bounds, strategy);
  return PL_OK;
}
