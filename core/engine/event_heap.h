/* Indexed binary heap of events: what is due next, with re-keying.
 *
 * An event is (time, order, id). `id` is the slot in [0, capacity) under which the owner finds and re-keys its event;
 * slots may be recycled, so that the heap and its positions stay as small as what is under way at once. `order`
 * decides between events of one tick; it comes from the model (a task id) and never from the slot, so recycling does
 * not touch the order of events. (time, order) must be unique among the events present, or ties fall to the lower id.
 * Keys are inline (16 bytes per event, four to a cache line), positions by id, storage from an arena: no call takes
 * memory after init.
 */
#ifndef PL_CORE_EVENT_HEAP_H
#define PL_CORE_EVENT_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/ticks.h"

typedef struct pl_event {
  pl_ticks time;
  uint32_t order, id;
} pl_event;

typedef struct pl_event_heap {
  pl_event *events;
  uint32_t *position; /* by id; PL_NONE = not in the heap */
  uint32_t count, capacity;
} pl_event_heap;

/* false: no memory. The heap lives as long as the arena's content. */
bool pl_event_heap_init(pl_event_heap *heap, uint32_t capacity, pl_arena *arena);
/* Pushes the event of slot `id`, or re-keys it when it is there. O(log count). */
void pl_event_heap_put(pl_event_heap *heap, uint32_t id, pl_ticks time, uint32_t order);
/* The same for owners whose slots are themselves the order. */
static inline void pl_event_heap_set(pl_event_heap *heap, uint32_t id, pl_ticks time) {
  pl_event_heap_put(heap, id, time, id);
}
void pl_event_heap_remove(pl_event_heap *heap, uint32_t id); /* no effect when absent */
/* The first event; the heap must not be empty. */
pl_event pl_event_heap_pop(pl_event_heap *heap);
static inline pl_ticks pl_event_heap_next(const pl_event_heap *heap) {
  return heap->count == 0 ? PL_TICKS_NEVER : heap->events[0].time;
}
/* O(capacity): heap order, and positions that point back. */
bool pl_event_heap_is_valid(const pl_event_heap *heap);

#endif
