/* See netmodel/flow_heap.h. */
#include "netmodel/flow_heap.h"

#include <string.h>

static bool is_before(pl_flow_event a, pl_flow_event b) {
  return a.time < b.time || (a.time == b.time && a.task < b.task);
}

bool pl_flow_heap_reserve(pl_flow_heap *heap, uint32_t room, pl_arena *arena) {
  if (room <= heap->room) return true;
  pl_flow_event *events = pl_arena_take(arena, room * sizeof *events, _Alignof(pl_flow_event));
  uint32_t *position = pl_arena_take(arena, room * sizeof *position, _Alignof(uint32_t));
  if (events == NULL || position == NULL) return false;
  if (heap->room > 0) {
    memcpy(events, heap->events, heap->count * sizeof *events);
    memcpy(position, heap->position, heap->room * sizeof *position);
  }
  memset(position + heap->room, 0xff, (room - heap->room) * sizeof *position); /* PL_NONE */
  heap->events = events;
  heap->position = position;
  heap->room = room;
  return true;
}

static void place(pl_flow_heap *heap, uint32_t at, pl_flow_event event) {
  heap->events[at] = event;
  heap->position[event.slot] = at;
}

static void sift_up(pl_flow_heap *heap, uint32_t at, pl_flow_event event) {
  while (at > 0) {
    uint32_t parent = (at - 1) / 2;
    if (!is_before(event, heap->events[parent])) break;
    place(heap, at, heap->events[parent]);
    at = parent;
  }
  place(heap, at, event);
}

static void sift_down(pl_flow_heap *heap, uint32_t at, pl_flow_event event) {
  uint32_t count = heap->count;
  for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && is_before(heap->events[child + 1], heap->events[child])) child++;
    if (!is_before(heap->events[child], event)) break;
    place(heap, at, heap->events[child]);
  }
  place(heap, at, event);
}

void pl_flow_heap_set(pl_flow_heap *heap, uint32_t slot, uint32_t task, pl_ticks time) {
  pl_flow_event event = {.time = time, .task = task, .slot = slot};
  uint32_t at = heap->position[slot];
  if (at == PL_NONE) {
    sift_up(heap, heap->count++, event);
  } else if (is_before(event, heap->events[at])) {
    sift_up(heap, at, event);
  } else {
    sift_down(heap, at, event);
  }
}

void pl_flow_heap_put(pl_flow_heap *heap, uint32_t slot, uint32_t task, pl_ticks time) {
  uint32_t at = heap->position[slot];
  if (at == PL_NONE) at = heap->count++;
  place(heap, at, (pl_flow_event){.time = time, .task = task, .slot = slot});
}

void pl_flow_heap_order(pl_flow_heap *heap) {
  for (uint32_t at = heap->count / 2; at-- > 0;)
    sift_down(heap, at, heap->events[at]);
}

pl_flow_event pl_flow_heap_pop(pl_flow_heap *heap) {
  pl_flow_event first = heap->events[0];
  pl_flow_event last = heap->events[--heap->count];
  heap->position[first.slot] = PL_NONE;
  if (heap->count > 0) sift_down(heap, 0, last);
  return first;
}

bool pl_flow_heap_is_valid(const pl_flow_heap *heap) {
  for (uint32_t at = 0; at < heap->count; at++) {
    if (heap->position[heap->events[at].slot] != at) return false;
    if (at > 0 && is_before(heap->events[at], heap->events[(at - 1) / 2])) return false;
  }
  return true;
}
