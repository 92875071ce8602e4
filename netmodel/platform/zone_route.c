/* Routes of a zone tree: pl_zone_tree_route of netmodel/platform/zone_tree.h. As NetZoneImpl::get_global_route: the
 * zone that holds both ends leads from the zone of one to the zone of the other between two gateways, and what is
 * missing at either end is a route like any other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netmodel/platform/zone_tree_internal.h"

enum { CHAIN_MAX = 256 };

typedef struct walk {
  const pl_zone_tree *tree;
  const tree_zone *zones;
  const tree_point *points;
  uint32_t *links, capacity, n_links;
  char *message;
  size_t message_bytes;
} walk;

const tree_route *tree_find_route(const pl_zone_tree *tree, uint32_t source, uint32_t destination) {
  uint32_t probe = 0;
  const tree_route *route;
  while ((route = pl_hash_index_find(&tree->routes, tree_hash_ends(source, destination), &probe)) != NULL)
    if (route->source == source && route->destination == destination) return route;
  return NULL;
}

static pl_shim_status refuse(const walk *w, uint32_t zone, uint32_t from, uint32_t to) {
  snprintf(w->message, w->message_bytes, "zone '%.60s' has none from '%.60s' to '%.60s'",
           w->points[w->zones[zone].point].name, w->points[from].name, w->points[to].name);
  return PL_SHIM_REFUSED;
}

static void cross(walk *w, uint32_t link) {
  if (w->n_links < w->capacity) w->links[w->n_links] = link;
  w->n_links++;
}

/* The middle is crossed once; the router in the middle has no link of its own. */
static void cross_star(walk *w, const tree_zone *zone, uint32_t source, uint32_t destination) {
  const tree_point *from = &w->points[source], *to = &w->points[destination];
  if (from->kind == TREE_HOST) cross(w, from->index);
  if (zone->backbone != PL_SHIM_NONE) cross(w, zone->backbone);
  if (to->kind == TREE_HOST) cross(w, to->index + zone->is_duplex);
}

/* The declared routes that lead from one point of a zone to another, last first; 0: there are none. */
static uint32_t find_chain(const walk *w, uint32_t zone_index, uint32_t source, uint32_t destination,
                           const tree_route *chain[CHAIN_MAX]) {
  const tree_zone *zone = &w->zones[zone_index];
  if (zone->routing == TREE_FULL) return (chain[0] = tree_find_route(w->tree, source, destination)) != NULL;
  uint32_t n = 0, row = w->points[source].rank;
  for (uint32_t at = destination; at != source; n++) {
    uint32_t rank = zone->predecessors[(size_t)row * zone->n_points + w->points[at].rank];
    if (rank == PL_SHIM_NONE || n == CHAIN_MAX) return 0;
    chain[n] = tree_find_route(w->tree, zone->members[rank], at);
    at = zone->members[rank];
  }
  return n;
}

static pl_shim_status lead(walk *w, uint32_t source, uint32_t destination);

static pl_shim_status cross_chain(walk *w, const tree_route *const *chain, uint32_t n) {
  for (uint32_t i = n; i-- > 0;) {
    bool is_joined = i + 1 == n || chain[i + 1]->destination_gateway == chain[i]->source_gateway;
    pl_shim_status status =
        is_joined ? PL_SHIM_OK : lead(w, chain[i + 1]->destination_gateway, chain[i]->source_gateway);
    if (status != PL_SHIM_OK) return status;
    for (uint32_t l = 0; l < chain[i]->n_links; l++)
      cross(w, chain[i]->links[l]);
  }
  return PL_SHIM_OK;
}

/* The zone that holds both points, and which of its own points they are or lie in. */
static uint32_t meet(const walk *w, uint32_t *source, uint32_t *destination) {
  while (w->points[*source].zone != w->points[*destination].zone) {
    uint32_t left = w->points[*source].zone, right = w->points[*destination].zone;
    if (left == PL_SHIM_NONE || right == PL_SHIM_NONE) return PL_SHIM_NONE;
    uint32_t left_depth = w->zones[left].depth, right_depth = w->zones[right].depth;
    if (left_depth >= right_depth) *source = w->zones[left].point;
    if (right_depth >= left_depth) *destination = w->zones[right].point;
  }
  return w->points[*source].zone;
}

/* Two points, not the same. Ends after at most as many calls as zones are deep. */
static pl_shim_status lead(walk *w, uint32_t source, uint32_t destination) {
  uint32_t from = source, to = destination, zone = meet(w, &from, &to);
  if (zone == PL_SHIM_NONE || from == to) return refuse(w, zone == PL_SHIM_NONE ? 0 : zone, source, destination);
  if (w->zones[zone].routing == TREE_STAR) {
    cross_star(w, &w->zones[zone], from, to);
    return PL_SHIM_OK;
  }
  const tree_route *chain[CHAIN_MAX];
  uint32_t n = find_chain(w, zone, from, to, chain);
  if (n == 0) return refuse(w, zone, from, to);
  uint32_t first = chain[n - 1]->source_gateway, last = chain[0]->destination_gateway;
  pl_shim_status status = source != first ? lead(w, source, first) : PL_SHIM_OK;
  if (status == PL_SHIM_OK) status = cross_chain(w, chain, n);
  if (status == PL_SHIM_OK && last != destination) status = lead(w, last, destination);
  return status;
}

pl_shim_status pl_zone_tree_route(const pl_zone_tree *tree, uint32_t source_host, uint32_t destination_host,
                                  uint32_t *links, uint32_t capacity, uint32_t *n_links, char *message,
                                  size_t message_bytes) {
  const uint32_t *host_points = tree->host_points.items;
  walk w = {.tree = tree,
            .zones = tree->zones.items,
            .points = tree->points.items,
            .links = links,
            .capacity = capacity,
            .message = message,
            .message_bytes = message_bytes};
  pl_shim_status status = lead(&w, host_points[source_host], host_points[destination_host]);
  *n_links = status == PL_SHIM_OK ? w.n_links : 0;
  return status == PL_SHIM_OK && w.n_links > capacity ? PL_SHIM_TOO_SMALL : status;
}

/* ---- Floyd ---- */

/* Rows over middles, then from, then to, strictly shorter wins: the order decides among ways of equal length. A way
 * costs its number of links. */
static void shorten(uint32_t *costs, uint32_t *predecessors, uint32_t n) {
  for (uint32_t middle = 0; middle < n; middle++)
    for (uint32_t from = 0; from < n; from++) {
      uint32_t *row = &costs[(size_t)from * n], *before = &predecessors[(size_t)from * n];
      const uint32_t *other = &costs[(size_t)middle * n], *last = &predecessors[(size_t)middle * n];
      uint32_t begin = row[middle];
      if (begin == UINT32_MAX) continue;
      for (uint32_t to = 0; to < n; to++)
        if (other[to] != UINT32_MAX && begin + other[to] < row[to]) {
          row[to] = begin + other[to];
          before[to] = last[to];
        }
    }
}

static bool take_tables(pl_zone_tree *tree, tree_zone *zone) {
  size_t n = zone->n_points;
  zone->members = PL_TAKE(tree->arena, uint32_t, n);
  zone->predecessors = pl_arena_take(tree->arena, n * n * sizeof *zone->predecessors, _Alignof(uint32_t));
  zone->costs = malloc((n * n + 1) * sizeof *zone->costs);
  if (zone->members == NULL || zone->predecessors == NULL || zone->costs == NULL) return false;
  memset(zone->costs, 0xff, n * n * sizeof *zone->costs);
  memset(zone->predecessors, 0xff, n * n * sizeof *zone->predecessors);
  return true;
}

static void fill_tables(pl_zone_tree *tree) {
  tree_zone *zones = tree->zones.items;
  const tree_point *points = tree->points.items;
  const tree_route *const *routes = tree->declared.items;
  for (uint32_t p = 0; p < tree->points.count; p++)
    if (points[p].zone != PL_SHIM_NONE && zones[points[p].zone].routing == TREE_FLOYD)
      zones[points[p].zone].members[points[p].rank] = p;
  for (uint32_t r = 0; r < tree->declared.count; r++) {
    tree_zone *zone = &zones[points[routes[r]->source].zone];
    if (zone->routing != TREE_FLOYD) continue;
    uint32_t from = points[routes[r]->source].rank, to = points[routes[r]->destination].rank;
    zone->costs[(size_t)from * zone->n_points + to] = routes[r]->n_links;
    zone->predecessors[(size_t)from * zone->n_points + to] = from;
  }
}

bool tree_solve_floyd(pl_zone_tree *tree) {
  tree_zone *zones = tree->zones.items;
  bool has_room = true;
  for (uint32_t z = 0; z < tree->zones.count && has_room; z++)
    if (zones[z].routing == TREE_FLOYD) has_room = take_tables(tree, &zones[z]);
  if (has_room) fill_tables(tree);
  for (uint32_t z = 0; z < tree->zones.count; z++) {
    if (has_room && zones[z].routing == TREE_FLOYD) shorten(zones[z].costs, zones[z].predecessors, zones[z].n_points);
    free(zones[z].costs);
    zones[z].costs = NULL;
  }
  return has_room;
}
