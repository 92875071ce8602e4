/* See workloads/assign/family_time.h. */
#include "workloads/assign/family_time.h"

#include <math.h>

pl_code pl_family_time_init(pl_family_time *time, const pl_cluster *cluster, const pl_collective_options *options,
                            pl_arena *arena, pl_error *error) {
  *time = (pl_family_time){.cluster = cluster, .arena = arena, .options = options};
  time->load = PL_TAKE(arena, double, cluster->n_links);
  return time->load == NULL ? pl_fail_memory(error, "the prices of communication") : PL_OK;
}

pl_code pl_family_time_begin(pl_family_time *time, const pl_family *family, pl_error *error) {
  time->family = family;
  time->groups = PL_TAKE(time->arena, pl_collective_group *, family->n_groups);
  time->fluids = PL_TAKE(time->arena, pl_fluid_collective, family->n_groups);
  if (time->arena->failed) return pl_fail_memory(error, "the prices of communication");
  for (uint32_t g = 0; g < family->n_groups; g++)
    PL_TRY(pl_collective_group_take(time->cluster, family->members + (size_t)g * family->group_size, family->group_size,
                                    time->options, time->arena, &time->groups[g], error));
  return PL_OK;
}

static void add_load(pl_family_time *time, const pl_fluid_collective *fluid, double sign) {
  for (uint32_t i = 0; i < fluid->spec.n_uses; i++) {
    double *load = &time->load[fluid->uses[i].link];
    *load = sign > 0 ? *load + fluid->uses[i].weight : 0;
  }
}

static double time_of(const pl_family_time *time, const pl_fluid_collective *fluid) {
  double rate_Bps = fluid->spec.rate_cap_Bps;
  for (uint32_t i = 0; i < fluid->spec.n_uses; i++) {
    uint32_t link = fluid->uses[i].link;
    rate_Bps = fmin(rate_Bps, time->cluster->links[link].capacity_Bps / time->load[link]);
  }
  return pl_ticks_to_s(fluid->spec.latency) + (isfinite(rate_Bps) ? fluid->progress_bytes / rate_Bps : 0);
}

pl_code pl_family_time_of(pl_family_time *time, pl_collective_kind kind, double size_bytes, double *time_s,
                          pl_error *error) {
  pl_arena_mark scratch = pl_arena_mark_here(time->arena);
  uint32_t n = time->family->n_groups;
  *time_s = 0;
  for (uint32_t g = 0; g < n; g++) {
    PL_TRY(pl_collective_fluid(time->groups[g], kind, size_bytes, time->arena, &time->fluids[g], error));
    PL_TRY(pl_fluid_collective_merge(time->cluster, time->arena, &time->fluids[g], error));
    add_load(time, &time->fluids[g], 1);
  }
  for (uint32_t g = 0; g < n; g++)
    *time_s = fmax(*time_s, time_of(time, &time->fluids[g]));
  for (uint32_t g = 0; g < n; g++)
    add_load(time, &time->fluids[g], -1);
  pl_arena_release_to(time->arena, scratch);
  return PL_OK;
}
