/* See netmodel/show/node_wiring.h. */
#include "netmodel/show/node_wiring.h"

#include "netmodel/platform/route_cache.h"

enum { PAIRS_MAX = PL_WIRING_GPUS_MAX * PL_WIRING_GPUS_MAX };

/* The NVLinks that are a whole route by themselves. */
typedef struct pair_links {
  uint32_t links[PAIRS_MAX];
  uint32_t n;
} pair_links;

static bool is_pair_link(const pair_links *pairs, uint32_t link) {
  for (uint32_t i = 0; i < pairs->n; i++)
    if (pairs->links[i] == link) return true;
  return false;
}

/* Neither a pair of its own nor a way over a third GPU's pairs: a switch if it begins and ends with NVLink, else the
 * host. */
static void note_indirect(const pl_cluster *cluster, uint32_t i, uint32_t j, const pl_route *route,
                          const pair_links *pairs, pl_node_wiring *w) {
  const pl_link *first = &cluster->links[route->links[0]], *last = &cluster->links[route->links[route->n_links - 1]];
  if (is_pair_link(pairs, route->links[0])) return;
  bool through_switch = first->kind == PL_LINK_NVLINK && last->kind == PL_LINK_NVLINK;
  double *rates_Bps = through_switch ? w->switch_Bps : w->host_Bps;
  rates_Bps[i] = first->capacity_Bps;
  rates_Bps[j] = last->capacity_Bps;
  w->has_switch |= through_switch;
  w->has_host |= !through_switch;
}

static pl_code note_direct(const pl_cluster *cluster, uint32_t first_device, pair_links *pairs, pl_node_wiring *w,
                           pl_error *error) {
  for (uint32_t i = 0; i < w->n_gpus; i++)
    for (uint32_t j = 0; j < w->n_gpus; j++) {
      pl_route route;
      if (i == j) continue;
      PL_TRY(pl_cluster_route(cluster, first_device + i, first_device + j, &route, error));
      if (!pl_cluster_is_direct(cluster, &route)) continue;
      pairs->links[pairs->n++] = route.links[0];
      w->pair_Bps[i][j] = cluster->links[route.links[0]].capacity_Bps;
      w->has_pairs = true;
    }
  return PL_OK;
}

static pl_code note_pairs(const pl_cluster *cluster, uint32_t first_device, pl_node_wiring *w, pl_error *error) {
  pair_links pairs = {.n = 0};
  PL_TRY(note_direct(cluster, first_device, &pairs, w, error));
  for (uint32_t i = 0; i < w->n_gpus; i++)
    for (uint32_t j = i + 1; j < w->n_gpus; j++) {
      pl_route route;
      if (w->pair_Bps[i][j] > 0) continue;
      PL_TRY(pl_cluster_route(cluster, first_device + i, first_device + j, &route, error));
      note_indirect(cluster, i, j, &route, &pairs, w);
    }
  return PL_OK;
}

/* How many links of the host (PCIe and between sockets) lead GPU i to NIC n, the shortest so far kept in `shortest`. */
static void note_nic_place(uint32_t i, uint32_t n, uint32_t n_host_links, uint32_t *shortest, pl_node_wiring *w) {
  if (n_host_links == 0 || n_host_links >= shortest[n]) return;
  shortest[n] = n_host_links;
  w->nic_switch[n] = n_host_links == 1 ? w->pcie_switch[i] : PL_NONE;
  w->nic_socket[n] = n_host_links == 1 ? PL_NONE : w->socket[i];
}

static void note_exit(const pl_cluster *cluster, uint32_t i, const pl_route *route, uint32_t *shortest,
                      pl_node_wiring *w) {
  uint32_t n_host_links = 0;
  for (uint32_t l = 0; l < route->n_links; l++) {
    uint32_t link = route->links[l], n = 0;
    pl_link_kind kind = cluster->links[link].kind;
    n_host_links += kind == PL_LINK_PCIE || kind == PL_LINK_CPU;
    if (kind != PL_LINK_NIC) continue;
    while (n < w->n_nics && w->nics[n] != link)
      n++;
    if (n == w->n_nics) {
      w->nic_switch[n] = w->nic_socket[n] = PL_NONE;
      w->nics[w->n_nics++] = link;
    }
    w->nic[i] = n;
    note_nic_place(i, n, n_host_links, shortest, w);
    return;
  }
}

static void list_sockets(const pl_platform *platform, uint32_t node, pl_node_wiring *w) {
  uint32_t n_zones, n_sockets;
  const pl_platform_zone *zones = pl_platform_zones(platform, &n_zones);
  const pl_platform_socket *sockets = pl_platform_sockets(platform, &n_sockets);
  for (uint32_t s = 0; s < n_sockets && w->n_sockets < PL_WIRING_SOCKETS_MAX; s++)
    if (zones[sockets[s].zone].node == node) w->sockets[w->n_sockets++] = s;
}

/* How far `links` reach: every crossing of a bus counts more than all other links together. */
static uint32_t distance_of(const pl_cluster *cluster, const uint32_t *links, uint32_t n_links, double *bus_Bps) {
  uint32_t distance = n_links;
  for (uint32_t l = 0; l < n_links; l++) {
    const pl_link *link = &cluster->links[links[l]];
    if (link->kind != PL_LINK_CPU) continue;
    distance += PL_ROUTE_LINKS_MAX;
    if (*bus_Bps == 0 || link->capacity_Bps < *bus_Bps) *bus_Bps = link->capacity_Bps;
  }
  return distance;
}

/* The second PCIe link on the way to the socket: the first is the GPU's own. */
static void note_pcie_switch(const pl_cluster *cluster, uint32_t i, const uint32_t *links, uint32_t n_links,
                             pl_node_wiring *w) {
  uint32_t n_pcie = 0, n = 0, l = 0;
  w->pcie_switch[i] = PL_NONE;
  for (; l < n_links; l++)
    if (cluster->links[links[l]].kind == PL_LINK_PCIE && ++n_pcie == 2) break;
  if (l == n_links) return;
  while (n < w->n_pcie_switches && w->pcie_switches[n] != links[l])
    n++;
  if (n == w->n_pcie_switches) w->pcie_switches[w->n_pcie_switches++] = links[l];
  w->pcie_switch[i] = n;
}

static pl_code note_sockets(const pl_platform *platform, uint32_t first_device, pl_node_wiring *w, pl_error *error) {
  const pl_cluster *cluster = pl_platform_cluster(platform);
  uint32_t links[PL_ROUTE_LINKS_MAX], n_links;
  for (uint32_t i = 0; i < w->n_gpus; i++) {
    uint32_t nearest = PL_NONE;
    w->socket[i] = w->pcie_switch[i] = PL_NONE;
    for (uint32_t s = 0; s < w->n_sockets; s++) {
      PL_TRY(pl_platform_socket_route(platform, first_device + i, w->sockets[s], links, &n_links, error));
      uint32_t distance = distance_of(cluster, links, n_links, &w->bus_Bps);
      if (n_links == 0 || distance >= nearest) continue;
      nearest = distance;
      w->socket[i] = s;
    }
    if (w->socket[i] == PL_NONE) continue;
    PL_TRY(pl_platform_socket_route(platform, first_device + i, w->sockets[w->socket[i]], links, &n_links, error));
    note_pcie_switch(cluster, i, links, n_links, w);
  }
  return PL_OK;
}

pl_code pl_node_wiring_find(const pl_platform *platform, uint32_t node, pl_node_wiring *wiring, pl_error *error) {
  const pl_cluster *cluster = pl_platform_cluster(platform);
  const pl_node_info *info = &cluster->nodes[node];
  *wiring = (pl_node_wiring){.n_gpus = info->n_devices < PL_WIRING_GPUS_MAX ? info->n_devices : PL_WIRING_GPUS_MAX};
  uint32_t shortest[PL_WIRING_GPUS_MAX];
  for (uint32_t n = 0; n < PL_WIRING_GPUS_MAX; n++)
    shortest[n] = PL_NONE;
  uint32_t away = cluster->n_nodes > 1 ? cluster->nodes[(node + 1) % cluster->n_nodes].first_device : PL_NONE;
  PL_TRY(note_pairs(cluster, info->first_device, wiring, error));
  list_sockets(platform, node, wiring);
  PL_TRY(note_sockets(platform, info->first_device, wiring, error));
  for (uint32_t i = 0; i < wiring->n_gpus; i++) {
    wiring->nic[i] = PL_NONE;
    if (away == PL_NONE) continue;
    /* The peer of the same rank, where there is one: rails connect equal ranks. */
    const pl_node_info *other = &cluster->nodes[(node + 1) % cluster->n_nodes];
    pl_route route;
    PL_TRY(pl_cluster_route(cluster, info->first_device + i, away + i % other->n_devices, &route, error));
    note_exit(cluster, i, &route, shortest, wiring);
  }
  return PL_OK;
}
