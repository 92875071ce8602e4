/* Events (time, task) of the flow network, indexed by slot: a binary heap that is a plain queue as long as it can be.
 *
 * Unlike core/event_heap.h the order is by task while the handle is a recycled slot, so the heap is as small as the
 * number of transfers under way, and whole batches go in and out at once: when a re-solve moves most finish dates, one
 * heapify is cheaper than a sift for each, and when a large part of the events is due together (4032 transfers of an
 * all-to-all), one sweep over the array and a sort by task are cheaper than a pop for each.
 *
 * Transfers that start together and are alike (the steps of a ring, the latencies of an all-to-all) come in the order
 * of their times, and leave in it. So an empty heap begins as a queue: an array in order of time, filled at its end and
 * read at its front, where what is due is a prefix that is sorted by task on the way out. The first event that comes
 * out of order, moves or leaves early makes a heap of it until it is empty again. Keys are inline, 16 bytes. */
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
  uint32_t *position;         /* by slot; PL_NONE = not in the heap */
  uint32_t head, count, room; /* events[head .. head + count); head = 0 in a heap */
  bool is_queue;
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
/* Takes the event of the slot away, if there is one. */
void pl_flow_heap_remove(pl_flow_heap *heap, uint32_t slot);
/* The next event at `now` (nothing in the heap may be earlier), by task among those that were in the heap when the last
 * batch was drawn. False: none is left. */
bool pl_flow_heap_take_due(pl_flow_heap *heap, pl_ticks now, pl_flow_event *event);
void pl_flow_heap_drop_first(pl_flow_heap *heap);
/* Some event at `now`, in whatever order; not to be mixed with the call above. */
static inline bool pl_flow_heap_take_any(pl_flow_heap *heap, pl_ticks now, uint32_t *slot) {
  if (heap->count == 0 || heap->events[heap->head].time > now) return false;
  *slot = heap->events[heap->head].slot;
  pl_flow_heap_drop_first(heap);
  return true;
}
bool pl_flow_heap_is_valid(const pl_flow_heap *heap);

static inline pl_ticks pl_flow_heap_next(const pl_flow_heap *heap) {
  return heap->count == 0 ? PL_TICKS_NEVER : heap->events[heap->head].time;
}

#endif
