/* See workloads/run/explained_group.h. */
#include "workloads/run/explained_group.h"

#include <math.h>

/* The links are asked for once more: classes of folding know what all transfers of a class put on a link. */
pl_code pl_explained_group_find_way(const pl_cluster *cluster, const pl_collective_group *channels, pl_arena *arena,
                                    pl_explained_group *group, pl_ticks *alone, pl_error *error) {
  pl_fluid_collective fluid;
  PL_TRY(pl_collective_fluid(channels, group->kind, group->size_bytes, arena, &fluid, error));
  PL_TRY(pl_fluid_collective_merge(cluster, arena, &fluid, error));
  double slowest_Bps = (double)INFINITY;
  for (uint32_t u = 0; u < fluid.spec.n_uses; u++) {
    const pl_link *link = &cluster->links[fluid.uses[u].link];
    double rate_Bps = link->capacity_Bps / fluid.uses[u].weight;
    if (rate_Bps >= slowest_Bps) continue;
    slowest_Bps = rate_Bps;
    group->link = link->name;
    group->link_capacity_Bps = link->capacity_Bps;
  }
  group->latency_s = pl_ticks_to_s(fluid.spec.latency);
  group->is_capped = fluid.spec.rate_cap_Bps < slowest_Bps * (1 - 1e-9);
  double rate_Bps = fmin(fluid.spec.rate_cap_Bps, slowest_Bps), bytes = fluid.progress_bytes;
  if (alone != NULL) *alone = fluid.spec.latency + (bytes > 0 ? pl_ticks_from_s(bytes / rate_Bps) : 0);
  return pl_collective_group_algorithm(channels, group->kind, group->size_bytes, arena, &group->algorithm, error);
}

const char *pl_explained_group_bound(const pl_explained_group *group, pl_ticks alone, uint64_t calls) {
  if (alone < 0) return "unknown";
  if (2 * group->latency_s > pl_ticks_to_s(alone) / (double)calls) return "latency";
  return group->is_capped ? "cap" : "link";
}

const char *pl_explained_group_slowed_by(const pl_explained_group *group, pl_ticks alone, pl_ticks run,
                                         uint64_t calls) {
  if (alone < 0 || run <= alone + (pl_ticks)calls) return NULL;
  if (group->contends && group->overlaps) return "both";
  return group->overlaps ? "overlap" : "contention";
}
