/* A group's members by node and its ring channels.
 *
 * Within one node the channels are the local rings (collective_local.c). Across nodes a channel enters every node at
 * one member, passes all members of the node along a local ring and leaves from the ring's last one, so that up to g
 * channels of a group with g members per node use g different NICs. Where the entries lie depends only on the number of
 * channels and the local rings, never on which node it is: like nodes are used alike, which folding needs.
 *
 * How many channels: the number with the highest rate of the fluid flow over the first two nodes; of equally fast
 * numbers the smallest. On nodes with one local ring the candidates are the divisors of g (evenly spread entries); with
 * several local rings (cube mesh) each further channel is the (ring, entry) that keeps the rate highest, because there
 * the local links can be the bottleneck.
 *
 * Rails. The rotation above leaves a node from the member before its entry, so hops between nodes change rails. On a
 * rail-optimised fabric that costs links (through the spine). If hops on one rail are shorter and the number of nodes
 * is even, every second node passes its members backwards: then each hop between nodes joins equal local ranks, as
 * NCCL's crossNic=0 rings do. With an odd number of nodes one hop per channel would have to change rails anyway and the
 * nodes would no longer be alike; the rotation stays. */
#include <stdlib.h>

#include "netmodel/collective/collective_internal.h"

/* Kinds of nodes in a group that are told apart; of others each is looked up by itself. */
enum { MOST_KINDS = 16 };

typedef struct channel_plan {
  uint32_t n_channels;
  uint32_t *ring;  /* per channel: which local ring of a node, modulo the node's number of rings */
  uint32_t *entry; /* per channel: member of the first node at which it enters; scaled to nodes of other sizes */
  bool zigzag;
} channel_plan;

typedef struct placed_member {
  uint32_t node, position;
} placed_member;

static int by_node(const void *a, const void *b) {
  const placed_member *left = a, *right = b;
  if (left->node != right->node) return left->node < right->node ? -1 : 1;
  return (left->position > right->position) - (left->position < right->position);
}

static int by_first(const void *a, const void *b) {
  uint32_t left = ((const pl_group_node *)a)->first, right = ((const pl_group_node *)b)->first;
  return (left > right) - (left < right);
}

/* Runs of equal node in `placed` (sorted by node, or as given when every node is one run). node.first = place in
 * `placed`. */
static uint32_t find_runs(const placed_member *placed, uint32_t n, pl_group_node *nodes) {
  uint32_t n_nodes = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (i == 0 || placed[i].node != placed[i - 1].node) nodes[n_nodes++] = (pl_group_node){.first = i};
    nodes[n_nodes - 1].count++;
  }
  return n_nodes;
}

static pl_code group_by_node(pl_collective_group *group, pl_arena *arena, pl_error *error) {
  uint32_t n = group->n, *devices = PL_TAKE(arena, uint32_t, n), next = 0;
  placed_member *placed = pl_arena_take(arena, n * sizeof *placed, _Alignof(placed_member));
  if (devices == NULL || placed == NULL) return pl_fail_memory(error, "a group");
  bool increasing = true;
  uint32_t n_changes = 0;
  for (uint32_t i = 0; i < n; i++) {
    placed[i] = (placed_member){.node = group->cluster->devices[group->members[i]].node, .position = i};
    increasing &= i == 0 || placed[i].node >= placed[i - 1].node;
    n_changes += i > 0 && placed[i].node != placed[i - 1].node;
  }
  pl_group_node *nodes = PL_TAKE(arena, pl_group_node, n_changes + 1); /* as many nodes at most */
  if (nodes == NULL) return pl_fail_memory(error, "a group");
  if (!increasing) qsort(placed, n, sizeof *placed, by_node);
  group->n_nodes = find_runs(placed, n, nodes);
  for (uint32_t k = 0; k < group->n_nodes; k++) /* order nodes by where their first member stands */
    nodes[k] = (pl_group_node){.first = placed[nodes[k].first].position, .count = nodes[k].first};
  if (!increasing) qsort(nodes, group->n_nodes, sizeof *nodes, by_first);
  for (uint32_t k = 0; k < group->n_nodes; k++) {
    uint32_t at = nodes[k].count, node = placed[at].node;
    nodes[k] = (pl_group_node){.first = next};
    for (; at < n && placed[at].node == node; at++)
      devices[next++] = group->members[placed[at].position];
    nodes[k].count = next - nodes[k].first;
  }
  group->devices = devices;
  group->nodes = nodes;
  return PL_OK;
}

/* Whether the members of two nodes stand at the same places of nodes that are wired alike. */
static bool have_equal_places(const pl_collective_group *group, uint32_t a, uint32_t b) {
  const pl_group_node *x = &group->nodes[a], *y = &group->nodes[b];
  const pl_device *devices = group->cluster->devices;
  const uint32_t *left = group->devices + x->first, *right = group->devices + y->first;
  const pl_node_shape *shapes = group->cluster->shapes;
  if (x->count != y->count || shapes[devices[*left].node].kind != shapes[devices[*right].node].kind) return false;
  for (uint32_t i = 0; i < x->count; i++)
    if (devices[left[i]].local_index != devices[right[i]].local_index) return false;
  return true;
}

/* Local rings; of nodes alike they are found once. */
static pl_code find_local_rings(pl_collective_group *group, pl_arena *arena, pl_error *error) {
  pl_group_node *nodes = (pl_group_node *)group->nodes; /* ours until the group is made */
  uint32_t kinds[MOST_KINDS], n_kinds = 0;
  for (uint32_t k = 0; k < group->n_nodes; k++) {
    uint32_t at = 0;
    nodes[k].copy_of = k;
    nodes[k].turned = PL_NONE;
    while (at < n_kinds && !have_equal_places(group, kinds[at], k))
      at++;
    if (at < n_kinds) {
      nodes[k].copy_of = kinds[at];
      nodes[k].rings = nodes[kinds[at]].rings;
      continue;
    }
    if (group->cluster->shapes != NULL && n_kinds < MOST_KINDS) kinds[n_kinds++] = k;
    PL_TRY(pl_local_rings_take(group->cluster, group->devices + nodes[k].first, nodes[k].count, arena, &nodes[k].rings,
                               error));
  }
  return PL_OK;
}

/* Of nodes with the same rings those are copies that channels pass in the same direction. */
static void find_copies(pl_collective_group *group, const channel_plan *plan) {
  pl_group_node *nodes = (pl_group_node *)group->nodes;
  for (uint32_t k = 0; k < group->n_nodes; k++) {
    uint32_t *turned = &nodes[nodes[k].copy_of].turned;
    if (plan->zigzag && (k - nodes[k].copy_of) % 2 == 1) {
      if (*turned == PL_NONE) *turned = k;
      nodes[k].copy_of = *turned;
    }
    nodes[nodes[k].copy_of].is_copied |= nodes[k].copy_of != k;
  }
}

/* The members of node k along channel c, first the entry, last the exit. */
static void write_path(const pl_collective_group *group, const channel_plan *plan, uint32_t k, uint32_t c,
                       uint32_t *path) {
  const pl_group_node *node = &group->nodes[k];
  const uint32_t *order = node->rings.order + (size_t)(plan->ring[c] % node->rings.n_rings) * node->count;
  uint32_t g = node->count, start = 0;
  uint32_t entry = (uint32_t)((uint64_t)plan->entry[c] * g / group->nodes[0].count);
  while (order[start] != entry)
    start++;
  bool backwards = plan->zigzag && k % 2 == 1;
  for (uint32_t i = 0; i < g; i++) {
    uint32_t step = backwards ? g - 1 - i : i;
    path[i] = group->devices[node->first + order[(start + step) % g]];
  }
}

/* Rate of all channels together if only the first node and its hop to the second counted. Scratch: `path` for the
 * members of both. */
static pl_code plan_rate(const pl_collective_group *group, const channel_plan *plan, pl_arena *arena, uint32_t *path,
                         double *total_Bps, pl_error *error) {
  pl_arena_mark mark = pl_arena_mark_here(arena);
  uint32_t g = group->nodes[0].count;
  pl_usage_builder builder;
  PL_TRY(pl_usage_begin(&builder, group->cluster, 4 * g * plan->n_channels, arena, error));
  for (uint32_t c = 0; c < plan->n_channels; c++) {
    write_path(group, plan, 0, c, path);
    write_path(group, plan, 1, c, path + g);
    for (uint32_t i = 0; i < g; i++)
      PL_TRY(pl_usage_hop(&builder, path[i], path[i + 1], 1, NULL, error));
  }
  pl_usage usage;
  PL_TRY(pl_usage_end(&builder, &usage, error));
  *total_Bps = plan->n_channels * usage.rate_Bps;
  pl_arena_release_to(arena, mark);
  return PL_OK;
}

static void spread_entries(channel_plan *plan, uint32_t g, uint32_t n_channels) {
  plan->n_channels = n_channels;
  for (uint32_t c = 0; c < n_channels; c++) {
    plan->ring[c] = 0;
    plan->entry[c] = (uint32_t)((uint64_t)c * g / n_channels);
  }
}

static pl_code plan_one_ring(const pl_collective_group *group, uint32_t least, channel_plan *plan, pl_arena *arena,
                             uint32_t *path, pl_error *error) {
  uint32_t g = group->nodes[0].count, best = 1;
  double best_Bps = 0;
  for (uint32_t n_channels = 1; n_channels <= least && least > 1; n_channels++) {
    double total_Bps;
    if (least % n_channels != 0) continue;
    spread_entries(plan, g, n_channels);
    PL_TRY(plan_rate(group, plan, arena, path, &total_Bps, error));
    if (total_Bps <= best_Bps * (1 + 1e-9)) continue;
    best_Bps = total_Bps;
    best = n_channels;
  }
  spread_entries(plan, g, best);
  return PL_OK;
}

static pl_code plan_many_rings(const pl_collective_group *group, uint32_t least, channel_plan *plan, pl_arena *arena,
                               uint32_t *path, pl_error *error) {
  uint32_t best = 1;
  double best_Bps = 0;
  for (uint32_t c = 0; c < least; c++) {
    double choice_Bps = 0;
    uint32_t choice_ring = 0, choice_entry = 0;
    plan->n_channels = c + 1;
    for (uint32_t choice = 0; choice < group->nodes[0].rings.n_rings * group->nodes[0].count; choice++) {
      double total_Bps;
      plan->ring[c] = choice % group->nodes[0].rings.n_rings;
      plan->entry[c] = choice / group->nodes[0].rings.n_rings;
      PL_TRY(plan_rate(group, plan, arena, path, &total_Bps, error));
      if (total_Bps <= choice_Bps * (1 + 1e-9)) continue;
      choice_Bps = total_Bps;
      choice_ring = plan->ring[c];
      choice_entry = plan->entry[c];
    }
    plan->ring[c] = choice_ring;
    plan->entry[c] = choice_entry;
    if (choice_Bps <= best_Bps * (1 + 1e-9)) continue;
    best_Bps = choice_Bps;
    best = c + 1;
  }
  plan->n_channels = best;
  return PL_OK;
}

static pl_code plan_rails(const pl_collective_group *group, channel_plan *plan, uint32_t *path, pl_error *error) {
  uint32_t g = group->nodes[0].count;
  if (g < 2 || group->n_nodes % 2 == 1 || group->nodes[0].rings.n_rings > 1) return PL_OK;
  for (uint32_t k = 1; k < group->n_nodes; k++)
    if (group->nodes[k].count != g || group->nodes[k].rings.n_rings > 1) return PL_OK;
  pl_route turned, straight;
  write_path(group, plan, 0, 0, path);
  write_path(group, plan, 1, 0, path + g); /* leaves from the same local rank as node 0 */
  PL_TRY(pl_cluster_route(group->cluster, path[g - 1], path[g], &turned, error));
  PL_TRY(pl_cluster_route(group->cluster, path[g - 1], path[2 * g - 1], &straight, error));
  plan->zigzag = straight.n_links < turned.n_links;
  return PL_OK;
}

static pl_code plan_channels(const pl_collective_group *group, channel_plan *plan, pl_arena *arena, pl_error *error) {
  const pl_group_node *nodes = group->nodes;
  uint32_t least = nodes[0].count, n_rings = nodes[0].rings.n_rings;
  for (uint32_t k = 1; k < group->n_nodes; k++)
    if (nodes[k].count < least) least = nodes[k].count;
  uint32_t room = least > n_rings ? least : n_rings;
  plan->ring = PL_TAKE(arena, uint32_t, room);
  plan->entry = PL_TAKE(arena, uint32_t, room);
  uint32_t *path = PL_TAKE(arena, uint32_t, nodes[0].count + nodes[group->n_nodes > 1].count);
  if (plan->ring == NULL || plan->entry == NULL || path == NULL)
    return pl_fail_memory(error, "the channels of a group");
  if (group->n_nodes == 1) {
    plan->n_channels = n_rings;
    for (uint32_t c = 0; c < n_rings; c++)
      plan->ring[c] = c;
    return PL_OK;
  }
  PL_TRY((n_rings == 1 ? plan_one_ring : plan_many_rings)(group, least, plan, arena, path, error));
  return plan_rails(group, plan, path, error);
}

static pl_code write_rings(pl_collective_group *group, const channel_plan *plan, pl_arena *arena, pl_error *error) {
  size_t n = group->n;
  uint32_t *rings = pl_arena_take(arena, plan->n_channels * n * sizeof *rings, _Alignof(uint32_t));
  if (rings == NULL) return pl_fail_memory(error, "the rings of a group");
  for (uint32_t c = 0; c < plan->n_channels; c++)
    for (uint32_t k = 0; k < group->n_nodes; k++)
      write_path(group, plan, k, c, rings + c * n + group->nodes[k].first);
  group->n_channels = plan->n_channels;
  group->rings = rings;
  return PL_OK;
}

/* A message visits consecutive hops, so the last of them ends after the sum of their latencies; the start that meets
 * the slowest hops decides: the whole circle (or two) less the fastest hop (or two neighbouring ones). */
static void measure_rounds(pl_collective_group *group) {
  uint32_t n = group->n;
  for (uint32_t c = 0; c < group->n_channels; c++) {
    const pl_ticks *hop = group->hop_latency + (size_t)c * n;
    pl_ticks circle = 0, fastest = INT64_MAX, fastest_pair = INT64_MAX;
    for (uint32_t i = 0; i < n; i++) {
      pl_ticks pair = hop[i] + hop[(i + 1) % n];
      circle += hop[i];
      if (hop[i] < fastest) fastest = hop[i];
      if (pair < fastest_pair) fastest_pair = pair;
    }
    if (circle - fastest > group->once_round) group->once_round = circle - fastest;
    if (2 * circle - fastest_pair > group->twice_round) group->twice_round = 2 * circle - fastest_pair;
  }
}

/* The hop of each channel out of each node into the next, which in a group of one node closes the ring. */
static pl_code add_crossings(const pl_collective_group *group, pl_usage_builder *builder, pl_ticks *latency,
                             pl_error *error) {
  for (uint32_t c = 0; c < group->n_channels; c++) {
    const uint32_t *ring = group->rings + (size_t)c * group->n;
    pl_ticks *hop = latency + (size_t)c * group->n;
    for (uint32_t k = 0; k < group->n_nodes; k++) {
      uint32_t last = group->nodes[k].first + group->nodes[k].count - 1;
      PL_TRY(pl_usage_hop(builder, ring[last], ring[(last + 1) % group->n], 1, &hop[last], error));
      hop[last] += group->step_overhead;
    }
  }
  return PL_OK;
}

static void find_slowest(pl_collective_group *group) {
  for (uint32_t k = 0; k < group->n_nodes; k++)
    for (uint32_t c = 0; c < group->n_channels; c++) {
      const pl_ticks *hop = group->hop_latency + (size_t)c * group->n + group->nodes[k].first;
      uint32_t last = group->nodes[k].count - 1;
      for (uint32_t i = 0; i <= last; i++) {
        bool inside = i < last || group->n_nodes == 1;
        pl_ticks *slowest = inside ? &group->slowest_inside : &group->slowest_across;
        if (hop[i] > *slowest) *slowest = hop[i];
      }
    }
}

static pl_code measure_hops(pl_collective_group *group, pl_arena *arena, pl_error *error) {
  uint32_t n_hops = group->n_channels * group->n;
  pl_ticks *latency = pl_arena_take(arena, n_hops * sizeof *latency, _Alignof(pl_ticks)); /* all are written below */
  if (latency == NULL) return pl_fail_memory(error, "the hops of a group");
  pl_usage_builder builder;
  PL_TRY(pl_usage_begin(&builder, group->cluster, 2 * n_hops, arena, error));
  PL_TRY(pl_chains_add(group, false, 1, arena, &builder, latency, error));
  PL_TRY(add_crossings(group, &builder, latency, error));
  PL_TRY(pl_usage_end(&builder, &group->ring, error));
  group->hop_latency = latency;
  find_slowest(group);
  measure_rounds(group);
  return PL_OK;
}

static pl_code check_members(const pl_cluster *cluster, const uint32_t *members, uint32_t n, pl_error *error) {
  if (n == 0) return pl_fail(error, PL_BAD_INPUT, "a collective needs at least one member");
  for (uint32_t i = 0; i < n; i++)
    if (members[i] >= cluster->n_devices)
      return pl_fail(error, PL_BAD_INPUT, "member %u of a collective is device %u, but the cluster has %u devices", i,
                     members[i], cluster->n_devices);
  return PL_OK;
}

static pl_code fill(pl_collective_group *group, pl_arena *arena, pl_error *error) {
  PL_TRY(group_by_node(group, arena, error));
  PL_TRY(find_local_rings(group, arena, error));
  channel_plan plan = {0};
  PL_TRY(plan_channels(group, &plan, arena, error));
  find_copies(group, &plan);
  PL_TRY(write_rings(group, &plan, arena, error));
  if (group->n == 1) return PL_OK;
  PL_TRY(measure_hops(group, arena, error));
  PL_TRY(pl_tuned_prepare(group, arena, error));
  return pl_ideal_prepare(group, arena, error);
}

pl_code pl_collective_group_take(const pl_cluster *cluster, const uint32_t *members, uint32_t n,
                                 const pl_collective_options *options, pl_arena *arena, pl_collective_group **group,
                                 pl_error *error) {
  *group = NULL;
  PL_TRY(check_members(cluster, members, n, error));
  pl_collective_group *made = PL_TAKE(arena, pl_collective_group, 1);
  const uint32_t *copy = PL_COPY(arena, uint32_t, members, n);
  if (made == NULL || copy == NULL) return pl_fail_memory(error, "a group");
  *made = (pl_collective_group){
      .cluster = cluster,
      .options = *options,
      .step_overhead = pl_ticks_from_s(options->step_overhead_s),
      .n = n,
      .root = members[0],
      .second = n > 1 ? members[1] : PL_NONE,
      .members = copy,
  };
  PL_TRY(fill(made, arena, error));
  *group = made;
  return PL_OK;
}

uint32_t pl_collective_group_channels(const pl_collective_group *group) {
  return group->n_channels;
}

const uint32_t *pl_collective_group_ring(const pl_collective_group *group, uint32_t channel) {
  PL_ASSERT(channel < group->n_channels);
  return group->rings + (size_t)channel * group->n;
}
