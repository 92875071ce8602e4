/* Binary heap of links by level, in the caller's array: what the two solvers of netmodel/flow/max_min.h wait in. */
#ifndef PL_NETMODEL_LEVEL_HEAP_H
#define PL_NETMODEL_LEVEL_HEAP_H

#include "netmodel/flow/max_min.h"

/* The element at `at` may be larger than those below it. */
static inline void pl_level_heap_sift_down(pl_max_min_level *heap, uint32_t count, uint32_t at) {
  pl_max_min_level moved = heap[at];
  for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && heap[child + 1].level < heap[child].level) child++;
    if (heap[child].level >= moved.level) break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
}

static inline void pl_level_heap_push(pl_max_min_level *heap, uint32_t *count, double level, uint32_t link) {
  uint32_t at = (*count)++;
  for (uint32_t parent; at > 0 && heap[parent = (at - 1) / 2].level > level; at = parent)
    heap[at] = heap[parent];
  heap[at] = (pl_max_min_level){.level = level, .link = link};
}

/* Takes the lowest away. */
static inline uint32_t pl_level_heap_pop(pl_max_min_level *heap, uint32_t *count) {
  uint32_t link = heap[0].link;
  heap[0] = heap[--*count];
  if (*count > 0) pl_level_heap_sift_down(heap, *count, 0);
  return link;
}

#endif
