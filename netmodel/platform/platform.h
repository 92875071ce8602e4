/* From a SimGrid platform XML file to the cluster.
 *
 * The file is read into a tree of zones (netmodel/platform/zone_tree.h), which finds routes as SimGrid does. What that
 * does not understand, and every mistake that it meets, goes to SimGrid, which then owns hosts, links and routes; a
 * small C++ shared library of ours (netmodel/simgrid/simgrid_shim.h) is the only code that links libsimgrid, because
 * libsimgrid exports its own MPI_* symbols. GPUs are the hosts that carry <prop id="device" value="PROFILE"/>; a node
 * is the zone that holds them (devices of one zone = one node; zones in file order, hosts in file order). Link kinds
 * come from <prop id="kind" value="nvlink|pcie|cpu|nic|fabric"/> on the link.
 *
 * Any number of platforms at a time, from any threads, as long as SimGrid is not needed: its engine is a singleton. One
 * platform at a time may be in SimGrid; after pl_platform_destroy another; after a load that SimGrid itself refused
 * none, and pl_platform_load says so. Asking for routes works from any thread: misses go to the tree or SimGrid under
 * the cache's lock, hits take none (netmodel/platform/route_cache.h).
 */
#ifndef PL_NETMODEL_PLATFORM_H
#define PL_NETMODEL_PLATFORM_H

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/cluster/cluster.h"

typedef struct pl_platform pl_platform;

/* Loads `path`, a file or what a name stands for (netmodel/platform/platform_choice.h); device profiles are searched in
 * `profile_folder` (NULL: "devices" beside the platform file, then the folder that PACELINE_DEVICES names or that comes
 * with Paceline). Errors with file:line: malformed XML, unknown device type, a zero or negative bandwidth, resources
 * that change over time, whatever SimGrid refuses; and no device at all. Missing routes are found when asked for, or by
 * pl_platform_check. PL_UNSUPPORTED where SimGrid is needed and has another platform. Cost, of a busy CPU: 7 to 9 ms
 * for 128 GPUs, 0.6 to 0.7 s for 16,384, where SimGrid takes 20 ms and 11 s (README.md here). */
pl_code pl_platform_load(const char *path, const char *profile_folder, pl_platform **platform, pl_error *error);
/* The same through SimGrid, whatever the file: for tests, and `platform check --simgrid`. */
pl_code pl_platform_load_by_simgrid(const char *path, const char *profile_folder, pl_platform **platform,
                                    pl_error *error);
bool pl_platform_is_from_simgrid(const pl_platform *platform);
/* SimGrid has this platform afterwards, as its event loop needs (netmodel/simgrid/simgrid_run.h); nothing is done if it
 * has it already. Thread-safe. */
pl_code pl_platform_need_simgrid(const pl_platform *platform, pl_error *error);
void pl_platform_destroy(pl_platform *platform);
/* Valid until destroy. */
const pl_cluster *pl_platform_cluster(const pl_platform *platform);

/* The hierarchy as the file nests it, for reports: zones in pre-order, and the zone that declares each link of the
 * cluster. */
typedef struct pl_platform_zone {
  const char *name;
  uint32_t parent; /* index, smaller than its own; PL_NONE for the outermost */
  uint32_t node;   /* PL_NONE if no device lies directly in it */
} pl_platform_zone;
const pl_platform_zone *pl_platform_zones(const pl_platform *platform, uint32_t *n_zones);
const uint32_t *pl_platform_link_zones(const pl_platform *platform);

/* CPU sockets: hosts that carry <prop id="cpu" value="MODEL"/> and no device, in file order. No part of the cluster:
 * only reports look at them. */
typedef struct pl_platform_socket {
  const char *name, *cpu;
  uint32_t zone, n_cores;
  uint32_t host; /* of the shim */
} pl_platform_socket;
const pl_platform_socket *pl_platform_sockets(const pl_platform *platform, uint32_t *n_sockets);
/* The links from a device to a socket, in order of crossing; `links` has room for PL_ROUTE_LINKS_MAX. *n_links is 0
 * when the file has no such route. Asks SimGrid each time: not while other threads ask for routes. */
pl_code pl_platform_socket_route(const pl_platform *platform, uint32_t device, uint32_t socket, uint32_t *links,
                                 uint32_t *n_links, pl_error *error);

/* Everything that can be wrong with a platform: resolves the route of every pair of devices (of a sample of pairs above
 * 256 devices: all pairs inside each node, and between every node's devices and those of the next node and of node 0;
 * of a node of more than 64 devices about five pairs per device). First problem in `error`. */
pl_code pl_platform_check(const pl_platform *platform, pl_error *error);
/* The same, and that `other` is the same platform to the bit: zones, nodes, devices, sockets, links and the routes of
 * those pairs. */
pl_code pl_platform_check_same(const pl_platform *platform, const pl_platform *other, pl_error *error);

#endif
