/* pl_platform_check: see netmodel/platform/platform.h. The sample of a large platform grows with the number of its
 * devices, not with its square, also when they all lie in one node. */
#include "netmodel/platform/platform.h"

#include <string.h>

#include "netmodel/platform/platform_internal.h"

enum { ALL_PAIRS_MAX = 256, LARGE_NODE = 64 };

typedef struct checker {
  const pl_cluster *cluster, *other; /* `other`: NULL, or the cluster that must have the same routes */
  pl_route_cache *unkept;            /* NULL: routes are kept, for SimGrid takes long to find them */
} checker;

static pl_code check_direction(const checker *c, uint32_t a, uint32_t b, pl_error *error) {
  pl_route route, same;
  if (c->unkept != NULL) return pl_route_cache_check(c->unkept, a, b, error);
  PL_TRY(pl_cluster_route(c->cluster, a, b, &route, error));
  if (c->other == NULL) return PL_OK;
  PL_TRY(pl_cluster_route(c->other, a, b, &same, error));
  if (route.n_links == same.n_links && route.latency == same.latency &&
      memcmp(route.links, same.links, route.n_links * sizeof route.links[0]) == 0)
    return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s: two loaders disagree about the route from '%.60s' to '%.60s'",
                 c->cluster->path, c->cluster->devices[a].name, c->cluster->devices[b].name);
}

static pl_code check_pair(const checker *c, uint32_t a, uint32_t b, pl_error *error) {
  if (a == b) return PL_OK;
  PL_TRY(check_direction(c, a, b, error));
  return check_direction(c, b, a, error);
}

/* Both directions between all devices of two nodes, which may be the same. */
static pl_code check_all(const checker *c, uint32_t left, uint32_t right, pl_error *error) {
  const pl_node_info *a = &c->cluster->nodes[left], *b = &c->cluster->nodes[right];
  for (uint32_t i = 0; i < a->n_devices; i++)
    for (uint32_t j = left == right ? i + 1 : 0; j < b->n_devices; j++)
      PL_TRY(check_pair(c, a->first_device + i, b->first_device + j, error));
  return PL_OK;
}

/* Each device of both with the first, the last, the one in its place and the one after that of the other. */
static pl_code check_sample(const checker *c, uint32_t left, uint32_t right, pl_error *error) {
  const pl_node_info *a = &c->cluster->nodes[left], *b = &c->cluster->nodes[right];
  uint32_t n = a->n_devices > b->n_devices ? a->n_devices : b->n_devices;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t from = a->first_device + i % a->n_devices, to = b->first_device;
    PL_TRY(check_pair(c, from, to, error));
    PL_TRY(check_pair(c, from, to + b->n_devices - 1, error));
    PL_TRY(check_pair(c, from, to + i % b->n_devices, error));
    PL_TRY(check_pair(c, from, to + (i + 1) % b->n_devices, error));
    PL_TRY(check_pair(c, a->first_device, to + i % b->n_devices, error));
  }
  return PL_OK;
}

static pl_code check_nodes(const checker *c, uint32_t left, uint32_t right, pl_error *error) {
  const pl_node_info *a = &c->cluster->nodes[left], *b = &c->cluster->nodes[right];
  bool is_large = c->cluster->n_devices > ALL_PAIRS_MAX && (a->n_devices > LARGE_NODE || b->n_devices > LARGE_NODE);
  return is_large ? check_sample(c, left, right, error) : check_all(c, left, right, error);
}

static pl_code check_routes(const checker *c, pl_error *error) {
  const pl_cluster *cluster = c->cluster;
  bool all_pairs = cluster->n_devices <= ALL_PAIRS_MAX;
  for (uint32_t node = 0; node < cluster->n_nodes; node++) {
    PL_TRY(check_nodes(c, node, node, error));
    for (uint32_t other = node + 1; all_pairs && other < cluster->n_nodes; other++)
      PL_TRY(check_nodes(c, node, other, error));
    if (all_pairs || node == 0) continue;
    PL_TRY(check_nodes(c, 0, node, error));
    if (node > 1) PL_TRY(check_nodes(c, node - 1, node, error));
  }
  return PL_OK;
}

pl_code pl_platform_check(const pl_platform *platform, pl_error *error) {
  const checker c = {.cluster = pl_platform_cluster(platform),
                     .unkept = platform->tree != NULL ? platform->routes : NULL};
  return check_routes(&c, error);
}

/* ---- two of the same ---- */

static bool same_clusters(const pl_cluster *a, const pl_cluster *b) {
  if (a->n_devices != b->n_devices || a->n_nodes != b->n_nodes || a->n_links != b->n_links || a->digest != b->digest ||
      a->n_profiles != b->n_profiles)
    return false;
  for (uint32_t i = 0; i < a->n_devices; i++) {
    const pl_device *x = &a->devices[i], *y = &b->devices[i];
    if (strcmp(x->name, y->name) != 0 || x->node != y->node || x->profile != y->profile ||
        x->local_index != y->local_index)
      return false;
  }
  for (uint32_t i = 0; i < a->n_nodes; i++) {
    const pl_node_info *x = &a->nodes[i], *y = &b->nodes[i];
    if (strcmp(x->name, y->name) != 0 || x->first_device != y->first_device || x->n_devices != y->n_devices)
      return false;
  }
  for (uint32_t i = 0; i < a->n_links; i++) {
    const pl_link *x = &a->links[i], *y = &b->links[i];
    if (strcmp(x->name, y->name) != 0 || memcmp(&x->capacity_Bps, &y->capacity_Bps, sizeof x->capacity_Bps) != 0 ||
        x->latency != y->latency || x->policy != y->policy || x->kind != y->kind)
      return false;
  }
  return true;
}

static bool same_zones(const pl_platform *a, const pl_platform *b) {
  uint32_t n, m, n_links = pl_platform_cluster(a)->n_links;
  const pl_platform_zone *x = pl_platform_zones(a, &n), *y = pl_platform_zones(b, &m);
  for (uint32_t i = 0; n == m && i < n; i++)
    if (strcmp(x[i].name, y[i].name) != 0 || x[i].parent != y[i].parent || x[i].node != y[i].node) return false;
  return n == m && memcmp(pl_platform_link_zones(a), pl_platform_link_zones(b), n_links * sizeof(uint32_t)) == 0;
}

static bool same_socket(const pl_platform_socket *x, const pl_platform_socket *y) {
  return strcmp(x->name, y->name) == 0 && strcmp(x->cpu, y->cpu) == 0 && x->zone == y->zone && x->n_cores == y->n_cores;
}

/* Each with the route from one device. */
static pl_code check_sockets(const pl_platform *a, const pl_platform *b, pl_error *error) {
  uint32_t n, m, links[PL_ROUTE_LINKS_MAX], n_links, same[PL_ROUTE_LINKS_MAX], n_same;
  const pl_platform_socket *x = pl_platform_sockets(a, &n), *y = pl_platform_sockets(b, &m);
  const pl_cluster *cluster = pl_platform_cluster(a);
  if (n != m) return pl_fail(error, PL_BAD_INPUT, "%s: two loaders find %u and %u sockets", cluster->path, n, m);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t device = (uint32_t)((uint64_t)i * cluster->n_devices / n);
    PL_TRY(pl_platform_socket_route(a, device, i, links, &n_links, error));
    PL_TRY(pl_platform_socket_route(b, device, i, same, &n_same, error));
    if (!same_socket(&x[i], &y[i]) || n_links != n_same || memcmp(links, same, n_links * sizeof links[0]) != 0)
      return pl_fail(error, PL_BAD_INPUT, "%s: two loaders disagree about socket '%.60s' or its route from '%.60s'",
                     cluster->path, x[i].name, cluster->devices[device].name);
  }
  return PL_OK;
}

pl_code pl_platform_check_same(const pl_platform *platform, const pl_platform *other, pl_error *error) {
  const checker c = {.cluster = pl_platform_cluster(platform), .other = pl_platform_cluster(other)};
  if (!same_clusters(c.cluster, c.other) || !same_zones(platform, other))
    return pl_fail(error, PL_BAD_INPUT, "%s: two loaders disagree about zones, devices or links", c.cluster->path);
  PL_TRY(check_sockets(platform, other, error));
  return check_routes(&c, error);
}
