/* Free blocks of memory in order of size, of equal ones the one that was put in last first: what a best-fit allocator
 * looks through. Two flat arrays, since what is looked for is a size and lists are short enough to be moved. */
#ifndef PL_WORKLOADS_FREE_BLOCKS_H
#define PL_WORKLOADS_FREE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"

typedef struct pl_free_blocks {
  int64_t *sizes_bytes; /* ascending */
  uint32_t *blocks;     /* whose sizes these are */
  uint32_t n, size_room, block_room;
} pl_free_blocks;

/* Room for `n` of them, at least as many as there are. False: the arena has no memory. */
bool pl_free_blocks_reserve(pl_free_blocks *free, uint32_t n, pl_arena *arena);
/* There is room. O(log n) and a move of what is not smaller. */
void pl_free_blocks_put(pl_free_blocks *free, int64_t size_bytes, uint32_t block);
/* Where the smallest one stands that has `size_bytes` or more; n: there is none. O(log n). */
uint32_t pl_free_blocks_find(const pl_free_blocks *free, int64_t size_bytes);
/* What stands there. A move of what is larger. */
uint32_t pl_free_blocks_remove_at(pl_free_blocks *free, uint32_t at);
/* `block` is in it, with that size. O(log n + blocks of that size) and a move of what is larger. */
void pl_free_blocks_remove(pl_free_blocks *free, int64_t size_bytes, uint32_t block);

#endif
