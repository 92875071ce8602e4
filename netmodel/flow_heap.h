/* Binary heap of (time, task) for the events of the flow network, indexed by slot.
 *
 * Unlike core/event_heap.h the order is by task while the handle is a recycled slot, so the heap is as small as the
 * number of transfers under way, and whole batches go in and out at once: when a re-solve moves most finish dates, one
 * heapify is cheaper than a sift for each, and when a large part of the events is due together (4032 transfers of an
 * all-to-all), one sweep over the array and a radix sort by task are cheaper than a pop for each. Keys are inline, 16
 * bytes. */
#ifndef PL_NETMODEL_FLOW_HEAP_H
#define PL_NETMODEL_FLOW_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/cluster.h"
#include "core/ticks.h"

typedef struct pl_flow_event {
  pl_ticks time;
  uint32_t task, slot;
} pl_flow_event;

typedef struct pl_flow_heap {
  pl_flow_event *events;
  uint32_t *position; /* by slot; PL_NONE = not in the heap */
  uint32_t count, room;
  pl_flow_event *due, *scratch; /* events that left the heap together, by task; room of the heap */
  uint32_t n_due, next_due;
  pl_ticks few_at; /* a tick of which it is known that too few events are due for a sweep */
} pl_flow_heap;

/* Room for slots [0, room); keeps the content. False: no memory, heap unchanged. */
bool pl_flow_heap_reserve(pl_flow_heap *heap, uint32_t room, pl_arena *arena);
/* Pushes or re-keys. */
void pl_flow_heap_set(pl_flow_heap *heap, uint32_t slot, uint32_t task, pl_ticks time);
/* The same without restoring the order; the caller calls pl_flow_heap_order before anything else. */
void pl_flow_heap_put(pl_flow_heap *heap, uint32_t slot, uint32_t task, pl_ticks time);
void pl_flow_heap_order(pl_flow_heap *heap);
/* The next event at `now` (nothing in the heap may be earlier), by task among those that were in the heap when the last
 * batch was drawn. False: none is left. */
bool pl_flow_heap_take_due(pl_flow_heap *heap, pl_ticks now, pl_flow_event *event);
bool pl_flow_heap_is_valid(const pl_flow_heap *heap);

static inline pl_ticks pl_flow_heap_next(const pl_flow_heap *heap) {
  return heap->count == 0 ? PL_TICKS_NEVER : heap->events[0].time;
}

#endif
