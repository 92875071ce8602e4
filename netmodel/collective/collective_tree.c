/* Trees: all-reduce (reduce to the root, broadcast back) and broadcast, pipelined.
 *
 * Between nodes a binary tree, inside a node a chain that starts at the node's head (the channel's entry), as NCCL
 * builds them (NCCL 2.4, "Massively scale your deep learning training with NCCL 2.4"). All-reduce uses two trees per
 * channel, each for half of the channel's share, the second one mirrored (even number of nodes) or shifted by one
 * (odd), so that nodes that are inner in one are leaves in the other: Sanders, Speck and Traff, "Two-tree algorithms
 * for full bandwidth broadcast, reduction and scan", Parallel Computing 2009. The shape is the in-order binary tree
 * over 0 .. N - 1: the children of a number with lowest set bit b are b / 2 below and above it. In one node both trees
 * are chains, the second one reversed.
 *
 * Volume: each edge carries S / (2 C) each way; an inner head has three edges, a leaf one, so a NIC moves 4 * S / (2 C)
 * in each direction: 2 S / B against the ring's 2 (n - 1) / n S / B. Broadcast uses one tree, rooted at member 0: an
 * inner head sends twice, 2 S / B. Latency: deepest path up plus deepest path down: 2 ((g - 1) l + ceil(log2 N) L) on
 * equal nodes (NCCL's tuning model has the same). */
#include "netmodel/collective/collective_internal.h"

typedef struct pl_tree {
  uint32_t n;
  const uint32_t *devices; /* ring of the channel */
  uint32_t *parent;        /* by position in the ring; PL_NONE at the root */
  uint32_t *by_depth;      /* positions, root first */
  uint32_t *depth;
} pl_tree;

/* Parent of `index` in the in-order binary tree over [0, n); PL_NONE for 0, which has one child. */
static uint32_t parent_in_order(uint32_t index, uint32_t n) {
  if (index == 0) return PL_NONE;
  uint32_t bit = index & (~index + 1);
  uint32_t up = (index ^ bit) | bit << 1;
  return up >= n ? index ^ bit : up;
}

uint32_t pl_tree_parent_node(uint32_t node, uint32_t n_nodes, uint32_t which) {
  if (which == 0) return parent_in_order(node, n_nodes);
  bool mirrored = n_nodes % 2 == 0;
  uint32_t image = mirrored ? n_nodes - 1 - node : (node + n_nodes - 1) % n_nodes;
  uint32_t parent = parent_in_order(image, n_nodes);
  if (parent == PL_NONE) return PL_NONE;
  return mirrored ? n_nodes - 1 - parent : (parent + 1) % n_nodes;
}

uint32_t pl_tree_levels(uint32_t n_nodes) {
  uint32_t levels = 0;
  while (((uint64_t)2 << levels) <= n_nodes)
    levels++;
  return levels;
}

/* All-reduce: every node's chain starts at its first position. */
static void shape_all_reduce(const pl_collective_group *group, uint32_t which, pl_tree *tree) {
  if (group->n_nodes == 1) {
    for (uint32_t i = 0; i < group->n; i++)
      tree->parent[i] = which == 0 ? (i == 0 ? PL_NONE : i - 1) : (i + 1 == group->n ? PL_NONE : i + 1);
    return;
  }
  for (uint32_t k = 0; k < group->n_nodes; k++) {
    uint32_t first = group->nodes[k].first, up = pl_tree_parent_node(k, group->n_nodes, which);
    tree->parent[first] = up == PL_NONE ? PL_NONE : group->nodes[up].first;
    for (uint32_t i = 1; i < group->nodes[k].count; i++)
      tree->parent[first + i] = first + i - 1;
  }
}

/* Broadcast: the first node's chain starts at member 0 and goes round; other nodes still hang on its head. */
static void shape_broadcast(const pl_collective_group *group, pl_tree *tree) {
  shape_all_reduce(group, 0, tree);
  uint32_t g = group->nodes[0].count;
  for (uint32_t i = 0; i < g; i++)
    tree->parent[i] = tree->devices[i] == group->root ? PL_NONE : (i + g - 1) % g;
}

static void sort_by_depth(pl_tree *tree) {
  uint32_t deepest = 0, next = 0;
  for (uint32_t i = 0; i < tree->n; i++) {
    tree->depth[i] = 0;
    for (uint32_t at = tree->parent[i]; at != PL_NONE; at = tree->parent[at])
      tree->depth[i]++;
    if (tree->depth[i] > deepest) deepest = tree->depth[i];
  }
  for (uint32_t level = 0; level <= deepest; level++)
    for (uint32_t i = 0; i < tree->n; i++)
      if (tree->depth[i] == level) tree->by_depth[next++] = i;
}

static pl_code tree_take(const pl_collective_group *group, pl_arena *arena, pl_tree *tree, pl_error *error) {
  uint32_t *memory = PL_TAKE(arena, uint32_t, 3 * (size_t)group->n);
  if (memory == NULL) return pl_fail_memory(error, "a tree");
  *tree =
      (pl_tree){.n = group->n, .parent = memory, .by_depth = memory + group->n, .depth = memory + 2 * (size_t)group->n};
  return PL_OK;
}

static uint32_t trees_per_channel(pl_collective_kind kind) {
  return kind == PL_BROADCAST ? 1 : 2;
}

/* Tree number `which` of channel c. */
static void shape(const pl_collective_group *group, pl_collective_kind kind, uint32_t c, uint32_t which,
                  pl_tree *tree) {
  tree->devices = group->rings + (size_t)c * group->n;
  if (kind == PL_BROADCAST) {
    shape_broadcast(group, tree);
  } else {
    shape_all_reduce(group, which, tree);
  }
  sort_by_depth(tree);
}

/* ---- fluid ---- */

/* The trees by node: between nodes they have the same shape for every channel, inside them the same hops whichever of
 * the two it is. */
typedef struct tree_of_nodes {
  uint32_t *parent[2]; /* of either tree; PL_NONE at the root */
  pl_ticks *to_parent; /* of one tree of one channel, in one direction: the hop between the heads */
  pl_ticks *chain[2];  /* of one channel: the hops inside a node, down and up */
} tree_of_nodes;

static pl_code nodes_take(uint32_t n_nodes, pl_arena *arena, tree_of_nodes *nodes, pl_error *error) {
  *nodes = (tree_of_nodes){.parent = {PL_TAKE(arena, uint32_t, n_nodes), PL_TAKE(arena, uint32_t, n_nodes)},
                           .to_parent = PL_TAKE(arena, pl_ticks, n_nodes),
                           .chain = {PL_TAKE(arena, pl_ticks, n_nodes), PL_TAKE(arena, pl_ticks, n_nodes)}};
  return arena->failed ? pl_fail_memory(error, "a tree") : PL_OK;
}

static void measure_chains(const pl_collective_group *group, const pl_ticks *hop, pl_ticks *chain) {
  for (uint32_t k = 0; k < group->n_nodes; k++) {
    chain[k] = 0;
    for (uint32_t i = group->nodes[k].first; i + 1 < group->nodes[k].first + group->nodes[k].count; i++)
      chain[k] = pl_ticks_sum(chain[k], hop[i]);
  }
}

/* The hops between heads of one tree in one direction. */
static pl_code add_heads(const pl_collective_group *group, const uint32_t *ring, const uint32_t *parent, bool upwards,
                         pl_ticks *to_parent, pl_usage_builder *builder, pl_error *error) {
  for (uint32_t k = 0; k < group->n_nodes; k++) {
    if (parent[k] == PL_NONE) continue;
    uint32_t below = ring[group->nodes[k].first], above = ring[group->nodes[parent[k]].first];
    PL_TRY(pl_usage_hop(builder, upwards ? below : above, upwards ? above : below, 1, &to_parent[k], error));
    to_parent[k] += group->step_overhead;
  }
  return PL_OK;
}

/* From the root to the end of the chain of the node that is farthest, or back. */
static pl_ticks deepest(const uint32_t *parent, const pl_ticks *to_parent, const pl_ticks *chain, uint32_t n_nodes) {
  pl_ticks largest = 0;
  for (uint32_t k = 0; k < n_nodes; k++) {
    pl_ticks sum = chain[k];
    for (uint32_t at = k; parent[at] != PL_NONE; at = parent[at])
      sum = pl_ticks_sum(sum, to_parent[at]);
    if (sum > largest) largest = sum;
  }
  return largest;
}

/* Both trees of a channel. */
static pl_code add_trees(const pl_collective_group *group, const uint32_t *ring, const tree_of_nodes *nodes,
                         pl_usage_builder *builder, pl_ticks *latency, pl_error *error) {
  for (int which = 0; which < 2; which++) {
    pl_ticks both = 0;
    for (int upwards = 1; upwards >= 0; upwards--) {
      PL_TRY(add_heads(group, ring, nodes->parent[which], upwards, nodes->to_parent, builder, error));
      both = pl_ticks_sum(both, deepest(nodes->parent[which], nodes->to_parent, nodes->chain[upwards], group->n_nodes));
    }
    if (both > *latency) *latency = both;
  }
  return PL_OK;
}

static pl_code add_all_reduce_trees(const pl_collective_group *group, pl_arena *arena, pl_usage_builder *builder,
                                    pl_ticks *latency, pl_error *error) {
  tree_of_nodes nodes;
  PL_TRY(nodes_take(group->n_nodes, arena, &nodes, error));
  pl_ticks *back = pl_arena_take(arena, (size_t)group->n_channels * group->n * sizeof *back, _Alignof(pl_ticks));
  if (back == NULL) return pl_fail_memory(error, "a tree");
  PL_TRY(pl_chains_add(group, false, 2, arena, builder, NULL, error));
  PL_TRY(pl_chains_add(group, true, 2, arena, builder, back, error));
  for (uint32_t k = 0; k < group->n_nodes; k++)
    for (uint32_t which = 0; which < 2; which++)
      nodes.parent[which][k] = pl_tree_parent_node(k, group->n_nodes, which);
  for (uint32_t c = 0; c < group->n_channels; c++) {
    size_t first = (size_t)c * group->n;
    measure_chains(group, group->hop_latency + first, nodes.chain[0]);
    measure_chains(group, back + first, nodes.chain[1]);
    PL_TRY(add_trees(group, group->rings + first, &nodes, builder, latency, error));
  }
  return PL_OK;
}

/* The tree of a channel as it is built for its messages. `hop` and `sum`: scratch of n each. */
static pl_code add_broadcast_tree(const pl_collective_group *group, const pl_tree *tree, pl_usage_builder *builder,
                                  pl_ticks *hop, pl_ticks *sum, pl_ticks *latency, pl_error *error) {
  for (uint32_t i = 0; i < tree->n; i++) {
    uint32_t at = tree->by_depth[i], parent = tree->parent[at];
    sum[at] = 0;
    if (parent == PL_NONE) continue;
    PL_TRY(pl_usage_hop(builder, tree->devices[parent], tree->devices[at], 1, &hop[at], error));
    sum[at] = pl_ticks_sum(sum[parent], hop[at] + group->step_overhead);
    if (sum[at] > *latency) *latency = sum[at];
  }
  return PL_OK;
}

static pl_code add_broadcast_trees(const pl_collective_group *group, pl_arena *arena, pl_usage_builder *builder,
                                   pl_ticks *latency, pl_error *error) {
  pl_tree tree;
  PL_TRY(tree_take(group, arena, &tree, error));
  pl_ticks *scratch = PL_TAKE(arena, pl_ticks, 2 * (size_t)group->n);
  if (scratch == NULL) return pl_fail_memory(error, "a tree");
  for (uint32_t c = 0; c < group->n_channels; c++) {
    shape(group, PL_BROADCAST, c, 0, &tree);
    PL_TRY(add_broadcast_tree(group, &tree, builder, scratch, scratch + group->n, latency, error));
  }
  return PL_OK;
}

static pl_code measure(const pl_collective_group *group, pl_collective_kind kind, pl_arena *arena, pl_usage *usage,
                       pl_ticks *latency, pl_error *error) {
  pl_usage_builder builder;
  *latency = 0;
  PL_TRY(pl_usage_begin(&builder, group->cluster, 8 * group->n, arena, error));
  PL_TRY((kind == PL_BROADCAST ? add_broadcast_trees : add_all_reduce_trees)(group, arena, &builder, latency, error));
  return pl_usage_end(&builder, usage, error);
}

pl_code pl_tree_prepare(pl_collective_group *group, pl_arena *arena, pl_error *error) {
  if (group->has_tree) return PL_OK;
  PL_TRY(measure(group, PL_ALL_REDUCE, arena, &group->tree, &group->tree_latency, error));
  group->has_tree = true;
  return PL_OK;
}

pl_code pl_tree_fluid(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, pl_arena *arena,
                      pl_fluid_collective *fluid, pl_error *error) {
  pl_usage usage = group->tree;
  pl_ticks latency = group->tree_latency;
  if (kind != PL_ALL_REDUCE || !group->has_tree) PL_TRY(measure(group, kind, arena, &usage, &latency, error));
  pl_fluid_from_usage(group, &usage, latency, size_bytes / group->n_channels / trees_per_channel(kind), fluid);
  return PL_OK;
}

/* ---- chunked ---- */

/* Per position: latency of the hop to and from the parent, and the step with which the newest piece has crossed it. */
typedef struct tree_hops {
  pl_ticks *up_latency, *down_latency;
  uint32_t *up, *down;
} tree_hops;

static pl_code hops_take(uint32_t n, pl_arena *arena, tree_hops *hops, pl_error *error) {
  hops->up_latency = PL_TAKE(arena, pl_ticks, 2 * (size_t)n);
  hops->up = PL_TAKE(arena, uint32_t, 2 * (size_t)n);
  if (hops->up_latency == NULL || hops->up == NULL) return pl_fail_memory(error, "a tree");
  hops->down_latency = hops->up_latency + n;
  hops->down = hops->up + n;
  return PL_OK;
}

static pl_code measure_tree(const pl_collective_group *group, const pl_tree *tree, tree_hops *hops, pl_error *error) {
  PL_ASSERT(hops->up != NULL && hops->down != NULL);
  for (uint32_t i = 0; i < tree->n; i++) {
    pl_route up, down;
    hops->up[i] = hops->down[i] = PL_NONE;
    if (tree->parent[i] == PL_NONE) continue;
    uint32_t child = tree->devices[i], parent = tree->devices[tree->parent[i]];
    PL_TRY(pl_cluster_route(group->cluster, child, parent, &up, error));
    PL_TRY(pl_cluster_route(group->cluster, parent, child, &down, error));
    hops->up_latency[i] = up.latency + group->step_overhead;
    hops->down_latency[i] = down.latency + group->step_overhead;
  }
  return PL_OK;
}

/* The newest step waits for what all children of position `at` (of rank `rank` by depth) have sent up. */
static pl_code after_children(const pl_tree *tree, const tree_hops *hops, uint32_t at, uint32_t rank,
                              pl_step_builder *steps, pl_error *error) {
  for (uint32_t later = rank + 1; later < tree->n; later++) {
    uint32_t other = tree->by_depth[later];
    if (tree->depth[other] > tree->depth[at] + 1) break;
    if (tree->parent[other] == at) PL_TRY(pl_steps_after(steps, hops->up[other], error));
  }
  return PL_OK;
}

static pl_code add_reduction(const pl_tree *tree, double piece_bytes, tree_hops *hops, pl_step_builder *steps,
                             pl_error *error) {
  for (uint32_t rank = tree->n - 1; rank > 0; rank--) {
    uint32_t at = tree->by_depth[rank], parent = tree->parent[at];
    PL_TRY(pl_steps_latency(steps, tree->devices[at], tree->devices[parent], hops->up_latency[at], error));
    PL_TRY(after_children(tree, hops, at, rank, steps, error));
    PL_TRY(pl_steps_bytes(steps, piece_bytes, hops->up[at], &hops->up[at], error));
  }
  return PL_OK;
}

static pl_code add_broadcast(const pl_tree *tree, bool reduced, double piece_bytes, tree_hops *hops,
                             pl_step_builder *steps, pl_error *error) {
  for (uint32_t rank = 1; rank < tree->n; rank++) {
    uint32_t at = tree->by_depth[rank], parent = tree->parent[at];
    PL_TRY(pl_steps_latency(steps, tree->devices[parent], tree->devices[at], hops->down_latency[at], error));
    if (tree->parent[parent] != PL_NONE) {
      PL_TRY(pl_steps_after(steps, hops->down[parent], error));
    } else if (reduced) {
      PL_TRY(after_children(tree, hops, parent, 0, steps, error));
    }
    PL_TRY(pl_steps_bytes(steps, piece_bytes, hops->down[at], &hops->down[at], error));
  }
  return PL_OK;
}

pl_code pl_tree_chunked(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, uint32_t chunks,
                        pl_step_builder *steps, pl_error *error) {
  pl_tree tree;
  tree_hops hops = {0};
  bool reduces = kind != PL_BROADCAST;
  PL_TRY(tree_take(group, steps->arena, &tree, error));
  PL_TRY(hops_take(group->n, steps->arena, &hops, error));
  double piece_bytes = size_bytes / group->n_channels / trees_per_channel(kind) / chunks;
  for (uint32_t c = 0; c < group->n_channels; c++)
    for (uint32_t which = 0; which < trees_per_channel(kind); which++) {
      shape(group, kind, c, which, &tree);
      PL_TRY(measure_tree(group, &tree, &hops, error));
      for (uint32_t piece = 0; piece < chunks; piece++) {
        if (reduces) PL_TRY(add_reduction(&tree, piece_bytes, &hops, steps, error));
        PL_TRY(add_broadcast(&tree, reduces, piece_bytes, &hops, steps, error));
      }
    }
  return PL_OK;
}
