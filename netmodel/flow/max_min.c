/* See netmodel/flow/max_min.h. This file keeps the incidence of flows and links up to date and gathers the component
 * that has to be solved again; the filling itself is in max_min_solve.c.
 *
 * Each link has a list of (slot, use) entries; each slot knows its position in the list of each of its links, so a
 * departure is O(uses of the flow): the last entry of the list moves into the gap. That waits for the next solve, since
 * where all flows of a link end together (an all-to-all of equal messages) the list is emptied at once. Lists grow in
 * the arena by factors of 3, which wastes at most two and a half times what is in use. */
#include "netmodel/flow/max_min.h"

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

/* Also counts the uses of all specs: specs may share theirs in the table. */
static size_t choose_scales(pl_max_min *max_min, const pl_transfer_table *table) {
  double capacity_max = 1, share_max = 0;
  size_t n_uses = 0;
  for (uint32_t link = 0; link < table->n_links; link++)
    if (isfinite(table->link_capacity_Bps[link])) capacity_max = larger(capacity_max, table->link_capacity_Bps[link]);
  for (uint32_t spec = 0; spec < table->n_specs; spec++) {
    const pl_transfer_spec *from = &table->specs[spec];
    const pl_link_use *uses = &table->uses[from->first_use];
    double weight_max = 0;
    n_uses += from->n_uses;
    for (uint32_t i = 0; i < from->n_uses; i++)
      weight_max = larger(weight_max, uses[i].weight);
    share_max = larger(share_max, from->share_weight * weight_max);
  }
  /* 2^100 for the largest capacity: rates down to 2^-47 of it are exact. 2^90 for the largest share: 2^36 flows fit. */
  max_min->rate_bits = scale_bits(capacity_max, 100);
  max_min->share_bits = scale_bits(share_max > 0 ? share_max : 1, 90);
  max_min->rate_unit = ldexp(1, -max_min->rate_bits);
  max_min->share_unit = ldexp(1, -max_min->share_bits);
  return n_uses;
}

/* A share weight as an integer: consecutive specs mostly have the same. */
typedef struct last_share {
  double share;
  pl_wide wide;
} last_share;

/* Wherever a use is not the common one of weight 1 and the share weight of the use before. */
static __attribute__((noinline)) void set_share(const pl_max_min *max_min, pl_max_min_use *use, double share,
                                                last_share *last) {
  if (use->multiple == 0) { /* also what is below 1, where the share weight alone might overflow */
    use->share = wide_from_double(share * use->weight, max_min->share_bits);
  } else {
    if (last->share != share) {
      *last = (last_share){.share = share, .wide = wide_from_double(share, max_min->share_bits)};
      if (last->wide <= 0) last->wide = 1;
    }
    use->share = last->wide * use->multiple;
  }
  if (use->share <= 0) use->share = 1;
}

/* FATPIPE links become caps, links without limit vanish, the rest is kept. Returns the number of uses written. */
static uint32_t load_spec(pl_max_min *max_min, uint32_t index, uint32_t first_use, last_share *last) {
  const pl_transfer_table *table = max_min->table;
  const pl_transfer_spec *from = &table->specs[index];
  const pl_link_use *from_uses = &table->uses[from->first_use];
  const double *link_capacity_Bps = table->link_capacity_Bps;
  const uint8_t *link_policy = table->link_policy;
  pl_max_min_use *to = &max_min->uses[first_use];
  double cap_Bps = from->rate_cap_Bps;
  double bound_Bps = INFINITY; /* by shared links */
  bool is_alone = max_min->alone, plain = from->share_weight == table->specs[0].share_weight;
  for (uint32_t i = 0; i < from->n_uses; i++) {
    const pl_link_use *use = &from_uses[i];
    double capacity_Bps = link_capacity_Bps[use->link];
    if (use->weight == 1 && last->share == from->share_weight && link_policy[use->link] == PL_LINK_SHARED &&
        isfinite(capacity_Bps) && !is_alone) {
      bound_Bps = smaller(bound_Bps, capacity_Bps);
      to->share = last->wide;
      to->weight = 1;
      to->link = use->link;
      to->multiple = 1;
      to++;
    } else if (link_policy[use->link] == PL_LINK_FATPIPE) {
      cap_Bps = smaller(cap_Bps, capacity_Bps / use->weight);
    } else if (isfinite(capacity_Bps) && !is_alone) {
      uint32_t multiple = integer_weight(use->weight);
      plain = plain && multiple == 1;
      bound_Bps = smaller(bound_Bps, multiple == 1 ? capacity_Bps : capacity_Bps / use->weight);
      to->weight = use->weight;
      to->link = use->link;
      to->multiple = multiple;
      set_share(max_min, to++, from->share_weight, last);
    }
  }
  uint32_t n_uses = (uint32_t)(to - &max_min->uses[first_use]);
  /* With a margin: rates are rounded, and a cap must not be lost by an ulp. */
  if (cap_Bps > bound_Bps * (1 + 0x1p-40)) cap_Bps = INFINITY;
  max_min->specs[index] = (pl_max_min_spec){.cap_Bps = cap_Bps,
                                            .solo_Bps = isinf(bound_Bps) ? pl_transfer_solo_rate(table, index) : 0,
                                            .share = from->share_weight,
                                            .first_use = first_use,
                                            .n_uses = n_uses,
                                            .plain = plain && isinf(cap_Bps)};
  return n_uses;
}

/* Uninitialised: whole cache lines, so that no element of `size` 16, 32 or 64 straddles two. */
static void *take(pl_arena *arena, size_t count, size_t size) {
  return pl_arena_take(arena, count * size, 64);
}

bool pl_max_min_init(pl_max_min *max_min, const pl_transfer_table *table, bool alone, pl_arena *arena) {
  *max_min = (pl_max_min){.arena = arena, .table = table, .alone = alone, .epoch = 1};
  max_min->n_links = table->n_links;
  max_min->n_specs = table->n_specs;
  uint32_t n_links = alone ? 0 : table->n_links;
  max_min->links = PL_TAKE(arena, pl_max_min_link, n_links);
  max_min->specs = take(arena, table->n_specs, sizeof *max_min->specs);
  size_t most_uses = choose_scales(max_min, table);
  max_min->uses = take(arena, alone ? 0 : most_uses, sizeof *max_min->uses);
  max_min->touched = take(arena, n_links, sizeof *max_min->touched);
  max_min->component_links = take(arena, n_links, sizeof *max_min->component_links);
  max_min->batch = take(arena, n_links, sizeof *max_min->batch);
  max_min->levels = take(arena, n_links, sizeof *max_min->levels);
  max_min->memory = PL_TAKE(arena, pl_max_min_memory, n_links);
  if (!max_min->links || !max_min->specs || !max_min->uses || !max_min->touched || !max_min->component_links ||
      !max_min->batch || !max_min->levels || !max_min->memory)
    return false;
  for (uint32_t i = 0; i < PL_MAX_MIN_CLASSES; i++)
    max_min->free_slot[i] = PL_NONE;
  for (uint32_t link = 0; link < n_links; link++)
    if (isfinite(table->link_capacity_Bps[link]))
      max_min->links[link].capacity = wide_from_double(table->link_capacity_Bps[link], max_min->rate_bits);
  uint32_t n_uses = 0;
  last_share last = {.share = 0};
  for (uint32_t spec = 0; spec < table->n_specs; spec++)
    n_uses += load_spec(max_min, spec, n_uses, &last);
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

/* The first room: as many as there are specs, within bounds, since most traffic plays each once. */
static uint32_t first_slot_room(const pl_max_min *max_min) {
  uint32_t room = 64;
  while (room < max_min->n_specs && room < 4096)
    room *= 2;
  return room;
}

static bool grow_slots(pl_max_min *max_min) {
  uint32_t count = max_min->n_slots, room = max_min->slot_room ? max_min->slot_room * 2 : first_slot_room(max_min);
  pl_max_min_slot *slots = grow(max_min, max_min->slots, count, room, sizeof *slots);
  uint32_t *joined = grow(max_min, max_min->joined, max_min->n_joined, room, sizeof *joined);
  uint32_t *left = grow(max_min, max_min->left, max_min->n_left, room, sizeof *left);
  uint32_t *changed = grow(max_min, max_min->changed, max_min->n_changed, room, sizeof *changed);
  uint32_t *component = grow(max_min, NULL, 0, room, sizeof *component);
  uint32_t *capped = grow(max_min, NULL, 0, room, sizeof *capped);
  if (!slots || !joined || !left || !changed || !component || !capped) return false;
  max_min->slots = slots;
  max_min->joined = joined;
  max_min->left = left;
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
  flow->plain = from->plain;
  return slot;
}

static void free_slot(pl_max_min *max_min, uint32_t slot) {
  pl_max_min_slot *flow = &max_min->slots[slot];
  uint32_t class = size_class(flow->n_uses);
  flow->given = 0;
  flow->next_free = max_min->free_slot[class];
  max_min->free_slot[class] = slot;
}

void pl_max_min_free_left(pl_max_min *max_min) {
  for (uint32_t i = 0; i < max_min->n_left; i++) {
    pl_max_min_slot *flow = &max_min->slots[max_min->left[i]];
    flow->on_list = 0;
    if (flow->given) free_slot(max_min, max_min->left[i]);
  }
  max_min->n_left = 0;
}

void pl_max_min_give_slot(pl_max_min *max_min, uint32_t slot) {
  if (max_min->slots[slot].on_list) {
    max_min->slots[slot].given = 1;
  } else {
    free_slot(max_min, slot);
  }
}

/* ---- join, leave ---- */

static bool grow_link(pl_max_min *max_min, pl_max_min_link *link) {
  uint32_t room = link->room ? link->room * 3 : 8; /* an odd number of cache lines: like lists fall into unlike sets */
  pl_max_min_entry *entries = grow(max_min, link->entries, link->n_entries, room, sizeof *entries);
  if (entries == NULL) return false;
  link->entries = entries;
  link->room = room;
  return true;
}

void pl_max_min_join(pl_max_min *max_min, uint32_t slot) {
  if (max_min->failed) return;
  pl_max_min_slot *flow = &max_min->slots[slot];
  flow->rate_Bps = 0;
  flow->active = flow->on_list = 1;
  max_min->n_active++;
  max_min->joined[max_min->n_joined++] = slot;
  const pl_max_min_use *uses = &max_min->uses[flow->first_use];
  uint32_t *positions = &max_min->positions[flow->first_position];
  for (uint32_t i = 0; i < flow->n_uses; i++) {
    pl_max_min_link *link = &max_min->links[uses[i].link];
    if (link->n_entries == link->room && !grow_link(max_min, link)) return; /* failed: nothing is solved any more */
    positions[i] = link->n_entries;
    link->count++;
    link->is_known = false;
    link->entries[link->n_entries++] =
        (pl_max_min_entry){.slot = slot, .use = i, .other = flow->n_uses == 2 ? uses[1 - i].link : PL_NONE};
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
  flow->active = 0;
  max_min->n_active--;
  max_min->left[max_min->n_left++] = slot;
  if (flow->rate_Bps == 0) forget_join(max_min, slot);
  for (uint32_t i = 0; i < flow->n_uses; i++) {
    pl_max_min_link *link = &max_min->links[uses[i].link];
    link->count--;
    link->share -= uses[i].share;
    if (link->mark == max_min->epoch) continue;
    link->mark = max_min->epoch; /* epochs come in pairs: touched, then gathered */
    max_min->touched[max_min->n_touched++] = uses[i].link;
  }
}

/* The list of a link after a large part of it left. */
static void compact(pl_max_min *max_min, pl_max_min_link *link) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < link->n_entries && link->count > 0; i++) {
    pl_max_min_entry entry = link->entries[i];
    const pl_max_min_slot *flow = &max_min->slots[entry.slot];
    if (!flow->active) continue;
    max_min->positions[flow->first_position + entry.use] = kept;
    link->entries[kept++] = entry;
  }
  link->n_entries = kept;
}

/* Takes a flow that left off the lists that are not compact yet. */
static void take_off(pl_max_min *max_min, uint32_t slot) {
  const pl_max_min_slot *flow = &max_min->slots[slot];
  const pl_max_min_use *uses = &max_min->uses[flow->first_use];
  const uint32_t *positions = &max_min->positions[flow->first_position];
  for (uint32_t i = 0; i < flow->n_uses; i++) {
    pl_max_min_link *link = &max_min->links[uses[i].link];
    if (link->n_entries == link->count) continue;
    pl_max_min_entry last = link->entries[--link->n_entries];
    link->entries[positions[i]] = last;
    max_min->positions[max_min->slots[last.slot].first_position + last.use] = positions[i];
  }
}

/* Brings the lists up to date and frees the slots of what left. */
static void purge(pl_max_min *max_min) {
  for (uint32_t i = 0; i < max_min->n_touched; i++) {
    pl_max_min_link *link = &max_min->links[max_min->touched[i]];
    if (link->n_entries - link->count > link->n_entries / 4) compact(max_min, link);
  }
  for (uint32_t i = 0; i < max_min->n_left && max_min->n_active > 0; i++)
    take_off(max_min, max_min->left[i]);
  pl_max_min_free_left(max_min);
}

/* ---- gathering ---- */

static void gather_link(pl_max_min *max_min, uint32_t index) {
  pl_max_min_link *link = &max_min->links[index];
  if (link->mark == max_min->epoch) return;
  link->mark = max_min->epoch;
  link->is_known = false;
  link->level = INFINITY;
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
    max_min->links[i].mark = max_min->memory[i].mark = 0;
  for (uint32_t i = 0; i < max_min->n_slots; i++)
    max_min->slots[i].gathered = max_min->slots[i].fixed = 0;
  max_min->epoch = 1;
}

static void finish(pl_max_min *max_min) {
  max_min->n_touched = 0;
  next_epoch(max_min);
#ifndef NDEBUG
  PL_DEBUG_ASSERT(pl_max_min_certify(max_min) == NULL);
#endif
}

void pl_max_min_solve(pl_max_min *max_min) {
  max_min->n_changed = max_min->n_component_slots = max_min->n_component_links = 0;
  if (max_min->failed) return;
  bool only_left = max_min->n_joined == 0 && max_min->n_left > 0;
  if (only_left && pl_max_min_update(max_min)) {
    finish(max_min);
    return;
  }
  if (max_min->n_left > 0) purge(max_min);
  if (max_min->n_joined == 0 && max_min->n_touched == 0) return;
  max_min->has_caps = false;
  next_epoch(max_min);
  for (uint32_t i = 0; i < max_min->n_joined; i++) {
    uint32_t slot = max_min->joined[i];
    pl_max_min_slot *flow = &max_min->slots[slot];
    if (is_alone(max_min, flow)) {
      flow->rate_Bps = pl_max_min_solo_rate(max_min, flow->spec);
      max_min->changed[max_min->n_changed++] = slot;
    } else {
      gather_slot(max_min, slot);
    }
  }
  for (uint32_t i = 0; i < max_min->n_touched; i++)
    if (max_min->links[max_min->touched[i]].count > 0) gather_link(max_min, max_min->touched[i]);
  max_min->n_joined = max_min->n_touched = 0;
  /* Where all that moves has joined just now or is gathered, the lists need not be walked. */
  for (uint32_t i = 0; i < max_min->n_component_links && max_min->n_component_slots < max_min->n_active; i++) {
    const pl_max_min_link *link = &max_min->links[max_min->component_links[i]];
    for (uint32_t j = 0; j < link->count; j++) {
      if (j + 8 < link->count) __builtin_prefetch(&max_min->slots[link->entries[j + 8].slot]);
      gather_slot(max_min, link->entries[j].slot);
    }
  }
  if (max_min->n_component_slots > 0 && !pl_max_min_recall(max_min)) {
    pl_max_min_fill(max_min);
    pl_max_min_keep(max_min);
  }
  if (only_left) pl_max_min_remember(max_min);
  finish(max_min);
}

bool pl_max_min_is_valid(const pl_max_min *max_min) {
  for (uint32_t index = 0; index < max_min->n_links && !max_min->alone; index++) {
    const pl_max_min_link *link = &max_min->links[index];
    pl_wide share = 0;
    if (max_min->n_left > 0 || link->n_entries != link->count) return false;
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
