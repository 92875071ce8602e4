/* See netmodel/platform/node_shape.h. */
#include "netmodel/platform/node_shape.h"

typedef struct comparison {
  const pl_zone_tree *tree; /* with zone_of; or */
  const uint32_t *zone_of;
  const pl_node_shape *base; /* nodes of one kind before */
  const pl_link *links;
} comparison;

static bool equal_links(const pl_link *links, const pl_node_shape *a, const pl_node_shape *b) {
  if (a->n_links != b->n_links) return false;
  for (uint32_t i = 0; i < a->n_links; i++) {
    const pl_link *x = &links[a->first_link + i], *y = &links[b->first_link + i];
    if (x->capacity_Bps != y->capacity_Bps || x->latency != y->latency || x->policy != y->policy || x->kind != y->kind)
      return false;
  }
  return true;
}

static bool are_alike(const comparison *by, const pl_node_shape *shapes, uint32_t a, uint32_t b) {
  bool same = by->tree != NULL ? pl_zone_tree_alike(by->tree, by->zone_of[a], by->zone_of[b])
                               : by->base[a].kind == by->base[b].kind;
  return same && equal_links(by->links, &shapes[a], &shapes[b]);
}

/* A kind is called as its first node. */
static void find_kinds(const comparison *by, uint32_t n_nodes, pl_node_shape *shapes) {
  uint32_t firsts[PL_NODE_SHAPES_MAX], n_kinds = 0;
  for (uint32_t k = 0; k < n_nodes; k++) {
    shapes[k].kind = k;
    uint32_t at = 0;
    while (at < n_kinds && !are_alike(by, shapes, firsts[at], k))
      at++;
    if (at < n_kinds)
      shapes[k].kind = firsts[at];
    else if (n_kinds < PL_NODE_SHAPES_MAX)
      firsts[n_kinds++] = k;
  }
}

pl_code pl_node_shape_take(const pl_zone_tree *tree, const uint32_t *zone_of, uint32_t n_nodes, const pl_link *links,
                           pl_arena *arena, const pl_node_shape **shapes, pl_error *error) {
  pl_node_shape *made = PL_TAKE(arena, pl_node_shape, n_nodes);
  if (made == NULL) return pl_fail_memory(error, "the shapes of the nodes");
  for (uint32_t k = 0; k < n_nodes; k++)
    pl_zone_tree_links(tree, zone_of[k], &made[k].first_link, &made[k].n_links);
  find_kinds(&(comparison){.tree = tree, .zone_of = zone_of, .links = links}, n_nodes, made);
  *shapes = made;
  return PL_OK;
}

pl_code pl_node_shape_vary(const pl_node_shape *base, uint32_t n_nodes, const pl_link *links, pl_arena *arena,
                           const pl_node_shape **shapes, pl_error *error) {
  *shapes = NULL;
  if (base == NULL) return PL_OK;
  pl_node_shape *made = PL_TAKE(arena, pl_node_shape, n_nodes);
  if (made == NULL) return pl_fail_memory(error, "the shapes of the nodes");
  for (uint32_t k = 0; k < n_nodes; k++)
    made[k] = base[k];
  find_kinds(&(comparison){.base = base, .links = links}, n_nodes, made);
  *shapes = made;
  return PL_OK;
}
