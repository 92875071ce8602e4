/* See workloads/memory/free_blocks.h. */
#include "workloads/memory/free_blocks.h"

#include <string.h>

#include "core/base/status.h"

bool pl_free_blocks_reserve(pl_free_blocks *free, uint32_t n, pl_arena *arena) {
  int64_t *sizes_bytes =
      pl_arena_grown(arena, free->sizes_bytes, free->n, n - free->n, sizeof *free->sizes_bytes, &free->size_room);
  if (sizes_bytes == NULL) return false;
  free->sizes_bytes = sizes_bytes;
  uint32_t *blocks = pl_arena_grown(arena, free->blocks, free->n, n - free->n, sizeof *free->blocks, &free->block_room);
  if (blocks == NULL) return false;
  free->blocks = blocks;
  return true;
}

/* Without branches on the sizes, which nothing could foresee. */
uint32_t pl_free_blocks_find(const pl_free_blocks *free, int64_t size_bytes) {
  const int64_t *first = free->sizes_bytes;
  if (free->n == 0) return 0;
  for (uint32_t n = free->n; n > 1; n -= n / 2)
    first += first[n / 2 - 1] < size_bytes ? n / 2 : 0;
  return (uint32_t)(first - free->sizes_bytes) + (*first < size_bytes);
}

void pl_free_blocks_put(pl_free_blocks *free, int64_t size_bytes, uint32_t block) {
  PL_ASSERT(free->n < free->size_room && free->n < free->block_room);
  uint32_t at = pl_free_blocks_find(free, size_bytes), n_behind = free->n++ - at;
  memmove(free->sizes_bytes + at + 1, free->sizes_bytes + at, n_behind * sizeof *free->sizes_bytes);
  memmove(free->blocks + at + 1, free->blocks + at, n_behind * sizeof *free->blocks);
  free->sizes_bytes[at] = size_bytes;
  free->blocks[at] = block;
}

uint32_t pl_free_blocks_remove_at(pl_free_blocks *free, uint32_t at) {
  PL_ASSERT(at < free->n);
  uint32_t block = free->blocks[at], n_behind = --free->n - at;
  memmove(free->sizes_bytes + at, free->sizes_bytes + at + 1, n_behind * sizeof *free->sizes_bytes);
  memmove(free->blocks + at, free->blocks + at + 1, n_behind * sizeof *free->blocks);
  return block;
}

void pl_free_blocks_remove(pl_free_blocks *free, int64_t size_bytes, uint32_t block) {
  uint32_t at = pl_free_blocks_find(free, size_bytes);
  while (free->blocks[at] != block)
    at++;
  PL_ASSERT(free->sizes_bytes[at] == size_bytes);
  pl_free_blocks_remove_at(free, at);
}
