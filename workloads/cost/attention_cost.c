/* See workloads/cost/attention_cost.h. */
#include "workloads/cost/attention_cost.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

static const double helper_bytes = 14;

enum { HEAD_STEP = 32 }; /* kernels are built for head sizes in such steps and pad in between */

const pl_attention_profile *pl_attention_choose(const pl_device_profile *profile, pl_attention_kernel kernel) {
  const pl_attention_profile *best = profile->n_attention > 0 ? profile->attention : NULL;
  if (kernel == PL_ATTENTION_ANY) return best;
  for (uint32_t i = 1; i < profile->n_attention; i++) {
    const pl_attention_profile *other = &profile->attention[i];
    if (abs((int)other->kernel - (int)kernel) < abs((int)best->kernel - (int)kernel)) best = other;
  }
  return best;
}

static double efficiency_of(const pl_attention_profile *attention, double head_size) {
  const double *size = attention->head_size, *efficiency = attention->efficiency;
  uint32_t last = attention->n_head_sizes - 1, i = 0;
  if (head_size <= size[0]) return efficiency[0] * head_size / size[0];
  if (head_size >= size[last]) return efficiency[last];
  while (head_size > size[i + 1])
    i++;
  double share = (head_size - size[i]) / (size[i + 1] - size[i]);
  return efficiency[i] + share * (efficiency[i + 1] - efficiency[i]);
}

/* Keys that a query tile may see at most: the window and the tile's own width where there is a window, all keys
 * without. The window w of m w - w^2 / 2 pairs is m - sqrt(m^2 - 2 pairs). */
static double longest_reach(const pl_attention_profile *attention, const pl_attention_shape *shape) {
  double tile = attention->key_tile, all = ceil(shape->keys / tile) * tile;
  double rest = shape->queries * shape->queries - 2 * shape->pairs;
  if (shape->queries != shape->keys || rest <= 0.5 * shape->queries) return all;
  double window = shape->queries - sqrt(rest);
  return fmin(all, ceil((window + attention->query_tile) / tile) * tile);
}

/* Sum of keys over the query tiles of one head, whole key tiles: tile i of a causal square sees (i + 1) query tiles,
 * at most `reach`, the last tile at most all keys. */
static double causal_keys(const pl_attention_profile *attention, const pl_attention_shape *shape, double tiles,
                          double reach) {
  double growing = fmin(tiles - 1, floor(reach / attention->query_tile));
  double all = ceil(shape->keys / attention->key_tile) * attention->key_tile;
  return attention->query_tile * growing * (growing + 1) / 2 + (tiles - 1 - growing) * reach + fmin(all, reach);
}

/* max(w, W / multiprocessors + tail), in keys. */
static double busy_keys(const pl_attention_profile *attention, const pl_attention_shape *shape, double prologue) {
  double tiles = ceil(shape->queries / attention->query_tile), blocks = shape->heads * tiles;
  double reach = longest_reach(attention, shape);
  double fraction = shape->pairs / (shape->queries * shape->keys);
  if (fraction > 0.75) return ceil(blocks / attention->multiprocessors) * (reach + prologue);
  double keys = shape->queries == shape->keys
                    ? causal_keys(attention, shape, tiles, reach)
                    : tiles * ceil(shape->keys * fraction / attention->key_tile) * attention->key_tile;
  double mean = keys / tiles + prologue;
  double queued = blocks / attention->multiprocessors * mean;
  if (blocks > attention->multiprocessors) queued += attention->tail * mean;
  return fmax(reach + prologue, queued);
}

/* Rounds of thread blocks times their key tiles, over an even share of all of them. */
static double uneven_shares(const pl_attention_profile *attention, const pl_attention_shape *shape) {
  if (!shape->backward || !shape->deterministic || attention->kernel != PL_ATTENTION_FLASH2) return 1;
  enum { KEY_TILE = 128 };
  double tiles = ceil(shape->keys / KEY_TILE), shares = ceil(attention->multiprocessors / shape->heads);
  double rounds = ceil(shape->heads * shares / attention->multiprocessors);
  return fmax(1, rounds * ceil(tiles / shares) * attention->multiprocessors / (shape->heads * tiles));
}

pl_attention_time pl_attention_time_of(const pl_attention_profile *attention, double peak_flops, double bandwidth_Bps,
                                       const pl_attention_shape *shape) {
  double head_size = ceil(shape->head_size / HEAD_STEP) * HEAD_STEP;
  double per_key = 4 * attention->query_tile * head_size * attention->multiprocessors /
                   (peak_flops * efficiency_of(attention, head_size));
  bool backward = shape->backward;
  double keys = busy_keys(attention, shape, backward ? attention->backward_prologue_keys : attention->prologue_keys);
  return (pl_attention_time){
      .compute_s = keys * per_key * (backward ? attention->backward_ratio : 1) * uneven_shares(attention, shape),
      .memory_s = shape->bytes / bandwidth_Bps,
      .helpers_s = backward ? helper_bytes * shape->heads * shape->queries * shape->head_size / bandwidth_Bps : 0,
      .overhead_s = backward ? attention->backward_overhead_s : attention->overhead_s};
}
