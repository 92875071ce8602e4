/* Which nodes of a platform are wired alike (pl_node_shape of core/cluster/cluster.h), so that what was found on one
 * holds for all: rings inside nodes, links of their hops. On 4,096 GPUs looking at each of 512 equal nodes again was
 * two thirds of the time of compiling data parallelism.
 *
 * Known from the file, not from routes: two zones that declare the same hosts and routes in the same order, over links
 * that lie equally far from the first of either, have the same routes between devices (pl_zone_tree_alike). Compared
 * item by item; at most PL_NODE_SHAPES_MAX kinds, nodes beyond are of their own kind. Platforms that SimGrid has loaded
 * have no shapes. */
#ifndef PL_NETMODEL_NODE_SHAPE_H
#define PL_NETMODEL_NODE_SHAPE_H

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/cluster/cluster.h"
#include "netmodel/platform/zone_tree.h"

enum { PL_NODE_SHAPES_MAX = 64 };

/* `zone_of[k]` is the zone of node k; `links` are those of the tree, in its order. O(file). */
pl_code pl_node_shape_take(const pl_zone_tree *tree, const uint32_t *zone_of, uint32_t n_nodes, const pl_link *links,
                           pl_arena *arena, const pl_node_shape **shapes, pl_error *error);
/* What is left of `base` where links have become `links`; NULL where that is NULL. */
pl_code pl_node_shape_vary(const pl_node_shape *base, uint32_t n_nodes, const pl_link *links, pl_arena *arena,
                           const pl_node_shape **shapes, pl_error *error);

#endif
