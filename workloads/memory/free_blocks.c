/* See workloads/memory/free_blocks.h. */
#include "workloads/memory/free_blocks.h"

#include <string.h>

#include "core/base/status.h"
#include "core/cluster/cluster.h"

/* The array with room for `n`, of which `held` are there; NULL: no memory. */
static void *grown(void *items, size_t size, uint32_t held, uint32_t n, uint32_t *room, pl_arena *arena) {
  return n <= *room ? items : pl_arena_grown(arena, items, held, n - held, size, room);
}

bool pl_free_blocks_reserve(pl_free_blocks *free, uint32_t n, pl_arena *arena) {
  const uint32_t held = free->n_sizes, blocks = free->block_room;
  if (n == 0) return true;
  int64_t *sizes = (int64_t *)grown(free->sizes_bytes, sizeof *sizes, held, n, &free->size_room, arena);
  if (sizes == NULL) return false;
  free->sizes_bytes = sizes;
  uint32_t *first = (uint32_t *)grown(free->first, sizeof *first, held, n, &free->first_room, arena);
  if (first == NULL) return false;
  free->first = first;
  pl_free_neighbours *neighbours =
      (pl_free_neighbours *)grown(free->neighbours, sizeof *neighbours, blocks, n, &free->block_room, arena);
  if (neighbours == NULL) return false;
  free->neighbours = neighbours;
  return true;
}

/* Without branches on the sizes, which nothing could foresee. */
static uint32_t look_for(const pl_free_blocks *free, int64_t size_bytes) {
  const int64_t *first = free->sizes_bytes;
  for (uint32_t n = free->n_sizes; n > 1; n -= n / 2)
    first += first[n / 2 - 1] < size_bytes ? n / 2 : 0;
  return (uint32_t)(first - free->sizes_bytes) + (*first < size_bytes);
}

uint32_t pl_free_blocks_find(pl_free_blocks *free, int64_t size_bytes) {
  const int64_t *sizes = free->sizes_bytes;
  uint32_t *found = &free->found[((uint64_t)size_bytes * 0x9e3779b97f4a7c15u) >> 58], at = *found, n = free->n_sizes;
  if (n == 0) return 0;
  if (at < n && sizes[at] >= size_bytes && (at == 0 || sizes[at - 1] < size_bytes)) return at;
  at = look_for(free, size_bytes);
  *found = at;
  return at;
}

static bool has_size(const pl_free_blocks *free, uint32_t at, int64_t size_bytes) {
  return at < free->n_sizes && free->sizes_bytes[at] == size_bytes;
}

static void put_size(pl_free_blocks *free, uint32_t at, int64_t size_bytes) {
  PL_ASSERT(free->n_sizes < free->size_room && free->n_sizes < free->first_room);
  uint32_t n_larger = free->n_sizes++ - at;
  memmove(free->sizes_bytes + at + 1, free->sizes_bytes + at, n_larger * sizeof *free->sizes_bytes);
  memmove(free->first + at + 1, free->first + at, n_larger * sizeof *free->first);
  free->sizes_bytes[at] = size_bytes;
  free->first[at] = PL_NONE;
}

static void remove_size(pl_free_blocks *free, uint32_t at) {
  uint32_t n_larger = --free->n_sizes - at;
  memmove(free->sizes_bytes + at, free->sizes_bytes + at + 1, n_larger * sizeof *free->sizes_bytes);
  memmove(free->first + at, free->first + at + 1, n_larger * sizeof *free->first);
}

void pl_free_blocks_put(pl_free_blocks *free, int64_t size_bytes, uint32_t block) {
  PL_ASSERT(block < free->block_room);
  uint32_t at = pl_free_blocks_find(free, size_bytes);
  if (!has_size(free, at, size_bytes)) put_size(free, at, size_bytes);
  uint32_t behind = free->first[at];
  free->neighbours[block] = (pl_free_neighbours){.before = PL_NONE, .behind = behind};
  if (behind != PL_NONE) free->neighbours[behind].before = block;
  free->first[at] = block;
}

uint32_t pl_free_blocks_remove_at(pl_free_blocks *free, uint32_t size) {
  PL_ASSERT(size < free->n_sizes);
  uint32_t block = free->first[size], behind = free->neighbours[block].behind;
  free->first[size] = behind;
  if (behind == PL_NONE) {
    remove_size(free, size);
  } else {
    free->neighbours[behind].before = PL_NONE;
  }
  return block;
}

void pl_free_blocks_remove(pl_free_blocks *free, int64_t size_bytes, uint32_t block) {
  const pl_free_neighbours own = free->neighbours[block];
  if (own.before == PL_NONE) {
    uint32_t at = pl_free_blocks_find(free, size_bytes);
    PL_ASSERT(has_size(free, at, size_bytes) && free->first[at] == block);
    pl_free_blocks_remove_at(free, at);
    return;
  }
  free->neighbours[own.before].behind = own.behind;
  if (own.behind != PL_NONE) free->neighbours[own.behind].before = own.before;
}

uint32_t pl_free_blocks_replace_at(pl_free_blocks *free, uint32_t size, int64_t by_bytes, uint32_t by) {
  PL_ASSERT(size < free->n_sizes && by < free->block_room);
  uint32_t block = free->first[size];
  bool alone = free->neighbours[block].behind == PL_NONE;
  bool stays = (size == 0 || free->sizes_bytes[size - 1] < by_bytes) &&
               (size + 1 == free->n_sizes || free->sizes_bytes[size + 1] > by_bytes);
  if (!alone || !stays) {
    pl_free_blocks_remove_at(free, size);
    pl_free_blocks_put(free, by_bytes, by);
    return block;
  }
  free->sizes_bytes[size] = by_bytes;
  free->first[size] = by;
  free->neighbours[by] = (pl_free_neighbours){.before = PL_NONE, .behind = PL_NONE};
  return block;
}

void pl_free_blocks_replace(pl_free_blocks *free, int64_t size_bytes, uint32_t block, int64_t by_bytes, uint32_t by) {
  if (free->neighbours[block].before != PL_NONE) {
    pl_free_blocks_remove(free, size_bytes, block);
    pl_free_blocks_put(free, by_bytes, by);
    return;
  }
  uint32_t at = pl_free_blocks_find(free, size_bytes);
  PL_ASSERT(has_size(free, at, size_bytes) && free->first[at] == block);
  pl_free_blocks_replace_at(free, at, by_bytes, by);
}
