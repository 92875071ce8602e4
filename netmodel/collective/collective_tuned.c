/* Collectives under a profile (netmodel/collective/collective_profile.h): which algorithms are candidates, what each
 * asks of the links, and the flow that the fastest becomes.
 *
 * The flow keeps the links and weights of the algorithm, so rivals on those links act as before. What the profile adds
 * is: the latency term; bytes of progress times the protocol's factor (LL really sends twice as much); and a rate cap
 * that makes the time alone what the profile says. A cap and not a lower capacity: what one collective leaves of a link
 * because its pipeline does not fill it, another transfer can use.
 *
 * Decisions come from facts that are the same for like groups (sizes, counts, rates of links), never from indices, so
 * that folding stays exact. NCCL's broadcast, reduce-scatter and all-gather know rings only (without registered
 * buffers); its all-reduce rings, trees across nodes, and NVLS, the reduction in an NVSwitch: every GPU sends its
 * buffer up once and receives the result once, plus its share of 1 / g, which it reads reduced and writes multicast;
 * across nodes each local rank joins its shard in a tree. */
#include <math.h>
#include <string.h>

#include "netmodel/collective/collective_internal.h"

/* NCCL makes of each ring across nodes two channels (src/graph/connect.cc, "Duplicate channels"). */
enum { RING_COPIES = 2 };

/* ---- facts ---- */

static bool is_between(const pl_collective_group *group, const pl_link *link, bool has_nvlink) {
  return group->n_nodes > 1 && pl_link_is_between(link, has_nvlink, group->tuning.most_per_node == 1);
}

static bool uses_nvlink(const pl_cluster *cluster, const pl_link_use *uses, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (cluster->links[uses[i].link].kind == PL_LINK_NVLINK) return true;
  return false;
}

/* PCIe links on the way to a NIC belong to the way between nodes, unless they also join the GPUs of a node. */
static pl_level_rates level_rates(const pl_collective_group *group, const pl_link_use *uses, uint32_t n,
                                  double cap_Bps) {
  pl_level_rates rates = {.inside_Bps = INFINITY, .between_Bps = INFINITY, .nic_Bps = INFINITY};
  const pl_cluster *cluster = group->cluster;
  bool has_nvlink = uses_nvlink(cluster, uses, n);
  *(group->n_nodes > 1 ? &rates.between_Bps : &rates.inside_Bps) = cap_Bps;
  for (uint32_t i = 0; i < n; i++) {
    const pl_link *link = &cluster->links[uses[i].link];
    double *rate_Bps = is_between(group, link, has_nvlink) ? &rates.between_Bps : &rates.inside_Bps;
    *rate_Bps = fmin(*rate_Bps, link->capacity_Bps / uses[i].weight);
    if (link->kind == PL_LINK_NIC) rates.nic_Bps = fmin(rates.nic_Bps, link->capacity_Bps / uses[i].weight);
  }
  return rates;
}

/* By the figures of `links`. */
static pl_wiring_facts facts_of(const pl_collective_group *group, const pl_link *links) {
  pl_wiring_facts facts = {.inside = group->tuning.most_per_node > 1, .between = group->n_nodes > 1};
  for (uint32_t k = 0; k < group->n_nodes; k++) {
    uint32_t node = group->cluster->devices[group->devices[group->nodes[k].first]].node;
    uint32_t n_gpus = group->cluster->nodes[node].n_devices;
    if (n_gpus > facts.node_gpus) facts.node_gpus = n_gpus;
  }
  pl_facts_of_uses(links, group->ring.uses, group->ring.n_uses, &facts);
  return facts;
}

/* ---- preparation ---- */

static bool nvls_applies(const pl_collective_group *group) {
  const pl_group_tuning *tuning = &group->tuning;
  if (tuning->n_kinds > 0 || tuning->inside == NULL || !tuning->inside->cost[PL_TUNED_NVLS][PL_PROTOCOL_SIMPLE].known)
    return false;
  if (group->n_nodes > 1 &&
      (tuning->between == NULL || !tuning->between->cost[PL_TUNED_NVLS][PL_PROTOCOL_SIMPLE].known))
    return false;
  for (uint32_t k = 0; k < group->n_nodes; k++)
    if (group->nodes[k].count != tuning->most_per_node || group->nodes[k].rings.n_rings > 1) return false;
  return tuning->most_per_node > 1;
}

/* Progress in units of half a shard, S / (2 g), of which each of the two trees carries one per edge and direction. A
 * member's port carries S + S / g each way: 2 (g + 1) units. */
static pl_code nvls_usage(const pl_collective_group *group, pl_arena *arena, pl_usage *usage, pl_error *error) {
  uint32_t g = group->tuning.most_per_node, n_nodes = group->n_nodes;
  pl_usage_builder builder;
  PL_TRY(pl_usage_begin(&builder, group->cluster, 8 * group->n, arena, error));
  for (uint32_t k = 0; k < n_nodes; k++) {
    const uint32_t *devices = group->devices + group->nodes[k].first, *order = group->nodes[k].rings.order;
    for (uint32_t i = 0; i < g; i++)
      PL_TRY(pl_usage_hop(&builder, devices[order[i]], devices[order[(i + 1) % g]], 2 * (g + 1), NULL, error));
    for (uint32_t which = 0; which < 2; which++) {
      uint32_t parent = pl_tree_parent_node(k, n_nodes, which);
      for (uint32_t rank = 0; parent != PL_NONE && rank < g; rank++) {
        uint32_t above = group->devices[group->nodes[parent].first + rank];
        PL_TRY(pl_usage_hop(&builder, devices[rank], above, 1, NULL, error));
        PL_TRY(pl_usage_hop(&builder, above, devices[rank], 1, NULL, error));
      }
    }
  }
  return pl_usage_end(&builder, usage, error);
}

static pl_code prepare_nvls(pl_collective_group *group, pl_arena *arena, pl_error *error) {
  pl_group_tuning *tuning = &group->tuning;
  pl_usage usage = group->ring; /* in one node: each port once, both ways */
  double g = tuning->most_per_node, progress = (g + 1) / g;
  tuning->has_nvls = nvls_applies(group);
  if (!tuning->has_nvls) return PL_OK;
  if (group->n_nodes > 1) {
    PL_TRY(nvls_usage(group, arena, &usage, error));
    progress = 1 / (2 * g);
  }
  pl_ticks latency = group->slowest_inside * 2 + group->slowest_across * 2 * pl_tree_levels(group->n_nodes);
  pl_fluid_from_usage(group, &usage, latency, progress, &tuning->nvls_fluid);
  tuning->nvls = level_rates(group, usage.uses, usage.n_uses, usage.rate_cap_Bps);
  return PL_OK;
}

static pl_code prepare_tree(pl_collective_group *group, pl_arena *arena, pl_error *error) {
  pl_group_tuning *tuning = &group->tuning;
  tuning->has_tree = group->n_nodes > 1;
  if (!tuning->has_tree) return PL_OK;
  PL_TRY(pl_tree_prepare(group, arena, error));
  pl_fluid_collective *fluid = &tuning->tree_fluid;
  PL_TRY(pl_tree_fluid(group, PL_ALL_REDUCE, 1, arena, fluid, error));
  tuning->tree = level_rates(group, fluid->uses, fluid->spec.n_uses, fluid->spec.rate_cap_Bps);
  pl_level_rates rates[PL_GROUP_KINDS_MAX];
  if (tuning->n_kinds > 0) pl_kind_rates(group, fluid->uses, fluid->spec.n_uses, fluid->spec.rate_cap_Bps, rates);
  for (uint32_t k = 0; k < tuning->n_kinds; k++)
    tuning->kinds[k].tree = rates[k];
  return PL_OK;
}

pl_code pl_tuned_prepare(pl_collective_group *group, pl_arena *arena, pl_error *error) {
  pl_group_tuning *tuning = &group->tuning;
  if (group->options.profile == NULL) return PL_OK;
  for (uint32_t k = 0; k < group->n_nodes; k++)
    if (group->nodes[k].count > tuning->most_per_node) tuning->most_per_node = group->nodes[k].count;
  /* A variation is the same machine with faster or slower links: it keeps its entries. */
  const pl_cluster *cluster = group->cluster;
  const pl_wiring_facts facts =
      facts_of(group, cluster->links_of_file != NULL ? cluster->links_of_file : cluster->links);
  pl_collective_profile_match(group->options.profile, &facts, &tuning->inside, &tuning->between);
  const pl_wiring_facts now = facts_of(group, cluster->links);
  tuning->nic_GBps = now.nic_GBps;
  PL_TRY(pl_kinds_prepare(group, arena, error));
  tuning->known_share = 1;
  if (tuning->between != NULL && now.nic_us > tuning->between->tuner_nic_us)
    tuning->known_share = tuning->between->tuner_nic_us / now.nic_us;
  if (facts.between && tuning->between == NULL) tuning->inside = NULL; /* half a price would be none */
  if (tuning->inside == NULL && tuning->between == NULL) return PL_OK;
  tuning->ring = level_rates(group, group->ring.uses, group->ring.n_uses, group->ring.rate_cap_Bps);
  if (group->options.sends_alone) return PL_OK;
  PL_TRY(prepare_tree(group, arena, error));
  return prepare_nvls(group, arena, error);
}

/* ---- works ---- */

static double us_of(pl_ticks ticks) {
  return 1e6 * pl_ticks_to_s(ticks);
}

/* Messages go round one after another; a circle has N hops between nodes and n - N inside. Two rounds (all-reduce) less
 * two hops, one round less one, of the kind that is there more often. */
static void count_ring_steps(const pl_collective_group *group, pl_collective_kind kind, pl_tuned_work *work) {
  uint32_t n = group->n, nodes = group->n_nodes, rounds = kind == PL_ALL_REDUCE ? 2 : 1;
  uint32_t between = nodes > 1 ? nodes : 0;
  work->inside_steps = rounds * (n - between);
  work->between_steps = rounds * between;
  if (kind == PL_BROADCAST) { /* leaves each node but the last once */
    work->inside_steps = n - nodes;
    work->between_steps = nodes - 1;
  } else if (between == n) {
    work->between_steps -= rounds;
  } else {
    work->inside_steps -= rounds;
  }
}

static pl_tuned_work work_of(const pl_collective_group *group, pl_tuned algorithm, const pl_fluid_collective *fluid,
                             const pl_level_rates *rates, double progress_bytes) {
  return (pl_tuned_work){.algorithm = algorithm,
                         .latency_us = us_of(fluid->spec.latency),
                         .nic_GBps = group->tuning.nic_GBps,
                         .inside_us = 1e6 * progress_bytes / rates->inside_Bps,
                         .between_us = 1e6 * progress_bytes / rates->between_Bps,
                         .nic_us = 1e6 * progress_bytes / rates->nic_Bps};
}

/* A broadcast leaves out the hop into its root, which shares links with the others where a switch has one way up. */
static void ring_work(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                      const pl_fluid_collective *fluid, pl_tuned_work *work) {
  pl_level_rates rates = group->tuning.ring;
  if (kind == PL_BROADCAST) rates = level_rates(group, fluid->uses, fluid->spec.n_uses, fluid->spec.rate_cap_Bps);
  *work = work_of(group, PL_TUNED_RING, fluid, &rates, fluid->progress_bytes);
  count_ring_steps(group, kind, work);
  if (kind == PL_BROADCAST) return;
  work->local_us = 1e6 * (size_bytes / group->n / group->n_channels) / rates.inside_Bps;
  if (group->n_nodes > 1) work->round_bytes = size_bytes / group->n / (group->n_channels * RING_COPIES);
}

static void tree_steps(const pl_collective_group *group, bool chains, pl_tuned_work *work) {
  work->between_steps = 2 * pl_tree_levels(group->n_nodes);
  work->inside_steps = chains ? 2 * (group->tuning.most_per_node - 1) : 0;
}

static void direct_work(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                        const pl_fluid_collective *fluid, pl_tuned_work *work) {
  uint32_t g = group->tuning.most_per_node;
  pl_level_rates rates = level_rates(group, fluid->uses, fluid->spec.n_uses, fluid->spec.rate_cap_Bps);
  *work = work_of(group, PL_TUNED_DIRECT, fluid, &rates, fluid->progress_bytes);
  work->inside_steps = g - 1;
  work->between_steps = group->n - g;
  if (kind == PL_SEND) {
    work->inside_steps = group->n_nodes == 1;
    work->between_steps = group->n_nodes > 1;
  } else if (kind != PL_BROADCAST) { /* the member's own part, copied in its memory: as fast as the ring's local pass */
    work->local_us = 1e6 * (size_bytes / group->n) / group->tuning.ring.inside_Bps / group->n_channels;
  }
}

/* ---- weighing ---- */

/* Candidates with the flows that they would be. */
typedef struct candidates {
  pl_collective_weighing *weighing;
  pl_fluid_collective fluids[PL_TUNED_COUNT];
} candidates;

static void add(candidates *list, const pl_tuned_work *work, const pl_fluid_collective *fluid) {
  list->fluids[list->weighing->n_works] = *fluid;
  list->weighing->works[list->weighing->n_works++] = *work;
}

static pl_code add_ring(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, pl_arena *arena,
                        candidates *list, pl_error *error) {
  pl_fluid_collective fluid;
  pl_tuned_work work;
  PL_TRY(pl_ring_fluid(group, kind, size_bytes, arena, &fluid, error));
  ring_work(group, kind, size_bytes, &fluid, &work);
  PL_TRY(pl_kinds_of_ring(group, kind, size_bytes, &fluid, arena, &work, error));
  add(list, &work, &fluid);
  return PL_OK;
}

static pl_code add_direct(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, pl_arena *arena,
                          candidates *list, pl_error *error) {
  pl_fluid_collective fluid;
  pl_tuned_work work;
  PL_TRY(pl_direct_fluid(group, kind, size_bytes, arena, &fluid, error));
  direct_work(group, kind, size_bytes, &fluid, &work);
  PL_TRY(pl_kinds_of_direct(group, kind, size_bytes, &fluid, arena, &work, error));
  add(list, &work, &fluid);
  return PL_OK;
}

/* From an all-reduce of one byte. */
static pl_code add_prepared(const pl_collective_group *group, pl_tuned algorithm, double size_bytes, pl_arena *arena,
                            candidates *list, pl_error *error) {
  bool tree = algorithm == PL_TUNED_TREE;
  pl_fluid_collective fluid = tree ? group->tuning.tree_fluid : group->tuning.nvls_fluid;
  fluid.progress_bytes *= size_bytes;
  pl_tuned_work work =
      work_of(group, algorithm, &fluid, tree ? &group->tuning.tree : &group->tuning.nvls, fluid.progress_bytes);
  tree_steps(group, tree, &work);
  if (tree) PL_TRY(pl_kinds_of_tree(group, &fluid, arena, &work, error));
  add(list, &work, &fluid);
  return PL_OK;
}

/* Whether the profile prices what is forced: phases one after another are no single work, nor is a tree in one node. */
static bool is_priced(const pl_collective_group *group, pl_collective_kind kind) {
  if (kind == PL_ALL_TO_ALL || kind == PL_SEND) return true;
  switch (group->options.algorithm) {
  case PL_ALGORITHM_HIERARCHICAL:
    return kind == PL_BROADCAST || !pl_hierarchical_applies(group);
  case PL_ALGORITHM_DIRECT:
    return kind != PL_ALL_REDUCE;
  case PL_ALGORITHM_TREE:
    return kind == PL_ALL_REDUCE ? group->tuning.has_tree : kind != PL_BROADCAST;
  default:
    return true;
  }
}

static pl_code add_candidates(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                              pl_arena *arena, candidates *list, pl_error *error) {
  pl_collective_algorithm forced = group->options.algorithm;
  if (kind == PL_ALL_TO_ALL || kind == PL_SEND || forced == PL_ALGORITHM_DIRECT)
    return add_direct(group, kind, size_bytes, arena, list, error);
  bool tree = kind == PL_ALL_REDUCE && group->tuning.has_tree, nvls = kind == PL_ALL_REDUCE && group->tuning.has_nvls;
  if (tree && (forced == PL_ALGORITHM_AUTO || forced == PL_ALGORITHM_TREE))
    PL_TRY(add_prepared(group, PL_TUNED_TREE, size_bytes, arena, list, error));
  if (nvls && (forced == PL_ALGORITHM_AUTO || forced == PL_ALGORITHM_NVLS))
    PL_TRY(add_prepared(group, PL_TUNED_NVLS, size_bytes, arena, list, error));
  if (list->weighing->n_works > 0 && forced != PL_ALGORITHM_AUTO) return PL_OK;
  return add_ring(group, kind, size_bytes, arena, list, error);
}

/* What the library takes a work for: its tables have a latency for the kind of network, not that of the wires
 * (src/graph/tuning.cc, hwLat), so that rings of many hops run over wires on which a tree would be faster. */
static pl_tuned_time believed_time(const pl_collective_group *group, const pl_collective_weighing *weighing,
                                   uint32_t index) {
  pl_tuned_work work = weighing->works[index];
  if (group->tuning.known_share < 1) work.latency_us *= group->tuning.known_share;
  return pl_tuned_time_of(weighing->inside, weighing->between, &work);
}

/* The least time; the ring, which is last, when equal. */
static void choose(const pl_collective_group *group, candidates *list) {
  pl_collective_weighing *weighing = list->weighing;
  weighing->time = (pl_tuned_time){.latency_us = INFINITY, .transfer_us = INFINITY};
  for (uint32_t i = 0; i < weighing->n_works; i++) {
    pl_tuned_time time = believed_time(group, weighing, i);
    if (time.latency_us + time.transfer_us > weighing->time.latency_us + weighing->time.transfer_us) continue;
    weighing->time = time;
    weighing->chosen = i;
  }
  if (isinf(weighing->time.latency_us)) {
    weighing->n_works = 0; /* e.g. a forced tree of which the profile knows nothing */
  } else if (weighing->n_works > 0 && group->tuning.known_share < 1) {
    const pl_tuned_work *chosen = &weighing->works[weighing->chosen];
    weighing->time = pl_tuned_time_under(weighing->inside, weighing->between, chosen, weighing->time.protocol);
  }
}

static pl_code weigh(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, pl_arena *arena,
                     candidates *list, pl_error *error) {
  const pl_group_tuning *tuning = &group->tuning;
  *list->weighing = (pl_collective_weighing){.inside = tuning->inside, .between = tuning->between};
  if (group->n == 1 || (tuning->inside == NULL && tuning->between == NULL) || !is_priced(group, kind)) return PL_OK;
  PL_TRY(add_candidates(group, kind, size_bytes, arena, list, error));
  choose(group, list);
  return PL_OK;
}

pl_code pl_collective_weigh(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                            pl_arena *arena, pl_collective_weighing *weighing, pl_error *error) {
  candidates list = {.weighing = weighing};
  return weigh(group, kind, size_bytes, arena, &list, error);
}

static bool buffers_sends(const pl_collective_group *group) {
  const pl_group_tuning *tuning = &group->tuning;
  for (uint32_t k = 0; k < tuning->n_kinds; k++)
    if (!tuning->kinds[k].between->buffers_sends) return false;
  return tuning->n_kinds > 0 || (tuning->between != NULL && tuning->between->buffers_sends);
}

pl_code pl_tuned_fluid(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, pl_arena *arena,
                       pl_fluid_collective *fluid, bool *applies, pl_error *error) {
  pl_collective_weighing weighing = {0};
  candidates list = {.weighing = &weighing};
  *applies = false;
  PL_TRY(weigh(group, kind, size_bytes, arena, &list, error));
  if (weighing.n_works == 0) return PL_OK;
  *applies = true;
  *fluid = list.fluids[weighing.chosen];
  fluid->progress_bytes *= pl_protocol_factor(weighing.time.protocol);
  if (kind == PL_SEND && buffers_sends(group)) fluid->flight = fluid->spec.latency; /* of the route */
  fluid->spec.latency = pl_ticks_from_s(1e-6 * weighing.time.latency_us);
  double cap_Bps = fluid->progress_bytes / (1e-6 * weighing.time.transfer_us);
  fluid->spec.rate_cap_Bps = fmin(fluid->spec.rate_cap_Bps, cap_Bps);
  return PL_OK;
}

bool pl_collective_group_entries(const pl_collective_group *group, uint32_t kind, const pl_wiring **inside,
                                 const pl_wiring **between) {
  const pl_group_tuning *tuning = &group->tuning;
  bool mixed = tuning->n_kinds > 0;
  if (kind >= (mixed ? tuning->n_kinds : 1)) return false;
  *inside = mixed ? tuning->kinds[kind].inside : tuning->inside;
  *between = mixed ? tuning->kinds[kind].between : tuning->between;
  return true;
}
