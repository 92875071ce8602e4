/* See fixed_network.h. */
#include "tests/support/fixed_network.h"

#include <math.h>

#include "core/engine/event_heap.h"

typedef struct fixed_flow {
  double remaining_bytes, rate_Bps, speed;
  pl_ticks updated; /* remaining_bytes holds as of this tick; later than now while the latency lasts */
} fixed_flow;

typedef struct fixed_network {
  pl_network base;
  const pl_transfer_table *table;
  pl_event_heap heap;
  fixed_flow *flows;
  uint32_t *free_slots, n_free;
} fixed_network;

static void set_date(fixed_network *network, uint32_t slot, uint32_t task) {
  const fixed_flow *flow = &network->flows[slot];
  double time_s = flow->remaining_bytes / (flow->rate_Bps * flow->speed);
  pl_event_heap_put(&network->heap, slot, flow->updated + pl_ticks_from_s(time_s), task);
}

static uint32_t start(pl_network *base, pl_ticks now, uint32_t task, uint32_t spec, double size_bytes) {
  fixed_network *network = (fixed_network *)base;
  PL_ASSERT(network->n_free > 0);
  uint32_t slot = network->free_slots[--network->n_free];
  network->flows[slot] = (fixed_flow){.remaining_bytes = size_bytes,
                                      .rate_Bps = pl_transfer_solo_rate(network->table, spec),
                                      .speed = 1,
                                      .updated = now + network->table->specs[spec].latency};
  set_date(network, slot, task);
  return slot;
}

static void set_speed(pl_network *base, pl_ticks now, uint32_t slot, double speed) {
  fixed_network *network = (fixed_network *)base;
  fixed_flow *flow = &network->flows[slot];
  if (now > flow->updated) {
    double moved_bytes = pl_ticks_to_s(now - flow->updated) * flow->rate_Bps * flow->speed;
    flow->remaining_bytes = fmax(0, flow->remaining_bytes - moved_bytes);
    flow->updated = now;
  }
  flow->speed = speed;
  set_date(network, slot, network->heap.events[network->heap.position[slot]].order);
}

static pl_ticks settle(pl_network *base, pl_ticks now) {
  (void)now;
  return pl_event_heap_next(&((fixed_network *)base)->heap);
}

static uint32_t advance(pl_network *base, pl_ticks now) {
  fixed_network *network = (fixed_network *)base;
  if (pl_event_heap_next(&network->heap) > now) return PL_NONE;
  pl_event event = pl_event_heap_pop(&network->heap);
  network->free_slots[network->n_free++] = event.id;
  return event.order;
}

static void destroy(pl_network *base) {
  (void)base;
}

static const pl_network_ops ops = {
    .name = "fixed", .start = start, .set_speed = set_speed, .settle = settle, .advance = advance, .destroy = destroy};

pl_network *fixed_network_take(const pl_transfer_table *table, uint32_t most_active, pl_arena *arena) {
  fixed_network *network = PL_TAKE(arena, fixed_network, 1);
  if (network == NULL || !pl_event_heap_init(&network->heap, most_active, arena)) return NULL;
  network->base.ops = &ops;
  network->table = table;
  network->flows = PL_TAKE(arena, fixed_flow, most_active);
  network->free_slots = PL_TAKE(arena, uint32_t, most_active);
  if (network->flows == NULL || network->free_slots == NULL) return NULL;
  while (network->n_free < most_active) {
    network->free_slots[network->n_free] = most_active - 1 - network->n_free;
    network->n_free++;
  }
  return &network->base;
}
