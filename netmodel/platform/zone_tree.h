/* A platform as its file nests it: zones, hosts, links and declared routes, and from these the route of any pair, as
 * SimGrid 3.32 finds it.
 *
 * Why not SimGrid itself: its time is quadratic in the number of zones (every new host is looked up in every zone,
 * every zone filters all hosts when it is sealed), it holds one platform per process, and a fat tree that is not the
 * first of its process gets other routes (a static counter in FatTreeZone.cpp). So SimGrid is asked only for what is
 * not understood here. The tree is built from the events of the scan; as soon as something comes that is not plainly
 * right, it says what, and SimGrid takes the file. That includes every mistake that the scan has let through: SimGrid
 * has the words for it. Understood are zones with Full and Floyd routing, flat clusters, hosts, routers, links and both
 * kinds of route. What is understood has the same arrays and routes to the bit:
 * tests/crosscheck/platform_loaders_test.c, and for any file `paceline platform check --simgrid`.
 *
 * Known difference: where a Floyd zone joins two of its routes inside a zone that has no way between their gateways,
 * SimGrid goes on without links; here there is no route.
 */
#ifndef PL_NETMODEL_ZONE_TREE_H
#define PL_NETMODEL_ZONE_TREE_H

#include "core/base/arena.h"
#include "netmodel/platform/platform_scan.h"
#include "netmodel/simgrid/simgrid_shim.h"

typedef struct pl_zone_tree pl_zone_tree;

/* For a file of `text_bytes`. Everything lives in `arena`, which must outlive the tree. NULL: no memory. */
pl_zone_tree *pl_zone_tree_take(size_t text_bytes, pl_arena *arena);
/* For pl_platform_scan_text; the tree is then finished, once. */
pl_platform_sink pl_zone_tree_sink(pl_zone_tree *tree);
/* NULL: the tree is good. Else what it does not understand; it must not be asked for anything then. */
const char *pl_zone_tree_finish(pl_zone_tree *tree);

/* Of a good tree: the same as pl_shim_get_parts and pl_shim_route. Thread-safe. Cost: 0.1 us and a search in a hash
 * table per zone on the way. */
void pl_zone_tree_parts(const pl_zone_tree *tree, pl_shim_parts *parts);
pl_shim_status pl_zone_tree_route(const pl_zone_tree *tree, uint32_t source_host, uint32_t destination_host,
                                  uint32_t *links, uint32_t capacity, uint32_t *n_links, char *message,
                                  size_t message_bytes);

/* Of a good tree: whether two zones without others in them declare the same hosts and routes in the same order, those
 * between devices over links that lie equally far from the first of either, whatever these can do. Then the routes
 * between devices inside them are the same, counted so. */
bool pl_zone_tree_alike(const pl_zone_tree *tree, uint32_t left, uint32_t right);
/* The links from the first to the last that routes between devices inside such a zone cross. */
void pl_zone_tree_links(const pl_zone_tree *tree, uint32_t zone, uint32_t *first, uint32_t *n);

#endif
