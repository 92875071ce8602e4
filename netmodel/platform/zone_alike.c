/* Zones of a zone tree that are copies of one another: pl_zone_tree_alike of netmodel/platform/zone_tree.h. */
#include "netmodel/platform/zone_tree_internal.h"

static const tree_zone *zone_at(const pl_zone_tree *tree, uint32_t zone) {
  return &((const tree_zone *)tree->zones.items)[zone];
}

static bool equal_points(const pl_zone_tree *tree, const tree_zone *a, const tree_zone *b) {
  const tree_point *points = tree->points.items;
  for (uint32_t i = 0; i < a->n_points; i++) {
    const tree_point *x = &points[a->first_point + i], *y = &points[b->first_point + i];
    if (x->kind != y->kind || x->has_device != y->has_device) return false;
    /* A star's host has its link there; of others the index is 0. */
    if (a->routing == TREE_STAR && x->kind == TREE_HOST && x->index - a->first_link != y->index - b->first_link)
      return false;
  }
  return true;
}

bool tree_joins_devices(const pl_zone_tree *tree, const tree_zone *zone, const tree_route *route) {
  const tree_point *points = tree->points.items;
  return zone->routing != TREE_FULL || (points[route->source].has_device && points[route->destination].has_device);
}

static bool equal_routes(const pl_zone_tree *tree, const tree_zone *a, const tree_zone *b) {
  const tree_route *const *declared = tree->declared.items;
  for (uint32_t r = 0; r < a->n_routes; r++) {
    const tree_route *x = declared[a->first_route + r], *y = declared[b->first_route + r];
    if (x->source - a->first_point != y->source - b->first_point ||
        x->destination - a->first_point != y->destination - b->first_point)
      return false;
    if (!tree_joins_devices(tree, a, x)) continue;
    if (x->n_links != y->n_links) return false;
    for (uint32_t l = 0; l < x->n_links; l++)
      if (x->links[l] - a->first_link != y->links[l] - b->first_link) return false;
  }
  return true;
}

bool pl_zone_tree_alike(const pl_zone_tree *tree, uint32_t left, uint32_t right) {
  const tree_zone *a = zone_at(tree, left), *b = zone_at(tree, right);
  if (a->has_zones || b->has_zones || a->routing != b->routing || a->is_duplex != b->is_duplex) return false;
  if (a->n_points != b->n_points || a->n_links != b->n_links || a->n_routes != b->n_routes) return false;
  bool has_backbone = a->backbone != PL_SHIM_NONE;
  if (has_backbone != (b->backbone != PL_SHIM_NONE)) return false;
  if (has_backbone && a->backbone - a->first_link != b->backbone - b->first_link) return false;
  return equal_points(tree, a, b) && equal_routes(tree, a, b);
}

void pl_zone_tree_links(const pl_zone_tree *tree, uint32_t zone, uint32_t *first, uint32_t *n) {
  *first = zone_at(tree, zone)->first_link;
  *n = zone_at(tree, zone)->n_links;
}
