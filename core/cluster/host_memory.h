/* The memory of the machine that a device sits in, as an end of routes: pl_cluster_route(cluster, device,
 * PL_HOST_MEMORY, ...) is the way out, and the other way round the way back. It is that of the socket to which the
 * device has the fewest links, of several the first in the file; PL_BAD_INPUT: the device's node has no CPU socket. */
#ifndef PL_CORE_HOST_MEMORY_H
#define PL_CORE_HOST_MEMORY_H

#include "core/cluster/cluster.h"

#define PL_HOST_MEMORY (PL_NONE - 1)

#endif
