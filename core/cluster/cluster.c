/* See core/cluster/cluster.h. */
#include "core/cluster/cluster.h"

const char *pl_link_kind_name(pl_link_kind kind) {
  static const char *const names[PL_LINK_KIND_COUNT] = {"other", "nvlink", "pcie", "cpu", "nic", "fabric"};
  return names[kind];
}

uint32_t pl_cluster_count_nodes(const pl_cluster *cluster, const uint32_t *devices, uint32_t n) {
  uint32_t n_nodes = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t before = 0;
    while (before < i && cluster->devices[devices[before]].node != cluster->devices[devices[i]].node)
      before++;
    n_nodes += before == i;
  }
  return n_nodes;
}
