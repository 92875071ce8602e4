/* Free blocks of memory in order of size, of equal ones the one that was put in last first: what a best-fit allocator
 * looks through. Tensors have few sizes, so blocks of one size are a list, and what is searched, and moved, is the
 * sizes alone. (With an entry per block finding and moving them was a quarter of what `validate` takes.) */
#ifndef PL_WORKLOADS_FREE_BLOCKS_H
#define PL_WORKLOADS_FREE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"

typedef struct pl_free_neighbours {
  uint32_t before, behind; /* of the blocks of one size, PL_NONE at the ends */
} pl_free_neighbours;

enum { PL_FREE_BLOCKS_FOUND = 64 };

typedef struct pl_free_blocks {
  int64_t *sizes_bytes; /* ascending; of each there is a block */
  uint32_t *first;      /* the block of that size that was put in last */
  uint32_t n_sizes;
  pl_free_neighbours *neighbours; /* by block */
  uint32_t size_room, first_room, block_room;
  uint32_t found[PL_FREE_BLOCKS_FOUND]; /* where sizes with that hash were last; looked at before it is believed */
} pl_free_blocks;

/* Room for blocks 0 .. n - 1. False: the arena has no memory. */
bool pl_free_blocks_reserve(pl_free_blocks *free, uint32_t n, pl_arena *arena);
/* There is room, and it is not in it. O(log sizes), and a move of the larger ones if it is the only one of its size. */
void pl_free_blocks_put(pl_free_blocks *free, int64_t size_bytes, uint32_t block);
/* Which of the sizes is the smallest that has `size_bytes` or more; n_sizes: there is none. O(log sizes),
 * and O(1) of one that is where it was found last. */
uint32_t pl_free_blocks_find(pl_free_blocks *free, int64_t size_bytes);
/* The block of that size that was put in last; it is taken out, at the cost of `put`. */
uint32_t pl_free_blocks_remove_at(pl_free_blocks *free, uint32_t size);
/* `block` is in it, with that size. O(1) but for the first of its size, which costs what `put` does. */
void pl_free_blocks_remove(pl_free_blocks *free, int64_t size_bytes, uint32_t block);
/* The same as to remove the block of `size` that was put in last, or `block` of `size_bytes`, and to put in `by` with
 * `by_bytes`. Where both were alone and stay between the same neighbours nothing is looked for or moved. */
uint32_t pl_free_blocks_replace_at(pl_free_blocks *free, uint32_t size, int64_t by_bytes, uint32_t by);
void pl_free_blocks_replace(pl_free_blocks *free, int64_t size_bytes, uint32_t block, int64_t by_bytes, uint32_t by);

#endif
