/* Hierarchical collectives: inside nodes, across nodes, inside nodes.
 *
 * With g members on each of N nodes (Cho et al., "BlueConnect", MLSys 2019, section 3; Horovod's hierarchical
 * all-reduce): all-reduce      reduce-scatter of S in each node, all-reduce of S / g among equal local ranks,
 * all-gather of S in each node reduce-scatter  the first of these, then a reduce-scatter of S / g across all-gather an
 * all-gather of S / g across, then one of S inside Each phase is a set of rings that run side by side, so one fluid
 * flow describes it exactly; the phases follow one another, which no single flow can say: its links are not busy at the
 * same time. The fluid form is therefore a short list (pl_fluid_collective.next). */
#include "netmodel/collective/collective_internal.h"

/* Local groups and groups across nodes, made anew for each call: the groups of a whole cluster would otherwise hold all
 * of them. */
typedef struct hierarchy {
  uint32_t n_nodes, per_node;
  pl_collective_group **inside; /* n_nodes */
  pl_collective_group **across; /* per_node */
} hierarchy;

typedef struct phase {
  pl_collective_kind kind;
  bool inside;
  double size_bytes;
} phase;

enum { MOST_PHASES = 3 };

bool pl_hierarchical_applies(const pl_collective_group *group) {
  uint32_t g = group->nodes[0].count;
  if (group->n_nodes < 2 || g < 2) return false;
  for (uint32_t k = 1; k < group->n_nodes; k++)
    if (group->nodes[k].count != g || group->nodes[k].rings.n_rings != group->nodes[0].rings.n_rings) return false;
  return true;
}

static uint32_t list_phases(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                            phase phases[MOST_PHASES]) {
  double shard_bytes = size_bytes / group->nodes[0].count;
  uint32_t n = 0;
  if (kind != PL_ALL_GATHER) phases[n++] = (phase){PL_REDUCE_SCATTER, true, size_bytes};
  phases[n++] = (phase){kind, false, shard_bytes};
  if (kind != PL_REDUCE_SCATTER) phases[n++] = (phase){PL_ALL_GATHER, true, size_bytes};
  return n;
}

static pl_code hierarchy_take(const pl_collective_group *group, pl_arena *arena, hierarchy *made, pl_error *error) {
  uint32_t g = group->nodes[0].count;
  *made = (hierarchy){.n_nodes = group->n_nodes, .per_node = g};
  made->inside = PL_TAKE(arena, pl_collective_group *, made->n_nodes);
  made->across = PL_TAKE(arena, pl_collective_group *, g);
  uint32_t *members = PL_TAKE(arena, uint32_t, made->n_nodes);
  if (made->inside == NULL || made->across == NULL || members == NULL) return pl_fail_memory(error, "a hierarchy");
  for (uint32_t k = 0; k < made->n_nodes; k++)
    PL_TRY(pl_collective_group_take(group->cluster, group->devices + group->nodes[k].first, g, &group->options, arena,
                                    &made->inside[k], error));
  for (uint32_t rank = 0; rank < g; rank++) {
    for (uint32_t k = 0; k < made->n_nodes; k++)
      members[k] = group->devices[group->nodes[k].first + rank];
    PL_TRY(pl_collective_group_take(group->cluster, members, made->n_nodes, &group->options, arena, &made->across[rank],
                                    error));
  }
  return PL_OK;
}

/* Union of the rings of `n` groups that run side by side. */
static pl_code union_usage(pl_collective_group *const *groups, uint32_t n, pl_arena *arena, pl_usage *usage,
                           pl_error *error) {
  const pl_collective_group *one = groups[0];
  pl_usage_builder builder;
  PL_TRY(pl_usage_begin(&builder, one->cluster, 4 * n * one->n * one->n_channels, arena, error));
  for (uint32_t k = 0; k < n; k++)
    for (uint32_t c = 0; c < groups[k]->n_channels; c++) {
      const uint32_t *ring = pl_collective_group_ring(groups[k], c);
      for (uint32_t i = 0; i < groups[k]->n; i++)
        PL_TRY(pl_usage_hop(&builder, ring[i], ring[(i + 1) % groups[k]->n], 1, NULL, error));
    }
  return pl_usage_end(&builder, usage, error);
}

static pl_code phase_fluid(const pl_collective_group *group, const hierarchy *levels, const phase *step,
                           pl_arena *arena, pl_fluid_collective *fluid, pl_error *error) {
  pl_collective_group *const *groups = step->inside ? levels->inside : levels->across;
  uint32_t n = step->inside ? levels->n_nodes : levels->per_node;
  pl_usage usage;
  PL_TRY(union_usage(groups, n, arena, &usage, error));
  pl_ticks latency = 0;
  for (uint32_t k = 0; k < n; k++) {
    pl_ticks round = step->kind == PL_ALL_REDUCE ? groups[k]->twice_round : groups[k]->once_round;
    if (round > latency) latency = round;
  }
  pl_fluid_from_usage(group, &usage, latency, pl_ring_progress_bytes(groups[0], step->kind, step->size_bytes), fluid);
  return PL_OK;
}

pl_code pl_hierarchical_fluid(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                              pl_arena *arena, pl_fluid_collective *fluid, pl_error *error) {
  hierarchy levels;
  phase phases[MOST_PHASES];
  uint32_t n_phases = list_phases(group, kind, size_bytes, phases);
  pl_fluid_collective *rest = PL_TAKE(arena, pl_fluid_collective, n_phases);
  if (rest == NULL) return pl_fail_memory(error, "a hierarchical collective");
  PL_TRY(hierarchy_take(group, arena, &levels, error));
  for (uint32_t i = n_phases; i-- > 0;) {
    PL_TRY(phase_fluid(group, &levels, &phases[i], arena, &rest[i], error));
    rest[i].next = i + 1 < n_phases ? &rest[i + 1] : NULL;
  }
  *fluid = rest[0];
  return PL_OK;
}

static pl_code chain_take(uint32_t slots, uint32_t width, pl_arena *arena, pl_step_chain *chain, pl_error *error) {
  *chain = (pl_step_chain){.steps = PL_TAKE(arena, uint32_t, (size_t)slots * width), .width = width};
  if (chain->steps == NULL) return pl_fail_memory(error, "a hierarchical collective");
  for (size_t i = 0; i < (size_t)slots * width; i++)
    chain->steps[i] = PL_NONE;
  return PL_OK;
}

/* Member `rank` of node k has slot k * per_node + rank in both views. */
static pl_step_chain view(const pl_step_chain *chain, const hierarchy *levels, bool inside, uint32_t index) {
  pl_step_chain seen = *chain;
  seen.base = inside ? index * levels->per_node : index;
  seen.stride = inside ? 1 : levels->per_node;
  return seen;
}

pl_code pl_hierarchical_chunked(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                                uint32_t chunks, pl_step_builder *steps, pl_error *error) {
  hierarchy levels;
  phase phases[MOST_PHASES];
  pl_step_chain before = {0};
  uint32_t n_phases = list_phases(group, kind, size_bytes, phases);
  PL_TRY(hierarchy_take(group, steps->arena, &levels, error));
  for (uint32_t i = 0; i < n_phases; i++) {
    bool inside = phases[i].inside;
    pl_collective_group *const *groups = inside ? levels.inside : levels.across;
    pl_step_chain after;
    PL_TRY(chain_take(group->n, groups[0]->n_channels, steps->arena, &after, error));
    for (uint32_t k = 0; k < (inside ? levels.n_nodes : levels.per_node); k++) {
      pl_step_chain from = view(&before, &levels, inside, k), to = view(&after, &levels, inside, k);
      PL_TRY(pl_ring_chunked(groups[k], phases[i].kind, phases[i].size_bytes, chunks, steps, i > 0 ? &from : NULL, &to,
                             error));
    }
    before = after;
  }
  return PL_OK;
}
