/* See collective.h: names, which algorithm runs, dispatch. */
#include "netmodel/collective/collective.h"

#include "netmodel/collective/collective_internal.h"

static const char *const kind_names[PL_COLLECTIVE_COUNT] = {
    [PL_ALL_REDUCE] = "all_reduce", [PL_REDUCE_SCATTER] = "reduce_scatter", [PL_ALL_GATHER] = "all_gather",
    [PL_BROADCAST] = "broadcast",   [PL_ALL_TO_ALL] = "all_to_all",         [PL_SEND] = "send",
};

const char *const pl_algorithm_names[PL_ALGORITHM_COUNT + 1] = {
    [PL_ALGORITHM_AUTO] = "auto",     [PL_ALGORITHM_RING] = "ring",
    [PL_ALGORITHM_TREE] = "tree",     [PL_ALGORITHM_HIERARCHICAL] = "hierarchical",
    [PL_ALGORITHM_DIRECT] = "direct", [PL_ALGORITHM_NVLS] = "nvls",
};

const char *pl_collective_name(pl_collective_kind kind) {
  return kind_names[kind];
}

/* Of a broadcast, whose ring leaves out the hop into the root, an upper bound. */
static double ring_time_s(const pl_collective_group *group, pl_collective_kind kind, double size_bytes) {
  pl_ticks latency = kind == PL_ALL_REDUCE ? group->twice_round : group->once_round;
  return pl_ticks_to_s(latency) + pl_ring_progress_bytes(group, kind, size_bytes) / group->ring.rate_Bps;
}

/* A lower bound of the tree's time: its latency on N nodes, l and L the slowest hops inside and between nodes, and each
 * member's share of the ring's rate. Spares the look at the tree's links for all large messages. Below three nodes a
 * tree is a chain and never wins. all-reduce: 2 ((g - 1) l + floor(log2 N) L) + S / (C r);     broadcast: half of that
 * latency + S / (C r) l and L are those of the ring's hops; a tree whose hops are faster still is passed over at worst.
 */
static bool tree_is_worth_a_look(const pl_collective_group *group, pl_collective_kind kind, double size_bytes) {
  if (group->n_nodes < 3) return false;
  uint32_t largest = 0, levels = pl_tree_levels(group->n_nodes);
  for (uint32_t k = 0; k < group->n_nodes; k++)
    if (group->nodes[k].count > largest) largest = group->nodes[k].count;
  double latency_s =
      (largest - 1) * pl_ticks_to_s(group->slowest_inside) + levels * pl_ticks_to_s(group->slowest_across);
  double tree_s = (kind == PL_ALL_REDUCE ? 2 : 1) * latency_s + size_bytes / (group->ring.rate_Bps * group->n_channels);
  return tree_s < ring_time_s(group, kind, size_bytes);
}

static double alone_s(const pl_fluid_collective *fluid, double alone_Bps) {
  return pl_ticks_to_s(fluid->spec.latency) + fluid->progress_bytes / alone_Bps;
}

/* Below three nodes a tree is a chain and never weighed. */
pl_code pl_ideal_prepare(pl_collective_group *group, pl_arena *arena, pl_error *error) {
  bool is_priced = group->tuning.inside != NULL || group->tuning.between != NULL;
  bool is_weighed = group->options.algorithm == PL_ALGORITHM_AUTO && group->n_nodes >= 3;
  if (is_priced || (!is_weighed && group->options.algorithm != PL_ALGORITHM_TREE)) return PL_OK;
  return pl_tree_prepare(group, arena, error);
}

pl_code pl_collective_group_prepare(pl_collective_group *group, pl_collective_kind kind, pl_arena *arena,
                                    pl_error *error) {
  return kind == PL_ALL_TO_ALL && group->n > 1 ? pl_direct_prepare(group, arena, error) : PL_OK;
}

/* AUTO between ring and tree: the faster alone, latency + bytes / rate of either on its own links; the ring when equal.
 */
static pl_code weigh_tree(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, pl_arena *arena,
                          pl_collective_algorithm *algorithm, pl_error *error) {
  *algorithm = PL_ALGORITHM_RING;
  if (!tree_is_worth_a_look(group, kind, size_bytes)) return PL_OK;
  pl_arena_mark mark = pl_arena_mark_here(arena);
  pl_fluid_collective ring, tree;
  PL_TRY(pl_ring_fluid(group, kind, size_bytes, arena, &ring, error));
  PL_TRY(pl_tree_fluid(group, kind, size_bytes, arena, &tree, error));
  bool is_known = kind == PL_ALL_REDUCE && group->has_tree; /* as pl_fluid_alone_Bps has it */
  double ring_Bps =
      is_known ? fmin(ring.spec.rate_cap_Bps, group->ring.rate_Bps) : pl_fluid_alone_Bps(group->cluster, &ring);
  double tree_Bps =
      is_known ? fmin(tree.spec.rate_cap_Bps, group->tree.rate_Bps) : pl_fluid_alone_Bps(group->cluster, &tree);
  if (alone_s(&tree, tree_Bps) < alone_s(&ring, ring_Bps)) *algorithm = PL_ALGORITHM_TREE;
  pl_arena_release_to(arena, mark);
  return PL_OK;
}

/* Without a profile. */
static pl_code ideal_algorithm(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                               pl_arena *arena, pl_collective_algorithm *algorithm, pl_error *error) {
  bool has_tree = kind == PL_ALL_REDUCE || kind == PL_BROADCAST;
  *algorithm = kind == PL_ALL_TO_ALL || kind == PL_SEND ? PL_ALGORITHM_DIRECT : PL_ALGORITHM_RING;
  if (*algorithm == PL_ALGORITHM_DIRECT) return PL_OK;
  switch (group->options.algorithm) {
  case PL_ALGORITHM_AUTO:
    return has_tree ? weigh_tree(group, kind, size_bytes, arena, algorithm, error) : PL_OK;
  case PL_ALGORITHM_TREE:
    if (has_tree) *algorithm = PL_ALGORITHM_TREE;
    return PL_OK;
  case PL_ALGORITHM_HIERARCHICAL:
    if (kind != PL_BROADCAST && pl_hierarchical_applies(group)) *algorithm = PL_ALGORITHM_HIERARCHICAL;
    return PL_OK;
  case PL_ALGORITHM_DIRECT:
    *algorithm = PL_ALGORITHM_DIRECT;
    return PL_OK;
  default:
    return PL_OK;
  }
}

pl_code pl_collective_group_algorithm(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                                      pl_arena *arena, pl_collective_algorithm *algorithm, pl_error *error) {
  static const pl_collective_algorithm of_tuned[PL_TUNED_COUNT] = {[PL_TUNED_RING] = PL_ALGORITHM_RING,
                                                                   [PL_TUNED_TREE] = PL_ALGORITHM_TREE,
                                                                   [PL_TUNED_DIRECT] = PL_ALGORITHM_DIRECT,
                                                                   [PL_TUNED_NVLS] = PL_ALGORITHM_NVLS};
  pl_arena_mark mark = pl_arena_mark_here(arena);
  pl_collective_weighing weighing = {0};
  PL_TRY(pl_collective_weigh(group, kind, size_bytes, arena, &weighing, error));
  pl_arena_release_to(arena, mark);
  if (weighing.n_works == 0) return ideal_algorithm(group, kind, size_bytes, arena, algorithm, error);
  *algorithm = of_tuned[weighing.works[weighing.chosen].algorithm];
  return PL_OK;
}

void pl_fluid_from_usage(const pl_collective_group *group, const pl_usage *usage, pl_ticks latency,
                         double progress_bytes, pl_fluid_collective *fluid) {
  *fluid = (pl_fluid_collective){
      .spec = {.n_uses = usage->n_uses,
               .rate_cap_Bps = usage->rate_cap_Bps,
               .share_weight = 1,
               .latency = latency,
               .source = PL_NONE,
               .destination = PL_NONE},
      .uses = usage->uses,
      .progress_bytes = progress_bytes,
  };
  if (group->options.sharing != PL_SHARING_RTT || usage->slowest_hop == 0) return;
  /* SimGrid's CM02 for the slowest hop: the whole collective moves at the pace of that one. */
  static const double gamma_bytes = 4194304;
  double slowest_s = pl_ticks_to_s(usage->slowest_hop);
  fluid->spec.share_weight = 1 / slowest_s;
  fluid->spec.rate_cap_Bps = fmin(fluid->spec.rate_cap_Bps, gamma_bytes / (2 * slowest_s));
}

static pl_code check(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, bool *nothing,
                     pl_error *error) {
  if (!(size_bytes >= 0) || isinf(size_bytes))
    return pl_fail(error, PL_BAD_INPUT, "a collective of %g bytes", size_bytes);
  if ((uint32_t)kind >= PL_COLLECTIVE_COUNT) return pl_fail(error, PL_BAD_INPUT, "unknown collective %d", (int)kind);
  *nothing = group->n == 1 || !(size_bytes > 0);
  return PL_OK;
}

static pl_code lower(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, pl_arena *arena,
                     pl_fluid_collective *fluid, pl_error *error) {
  pl_collective_algorithm algorithm;
  bool tuned;
  PL_TRY(pl_tuned_fluid(group, kind, size_bytes, arena, fluid, &tuned, error));
  if (tuned) return PL_OK;
  PL_TRY(ideal_algorithm(group, kind, size_bytes, arena, &algorithm, error));
  switch (algorithm) {
  case PL_ALGORITHM_TREE:
    return pl_tree_fluid(group, kind, size_bytes, arena, fluid, error);
  case PL_ALGORITHM_HIERARCHICAL:
    return pl_hierarchical_fluid(group, kind, size_bytes, arena, fluid, error);
  case PL_ALGORITHM_DIRECT:
    return pl_direct_fluid(group, kind, size_bytes, arena, fluid, error);
  default:
    return pl_ring_fluid(group, kind, size_bytes, arena, fluid, error);
  }
}

pl_code pl_collective_fluid(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                            pl_arena *arena, pl_fluid_collective *fluid, pl_error *error) {
  static const pl_usage no_usage = {.rate_cap_Bps = INFINITY};
  pl_fluid_collective made;
  bool nothing = true;
  pl_fluid_from_usage(group, &no_usage, 0, 0, fluid);
  PL_ASSERT(kind == PL_SEND || !group->options.sends_alone);
  PL_TRY(check(group, kind, size_bytes, &nothing, error));
  if (nothing) return PL_OK;
  PL_TRY(lower(group, kind, size_bytes, arena, &made, error));
  *fluid = made;
  return PL_OK;
}

/* An upper bound that sizes the list. A message is two steps, but for direct exchanges; trees have two directions and
 * two trees per channel; the phases of a hierarchy have no more messages than a ring over all members. */
static double expected_steps(const pl_collective_group *group, pl_collective_kind kind, double chunks,
                             pl_collective_algorithm algorithm) {
  double n = group->n, messages = (n - 1) * group->n_channels * chunks;
  if (algorithm == PL_ALGORITHM_TREE) return 8 * messages;
  if (algorithm == PL_ALGORITHM_DIRECT) {
    if (kind == PL_SEND || kind == PL_BROADCAST) return n;
    return (kind == PL_ALL_REDUCE ? 2 : 1) * n * (n - 1);
  }
  if (kind == PL_BROADCAST) return 2 * messages;
  return (kind == PL_ALL_REDUCE ? 4 : 2) * n * messages;
}

static pl_code emit(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, uint32_t chunks,
                    pl_collective_algorithm algorithm, pl_step_builder *steps, pl_error *error) {
  switch (algorithm) {
  case PL_ALGORITHM_TREE:
    return pl_tree_chunked(group, kind, size_bytes, chunks, steps, error);
  case PL_ALGORITHM_HIERARCHICAL:
    return pl_hierarchical_chunked(group, kind, size_bytes, chunks, steps, error);
  case PL_ALGORITHM_DIRECT:
    return pl_direct_chunked(group, kind, size_bytes, steps, error);
  default:
    return pl_ring_chunked(group, kind, size_bytes, chunks, steps, NULL, NULL, error);
  }
}

pl_code pl_collective_chunked(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                              uint32_t chunks, pl_arena *arena, pl_chunked_collective *chunked, pl_error *error) {
  bool nothing = true;
  *chunked = (pl_chunked_collective){0};
  if (chunks == 0) return pl_fail(error, PL_BAD_INPUT, "a message cannot be cut into 0 chunks; at least 1 is needed");
  PL_TRY(check(group, kind, size_bytes, &nothing, error));
  if (nothing) return PL_OK;
  pl_collective_algorithm algorithm;
  pl_step_builder steps;
  PL_TRY(ideal_algorithm(group, kind, size_bytes, arena, &algorithm, error));
  PL_TRY(pl_steps_begin(&steps, expected_steps(group, kind, chunks, algorithm), arena, error));
  steps.latency_with_bytes = group->options.sharing == PL_SHARING_RTT;
  PL_TRY(emit(group, kind, size_bytes, chunks, algorithm, &steps, error));
  chunked->steps = steps.steps;
  chunked->n_steps = steps.n_steps;
  chunked->dependencies = steps.dependencies;
  chunked->n_dependencies = steps.n_dependencies;
  return PL_OK;
}
