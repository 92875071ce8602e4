/* The rates of components of few flows, kept (see netmodel/flow/max_min.h).
 *
 * What the flows of a component get is decided by their specs and by nothing else: the sums are integers, so not even
 * the order in which they came is seen. And components of two or three come again and again with the same specs, as a
 * send of a pipeline meets the collective of the next stage once per microbatch. So their rates are kept by their
 * specs, in the order in which they were gathered: in one of two places, of which the second is given up for a third.
 * Filling components of one and two was 900 instructions each, and a ninth of such runs. */
#include "netmodel/flow/max_min.h"

enum { PLACES = 2048 };

/* The first of the two. */
static pl_max_min_few *places_of(const pl_max_min *max_min) {
  uint32_t hash = 0;
  for (uint32_t i = 0; i < max_min->n_component_slots; i++)
    hash = (hash ^ max_min->slots[max_min->component_slots[i]].spec) * 0x9e3779b1u;
  return &max_min->few[hash >> 22 << 1];
}

_Static_assert(PLACES == 2u << (32 - 22), "the upper bits of the hash are a pair of places");

static bool is_of(const pl_max_min_few *kept, const pl_max_min *max_min) {
  if (kept->n != max_min->n_component_slots) return false;
  for (uint32_t i = 0; i < kept->n; i++)
    if (kept->specs[i] != max_min->slots[max_min->component_slots[i]].spec) return false;
  return true;
}

bool pl_max_min_recall(pl_max_min *max_min) {
  if (max_min->few == NULL || max_min->n_component_slots > PL_MAX_MIN_FEW) return false;
  const pl_max_min_few *kept = places_of(max_min);
  if (!is_of(kept, max_min) && !is_of(++kept, max_min)) return false;
  for (uint32_t i = 0; i < kept->n; i++) {
    pl_max_min_slot *flow = &max_min->slots[max_min->component_slots[i]];
    if (flow->rate_Bps == kept->rates_Bps[i]) continue;
    flow->rate_Bps = kept->rates_Bps[i];
    max_min->changed[max_min->n_changed++] = max_min->component_slots[i];
  }
  return true;
}

/* Places that nothing is kept in; the rest of them is not looked at. NULL: no memory. */
static pl_max_min_few *take_places(pl_arena *arena) {
  pl_max_min_few *few = pl_arena_take(arena, PLACES * sizeof *few, _Alignof(pl_max_min_few));
  for (uint32_t i = 0; i < PLACES && few != NULL; i++)
    few[i].n = 0;
  return few;
}

void pl_max_min_keep(pl_max_min *max_min) {
  if (max_min->n_component_slots > PL_MAX_MIN_FEW) return;
  if (max_min->few == NULL) max_min->few = take_places(max_min->arena);
  if (max_min->few == NULL) {
    max_min->failed = true;
    return;
  }
  pl_max_min_few *kept = places_of(max_min);
  kept[1] = kept[0];
  kept->n = max_min->n_component_slots;
  for (uint32_t i = 0; i < kept->n; i++) {
    const pl_max_min_slot *flow = &max_min->slots[max_min->component_slots[i]];
    kept->specs[i] = flow->spec;
    kept->rates_Bps[i] = flow->rate_Bps;
  }
}
