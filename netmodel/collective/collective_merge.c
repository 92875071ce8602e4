/* Phases into one flow (see pl_fluid_collective_merge). With p_i bytes of progress at the rate r_i alone and weights
 * w_i in phase i, and P the sum of the p_i: weight on a link = sum of w_i p_i / P, so P bytes of progress carry what
 * all phases carry; rate cap = P / sum of (p_i / r_i), so alone it takes the sum of their times. The cap binds alone:
 * w_i p_i <= capacity * p_i / r_i on every link. */
#include <stdlib.h>

#include "netmodel/collective/collective_internal.h"

double pl_fluid_alone_Bps(const pl_cluster *cluster, const pl_fluid_collective *fluid) {
  double rate_Bps = fluid->spec.rate_cap_Bps;
  for (uint32_t i = 0; i < fluid->spec.n_uses; i++)
    rate_Bps = fmin(rate_Bps, cluster->links[fluid->uses[i].link].capacity_Bps / fluid->uses[i].weight);
  return rate_Bps;
}

static int by_link(const void *a, const void *b) {
  const pl_link_use *left = a, *right = b;
  if (left->link != right->link) return left->link < right->link ? -1 : 1;
  return (left->weight > right->weight) - (left->weight < right->weight); /* one order of addition */
}

static uint32_t add_up(pl_link_use *uses, uint32_t n) {
  uint32_t kept = 0;
  qsort(uses, n, sizeof *uses, by_link);
  for (uint32_t i = 0; i < n; i++) {
    if (kept > 0 && uses[kept - 1].link == uses[i].link) {
      uses[kept - 1].weight += uses[i].weight;
    } else {
      uses[kept++] = uses[i];
    }
  }
  return kept;
}

pl_code pl_fluid_collective_merge(const pl_cluster *cluster, pl_arena *arena, pl_fluid_collective *fluid,
                                  pl_error *error) {
  if (fluid->next == NULL) return PL_OK;
  double progress_bytes = 0, alone_s = 0;
  uint32_t n_uses = 0, at = 0;
  pl_transfer_spec spec = fluid->spec;
  spec.latency = 0;
  for (const pl_fluid_collective *phase = fluid; phase != NULL; phase = phase->next) {
    progress_bytes += phase->progress_bytes;
    alone_s += phase->progress_bytes / pl_fluid_alone_Bps(cluster, phase);
    spec.latency = pl_ticks_sum(spec.latency, phase->spec.latency);
    spec.share_weight = fmin(spec.share_weight, phase->spec.share_weight);
    n_uses += phase->spec.n_uses;
  }
  pl_link_use *uses = PL_TAKE(arena, pl_link_use, n_uses);
  if (uses == NULL) return pl_fail_memory(error, "the phases of a collective");
  for (const pl_fluid_collective *phase = fluid; phase != NULL; phase = phase->next)
    for (uint32_t i = 0; i < phase->spec.n_uses; i++) {
      double weight = phase->uses[i].weight * (phase->progress_bytes / progress_bytes);
      uses[at++] = (pl_link_use){.link = phase->uses[i].link, .weight = weight};
    }
  spec.n_uses = add_up(uses, n_uses);
  spec.rate_cap_Bps = alone_s > 0 ? progress_bytes / alone_s : INFINITY;
  *fluid = (pl_fluid_collective){.spec = spec, .uses = uses, .progress_bytes = progress_bytes};
  return PL_OK;
}
