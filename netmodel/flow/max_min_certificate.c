/* An independent check of max-min rates (see pl_max_min_certify in netmodel/flow/max_min.h).
 *
 * It shares no code and no numbers with the filling: it starts from the table's uses and capacities, sums in plain
 * double, and tests the definition (Bertsekas and Gallager, Data Networks, 6.5.2): rates are max-min fair if and only
 * if nothing is over capacity and every flow has a bottleneck, that is, a saturated link on which no flow has a larger
 * rate / share, or its cap. Linear in the uses of
 * the component, save that specs with many uses are searched for each link; for debug builds. */
#include <math.h>

#include "netmodel/flow/max_min.h"

static const double tolerance = 1e-9;

/* Load and highest rate / share of a link. The solve is over, so its scratch array of levels, one entry per link, is
 * free to keep (highest, saturated). Returns false if the link is over capacity. */
static bool measure_link(const pl_max_min *max_min, uint32_t index) {
  const pl_max_min_link *link = &max_min->links[index];
  const pl_transfer_table *table = max_min->table;
  double load = 0, highest = 0, capacity_Bps = table->link_capacity_Bps[index];
  for (uint32_t i = 0; i < link->count; i++) {
    const pl_max_min_slot *flow = &max_min->slots[link->entries[i].slot];
    const pl_transfer_spec *spec = &table->specs[flow->spec];
    for (uint32_t use = spec->first_use; use < spec->first_use + spec->n_uses; use++)
      if (table->uses[use].link == index) load += table->uses[use].weight * flow->rate_Bps;
    highest = fmax(highest, flow->rate_Bps / spec->share_weight);
  }
  max_min->levels[index] = (pl_max_min_level){.level = highest, .link = load >= capacity_Bps * (1 - tolerance)};
  return load <= capacity_Bps * (1 + tolerance);
}

static double cap_of(const pl_transfer_table *table, const pl_transfer_spec *spec) {
  double cap_Bps = spec->rate_cap_Bps;
  for (uint32_t i = spec->first_use; i < spec->first_use + spec->n_uses; i++) {
    const pl_link_use *use = &table->uses[i];
    if (table->link_policy[use->link] == PL_LINK_FATPIPE)
      cap_Bps = fmin(cap_Bps, table->link_capacity_Bps[use->link] / use->weight);
  }
  return cap_Bps;
}

static const char *certify_slot(const pl_max_min *max_min, uint32_t slot) {
  const pl_transfer_table *table = max_min->table;
  const pl_max_min_slot *flow = &max_min->slots[slot];
  const pl_transfer_spec *spec = &table->specs[flow->spec];
  if (!(flow->rate_Bps > 0)) return "a flow has no rate";
  double cap_Bps = cap_of(table, spec);
  if (flow->rate_Bps > cap_Bps * (1 + tolerance)) return "a flow is faster than its cap";
  bool has_bottleneck = flow->rate_Bps >= cap_Bps * (1 - tolerance);
  for (uint32_t i = spec->first_use; i < spec->first_use + spec->n_uses && !has_bottleneck; i++) {
    uint32_t link = table->uses[i].link;
    if (table->link_policy[link] == PL_LINK_FATPIPE) continue;
    const pl_max_min_level *measured = &max_min->levels[link];
    has_bottleneck = measured->link && flow->rate_Bps / spec->share_weight >= measured->level * (1 - tolerance);
  }
  return has_bottleneck ? NULL : "a flow has no bottleneck: it could be faster";
}

static bool measure_links_of(const pl_max_min *max_min, uint32_t slot) {
  const pl_transfer_spec *spec = &max_min->table->specs[max_min->slots[slot].spec];
  for (uint32_t i = spec->first_use; i < spec->first_use + spec->n_uses; i++) {
    uint32_t link = max_min->table->uses[i].link;
    if (max_min->table->link_policy[link] == PL_LINK_SHARED && !measure_link(max_min, link)) return false;
  }
  return true;
}

const char *pl_max_min_certify(const pl_max_min *max_min) {
  if (max_min->alone) return NULL;
  for (uint32_t i = 0; i < max_min->n_component_links; i++)
    if (!measure_link(max_min, max_min->component_links[i])) return "a link carries more than its capacity";
  for (uint32_t i = 0; i < max_min->n_component_slots; i++) {
    const char *problem = certify_slot(max_min, max_min->component_slots[i]);
    if (problem != NULL) return problem;
  }
  for (uint32_t i = 0; i < max_min->n_changed; i++) {
    uint32_t slot = max_min->changed[i];
    if (max_min->slots[slot].gathered == max_min->epoch - 1) continue; /* in the component: done above */
    if (!measure_links_of(max_min, slot)) return "a link carries more than its capacity";
    const char *problem = certify_slot(max_min, slot);
    if (problem != NULL) return problem;
  }
  return NULL;
}
