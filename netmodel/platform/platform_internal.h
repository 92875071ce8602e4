/* What a platform is made of, for the files that load it (platform.c) and make its cluster (platform_arrays.c). */
#ifndef PL_NETMODEL_PLATFORM_INTERNAL_H
#define PL_NETMODEL_PLATFORM_INTERNAL_H

#include <pthread.h>

#include "netmodel/device/device_profile.h"
#include "netmodel/platform/platform.h"
#include "netmodel/platform/platform_scan.h"
#include "netmodel/platform/route_cache.h"
#include "netmodel/platform/zone_tree.h"
#include "netmodel/simgrid/simgrid_door.h"

/* Apart from the platform, which is const once it is loaded. */
typedef struct simgrid_side {
  pl_simgrid_door door; /* once there is a shim */
  pthread_mutex_t mutex;
  pl_shim *shim; /* NULL until SimGrid is needed */
} simgrid_side;

struct pl_platform {
  pl_arena arena;           /* every array and string of the cluster */
  const pl_zone_tree *tree; /* NULL: SimGrid has the parts and routes */
  simgrid_side *simgrid;
  pl_shim_parts parts;
  uint64_t text_digest;
  pl_platform_scan scan;
  const uint32_t *host_of; /* device -> host of the shim */
  const pl_platform_zone *zones;
  uint32_t n_zones;
  const uint32_t *link_zones; /* link -> zone */
  const pl_platform_socket *sockets;
  uint32_t n_sockets;
  pl_route_cache *routes;
  pl_cluster cluster;
};

/* Index of the profile of that name; PL_NONE: none. */
uint32_t pl_platform_find_profile(const pl_device_profile *profiles, uint32_t n, const char *type);

/* Fills the platform's cluster, zones and sockets from its parts; the profiles are there already. Memory from the
 * platform's arena. */
pl_code pl_platform_make_cluster(pl_platform *platform, const char *path, pl_error *error);

#endif
