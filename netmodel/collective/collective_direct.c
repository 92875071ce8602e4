/* Direct exchange: every pair by itself, all at once.
 *
 *   send                         one hop, S
 *   all-to-all                   each ordered pair S / n
 *   reduce-scatter, all-gather   each ordered pair S / n
 *   all-reduce                   reduce-scatter, then all-gather ("two-shot"): two phases
 *   broadcast                    root to each other member S
 * Time alone: the largest latency of a pair + step overhead, plus bytes per pair * the largest (pairs on a link / its
 * capacity): on ports of capacity B that is (n - 1) / n * S / B, the pairwise exchange of Thakur et al. 2005,
 * section 4.3, with its n - 1 latencies overlapped because no pair waits for another (NCCL posts grouped sends and
 * receives together). */
#include <string.h>

#include "netmodel/collective/collective_internal.h"

static bool is_between_all(pl_collective_kind kind) {
  return kind != PL_SEND && kind != PL_BROADCAST;
}

/* Calls for pair number `index` of `n_pairs`: distance by distance, so that every prefix is spread over all members. */
static void pair_of(const pl_collective_group *group, pl_collective_kind kind, uint64_t index, uint32_t *source,
                    uint32_t *destination) {
  uint32_t n = group->n;
  if (!is_between_all(kind)) {
    *source = group->root;
    *destination = group->members[1 + index];
    return;
  }
  uint32_t distance = 1 + (uint32_t)(index / n), from = (uint32_t)(index % n);
  *source = group->members[from];
  *destination = group->members[(from + distance) % n];
}

static uint64_t count_pairs(const pl_collective_group *group, pl_collective_kind kind) {
  if (kind == PL_SEND) return 1;
  return kind == PL_BROADCAST ? group->n - 1 : (uint64_t)group->n * (group->n - 1);
}

static double pair_bytes(const pl_collective_group *group, pl_collective_kind kind, double size_bytes) {
  return is_between_all(kind) ? size_bytes / group->n : size_bytes;
}

/* How many links its pairs cross: of a few, a list holds some; of many, an array holds all links of the cluster. */
static uint32_t links_of(const pl_collective_group *group, uint64_t n_pairs) {
  const uint64_t per_route = 4, most = group->cluster->n_links;
  return n_pairs * per_route < most ? 8 * group->n : (uint32_t)most;
}

static pl_code add_pairs(const pl_collective_group *group, pl_collective_kind kind, pl_arena *scratch, pl_usage *usage,
                         pl_error *error) {
  uint64_t n_pairs = count_pairs(group, kind);
  pl_usage_builder builder;
  PL_TRY(pl_usage_begin(&builder, group->cluster, links_of(group, n_pairs), scratch, error));
  for (uint64_t pair = 0; pair < n_pairs; pair++) {
    uint32_t source, destination;
    pair_of(group, kind, pair, &source, &destination);
    PL_TRY(pl_usage_hop(&builder, source, destination, 1, NULL, error));
  }
  return pl_usage_end(&builder, usage, error);
}

/* An array over the links does not stay in the caller's memory; sends and broadcasts have lists. */
static pl_code measure(const pl_collective_group *group, pl_collective_kind kind, pl_arena *arena, pl_usage *usage,
                       pl_error *error) {
  if (!is_between_all(kind)) return add_pairs(group, kind, arena, usage, error);
  pl_arena scratch;
  pl_arena_init(&scratch, 0);
  pl_code code = add_pairs(group, kind, &scratch, usage, error);
  pl_link_use *uses = code == PL_OK ? PL_TAKE(arena, pl_link_use, usage->n_uses + 1) : NULL;
  if (uses != NULL) memcpy(uses, usage->uses, usage->n_uses * sizeof *uses);
  usage->uses = uses;
  pl_arena_release(&scratch);
  return code == PL_OK && uses == NULL ? pl_fail_memory(error, "the links of a collective") : code;
}

pl_code pl_direct_prepare(pl_collective_group *group, pl_arena *arena, pl_error *error) {
  if (group->has_pairs) return PL_OK;
  PL_TRY(measure(group, PL_ALL_TO_ALL, arena, &group->pairs, error));
  group->has_pairs = true;
  return PL_OK;
}

pl_code pl_direct_fluid(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, pl_arena *arena,
                        pl_fluid_collective *fluid, pl_error *error) {
  pl_usage usage = group->pairs;
  if (!group->has_pairs || !is_between_all(kind)) PL_TRY(measure(group, kind, arena, &usage, error));
  pl_ticks latency = usage.slowest_hop + group->step_overhead;
  pl_fluid_from_usage(group, &usage, latency, pair_bytes(group, kind, size_bytes), fluid);
  if (kind == PL_SEND) {
    fluid->spec.source = group->root;
    fluid->spec.destination = group->second;
  }
  if (kind != PL_ALL_REDUCE) return PL_OK;
  pl_fluid_collective *gather = PL_TAKE(arena, pl_fluid_collective, 1);
  if (gather == NULL) return pl_fail_memory(error, "an all-reduce");
  *gather = *fluid;
  fluid->next = gather;
  return PL_OK;
}

/* The second phase of an all-reduce: member number `from` sends what it has reduced once it has all parts: the steps
 * into it, one per distance, of the first phase, which starts at step `first`. */
static pl_code after_received(const pl_collective_group *group, uint32_t first, uint32_t from, pl_step_builder *steps,
                              pl_error *error) {
  uint32_t n = group->n;
  for (uint32_t distance = 1; distance < n; distance++)
    PL_TRY(pl_steps_after(steps, first + (distance - 1) * n + (from + n - distance) % n, error));
  return PL_OK;
}

pl_code pl_direct_chunked(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                          pl_step_builder *steps, pl_error *error) {
  uint64_t n_pairs = count_pairs(group, kind);
  uint32_t first = steps->n_steps;
  for (int phase = 0; phase < (kind == PL_ALL_REDUCE ? 2 : 1); phase++)
    for (uint64_t pair = 0; pair < n_pairs; pair++) {
      uint32_t source, destination;
      pl_route route;
      pair_of(group, kind, pair, &source, &destination);
      PL_TRY(pl_cluster_route(group->cluster, source, destination, &route, error));
      pl_ticks latency = route.latency + group->step_overhead;
      PL_TRY(pl_steps_single(steps, source, destination, pair_bytes(group, kind, size_bytes), latency, error));
      if (phase == 1) PL_TRY(after_received(group, first, (uint32_t)(pair % group->n), steps, error));
    }
  return PL_OK;
}
