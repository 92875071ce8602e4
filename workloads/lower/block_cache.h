/* Blocks as candidates cut them, and what their ops take, kept from one simulation to the next.
 *
 * The strategies of a sweep cut the blocks of a model in few ways (a tensor degree, a microbatch size, a form of
 * recomputation), and run them on few kinds of devices: without this cache two fifths of the time of a sweep went into
 * the prices of the same products (GPT-3 175B, 128 A100, 64 sequences).
 *
 * What is found equals what would be made anew: programs are compared by all of the shard, prices by the programs and
 * the device profile that they are of. So results do not depend on what was simulated before.
 *
 * A cache belongs to one thread, as netmodel/collective/topology_cache.h, whose reasons hold here as well, and forgets
 * everything when it has grown beyond a limit.
 */
#ifndef PL_WORKLOADS_BLOCK_CACHE_H
#define PL_WORKLOADS_BLOCK_CACHE_H

#include "core/base/hash_index.h"
#include "workloads/lower/block_functions.h"
#include "workloads/lower/block_prices.h"

enum { PL_BLOCK_CACHE_BYTES = 1 << 23 }; /* the limit of a sweep's threads: some 400 shards of a GPT */
#define PL_BLOCK_CACHE_ALL SIZE_MAX      /* no limit (but of functions): what was handed out stays valid */

typedef struct pl_block_cache {
  pl_arena arena;
  size_t most_bytes;
  const pl_cluster *cluster; /* what the content holds for, with the model; NULL = nothing kept */
  const pl_model *model;
  pl_hash_index programs, prices, cuts;
  const struct pl_kept_programs *made; /* programs, the last ones first */
  pl_block_functions functions;
  int64_t flops_seq; /* sequence length of `flops`; 0: not counted yet */
  double flops;
  int64_t narrow_seq; /* likewise, of `narrow_share`, which holds for this type and NVFP4 or fp8 */
  double narrow_share;
  pl_dtype narrow_dtype;
  bool narrow_fp4;
  uint64_t n_found, n_made; /* for tests and curiosity */
} pl_block_cache;

/* Caller's storage; takes no memory yet. */
void pl_block_cache_init(pl_block_cache *cache, size_t most_bytes);
/* Safe on a zeroed or released cache. */
void pl_block_cache_release(pl_block_cache *cache);

/* To be called before the functions below, NULL is allowed: forgets what was kept if it is for another cluster or
 * model, or has grown beyond the limit. What they have handed out is valid until the next call that forgets. The device
 * profiles of the cluster, the model and the frameworks of the shards must be what they were. */
void pl_block_cache_begin(pl_block_cache *cache, const pl_cluster *cluster, const pl_model *model);
/* As pl_block_programs_take, which is what happens without a cache. */
pl_code pl_block_cache_programs(pl_block_cache *cache, const pl_model *model, const pl_block_shard *shard,
                                pl_arena *arena, const pl_block_program **blocks, pl_error *error);
/* As pl_block_prices_take, which is what happens without a cache; `blocks` must come from this cache since it began. */
pl_code pl_block_cache_prices(pl_block_cache *cache, const pl_model *model, const pl_block_program *blocks,
                              const pl_device_profile *profile, pl_arena *arena, const pl_block_prices **prices,
                              pl_error *error);

/* Layers balanced over chunks that all run on one kind of device (workloads/strategy/strategy_assign.c): the cut that
 * was kept of these blocks, which come from this cache since it began, and so many chunks; NULL: none. n_chunks + 1
 * numbers. */
const int32_t *pl_block_cache_cut(const pl_block_cache *cache, const pl_block_program *blocks, int32_t n_chunks);
/* Without a cache, and without memory, nothing is kept. */
void pl_block_cache_keep_cut(pl_block_cache *cache, const pl_block_program *blocks, int32_t n_chunks,
                             const int32_t *cut);

/* As pl_model_flops_per_sequence, which is what happens without a cache. */
double pl_block_cache_flops(pl_block_cache *cache, const pl_model *model, int64_t seq);
/* As pl_model_narrow_share, likewise. */
double pl_block_cache_narrow_share(pl_block_cache *cache, const pl_model *model, pl_dtype dtype, bool fp4, int64_t seq);

#endif
