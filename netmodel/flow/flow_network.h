/* What the flow and the analytic network share (netmodel only): transfers in time on top of netmodel/flow/max_min.h. */
#ifndef PL_NETMODEL_FLOW_NETWORK_H
#define PL_NETMODEL_FLOW_NETWORK_H

#include "core/cluster/transfer.h"
#include "core/graph/network.h"

/* `alone`: links carry any load. NULL: no memory. */
pl_network *pl_flow_network_make(const pl_transfer_table *table, const char *name, bool alone, pl_arena *arena);

#endif
