/* Indexed binary heap of (time, id) with decrease/increase-key, ids in [0, capacity). Order is total: time, then id.
 * Keys inline, positions by id; arena storage; push of an id that is present re-keys it. */
#ifndef PL_CORE_EVENT_HEAP_H
#define PL_CORE_EVENT_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/ticks.h"

typedef struct pl_event {
  pl_ticks time;
  uint32_t id;
} pl_event;

typedef struct pl_event_heap {
  pl_event *events;
  uint32_t *position; /* by id; PL_NONE = not in the heap */
  uint32_t count, capacity;
} pl_event_heap;

bool pl_event_heap_init(pl_event_heap *heap, uint32_t capacity, pl_arena *arena);
void pl_event_heap_set(pl_event_heap *heap, uint32_t id, pl_ticks time); /* push or re-key */
void pl_event_heap_remove(pl_event_heap *heap, uint32_t id);             /* no effect when absent */
pl_event pl_event_heap_pop(pl_event_heap *heap);
static inline pl_ticks pl_event_heap_next(const pl_event_heap *heap) {
  return heap->count == 0 ? PL_TICKS_NEVER : heap->events[0].time;
}
bool pl_event_heap_is_valid(const pl_event_heap *heap);

#endif
