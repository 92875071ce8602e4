/* See collective.h: names, which algorithm runs, dispatch. */
#include "netmodel/collective.h"

#include "netmodel/collective_internal.h"

static const char *const kind_names[PL_COLLECTIVE_COUNT] = {
    [PL_ALL_REDUCE] = "all_reduce", [PL_REDUCE_SCATTER] = "reduce_scatter", [PL_ALL_GATHER] = "all_gather",
    [PL_BROADCAST] = "broadcast",   [PL_ALL_TO_ALL] = "all_to_all",         [PL_SEND] = "send",
};

static const char *const algorithm_names[PL_ALGORITHM_COUNT] = {
    [PL_ALGORITHM_AUTO] = "auto",     [PL_ALGORITHM_RING] = "ring",
    [PL_ALGORITHM_TREE] = "tree",     [PL_ALGORITHM_HIERARCHICAL] = "hierarchical",
    [PL_ALGORITHM_DIRECT] = "direct",
};

const char *pl_collective_name(pl_collective_kind kind) {
  return kind_names[kind];
}
const char *pl_collective_algorithm_name(pl_collective_algorithm algorithm) {
  return algorithm_names[algorithm];
}

/* AUTO between ring and tree, from the closed forms alone. With C channels at rate r each, g members per node on N
 * nodes, l and L the slowest hops inside and between nodes: ring   all-reduce: latency of 2 (n - 1) hops + 2 (n - 1) /
 * n * S / (C r);     broadcast: of n - 1 hops + S / (C r) tree   all-reduce: 2 ((g - 1) l + ceil(log2 N) L) + 2 S / (C
 * r);             broadcast: half the latency + 2 S / (C r) (an inner node of a binary tree sends to two children). The
 * tree's true rate is found only if it is chosen. Below three nodes a tree is a chain and never wins. */
static bool tree_is_faster(const pl_collective_group *group, pl_collective_kind kind, double size_bytes) {
  if (group->n_nodes < 3) return false;
  double rate_Bps = group->ring.rate_Bps * group->n_channels, passes = kind == PL_ALL_REDUCE ? 2 : 1;
  pl_ticks ring_latency = kind == PL_ALL_REDUCE ? group->twice_round : group->once_round;
  double ring_s = pl_ticks_to_s(ring_latency) + pl_ring_progress_bytes(group, kind, size_bytes) / group->ring.rate_Bps;
  uint32_t largest = 0, levels = 0;
  for (uint32_t k = 0; k < group->n_nodes; k++)
    if (group->nodes[k].count > largest) largest = group->nodes[k].count;
  while (((uint64_t)1 << levels) < group->n_nodes)
    levels++;
  double tree_s =
      passes * ((largest - 1) * pl_ticks_to_s(group->slowest_inside) + levels * pl_ticks_to_s(group->slowest_across)) +
      2 * size_bytes / rate_Bps;
  return tree_s < ring_s;
}

pl_collective_algorithm pl_collective_group_algorithm(const pl_collective_group *group, pl_collective_kind kind,
                                                      double size_bytes) {
  if (kind == PL_ALL_TO_ALL || kind == PL_SEND) return PL_ALGORITHM_DIRECT;
  bool has_tree = kind == PL_ALL_REDUCE || kind == PL_BROADCAST;
  switch (group->options.algorithm) {
  case PL_ALGORITHM_AUTO:
    return has_tree && tree_is_faster(group, kind, size_bytes) ? PL_ALGORITHM_TREE : PL_ALGORITHM_RING;
  case PL_ALGORITHM_TREE:
    return has_tree ? PL_ALGORITHM_TREE : PL_ALGORITHM_RING;
  case PL_ALGORITHM_HIERARCHICAL:
    return kind != PL_BROADCAST && pl_hierarchical_applies(group) ? PL_ALGORITHM_HIERARCHICAL : PL_ALGORITHM_RING;
  case PL_ALGORITHM_DIRECT:
    return PL_ALGORITHM_DIRECT;
  default:
    return PL_ALGORITHM_RING;
  }
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
  switch (pl_collective_group_algorithm(group, kind, size_bytes)) {
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
  pl_collective_algorithm algorithm = pl_collective_group_algorithm(group, kind, size_bytes);
  pl_step_builder steps;
  PL_TRY(pl_steps_begin(&steps, expected_steps(group, kind, chunks, algorithm), arena, error));
  PL_TRY(emit(group, kind, size_bytes, chunks, algorithm, &steps, error));
  chunked->steps = steps.steps;
  chunked->n_steps = steps.n_steps;
  chunked->dependencies = steps.dependencies;
  chunked->n_dependencies = steps.n_dependencies;
  return PL_OK;
}
