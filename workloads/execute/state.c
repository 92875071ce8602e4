/* See workloads/execute/state.h. */
#include "workloads/execute/state.h"

#include <string.h>

static uint64_t hash_of(int32_t kind, const char *key) {
  return pl_hash_text(pl_hash_word(5, (uint64_t)kind), key);
}

static pl_kept *find(const pl_store *store, int32_t kind, const char *key) {
  uint32_t probe = 0;
  const void *found;
  while ((found = pl_hash_index_find(&store->index, hash_of(kind, key), &probe)) != NULL) {
    pl_kept *entry = *(pl_kept *const *)found;
    if (entry->kind == kind && strcmp(entry->key, key) == 0) return entry;
  }
  return NULL;
}

const pl_kept *pl_store_find(const pl_store *store, int32_t kind, const char *key) {
  return find(store, kind, key);
}

static bool grow(pl_store *store, pl_arena *arena) {
  void *entries = pl_arena_grown(arena, (const void *)store->entries, (size_t)store->n_entries, 1,
                                 sizeof(*store->entries), &store->room);
  if (entries == NULL) return false;
  store->entries = (pl_kept **)entries;
  return true;
}

pl_kept *pl_store_entry(pl_store *store, int32_t kind, const char *key, pl_arena *arena) {
  pl_kept *entry = find(store, kind, key);
  if (entry != NULL) return entry;
  pl_kept **record = PL_TAKE(arena, pl_kept *, 1);
  entry = PL_TAKE(arena, pl_kept, 1);
  if (record == NULL || entry == NULL || !grow(store, arena)) return NULL;
  *record = entry;
  *entry = (pl_kept){.key = pl_arena_strdup(arena, key), .kind = kind};
  if (entry->key == NULL || !pl_hash_index_put(&store->index, hash_of(kind, key), (const void *)record, arena))
    return NULL;
  store->entries[store->n_entries++] = entry;
  return entry;
}
