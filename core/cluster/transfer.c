/* See core/cluster/transfer.h. */
#include "core/cluster/transfer.h"

#include <math.h>

double pl_transfer_solo_rate(const pl_transfer_table *table, uint32_t spec) {
  const pl_transfer_spec *s = &table->specs[spec];
  double rate = s->rate_cap_Bps;
  for (uint32_t i = 0; i < s->n_uses; i++) {
    const pl_link_use *use = &table->uses[s->first_use + i];
    double capacity = table->link_capacity_Bps[use->link];
    /* On a shared link as the max-min level times the share weight, so that a network that solves for the rate of a
     * lone transfer finds the same bits. */
    double share = table->link_policy[use->link] == PL_LINK_FATPIPE
                       ? capacity / use->weight
                       : capacity / (use->weight * s->share_weight) * s->share_weight;
    if (share < rate) rate = share;
  }
  return rate;
}

pl_ticks pl_transfer_solo_ticks(const pl_transfer_table *table, uint32_t spec, double size_bytes) {
  pl_ticks latency = table->specs[spec].latency;
  if (!(size_bytes > 0.0)) return latency;
  pl_ticks moving = pl_ticks_from_s(size_bytes / pl_transfer_solo_rate(table, spec));
  return pl_ticks_sum(latency, moving);
}

/* A link occurs once per spec: strictly increasing lists, which builders make, are checked in one pass. */
static bool links_are_distinct(const pl_link_use *use, uint32_t n) {
  uint32_t i = 1;
  while (i < n && use[i - 1].link < use[i].link)
    i++;
  if (i >= n) return true;
  for (i = 1; i < n; i++)
    for (uint32_t j = 0; j < i; j++)
      if (use[i].link == use[j].link) return false;
  return true;
}

static bool spec_is_valid(const pl_transfer_table *table, const pl_transfer_spec *spec) {
  if (spec->n_uses > table->n_uses || spec->first_use > table->n_uses - spec->n_uses) return false;
  if (!(spec->rate_cap_Bps > 0.0) || !(spec->share_weight > 0.0) || !isfinite(spec->share_weight)) return false;
  if (spec->latency < 0 || spec->latency > PL_TICKS_MAX) return false;
  const pl_link_use *use = table->uses + spec->first_use;
  for (uint32_t i = 0; i < spec->n_uses; i++)
    if (use[i].link >= table->n_links || !(use[i].weight > 0.0) || !isfinite(use[i].weight)) return false;
  return links_are_distinct(use, spec->n_uses);
}

bool pl_transfer_table_is_valid(const pl_transfer_table *table) {
  for (uint32_t l = 0; l < table->n_links; l++)
    if (!(table->link_capacity_Bps[l] > 0.0) || table->link_policy[l] > PL_LINK_FATPIPE) return false;
  for (uint32_t s = 0; s < table->n_specs; s++)
    if (!spec_is_valid(table, &table->specs[s])) return false;
  return true;
}
