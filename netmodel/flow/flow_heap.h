/* Events (time, task) of the flow network, indexed by slot: a binary heap that is a plain queue as long as it can be.
 *
 * Unlike core/engine/event_heap.h the order is by task while the handle is a recycled slot, so the heap is as small as
 * the number of transfers under way, and whole batches go in and out at once: when a large part of the events is due
 * together (4032 transfers of an all-to-all), one sweep over the array and a sort by task are cheaper than a pop for
 * each.
 *
 * Transfers that start together and are alike (the steps of a ring, the latencies of an all-to-all) come in the order
 * of their times, and leave in it. So an empty heap begins as a queue: an array in order of time, filled at its end and
 * read at its front, where what is due is a prefix that is sorted by task on the way out. The first event that comes
 * out of order, moves or leaves early makes a heap of it until it is empty again.
 *
 * When a re-solve moves a large part of the finish dates, no order would live longer than to the next event: then the
 * array becomes a bag, of which only the earliest time is known. The next such re-solve looks for it anew; without one,
 * the bag is made a heap when it is asked for its next event. Keys are inline, 16 bytes. */
#ifndef PL_NETMODEL_FLOW_HEAP_H
#define PL_NETMODEL_FLOW_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/ticks.h"
#include "core/cluster/cluster.h"

typedef struct pl_flow_event {
  pl_ticks time;
  uint32_t task, slot;
} pl_flow_event;

typedef enum pl_flow_heap_form { PL_FLOW_HEAP = 0, PL_FLOW_QUEUE, PL_FLOW_BAG } pl_flow_heap_form;

typedef struct pl_flow_heap {
  pl_flow_event *events;
  uint32_t *position;         /* by slot; PL_NONE = not in the heap */
  uint32_t head, count, room; /* events[head .. head + count); head = 0 in a heap */
  pl_flow_heap_form form;
  /* Of a bag: its earliest time, PL_TICKS_NEVER = not known; where to look for the events at that time, and how many.
   */
  pl_ticks earliest;
  uint32_t first_earliest, n_earliest;
  pl_flow_event *due, *scratch; /* events that left the heap together, by task; room of the heap */
  uint32_t n_due, next_due;
  pl_ticks few_at; /* a tick of which it is known that too few events are due for a sweep */
} pl_flow_heap;

/* Room for slots [0, room); keeps the content. False: no memory, heap unchanged. */
bool pl_flow_heap_reserve(pl_flow_heap *heap, uint32_t room, pl_arena *arena);
/* Pushes or re-keys. */
void pl_flow_heap_set(pl_flow_heap *heap, uint32_t slot, uint32_t task, pl_ticks time);
/* The same as part of a large batch; the caller calls pl_flow_heap_order before anything else. */
void pl_flow_heap_put_new(pl_flow_heap *heap, uint32_t slot, uint32_t task, pl_ticks time);
static inline void pl_flow_heap_put(pl_flow_heap *heap, uint32_t slot, uint32_t task, pl_ticks time) {
  uint32_t at = heap->position[slot];
  if (heap->form == PL_FLOW_BAG && at != PL_NONE) {
    heap->events[at].time = time;
  } else {
    pl_flow_heap_put_new(heap, slot, task, time);
  }
}
void pl_flow_heap_order(pl_flow_heap *heap);
/* Takes the event of the slot away, if there is one. */
void pl_flow_heap_remove(pl_flow_heap *heap, uint32_t slot);
/* The next event at `now` (nothing in the heap may be earlier), by task among those that were in the heap when the last
 * batch was drawn. False: none is left. */
bool pl_flow_heap_take_due(pl_flow_heap *heap, pl_ticks now, pl_flow_event *event);
void pl_flow_heap_drop_first(pl_flow_heap *heap);
/* Some event at `now`, in whatever order; not to be mixed with the call above, nor with `put`. */
static inline bool pl_flow_heap_take_any(pl_flow_heap *heap, pl_ticks now, uint32_t *slot) {
  if (heap->count == 0 || heap->events[heap->head].time > now) return false;
  *slot = heap->events[heap->head].slot;
  pl_flow_heap_drop_first(heap);
  return true;
}
bool pl_flow_heap_is_valid(const pl_flow_heap *heap);

pl_ticks pl_flow_heap_earliest(pl_flow_heap *heap);

static inline pl_ticks pl_flow_heap_next(pl_flow_heap *heap) {
  if (heap->count == 0) return PL_TICKS_NEVER;
  return heap->form == PL_FLOW_BAG ? pl_flow_heap_earliest(heap) : heap->events[heap->head].time;
}

#endif
