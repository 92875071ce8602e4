/* Hash index: from a 64-bit hash to records that somebody else owns. Open addressing in an arena; no removal.
 *
 * Records with equal hashes are found one after another, and the caller decides which is meant:
 *
 *   uint32_t probe = 0;
 *   for (const thing *t; (t = pl_hash_index_find(&index, hash, &probe)) != NULL;)
 *     if (is_meant(t)) return t;
 */
#ifndef PL_CORE_HASH_INDEX_H
#define PL_CORE_HASH_INDEX_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/base/arena.h"

typedef struct pl_hash_slot {
  uint64_t hash;
  const void *record; /* NULL = empty */
} pl_hash_slot;

/* Empty when zeroed. At most half full. */
typedef struct pl_hash_index {
  pl_hash_slot *slots;
  uint32_t n_slots, count;
} pl_hash_index;

/* The next record with this hash, NULL when there is none left. `probe` starts at 0 and belongs to one search. O(1)
 * expected if the hashes are good in their low bits. */
const void *pl_hash_index_find(const pl_hash_index *index, uint64_t hash, uint32_t *probe);
/* Adds a record (not NULL), whether or not the hash is known. False: no memory, index unchanged. */
bool pl_hash_index_put(pl_hash_index *index, uint64_t hash, const void *record, pl_arena *arena);

/* Room for `n` records at once, where about so many will come. False: no memory, index unchanged. */
bool pl_hash_index_expect(pl_hash_index *index, uint32_t n, pl_arena *arena);
/* Brings the place of a hash near: for who will look for it, or put it, a few hundred steps later. */
static inline void pl_hash_index_prefetch(const pl_hash_index *index, uint64_t hash) {
  if (index->n_slots > 0) __builtin_prefetch(&index->slots[(uint32_t)hash & (index->n_slots - 1)]);
}

/* The next hash of a sequence of words: a multiply and two shifts per word, all bits good. */
static inline uint64_t pl_hash_word(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0xd6e8feb86659fd93u;
  return hash ^ (hash >> 32);
}

/* The same for `n` characters, eight at a time: names of a few words in some tens of instructions. */
static inline uint64_t pl_hash_characters(uint64_t hash, const char *text, size_t n) {
  uint64_t word, rest = (uint64_t)n;
  for (; n >= sizeof word; n -= sizeof word, text += sizeof word) {
    memcpy(&word, text, sizeof word);
    hash = pl_hash_word(hash, word);
  }
  for (size_t i = 0; i < n; i++)
    rest = rest << 8 | (unsigned char)text[i];
  return pl_hash_word(hash, rest);
}

/* The same for the characters of a text. */
static inline uint64_t pl_hash_text(uint64_t hash, const char *text) {
  for (; *text != 0; text++)
    hash = pl_hash_word(hash, (uint64_t)(unsigned char)*text);
  return hash;
}

#endif
