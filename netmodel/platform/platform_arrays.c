/* See netmodel/platform/platform_internal.h: links, nodes, devices and sockets of a cluster, out of the parts that a
 * zone tree or SimGrid has. */
#include <math.h>
#include <string.h>

#include "netmodel/device/device_spread.h"
#include "netmodel/platform/link_kind.h"
#include "netmodel/platform/node_shape.h"
#include "netmodel/platform/platform_internal.h"

uint32_t pl_platform_find_profile(const pl_device_profile *profiles, uint32_t n, const char *type) {
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(profiles[i].name, type) == 0) return i;
  return PL_NONE;
}
/* The links that SimGrid makes for <cluster topology="FAT_TREE"> cannot carry properties: link_from_A_B_N_UP and _DOWN.
 */
static pl_link_kind kind_of(const pl_shim_link *link) {
  pl_link_kind kind = PL_LINK_OTHER;
  if (link->kind != NULL)
    pl_link_kind_from_name(link->kind, &kind);
  else if (strncmp(link->name, "link_from_", 10) == 0)
    kind = PL_LINK_FABRIC;
  return kind;
}

/* A tree's names are in the platform's arena; SimGrid's go with SimGrid. */
static const char *keep_name(pl_platform *platform, const char *name) {
  return platform->tree != NULL ? name : pl_arena_strdup(&platform->arena, name);
}

static pl_code convert_link(pl_platform *platform, const char *path, uint32_t index, pl_link *link, uint32_t *zone,
                            pl_error *error) {
  const pl_shim_link given = platform->parts.links[index];
  *zone = given.zone;
  if (!given.is_shareable)
    return pl_fail(error, PL_UNSUPPORTED, "%s: link '%s' is neither SHARED, SPLITDUPLEX nor FATPIPE", path, given.name);
  if (!(given.bandwidth_Bps > 0) || !isfinite(given.bandwidth_Bps))
    return pl_fail(error, PL_BAD_INPUT, "%s: link '%s' has a bandwidth of %g B/s: it must be finite and more than zero",
                   path, given.name, given.bandwidth_Bps);
  if (!(given.latency_s >= 0) || given.latency_s > 1e6)
    return pl_fail(error, PL_BAD_INPUT, "%s: link '%s' has a latency of %g s: it must be from 0 to 1e6 s", path,
                   given.name, given.latency_s);
  pl_link_kind kind = kind_of(&given);
  *link = (pl_link){.name = keep_name(platform, given.name),
                    .capacity_Bps = given.bandwidth_Bps,
                    .latency = pl_ticks_from_s(given.latency_s),
                    .policy = given.is_fatpipe ? PL_LINK_FATPIPE : PL_LINK_SHARED,
                    .kind = (uint8_t)kind};
  return link->name != NULL ? PL_OK : pl_fail_memory(error, "the links of the platform");
}

static pl_code convert_links(pl_platform *platform, const char *path, pl_error *error) {
  uint32_t n = platform->parts.n_links;
  pl_link *links = PL_TAKE(&platform->arena, pl_link, n);
  uint32_t *zones = PL_TAKE(&platform->arena, uint32_t, n);
  if (links == NULL || zones == NULL) return pl_fail_memory(error, "the links of the platform");
  for (uint32_t i = 0; i < n; i++)
    PL_TRY(convert_link(platform, path, i, &links[i], &zones[i], error));
  platform->link_zones = zones;
  platform->cluster.links = links;
  platform->cluster.n_links = n;
  return PL_OK;
}

/* Devices in each zone. */
static uint32_t *count_devices(pl_platform *platform) {
  uint32_t *counts = PL_TAKE(&platform->arena, uint32_t, platform->parts.n_zones);
  for (uint32_t i = 0; counts != NULL && i < platform->parts.n_hosts; i++) {
    const pl_shim_host host = platform->parts.hosts[i];
    counts[host.zone] += host.device != NULL;
  }
  return counts;
}

/* The zones that have devices become the nodes, in file order. */
static pl_code make_nodes(pl_platform *platform, pl_error *error) {
  uint32_t n_zones = platform->parts.n_zones, n_nodes = 0, first = 0;
  const uint32_t *counts = count_devices(platform);
  pl_platform_zone *zones = PL_TAKE(&platform->arena, pl_platform_zone, n_zones);
  pl_node_info *nodes = PL_TAKE(&platform->arena, pl_node_info, n_zones);
  if (counts == NULL || zones == NULL || nodes == NULL) return pl_fail_memory(error, "the nodes of the platform");
  for (uint32_t z = 0; z < n_zones; z++) {
    const pl_shim_zone zone = platform->parts.zones[z];
    zones[z] = (pl_platform_zone){.name = keep_name(platform, zone.name), .parent = zone.parent, .node = PL_NONE};
    if (counts[z] == 0) continue;
    zones[z].node = n_nodes;
    nodes[n_nodes++] = (pl_node_info){.name = zones[z].name, .first_device = first};
    first += counts[z];
  }
  platform->zones = zones;
  platform->n_zones = n_zones;
  platform->cluster.nodes = nodes;
  platform->cluster.n_nodes = n_nodes;
  platform->cluster.n_devices = first;
  return platform->arena.failed ? pl_fail_memory(error, "the nodes of the platform") : PL_OK;
}

/* Devices node by node, inside a node in file order. */
static pl_code place_devices(pl_platform *platform, pl_error *error) {
  pl_cluster *cluster = &platform->cluster;
  pl_device *devices = PL_TAKE(&platform->arena, pl_device, cluster->n_devices);
  uint32_t *host_of = PL_TAKE(&platform->arena, uint32_t, cluster->n_devices);
  if (devices == NULL || host_of == NULL) return pl_fail_memory(error, "the devices of the platform");
  pl_node_info *nodes = (pl_node_info *)cluster->nodes; /* ours until the load is over */
  for (uint32_t i = 0; i < platform->parts.n_hosts; i++) {
    const pl_shim_host host = platform->parts.hosts[i];
    if (host.device == NULL) continue;
    uint32_t node = platform->zones[host.zone].node, local = nodes[node].n_devices++;
    uint32_t device = nodes[node].first_device + local;
    host_of[device] = i;
    devices[device] =
        (pl_device){.name = keep_name(platform, host.name),
                    .node = node,
                    .profile = pl_platform_find_profile(cluster->profiles, cluster->n_profiles, host.device),
                    .local_index = local};
    if (devices[device].profile == PL_NONE)
      return pl_fail(error, PL_BAD_INPUT, "%s: the file changed while it was being read", cluster->path);
  }
  cluster->devices = devices;
  pl_device_spread_find(cluster, (pl_device_profile *)cluster->profiles); /* likewise */
  platform->host_of = host_of;
  return platform->arena.failed ? pl_fail_memory(error, "the devices of the platform") : PL_OK;
}

static bool is_socket(const pl_shim_host *host) {
  return host->device == NULL && host->cpu != NULL;
}

static uint32_t count_sockets(const pl_platform *platform) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < platform->parts.n_hosts; i++) {
    const pl_shim_host host = platform->parts.hosts[i];
    n += is_socket(&host);
  }
  return n;
}

static pl_code list_sockets(pl_platform *platform, pl_error *error) {
  pl_platform_socket *sockets = PL_TAKE(&platform->arena, pl_platform_socket, count_sockets(platform));
  if (sockets == NULL) return pl_fail_memory(error, "the CPU sockets of the platform");
  for (uint32_t i = 0; i < platform->parts.n_hosts; i++) {
    const pl_shim_host host = platform->parts.hosts[i];
    if (!is_socket(&host)) continue;
    sockets[platform->n_sockets++] = (pl_platform_socket){.name = keep_name(platform, host.name),
                                                          .cpu = keep_name(platform, host.cpu),
                                                          .zone = host.zone,
                                                          .n_cores = host.n_cores,
                                                          .host = i};
  }
  platform->sockets = sockets;
  return platform->arena.failed ? pl_fail_memory(error, "the CPU sockets of the platform") : PL_OK;
}

static pl_code find_shapes(pl_platform *platform, pl_error *error) {
  pl_cluster *cluster = &platform->cluster;
  if (platform->tree == NULL) return PL_OK;
  uint32_t *zone_of = PL_TAKE(&platform->arena, uint32_t, cluster->n_nodes);
  if (zone_of == NULL) return pl_fail_memory(error, "the shapes of the nodes");
  for (uint32_t z = 0; z < platform->n_zones; z++)
    if (platform->zones[z].node != PL_NONE) zone_of[platform->zones[z].node] = z;
  return pl_node_shape_take(platform->tree, zone_of, cluster->n_nodes, cluster->links, &platform->arena,
                            &cluster->shapes, error);
}

pl_code pl_platform_make_cluster(pl_platform *platform, const char *path, pl_error *error) {
  PL_TRY(convert_links(platform, path, error));
  PL_TRY(make_nodes(platform, error));
  PL_TRY(place_devices(platform, error));
  PL_TRY(find_shapes(platform, error));
  return list_sockets(platform, error);
}
