/* Transfers: what a communication task asks of a network, in a form that knows neither collectives nor routes.
 *
 * A transfer spec says which links one byte of progress uses and how often (the usage weight a), what latency is
 * charged before the first byte and using nothing, how fast it may go at most, and its sharing weight. A task names
 * a spec and a number of bytes of progress. Point-to-point: a = 1 on each link of the route. A fluid collective: one
 * spec whose weight on a link is how often its algorithm crosses that link per byte of progress.
 *
 * Keep weights small integers where the algorithm allows: sums of them are exact, which is what makes a folded
 * network equal to an unfolded one.
 */
#ifndef PL_CORE_TRANSFER_H
#define PL_CORE_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/ticks.h"
#include "core/cluster/cluster.h"

typedef struct pl_link_use {
  uint32_t link;
  double weight; /* > 0; a link occurs once per spec */
} pl_link_use;

typedef struct pl_transfer_spec {
  uint32_t first_use, n_uses; /* into pl_transfer_table.uses; 0 uses = only latency */
  double rate_cap_Bps;        /* of the progress; INFINITY = none. FATPIPE links are folded into it by the builder. */
  double share_weight;        /* equal sharing: 1. Max-min is on rate / share_weight. > 0 */
  pl_ticks latency;
  uint32_t source, destination; /* devices of a point-to-point transfer, else PL_NONE; SimGrid's network needs them */
} pl_transfer_spec;

/* The links that a network sees: those of the cluster, or classes of them after folding. */
typedef struct pl_transfer_table {
  const double *link_capacity_Bps;
  const uint8_t *link_policy; /* pl_link_policy */
  uint32_t n_links;
  const pl_transfer_spec *specs;
  uint32_t n_specs;
  const pl_link_use *uses;
  uint32_t n_uses;
} pl_transfer_table;

/* Rate of the transfer alone on the network: min(cap, min over links capacity / weight). INFINITY when neither binds.
 */
double pl_transfer_solo_rate(const pl_transfer_table *table, uint32_t spec);
/* latency + bytes / solo rate, on the grid of ticks. The one place where this sum is made: the analytic network, the
 * fused durations and the closed-form tests all call it. */
pl_ticks pl_transfer_solo_ticks(const pl_transfer_table *table, uint32_t spec, double size_bytes);
bool pl_transfer_table_is_valid(const pl_transfer_table *table);

#endif
