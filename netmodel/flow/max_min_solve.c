/* Progressive filling of one component (see netmodel/flow/max_min.h).
 *
 * Every link has a level: rest / sum(a w) over its open (not yet fixed) flows, the value of x / w at which it fills. A
 * round takes the lowest level L and ALL links that are exactly at it. If some flow on them has its cap below L w,
 * those flows are fixed at their caps and the round ends (caps only raise levels); else every open flow on them is
 * fixed at L w together. Caps of flows on other links are left until those links come up: fixing them now or later
 * gives the same rates, and most never bind.
 *
 * Why this is canonical. Sums are exact integers, so the state after a round does not depend on the order inside the
 * round, and a round is defined by values alone: an automorphism of the network maps rounds to themselves, an equitable
 * quotient runs through the same values, and components do not feel each other. Hence bitwise symmetry and folding.
 *
 * Ties that are ties only in exact arithmetic (two links that should saturate together but whose levels differ by
 * rounding) are robust: the lower link fixes the common flows, what remains of the other is its own flows' share give
 * or take rounding, and a link's level is never lowered, so no remainder can turn negative or absurd. Rejected:
 * comparing levels with a tolerance (it moves rates by the tolerance and is not transitive) and snapping small
 * remainders to zero as SimGrid does below 1e-5 of the capacity (it starves light flows beside heavy ones).
 *
 * The links wait in a binary heap whose keys are lower bounds: levels only rise, so a key is brought up to date when it
 * surfaces. */
#include <math.h>

#include "netmodel/flow/level_heap.h"
#include "netmodel/flow/max_min.h"

static double link_level(const pl_max_min *max_min, const pl_max_min_link *link) {
  return pl_max_min_level_of(max_min, link->rest, link->open_share);
}

typedef struct filling {
  pl_max_min *max_min;
  pl_max_min_level *heap;
  uint32_t n_heap, n_batch, n_capped, n_fixed;
  double last_rate_Bps; /* the conversion of the last fixed rate: most flows of a round share it */
  pl_wide last_wide;
} filling;

static void start_heap(filling *fill) {
  const pl_max_min *max_min = fill->max_min;
  fill->n_heap = max_min->n_component_links;
  for (uint32_t i = 0; i < fill->n_heap; i++) {
    uint32_t link = max_min->component_links[i];
    fill->heap[i] = (pl_max_min_level){.level = link_level(max_min, &max_min->links[link]), .link = link};
  }
  for (uint32_t i = fill->n_heap / 2; i-- > 0;)
    pl_level_heap_sift_down(fill->heap, fill->n_heap, i);
}

static void fix(filling *fill, uint32_t slot, double rate_Bps) {
  pl_max_min *max_min = fill->max_min;
  pl_max_min_slot *flow = &max_min->slots[slot];
  flow->fixed = max_min->epoch;
  fill->n_fixed++;
  if (rate_Bps != flow->rate_Bps) {
    flow->rate_Bps = rate_Bps;
    max_min->changed[max_min->n_changed++] = slot;
  }
  if (rate_Bps != fill->last_rate_Bps) {
    fill->last_rate_Bps = rate_Bps;
    fill->last_wide = pl_max_min_wide(rate_Bps, max_min->rate_bits);
  }
  const pl_max_min_use *uses = &max_min->uses[flow->first_use];
  for (uint32_t i = 0; i < flow->n_uses; i++) {
    pl_max_min_link *link = &max_min->links[uses[i].link];
    pl_wide amount = fill->last_wide;
    if (uses[i].multiple != 1)
      amount =
          uses[i].multiple ? amount * uses[i].multiple : pl_max_min_wide(rate_Bps * uses[i].weight, max_min->rate_bits);
    link->rest -= amount;
    link->open_share -= uses[i].share;
    link->n_open--;
  }
}

/* Moves every link whose level is exactly the lowest from the heap to the batch; returns that level. */
static double take_batch(filling *fill) {
  pl_max_min *max_min = fill->max_min;
  fill->n_batch = 0;
  for (double lowest = fill->heap[0].level; fill->n_heap > 0 && fill->heap[0].level == lowest;) {
    uint32_t index = fill->heap[0].link;
    const pl_max_min_link *link = &max_min->links[index];
    double level = link->n_open > 0 ? link_level(max_min, link) : 0;
    if (link->n_open > 0 && level > lowest) {
      fill->heap[0].level = level;
    } else {
      if (link->n_open > 0) max_min->batch[fill->n_batch++] = index;
      fill->heap[0] = fill->heap[--fill->n_heap];
    }
    if (fill->n_heap > 0) pl_level_heap_sift_down(fill->heap, fill->n_heap, 0);
    if (fill->n_heap == 0 || fill->heap[0].level != lowest) {
      if (fill->n_batch > 0 || fill->n_heap == 0) return lowest;
      lowest = fill->heap[0].level;
    }
  }
  return 0;
}

/* Open flows of the batch whose cap is below the level; each once. */
static void collect_capped(filling *fill, double level) {
  pl_max_min *max_min = fill->max_min;
  fill->n_capped = 0;
  if (!max_min->has_caps) return;
  for (uint32_t b = 0; b < fill->n_batch; b++) {
    const pl_max_min_link *link = &max_min->links[max_min->batch[b]];
    for (uint32_t i = 0; i < link->count; i++) {
      uint32_t slot = link->entries[i].slot;
      pl_max_min_slot *flow = &max_min->slots[slot];
      if (flow->fixed == max_min->epoch || flow->cap_Bps >= level * flow->share) continue;
      flow->fixed = max_min->epoch;
      max_min->capped[fill->n_capped++] = slot;
    }
  }
}

static void fix_capped(filling *fill, double level) {
  pl_max_min *max_min = fill->max_min;
  for (uint32_t i = 0; i < fill->n_capped; i++) {
    uint32_t slot = max_min->capped[i];
    fix(fill, slot, max_min->slots[slot].cap_Bps);
  }
  for (uint32_t b = 0; b < fill->n_batch; b++)
    pl_level_heap_push(fill->heap, &fill->n_heap, level, max_min->batch[b]);
}

/* The batch holds all links that are left: nothing looks at them any more, and everything that is open gets the level.
 * In the order of gathering, which mostly is that of joining. */
static void fix_rest(filling *fill, double level) {
  pl_max_min *max_min = fill->max_min;
  fill->n_fixed = max_min->n_component_slots;
  for (uint32_t i = 0; i < max_min->n_component_slots; i++) {
    uint32_t slot = max_min->component_slots[i];
    pl_max_min_slot *flow = &max_min->slots[slot];
    if (flow->fixed == max_min->epoch) continue;
    double rate_Bps = level * flow->share;
    if (rate_Bps == flow->rate_Bps) continue;
    flow->rate_Bps = rate_Bps;
    max_min->changed[max_min->n_changed++] = slot;
  }
}

static void fix_batch(filling *fill, double level) {
  pl_max_min *max_min = fill->max_min;
  for (uint32_t b = 0; b < fill->n_batch; b++)
    max_min->links[max_min->batch[b]].level = level;
  if (fill->n_heap == 0) {
    fix_rest(fill, level);
    return;
  }
  for (uint32_t b = 0; b < fill->n_batch; b++) {
    const pl_max_min_link *link = &max_min->links[max_min->batch[b]];
    for (uint32_t i = 0; i < link->count && link->n_open > 0; i++) {
      uint32_t slot = link->entries[i].slot;
      const pl_max_min_slot *flow = &max_min->slots[slot];
      if (i + 8 < link->count) __builtin_prefetch(&max_min->slots[link->entries[i + 8].slot]);
      if (flow->fixed != max_min->epoch) fix(fill, slot, level * flow->share);
    }
  }
}

void pl_max_min_fill(pl_max_min *max_min) {
  filling fill = {.max_min = max_min, .heap = max_min->levels};
  start_heap(&fill);
  while (fill.n_fixed < max_min->n_component_slots) {
    PL_ASSERT(fill.n_heap > 0);
    double level = take_batch(&fill);
    collect_capped(&fill, level);
    if (fill.n_capped > 0) {
      fix_capped(&fill, level);
    } else {
      fix_batch(&fill, level);
    }
  }
}
