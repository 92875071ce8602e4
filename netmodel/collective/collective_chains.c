/* The hops of a group's channels inside its nodes. A channel passes each node along a chain: from the member where it
 * enters through all others to the one where it leaves. Nodes that are copies of an earlier one (pl_group_node.copy_of)
 * have its latencies, and its links counted from their own first: with 512 nodes of eight GPUs one of them is looked
 * up. */
#include "netmodel/collective/collective_internal.h"

/* Hop number `at` of the rings. */
static pl_code add_hop(const pl_collective_group *group, uint32_t at, bool backwards, uint32_t times,
                       pl_usage_builder *builder, pl_ticks *latency, pl_error *error) {
  uint32_t before = group->rings[at], behind = group->rings[at + 1];
  pl_ticks hop;
  PL_TRY(pl_usage_hop(builder, backwards ? behind : before, backwards ? before : behind, times, &hop, error));
  if (latency != NULL) latency[at] = hop + group->step_overhead;
  return PL_OK;
}

static pl_code add_node(const pl_collective_group *group, const pl_group_node *node, bool backwards, uint32_t times,
                        pl_usage_builder *builder, pl_ticks *latency, pl_error *error) {
  for (uint32_t c = 0; c < group->n_channels; c++)
    for (uint32_t i = 0; i + 1 < node->count; i++)
      PL_TRY(add_hop(group, c * group->n + node->first + i, backwards, times, builder, latency, error));
  return PL_OK;
}

static pl_code usage_of_node(const pl_collective_group *group, const pl_group_node *node, bool backwards,
                             pl_arena *arena, pl_ticks *latency, pl_usage *usage, pl_error *error) {
  pl_usage_builder own;
  PL_TRY(pl_usage_begin(&own, group->cluster, 4 * group->n_channels * node->count, arena, error));
  PL_TRY(add_node(group, node, backwards, 1, &own, latency, error));
  return pl_usage_end(&own, usage, error);
}

static void copy_latencies(const pl_collective_group *group, const pl_group_node *from, const pl_group_node *to,
                           pl_ticks *latency) {
  for (uint32_t c = 0; c < group->n_channels; c++)
    for (uint32_t i = 0; i + 1 < to->count; i++)
      latency[c * group->n + to->first + i] = latency[c * group->n + from->first + i];
}

static uint32_t first_link_of(const pl_collective_group *group, const pl_group_node *node) {
  return group->cluster->shapes[group->cluster->devices[group->devices[node->first]].node].first_link;
}

pl_code pl_chains_add(const pl_collective_group *group, bool backwards, uint32_t times, pl_arena *arena,
                      pl_usage_builder *builder, pl_ticks *latency, pl_error *error) {
  if (group->n == group->n_nodes) return PL_OK;
  pl_usage *usages = PL_TAKE(arena, pl_usage, group->n_nodes);
  if (usages == NULL) return pl_fail_memory(error, "the hops inside nodes");
  for (uint32_t k = 0; k < group->n_nodes; k++) {
    const pl_group_node *node = &group->nodes[k], *like = &group->nodes[node->copy_of];
    if (!like->is_copied) {
      PL_TRY(add_node(group, node, backwards, times, builder, latency, error));
      continue;
    }
    if (like == node)
      PL_TRY(usage_of_node(group, node, backwards, arena, latency, &usages[k], error));
    else if (latency != NULL)
      copy_latencies(group, like, node, latency);
    uint32_t shift = first_link_of(group, node) - first_link_of(group, like);
    PL_TRY(pl_usage_add(builder, &usages[node->copy_of], shift, times, error));
  }
  return PL_OK;
}
