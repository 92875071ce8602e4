/* The analytic network: alpha-beta without contention (AMP, eq. 3 to 5). Each transfer takes its latency plus bytes
 * over its solo rate, whatever else is under way; only the overlap factor slows it. The same machine as the flow
 * network with links that carry any load, so that both take the same ticks where nobody meets. */
#include "netmodel/flow/flow_network.h"
#include "netmodel/flow/networks.h"

pl_network *pl_analytic_network_take(const pl_transfer_table *table, pl_arena *arena) {
  return pl_flow_network_make(table, "analytic", true, arena);
}
