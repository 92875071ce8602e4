/* See core/base/packed.h. The sign goes to the lowest bit, then seven bits a byte, the lowest first; the eighth says
 * that more follow. */
#include "core/base/packed.h"

#include <string.h>

static uint64_t folded(uint64_t word) {
  return word << 1 ^ (uint64_t) - (int64_t)(word >> 63);
}

static size_t bytes_of(uint64_t word) {
  int bits = 64 - __builtin_clzll(folded(word) | 1);
  return (size_t)(bits + 6) / 7;
}

/* An eighth more than it takes: what comes next is about as long. */
static bool make_room(pl_packed *packed, size_t wanted, pl_arena *arena) {
  if (wanted <= packed->room) return true;
  size_t room = wanted + wanted / 8;
  uint8_t *bytes = room > UINT32_MAX ? NULL : pl_arena_take(arena, room, 1);
  if (bytes == NULL) return false;
  packed->bytes = bytes;
  packed->room = (uint32_t)room;
  return true;
}

bool pl_packed_fill(pl_packed *packed, const uint64_t *words, size_t n, pl_arena *arena) {
  size_t wanted = 0;
  for (size_t at = 0; at < n; at++)
    wanted += bytes_of(words[at]);
  packed->n = 0;
  if (!make_room(packed, wanted, arena)) return false;
  uint8_t *byte = packed->bytes;
  for (size_t at = 0; at < n; at++) {
    uint64_t rest = folded(words[at]);
    for (; rest > 127; rest >>= 7)
      *byte++ = (uint8_t)(rest | 128);
    *byte++ = (uint8_t)rest;
  }
  packed->n = (uint32_t)wanted;
  return true;
}

void pl_packed_read(const pl_packed *packed, uint64_t *words, size_t n) {
  const uint8_t *byte = packed->bytes;
  for (size_t at = 0; at < n; at++) {
    uint64_t word = 0;
    for (int shift = 0;; shift += 7) {
      word |= (uint64_t)(*byte & 127) << shift;
      if (*byte++ < 128) break;
    }
    words[at] = word >> 1 ^ (uint64_t) - (int64_t)(word & 1);
  }
}

bool pl_packed_same(const pl_packed *a, const pl_packed *b) {
  return a->n == b->n && (a->n == 0 || memcmp(a->bytes, b->bytes, a->n) == 0);
}
