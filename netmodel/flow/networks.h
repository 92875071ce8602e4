/* The networks behind core/graph/network.h. */
#ifndef PL_NETMODEL_NETWORKS_H
#define PL_NETMODEL_NETWORKS_H

#include "core/base/arena.h"
#include "core/cluster/transfer.h"
#include "core/engine/engine.h"
#include "core/graph/network.h"
#include "netmodel/platform/platform.h"

typedef enum pl_network_kind { PL_NETWORK_FLOW = 0, PL_NETWORK_ANALYTIC, PL_NETWORK_SIMGRID } pl_network_kind;
typedef enum pl_sharing { PL_SHARING_EQUAL = 0, PL_SHARING_RTT } pl_sharing;

/* Fluid network with exact weighted max-min sharing (see netmodel/flow/flow_network.c). Memory from `arena`; table must
 * outlive it. NULL: no memory. */
pl_network *pl_flow_network_take(const pl_transfer_table *table, pl_arena *arena);
/* Each transfer alone: latency + bytes / solo rate. */
pl_network *pl_analytic_network_take(const pl_transfer_table *table, pl_arena *arena);

/* Plays `graph` in SimGrid's own event loop, in a forked child (SimGrid's clock and its engine are one per process).
 * Every transfer of the graph must be point to point (source and destination set). Same result structure as
 * pl_engine_run. */
pl_code pl_simgrid_run(const pl_platform *platform, const pl_graph *graph, pl_sharing sharing,
                       const pl_engine_options *options, pl_arena *arena, pl_engine_result *result, pl_error *error);

/* The rule by which a point-to-point flow shares, as a transfer spec (uses, cap, share weight, latency) for the route
 * between two devices. EQUAL: share_weight 1, no cap beyond the links, latency = sum. RTT: SimGrid's CM02: share weight
 * 1 / p with p = sum of latencies (1 if 0), cap gamma / (2 * latency) with gamma = 4194304 B. Uses are taken from
 * `arena`. */
pl_code pl_route_spec(const pl_cluster *cluster, pl_sharing sharing, uint32_t source, uint32_t destination,
                      pl_arena *arena, pl_link_use **uses, pl_transfer_spec *spec, pl_error *error);

#endif
