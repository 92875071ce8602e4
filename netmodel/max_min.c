/* See netmodel/max_min.h. This file keeps the incidence of flows and links up to date and gathers the component that
 * has to be solved again; the filling itself is in max_min_solve.c.
 *
 * Each link has a list of (slot, use) entries; each slot knows its position in the list of each of its links, so a
 * departure is O(uses of the flow): the last entry of the list moves into the gap. Lists grow by doubling in the arena,
 * which wastes at most as much as is in use. */
#include "netmodel/max_min.h"

#include <math.h>
#include <string.h>

static uint32_t size_class(uint32_t n_uses) {
  return n_uses <= 1 ? 0 : (uint32_t)(32 - __builtin_clz(n_uses - 1));
}

/* value * 2^bits rounded to the nearest integer; value >= 0 and the result below 2^126. */
static pl_wide wide_from_double(double value, int bits) {
  int exponent;
  double mantissa = frexp(value, &exponent);
  int shift = exponent - 53 + bits;
  if (shift >= 0) return (pl_wide)(int64_t)(mantissa * 0x1p53) << shift;
  return (pl_wide)llrint(ldexp(value, bits));
}

/* fmin and fmax are calls into libm; nothing here is NaN. */
static double smaller(double a, double b) {
  return a < b ? a : b;
}
static double larger(double a, double b) {
  return a > b ? a : b;
}

static uint32_t integer_weight(double weight) {
  if (weight == 1) return 1;
  return weight >= 1 && weight < 0x1p32 && weight == floor(weight) ? (uint32_t)weight : 0;
}

/* Largest power of two p with value * 2^p < 2^top. */
static int scale_bits(double value, int top) {
  int exponent = 0;
  frexp(value, &exponent);
  return top - exponent;
}

static void choose_scales(pl_max_min *max_min, const pl_transfer_table *table) {
  double capacity_max = 1, share_max = 0;
  for (uint32_t link = 0; link < table->n_links; link++)
    if (isfinite(table->link_capacity_Bps[link])) capacity_max = larger(capacity_max, table->link_capacity_Bps[link]);
  for (uint32_t spec = 0; spec < table->n_specs; spec++) {
    const pl_transfer_spec *from = &table->specs[spec];
    for (uint32_t use = from->first_use; use < from->first_use + from->n_uses; use++)
      share_max = larger(share_max, from->share_weight * table->uses[use].weight);
  }
  /* 2^100 for the largest capacity: rates down to 2^-47 of it are exact. 2^90 for the largest share: 2^36 flows fit. */
  max_min->rate_bits = scale_bits(capacity_max, 100);
  max_min->share_bits = scale_bits(share_max > 0 ? share_max : 1, 90);
  max_min->rate_unit = ldexp(1, -max_min->rate_bits);
  max_min->share_unit = ldexp(1, -max_min->share_bits);
}

/* `wide_share`: of the spec's share weight alone, 0 while unknown. Only taken for weights >= 1, where it cannot
 * overflow. */
static pl_wide share_of_use(const pl_max_min *max_min, double share, pl_wide *wide_share, double weight) {
  uint32_t multiple = integer_weight(weight);
  if (multiple > 0 && *wide_share == 0) *wide_share = wide_from_double(share, max_min->share_bits);
  pl_wide product = multiple > 0 ? *wide_share * multiple : wide_from_double(share * weight, max_min->share_bits);
  return product > 0 ? product : 1;
}

/* FATPIPE links become caps, links without limit vanish, the rest is kept. Returns the number of uses written. */
static uint32_t load_spec(pl_max_min *max_min, uint32_t index, uint32_t first_use) {
  const pl_transfer_table *table = max_min->table;
  const pl_transfer_spec *from = &table->specs[index];
  double cap_Bps = from->rate_cap_Bps;
  pl_wide wide_share = 0;
  double bound_Bps = INFINITY; /* by shared links */
  uint32_t n_uses = 0;
  for (uint32_t i = from->first_use; i < from->first_use + from->n_uses; i++) {
    const pl_link_use *use = &table->uses[i];
    double capacity_Bps = table->link_capacity_Bps[use->link];
    if (table->link_policy[use->link] == PL_LINK_FATPIPE) {
      cap_Bps = smaller(cap_Bps, capacity_Bps / use->weight);
    } else if (isfinite(capacity_Bps) && !max_min->alone) {
      bound_Bps = smaller(bound_Bps, capacity_Bps / use->weight);
      max_min->uses[first_use + n_uses++] =
          (pl_max_min_use){.share = share_of_use(max_min, from->share_weight, &wide_share, use->weight),
                           .weight = use->weight,
                           .link = use->link,
                           .multiple = integer_weight(use->weight)};
    }
  }
  /* With a margin: rates are rounded, and a cap must not be lost by an ulp. */
  if (cap_Bps > bound_Bps * (1 + 0x1p-40)) cap_Bps = INFINITY;
  max_min->specs[index] = (pl_max_min_spec){.cap_Bps = cap_Bps,
                                            .solo_Bps = pl_transfer_solo_rate(table, index),
                                            .share = from->share_weight,
                                            .first_use = first_use,
                                            .n_uses = n_uses};
  return n_uses;
}

bool pl_max_min_init(pl_max_min *max_min, const pl_transfer_table *table, bool alone, pl_arena *arena) {
  *max_min = (pl_max_min){.arena = arena, .table = table, .alone = alone, .epoch = 1};
  max_min->n_links = table->n_links;
  max_min->n_specs = table->n_specs;
  uint32_t n_links = alone ? 0 : table->n_links;
  max_min->links = PL_TAKE(arena, pl_max_min_link, n_links);
  max_min->specs = PL_TAKE(arena, pl_max_min_spec, table->n_specs);
  size_t most_uses = 0; /* specs may share their uses in the table */
  for (uint32_t spec = 0; spec < table->n_specs; spec++)
    most_uses += table->specs[spec].n_uses;
  max_min->uses = PL_TAKE(arena, pl_max_min_use, alone ? 0 : most_uses);
  max_min->touched = PL_TAKE(arena, uint32_t, n_links);
  max_min->component_links = PL_TAKE(arena, uint32_t, n_links);
  max_min->batch = PL_TAKE(arena, uint32_t, n_links);
  max_min->levels = PL_TAKE(arena, pl_max_min_level, n_links);
  if (!max_min->links || !max_min->specs || !max_min->uses || !max_min->touched || !max_min->component_links ||
      !max_min->batch || !max_min->levels)
    return false;
  for (uint32_t i = 0; i < PL_MAX_MIN_CLASSES; i++)
    max_min->free_slot[i] = PL_NONE;
  choose_scales(max_min, table);
  for (uint32_t link = 0; link < n_links; link++)
    if (isfinite(table->link_capacity_Bps[link]))
      max_min->links[link].capacity = wide_from_double(table->link_capacity_Bps[link], max_min->rate_bits);
  uint32_t n_uses = 0;
  for (uint32_t spec = 0; spec < table->n_specs; spec++)
    n_uses += load_spec(max_min, spec, n_uses);
  return true;
}

/* ---- slots ---- */

static void *grow(pl_max_min *max_min, void *old, size_t count, size_t room, size_t size) {
  void *memory = pl_arena_take(max_min->arena, room * size, 64);
  if (memory == NULL) {
    max_min->failed = true;
    return NULL;
  }
  if (count > 0) memcpy(memory, old, count * size);
  return memory;
}

static bool grow_slots(pl_max_min *max_min) {
  uint32_t count = max_min->n_slots, room = max_min->slot_room ? max_min->slot_room * 2 : 64;
  pl_max_min_slot *slots = grow(max_min, max_min->slots, count, room, sizeof *slots);
  uint32_t *joined = grow(max_min, max_min->joined, max_min->n_joined, room, sizeof *joined);
  uint32_t *changed = grow(max_min, max_min->changed, max_min->n_changed, room, sizeof *changed);
  uint32_t *component = grow(max_min, NULL, 0, room, sizeof *component);
  uint32_t *capped = grow(max_min, NULL, 0, room, sizeof *capped);
  if (!slots || !joined || !changed || !component || !capped) return false;
  max_min->slots = slots;
  max_min->joined = joined;
  max_min->changed = changed;
  max_min->component_slots = component;
  max_min->capped = capped;
  max_min->slot_room = room;
  max_min->n_component_slots = 0;
  return true;
}

static bool grow_positions(pl_max_min *max_min, uint32_t more) {
  if (max_min->n_positions + more <= max_min->position_room) return true;
  uint32_t room = max_min->position_room ? max_min->position_room * 2 : 256;
  while (room < max_min->n_positions + more)
    room *= 2;
  uint32_t *positions = grow(max_min, max_min->positions, max_min->n_positions, room, sizeof *positions);
  if (positions == NULL) return false;
  max_min->positions = positions;
  max_min->position_room = room;
  return true;
}

static uint32_t new_slot(pl_max_min *max_min, uint32_t class) {
  uint32_t n_positions = (uint32_t)1 << class;
  if (max_min->n_slots == max_min->slot_room && !grow_slots(max_min)) return PL_NONE;
  if (!grow_positions(max_min, n_positions)) return PL_NONE;
  uint32_t slot = max_min->n_slots++;
  max_min->slots[slot] = (pl_max_min_slot){.first_position = max_min->n_positions};
  max_min->n_positions += n_positions;
  return slot;
}

uint32_t pl_max_min_take_slot(pl_max_min *max_min, uint32_t spec) {
  if (max_min->failed) return PL_NONE;
  uint32_t class = size_class(max_min->specs[spec].n_uses);
  uint32_t slot = max_min->free_slot[class];
  if (slot != PL_NONE) {
    max_min->free_slot[class] = max_min->slots[slot].next_free;
  } else {
    slot = new_slot(max_min, class);
    if (slot == PL_NONE) return PL_NONE;
  }
  const pl_max_min_spec *from = &max_min->specs[spec];
  pl_max_min_slot *flow = &max_min->slots[slot];
  flow->spec = spec;
  flow->cap_Bps = from->cap_Bps;
  flow->share = from->share;
  flow->first_use = from->first_use;
  flow->n_uses = from->n_uses;
  return slot;
}

void pl_max_min_give_slot(pl_max_min *max_min, uint32_t slot) {
  uint32_t class = size_class(max_min->specs[max_min->slots[slot].spec].n_uses);
  max_min->slots[slot].next_free = max_min->free_slot[class];
  max_min->free_slot[class] = slot;
}

/* ---- join, leave ---- */

static bool grow_link(pl_max_min *max_min, pl_max_min_link *link) {
  uint32_t room = link->room ? link->room * 2 : 4;
  pl_max_min_entry *entries = grow(max_min, link->entries, link->count, room, sizeof *entries);
  if (entries == NULL) return false;
  link->entries = entries;
  link->room = room;
  return true;
}

static bool has_room(pl_max_min *max_min, const pl_max_min_slot *flow) {
  const pl_max_min_use *uses = &max_min->uses[flow->first_use];
  for (uint32_t i = 0; i < flow->n_uses; i++) {
    pl_max_min_link *link = &max_min->links[uses[i].link];
    if (link->count == link->room && !grow_link(max_min, link)) return false;
  }
  return true;
}

void pl_max_min_join(pl_max_min *max_min, uint32_t slot) {
  if (max_min->failed) return;
  pl_max_min_slot *flow = &max_min->slots[slot];
  if (!has_room(max_min, flow)) return;
  flow->rate_Bps = 0;
  flow->active = 1;
  max_min->joined[max_min->n_joined++] = slot;
  const pl_max_min_use *uses = &max_min->uses[flow->first_use];
  uint32_t *positions = &max_min->positions[flow->first_position];
  for (uint32_t i = 0; i < flow->n_uses; i++) {
    pl_max_min_link *link = &max_min->links[uses[i].link];
    positions[i] = link->count;
    link->entries[link->count++] = (pl_max_min_entry){.slot = slot, .use = i};
    link->share += uses[i].share;
  }
}

/* A flow that leaves in the instant in which it joined (nothing solved in between). */
static void forget_join(pl_max_min *max_min, uint32_t slot) {
  for (uint32_t i = max_min->n_joined; i-- > 0;) {
    if (max_min->joined[i] != slot) continue;
    max_min->joined[i] = max_min->joined[--max_min->n_joined];
    return;
  }
}

void pl_max_min_leave(pl_max_min *max_min, uint32_t slot) {
  pl_max_min_slot *flow = &max_min->slots[slot];
  if (max_min->failed || !flow->active) return;
  const pl_max_min_use *uses = &max_min->uses[flow->first_use];
  const uint32_t *positions = &max_min->positions[flow->first_position];
  flow->active = 0;
  if (flow->rate_Bps == 0) forget_join(max_min, slot);
  for (uint32_t i = 0; i < flow->n_uses; i++) {
    pl_max_min_link *link = &max_min->links[uses[i].link];
    pl_max_min_entry last = link->entries[--link->count];
    link->entries[positions[i]] = last;
    max_min->positions[max_min->slots[last.slot].first_position + last.use] = positions[i];
    link->share -= uses[i].share;
    if (link->count == 0 || link->mark == max_min->epoch) continue;
    link->mark = max_min->epoch; /* epochs come in pairs: touched, then gathered */
    max_min->touched[max_min->n_touched++] = uses[i].link;
  }
}

/* ---- gathering ---- */

static void gather_link(pl_max_min *max_min, uint32_t index) {
  pl_max_min_link *link = &max_min->links[index];
  if (link->mark == max_min->epoch) return;
  link->mark = max_min->epoch;
  link->rest = link->capacity;
  link->open_share = link->share;
  link->n_open = link->count;
  max_min->component_links[max_min->n_component_links++] = index;
}

static void gather_slot(pl_max_min *max_min, uint32_t slot) {
  pl_max_min_slot *flow = &max_min->slots[slot];
  if (flow->gathered == max_min->epoch) return;
  flow->gathered = max_min->epoch;
  max_min->component_slots[max_min->n_component_slots++] = slot;
  max_min->has_caps |= isfinite(flow->cap_Bps);
  const pl_max_min_use *uses = &max_min->uses[flow->first_use];
  for (uint32_t i = 0; i < flow->n_uses; i++)
    gather_link(max_min, uses[i].link);
}

static bool is_alone(const pl_max_min *max_min, const pl_max_min_slot *flow) {
  const pl_max_min_use *uses = &max_min->uses[flow->first_use];
  for (uint32_t i = 0; i < flow->n_uses; i++)
    if (max_min->links[uses[i].link].count != 1) return false;
  return true;
}

static void next_epoch(pl_max_min *max_min) {
  if (++max_min->epoch != 0) return;
  for (uint32_t i = 0; i < max_min->n_links && !max_min->alone; i++)
    max_min->links[i].mark = 0;
  for (uint32_t i = 0; i < max_min->n_slots; i++)
    max_min->slots[i].gathered = max_min->slots[i].fixed = 0;
  max_min->epoch = 1;
}

void pl_max_min_solve(pl_max_min *max_min) {
  max_min->n_changed = max_min->n_component_slots = max_min->n_component_links = 0;
  if (max_min->n_joined == 0 && max_min->n_touched == 0) return;
  max_min->has_caps = false;
  next_epoch(max_min);
  for (uint32_t i = 0; i < max_min->n_joined; i++) {
    uint32_t slot = max_min->joined[i];
    pl_max_min_slot *flow = &max_min->slots[slot];
    if (is_alone(max_min, flow)) {
      flow->rate_Bps = max_min->specs[flow->spec].solo_Bps;
      max_min->changed[max_min->n_changed++] = slot;
    } else {
      gather_slot(max_min, slot);
    }
  }
  for (uint32_t i = 0; i < max_min->n_touched; i++)
    if (max_min->links[max_min->touched[i]].count > 0) gather_link(max_min, max_min->touched[i]);
  max_min->n_joined = max_min->n_touched = 0;
  for (uint32_t i = 0; i < max_min->n_component_links; i++) {
    const pl_max_min_link *link = &max_min->links[max_min->component_links[i]];
    for (uint32_t j = 0; j < link->count; j++) {
      if (j + 8 < link->count) __builtin_prefetch(&max_min->slots[link->entries[j + 8].slot]);
      gather_slot(max_min, link->entries[j].slot);
    }
  }
  if (max_min->n_component_slots > 0) pl_max_min_fill(max_min);
  next_epoch(max_min);
#ifndef NDEBUG
  PL_DEBUG_ASSERT(pl_max_min_certify(max_min) == NULL);
#endif
}

bool pl_max_min_is_valid(const pl_max_min *max_min) {
  for (uint32_t index = 0; index < max_min->n_links && !max_min->alone; index++) {
    const pl_max_min_link *link = &max_min->links[index];
    pl_wide share = 0;
    for (uint32_t i = 0; i < link->count; i++) {
      pl_max_min_entry entry = link->entries[i];
      const pl_max_min_slot *flow = &max_min->slots[entry.slot];
      const pl_max_min_spec *spec = &max_min->specs[flow->spec];
      if (!flow->active || entry.use >= spec->n_uses) return false;
      const pl_max_min_use *use = &max_min->uses[spec->first_use + entry.use];
      if (use->link != index || max_min->positions[flow->first_position + entry.use] != i) return false;
      share += use->share;
    }
    if (share != link->share) return false;
  }
  return true;
}
