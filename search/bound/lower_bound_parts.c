/* See search/bound/lower_bound_parts.h. */
#include "search/bound/lower_bound_parts.h"

#include <math.h>
#include <string.h>

#include "workloads/compile/host_floor.h"
#include "workloads/cost/op_cost.h"
#include "workloads/lower/block_program.h"

/* ---- blocks ---- */

static uint64_t hash_shard(const pl_strategy *s) {
  const int32_t words[] = {s->tmp,
                           s->sp,
                           pl_strategy_cp(s),
                           s->cp_gather,
                           pl_strategy_ep(s),
                           s->mbs,
                           (int32_t)s->recompute,
                           pl_strategy_splits_backward(s),
                           s->zero >= 2};
  uint64_t hash = 1;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    hash = pl_hash_word(hash, (uint32_t)words[i]);
  return hash;
}

/* Everything else in a shard is the job's. */
static bool same_shard(const pl_block_shard *a, const pl_block_shard *b) {
  return a->tmp == b->tmp && a->sp == b->sp && a->cp == b->cp && a->cp_gather == b->cp_gather && a->ep == b->ep &&
         a->etp == b->etp && a->mbs == b->mbs && a->recompute == b->recompute && a->halves == b->halves &&
         a->scatters == b->scatters && a->scatters_experts == b->scatters_experts;
}

static int32_t size_of_family(const pl_block_shard *shard, pl_family_kind kind) {
  return kind == PL_FAMILY_CONTEXT ? shard->cp : kind == PL_FAMILY_EXPERT ? shard->ep : shard->tmp;
}

static void note_collective(pl_bound_pass *pass, pl_family_kind family, const pl_op *op) {
  for (uint32_t i = 0; i < pass->n_collectives; i++) {
    pl_bound_collective *known = &pass->collectives[i];
    if (known->family != family || known->kind != (pl_collective_kind)op->collective ||
        known->size_bytes != op->size_bytes)
      continue;
    known->count++;
    return;
  }
  if (pass->n_collectives == PL_BOUND_COLLECTIVES) return; /* it only lowers the bound */
  pass->collectives[pass->n_collectives++] =
      (pl_bound_collective){family, (pl_collective_kind)op->collective, op->size_bytes, 1};
}

static bool make_pass(const pl_lower_bounds *bounds, const pl_bound_blocks *blocks, const pl_block_program *block,
                      bool backward, pl_bound_pass *pass) {
  const pl_op_list *list = backward ? &block->backward : &block->forward;
  const pl_framework *framework = pl_framework_or_ideal(bounds->job->framework);
  pl_ticks *compute = PL_TAKE(bounds->arena, pl_ticks, bounds->cluster->n_profiles);
  if (compute == NULL) return false;
  pass->compute = compute;
  if (block->kind == PL_BLOCK_LAYER || block->kind == PL_BLOCK_EXPERT_LAYER) pass->host_s = framework->launch.layer_s;
  for (uint32_t i = 0; i < list->n_ops; i++) {
    const pl_op *op = &list->ops[i];
    if (op->kind == PL_OP_COLLECTIVE) {
      pl_family_kind family = pl_program_family_kind((pl_group_role)op->group);
      int32_t n_ranks = size_of_family(&blocks->shard, family);
      if (n_ranks <= 1) continue;
      bool less =
          family == PL_FAMILY_EXPERT && framework->pipeline.sends_tokens_per_node; /* depends on where the group is */
      if (op->overlap == PL_OVERLAP_NONE && !less) note_collective(pass, family, op);
      pass->host_s += pl_host_s_of_collective(framework, (uint32_t)n_ranks);
    } else {
      for (uint32_t p = 0; p < bounds->cluster->n_profiles && bounds->job->op_profile == NULL; p++)
        compute[p] = pl_ticks_sum(compute[p], pl_ticks_from_s(pl_op_cost(&bounds->cluster->profiles[p], op).time_s));
      pass->host_s += pl_host_s_of_op(framework, block, op, backward);
    }
  }
  return true;
}

/* Bounds refer to programs for as long as they live; of a cache that may forget its own, only the functions are used.
 */
static pl_code take_programs(pl_lower_bounds *bounds, const pl_block_shard *shard, const pl_block_program **made,
                             pl_error *error) {
  pl_block_cache *cache = bounds->options->blocks;
  pl_block_cache_begin(cache, bounds->cluster, bounds->model);
  if (cache != NULL && cache->most_bytes == PL_BLOCK_CACHE_ALL)
    return pl_block_cache_programs(cache, bounds->model, shard, bounds->arena, made, error);
  return pl_block_functions_programs(cache != NULL ? &cache->functions : &bounds->functions, bounds->model, shard, NULL,
                                     bounds->arena, made, error);
}

static pl_code make_blocks(pl_lower_bounds *bounds, const pl_strategy *strategy, pl_bound_blocks *blocks,
                           pl_error *error) {
  const pl_block_program *made;
  size_t n_classes = (size_t)pl_model_n_classes(bounds->model);
  blocks->programs = PL_TAKE(bounds->arena, pl_block_program, n_classes);
  blocks->passes = pl_arena_take_zeroed(bounds->arena, n_classes, sizeof *blocks->passes, _Alignof(pl_bound_pass));
  if (blocks->programs == NULL || blocks->passes == NULL) return pl_fail_memory(error, "the lower bounds");
  blocks->shard = pl_strategy_shard(strategy, bounds->job);
  PL_TRY(take_programs(bounds, &blocks->shard, &made, error));
  for (size_t c = 0; c < n_classes; c++) {
    pl_block_program *program = &blocks->programs[c];
    *program = made[c];
    for (int pass = 0; pass < PL_BOUND_PASSES; pass++)
      if (!make_pass(bounds, blocks, program, pass == PL_BOUND_BACKWARD, &blocks->passes[c][pass]))
        return pl_fail_memory(error, "the lower bounds");
  }
  return PL_OK;
}

pl_code pl_bound_blocks_find(pl_lower_bounds *bounds, const pl_strategy *strategy, const pl_bound_blocks **blocks,
                             pl_error *error) {
  const pl_block_shard shard = pl_strategy_shard(strategy, bounds->job);
  uint64_t hash = hash_shard(strategy);
  uint32_t probe = 0;
  for (const pl_bound_blocks *known; (known = pl_hash_index_find(&bounds->blocks, hash, &probe)) != NULL;)
    if (same_shard(&known->shard, &shard)) return *blocks = known, PL_OK;
  pl_bound_blocks *made = PL_TAKE(bounds->arena, pl_bound_blocks, 1);
  if (made == NULL) return pl_fail_memory(error, "the lower bounds");
  PL_TRY(make_blocks(bounds, strategy, made, error));
  if (!pl_hash_index_put(&bounds->blocks, hash, made, bounds->arena)) return pl_fail_memory(error, "the lower bounds");
  *blocks = made;
  return PL_OK;
}

/* ---- placement ---- */

/* What decides who is in which communicator: where the embedding's other copy is follows from the boundaries. */
static pl_bound_layout key_of(const pl_program *program) {
  const pl_strategy *s = program->strategy;
  pl_bound_layout key = {.pp = s->pp,
                         .dp = s->dp,
                         .tmp = s->tmp,
                         .cp = pl_strategy_cp(s),
                         .ep = pl_strategy_ep(s),
                         .etp = s->etp,
                         .shard = s->shard,
                         .is_v = pl_strategy_is_v(s),
                         .is_ring = s->vpp > 1};
  for (int32_t stage = 0; stage < s->pp; stage++)
    if (program->family_of[stage][PL_FAMILY_EMBEDDING] != PL_NONE) key.head_stage = stage;
  memcpy(key.order, s->order, sizeof key.order);
  return key;
}

static uint64_t hash_layout(const pl_bound_layout *key) {
  uint32_t order = 0;
  memcpy(&order, key->order, sizeof order);
  const uint32_t words[] = {(uint32_t)key->pp,    (uint32_t)key->dp,      (uint32_t)key->tmp,
                            (uint32_t)key->cp,    (uint32_t)key->ep,      order,
                            (uint32_t)key->shard, (uint32_t)key->is_ring, (uint32_t)key->head_stage,
                            (uint32_t)key->is_v};
  uint64_t hash = 2;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    hash = pl_hash_word(hash, words[i]);
  return hash;
}

static bool same_layout(const pl_bound_layout *a, const pl_bound_layout *b) {
  return a->pp == b->pp && a->dp == b->dp && a->tmp == b->tmp && a->cp == b->cp && a->ep == b->ep && a->etp == b->etp &&
         a->shard == b->shard && a->is_ring == b->is_ring && a->is_v == b->is_v && a->head_stage == b->head_stage &&
         strcmp(a->order, b->order) == 0;
}

static uint32_t profile_at(const pl_cluster *cluster, const pl_strategy *strategy, int32_t stage, int32_t replica,
                           int32_t tensor) {
  return cluster->devices[pl_strategy_device(strategy, stage, replica, tensor)].profile;
}

static bool is_known(const pl_bound_layout *layout, const uint32_t *profiles) {
  for (uint32_t i = 0; i < layout->n_chains; i++)
    if (memcmp(profiles, layout->chains[i].profiles, (size_t)layout->pp * sizeof *profiles) == 0) return true;
  return false;
}

/* Chains of different profiles at their stages; with unlike numbers of microbatches just the first ones. */
static bool choose_chains(const pl_lower_bounds *bounds, const pl_strategy *strategy, pl_bound_layout *layout) {
  size_t pp = (size_t)strategy->pp;
  uint32_t *profiles = PL_TAKE(layout->arena, uint32_t, pp * PL_BOUND_CHAINS);
  int32_t n_ranks = pl_strategy_replicas(strategy) * strategy->tmp;
  if (profiles == NULL) return false;
  for (int32_t flat = 0; flat < n_ranks && layout->n_chains < PL_BOUND_CHAINS; flat++) {
    pl_bound_chain *chain = &layout->chains[layout->n_chains];
    *chain = (pl_bound_chain){.replica = flat / strategy->tmp, .tensor = flat % strategy->tmp};
    uint32_t *own = profiles + layout->n_chains * pp;
    for (int32_t stage = 0; stage < strategy->pp; stage++)
      own[stage] = profile_at(bounds->cluster, strategy, stage, chain->replica, chain->tensor);
    if (strategy->split == NULL && is_known(layout, own)) continue;
    chain->profiles = own;
    layout->n_chains++;
    if (strategy->split == NULL && bounds->cluster->n_profiles == 1) break;
  }
  return true;
}

static bool note_profiles(const pl_lower_bounds *bounds, const pl_strategy *strategy, pl_bound_layout *layout) {
  uint64_t *bits = PL_TAKE(layout->arena, uint64_t, strategy->pp);
  if (bits == NULL) return false;
  for (int32_t stage = 0; stage < strategy->pp; stage++)
    for (int32_t r = 0; r < pl_strategy_replicas(strategy); r++)
      for (int32_t t = 0; t < strategy->tmp; t++) {
        uint32_t profile = profile_at(bounds->cluster, strategy, stage, r, t);
        if (profile < PL_BOUND_PROFILES) bits[stage] |= (uint64_t)1 << profile;
      }
  layout->profiles = bits;
  return true;
}

/* In the layout's arena only if the layout does not stay either. */
static pl_code take_group(pl_lower_bounds *bounds, const pl_family *family, const uint32_t *members,
                          pl_bound_layout *layout, pl_collective_group **group, pl_error *error) {
  pl_collective_options options = bounds->collectives;
  options.sends_alone = pl_family_is_wire(family->kind);
  if (layout->arena == bounds->arena)
    return pl_topology_cache_group(&bounds->topology, members, family->group_size, options.sends_alone, group, error);
  return pl_collective_group_take(bounds->cluster, members, family->group_size, &options, layout->arena, group, error);
}

static pl_code take_groups(pl_lower_bounds *bounds, const pl_program *program, pl_bound_layout *layout,
                           pl_bound_chain *chain, pl_error *error) {
  const pl_strategy *strategy = program->strategy;
  uint32_t *members = PL_TAKE(layout->arena, uint32_t, pl_strategy_replicas(strategy) * strategy->tmp + 2);
  if (members == NULL) return pl_fail_memory(error, "the lower bounds");
  for (int32_t stage = 0; stage < strategy->pp; stage++)
    for (int kind = 0; kind < PL_FAMILY_KIND_COUNT; kind++) {
      uint32_t f = program->family_of[stage][kind];
      if (f == PL_NONE) continue;
      const pl_family *family = &program->families[f];
      int32_t group = pl_program_group(program, family->kind, chain->replica, chain->tensor);
      pl_program_group_members(program, family, group, members);
      PL_TRY(take_group(bounds, family, members, layout, &chain->groups[stage][kind], error));
    }
  return PL_OK;
}

static pl_code make_layout(const pl_lower_bounds *bounds, const pl_program *program, pl_arena *arena,
                           pl_bound_layout *layout, pl_error *error) {
  const pl_strategy *s = program->strategy;
  *layout = key_of(program);
  layout->arena = arena;
  if (!choose_chains(bounds, s, layout) || !note_profiles(bounds, s, layout))
    return pl_fail_memory(error, "the lower bounds");
  return PL_OK;
}

pl_code pl_bound_layout_find_groups(pl_lower_bounds *bounds, const pl_program *program, pl_bound_layout *layout,
                                    pl_error *error) {
  bool counts = !bounds->options->chunked && bounds->options->streams != PL_STREAMS_READY;
  for (uint32_t i = 0; i < layout->n_chains; i++) {
    pl_bound_chain *chain = &layout->chains[i];
    if (chain->groups != NULL) continue;
    chain->groups =
        pl_arena_take_zeroed(layout->arena, (size_t)layout->pp, sizeof *chain->groups, _Alignof(pl_collective_group *));
    if (chain->groups == NULL) return pl_fail_memory(error, "the lower bounds");
    if (counts) PL_TRY(take_groups(bounds, program, layout, chain, error));
  }
  return PL_OK;
}

pl_code pl_bound_layout_find(pl_lower_bounds *bounds, const pl_program *program, pl_bound_layout **layout,
                             pl_error *error) {
  const pl_strategy *strategy = program->strategy;
  bool own = strategy->placement != NULL || strategy->split != NULL;
  const pl_bound_layout key = key_of(program);
  uint64_t hash = hash_layout(&key);
  uint32_t probe = 0;
  for (const pl_bound_layout *known; !own && (known = pl_hash_index_find(&bounds->layouts, hash, &probe)) != NULL;)
    if (same_layout(known, &key)) return *layout = (pl_bound_layout *)(uintptr_t)known, PL_OK;
  pl_arena *arena = own ? &bounds->scratch : bounds->arena;
  if (own) memset(bounds->recent, 0, sizeof bounds->recent); /* its groups may lie where those of another one lay */
  *layout = PL_TAKE(arena, pl_bound_layout, 1);
  if (*layout == NULL) return pl_fail_memory(error, "the lower bounds");
  PL_TRY(make_layout(bounds, program, arena, *layout, error));
  if (!own && !pl_hash_index_put(&bounds->layouts, hash, *layout, arena))
    return pl_fail_memory(error, "the lower bounds");
  return PL_OK;
}

/* ---- collectives ---- */

/* The arithmetic of pl_communication_plan's alone_ticks. */
static pl_ticks alone_ticks(const pl_cluster *cluster, const pl_fluid_collective *fluid) {
  double rate_Bps = fluid->spec.rate_cap_Bps, share = fluid->spec.share_weight;
  for (uint32_t use = 0; use < fluid->spec.n_uses; use++)
    rate_Bps =
        fmin(rate_Bps, cluster->links[fluid->uses[use].link].capacity_Bps / (fluid->uses[use].weight * share) * share);
  const pl_transfer_spec spec = {.rate_cap_Bps = rate_Bps, .share_weight = share, .latency = fluid->spec.latency};
  const pl_transfer_table table = {.specs = &spec, .n_specs = 1};
  return pl_transfer_solo_ticks(&table, 0, fluid->progress_bytes);
}

static bool is_time_of(const pl_bound_time *known, const pl_collective_group *group, pl_collective_kind kind,
                       double size_bytes) {
  return known->group == group && known->kind == kind && known->size_bytes == size_bytes;
}

/* Of a collective that was not asked for lately. */
static pl_code find_time(pl_lower_bounds *bounds, pl_bound_layout *layout, pl_collective_group *group,
                         pl_collective_kind kind, double size_bytes, uint64_t bits, pl_bound_time *found,
                         pl_error *error) {
  uint64_t hash = pl_hash_word(pl_hash_word((uintptr_t)group, bits), (uint64_t)kind);
  uint32_t probe = 0;
  for (const pl_bound_time *known; (known = pl_hash_index_find(&layout->times, hash, &probe)) != NULL;)
    if (is_time_of(known, group, kind, size_bytes)) return *found = *known, PL_OK;
  pl_bound_time *made = PL_TAKE(layout->arena, pl_bound_time, 1);
  if (made == NULL) return pl_fail_memory(error, "the lower bounds");
  PL_TRY(pl_collective_group_prepare(group, kind, layout->arena, error));
  pl_arena_mark mark = pl_arena_mark_here(&bounds->scratch);
  pl_fluid_collective fluid;
  PL_TRY(pl_collective_fluid(group, kind, size_bytes, &bounds->scratch, &fluid, error));
  PL_TRY(pl_fluid_collective_merge(bounds->cluster, &bounds->scratch, &fluid, error));
  *made = (pl_bound_time){group, kind, size_bytes, alone_ticks(bounds->cluster, &fluid)};
  if (layout->arena != &bounds->scratch) pl_arena_release_to(&bounds->scratch, mark);
  if (!pl_hash_index_put(&layout->times, hash, made, layout->arena)) return pl_fail_memory(error, "the lower bounds");
  *found = *made;
  return PL_OK;
}

pl_code pl_bound_collective_ticks(pl_lower_bounds *bounds, pl_bound_layout *layout, pl_collective_group *group,
                                  pl_collective_kind kind, double size_bytes, pl_ticks *ticks, pl_error *error) {
  *ticks = 0;
  if (group == NULL) return PL_OK;
  uint64_t bits;
  memcpy(&bits, &size_bytes, sizeof bits);
  uint64_t mixed = ((uintptr_t)group / 64 + bits + (uint64_t)kind) * 0x9e3779b97f4a7c15u; /* Fibonacci's */
  pl_bound_time *recent = &bounds->recent[mixed >> 32 & (PL_BOUND_RECENT - 1)];
  if (!is_time_of(recent, group, kind, size_bytes))
    PL_TRY(find_time(bounds, layout, group, kind, size_bytes, bits, recent, error));
  *ticks = recent->ticks;
  return PL_OK;
}
