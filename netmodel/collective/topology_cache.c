/* See netmodel/collective/topology_cache.h. A fold problem's key is its content as one array of 32-bit words, so that
 * hashing, comparing and keeping it are one call each. */
#include "netmodel/collective/topology_cache.h"

#include <string.h>

#include "core/base/digest.h"
#include "netmodel/collective/collective_internal.h"

typedef struct kept_fluid {
  const pl_collective_group *group;
  pl_collective_kind kind;
  double size_bytes;
  pl_fluid_collective fluid;
} kept_fluid;

typedef struct kept_family_fluids {
  const pl_group_family *family;
  pl_collective_kind kind;
  double size_bytes;
  const pl_fluid_collective *const *fluids;
} kept_family_fluids;

typedef struct folding_key {
  uint32_t *words;
  size_t n_words;
  uint64_t hash;
} folding_key;

typedef struct kept_folding {
  folding_key key;
  pl_folding folding;
} kept_folding;

/* ---- life ---- */

void pl_topology_cache_init(pl_topology_cache *cache, size_t most_bytes) {
  *cache = (pl_topology_cache){.most_bytes = most_bytes};
  pl_arena_init(&cache->arena, 0);
}

void pl_topology_cache_release(pl_topology_cache *cache) {
  pl_arena_release(&cache->arena);
  cache->cluster = NULL;
}

static bool equal_options(const pl_collective_options *a, const pl_collective_options *b) {
  return a->sharing == b->sharing && a->algorithm == b->algorithm && a->step_overhead_s == b->step_overhead_s &&
         a->profile == b->profile;
}

void pl_topology_cache_begin(pl_topology_cache *cache, const pl_cluster *cluster,
                             const pl_collective_options *options) {
  if (cache->cluster == cluster && equal_options(&cache->options, options) && !cache->arena.failed &&
      pl_arena_used_bytes(&cache->arena) <= cache->most_bytes)
    return;
  pl_arena_reset(&cache->arena);
  cache->cluster = cluster;
  cache->options = *options;
  cache->groups = cache->families = cache->fluids = cache->family_fluids = cache->foldings = (pl_hash_index){0};
}

static pl_code no_memory(pl_error *error) {
  return pl_fail_memory(error, "what simulations have in common");
}

/* ---- groups ---- */

pl_code pl_topology_cache_group(pl_topology_cache *cache, const uint32_t *members, uint32_t n, bool sends_alone,
                                pl_collective_group **group, pl_error *error) {
  uint64_t hash = 2 * (uint64_t)n + sends_alone;
  for (uint32_t i = 0; i < n; i++)
    hash = pl_hash_word(hash, members[i]);
  uint32_t probe = 0;
  for (const pl_collective_group *kept; (kept = pl_hash_index_find(&cache->groups, hash, &probe)) != NULL;)
    if (kept->n == n && kept->options.sends_alone == sends_alone &&
        memcmp(kept->members, members, n * sizeof *members) == 0) {
      cache->n_found++;
      *group = (pl_collective_group *)kept;
      return PL_OK;
    }
  cache->n_made++;
  pl_collective_options options = cache->options;
  options.sends_alone = sends_alone;
  PL_TRY(pl_collective_group_take(cache->cluster, members, n, &options, &cache->arena, group, error));
  return pl_hash_index_put(&cache->groups, hash, *group, &cache->arena) ? PL_OK : no_memory(error);
}

static pl_code make_family(pl_topology_cache *cache, const uint32_t *members, pl_group_family *made, pl_error *error) {
  size_t n = (size_t)made->n_groups * made->group_size;
  const uint32_t *copy = PL_COPY(&cache->arena, uint32_t, members, n);
  pl_collective_group **groups = PL_TAKE(&cache->arena, pl_collective_group *, made->n_groups);
  if (copy == NULL || groups == NULL) return no_memory(error);
  for (uint32_t g = 0; g < made->n_groups; g++)
    PL_TRY(pl_topology_cache_group(cache, &copy[(size_t)g * made->group_size], made->group_size, made->sends_alone,
                                   &groups[g], error));
  made->members = copy;
  made->groups = groups;
  return PL_OK;
}

pl_code pl_topology_cache_family(pl_topology_cache *cache, const uint32_t *members, uint32_t n_groups,
                                 uint32_t group_size, bool sends_alone, const pl_group_family **family,
                                 pl_error *error) {
  size_t size_bytes = (size_t)n_groups * group_size * sizeof *members;
  uint64_t hash = pl_hash_bytes(members, size_bytes, 2 * (uint64_t)n_groups + sends_alone);
  uint32_t probe = 0;
  for (const pl_group_family *kept; (kept = pl_hash_index_find(&cache->families, hash, &probe)) != NULL;)
    if (kept->n_groups == n_groups && kept->group_size == group_size && kept->sends_alone == sends_alone &&
        memcmp(kept->members, members, size_bytes) == 0) {
      cache->n_found++;
      *family = kept;
      return PL_OK;
    }
  cache->n_made++;
  pl_group_family *made = PL_TAKE(&cache->arena, pl_group_family, 1);
  if (made == NULL) return no_memory(error);
  *made = (pl_group_family){.n_groups = n_groups, .group_size = group_size, .sends_alone = sends_alone};
  PL_TRY(make_family(cache, members, made, error));
  *family = made;
  return pl_hash_index_put(&cache->families, hash, made, &cache->arena) ? PL_OK : no_memory(error);
}

/* ---- collectives ---- */

/* `of`: a group or a family. */
static uint64_t hash_fluid(const void *of, pl_collective_kind kind, double size_bytes) {
  uint64_t bits;
  memcpy(&bits, &size_bytes, sizeof bits);
  return pl_hash_word(pl_hash_word((uint64_t)(uintptr_t)of, (uint64_t)kind), bits);
}

static pl_code find_fluid(pl_topology_cache *cache, pl_collective_group *group, pl_collective_kind kind,
                          double size_bytes, const pl_fluid_collective **fluid, pl_error *error) {
  uint64_t hash = hash_fluid(group, kind, size_bytes);
  uint32_t probe = 0;
  for (const kept_fluid *kept; (kept = pl_hash_index_find(&cache->fluids, hash, &probe)) != NULL;)
    if (kept->group == group && kept->kind == kind && kept->size_bytes == size_bytes) {
      cache->n_found++;
      *fluid = &kept->fluid;
      return PL_OK;
    }
  cache->n_made++;
  kept_fluid *made = PL_TAKE(&cache->arena, kept_fluid, 1);
  if (made == NULL) return no_memory(error);
  *made = (kept_fluid){.group = group, .kind = kind, .size_bytes = size_bytes};
  PL_TRY(pl_collective_group_prepare(group, kind, &cache->arena, error));
  PL_TRY(pl_collective_fluid(group, kind, size_bytes, &cache->arena, &made->fluid, error));
  PL_TRY(pl_fluid_collective_merge(cache->cluster, &cache->arena, &made->fluid, error));
  *fluid = &made->fluid;
  return pl_hash_index_put(&cache->fluids, hash, made, &cache->arena) ? PL_OK : no_memory(error);
}

pl_code pl_topology_cache_fluid(pl_topology_cache *cache, pl_collective_group *group, pl_collective_kind kind,
                                double size_bytes, pl_fluid_collective *fluid, pl_error *error) {
  const pl_fluid_collective *found;
  PL_TRY(find_fluid(cache, group, kind, size_bytes, &found, error));
  *fluid = *found;
  return PL_OK;
}

pl_code pl_topology_cache_family_fluids(pl_topology_cache *cache, const pl_group_family *family,
                                        pl_collective_kind kind, double size_bytes,
                                        const pl_fluid_collective *const **fluids, pl_error *error) {
  uint64_t hash = hash_fluid(family, kind, size_bytes);
  uint32_t probe = 0;
  for (const kept_family_fluids *kept; (kept = pl_hash_index_find(&cache->family_fluids, hash, &probe)) != NULL;)
    if (kept->family == family && kept->kind == kind && kept->size_bytes == size_bytes) {
      cache->n_found++;
      *fluids = kept->fluids;
      return PL_OK;
    }
  cache->n_made++;
  kept_family_fluids *made = PL_TAKE(&cache->arena, kept_family_fluids, 1);
  const pl_fluid_collective **own = PL_TAKE(&cache->arena, const pl_fluid_collective *, family->n_groups);
  if (made == NULL || own == NULL) return no_memory(error);
  for (uint32_t g = 0; g < family->n_groups; g++)
    PL_TRY(find_fluid(cache, family->groups[g], kind, size_bytes, &own[g], error));
  *made = (kept_family_fluids){.family = family, .kind = kind, .size_bytes = size_bytes, .fluids = own};
  *fluids = own;
  return pl_hash_index_put(&cache->family_fluids, hash, made, &cache->arena) ? PL_OK : no_memory(error);
}

/* ---- foldings ---- */

typedef struct extent {
  uint32_t n_members, n_uses;
} extent;

static extent extent_of(const pl_fold_problem *problem) {
  extent sum = {0, 0};
  for (uint32_t t = 0; t < problem->n_transfers; t++) {
    sum.n_members += problem->transfers[t].n_members;
    sum.n_uses += problem->transfers[t].n_uses;
  }
  return sum;
}

static uint32_t *append_words(uint32_t *words, const void *from, size_t n) {
  memcpy(words, from, n * sizeof *words);
  return words + n;
}

/* Colours by their class: two problems whose colours are equal up to renaming have the same classes. */
static uint32_t *append_problem(uint32_t *words, const pl_fold_problem *problem, const pl_partition *devices,
                                const pl_partition *transfers) {
  const uint32_t sizes[] = {problem->n_devices, problem->n_links, problem->n_transfers};
  words = append_words(words, sizes, sizeof sizes / sizeof *sizes);
  words = append_words(words, devices->class_of, problem->n_devices);
  words = append_words(words, transfers->class_of, problem->n_transfers);
  for (uint32_t t = 0; t < problem->n_transfers; t++) {
    const pl_fold_transfer *transfer = &problem->transfers[t];
    *words++ = transfer->n_members;
    *words++ = transfer->n_uses;
    for (uint32_t i = 0; i < transfer->n_members; i++) {
      *words++ = problem->members[transfer->first_member + i].device;
      *words++ = problem->members[transfer->first_member + i].role;
    }
    for (uint32_t i = 0; i < transfer->n_uses; i++) { /* field by field: the struct has padding */
      const pl_link_use *use = &problem->uses[transfer->first_use + i];
      *words++ = use->link;
      words = append_words(words, &use->weight, sizeof use->weight / sizeof *words);
    }
  }
  return words;
}

static pl_code make_key(const pl_fold_problem *problem, pl_arena *scratch, folding_key *key, pl_error *error) {
  extent sum = extent_of(problem);
  size_t room = 3 + problem->n_devices + 3 * (size_t)problem->n_transfers + 2 * (size_t)sum.n_members +
                (1 + sizeof(double) / sizeof(uint32_t)) * sum.n_uses;
  pl_partition devices, transfers;
  uint64_t *colours = pl_arena_take(scratch, problem->n_transfers * sizeof *colours, _Alignof(uint64_t));
  key->words = pl_arena_take(scratch, room * sizeof *key->words, _Alignof(uint32_t));
  if (colours == NULL || key->words == NULL) return no_memory(error);
  for (uint32_t t = 0; t < problem->n_transfers; t++)
    colours[t] = problem->transfers[t].colour;
  if (!pl_partition_of_colours(problem->device_colour, problem->n_devices, scratch, &devices) ||
      !pl_partition_of_colours(colours, problem->n_transfers, scratch, &transfers))
    return no_memory(error);
  key->n_words = (size_t)(append_problem(key->words, problem, &devices, &transfers) - key->words);
  PL_ASSERT(key->n_words == room);
  key->hash = pl_hash_bytes(key->words, key->n_words * sizeof *key->words, 0);
  return PL_OK;
}

static bool equal_keys(const folding_key *a, const folding_key *b) {
  return a->n_words == b->n_words && memcmp(a->words, b->words, a->n_words * sizeof *a->words) == 0;
}

static pl_code make_folding(pl_topology_cache *cache, const pl_fold_problem *problem, const double *link_capacity_Bps,
                            const folding_key *key, pl_arena *scratch, const pl_folding **folding, pl_error *error) {
  uint32_t n_uses = extent_of(problem).n_uses;
  uint32_t n_transfers = problem->n_transfers;
  pl_fold_transfer *transfers = PL_COPY(scratch, pl_fold_transfer, problem->transfers, n_transfers);
  pl_link_use *uses = PL_COPY(scratch, pl_link_use, problem->uses, n_uses);
  kept_folding *made = PL_TAKE(&cache->arena, kept_folding, 1);
  uint32_t *words = pl_arena_take(&cache->arena, key->n_words * sizeof *words, _Alignof(uint32_t));
  if (transfers == NULL || uses == NULL || made == NULL || words == NULL) return no_memory(error);
  append_words(words, key->words, key->n_words);
  made->key = (folding_key){.words = words, .n_words = key->n_words, .hash = key->hash};
  PL_TRY(pl_folding_take(problem, transfers, uses, link_capacity_Bps, &cache->arena, &made->folding, error));
  *folding = &made->folding;
  return pl_hash_index_put(&cache->foldings, key->hash, made, &cache->arena) ? PL_OK : no_memory(error);
}

pl_code pl_topology_cache_folding(pl_topology_cache *cache, const pl_fold_problem *problem,
                                  const double *link_capacity_Bps, pl_arena *scratch, const pl_folding **folding,
                                  pl_error *error) {
  pl_arena_mark mark = pl_arena_mark_here(scratch);
  folding_key key = {0};
  PL_TRY(make_key(problem, scratch, &key, error));
  uint32_t probe = 0;
  const kept_folding *kept;
  while ((kept = pl_hash_index_find(&cache->foldings, key.hash, &probe)) != NULL && !equal_keys(&kept->key, &key))
    ;
  if (kept != NULL) {
    cache->n_found++;
    *folding = &kept->folding;
  } else {
    cache->n_made++;
    PL_TRY(make_folding(cache, problem, link_capacity_Bps, &key, scratch, folding, error));
  }
  pl_arena_release_to(scratch, mark);
  return PL_OK;
}
