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
  pl_flow_event *due = pl_arena_take(arena, room * sizeof *due, _Alignof(pl_flow_event));
  pl_flow_event *scratch = pl_arena_take(arena, room * sizeof *scratch, _Alignof(pl_flow_event));
  if (events == NULL || position == NULL || due == NULL || scratch == NULL) return false;
  if (heap->room > 0) {
    memcpy(events, heap->events, heap->count * sizeof *events);
    memcpy(position, heap->position, heap->room * sizeof *position);
    memcpy(due, heap->due, heap->n_due * sizeof *due);
  }
  memset(position + heap->room, 0xff, (room - heap->room) * sizeof *position); /* PL_NONE */
  heap->events = events;
  heap->position = position;
  heap->due = due;
  heap->scratch = scratch;
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

static pl_flow_event pop(pl_flow_heap *heap) {
  pl_flow_event first = heap->events[0];
  pl_flow_event last = heap->events[--heap->count];
  heap->position[first.slot] = PL_NONE;
  if (heap->count > 0) sift_down(heap, 0, last);
  return first;
}

/* Number of events at `now`, as far as `limit`: they form the top of the tree. */
static uint32_t count_due(const pl_flow_heap *heap, uint32_t at, pl_ticks now, uint32_t limit) {
  if (at >= heap->count || limit == 0 || heap->events[at].time > now) return 0;
  uint32_t found = 1 + count_due(heap, 2 * at + 1, now, limit - 1);
  return found >= limit ? limit : found + count_due(heap, 2 * at + 2, now, limit - found);
}

enum { RADIX_BITS = 11, RADIX = 1 << RADIX_BITS };

/* One stable pass over the digit at `shift`; false (and nothing moved) when all have the same digit. */
static bool radix_pass(const pl_flow_event *from, pl_flow_event *to, uint32_t count, uint32_t shift) {
  uint32_t start[RADIX + 1] = {0};
  for (uint32_t i = 0; i < count; i++)
    start[(from[i].task >> shift & (RADIX - 1)) + 1]++;
  if (start[(from[0].task >> shift & (RADIX - 1)) + 1] == count) return false;
  for (uint32_t digit = 1; digit < RADIX; digit++)
    start[digit] += start[digit - 1];
  for (uint32_t i = 0; i < count; i++)
    to[start[from[i].task >> shift & (RADIX - 1)]++] = from[i];
  return true;
}

static void sort_due(pl_flow_heap *heap) {
  uint32_t i = 1;
  while (i < heap->n_due && heap->due[i - 1].task < heap->due[i].task)
    i++;
  if (i >= heap->n_due) return;
  for (uint32_t shift = 0; shift < 32; shift += RADIX_BITS) {
    if (!radix_pass(heap->due, heap->scratch, heap->n_due, shift)) continue;
    pl_flow_event *swap = heap->due;
    heap->due = heap->scratch;
    heap->scratch = swap;
  }
}

/* Moves everything that is due out of the array at once. */
static void sweep_due(pl_flow_heap *heap, pl_ticks now) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < heap->count; i++) {
    pl_flow_event event = heap->events[i];
    if (event.time <= now) {
      heap->position[event.slot] = PL_NONE;
      heap->due[heap->n_due++] = event;
    } else {
      place(heap, kept++, event);
    }
  }
  heap->count = kept;
  pl_flow_heap_order(heap);
  sort_due(heap);
}

bool pl_flow_heap_take_due(pl_flow_heap *heap, pl_ticks now, pl_flow_event *event) {
  if (heap->next_due == heap->n_due) {
    heap->next_due = heap->n_due = 0;
    if (heap->count == 0 || heap->events[0].time > now) return false;
    /* A pop costs about 2 log2(count) moves, a sweep 3 per event of the heap, and sorting a fixed 2048. */
    uint32_t limit = heap->count / 6;
    if (limit < 512 || heap->few_at == now || count_due(heap, 0, now, limit) < limit) {
      heap->few_at = now;
      *event = pop(heap);
      return true;
    }
    sweep_due(heap, now);
  }
  *event = heap->due[heap->next_due++];
  return true;
}

bool pl_flow_heap_is_valid(const pl_flow_heap *heap) {
  for (uint32_t at = 0; at < heap->count; at++) {
    if (heap->position[heap->events[at].slot] != at) return false;
    if (at > 0 && is_before(heap->events[at], heap->events[(at - 1) / 2])) return false;
  }
  return true;
}
