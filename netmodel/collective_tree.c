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
#include "netmodel/collective_internal.h"

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

static uint32_t parent_node(uint32_t node, uint32_t n_nodes, uint32_t which) {
  if (which == 0) return parent_in_order(node, n_nodes);
  bool mirrored = n_nodes % 2 == 0;
  uint32_t image = mirrored ? n_nodes - 1 - node : (node + n_nodes - 1) % n_nodes;
  uint32_t parent = parent_in_order(image, n_nodes);
  if (parent == PL_NONE) return PL_NONE;
  return mirrored ? n_nodes - 1 - parent : (parent + 1) % n_nodes;
}

/* All-reduce: every node's chain starts at its first position. */
static void shape_all_reduce(const pl_collective_group *group, uint32_t which, pl_tree *tree) {
  if (group->n_nodes == 1) {
    for (uint32_t i = 0; i < group->n; i++)
      tree->parent[i] = which == 0 ? (i == 0 ? PL_NONE : i - 1) : (i + 1 == group->n ? PL_NONE : i + 1);
    return;
  }
  for (uint32_t k = 0; k < group->n_nodes; k++) {
    uint32_t first = group->nodes[k].first, up = parent_node(k, group->n_nodes, which);
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

/* Latency of the deepest path, given the latency of each position's hop from or to its parent. `sum` is scratch. */
static pl_ticks deepest(const pl_tree *tree, const pl_ticks *hop, pl_ticks *sum) {
  pl_ticks largest = 0;
  for (uint32_t i = 0; i < tree->n; i++) {
    uint32_t at = tree->by_depth[i], parent = tree->parent[at];
    sum[at] = parent == PL_NONE ? 0 : sum[parent] + hop[at];
    if (sum[at] > largest) largest = sum[at];
  }
  return largest;
}

/* Adds the hops of one tree; returns its latency. `hop` and `sum`: scratch of n each. */
static pl_code add_tree(const pl_collective_group *group, const pl_tree *tree, bool upwards, pl_usage_builder *builder,
                        pl_ticks *hop, pl_ticks *sum, pl_ticks *latency, pl_error *error) {
  for (uint32_t i = 0; i < tree->n; i++) {
    if (tree->parent[i] == PL_NONE) continue;
    uint32_t child = tree->devices[i], parent = tree->devices[tree->parent[i]];
    PL_TRY(pl_usage_hop(builder, upwards ? child : parent, upwards ? parent : child, 1, &hop[i], error));
    hop[i] += group->step_overhead;
  }
  *latency += deepest(tree, hop, sum);
  return PL_OK;
}

pl_code pl_tree_fluid(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, pl_arena *arena,
                      pl_fluid_collective *fluid, pl_error *error) {
  pl_tree tree;
  pl_usage_builder builder;
  PL_TRY(tree_take(group, arena, &tree, error));
  pl_ticks *scratch = PL_TAKE(arena, pl_ticks, 2 * (size_t)group->n), largest = 0;
  if (scratch == NULL) return pl_fail_memory(error, "a tree");
  PL_TRY(pl_usage_begin(&builder, group->cluster, 8 * group->n, arena, error));
  for (uint32_t c = 0; c < group->n_channels; c++)
    for (uint32_t which = 0; which < trees_per_channel(kind); which++) {
      pl_ticks latency = 0;
      shape(group, kind, c, which, &tree);
      for (int upwards = kind == PL_BROADCAST ? 0 : 1; upwards >= 0; upwards--)
        PL_TRY(add_tree(group, &tree, upwards, &builder, scratch, scratch + group->n, &latency, error));
      if (latency > largest) largest = latency;
    }
  pl_usage usage = pl_usage_end(&builder);
  pl_fluid_from_usage(group, &usage, largest, size_bytes / group->n_channels / trees_per_channel(kind), fluid);
  return PL_OK;
}

/* ---- chunked ---- */

/* Steps of one piece on one tree are numbered base + by_depth rank: first the reduction, deepest first, then the
 * broadcast. */
typedef struct tree_piece {
  /* step of the hop to / from the parent, by position; until it is added, that of the piece one window before */
  uint32_t *up, *down;
} tree_piece;

static pl_code add_reduction(const pl_tree *tree, double step_bytes, tree_piece *piece, pl_step_builder *steps,
                             pl_error *error) {
  for (uint32_t rank = tree->n - 1; rank > 0; rank--) {
    uint32_t at = tree->by_depth[rank], parent = tree->parent[at], before = piece->up[at];
    PL_TRY(pl_steps_add(steps, tree->devices[at], tree->devices[parent], step_bytes, &piece->up[at], error));
    for (uint32_t child = rank + 1; child < tree->n; child++) /* children stand right behind in order of depth */
      if (tree->depth[tree->by_depth[child]] > tree->depth[at] + 1) {
        break;
      } else if (tree->parent[tree->by_depth[child]] == at) {
        PL_TRY(pl_steps_after(steps, piece->up[tree->by_depth[child]], error));
      }
    PL_TRY(pl_steps_after(steps, before, error));
  }
  return PL_OK;
}

static pl_code after_root(const pl_tree *tree, const tree_piece *piece, pl_step_builder *steps, pl_error *error) {
  for (uint32_t i = 0; i < tree->n; i++)
    if (tree->parent[i] == tree->by_depth[0]) PL_TRY(pl_steps_after(steps, piece->up[i], error));
  return PL_OK;
}

static pl_code add_broadcast(const pl_tree *tree, bool reduced, double step_bytes, tree_piece *piece,
                             pl_step_builder *steps, pl_error *error) {
  for (uint32_t rank = 1; rank < tree->n; rank++) {
    uint32_t at = tree->by_depth[rank], parent = tree->parent[at], before = piece->down[at];
    PL_TRY(pl_steps_add(steps, tree->devices[parent], tree->devices[at], step_bytes, &piece->down[at], error));
    if (tree->parent[parent] != PL_NONE) {
      PL_TRY(pl_steps_after(steps, piece->down[parent], error));
    } else if (reduced) {
      PL_TRY(after_root(tree, piece, steps, error));
    }
    PL_TRY(pl_steps_after(steps, before, error));
  }
  return PL_OK;
}

/* All pieces on one tree. `memory`: 2 * PL_COLLECTIVE_WINDOW * n step numbers. */
static pl_code add_pieces(const pl_tree *tree, bool reduces, double step_bytes, uint32_t chunks, uint32_t *memory,
                          pl_step_builder *steps, pl_error *error) {
  uint32_t n = tree->n;
  for (uint32_t i = 0; i < 2 * PL_COLLECTIVE_WINDOW * n; i++)
    memory[i] = PL_NONE;
  for (uint32_t c = 0; c < chunks; c++) {
    uint32_t *row = memory + (size_t)(c % PL_COLLECTIVE_WINDOW) * 2 * n;
    tree_piece piece = {.up = row, .down = row + n};
    if (reduces) PL_TRY(add_reduction(tree, step_bytes, &piece, steps, error));
    PL_TRY(add_broadcast(tree, reduces, step_bytes, &piece, steps, error));
  }
  return PL_OK;
}

pl_code pl_tree_chunked(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, uint32_t chunks,
                        pl_step_builder *steps, pl_error *error) {
  pl_tree tree;
  PL_TRY(tree_take(group, steps->arena, &tree, error));
  uint32_t *memory = PL_TAKE(steps->arena, uint32_t, 2 * PL_COLLECTIVE_WINDOW * (size_t)group->n);
  if (memory == NULL) return pl_fail_memory(error, "a tree");
  double step_bytes = size_bytes / group->n_channels / trees_per_channel(kind) / chunks;
  for (uint32_t c = 0; c < group->n_channels; c++)
    for (uint32_t which = 0; which < trees_per_channel(kind); which++) {
      shape(group, kind, c, which, &tree);
      PL_TRY(add_pieces(&tree, kind != PL_BROADCAST, step_bytes, chunks, memory, steps, error));
    }
  return PL_OK;
}
