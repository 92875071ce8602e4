/* See workloads/memory/caching_allocator.h. */
#include "workloads/memory/caching_allocator.h"

#include <string.h>

#include "core/cluster/cluster.h"

struct pl_memory_block {
  int64_t size_bytes, requested_bytes;
  uint32_t before, behind; /* neighbours in the segment, PL_NONE at its ends */
  uint32_t previous, next; /* in the list of free blocks; `next` also in that of unused entries */
  bool used, small;
};

static const int64_t MiB = 1 << 20;

void pl_caching_allocator_init(pl_caching_allocator *allocator, pl_arena *arena) {
  *allocator = (pl_caching_allocator){.unused = PL_NONE, .free_blocks = {PL_NONE, PL_NONE}, .arena = arena};
}

static void put_on_list(pl_caching_allocator *own, uint32_t index) {
  pl_memory_block *block = &own->blocks[index];
  uint32_t *first = &own->free_blocks[block->small];
  block->previous = PL_NONE;
  block->next = *first;
  if (*first != PL_NONE) own->blocks[*first].previous = index;
  *first = index;
}

static void take_off_list(pl_caching_allocator *own, uint32_t index) {
  const pl_memory_block *block = &own->blocks[index];
  if (block->previous != PL_NONE)
    own->blocks[block->previous].next = block->next;
  else
    own->free_blocks[block->small] = block->next;
  if (block->next != PL_NONE) own->blocks[block->next].previous = block->previous;
}

static bool make_room(pl_caching_allocator *own) {
  pl_memory_block *blocks =
      pl_arena_grown(own->arena, own->blocks, own->n_blocks, 1, sizeof *own->blocks, &own->capacity);
  if (blocks == NULL) return false;
  own->blocks = blocks;
  return true;
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

static uint32_t smallest_fit(const pl_caching_allocator *own, bool small, int64_t size_bytes) {
  uint32_t best = PL_NONE;
  for (uint32_t i = own->free_blocks[small]; i != PL_NONE; i = own->blocks[i].next)
    if (own->blocks[i].size_bytes >= size_bytes &&
        (best == PL_NONE || own->blocks[i].size_bytes < own->blocks[best].size_bytes))
      best = i;
  return best;
}

/* A free block without neighbours is a whole segment. */
static bool is_segment(const pl_memory_block *block) {
  return block->before == PL_NONE && block->behind == PL_NONE;
}

void pl_caching_allocator_trim(pl_caching_allocator *own) {
  for (int small = 0; small <= 1; small++)
    for (uint32_t i = own->free_blocks[small], next; i != PL_NONE; i = next) {
      next = own->blocks[i].next;
      if (!is_segment(&own->blocks[i])) continue;
      take_off_list(own, i);
      own->held_bytes -= own->blocks[i].size_bytes;
      own->blocks[i].next = own->unused;
      own->unused = i;
    }
}

static uint32_t new_segment(pl_caching_allocator *own, bool small, int64_t size_bytes) {
  int64_t segment_bytes = small                   ? 2 * MiB
                          : size_bytes < 10 * MiB ? 20 * MiB
                                                  : (size_bytes + 2 * MiB - 1) / (2 * MiB) * 2 * MiB;
  if (own->limit_bytes > 0 && own->held_bytes + segment_bytes > own->limit_bytes) pl_caching_allocator_trim(own);
  own->full |= own->limit_bytes > 0 && own->held_bytes + segment_bytes > own->limit_bytes;
  uint32_t index = own->full ? PL_NONE : new_entry(own);
  if (index == PL_NONE) return PL_NONE;
  own->blocks[index] =
      (pl_memory_block){.size_bytes = segment_bytes, .before = PL_NONE, .behind = PL_NONE, .small = small};
  own->held_bytes += segment_bytes;
  if (own->held_bytes > own->most_held_bytes) own->most_held_bytes = own->held_bytes;
  put_on_list(own, index);
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
  uint32_t index = smallest_fit(own, small, size_bytes);
  if (index == PL_NONE) index = new_segment(own, small, size_bytes);
  if (index == PL_NONE) return PL_NONE;
  if (is_segment(&own->blocks[index])) own->occupied_bytes += own->blocks[index].size_bytes;
  take_off_list(own, index);
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
