/* See core/base/hash_index.h. */
#include "core/base/hash_index.h"

enum { SLOTS_AT_START = 64 };

const void *pl_hash_index_find(const pl_hash_index *index, uint64_t hash, uint32_t *probe) {
  if (index->n_slots == 0) return NULL;
  for (;;) {
    const pl_hash_slot *slot = &index->slots[((uint32_t)hash + (*probe)++) & (index->n_slots - 1)];
    if (slot->record == NULL || slot->hash == hash) return slot->record;
  }
}

static void put(pl_hash_index *index, uint64_t hash, const void *record) {
  uint32_t at = (uint32_t)hash & (index->n_slots - 1);
  while (index->slots[at].record != NULL)
    at = (at + 1) & (index->n_slots - 1);
  index->slots[at] = (pl_hash_slot){.hash = hash, .record = record};
  index->count++;
}

static bool resize(pl_hash_index *index, uint32_t n_slots, pl_arena *arena) {
  pl_hash_index larger = {.n_slots = n_slots};
  larger.slots = PL_TAKE(arena, pl_hash_slot, n_slots);
  if (larger.slots == NULL) return false;
  for (uint32_t at = 0; at < index->n_slots; at++)
    if (index->slots[at].record != NULL) put(&larger, index->slots[at].hash, index->slots[at].record);
  *index = larger;
  return true;
}

static bool grow(pl_hash_index *index, pl_arena *arena) {
  if (index->n_slots > UINT32_MAX / 2) return false;
  return resize(index, index->n_slots > 0 ? 2 * index->n_slots : SLOTS_AT_START, arena);
}

bool pl_hash_index_expect(pl_hash_index *index, uint32_t n, pl_arena *arena) {
  uint32_t n_slots = index->n_slots > 0 ? index->n_slots : SLOTS_AT_START;
  while (n_slots / 2 < n && n_slots <= UINT32_MAX / 2)
    n_slots *= 2;
  return n_slots == index->n_slots || resize(index, n_slots, arena);
}

bool pl_hash_index_put(pl_hash_index *index, uint64_t hash, const void *record, pl_arena *arena) {
  if (2 * index->count >= index->n_slots && !grow(index, arena)) return false;
  put(index, hash, record);
  return true;
}
