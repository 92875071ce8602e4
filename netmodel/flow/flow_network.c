/* The flow network: fluid transfers with exact weighted max-min sharing (netmodel/flow/max_min.h), in ticks.
 *
 * A transfer first waits for its latency, which occupies nothing, then moves its bytes at speed * (its share), where
 * the share comes from the max-min problem of all transfers that are moving. It has one key in one of two heaps: the
 * end of its latency, then its end. (Two, because latencies end mostly in the order in which they began.) `settle`
 * solves what starts and ends of this tick touched and re-keys exactly those transfers whose pace (share * speed)
 * differs bit by bit from before: a transfer whose pace never changes ends at latency + bytes / pace on the grid, with
 * the arithmetic of pl_transfer_solo_ticks, and any history of joins and leaves that nets out within a tick leaves no
 * trace. Starts and leaves of one tick are solved together, so 4032 transfers that end together cost one solve.
 *
 * Most transfers of a training run never meet another one on their links. A transfer that finds all its links free when
 * it starts reserves them and has one event only, its end at latency + bytes / solo rate: it takes no part in the
 * sharing until another transfer begins to move over one of its links. Then it becomes what it would have been all
 * along, waiting for its latency or moving at its solo rate since the end of that. (Two events and a join fewer for
 * 15 of 18 million transfers of a sweep.)
 *
 * Rejected: predicting progress in doubles of seconds (contention is ill-conditioned: one ulp can grow sevenfold per
 * step, so results would neither fold nor reproduce), and lazily invalidated heap entries instead of an indexed heap (a
 * re-solve re-keys many transfers and the heap would grow with the number of re-keys).
 *
 * When memory runs out the arena's and the network's sticky flags are set, the network reports no further event, and
 * the engine finds tasks that never end with arena->failed set. */
#include "netmodel/flow/flow_network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "netmodel/flow/flow_heap.h"
#include "netmodel/flow/max_min.h"
#include "netmodel/flow/networks.h"

typedef enum phase { PHASE_LATENCY = 0, PHASE_RESERVED, PHASE_MOVING, PHASE_ENDING } phase;

/* One transfer under way. */
typedef struct flow {
  double rest_bytes; /* at tick `since`, which for a reservation is the end of its latency */
  double pace_Bps;   /* share * speed since then; 0 = not moving yet */
  double speed;      /* wanted from now on */
  pl_ticks since;
  uint32_t task, spec;
  uint8_t phase;
  bool respeed; /* in `respeeds` */
} flow;

typedef struct flow_network {
  pl_network base;
  pl_network_ops ops; /* of this instance: the name differs */
  pl_max_min sharing;
  pl_flow_heap latencies, ends;
  flow *flows; /* by slot */
  uint32_t flow_room;
  uint32_t *reserved;  /* per link: slot of the transfer that has it to itself, PL_NONE = none */
  uint32_t n_reserved; /* transfers that have */
  uint32_t *respeeds;  /* slots whose speed changed in this tick; room: flow_room */
  uint32_t n_respeeds;
  double *spec_bytes; /* bytes of progress started, per spec */
  double *link_bytes;
  pl_flow_event *listed; /* scratch of write_state */
  uint32_t listed_room;
  bool failed;
} flow_network;

static flow_network *self(pl_network *network) {
  return (flow_network *)network;
}

static bool reserve(flow_network *network) {
  uint32_t room = network->sharing.slot_room;
  if (room <= network->flow_room) return true;
  pl_arena *arena = network->sharing.arena;
  flow *flows = pl_arena_take(arena, room * sizeof *flows, _Alignof(flow));
  uint32_t *respeeds = pl_arena_take(arena, room * sizeof *respeeds, _Alignof(uint32_t));
  if (flows == NULL || respeeds == NULL || !pl_flow_heap_reserve(&network->latencies, room, arena) ||
      !pl_flow_heap_reserve(&network->ends, room, arena))
    return false;
  if (network->flow_room > 0) {
    memcpy(flows, network->flows, network->flow_room * sizeof *flows);
    memcpy(respeeds, network->respeeds, network->n_respeeds * sizeof *respeeds);
  }
  network->flows = flows;
  network->respeeds = respeeds;
  network->flow_room = room;
  return true;
}

static pl_ticks later(pl_ticks now, double time_s) {
  pl_ticks ticks = pl_ticks_from_s(time_s);
  return pl_ticks_sum(now, ticks);
}

/* ---- reservations ---- */

static const pl_max_min_use *uses_of(const flow_network *network, uint32_t slot, uint32_t *n_uses) {
  const pl_max_min_slot *own = &network->sharing.slots[slot];
  *n_uses = own->n_uses;
  return &network->sharing.uses[own->first_use];
}

static bool may_reserve(const flow_network *network, uint32_t slot) {
  uint32_t n_uses;
  const pl_max_min_use *uses = uses_of(network, slot, &n_uses);
  for (uint32_t i = 0; i < n_uses; i++)
    if (network->sharing.links[uses[i].link].count > 0 || network->reserved[uses[i].link] != PL_NONE) return false;
  return true;
}

static void set_reserved(flow_network *network, uint32_t slot, uint32_t holder) {
  uint32_t n_uses;
  const pl_max_min_use *uses = uses_of(network, slot, &n_uses);
  for (uint32_t i = 0; i < n_uses; i++)
    network->reserved[uses[i].link] = holder;
}

static void reserve_links(flow_network *network, uint32_t slot, pl_ticks moves) {
  flow *f = &network->flows[slot];
  f->phase = PHASE_RESERVED;
  f->since = moves;
  f->pace_Bps = pl_max_min_solo_rate(&network->sharing, f->spec);
  network->n_reserved++;
  set_reserved(network, slot, slot);
  pl_flow_heap_set(&network->ends, slot, f->task, later(moves, f->rest_bytes / f->pace_Bps));
}

/* Makes an ordinary transfer of a reservation. */
static void give_up_reservation(flow_network *network, uint32_t slot, pl_ticks now) {
  flow *f = &network->flows[slot];
  set_reserved(network, slot, PL_NONE);
  network->n_reserved--;
  if (now < f->since) {
    f->phase = PHASE_LATENCY;
    f->pace_Bps = 0;
    pl_flow_heap_remove(&network->ends, slot);
    pl_flow_heap_set(&network->latencies, slot, f->task, f->since);
  } else { /* nobody else is on its links yet */
    f->phase = PHASE_MOVING;
    pl_max_min_join(&network->sharing, slot);
  }
}

static void join(flow_network *network, uint32_t slot, pl_ticks now) {
  uint32_t n_uses;
  const pl_max_min_use *uses = uses_of(network, slot, &n_uses);
  for (uint32_t i = 0; i < n_uses && network->n_reserved > 0; i++) {
    uint32_t holder = network->reserved[uses[i].link];
    if (holder != PL_NONE) give_up_reservation(network, holder, now);
  }
  pl_max_min_join(&network->sharing, slot);
}

/* ---- transfers ---- */

/* The latency is over. */
static void begin_moving(flow_network *network, uint32_t slot, pl_ticks now) {
  flow *f = &network->flows[slot];
  f->phase = PHASE_MOVING;
  f->since = now;
  join(network, slot, now);
}

static bool takes_no_time(const flow_network *network, const flow *f) {
  return !(f->rest_bytes > 0) || isinf(network->sharing.specs[f->spec].solo_Bps);
}

/* A slot for a flow whose bytes move from `since` on, nowhere queued yet; PL_NONE when there is no memory. */
static uint32_t take_flow(flow_network *network, uint32_t task, uint32_t spec, double size_bytes, pl_ticks since) {
  uint32_t slot = pl_max_min_take_slot(&network->sharing, spec);
  if (network->failed || slot == PL_NONE || !reserve(network)) {
    network->failed = true;
    return PL_NONE;
  }
  network->flows[slot] = (flow){.rest_bytes = size_bytes, .speed = 1, .since = since, .task = task, .spec = spec};
  network->spec_bytes[spec] += size_bytes;
  return slot;
}

static uint32_t flow_start(pl_network *base, pl_ticks now, uint32_t task, uint32_t spec, double size_bytes) {
  flow_network *network = self(base);
  uint32_t slot = take_flow(network, task, spec, size_bytes, now);
  if (slot == PL_NONE) return PL_NONE;
  flow *f = &network->flows[slot];
  pl_ticks latency = network->sharing.table->specs[spec].latency;
  pl_ticks moves = pl_ticks_sum(now, latency);
  if (takes_no_time(network, f)) {
    f->phase = PHASE_ENDING;
    pl_flow_heap_set(&network->ends, slot, task, moves);
  } else if (may_reserve(network, slot)) {
    reserve_links(network, slot, moves);
  } else if (latency == 0) {
    begin_moving(network, slot, now);
  } else {
    pl_flow_heap_set(&network->latencies, slot, task, moves);
  }
  return slot;
}

static uint32_t flow_resume(pl_network *base, pl_ticks now, uint32_t task, uint32_t spec, double size_bytes,
                            pl_ticks begun) {
  flow_network *network = self(base);
  if (begun == now) return flow_start(base, now, task, spec, size_bytes);
  pl_ticks moves = pl_ticks_sum(begun, network->sharing.table->specs[spec].latency);
  uint32_t slot = take_flow(network, task, spec, size_bytes, moves);
  if (slot == PL_NONE) return PL_NONE;
  if (moves > now) { /* its latency is not over */
    pl_flow_heap_set(&network->latencies, slot, task, moves);
    return slot;
  }
  /* It has moved at its solo rate since then; should that not change, it ends when it would have ended. */
  flow *f = &network->flows[slot];
  f->phase = PHASE_MOVING;
  f->pace_Bps = pl_max_min_solo_rate(&network->sharing, spec);
  join(network, slot, now);
  pl_flow_heap_set(&network->ends, slot, task, later(moves, size_bytes / f->pace_Bps));
  return slot;
}

static void flow_set_speed(pl_network *base, pl_ticks now, uint32_t slot, double speed) {
  flow_network *network = self(base);
  if (network->failed || slot == PL_NONE) return;
  flow *f = &network->flows[slot];
  f->speed = speed; /* takes effect in settle, which comes in the same tick */
  if (f->phase == PHASE_RESERVED) give_up_reservation(network, slot, now);
  if (f->phase != PHASE_MOVING || f->respeed) return;
  f->respeed = true;
  network->respeeds[network->n_respeeds++] = slot;
}

static pl_ticks next_event(flow_network *network) {
  pl_ticks moves = pl_flow_heap_next(&network->latencies), ends = pl_flow_heap_next(&network->ends);
  return moves < ends ? moves : ends;
}

/* Brings the transfer to `now` and gives it its new pace. False: nothing changed. */
static bool repace(flow_network *network, uint32_t slot, pl_ticks now, pl_ticks *finish) {
  flow *f = &network->flows[slot];
  double pace_Bps = pl_max_min_rate(&network->sharing, slot) * f->speed;
  if (pace_Bps == f->pace_Bps) return false;
  f->rest_bytes -= f->pace_Bps * pl_ticks_to_s(now - f->since);
  if (f->rest_bytes < 0) f->rest_bytes = 0;
  f->since = now;
  f->pace_Bps = pace_Bps;
  *finish = later(now, f->rest_bytes / pace_Bps);
  return true;
}

static void rekey(flow_network *network, const uint32_t *slots, uint32_t count, pl_ticks now) {
  /* Finding the earliest costs a comparison per event of the heap, a sift up to two per level. */
  bool batch = count > 16 && count > network->ends.count / 16;
  for (uint32_t i = 0; i < count; i++) {
    pl_ticks finish;
    if (!repace(network, slots[i], now, &finish)) continue;
    if (batch) {
      pl_flow_heap_put(&network->ends, slots[i], network->flows[slots[i]].task, finish);
    } else {
      pl_flow_heap_set(&network->ends, slots[i], network->flows[slots[i]].task, finish);
    }
  }
  if (batch) pl_flow_heap_order(&network->ends);
}

static pl_ticks flow_settle(pl_network *base, pl_ticks now) {
  flow_network *network = self(base);
  network->failed |= network->sharing.failed;
  if (network->failed) return PL_TICKS_NEVER;
  pl_max_min_solve(&network->sharing);
  if (network->sharing.n_changed > 0) rekey(network, network->sharing.changed, network->sharing.n_changed, now);
  for (uint32_t i = 0; i < network->n_respeeds; i++)
    network->flows[network->respeeds[i]].respeed = false;
  if (network->n_respeeds > 0) rekey(network, network->respeeds, network->n_respeeds, now);
  network->n_respeeds = 0;
  return next_event(network);
}

/* A transfer that ends in the tick in which its speed was changed must not be re-keyed. */
static void forget_respeed(flow_network *network, uint32_t slot) {
  for (uint32_t i = 0; i < network->n_respeeds; i++) {
    if (network->respeeds[i] != slot) continue;
    network->respeeds[i] = network->respeeds[--network->n_respeeds];
    return;
  }
}

static uint32_t flow_advance(pl_network *base, pl_ticks now) {
  flow_network *network = self(base);
  pl_flow_event event;
  uint32_t slot;
  while (!network->failed && pl_flow_heap_take_any(&network->latencies, now, &slot))
    begin_moving(network, slot, now);
  if (network->failed || !pl_flow_heap_take_due(&network->ends, now, &event)) return PL_NONE;
  const flow *f = &network->flows[event.slot];
  if (f->respeed) forget_respeed(network, event.slot);
  if (f->phase == PHASE_RESERVED) {
    network->n_reserved--;
    set_reserved(network, event.slot, PL_NONE);
  } else {
    pl_max_min_leave(&network->sharing, event.slot);
  }
  pl_max_min_give_slot(&network->sharing, event.slot);
  return event.task;
}

static const double *flow_link_bytes(pl_network *base) {
  flow_network *network = self(base);
  const pl_transfer_table *table = network->sharing.table;
  memset(network->link_bytes, 0, table->n_links * sizeof *network->link_bytes);
  for (uint32_t spec = 0; spec < table->n_specs; spec++) {
    const pl_link_use *uses = &table->uses[table->specs[spec].first_use];
    for (uint32_t i = 0; i < table->specs[spec].n_uses; i++)
      network->link_bytes[uses[i].link] += uses[i].weight * network->spec_bytes[spec];
  }
  return network->link_bytes;
}

/* ---- the state, written out ---- */

static int compare_events(const void *a, const void *b) {
  uint32_t left = ((const pl_flow_event *)a)->task, right = ((const pl_flow_event *)b)->task;
  return (left > right) - (left < right);
}

/* In the order of their tasks: each transfer has one event, in one of the heaps. False: no memory. */
static bool list_events(flow_network *network, uint32_t *n) {
  const pl_flow_heap *const heaps[] = {&network->latencies, &network->ends};
  *n = network->latencies.count + network->ends.count;
  if (*n > network->listed_room) {
    network->listed = pl_arena_take(network->sharing.arena, 2 * *n * sizeof *network->listed, _Alignof(pl_flow_event));
    network->listed_room = network->listed == NULL ? 0 : 2 * *n;
  }
  if (*n > network->listed_room) return false;
  pl_flow_event *to = network->listed;
  for (int h = 0; h < 2; to += heaps[h++]->count)
    if (heaps[h]->count > 0) memcpy(to, &heaps[h]->events[heaps[h]->head], heaps[h]->count * sizeof *to);
  if (*n > 1) qsort(network->listed, *n, sizeof *network->listed, compare_events);
  return true;
}

/* Rates are decided by which transfers move (netmodel/flow/max_min.h), and links are reserved by those that have. */
static void flow_write_state(pl_network *base, pl_run_state *state) {
  flow_network *network = self(base);
  uint32_t n;
  if (network->failed || !list_events(network, &n)) {
    state->outside = true;
    return;
  }
  const pl_flow_event *events = network->listed;
  for (uint32_t i = 0; i < n; i++) {
    if (!pl_run_state_is_of(state, events[i].task)) continue;
    const flow *f = &network->flows[events[i].slot];
    pl_run_state_put_task(state, PL_STATE_FLOW, f->task);
    pl_run_state_put(state, PL_STATE_FLOW, f->spec);
    pl_run_state_put(state, PL_STATE_FLOW_PHASE, f->phase);
    pl_run_state_put_date(state, PL_STATE_FLOW_DATE, events[i].time);
    pl_run_state_put_double(state, PL_STATE_FLOW_REST, f->rest_bytes);
    pl_run_state_put_date(state, PL_STATE_FLOW_SINCE, f->since);
    pl_run_state_put_double(state, PL_STATE_FLOW_PACE, f->pace_Bps);
    pl_run_state_put_double(state, PL_STATE_FLOW_SPEED, f->speed);
  }
  pl_run_state_put(state, PL_STATE_FLOW, UINT64_MAX);
}

static pl_ticks flow_put_off(pl_network *base, const pl_run_state *state, pl_ticks by) {
  flow_network *network = self(base);
  uint32_t n;
  if (network->failed || !list_events(network, &n)) return PL_TICKS_NEVER;
  for (uint32_t i = 0; i < n; i++) {
    const pl_flow_event *event = &network->listed[i];
    flow *f = &network->flows[event->slot];
    if (!pl_run_state_is_of(state, event->task)) continue;
    f->since = pl_ticks_sum(f->since, by);
    pl_flow_heap_set(f->phase == PHASE_LATENCY ? &network->latencies : &network->ends, event->slot, event->task,
                     pl_ticks_sum(event->time, by));
  }
  return next_event(network);
}

/* ---- transfers that go on in another network ---- */

static bool flow_list_under_way(pl_network *base, pl_arena *arena, pl_under_way_list *list) {
  flow_network *network = self(base);
  uint32_t n;
  if (network->failed || !list_events(network, &n)) return false;
  pl_under_way *flows = PL_TAKE(arena, pl_under_way, n);
  if (flows == NULL) return false;
  for (uint32_t i = 0; i < n; i++) {
    const pl_flow_event *event = &network->listed[i];
    const flow *f = &network->flows[event->slot];
    flows[i] = (pl_under_way){.task = f->task,
                              .spec = f->spec,
                              .phase = f->phase,
                              .date = event->time,
                              .since = f->since,
                              .rest_bytes = f->rest_bytes,
                              .pace_Bps = f->pace_Bps,
                              .speed = f->speed};
  }
  *list =
      (pl_under_way_list){.flows = flows, .n = n, .scales = {network->sharing.rate_bits, network->sharing.share_bits}};
  return true;
}

static bool flow_shares_scales(const pl_network *base, const pl_under_way_list *list) {
  const pl_max_min *sharing = &((const flow_network *)base)->sharing;
  return sharing->rate_bits == list->scales[0] && sharing->share_bits == list->scales[1];
}

/* Those that move join, and the next solve gives them the rates that they had. */
static bool flow_take_over(pl_network *base, const pl_under_way *from) {
  flow_network *network = self(base);
  uint32_t slot = take_flow(network, from->task, from->spec, from->rest_bytes, from->since);
  if (slot == PL_NONE) return false;
  flow *f = &network->flows[slot];
  f->phase = from->phase;
  f->pace_Bps = from->pace_Bps;
  f->speed = from->speed;
  if (from->phase == PHASE_RESERVED) {
    network->n_reserved++;
    set_reserved(network, slot, slot);
  } else if (from->phase == PHASE_MOVING) {
    pl_max_min_join(&network->sharing, slot);
  }
  pl_flow_heap_set(from->phase == PHASE_LATENCY ? &network->latencies : &network->ends, slot, from->task, from->date);
  return true;
}

static void flow_destroy(pl_network *base) {
  (void)base; /* the arena's memory */
}

pl_network *pl_flow_network_make(const pl_transfer_table *table, const char *name, bool alone, pl_arena *arena) {
  flow_network *network = PL_TAKE(arena, flow_network, 1);
  if (network == NULL) return NULL;
  network->ops = (pl_network_ops){.name = name,
                                  .start = flow_start,
                                  .resume = flow_resume,
                                  .set_speed = flow_set_speed,
                                  .settle = flow_settle,
                                  .advance = flow_advance,
                                  .write_state = flow_write_state,
                                  .put_off = flow_put_off,
                                  .list_under_way = flow_list_under_way,
                                  .shares_scales = flow_shares_scales,
                                  .take_over = flow_take_over,
                                  .link_bytes = flow_link_bytes,
                                  .destroy = flow_destroy};
  network->base.ops = &network->ops;
  network->latencies.few_at = network->ends.few_at = -1;
  network->spec_bytes = PL_TAKE(arena, double, table->n_specs);
  network->link_bytes = PL_TAKE(arena, double, table->n_links);
  network->reserved = PL_TAKE(arena, uint32_t, table->n_links);
  if (network->spec_bytes == NULL || network->link_bytes == NULL || network->reserved == NULL) return NULL;
  memset(network->reserved, 0xff, table->n_links * sizeof *network->reserved); /* PL_NONE */
  return pl_max_min_init(&network->sharing, table, alone, arena) ? &network->base : NULL;
}

pl_network *pl_flow_network_take(const pl_transfer_table *table, pl_arena *arena) {
  return pl_flow_network_make(table, "flow", false, arena);
}
