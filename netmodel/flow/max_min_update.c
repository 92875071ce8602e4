/* Max-min rates after a few flows left, from the rates before (see netmodel/flow/max_min.h).
 *
 * A flow that leaves a large component changes the rates of many, but the bottlenecks of few: of 2,000 flows of an
 * all-to-all 800 change their rate, through 58 of 124 links, and 10 change the link that bounds them. So each link
 * remembers which flows it owns (is the bottleneck of), its level, and the sum that the flows of others take away from
 * it. A link whose sum changed is looked at again: its new level is one division, and each flow that it owns passes the
 * difference on to its other links. A flow whose other link turns out to be lower changes its owner; a link that sinks
 * takes over the flows that are now above it. Links are looked at in the order of their levels, since what a link does
 * depends only on lower ones, and most are looked at once.
 *
 * The result is that of the filling to the bit, or there is none. When nothing waits any more, every link has the level
 *   (capacity - rates of the flows that others own) / (weights of those that it owns),
 * computed from exact sums as in the filling, and no flow has another link as low as its owner's. If moreover the links
 * of every flow differ in level by more than a margin far above rounding (2^-30), the filling gets there too: before a
 * link's turn its level is a mean of its own and of lower ones of flows still open, with a weight of at least 1 / flows
 * on its own, hence above the level at hand by more than rounding; and at its turn the sums are those above. Where
 * levels on a flow lie closer (ties, mostly), the filling decides, for which an exact tie is a tie and an ulp is not.
 * Links that no flow joins may tie.
 *
 * Only plain flows: one share weight, usage weights 1, no caps (point-to-point transfers under equal sharing). Then all
 * flows of an owner have one rate, and the sums need one difference per link. Joins go through the filling. */
#include <math.h>

#include "netmodel/flow/level_heap.h"
#include "netmodel/flow/max_min.h"

enum { FEW_LEFT = 16, MANY_FLOWS = 64, MOST_SKIPS = 31 };

static const double margin = 0x1p-30;

typedef struct update {
  pl_max_min *max_min;
  pl_max_min_level *heap; /* links that wait */
  uint32_t n_heap;
  double share; /* of every flow */
  pl_wide wide_share;
} update;

/* ---- owners ---- */

static void swap_entries(pl_max_min *max_min, pl_max_min_link *link, uint32_t a, uint32_t b) {
  pl_max_min_entry at_a = link->entries[b], at_b = link->entries[a];
  link->entries[a] = at_a;
  link->entries[b] = at_b;
  max_min->positions[max_min->slots[at_a.slot].first_position + at_a.use] = a;
  max_min->positions[max_min->slots[at_b.slot].first_position + at_b.use] = b;
}

static void own(pl_max_min *max_min, uint32_t index, uint32_t position) {
  swap_entries(max_min, &max_min->links[index], position, max_min->memory[index].n_own++);
}

static void disown(pl_max_min *max_min, uint32_t index, uint32_t position) {
  swap_entries(max_min, &max_min->links[index], position, --max_min->memory[index].n_own);
}

/* The use of the flow's lowest link. */
static uint32_t lowest_use(const pl_max_min *max_min, const pl_max_min_slot *flow) {
  const pl_max_min_use *uses = &max_min->uses[flow->first_use];
  uint32_t lowest = 0;
  for (uint32_t i = 1; i < flow->n_uses; i++)
    if (max_min->memory[uses[i].link].level < max_min->memory[uses[lowest].link].level) lowest = i;
  return lowest;
}

/* The first use whose link owns the flow. */
static uint32_t owner_use(const pl_max_min *max_min, const pl_max_min_slot *flow) {
  const pl_max_min_use *uses = &max_min->uses[flow->first_use];
  const uint32_t *positions = &max_min->positions[flow->first_position];
  uint32_t use = 0;
  while (use + 1 < flow->n_uses && positions[use] >= max_min->memory[uses[use].link].n_own)
    use++;
  return use;
}

/* ---- passing differences on ---- */

static __attribute__((noinline)) void look_again(update *u, uint32_t index) {
  pl_max_min *max_min = u->max_min;
  pl_max_min_memory *memory = &max_min->memory[index];
  memory->waiting = true;
  pl_level_heap_push(u->heap, &u->n_heap, memory->level, index);
  if (memory->mark == max_min->epoch) return;
  memory->mark = max_min->epoch;
  max_min->component_links[max_min->n_component_links++] = index;
}

/* A flow that another link owns takes `more` of this link, at `level`. */
static inline void charge(update *u, uint32_t index, pl_wide more, double level) {
  pl_max_min_memory *memory = &u->max_min->memory[index];
  memory->charged += more;
  if (level > memory->highest) memory->highest = level;
  if (!memory->waiting) look_again(u, index);
}

static bool owns(const pl_max_min *max_min, const pl_max_min_slot *flow, uint32_t use) {
  uint32_t link = max_min->uses[flow->first_use + use].link;
  return max_min->positions[flow->first_position + use] < max_min->memory[link].n_own;
}

/* Makes owners of a flow those of its links that are lowest now; `before`: what it is charged so far. */
static void reassign(update *u, const pl_max_min_slot *flow, pl_wide before) {
  pl_max_min *max_min = u->max_min;
  const pl_max_min_use *uses = &max_min->uses[flow->first_use];
  const uint32_t *positions = &max_min->positions[flow->first_position];
  const pl_max_min_memory *lowest = &max_min->memory[uses[lowest_use(max_min, flow)].link];
  double level = lowest->level;
  pl_wide amount = lowest->amount;
  for (uint32_t i = 0; i < flow->n_uses; i++) {
    bool owned = owns(max_min, flow, i), shall_own = max_min->memory[uses[i].link].level == level;
    if (owned && shall_own) continue;
    if (owned) {
      disown(max_min, uses[i].link, positions[i]);
    } else if (shall_own) {
      own(max_min, uses[i].link, positions[i]);
    }
    charge(u, uses[i].link, (shall_own ? 0 : amount) - (owned ? 0 : before), shall_own ? 0 : level);
  }
}

static double level_now(const update *u, uint32_t index) {
  const pl_max_min *max_min = u->max_min;
  const pl_max_min_memory *memory = &max_min->memory[index];
  pl_wide rest = max_min->links[index].capacity - memory->charged;
  if (memory->n_own == 0) return rest >= 0 ? INFINITY : 0;
  return pl_max_min_level_of(max_min, rest, u->wide_share * memory->n_own);
}

/* Makes the link the one owner of the flows whose owners are at or above the level; they are charged what it charges so
 * far. */
static void take_over(update *u, uint32_t index, double level) {
  pl_max_min *max_min = u->max_min;
  const pl_max_min_link *link = &max_min->links[index];
  pl_max_min_memory *memory = &max_min->memory[index];
  double highest = 0;
  for (uint32_t at = memory->n_own; at < link->count; at++) {
    pl_max_min_entry entry = link->entries[at];
    const pl_max_min_slot *flow = &max_min->slots[entry.slot];
    const pl_max_min_use *uses = &max_min->uses[flow->first_use];
    const pl_max_min_memory *owner = &max_min->memory[uses[owner_use(max_min, flow)].link];
    pl_wide before = owner->amount;
    if (owner->level < level) {
      if (owner->level > highest) highest = owner->level;
      continue;
    }
    for (uint32_t i = 0; i < flow->n_uses; i++) {
      if (i == entry.use) continue;
      bool owned = owns(max_min, flow, i);
      if (owned) disown(max_min, uses[i].link, max_min->positions[flow->first_position + i]);
      charge(u, uses[i].link, memory->amount - (owned ? 0 : before), level);
    }
    own(max_min, index, at);
    memory->charged -= before;
  }
  memory->highest = highest;
}

/* Whether every other link of the flow is above `level`, and was above `old`. */
static bool stays(const pl_max_min *max_min, pl_max_min_entry entry, double old, double level) {
  const pl_max_min_slot *flow = &max_min->slots[entry.slot];
  const pl_max_min_use *uses = &max_min->uses[flow->first_use];
  for (uint32_t i = 0; i < flow->n_uses; i++) {
    double is = max_min->memory[uses[i].link].level;
    if (i != entry.use && (is <= level || is == old)) return false;
  }
  return true;
}

static void pass_on_to_all(update *u, pl_max_min_entry entry, pl_wide more, double level) {
  pl_max_min *max_min = u->max_min;
  const pl_max_min_slot *flow = &max_min->slots[entry.slot];
  const pl_max_min_use *uses = &max_min->uses[flow->first_use];
  for (uint32_t i = 0; i < flow->n_uses; i++)
    if (i != entry.use) charge(u, uses[i].link, more, level);
}

/* Nearly all of the work: passes the difference on for flows with two links that keep their owner, up to the first that
 * is of another kind. Returns its place. */
static uint32_t pass_on_to_other(update *u, const pl_max_min_link *link, uint32_t at, uint32_t end, double old,
                                 pl_wide more, double level) {
  pl_max_min_memory *memory = u->max_min->memory;
  const pl_max_min_entry *entries = link->entries;
  for (; at < end; at++) {
    uint32_t other = entries[at].other;
    if (other == PL_NONE) break;
    double is = memory[other].level;
    if (is <= level || is == old) break;
    memory[other].charged += more;
    if (memory[other].highest < level) memory[other].highest = level;
    if (!memory[other].waiting) look_again(u, other);
  }
  return at;
}

/* The new level has been found: passes it on to the flows. */
static void pass_on(update *u, uint32_t index, double level) {
  pl_max_min *max_min = u->max_min;
  pl_max_min_memory *memory = &max_min->memory[index];
  const pl_max_min_link *link = &max_min->links[index];
  double old = memory->level;
  pl_wide before = memory->amount;
  memory->level = level;
  memory->amount = memory->n_own > 0 && level > 0 ? pl_max_min_wide(level * u->share, max_min->rate_bits) : 0;
  pl_wide more = memory->amount - before;
  for (uint32_t at = 0; (at = pass_on_to_other(u, link, at, memory->n_own, old, more, level)) < memory->n_own;) {
    pl_max_min_entry entry = link->entries[at];
    if (stays(max_min, entry, old, level)) {
      pass_on_to_all(u, entry, more, level);
      at++;
    } else {
      reassign(u, &max_min->slots[entry.slot], before);
      at += at < memory->n_own && link->entries[at].slot == entry.slot; /* else another is at this place */
    }
  }
}

/* The lowest link that waits, unless its level has risen beyond the next: then it waits on. */
static void look_at_next(update *u) {
  pl_max_min *max_min = u->max_min;
  double key = u->heap[0].level;
  uint32_t index = pl_level_heap_pop(u->heap, &u->n_heap);
  pl_max_min_memory *memory = &max_min->memory[index];
  double level = level_now(u, index);
  if (u->n_heap > 0 && level > key && level > u->heap[0].level) {
    pl_level_heap_push(u->heap, &u->n_heap, level, index);
    return;
  }
  memory->waiting = false;
  if (level <= memory->highest) {
    take_over(u, index, level);
    level = level_now(u, index);
  } else if (level == memory->level) {
    return;
  }
  pass_on(u, index, level);
}

/* ---- the whole ---- */

/* Whether no other link of a flow that this one owns ends near below or above its level. */
static inline bool is_apart(const pl_max_min *max_min, pl_max_min_entry entry, double level, double above) {
  if (entry.other != PL_NONE) {
    double is = max_min->memory[entry.other].level;
    return is > above || is == level;
  }
  const pl_max_min_slot *flow = &max_min->slots[entry.slot];
  const pl_max_min_use *uses = &max_min->uses[flow->first_use];
  for (uint32_t i = 0; i < flow->n_uses; i++) {
    double is = max_min->memory[uses[i].link].level;
    if (i != entry.use && is <= above && is != level) return false;
  }
  return true;
}

/* No flow has another link near its owner's level; a link that owns none is not nearly full. */
static bool is_clear(const pl_max_min *max_min, uint32_t index) {
  const pl_max_min_memory *memory = &max_min->memory[index];
  const pl_max_min_link *link = &max_min->links[index];
  if (memory->n_own == 0) return (double)(link->capacity - memory->charged) >= (double)link->capacity * margin;
  double level = memory->level, above = level * (1 + margin), below = level * (1 - margin);
  if (!(level > 0)) return false;
  for (uint32_t at = 0; at < memory->n_own; at++)
    if (!is_apart(max_min, link->entries[at], level, above)) return false;
  for (uint32_t at = memory->n_own; at < link->count && memory->highest >= below; at++) {
    const pl_max_min_slot *flow = &max_min->slots[link->entries[at].slot];
    uint32_t owner = max_min->uses[flow->first_use + owner_use(max_min, flow)].link;
    if (max_min->memory[owner].level >= below) return false;
  }
  return true;
}

static void set_rates(update *u, uint32_t index) {
  pl_max_min *max_min = u->max_min;
  const pl_max_min_entry *entries = max_min->links[index].entries;
  pl_max_min_slot *slots = max_min->slots;
  uint32_t *changed = max_min->changed, n_changed = max_min->n_changed, n_own = max_min->memory[index].n_own;
  double rate_Bps = max_min->memory[index].level * u->share;
  for (uint32_t at = 0; at < n_own; at++) {
    uint32_t slot = entries[at].slot;
    if (slots[slot].rate_Bps == rate_Bps) continue;
    slots[slot].rate_Bps = rate_Bps;
    changed[n_changed++] = slot;
  }
  max_min->n_changed = n_changed;
}

/* Takes a flow off the lists, owned entries first. */
static void remove_flow(update *u, uint32_t slot) {
  pl_max_min *max_min = u->max_min;
  const pl_max_min_slot *flow = &max_min->slots[slot];
  const pl_max_min_use *uses = &max_min->uses[flow->first_use];
  const uint32_t *positions = &max_min->positions[flow->first_position];
  pl_wide amount = max_min->memory[uses[owner_use(max_min, flow)].link].amount;
  for (uint32_t i = 0; i < flow->n_uses; i++) {
    bool owned = owns(max_min, flow, i);
    if (owned) disown(max_min, uses[i].link, positions[i]);
    charge(u, uses[i].link, owned ? 0 : -amount, 0);
    pl_max_min_link *link = &max_min->links[uses[i].link];
    swap_entries(max_min, link, positions[i], --link->n_entries);
  }
}

static bool may_update(const pl_max_min *max_min) {
  if (max_min->n_left > FEW_LEFT) return false;
  for (uint32_t i = 0; i < max_min->n_left; i++)
    if (max_min->slots[max_min->left[i]].n_uses == 0) return false;
  for (uint32_t i = 0; i < max_min->n_touched; i++)
    if (!max_min->links[max_min->touched[i]].is_known) return false;
  return true;
}

static void skip_builds(pl_max_min *max_min) {
  max_min->last_skip = max_min->last_skip * 2 + 1 > MOST_SKIPS ? MOST_SKIPS : max_min->last_skip * 2 + 1;
  max_min->builds_to_skip = max_min->last_skip;
}

bool pl_max_min_update(pl_max_min *max_min) {
  if (!may_update(max_min)) return false;
  const pl_max_min_slot *any = &max_min->slots[max_min->left[0]];
  update u = {.max_min = max_min,
              .heap = max_min->levels,
              .share = any->share,
              .wide_share = max_min->uses[any->first_use].share};
  for (uint32_t i = 0; i < max_min->n_left; i++)
    remove_flow(&u, max_min->left[i]);
  pl_max_min_free_left(max_min);
  bool is_done = true;
  for (uint32_t steps = 0; u.n_heap > 0 && is_done; steps++) {
    look_at_next(&u);
    is_done = steps < 16 * max_min->n_component_links + 64;
  }
  for (uint32_t i = 0; i < max_min->n_component_links && is_done; i++)
    is_done = is_clear(max_min, max_min->component_links[i]);
  if (is_done) {
    max_min->last_skip = 0;
    for (uint32_t i = 0; i < max_min->n_component_links; i++)
      set_rates(&u, max_min->component_links[i]);
  } else {
    skip_builds(max_min);
    max_min->n_component_links = 0;
  }
  return is_done;
}

/* ---- remembering ---- */

static bool remember_flow(pl_max_min *max_min, uint32_t slot) {
  const pl_max_min_slot *flow = &max_min->slots[slot];
  const pl_max_min_use *uses = &max_min->uses[flow->first_use];
  const pl_max_min_memory *lowest = &max_min->memory[uses[lowest_use(max_min, flow)].link];
  if (!flow->plain || isinf(lowest->level)) return false;
  for (uint32_t i = 0; i < flow->n_uses; i++) {
    pl_max_min_memory *memory = &max_min->memory[uses[i].link];
    if (memory->level == lowest->level) {
      own(max_min, uses[i].link, max_min->positions[flow->first_position + i]);
    } else {
      memory->charged += lowest->amount;
      if (lowest->level > memory->highest) memory->highest = lowest->level;
    }
  }
  return true;
}

void pl_max_min_remember(pl_max_min *max_min) {
  if (max_min->n_component_slots < MANY_FLOWS) return;
  if (max_min->builds_to_skip > 0) {
    max_min->builds_to_skip--;
    return;
  }
  double share = max_min->slots[max_min->component_slots[0]].share;
  for (uint32_t i = 0; i < max_min->n_component_links; i++) {
    uint32_t index = max_min->component_links[i];
    double level = max_min->links[index].level;
    pl_wide amount = isinf(level) ? 0 : pl_max_min_wide(level * share, max_min->rate_bits);
    max_min->memory[index] = (pl_max_min_memory){.level = level, .amount = amount};
  }
  bool is_clear_all = true;
  for (uint32_t i = 0; i < max_min->n_component_slots && is_clear_all; i++)
    is_clear_all = remember_flow(max_min, max_min->component_slots[i]);
  for (uint32_t i = 0; i < max_min->n_component_links && is_clear_all; i++)
    is_clear_all = is_clear(max_min, max_min->component_links[i]);
  if (!is_clear_all) {
    skip_builds(max_min);
    return;
  }
  for (uint32_t i = 0; i < max_min->n_component_links; i++)
    max_min->links[max_min->component_links[i]].is_known = true;
}
