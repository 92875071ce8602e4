/* See workloads/lower/block_cache.h. */
#include "workloads/lower/block_cache.h"

#include <string.h>

#include "workloads/lower/block_program.h"

typedef struct pl_kept_programs {
  pl_block_shard shard;
  const pl_block_program *blocks;
  const struct pl_kept_programs *next;
} kept_programs;

typedef struct kept_prices {
  const pl_block_program *blocks;
  const pl_device_profile *profile;
  const pl_block_prices *prices;
} kept_prices;

typedef struct kept_cut {
  const pl_block_program *blocks;
  int32_t n_chunks;
  int32_t cut[];
} kept_cut;

void pl_block_cache_init(pl_block_cache *cache, size_t most_bytes) {
  *cache = (pl_block_cache){.most_bytes = most_bytes};
  pl_arena_init(&cache->arena, 0);
  pl_block_functions_init(&cache->functions, most_bytes < PL_BLOCK_CACHE_ALL ? most_bytes : PL_BLOCK_CACHE_BYTES);
}

void pl_block_cache_release(pl_block_cache *cache) {
  pl_arena_release(&cache->arena);
  pl_block_functions_release(&cache->functions);
  cache->cluster = NULL;
}

void pl_block_cache_begin(pl_block_cache *cache, const pl_cluster *cluster, const pl_model *model) {
  if (cache == NULL || (cache->cluster == cluster && cache->model == model && !cache->arena.failed &&
                        pl_arena_used_bytes(&cache->arena) <= cache->most_bytes))
    return;
  pl_arena_reset(&cache->arena);
  if (cache->cluster != cluster || cache->model != model) pl_block_functions_forget(&cache->functions);
  cache->cluster = cluster;
  cache->model = model;
  cache->programs = cache->prices = cache->cuts = (pl_hash_index){0};
  cache->made = NULL;
  cache->flops_seq = cache->narrow_seq = 0;
}

static pl_code no_memory(pl_error *error) {
  return pl_fail_memory(error, "the blocks that simulations have in common");
}

/* ---- programs ---- */

static uint64_t hash_shard(const pl_block_shard *s) {
  const uint64_t words[] = {(uint32_t)s->tmp,
                            (uint32_t)s->ep,
                            (uint32_t)s->etp,
                            (uint32_t)s->cp,
                            (uint32_t)s->mbs,
                            (uint64_t)s->seq,
                            (uint64_t)s->recompute,
                            (uint64_t)s->dtype,
                            (uint64_t)s->attention_kernel,
                            (uint64_t)(s->sp | s->cp_gather << 1 | s->flash << 2 | s->fp8 << 3 | s->fp4 << 4 |
                                       s->halves << 5 | s->token_order << 6),
                            (uint64_t)(s->scatters | s->scatters_experts << 1),
                            (uint64_t)(uintptr_t)s->framework};
  uint64_t hash = 1;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    hash = pl_hash_word(hash, words[i]);
  return hash;
}

static bool equal_shards(const pl_block_shard *a, const pl_block_shard *b) {
  return a->tmp == b->tmp && a->ep == b->ep && a->etp == b->etp && a->cp == b->cp && a->sp == b->sp &&
         a->mbs == b->mbs && a->seq == b->seq && a->recompute == b->recompute && a->cp_gather == b->cp_gather &&
         a->dtype == b->dtype && a->flash == b->flash && a->fp8 == b->fp8 && a->fp4 == b->fp4 &&
         a->attention_kernel == b->attention_kernel && a->framework == b->framework && a->halves == b->halves &&
         a->token_order == b->token_order && a->scatters == b->scatters && a->scatters_experts == b->scatters_experts;
}

/* Programs of a shard that differs in what is said of layers alone; NULL: none. */
static const pl_block_program *find_like(const pl_block_cache *cache, const pl_block_shard *shard) {
  for (const kept_programs *kept = cache->made; kept != NULL; kept = kept->next) {
    pl_block_shard like = kept->shard;
    like.recompute = shard->recompute;
    if (equal_shards(&like, shard)) return kept->blocks;
  }
  return NULL;
}

pl_code pl_block_cache_programs(pl_block_cache *cache, const pl_model *model, const pl_block_shard *shard,
                                pl_arena *arena, const pl_block_program **blocks, pl_error *error) {
  if (cache == NULL) return pl_block_programs_take(model, shard, arena, blocks, error);
  PL_ASSERT(cache->model == model);
  uint64_t hash = hash_shard(shard);
  uint32_t probe = 0;
  for (const kept_programs *kept; (kept = pl_hash_index_find(&cache->programs, hash, &probe)) != NULL;)
    if (equal_shards(&kept->shard, shard)) {
      cache->n_found++;
      *blocks = kept->blocks;
      return PL_OK;
    }
  cache->n_made++;
  kept_programs *made = PL_TAKE(&cache->arena, kept_programs, 1);
  if (made == NULL) return no_memory(error);
  made->shard = *shard;
  PL_TRY(pl_block_functions_programs(&cache->functions, model, shard, find_like(cache, shard), &cache->arena,
                                     &made->blocks, error));
  made->next = cache->made;
  cache->made = made;
  *blocks = made->blocks;
  return pl_hash_index_put(&cache->programs, hash, made, &cache->arena) ? PL_OK : no_memory(error);
}

/* ---- prices ---- */

pl_code pl_block_cache_prices(pl_block_cache *cache, const pl_model *model, const pl_block_program *blocks,
                              const pl_device_profile *profile, pl_arena *arena, const pl_block_prices **prices,
                              pl_error *error) {
  if (cache == NULL) return pl_block_prices_take(model, blocks, profile, arena, prices, error);
  PL_ASSERT(cache->model == model);
  uint64_t hash = pl_hash_word(pl_hash_word(2, (uintptr_t)blocks), (uintptr_t)profile);
  uint32_t probe = 0;
  for (const kept_prices *kept; (kept = pl_hash_index_find(&cache->prices, hash, &probe)) != NULL;)
    if (kept->blocks == blocks && kept->profile == profile) {
      cache->n_found++;
      *prices = kept->prices;
      return PL_OK;
    }
  cache->n_made++;
  kept_prices *made = PL_TAKE(&cache->arena, kept_prices, 1);
  if (made == NULL) return no_memory(error);
  *made = (kept_prices){.blocks = blocks, .profile = profile};
  PL_TRY(pl_block_prices_take(model, blocks, profile, &cache->arena, &made->prices, error));
  *prices = made->prices;
  return pl_hash_index_put(&cache->prices, hash, made, &cache->arena) ? PL_OK : no_memory(error);
}

/* ---- cuts ---- */

static uint64_t hash_cut(const pl_block_program *blocks, int32_t n_chunks) {
  return pl_hash_word(pl_hash_word(3, (uintptr_t)blocks), (uint32_t)n_chunks);
}

const int32_t *pl_block_cache_cut(const pl_block_cache *cache, const pl_block_program *blocks, int32_t n_chunks) {
  uint32_t probe = 0;
  if (cache == NULL) return NULL;
  for (const kept_cut *kept; (kept = pl_hash_index_find(&cache->cuts, hash_cut(blocks, n_chunks), &probe)) != NULL;)
    if (kept->blocks == blocks && kept->n_chunks == n_chunks) return kept->cut;
  return NULL;
}

void pl_block_cache_keep_cut(pl_block_cache *cache, const pl_block_program *blocks, int32_t n_chunks,
                             const int32_t *cut) {
  if (cache == NULL) return;
  size_t bytes = ((size_t)n_chunks + 1) * sizeof *cut;
  kept_cut *made = pl_arena_take(&cache->arena, sizeof *made + bytes, _Alignof(kept_cut));
  if (made == NULL) return;
  made->blocks = blocks;
  made->n_chunks = n_chunks;
  memcpy(made->cut, cut, bytes);
  (void)pl_hash_index_put(&cache->cuts, hash_cut(blocks, n_chunks), made, &cache->arena);
}

/* ---- FLOPs ---- */

double pl_block_cache_flops(pl_block_cache *cache, const pl_model *model, int64_t seq) {
  if (cache == NULL || cache->model != model) return pl_model_flops_per_sequence(model, seq);
  if (cache->flops_seq != seq) {
    cache->flops = pl_model_flops_per_sequence(model, seq);
    cache->flops_seq = seq;
  }
  return cache->flops;
}

double pl_block_cache_narrow_share(pl_block_cache *cache, const pl_model *model, pl_dtype dtype, bool fp4,
                                   int64_t seq) {
  if (cache == NULL || cache->model != model) return pl_model_narrow_share(model, dtype, fp4, seq);
  if (cache->narrow_seq != seq || cache->narrow_dtype != dtype || cache->narrow_fp4 != fp4) {
    cache->narrow_share = pl_model_narrow_share(model, dtype, fp4, seq);
    cache->narrow_seq = seq;
    cache->narrow_dtype = dtype;
    cache->narrow_fp4 = fp4;
  }
  return cache->narrow_share;
}
