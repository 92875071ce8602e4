/* See workloads/memory/caching_allocator.h. */
#include "workloads/memory/caching_allocator.h"

#include "core/cluster/cluster.h"

struct pl_memory_block {
  int64_t size_bytes, requested_bytes;
  uint32_t before, behind; /* neighbours in the segment, PL_NONE at its ends */
  uint32_t next;           /* in the list of unused entries */
  bool used, small;
};

static const int64_t MiB = 1 << 20;

void pl_caching_allocator_init(pl_caching_allocator *allocator, pl_arena *arena) {
  *allocator = (pl_caching_allocator){.unused = PL_NONE, .arena = arena};
}

/* The size of a block on the list must not change. */
static void put_on_list(pl_caching_allocator *own, uint32_t index) {
  const pl_memory_block *block = &own->blocks[index];
  pl_free_blocks_put(&own->free_blocks[block->small], block->size_bytes, index);
}

static void take_off_list(pl_caching_allocator *own, uint32_t index) {
  const pl_memory_block *block = &own->blocks[index];
  pl_free_blocks_remove(&own->free_blocks[block->small], block->size_bytes, index);
}

static bool make_room(pl_caching_allocator *own) {
  pl_memory_block *blocks =
      pl_arena_grown(own->arena, own->blocks, own->n_blocks, 1, sizeof *own->blocks, &own->capacity);
  if (blocks == NULL) return false;
  own->blocks = blocks;
  /* all of them may be free at once, so that giving one back cannot fail */
  return pl_free_blocks_reserve(&own->free_blocks[0], own->n_blocks + 1, own->arena) &&
         pl_free_blocks_reserve(&own->free_blocks[1], own->n_blocks + 1, own->arena);
}

static uint32_t new_entry(pl_caching_allocator *own) {
  uint32_t index = own->unused;
  if (index != PL_NONE) {
    own->unused = own->blocks[index].next;
    return index;
  }
  if (!make_room(own)) return PL_NONE;
  return own->n_blocks++;
}

/* Taken off its list; PL_NONE: none is large enough. */
static uint32_t take_smallest_fit(pl_caching_allocator *own, bool small, int64_t size_bytes) {
  pl_free_blocks *free = &own->free_blocks[small];
  uint32_t at = pl_free_blocks_find(free, size_bytes);
  return at == free->n_sizes ? PL_NONE : pl_free_blocks_remove_at(free, at);
}

/* A free block without neighbours is a whole segment. */
static bool is_segment(const pl_memory_block *block) {
  return block->before == PL_NONE && block->behind == PL_NONE;
}

/* The blocks of one size. */
static void trim_size(pl_caching_allocator *own, pl_free_blocks *free, uint32_t at) {
  for (uint32_t index = free->first[at], behind; index != PL_NONE; index = behind) {
    behind = free->neighbours[index].behind;
    if (!is_segment(&own->blocks[index])) continue;
    pl_free_blocks_remove(free, own->blocks[index].size_bytes, index);
    own->held_bytes -= own->blocks[index].size_bytes;
    own->blocks[index].next = own->unused;
    own->unused = index;
  }
}

void pl_caching_allocator_trim(pl_caching_allocator *own) {
  for (int small = 0; small <= 1; small++)
    for (uint32_t at = own->free_blocks[small].n_sizes; at-- > 0;)
      trim_size(own, &own->free_blocks[small], at);
}

/* Used by nobody, and on no list. */
static uint32_t new_segment(pl_caching_allocator *own, bool small, int64_t size_bytes) {
  int64_t segment_bytes = small                   ? 2 * MiB
                          : size_bytes < 10 * MiB ? 20 * MiB
                                                  : (size_bytes + 2 * MiB - 1) / (2 * MiB) * 2 * MiB;
  if (own->limit_bytes > 0 && own->held_bytes + segment_bytes > own->limit_bytes) {
    if (own->settle != NULL) own->settle(own->waiting);
    pl_caching_allocator_trim(own);
  }
  own->full |= own->limit_bytes > 0 && own->held_bytes + segment_bytes > own->limit_bytes;
  uint32_t index = own->full ? PL_NONE : new_entry(own);
  if (index == PL_NONE) return PL_NONE;
  own->blocks[index] =
      (pl_memory_block){.size_bytes = segment_bytes, .before = PL_NONE, .behind = PL_NONE, .small = small};
  own->held_bytes += segment_bytes;
  if (own->held_bytes > own->most_held_bytes) own->most_held_bytes = own->held_bytes;
  return index;
}

/* What is left over becomes a free block behind. */
static bool split(pl_caching_allocator *own, uint32_t index, int64_t size_bytes) {
  int64_t rest_bytes = own->blocks[index].size_bytes - size_bytes;
  if (own->blocks[index].small ? rest_bytes < 512 : rest_bytes <= MiB) return true;
  uint32_t rest = new_entry(own);
  if (rest == PL_NONE) return false;
  pl_memory_block *block = &own->blocks[index];
  own->blocks[rest] =
      (pl_memory_block){.size_bytes = rest_bytes, .before = index, .behind = block->behind, .small = block->small};
  if (block->behind != PL_NONE) own->blocks[block->behind].before = rest;
  block->behind = rest;
  block->size_bytes = size_bytes;
  put_on_list(own, rest);
  return true;
}

uint32_t pl_caching_allocator_take(pl_caching_allocator *own, int64_t requested_bytes) {
  int64_t size_bytes = requested_bytes < 512 ? 512 : (requested_bytes + 511) / 512 * 512;
  bool small = size_bytes <= MiB;
  if (own->full) return PL_NONE;
  uint32_t index = take_smallest_fit(own, small, size_bytes);
  if (index == PL_NONE) index = new_segment(own, small, size_bytes);
  if (index == PL_NONE) return PL_NONE;
  if (is_segment(&own->blocks[index])) own->occupied_bytes += own->blocks[index].size_bytes;
  if (!split(own, index, size_bytes)) return PL_NONE;
  own->blocks[index].used = true;
  own->blocks[index].requested_bytes = requested_bytes;
  own->used_bytes += requested_bytes;
  return index;
}

/* `behind` into `index`, which stays. */
static void join(pl_caching_allocator *own, uint32_t index, uint32_t behind) {
  pl_memory_block *block = &own->blocks[index], *gone = &own->blocks[behind];
  block->size_bytes += gone->size_bytes;
  block->behind = gone->behind;
  if (gone->behind != PL_NONE) own->blocks[gone->behind].before = index;
  gone->next = own->unused;
  own->unused = behind;
}

void pl_caching_allocator_give(pl_caching_allocator *own, uint32_t index) {
  pl_memory_block *block = &own->blocks[index];
  PL_ASSERT(block->used);
  block->used = false;
  own->used_bytes -= block->requested_bytes;
  uint32_t behind = block->behind, before = block->before;
  if (behind != PL_NONE && !own->blocks[behind].used) {
    take_off_list(own, behind);
    join(own, index, behind);
  }
  if (before != PL_NONE && !own->blocks[before].used) {
    take_off_list(own, before);
    join(own, before, index);
    index = before;
  }
  put_on_list(own, index);
  if (is_segment(&own->blocks[index])) own->occupied_bytes -= own->blocks[index].size_bytes;
}
