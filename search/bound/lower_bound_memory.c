/* Memory that a strategy certainly needs (see search/bound/lower_bound.h): that of every stage's passes, which is what
 * a simulation finds. */
#include <math.h>

#include "search/bound/lower_bound_parts.h"
#include "workloads/memory/stage_memory.h"
#include "workloads/memory/stage_peak.h"

void pl_bound_memory(const pl_lower_bounds *bounds, const pl_program *program, const pl_bound_layout *layout,
                     pl_lower_bound *bound) {
  const pl_cluster *cluster = bounds->cluster;
  int32_t pp = program->strategy->pp;
  bool in_order = bounds->options->streams != PL_STREAMS_READY && program->n_schedules == 1;
  bound->shortfall_bytes = -INFINITY;
  for (int32_t stage = 0; stage < pp; stage++) {
    double peak = pl_stage_peak_bytes(program, stage, in_order);
    for (uint32_t p = 0; p < cluster->n_profiles && p < PL_BOUND_PROFILES; p++) {
      if ((layout->profiles[stage] >> p & 1) == 0) continue;
      double short_by = peak - pl_held_memory_of(program, stage, &cluster->profiles[p], peak, NULL).usable;
      if (short_by <= bound->shortfall_bytes) continue;
      bound->shortfall_bytes = short_by;
      bound->stage = stage;
    }
  }
}
