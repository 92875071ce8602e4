/* See core/engine/event_heap.h. A hole moves up or down instead of swaps: one write of an event and one of its position
 * per level. */
#include "core/engine/event_heap.h"

#include "core/cluster/cluster.h"

static inline bool is_before(pl_event a, pl_event b) {
  if (a.time != b.time) return a.time < b.time;
  if (a.order != b.order) return a.order < b.order;
  return a.id < b.id;
}

bool pl_event_heap_init(pl_event_heap *heap, uint32_t capacity, pl_arena *arena) {
  *heap = (pl_event_heap){.capacity = capacity};
  heap->events = pl_arena_take(arena, (size_t)capacity * sizeof *heap->events, 64);
  heap->position = pl_arena_take(arena, (size_t)capacity * sizeof *heap->position, 64);
  if (heap->events == NULL || heap->position == NULL) {
    heap->capacity = 0;
    return false;
  }
  for (uint32_t id = 0; id < capacity; id++)
    heap->position[id] = PL_NONE;
  return true;
}

static inline void place(pl_event_heap *heap, uint32_t at, pl_event event) {
  heap->events[at] = event;
  heap->position[event.id] = at;
}

static inline void sift_up(pl_event_heap *heap, uint32_t hole, pl_event event) {
  while (hole > 0) {
    uint32_t parent = (hole - 1) / 2;
    if (!is_before(event, heap->events[parent])) break;
    place(heap, hole, heap->events[parent]);
    hole = parent;
  }
  place(heap, hole, event);
}

static inline void sift_down(pl_event_heap *heap, uint32_t hole, pl_event event) {
  const uint32_t count = heap->count;
  for (uint32_t child = 2 * hole + 1; child < count; child = 2 * hole + 1) {
    if (child + 1 < count && is_before(heap->events[child + 1], heap->events[child])) child++;
    if (!is_before(heap->events[child], event)) break;
    place(heap, hole, heap->events[child]);
    hole = child;
  }
  place(heap, hole, event);
}

/* Puts `event` into the hole at `hole`, in whichever direction it belongs. */
static void settle(pl_event_heap *heap, uint32_t hole, pl_event event) {
  if (hole > 0 && is_before(event, heap->events[(hole - 1) / 2])) {
    sift_up(heap, hole, event);
  } else {
    sift_down(heap, hole, event);
  }
}

void pl_event_heap_put(pl_event_heap *heap, uint32_t id, pl_ticks time, uint32_t order) {
  PL_DEBUG_ASSERT(id < heap->capacity);
  pl_event event = {.time = time, .order = order, .id = id};
  uint32_t at = heap->position[id];
  if (at == PL_NONE) {
    sift_up(heap, heap->count++, event);
  } else {
    settle(heap, at, event);
  }
}

void pl_event_heap_remove(pl_event_heap *heap, uint32_t id) {
  uint32_t at = heap->position[id];
  if (at == PL_NONE) return;
  heap->position[id] = PL_NONE;
  pl_event last = heap->events[--heap->count];
  if (at < heap->count) settle(heap, at, last);
}

pl_event pl_event_heap_pop(pl_event_heap *heap) {
  PL_DEBUG_ASSERT(heap->count > 0);
  pl_event first = heap->events[0];
  heap->position[first.id] = PL_NONE;
  pl_event last = heap->events[--heap->count];
  if (heap->count > 0) sift_down(heap, 0, last);
  return first;
}

bool pl_event_heap_is_valid(const pl_event_heap *heap) {
  if (heap->count > heap->capacity) return false;
  for (uint32_t at = 0; at < heap->count; at++) {
    pl_event event = heap->events[at];
    if (event.id >= heap->capacity || heap->position[event.id] != at) return false;
    if (at > 0 && is_before(event, heap->events[(at - 1) / 2])) return false;
  }
  uint32_t present = 0;
  for (uint32_t id = 0; id < heap->capacity; id++)
    present += heap->position[id] != PL_NONE;
  return present == heap->count;
}
