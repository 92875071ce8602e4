/* The cluster: devices, nodes, directed links and routes as flat, immutable arrays that all threads share.
 *
 * netmodel loads it from a SimGrid platform (netmodel/platform/platform.h) and owns the storage; everything here is
 * const afterwards. Routes are resolved on demand behind a thread-safe cache.
 */
#ifndef PL_CORE_CLUSTER_H
#define PL_CORE_CLUSTER_H

#include <stdint.h>

#include "core/base/status.h"
#include "core/base/ticks.h"
#include "core/cluster/device_profile.h"

#define PL_NONE UINT32_MAX

typedef enum pl_link_policy {
  PL_LINK_SHARED = 0, /* sum of usage * rate <= capacity */
  PL_LINK_FATPIPE     /* each usage * rate <= capacity */
} pl_link_policy;

/* What the wire is, from <prop id="kind"> of the link; for reports and for the choice of channels. */
typedef enum pl_link_kind {
  PL_LINK_OTHER = 0,
  PL_LINK_NVLINK, /* NVLink, and ports of an NVSwitch */
  PL_LINK_PCIE,
  PL_LINK_CPU, /* QPI, UPI, Infinity Fabric, host memory */
  PL_LINK_NIC,
  PL_LINK_FABRIC, /* switches beyond the NIC */
  PL_LINK_KIND_COUNT
} pl_link_kind;

const char *pl_link_kind_name(pl_link_kind kind); /* "nvlink" ... */

typedef struct pl_link {
  const char *name; /* SimGrid's: "node0_nic0_UP" */
  double capacity_Bps;
  pl_ticks latency;
  uint8_t policy; /* pl_link_policy */
  uint8_t kind;   /* pl_link_kind */
} pl_link;

typedef struct pl_device {
  const char *name; /* host name in the platform file */
  uint32_t node;
  uint32_t profile;     /* index into cluster->profiles */
  uint32_t local_index; /* position among the devices of its node */
} pl_device;

typedef struct pl_node_info {
  const char *name;      /* zone name */
  uint32_t first_device; /* devices of a node are consecutive */
  uint32_t n_devices;
} pl_node_info;

/* Nodes of one kind are wired alike: the route from their i-th device to their j-th crosses the same links, counted
 * from the first of each node, and these have the same capacity, latency, policy and kind. */
typedef struct pl_node_shape {
  uint32_t kind; /* equal numbers, equal wiring */
  uint32_t first_link, n_links;
} pl_node_shape;

typedef struct pl_route {
  const uint32_t *links; /* directed link indices in crossing order, owned by the cluster */
  uint32_t n_links;
  pl_ticks latency; /* sum over the links, rounded once per link */
} pl_route;

typedef struct pl_cluster {
  const char *path; /* of the platform file */
  uint64_t digest;  /* of the platform file and the device profiles it uses */
  uint32_t n_devices, n_nodes, n_links, n_profiles;
  const pl_device *devices;
  const pl_node_info *nodes;
  const pl_node_shape *shapes; /* per node; NULL: not known */
  const pl_link *links;
  /* A variation (netmodel/platform/platform_vary.h): the links as the file has them, by whose figures kinds of wiring
   * are told; else NULL. */
  const pl_link *links_of_file;
  const pl_device_profile *profiles;
  /* Thread-safe; the route's memory stays valid as long as the cluster. source != destination. */
  pl_code (*route)(void *routes, uint32_t source, uint32_t destination, pl_route *route, pl_error *error);
  void *routes;
} pl_cluster;

static inline pl_code pl_cluster_route(const pl_cluster *cluster, uint32_t source, uint32_t destination,
                                       pl_route *route, pl_error *error) {
  return cluster->route(cluster->routes, source, destination, route, error);
}

/* One NVLink, and nothing else. */
static inline bool pl_cluster_is_direct(const pl_cluster *cluster, const pl_route *route) {
  return route->n_links == 1 && cluster->links[route->links[0]].kind == PL_LINK_NVLINK;
}

/* Nodes that the `n` devices are on. O(n^2). */
uint32_t pl_cluster_count_nodes(const pl_cluster *cluster, const uint32_t *devices, uint32_t n);

static inline const pl_device_profile *pl_cluster_profile(const pl_cluster *cluster, uint32_t device) {
  return &cluster->profiles[cluster->devices[device].profile];
}

#endif
