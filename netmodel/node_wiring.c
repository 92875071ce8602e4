/* See netmodel/node_wiring.h. */
#include "netmodel/node_wiring.h"

static void note_pair(const pl_cluster *cluster, uint32_t i, uint32_t j, const pl_route *route, pl_node_wiring *w) {
  uint32_t n_nvlink = 0;
  for (uint32_t l = 0; l < route->n_links; l++)
    n_nvlink += cluster->links[route->links[l]].kind == PL_LINK_NVLINK;
  const pl_link *first = &cluster->links[route->links[0]], *last = &cluster->links[route->links[route->n_links - 1]];
  if (n_nvlink == route->n_links && n_nvlink == 1) {
    w->pair_Bps[i][j] = first->capacity_Bps;
    w->has_pairs = true;
  } else if (n_nvlink >= 2 && first->kind == PL_LINK_NVLINK && last->kind == PL_LINK_NVLINK) {
    w->switch_Bps[i] = first->capacity_Bps;
    w->switch_Bps[j] = last->capacity_Bps;
    w->has_switch = true;
  } else {
    w->host_Bps[i] = first->capacity_Bps;
    w->host_Bps[j] = last->capacity_Bps;
    w->has_host = true;
  }
}

static void note_exit(const pl_cluster *cluster, uint32_t i, const pl_route *route, pl_node_wiring *w) {
  for (uint32_t l = 0; l < route->n_links; l++) {
    uint32_t link = route->links[l], n = 0;
    if (cluster->links[link].kind != PL_LINK_NIC) continue;
    while (n < w->n_nics && w->nics[n] != link)
      n++;
    if (n == w->n_nics) w->nics[w->n_nics++] = link;
    w->nic[i] = n;
    return;
  }
}

pl_code pl_node_wiring_find(const pl_cluster *cluster, uint32_t node, pl_node_wiring *wiring, pl_error *error) {
  const pl_node_info *info = &cluster->nodes[node];
  *wiring = (pl_node_wiring){.n_gpus = info->n_devices < PL_WIRING_GPUS_MAX ? info->n_devices : PL_WIRING_GPUS_MAX};
  uint32_t away = cluster->n_nodes > 1 ? cluster->nodes[(node + 1) % cluster->n_nodes].first_device : PL_NONE;
  for (uint32_t i = 0; i < wiring->n_gpus; i++) {
    pl_route route;
    wiring->nic[i] = PL_NONE;
    for (uint32_t j = i + 1; j < wiring->n_gpus; j++) {
      PL_TRY(pl_cluster_route(cluster, info->first_device + i, info->first_device + j, &route, error));
      note_pair(cluster, i, j, &route, wiring);
    }
    if (away == PL_NONE) continue;
    /* The peer of the same rank, where there is one: rails connect equal ranks. */
    const pl_node_info *other = &cluster->nodes[(node + 1) % cluster->n_nodes];
    PL_TRY(pl_cluster_route(cluster, info->first_device + i, away + i % other->n_devices, &route, error));
    note_exit(cluster, i, &route, wiring);
  }
  return PL_OK;
}
