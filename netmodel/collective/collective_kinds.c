/* Groups over nodes of several kinds of wiring: NVLink machines beside PCIe ones, machines whose NICs are not alike.
 *
 * One entry of a profile for the whole of such a group would be that of its slowest links, for the steps of all nodes:
 * the T4s' way through the host's memory for V100s on NVLink, or, as links that are not NVLink would all belong to the
 * way between nodes, the network's rate for the PCIe inside. So each kind of node is matched by its own links, hops
 * inside nodes and out of them are priced by the node's entries, and the pace is that of the slowest.
 *
 * Nodes are of one kind if they take the same two entries. A node's links are those of the routes between its members,
 * and of their ways out and in up to the NIC; what lies beyond, the fabric, is on everybody's way between nodes. Nodes
 * that are known to be copies (pl_node_shape) are looked at once. Groups with more than PL_GROUP_KINDS_MAX kinds, or
 * with a node that no entry is for, are priced as a whole, by the slowest links. */
#include <math.h>
#include <stdlib.h>

#include "core/base/order.h"
#include "netmodel/collective/collective_internal.h"

/* ---- facts ---- */

bool pl_link_is_between(const pl_link *link, bool has_nvlink, bool alone) {
  if (link->kind == PL_LINK_NIC || link->kind == PL_LINK_FABRIC) return true;
  return link->kind != PL_LINK_NVLINK && (has_nvlink || alone);
}

static void keep_least(double *least, double value) {
  if (*least == 0 || value < *least) *least = value;
}

void pl_facts_of_uses(const pl_link *links, const pl_link_use *uses, uint32_t n, pl_wiring_facts *facts) {
  for (uint32_t i = 0; i < n; i++) {
    const pl_link *link = &links[uses[i].link];
    double GBps = link->capacity_Bps * 1e-9;
    if (link->kind == PL_LINK_NVLINK) keep_least(&facts->nvlink_GBps, GBps);
    if (link->kind == PL_LINK_PCIE) keep_least(&facts->pcie_GBps, GBps);
    facts->host |= link->kind == PL_LINK_CPU;
    if (link->kind != PL_LINK_NIC) continue;
    keep_least(&facts->nic_GBps, GBps);
    facts->nic_us = fmax(facts->nic_us, 1e6 * pl_ticks_to_s(link->latency));
  }
}

/* ---- links of nodes ---- */

/* Links of a node, each as often as it is met. */
typedef struct link_list {
  uint32_t *links;
  uint32_t n, capacity;
  pl_arena *arena;
} link_list;

static pl_code add_link(link_list *list, uint32_t link, pl_error *error) {
  uint32_t *links = pl_arena_grown(list->arena, list->links, list->n, 1, sizeof *links, &list->capacity);
  if (links == NULL) return pl_fail_memory(error, "the links of a node");
  list->links = links;
  links[list->n++] = link;
  return PL_OK;
}

/* What of the route from `source` to `destination` belongs to the source's node (`out`) or to the destination's: up to
 * the first NIC, from the last one on, or all of it inside a node. */
static pl_code add_route(const pl_collective_group *group, uint32_t source, uint32_t destination, bool out, bool inside,
                         link_list *list, pl_error *error) {
  const pl_link *links = group->cluster->links;
  pl_route route;
  PL_TRY(pl_cluster_route(group->cluster, source, destination, &route, error));
  for (uint32_t i = 0; i < route.n_links; i++) {
    uint32_t link = route.links[out ? i : route.n_links - 1 - i];
    if (!inside && links[link].kind == PL_LINK_FABRIC) break;
    PL_TRY(add_link(list, link, error));
    if (!inside && links[link].kind == PL_LINK_NIC) break;
  }
  return PL_OK;
}

/* Sorted, each once. */
static pl_code links_of_node(const pl_collective_group *group, uint32_t k, link_list *list, pl_error *error) {
  const pl_group_node *node = &group->nodes[k];
  const uint32_t *devices = group->devices + node->first;
  uint32_t outside = group->devices[group->nodes[(k + 1) % group->n_nodes].first], n = 0;
  list->n = 0;
  for (uint32_t i = 0; i < node->count; i++) {
    PL_TRY(add_route(group, devices[i], outside, true, false, list, error));
    PL_TRY(add_route(group, outside, devices[i], false, false, list, error));
    for (uint32_t j = 0; j < node->count; j++)
      if (j != i) PL_TRY(add_route(group, devices[i], devices[j], true, true, list, error));
  }
  if (list->n > 1) qsort(list->links, list->n, sizeof *list->links, pl_by_uint32);
  for (uint32_t i = 0; i < list->n; i++)
    if (n == 0 || list->links[n - 1] != list->links[i]) list->links[n++] = list->links[i];
  list->n = n;
  return PL_OK;
}

/* Of the links that the rings use. */
static pl_wiring_facts facts_of_node(const pl_collective_group *group, uint32_t k, const link_list *own,
                                     const pl_link *links) {
  const pl_cluster *cluster = group->cluster;
  const pl_usage *ring = &group->ring;
  pl_wiring_facts facts = {.inside = group->nodes[k].count > 1,
                           .between = true,
                           .node_gpus =
                               cluster->nodes[cluster->devices[group->devices[group->nodes[k].first]].node].n_devices};
  for (uint32_t i = 0, use = 0; i < own->n && use < ring->n_uses;) {
    if (own->links[i] == ring->uses[use].link) pl_facts_of_uses(links, &ring->uses[use], 1, &facts);
    if (own->links[i] <= ring->uses[use].link)
      i++;
    else
      use++;
  }
  return facts;
}

/* ---- kinds ---- */

/* False: none, as far as copies are known. */
static bool has_nodes_unlike(const pl_collective_group *group) {
  for (uint32_t k = 1; k < group->n_nodes; k++)
    if (group->nodes[k].copy_of != 0 && group->nodes[k].copy_of != group->nodes[0].turned) return true;
  return false;
}

/* Whether kind `a` stands before `b`: as their entries do, so that like groups have them in one order. */
static bool is_before(const pl_group_kind *a, const pl_group_kind *b) {
  if (a->between != b->between) return a->between < b->between;
  return a->inside != b->inside && (a->inside == NULL || (b->inside != NULL && a->inside < b->inside));
}

/* Makes room for a new kind among those of the first `n` nodes. False: there are too many. */
static bool insert(pl_group_kind *kinds, uint32_t *n_kinds, uint32_t at, const pl_group_kind *made,
                   uint32_t *kind_of_node, uint32_t n) {
  if (*n_kinds == PL_GROUP_KINDS_MAX) return false;
  for (uint32_t kind = (*n_kinds)++; kind > at; kind--)
    kinds[kind] = kinds[kind - 1];
  kinds[at] = *made;
  for (uint32_t k = 0; k < n; k++)
    kind_of_node[k] += kind_of_node[k] >= at;
  return true;
}

/* Of node k, behind those that have theirs. PL_NONE: no entry is for it, or there are too many kinds. */
static uint32_t kind_of(const pl_collective_group *group, const pl_wiring_facts *facts, pl_group_kind *kinds,
                        uint32_t *n_kinds, uint32_t *kind_of_node, uint32_t k) {
  pl_group_kind own = {.inside = NULL};
  pl_collective_profile_match(group->options.profile, facts, &own.inside, &own.between);
  if (own.between == NULL || (facts->inside && own.inside == NULL)) return PL_NONE;
  uint32_t kind = 0;
  while (kind < *n_kinds && is_before(&kinds[kind], &own))
    kind++;
  if (kind < *n_kinds && !is_before(&own, &kinds[kind])) return kind;
  return insert(kinds, n_kinds, kind, &own, kind_of_node, k) ? kind : PL_NONE;
}

/* The kind of each node; *n_kinds is 0 where the group is priced as a whole. */
static pl_code find_kinds(const pl_collective_group *group, pl_group_kind *kinds, uint32_t *n_kinds,
                          uint32_t *kind_of_node, link_list *list, pl_error *error) {
  const pl_cluster *cluster = group->cluster;
  const pl_link *links = cluster->links_of_file != NULL ? cluster->links_of_file : cluster->links;
  *n_kinds = 0;
  for (uint32_t k = 0; k < group->n_nodes; k++) {
    uint32_t like = group->nodes[k].copy_of;
    if (like == k) {
      PL_TRY(links_of_node(group, k, list, error));
      const pl_wiring_facts facts = facts_of_node(group, k, list, links);
      kind_of_node[k] = kind_of(group, &facts, kinds, n_kinds, kind_of_node, k);
    } else {
      kind_of_node[k] = kind_of_node[like];
    }
    if (kind_of_node[k] != PL_NONE) continue;
    *n_kinds = 0;
    return PL_OK;
  }
  if (*n_kinds == 1) *n_kinds = 0;
  return PL_OK;
}

/* ---- preparation ---- */

/* Takes a node into its kind. */
static pl_code join(const pl_collective_group *group, uint32_t k, uint32_t kind, pl_group_kind *kinds, link_list *list,
                    pl_kind_link *made, uint32_t *n_made, pl_error *error) {
  const pl_link *links = group->cluster->links;
  pl_group_kind *own = &kinds[kind];
  uint32_t count = group->nodes[k].count;
  PL_TRY(links_of_node(group, k, list, error));
  const pl_wiring_facts facts = facts_of_node(group, k, list, links);
  own->n_nodes++;
  own->n_hops += count - 1;
  if (count > own->most_per_node) own->most_per_node = count;
  if (facts.nic_GBps > 0 && (own->nic_GBps == 0 || facts.nic_GBps < own->nic_GBps)) own->nic_GBps = facts.nic_GBps;
  for (uint32_t i = 0; made != NULL && i < list->n; i++)
    made[*n_made + i] = (pl_kind_link){list->links[i], kind,
                                       pl_link_is_between(&links[list->links[i]], facts.nvlink_GBps > 0, count == 1)};
  *n_made += list->n;
  return PL_OK;
}

static int by_link(const void *a, const void *b) {
  uint32_t left = ((const pl_kind_link *)a)->link, right = ((const pl_kind_link *)b)->link;
  return (left > right) - (left < right);
}

static pl_code list_links(pl_collective_group *group, const uint32_t *kind_of_node, link_list *list, pl_arena *arena,
                          pl_error *error) {
  pl_group_tuning *tuning = &group->tuning;
  pl_kind_link *links = NULL;
  for (int pass = 0; pass < 2; pass++) { /* counts, then writes */
    for (uint32_t kind = 0; kind < tuning->n_kinds; kind++)
      tuning->kinds[kind] =
          (pl_group_kind){.inside = tuning->kinds[kind].inside, .between = tuning->kinds[kind].between};
    tuning->n_links = 0;
    for (uint32_t k = 0; k < group->n_nodes; k++)
      PL_TRY(join(group, k, kind_of_node[k], tuning->kinds, list, links, &tuning->n_links, error));
    if (pass == 0) links = pl_arena_take(arena, tuning->n_links * sizeof *links, _Alignof(pl_kind_link));
    if (links == NULL) return pl_fail_memory(error, "the links of a group");
  }
  qsort(links, tuning->n_links, sizeof *links, by_link);
  tuning->links = links;
  return PL_OK;
}

pl_code pl_kinds_prepare(pl_collective_group *group, pl_arena *arena, pl_error *error) {
  pl_group_tuning *tuning = &group->tuning;
  if (group->n_nodes < 2 || !has_nodes_unlike(group)) return PL_OK;
  link_list list = {.arena = arena};
  tuning->kinds = PL_TAKE(arena, pl_group_kind, PL_GROUP_KINDS_MAX);
  uint32_t *kind_of_node = PL_TAKE(arena, uint32_t, group->n_nodes);
  if (tuning->kinds == NULL || kind_of_node == NULL) return pl_fail_memory(error, "the kinds of nodes of a group");
  PL_TRY(find_kinds(group, tuning->kinds, &tuning->n_kinds, kind_of_node, &list, error));
  if (tuning->n_kinds == 0) return PL_OK;
  PL_TRY(list_links(group, kind_of_node, &list, arena, error));
  pl_level_rates rates[PL_GROUP_KINDS_MAX];
  pl_kind_rates(group, group->ring.uses, group->ring.n_uses, group->ring.rate_cap_Bps, rates);
  tuning->between = tuning->kinds[0].between;
  tuning->inside = NULL;
  for (uint32_t k = 0; k < tuning->n_kinds; k++) {
    tuning->kinds[k].ring = rates[k];
    if (tuning->inside == NULL) tuning->inside = tuning->kinds[k].inside;
  }
  return PL_OK;
}

/* ---- rates ---- */

/* NULL: of no node. */
static const pl_kind_link *kind_of_link(const pl_group_tuning *tuning, uint32_t link) {
  const pl_kind_link *links = tuning->links;
  uint32_t low = 0, high = tuning->n_links;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (links[middle].link < link)
      low = middle + 1;
    else
      high = middle;
  }
  return low < tuning->n_links && links[low].link == link ? &links[low] : NULL;
}

static void slow_down(double *rate_Bps, double own_Bps) {
  if (own_Bps < *rate_Bps) *rate_Bps = own_Bps;
}

void pl_kind_rates(const pl_collective_group *group, const pl_link_use *uses, uint32_t n, double cap_Bps,
                   pl_level_rates *rates) {
  const pl_group_tuning *tuning = &group->tuning;
  for (uint32_t k = 0; k < tuning->n_kinds; k++)
    rates[k] = (pl_level_rates){.inside_Bps = INFINITY, .between_Bps = cap_Bps, .nic_Bps = INFINITY};
  for (uint32_t i = 0; i < n; i++) {
    const pl_link *link = &group->cluster->links[uses[i].link];
    double own_Bps = link->capacity_Bps / uses[i].weight;
    const pl_kind_link *own = kind_of_link(tuning, uses[i].link);
    for (uint32_t k = 0; own == NULL && k < tuning->n_kinds; k++)
      slow_down(&rates[k].between_Bps, own_Bps);
    if (own == NULL) continue;
    slow_down(own->between ? &rates[own->kind].between_Bps : &rates[own->kind].inside_Bps, own_Bps);
    if (link->kind == PL_LINK_NIC) slow_down(&rates[own->kind].nic_Bps, own_Bps);
  }
}

/* ---- works ---- */

static pl_code take_kinds(const pl_collective_group *group, const pl_level_rates *rates, double progress_bytes,
                          pl_arena *arena, pl_tuned_work *work, pl_tuned_kind **made, pl_error *error) {
  const pl_group_tuning *tuning = &group->tuning;
  pl_tuned_kind *kinds = PL_TAKE(arena, pl_tuned_kind, tuning->n_kinds);
  if (kinds == NULL) return pl_fail_memory(error, "a collective");
  for (uint32_t k = 0; k < tuning->n_kinds; k++)
    kinds[k] = (pl_tuned_kind){.inside = tuning->kinds[k].inside,
                               .between = tuning->kinds[k].between,
                               .inside_us = 1e6 * progress_bytes / rates[k].inside_Bps,
                               .between_us = 1e6 * progress_bytes / rates[k].between_Bps,
                               .nic_us = 1e6 * progress_bytes / rates[k].nic_Bps,
                               .nic_GBps = tuning->kinds[k].nic_GBps};
  work->kinds = kinds;
  work->n_kinds = tuning->n_kinds;
  *made = kinds;
  return PL_OK;
}

/* The rounds leave out one hop each, of those that are there most often. */
static void leave_out_hops(const pl_collective_group *group, uint32_t rounds, bool inside, pl_tuned_kind *kinds) {
  uint32_t most = 0;
  for (uint32_t k = 1; k < group->tuning.n_kinds; k++)
    if (inside ? kinds[k].inside_steps > kinds[most].inside_steps : kinds[k].between_steps > kinds[most].between_steps)
      most = k;
  *(inside ? &kinds[most].inside_steps : &kinds[most].between_steps) -= rounds;
}

pl_code pl_kinds_of_ring(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                         const pl_fluid_collective *fluid, pl_arena *arena, pl_tuned_work *work, pl_error *error) {
  const pl_group_tuning *tuning = &group->tuning;
  pl_level_rates rates[PL_GROUP_KINDS_MAX];
  pl_tuned_kind *kinds;
  if (tuning->n_kinds == 0) return PL_OK;
  pl_kind_rates(group, fluid->uses, fluid->spec.n_uses, fluid->spec.rate_cap_Bps, rates);
  PL_TRY(take_kinds(group, rates, fluid->progress_bytes, arena, work, &kinds, error));
  uint32_t rounds = kind == PL_ALL_REDUCE ? 2 : 1;
  for (uint32_t k = 0; k < tuning->n_kinds; k++) {
    kinds[k].inside_steps = rounds * tuning->kinds[k].n_hops;
    kinds[k].between_steps = rounds * tuning->kinds[k].n_nodes; /* out of each of its nodes */
    if (kind != PL_BROADCAST && kinds[k].inside != NULL)
      kinds[k].local_us = 1e6 * (size_bytes / group->n / group->n_channels) / rates[k].inside_Bps;
  }
  leave_out_hops(group, rounds, kind != PL_BROADCAST && group->n > group->n_nodes, kinds);
  return PL_OK;
}

pl_code pl_kinds_of_tree(const pl_collective_group *group, const pl_fluid_collective *fluid, pl_arena *arena,
                         pl_tuned_work *work, pl_error *error) {
  const pl_group_tuning *tuning = &group->tuning;
  pl_level_rates rates[PL_GROUP_KINDS_MAX];
  pl_tuned_kind *kinds;
  if (tuning->n_kinds == 0) return PL_OK;
  for (uint32_t k = 0; k < tuning->n_kinds; k++)
    rates[k] = tuning->kinds[k].tree;
  PL_TRY(take_kinds(group, rates, fluid->progress_bytes, arena, work, &kinds, error));
  for (uint32_t k = 0; k < tuning->n_kinds; k++) {
    kinds[k].inside_steps = 2 * (tuning->kinds[k].most_per_node - 1);
    kinds[k].between_steps = work->between_steps;
  }
  return PL_OK;
}

pl_code pl_kinds_of_direct(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                           const pl_fluid_collective *fluid, pl_arena *arena, pl_tuned_work *work, pl_error *error) {
  const pl_group_tuning *tuning = &group->tuning;
  pl_level_rates rates[PL_GROUP_KINDS_MAX];
  pl_tuned_kind *kinds;
  if (tuning->n_kinds == 0) return PL_OK;
  pl_kind_rates(group, fluid->uses, fluid->spec.n_uses, fluid->spec.rate_cap_Bps, rates);
  PL_TRY(take_kinds(group, rates, fluid->progress_bytes, arena, work, &kinds, error));
  for (uint32_t k = 0; k < tuning->n_kinds; k++) {
    uint32_t g = tuning->kinds[k].most_per_node;
    kinds[k].inside_steps = kind == PL_SEND ? 0 : g - 1;
    kinds[k].between_steps = kind == PL_SEND ? 1 : group->n - g;
    if (kind != PL_SEND && kind != PL_BROADCAST && kinds[k].inside != NULL)
      kinds[k].local_us = 1e6 * (size_bytes / group->n) / tuning->kinds[k].ring.inside_Bps / group->n_channels;
  }
  return PL_OK;
}
