/* See netmodel/platform/route_cache.h. Memory order: a record is written in full, then its slot's `record`, then the
 * slot's `key` with release; a reader that sees the key with acquire sees the rest. Only the holder of the mutex
 * writes. */
#include "netmodel/platform/route_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/cluster/host_memory.h"

enum { SLOTS_AT_START = 1024 };

typedef struct route_record {
  pl_ticks latency;
  uint32_t n_links;
  uint32_t links[];
} route_record;

typedef struct slot {
  _Atomic uint64_t key; /* source << 32 | destination; 0 = empty, as a device has no route to itself */
  const route_record *record;
} slot;

typedef struct route_table {
  uint64_t mask; /* slots - 1, a power of two */
  slot slots[];
} route_table;

struct pl_route_cache {
  _Atomic(route_table *) table;
  pthread_mutex_t mutex; /* everything below, and the resolver */
  pl_arena arena;        /* tables and records */
  size_t count;
  pl_route_resolver resolve;
  void *context;
  const pl_link *links;
  uint32_t n_devices;
};

static uint64_t key_of(uint32_t source, uint32_t destination) {
  return (uint64_t)source << 32 | destination;
}

/* The finalizer of splitmix64 (Steele, Lea and Flood, OOPSLA 2014): neighbouring pairs land in unrelated slots. */
static uint64_t hash_key(uint64_t key) {
  key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9u;
  key = (key ^ key >> 27) * 0x94d049bb133111ebu;
  return key ^ key >> 31;
}

static route_table *take_table(pl_arena *arena, uint64_t n_slots) {
  route_table *table = pl_arena_take(arena, sizeof *table + n_slots * sizeof(slot), 64);
  if (table == NULL) return NULL;
  memset(table, 0, sizeof *table + n_slots * sizeof(slot));
  table->mask = n_slots - 1;
  return table;
}

pl_route_cache *pl_route_cache_create(pl_route_resolver resolve, void *context, const pl_link *links,
                                      uint32_t n_devices) {
  pl_route_cache *cache = calloc(1, sizeof *cache);
  if (cache == NULL) return NULL;
  pl_arena_init(&cache->arena, 0);
  pthread_mutex_init(&cache->mutex, NULL);
  cache->resolve = resolve;
  cache->context = context;
  cache->links = links;
  cache->n_devices = n_devices;
  route_table *table = take_table(&cache->arena, SLOTS_AT_START);
  if (table == NULL) {
    pl_route_cache_destroy(cache);
    return NULL;
  }
  atomic_init(&cache->table, table);
  return cache;
}

void pl_route_cache_destroy(pl_route_cache *cache) {
  if (cache == NULL) return;
  pthread_mutex_destroy(&cache->mutex);
  pl_arena_release(&cache->arena);
  free(cache);
}

static const route_record *find(const route_table *table, uint64_t key) {
  for (uint64_t i = hash_key(key) & table->mask;; i = (i + 1) & table->mask) {
    uint64_t present = atomic_load_explicit(&table->slots[i].key, memory_order_acquire);
    if (present == key) return table->slots[i].record;
    if (present == 0) return NULL;
  }
}

static void put(route_table *table, uint64_t key, const route_record *record) {
  uint64_t i = hash_key(key) & table->mask;
  while (atomic_load_explicit(&table->slots[i].key, memory_order_relaxed) != 0)
    i = (i + 1) & table->mask;
  table->slots[i].record = record;
  atomic_store_explicit(&table->slots[i].key, key, memory_order_release);
}

/* At most half full, so that a probe ends soon and always. */
static route_table *make_room(pl_route_cache *cache) {
  route_table *table = atomic_load_explicit(&cache->table, memory_order_relaxed);
  if (cache->count + 1 <= (table->mask + 1) / 2) return table;
  route_table *larger = take_table(&cache->arena, 2 * (table->mask + 1));
  if (larger == NULL) return NULL;
  for (uint64_t i = 0; i <= table->mask; i++) {
    uint64_t key = atomic_load_explicit(&table->slots[i].key, memory_order_relaxed);
    if (key != 0) put(larger, key, table->slots[i].record);
  }
  atomic_store_explicit(&cache->table, larger, memory_order_release);
  return larger;
}

static pl_code resolve(pl_route_cache *cache, uint32_t source, uint32_t destination, const route_record **found,
                       pl_error *error) {
  uint32_t links[PL_ROUTE_LINKS_MAX], n_links = 0;
  PL_TRY(cache->resolve(cache->context, source, destination, links, &n_links, error));
  route_table *table = make_room(cache);
  route_record *record =
      pl_arena_take(&cache->arena, sizeof *record + n_links * sizeof links[0], _Alignof(route_record));
  if (table == NULL || record == NULL) return pl_fail_memory(error, "routes");
  *record = (route_record){.n_links = n_links};
  for (uint32_t i = 0; i < n_links; i++) {
    record->links[i] = links[i];
    record->latency += cache->links[links[i]].latency;
  }
  put(table, key_of(source, destination), record);
  cache->count++;
  *found = record;
  return PL_OK;
}

pl_code pl_route_cache_get(void *cache_pointer, uint32_t source, uint32_t destination, pl_route *route,
                           pl_error *error) {
  pl_route_cache *cache = cache_pointer;
  PL_ASSERT(source != destination && (source < cache->n_devices || source == PL_HOST_MEMORY) &&
            (destination < cache->n_devices || destination == PL_HOST_MEMORY));
  uint64_t key = key_of(source, destination);
  const route_record *record = find(atomic_load_explicit(&cache->table, memory_order_acquire), key);
  if (record == NULL) {
    pthread_mutex_lock(&cache->mutex);
    record =
        find(atomic_load_explicit(&cache->table, memory_order_relaxed), key); /* another thread may have been faster */
    pl_code code = record != NULL ? PL_OK : resolve(cache, source, destination, &record, error);
    pthread_mutex_unlock(&cache->mutex);
    if (code != PL_OK) return code;
  }
  *route = (pl_route){.links = record->links, .n_links = record->n_links, .latency = record->latency};
  return PL_OK;
}

pl_code pl_route_cache_check(pl_route_cache *cache, uint32_t source, uint32_t destination, pl_error *error) {
  uint32_t links[PL_ROUTE_LINKS_MAX], n_links = 0;
  const route_table *table = atomic_load_explicit(&cache->table, memory_order_acquire);
  if (find(table, key_of(source, destination)) != NULL) return PL_OK;
  pthread_mutex_lock(&cache->mutex);
  pl_code code = cache->resolve(cache->context, source, destination, links, &n_links, error);
  pthread_mutex_unlock(&cache->mutex);
  return code;
}

size_t pl_route_cache_count(pl_route_cache *cache) {
  pthread_mutex_lock(&cache->mutex);
  size_t count = cache->count;
  pthread_mutex_unlock(&cache->mutex);
  return count;
}

size_t pl_route_cache_bytes(pl_route_cache *cache) {
  pthread_mutex_lock(&cache->mutex);
  size_t bytes = pl_arena_held_bytes(&cache->arena);
  pthread_mutex_unlock(&cache->mutex);
  return bytes;
}
