/* See netmodel/flow/flow_heap.h. */
#include "netmodel/flow/flow_heap.h"

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
    memcpy(events, heap->events, (heap->head + heap->count) * sizeof *events);
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

/* Moves a queue to the start of the array. */
static void move_down(pl_flow_heap *heap) {
  if (heap->head == 0) return;
  for (uint32_t i = 0; i < heap->count; i++)
    place(heap, i, heap->events[heap->head + i]);
  heap->head = 0;
}

static void heapify(pl_flow_heap *heap) {
  for (uint32_t at = heap->count / 2; at-- > 0;)
    sift_down(heap, at, heap->events[at]);
}

static void make_heap(pl_flow_heap *heap) {
  if (heap->form == PL_FLOW_HEAP) return;
  heap->form = PL_FLOW_HEAP;
  move_down(heap);
  heapify(heap);
}

pl_ticks pl_flow_heap_earliest(pl_flow_heap *heap) {
  if (heap->n_earliest > 0) return heap->earliest;
  make_heap(heap);
  return heap->events[0].time;
}

static void add_to_bag(pl_flow_heap *heap, pl_flow_event event) {
  bool is_exact = heap->n_earliest > 0 || event.time < heap->earliest;
  if (event.time < heap->earliest) heap->earliest = event.time;
  heap->first_earliest = 0;
  heap->n_earliest = is_exact ? UINT32_MAX : 0;
  place(heap, heap->count++, event);
}

/* At the end of a queue, if it stays one. */
static bool append(pl_flow_heap *heap, pl_flow_event event) {
  uint32_t end = heap->head + heap->count;
  if (heap->count == 0) {
    heap->form = PL_FLOW_QUEUE;
    heap->head = end = 0;
  } else if (heap->form != PL_FLOW_QUEUE || event.time < heap->events[end - 1].time) {
    return false;
  } else if (end == heap->room) {
    if (heap->head < heap->count) return false;
    move_down(heap); /* pays for as many events that left */
    end = heap->count;
  }
  place(heap, end, event);
  heap->count++;
  return true;
}

void pl_flow_heap_set(pl_flow_heap *heap, uint32_t slot, uint32_t task, pl_ticks time) {
  pl_flow_event event = {.time = time, .task = task, .slot = slot};
  uint32_t at = heap->position[slot];
  if (at == PL_NONE && append(heap, event)) return;
  if (at == PL_NONE && heap->form == PL_FLOW_BAG) {
    add_to_bag(heap, event);
    return;
  }
  if (heap->form != PL_FLOW_HEAP) {
    make_heap(heap);
    at = heap->position[slot];
  }
  if (at == PL_NONE) {
    sift_up(heap, heap->count++, event);
  } else if (is_before(event, heap->events[at])) {
    sift_up(heap, at, event);
  } else {
    sift_down(heap, at, event);
  }
}

/* What pl_flow_heap_put does where it is not a new time for an event of a bag. */
void pl_flow_heap_put_new(pl_flow_heap *heap, uint32_t slot, uint32_t task, pl_ticks time) {
  pl_flow_event event = {.time = time, .task = task, .slot = slot};
  if (heap->form != PL_FLOW_BAG) {
    if (heap->position[slot] == PL_NONE && append(heap, event)) return;
    move_down(heap);
    heap->form = PL_FLOW_BAG;
  }
  uint32_t at = heap->position[slot];
  place(heap, at == PL_NONE ? heap->count++ : at, event);
}

void pl_flow_heap_order(pl_flow_heap *heap) {
  if (heap->form != PL_FLOW_BAG) return;
  const pl_flow_event *events = heap->events;
  pl_ticks earliest = PL_TICKS_NEVER;
  uint32_t first = 0, found = 0;
  for (uint32_t i = 0; i < heap->count; i++) {
    if (events[i].time > earliest) continue;
    if (events[i].time < earliest) earliest = events[i].time, first = i, found = 0;
    found++;
  }
  heap->earliest = earliest;
  heap->first_earliest = first;
  heap->n_earliest = found;
}

void pl_flow_heap_remove(pl_flow_heap *heap, uint32_t slot) {
  if (heap->position[slot] == PL_NONE) return;
  make_heap(heap);
  uint32_t at = heap->position[slot];
  pl_flow_event last = heap->events[--heap->count];
  heap->position[slot] = PL_NONE;
  if (at == heap->count) return;
  if (is_before(last, heap->events[at])) {
    sift_up(heap, at, last);
  } else {
    sift_down(heap, at, last);
  }
}

static pl_flow_event pop(pl_flow_heap *heap) {
  pl_flow_event first = heap->events[0];
  pl_flow_event last = heap->events[--heap->count];
  heap->position[first.slot] = PL_NONE;
  if (heap->count > 0) sift_down(heap, 0, last);
  return first;
}

void pl_flow_heap_drop_first(pl_flow_heap *heap) {
  if (heap->form == PL_FLOW_QUEUE) {
    heap->position[heap->events[heap->head++].slot] = PL_NONE;
    heap->count--;
  } else {
    pop(heap);
  }
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

/* For few events, and for many that are nearly in order; false when it takes too long (the order is then partial). */
static bool sort_by_insertion(pl_flow_event *events, uint32_t count) {
  uint32_t moves_left = 256 + count / 4;
  for (uint32_t i = 1; i < count; i++) {
    if (events[i - 1].task < events[i].task) continue;
    pl_flow_event moved = events[i];
    uint32_t at = i;
    for (; at > 0 && moved.task < events[at - 1].task; at--)
      events[at] = events[at - 1];
    events[at] = moved;
    if (i - at > moves_left) return false;
    moves_left -= i - at;
  }
  return true;
}

/* Tasks are distinct: where they leave no gap, each has its place. */
static bool sort_dense(const pl_flow_event *from, pl_flow_event *to, uint32_t count) {
  uint32_t first = from[0].task, last = first;
  for (uint32_t i = 1; i < count; i++) {
    first = from[i].task < first ? from[i].task : first;
    last = from[i].task > last ? from[i].task : last;
  }
  if (last - first != count - 1) return false;
  for (uint32_t i = 0; i < count; i++)
    to[from[i].task - first] = from[i];
  return true;
}

static void swap_due(pl_flow_heap *heap) {
  pl_flow_event *swap = heap->due;
  heap->due = heap->scratch;
  heap->scratch = swap;
}

static void sort_due(pl_flow_heap *heap) {
  if (sort_by_insertion(heap->due, heap->n_due)) return;
  if (sort_dense(heap->due, heap->scratch, heap->n_due)) {
    swap_due(heap);
    return;
  }
  for (uint32_t shift = 0; shift < 32; shift += RADIX_BITS)
    if (radix_pass(heap->due, heap->scratch, heap->n_due, shift)) swap_due(heap);
}

/* Moves the due prefix of a queue to the batch. */
static void take_prefix(pl_flow_heap *heap, pl_ticks now) {
  const pl_flow_event *events = &heap->events[heap->head];
  uint32_t count = 0;
  for (; count < heap->count && events[count].time <= now; count++) {
    heap->position[events[count].slot] = PL_NONE;
    heap->due[count] = events[count];
  }
  heap->n_due = count;
  heap->head += count;
  heap->count -= count;
  sort_due(heap);
}

/* Moves what is due out of a bag. */
static void pick_due(pl_flow_heap *heap, pl_ticks now) {
  for (uint32_t i = heap->first_earliest; i < heap->count && heap->n_due < heap->n_earliest;) {
    pl_flow_event event = heap->events[i];
    if (event.time > now) {
      i++;
      continue;
    }
    heap->position[event.slot] = PL_NONE;
    heap->due[heap->n_due++] = event;
    if (i < --heap->count) place(heap, i, heap->events[heap->count]);
  }
  heap->earliest = now + 1;
  heap->n_earliest = 0;
  sort_due(heap);
}

/* Moves everything that is due out of a heap at once. */
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
  heapify(heap);
  sort_due(heap);
}

bool pl_flow_heap_take_due(pl_flow_heap *heap, pl_ticks now, pl_flow_event *event) {
  if (heap->next_due == heap->n_due) {
    heap->next_due = heap->n_due = 0;
    if (heap->count == 0 || (heap->form == PL_FLOW_BAG ? heap->earliest : heap->events[heap->head].time) > now)
      return false;
    if (heap->form == PL_FLOW_QUEUE) {
      take_prefix(heap, now);
    } else if (heap->form == PL_FLOW_BAG) {
      pick_due(heap, now);
    } else {
      /* A pop costs about 2 log2(count) moves, a sweep 3 per event of the heap, and sorting at most a fixed 2048. */
      uint32_t limit = heap->count / 6;
      if (limit < 512 || heap->few_at == now || count_due(heap, 0, now, limit) < limit) {
        heap->few_at = now;
        *event = pop(heap);
        return true;
      }
      sweep_due(heap, now);
    }
  }
  *event = heap->due[heap->next_due++];
  return true;
}

bool pl_flow_heap_is_valid(const pl_flow_heap *heap) {
  if (heap->count > 0 && heap->form != PL_FLOW_QUEUE && heap->head != 0) return false;
  for (uint32_t i = 0; i < heap->count; i++) {
    uint32_t at = heap->head + i;
    const pl_flow_event *events = heap->events;
    if (heap->position[events[at].slot] != at) return false;
    if (heap->form == PL_FLOW_BAG && events[at].time < heap->earliest) return false;
    if (heap->form == PL_FLOW_QUEUE && i > 0 && events[at].time < events[at - 1].time) return false;
    if (heap->form == PL_FLOW_HEAP && i > 0 && is_before(events[at], events[(at - 1) / 2])) return false;
  }
  return true;
}
