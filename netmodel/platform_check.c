/* pl_platform_check: see netmodel/platform.h. The sample of a large platform grows with the number of its devices, not
 * with its square, also when they all lie in one node. */
#include "netmodel/platform.h"

enum { ALL_PAIRS_MAX = 256, LARGE_NODE = 64 };

static pl_code check_pair(const pl_cluster *cluster, uint32_t a, uint32_t b, pl_error *error) {
  pl_route route;
  if (a == b) return PL_OK;
  PL_TRY(pl_cluster_route(cluster, a, b, &route, error));
  return pl_cluster_route(cluster, b, a, &route, error);
}

/* Both directions between all devices of two nodes, which may be the same. */
static pl_code check_all(const pl_cluster *cluster, uint32_t left, uint32_t right, pl_error *error) {
  const pl_node_info *a = &cluster->nodes[left], *b = &cluster->nodes[right];
  for (uint32_t i = 0; i < a->n_devices; i++)
    for (uint32_t j = left == right ? i + 1 : 0; j < b->n_devices; j++)
      PL_TRY(check_pair(cluster, a->first_device + i, b->first_device + j, error));
  return PL_OK;
}

/* Each device of both with the first, the last, the one in its place and the one after that of the other. */
static pl_code check_sample(const pl_cluster *cluster, uint32_t left, uint32_t right, pl_error *error) {
  const pl_node_info *a = &cluster->nodes[left], *b = &cluster->nodes[right];
  uint32_t n = a->n_devices > b->n_devices ? a->n_devices : b->n_devices;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t from = a->first_device + i % a->n_devices, to = b->first_device;
    PL_TRY(check_pair(cluster, from, to, error));
    PL_TRY(check_pair(cluster, from, to + b->n_devices - 1, error));
    PL_TRY(check_pair(cluster, from, to + i % b->n_devices, error));
    PL_TRY(check_pair(cluster, from, to + (i + 1) % b->n_devices, error));
    PL_TRY(check_pair(cluster, a->first_device, to + i % b->n_devices, error));
  }
  return PL_OK;
}

static pl_code check_nodes(const pl_cluster *cluster, uint32_t left, uint32_t right, pl_error *error) {
  const pl_node_info *a = &cluster->nodes[left], *b = &cluster->nodes[right];
  bool is_large = cluster->n_devices > ALL_PAIRS_MAX && (a->n_devices > LARGE_NODE || b->n_devices > LARGE_NODE);
  return is_large ? check_sample(cluster, left, right, error) : check_all(cluster, left, right, error);
}

pl_code pl_platform_check(const pl_platform *platform, pl_error *error) {
  const pl_cluster *cluster = pl_platform_cluster(platform);
  bool all_pairs = cluster->n_devices <= ALL_PAIRS_MAX;
  for (uint32_t node = 0; node < cluster->n_nodes; node++) {
    PL_TRY(check_nodes(cluster, node, node, error));
    for (uint32_t other = node + 1; all_pairs && other < cluster->n_nodes; other++)
      PL_TRY(check_nodes(cluster, node, other, error));
    if (all_pairs || node == 0) continue;
    PL_TRY(check_nodes(cluster, 0, node, error));
    if (node > 1) PL_TRY(check_nodes(cluster, node - 1, node, error));
  }
  return PL_OK;
}
