/* PyTorch's caching allocator of device memory, as its notes and c10/cuda/CUDACachingAllocator.cpp describe it (PyTorch
 * 2.1): requests are rounded to 512 B; up to 1 MiB they come out of segments of 2 MiB, from there to 10 MiB out of
 * segments of 20 MiB, above out of a segment of their own, rounded to 2 MiB. The smallest free block that is large
 * enough is taken, and split when what is left over is worth it (512 B in small segments, more than 1 MiB in large
 * ones); free neighbours of a segment are joined; segments are kept. A block belongs to the stream that it was made
 * for: what one stream has freed serves no other.
 *
 * With expandable segments (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True) each stream has two segments, for small
 * and for large requests, of addresses without end, which get memory in pages of 2 and of 20 MiB: behind their last
 * block, where it is free behind that, and so a request takes no more new memory than it lacks there. Whatever is left
 * over is split off.
 *
 * When the device is full what waits for a stream is given back first (`settle`), then the segments that nobody uses,
 * of expandable ones the pages, are given up, and a new one is tried: blocks that came free inside segments still in
 * use do not help this request (release_cached_blocks, which synchronize_and_free_events begins). In the addresses of
 * pages that were given up later requests get new ones, lowest first (find_expandable_block).
 */
#ifndef PL_WORKLOADS_CACHING_ALLOCATOR_H
#define PL_WORKLOADS_CACHING_ALLOCATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "workloads/memory/free_blocks.h"
#include "workloads/memory/memory_state.h"

enum { PL_ALLOCATOR_STREAMS = 3, PL_ALLOCATOR_POOLS = 2 * PL_ALLOCATOR_STREAMS };

typedef struct pl_memory_block pl_memory_block;

typedef struct pl_caching_allocator {
  pl_memory_block *blocks;
  uint32_t n_blocks, capacity;
  uint32_t unused;  /* list of entries of joined blocks */
  uint32_t n_pools; /* in use: two of each stream, of large and of small requests */
  pl_free_blocks free_blocks[PL_ALLOCATOR_POOLS];
  struct {
    uint32_t first, last; /* blocks of a pool's expandable segment; PL_NONE: none */
    uint32_t n_holes;     /* of these, addresses without memory between others */
  } segments[PL_ALLOCATOR_POOLS];
  bool expandable;               /* set it before the first request */
  int64_t limit_bytes;           /* of all segments: what the device has; 0: no limit */
  bool full;                     /* a request did not fit, with no unused segment left: nothing more is handed out */
  int64_t held_bytes;            /* of all segments */
  int64_t most_held_bytes;       /* of all segments so far */
  int64_t occupied_bytes;        /* of segments with a block in use; of expandable ones those blocks alone */
  int64_t used_bytes;            /* requested, of blocks in use */
  void (*settle)(void *waiting); /* gives back what its owner holds back for streams; NULL: nothing */
  void *waiting;
  pl_arena *arena;
} pl_caching_allocator;

/* Memory comes from the arena as it is needed. `limit_bytes` may be set behind it. */
void pl_caching_allocator_init(pl_caching_allocator *allocator, pl_arena *arena);
/* The block's number; PL_NONE: the arena has no memory, or the device (`full`). `stream` is below PL_ALLOCATOR_STREAMS.
 * O(log sizes of free blocks), and a move of those where it is the only one of its size. */
uint32_t pl_caching_allocator_take(pl_caching_allocator *allocator, uint32_t stream, int64_t size_bytes);
/* Segments that nobody uses, and pages of expandable ones, go back to the device (torch.cuda.empty_cache). O(free
 * blocks). */
void pl_caching_allocator_trim(pl_caching_allocator *allocator);
/* As cheap as take. */
void pl_caching_allocator_give(pl_caching_allocator *allocator, uint32_t block);

/* All that later requests depend on: what is free, in the order in which it will be handed out, and the blocks in use
 * that may be given back, `named` (or no block: PL_NONE and its like), in an order of their owner's; all others stay.
 * It is the same wherever it lies: of a free block what counts is its size, and what it will be joined with. Not known:
 * of a full device, or one with holes. O(free blocks). */
void pl_caching_allocator_state(pl_caching_allocator *allocator, const uint32_t *named, uint32_t n_named,
                                pl_memory_state *state);

#endif
