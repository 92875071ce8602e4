/* Memory that a strategy certainly needs (see search/bound/lower_bound.h): that of every stage's passes, which is what
 * a simulation finds. */
#include <math.h>

#include "search/bound/lower_bound_parts.h"
#include "workloads/memory/stage_memory.h"
#include "workloads/memory/stage_peak.h"

static pl_lower_bound find_shortfall(const pl_lower_bounds *bounds) {
  const pl_cluster *cluster = bounds->cluster;
  const pl_bound_frame *frame = &bounds->frame;
  pl_lower_bound found = {.shortfall_bytes = -INFINITY};
  for (int32_t stage = 0; stage < frame->program.strategy->pp; stage++) {
    double peak = pl_stage_peak_of(&frame->program, stage, frame->passes_bytes[stage]);
    for (uint32_t p = 0; p < cluster->n_profiles && p < PL_BOUND_PROFILES; p++) {
      if ((frame->layout->profiles[stage] >> p & 1) == 0) continue;
      double short_by =
          peak - pl_held_memory_of(cluster, &frame->program, stage, &cluster->profiles[p], peak, NULL).usable;
      if (short_by <= found.shortfall_bytes) continue;
      found.shortfall_bytes = short_by;
      found.stage = stage;
    }
  }
  return found;
}

void pl_bound_memory(pl_lower_bounds *bounds, pl_lower_bound *bound) {
  pl_bound_frame *frame = &bounds->frame;
  int32_t zero = frame->program.strategy->zero;
  if (frame->memory_zero != zero) frame->memory = find_shortfall(bounds);
  frame->memory_zero = zero;
  bound->shortfall_bytes = frame->memory.shortfall_bytes;
  bound->stage = frame->memory.stage;
}
