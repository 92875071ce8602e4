/* The rings inside one node, as NCCL would search for them.
 *
 *   shared ports   (NVSwitch, a PCIe bus: the routes from one device to two others share a link.) One ring. A second
 * one would cross the same ports and could not be faster in a fluid model, whose capacity is that of the whole port.
 * NCCL opens many channels on an NVSwitch because one CUDA block cannot drive a port; that is a property of the device,
 * not of the wires. direct links   (cube mesh of a DGX-1V, fully joined quads.) As many rings as the links can carry
 * without sharing: Hamiltonian cycles of a multigraph whose edge multiplicity is capacity / unit, each cycle used in
 * both directions. The unit is tried over the distinct capacities found, and the count with the most bytes per second
 * wins. On eight V100 the search finds the three double rings that NCCL prints ("6 rings"). neither        (members
 * without a cycle over direct links.) One ring in the better of two orders.
 *
 * The order of a single ring is the caller's unless bus order (position in the node) is faster alone: on a PCIe box
 * with two sockets a ring that changes sockets at every hop halves.
 *
 * The search for cycles is exact for small nodes and bounded by a count of expansions, not by time: same input, same
 * rings. */
#include <string.h>

#include "netmodel/collective/collective_internal.h"

enum {
  MOST_MEMBERS = 16, /* of a search; larger nodes of direct links take one ring */
  MOST_CYCLES = 8,
  MOST_UNITS = 4,
  MOST_WIDTH = 8,
  MOST_EXPANSIONS = 20000
};

typedef struct local_search {
  uint32_t n;
  uint8_t width[MOST_MEMBERS][MOST_MEMBERS]; /* links left between two members */
  uint32_t bound;                            /* no more cycles than half the least degree */
  uint32_t expansions;
  uint8_t path[MOST_MEMBERS];
  bool visited[MOST_MEMBERS];
  uint8_t cycles[MOST_CYCLES][MOST_MEMBERS]; /* of the current branch */
  uint32_t n_best;
  uint8_t best[MOST_CYCLES][MOST_MEMBERS];
} local_search;

static pl_code ring_rate(const pl_cluster *cluster, const uint32_t *devices, const uint32_t *order, uint32_t n,
                         pl_arena *arena, double *rate_Bps, pl_error *error) {
  pl_arena_mark mark = pl_arena_mark_here(arena);
  pl_usage_builder builder;
  PL_TRY(pl_usage_begin(&builder, cluster, 4 * n, arena, error));
  for (uint32_t i = 0; i < n; i++)
    PL_TRY(pl_usage_hop(&builder, devices[order[i]], devices[order[(i + 1) % n]], 1, NULL, error));
  pl_usage usage;
  PL_TRY(pl_usage_end(&builder, &usage, error));
  *rate_Bps = usage.rate_Bps;
  pl_arena_release_to(arena, mark);
  return PL_OK;
}

/* Positions sorted by the members' place in the node; returns whether that differs from the caller's order. */
static bool bus_order(const pl_cluster *cluster, const uint32_t *devices, uint32_t n, uint32_t *order) {
  bool differs = false;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = i;
    for (; at > 0 && cluster->devices[devices[order[at - 1]]].local_index > cluster->devices[devices[i]].local_index;
         at--)
      order[at] = order[at - 1];
    order[at] = i;
    differs |= at != i;
  }
  return differs;
}

static pl_code single_ring(const pl_cluster *cluster, const uint32_t *devices, uint32_t n, pl_arena *arena,
                           pl_local_rings *rings, pl_error *error) {
  uint32_t *caller = PL_TAKE(arena, uint32_t, n), *bus = PL_TAKE(arena, uint32_t, n);
  if (caller == NULL || bus == NULL) return pl_fail_memory(error, "a ring");
  for (uint32_t i = 0; i < n; i++)
    caller[i] = i;
  *rings = (pl_local_rings){.n_rings = 1, .order = caller};
  if (n <= 3 || !bus_order(cluster, devices, n, bus)) return PL_OK;
  double caller_Bps, bus_Bps;
  PL_TRY(ring_rate(cluster, devices, caller, n, arena, &caller_Bps, error));
  PL_TRY(ring_rate(cluster, devices, bus, n, arena, &bus_Bps, error));
  if (bus_Bps > caller_Bps) rings->order = bus;
  return PL_OK;
}

/* Whether member 0 reaches the others through one port: two routes share a link. On a cube mesh two routes may share
 * the link to a GPU that relays for both; there some other route is a single NVLink. */
static pl_code shares_port(const pl_cluster *cluster, const uint32_t *devices, uint32_t n, bool *shares,
                           pl_error *error) {
  pl_route a, b;
  bool on_nvlink = false;
  *shares = false;
  PL_TRY(pl_cluster_route(cluster, devices[0], devices[1], &a, error));
  PL_TRY(pl_cluster_route(cluster, devices[0], devices[2], &b, error));
  for (uint32_t i = 0; i < a.n_links; i++)
    for (uint32_t j = 0; j < b.n_links; j++)
      if (a.links[i] == b.links[j]) {
        *shares = true;
        on_nvlink |= cluster->links[a.links[i]].kind == PL_LINK_NVLINK;
      }
  for (uint32_t i = 1; i < n && *shares && on_nvlink; i++) {
    PL_TRY(pl_cluster_route(cluster, devices[0], devices[i], &a, error));
    if (pl_cluster_is_direct(cluster, &a)) *shares = false;
  }
  return PL_OK;
}

/* Capacity of the direct way from a to b: 0 unless it is one NVLink. */
static pl_code direct_capacity(const pl_cluster *cluster, uint32_t a, uint32_t b, double *capacity_Bps,
                               pl_error *error) {
  pl_route route;
  PL_TRY(pl_cluster_route(cluster, a, b, &route, error));
  *capacity_Bps = pl_cluster_is_direct(cluster, &route) ? cluster->links[route.links[0]].capacity_Bps : 0;
  return PL_OK;
}

static void extend(local_search *search, uint32_t depth, uint32_t n_cycles);

static void close_cycle(local_search *search, uint32_t n_cycles) {
  memcpy(search->cycles[n_cycles], search->path, sizeof search->path);
  if (n_cycles + 1 > search->n_best) {
    search->n_best = n_cycles + 1;
    memcpy(search->best, search->cycles, sizeof search->best);
  }
  if (search->n_best >= search->bound) return;
  uint8_t path[MOST_MEMBERS];
  bool visited[MOST_MEMBERS];
  memcpy(path, search->path, sizeof path);
  memcpy(visited, search->visited, sizeof visited);
  memset(search->visited, 0, sizeof search->visited);
  search->visited[0] = true;
  extend(search, 1, n_cycles + 1);
  memcpy(search->path, path, sizeof path);
  memcpy(search->visited, visited, sizeof visited);
}

static void take_edge(local_search *search, uint32_t a, uint32_t b, int links) {
  search->width[a][b] = (uint8_t)(search->width[a][b] - links);
  search->width[b][a] = search->width[a][b];
}

/* Depth first from member 0; the next member in the caller's order is tried first. */
static void extend(local_search *search, uint32_t depth, uint32_t n_cycles) {
  uint32_t n = search->n, last = search->path[depth - 1];
  if (depth == n) {
    if (search->width[last][0] == 0) return;
    take_edge(search, last, 0, 1);
    close_cycle(search, n_cycles);
    take_edge(search, last, 0, -1);
    return;
  }
  for (uint32_t i = 1; i < n && search->n_best < search->bound; i++) {
    uint32_t next = (last + i) % n;
    if (search->visited[next] || search->width[last][next] == 0) continue;
    if (search->expansions++ >= MOST_EXPANSIONS) return;
    take_edge(search, last, next, 1);
    search->visited[next] = true;
    search->path[depth] = (uint8_t)next;
    extend(search, depth + 1, n_cycles);
    search->visited[next] = false;
    take_edge(search, last, next, -1);
  }
}

typedef double capacity_matrix[MOST_MEMBERS][MOST_MEMBERS];

static void search_with_unit(const capacity_matrix capacity, uint32_t n, double unit_Bps, local_search *search) {
  *search = (local_search){.n = n, .bound = MOST_CYCLES};
  for (uint32_t a = 0; a < n; a++) {
    uint32_t degree = 0;
    for (uint32_t b = 0; b < n; b++) {
      double width = a == b ? 0 : floor(capacity[a][b] / unit_Bps + 1e-9);
      search->width[a][b] = (uint8_t)(width > MOST_WIDTH ? MOST_WIDTH : width);
      degree += search->width[a][b];
    }
    if (degree / 2 < search->bound) search->bound = degree / 2;
  }
  search->visited[0] = true;
  if (search->bound > 0) extend(search, 1, 0);
}

/* Distinct capacities, largest first, so that of equally fast choices the one with fewer rings wins. */
static uint32_t distinct_units(const capacity_matrix capacity, uint32_t n, double units[MOST_UNITS]) {
  uint32_t n_units = 0;
  double below = INFINITY;
  while (n_units < MOST_UNITS) {
    double largest = 0;
    for (uint32_t a = 0; a < n; a++)
      for (uint32_t b = 0; b < n; b++)
        if (capacity[a][b] < below && capacity[a][b] > largest) largest = capacity[a][b];
    if (!(largest > 0)) break;
    units[n_units++] = below = largest;
  }
  return n_units;
}

static pl_code keep_cycles(const local_search *search, pl_arena *arena, pl_local_rings *rings, pl_error *error) {
  uint32_t n = search->n, *order = PL_TAKE(arena, uint32_t, 2 * search->n_best * n);
  if (order == NULL) return pl_fail_memory(error, "the rings of a node");
  *rings = (pl_local_rings){.n_rings = 2 * search->n_best, .order = order};
  for (uint32_t cycle = 0; cycle < search->n_best; cycle++)
    for (uint32_t i = 0; i < n; i++) {
      order[2 * cycle * n + i] = search->best[cycle][i];
      order[(2 * cycle + 1) * n + i] = search->best[cycle][(n - i) % n];
    }
  return PL_OK;
}

static pl_code read_capacities(const pl_cluster *cluster, const uint32_t *devices, uint32_t n, capacity_matrix capacity,
                               pl_error *error) {
  for (uint32_t a = 0; a < n; a++)
    for (uint32_t b = 0; b < n; b++) {
      capacity[a][b] = 0;
      if (a != b) PL_TRY(direct_capacity(cluster, devices[a], devices[b], &capacity[a][b], error));
    }
  for (uint32_t a = 0; a < n; a++) /* a cycle is used in both directions */
    for (uint32_t b = 0; b < a; b++)
      capacity[a][b] = capacity[b][a] = fmin(capacity[a][b], capacity[b][a]);
  return PL_OK;
}

pl_code pl_local_rings_take(const pl_cluster *cluster, const uint32_t *devices, uint32_t n, pl_arena *arena,
                            pl_local_rings *rings, pl_error *error) {
  if (n <= 2 || n > MOST_MEMBERS) return single_ring(cluster, devices, n, arena, rings, error);
  bool shares;
  PL_TRY(shares_port(cluster, devices, n, &shares, error));
  if (shares) return single_ring(cluster, devices, n, arena, rings, error);
  capacity_matrix capacity;
  PL_TRY(read_capacities(cluster, devices, n, capacity, error));
  double units[MOST_UNITS], best_Bps = 0;
  uint32_t n_units = distinct_units((const double(*)[MOST_MEMBERS])capacity, n, units);
  local_search search, best = {0};
  for (uint32_t unit = 0; unit < n_units; unit++) {
    search_with_unit((const double(*)[MOST_MEMBERS])capacity, n, units[unit], &search);
    double total_Bps = units[unit] * search.n_best;
    if (total_Bps <= best_Bps * (1 + 1e-9)) continue;
    best_Bps = total_Bps;
    best = search;
  }
  /* Cycles need links that are good both ways; with one bad direction a single ring the other way round can win. */
  double single_Bps;
  PL_TRY(single_ring(cluster, devices, n, arena, rings, error));
  if (best.n_best == 0) return PL_OK;
  PL_TRY(ring_rate(cluster, devices, rings->order, n, arena, &single_Bps, error));
  return single_Bps > 2 * best_Bps ? PL_OK : keep_cycles(&best, arena, rings, error);
}
