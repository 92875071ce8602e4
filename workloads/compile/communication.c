/* See workloads/compile/communication.h. In order: every op of every group becomes a fluid transfer over the cluster's
 * links; transfers of one group with equal links are one pattern of the fold problem; implied links are dropped;
 * classes are found; the quotient is made; each group class gets its specs. */
#include "workloads/compile/communication_state.h"

#include <math.h>
#include <string.h>

#include "workloads/compile/rivals.h"
#include "workloads/compile/token_nodes.h"

static pl_code no_memory(pl_planning *state) {
  return pl_fail_memory(state->error, "the communication plan");
}

static const uint32_t *group_members(const pl_family *family, uint32_t group) {
  return family->members + (size_t)group * family->group_size;
}

/* ---- what is sent ---- */

/* Whether the size of an op depends on where its group is. */
static bool is_sent_per_node(const pl_program *program, const pl_family *family, uint32_t op) {
  return pl_framework_or_ideal(program->job->framework)->pipeline.sends_tokens_per_node &&
         family->kind == PL_FAMILY_EXPERT && family->ops[op].kind == PL_ALL_TO_ALL;
}

double pl_communication_bytes(const pl_cluster *cluster, const pl_program *program, uint32_t family, uint32_t group,
                              uint32_t op) {
  const pl_family *own = &program->families[family];
  double size_bytes = own->ops[op].size_bytes;
  if (!is_sent_per_node(program, own, op)) return size_bytes;
  const pl_model *model = program->model;
  const pl_token_choice choice = {model->moe.topk, model->moe.n_groups, model->moe.topk_groups};
  uint32_t n_nodes = pl_cluster_count_nodes(cluster, group_members(own, group), own->group_size);
  return n_nodes > 1 ? size_bytes * pl_token_copies_sent(&choice, n_nodes) : size_bytes;
}

/* ---- lowering ---- */

static pl_code number_ranks(pl_planning *state) {
  const pl_strategy *strategy = state->program->strategy;
  state->rank_of = PL_TAKE(state->arena, uint32_t, state->cluster->n_devices);
  if (state->rank_of == NULL) return no_memory(state);
  for (uint32_t rank = 0; rank < pl_strategy_n_ranks(strategy); rank++)
    state->rank_of[pl_strategy_device_of_rank(strategy, rank)] = rank;
  return PL_OK;
}

static pl_code count_groups(pl_planning *state) {
  const pl_program *program = state->program;
  state->first_raw = PL_TAKE(state->arena, uint32_t, program->n_families + 1);
  state->first_group = PL_TAKE(state->arena, uint32_t, program->n_families + 1);
  if (state->arena->failed) return no_memory(state);
  for (uint32_t f = 0; f < program->n_families; f++) {
    const pl_family *family = &program->families[f];
    state->first_group[f] = state->n_groups;
    state->first_raw[f] = state->n_raw;
    state->n_groups += family->n_groups;
    state->n_raw += family->n_groups * family->n_ops;
  }
  state->raw = PL_TAKE(state->arena, pl_raw_op, state->n_raw);
  state->patterns = PL_TAKE(state->arena, pl_pattern, state->n_raw);
  state->channels = PL_TAKE(state->arena, pl_collective_group *, state->n_groups);
  return state->arena->failed ? no_memory(state) : PL_OK;
}

static bool equal_uses(const pl_link_use *a, const pl_link_use *b, uint32_t n) {
  if (a == b) return true;         /* ops of one ring */
  for (uint32_t i = 0; i < n; i++) /* not by memcmp: the struct has padding */
    if (a[i].link != b[i].link || a[i].weight != b[i].weight) return false;
  return true;
}

/* The pattern of this group with the same links, or a new one. */
static uint32_t find_pattern(pl_planning *state, uint32_t first, uint32_t family, uint32_t group,
                             const pl_fluid_collective *fluid) {
  for (uint32_t p = first; p < state->n_patterns; p++)
    if (state->patterns[p].n_uses == fluid->spec.n_uses &&
        equal_uses(state->patterns[p].uses, fluid->uses, fluid->spec.n_uses))
      return p;
  pl_pattern *made = &state->patterns[state->n_patterns];
  *made = (pl_pattern){
      .family = family, .group = group, .uses = fluid->uses, .n_uses = fluid->spec.n_uses, .colour = family};
  return state->n_patterns++;
}

static uint64_t bits_of(double value) {
  uint64_t bits;
  value += 0.0; /* -0.0 becomes 0.0 */
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static void colour_op(pl_pattern *own, uint32_t op, const pl_raw_op *raw) {
  const uint64_t words[] = {op, (uint64_t)raw->latency, bits_of(raw->rate_cap_Bps), bits_of(raw->share_weight),
                            bits_of(raw->progress_bytes)};
  for (uint32_t i = 0; i < sizeof words / sizeof *words; i++)
    own->colour = pl_hash_word(own->colour, words[i]);
  if (raw->flight > 0) own->colour = pl_hash_word(own->colour, (uint64_t)raw->flight);
  own->rate_bound_Bps = fmax(own->rate_bound_Bps, raw->rate_cap_Bps);
}

static pl_code take_groups(pl_planning *state, uint32_t f, const pl_group_family **kept) {
  const pl_family *family = &state->program->families[f];
  pl_collective_group **channels = &state->channels[state->first_group[f]];
  pl_collective_options options = state->options->collective;
  options.sends_alone = pl_family_is_wire(family->kind);
  *kept = NULL;
  for (uint32_t group = 0; state->cache == NULL && group < family->n_groups; group++)
    PL_TRY(pl_collective_group_take(state->cluster, group_members(family, group), family->group_size, &options,
                                    state->arena, &channels[group], state->error));
  if (state->cache == NULL) return PL_OK;
  PL_TRY(pl_topology_cache_family(state->cache, family->members, family->n_groups, family->group_size,
                                  options.sends_alone, kept, state->error));
  memcpy(channels, (*kept)->groups, family->n_groups * sizeof *channels);
  return PL_OK;
}

/* Of a family by op, where a cache has them for all groups at once; NULL: by lower_op. */
typedef const pl_fluid_collective *const *kept_fluids;

static pl_code find_fluids(pl_planning *state, uint32_t f, const pl_group_family *kept, kept_fluids **fluids) {
  const pl_family *family = &state->program->families[f];
  *fluids = PL_TAKE(state->arena, kept_fluids, family->n_ops);
  if (*fluids == NULL) return no_memory(state);
  for (uint32_t op = 0; kept != NULL && op < family->n_ops; op++)
    if (!is_sent_per_node(state->program, family, op))
      PL_TRY(pl_topology_cache_family_fluids(state->cache, kept, family->ops[op].kind, family->ops[op].size_bytes,
                                             &(*fluids)[op], state->error));
  return PL_OK;
}

static pl_code lower_op(pl_planning *state, uint32_t f, uint32_t group, uint32_t op, pl_fluid_collective *fluid) {
  pl_collective_group *channels = state->channels[state->first_group[f] + group];
  pl_collective_kind kind = state->program->families[f].ops[op].kind;
  double size_bytes = pl_communication_bytes(state->cluster, state->program, f, group, op);
  if (state->cache != NULL)
    return pl_topology_cache_fluid(state->cache, channels, kind, size_bytes, fluid, state->error);
  PL_TRY(pl_collective_fluid(channels, kind, size_bytes, state->arena, fluid, state->error));
  return pl_fluid_collective_merge(state->cluster, state->arena, fluid, state->error);
}

static bool is_point_to_point(const pl_family *family) {
  return pl_family_is_wire(family->kind);
}

/* What hosts agree on before an op of the family moves. The groups inside a pass are called by the host that launches
 * it (workloads/compile/host_floor.h); gradients' and tied ones' collectives are ahead of nobody. */
static pl_ticks agreed_on(const pl_planning *state, const pl_family *family) {
  const pl_framework *framework = pl_framework_or_ideal(state->program->job->framework);
  if (is_point_to_point(family)) return pl_ticks_from_s(framework->pipeline.send_wait_s);
  bool inside = family->kind == PL_FAMILY_TENSOR || family->kind == PL_FAMILY_HEADS ||
                family->kind == PL_FAMILY_CONTEXT || family->kind == PL_FAMILY_EXPERT;
  return inside ? 0 : pl_ticks_from_s(framework->launch.collective_rank_s * family->group_size);
}

static pl_code lower_group(pl_planning *state, uint32_t f, uint32_t group, const kept_fluids *fluids) {
  const pl_family *family = &state->program->families[f];
  pl_ticks agreed = agreed_on(state, family);
  uint32_t first_pattern = state->n_patterns;
  for (uint32_t op = 0; op < family->n_ops; op++) {
    pl_fluid_collective own = {0};
    const pl_fluid_collective *fluid = fluids[op] != NULL ? fluids[op][group] : &own;
    if (fluid == &own) PL_TRY(lower_op(state, f, group, op, &own));
    pl_raw_op *raw = &state->raw[state->first_raw[f] + group * family->n_ops + op];
    *raw = (pl_raw_op){.pattern = find_pattern(state, first_pattern, f, group, fluid),
                       .latency = pl_ticks_sum(fluid->spec.latency, agreed),
                       .flight = fluid->flight,
                       .rate_cap_Bps = fluid->spec.rate_cap_Bps,
                       .share_weight = fluid->spec.share_weight,
                       .progress_bytes = fluid->progress_bytes,
                       .source = fluid->spec.source,
                       .destination = fluid->spec.destination};
    colour_op(&state->patterns[raw->pattern], op, raw);
  }
  return PL_OK;
}

static pl_code lower_family(pl_planning *state, uint32_t f) {
  const pl_family *family = &state->program->families[f];
  const pl_group_family *kept;
  kept_fluids *fluids;
  if (family->n_ops == 0) return PL_OK;
  PL_TRY(take_groups(state, f, &kept));
  if (state->options->chunked && agreed_on(state, family) > 0)
    return pl_fail(state->error, PL_UNSUPPORTED,
                   "the framework's send_wait and collective_rank are simulated with whole collectives only: leave out "
                   "--collectives chunked and --network simgrid");
  if (state->options->chunked) return PL_OK;
  PL_TRY(find_fluids(state, f, kept, &fluids));
  for (uint32_t group = 0; group < family->n_groups; group++)
    PL_TRY(lower_group(state, f, group, fluids));
  return PL_OK;
}

/* ---- the fold problem ---- */

/* Stages and schedules are below 2^24 each; no hash, whose collisions would be start colours that nobody checks. */
static uint64_t rank_colour(const pl_planning *state, uint32_t rank, int32_t stage, int32_t schedule) {
  uint32_t device = pl_strategy_device_of_rank(state->program->strategy, rank);
  uint32_t profile = state->cluster->devices[device].profile;
  if (state->options->marks != NULL && state->options->fold)
    profile += state->options->marks[device] * state->cluster->n_profiles;
  PL_ASSERT(profile < 1u << 16);
  return (uint64_t)stage << 40 | (uint64_t)schedule << 16 | profile;
}

/* Not folded, links have none. */
static uint64_t *colour_links(pl_planning *state) {
  const pl_link *links = state->cluster->links;
  uint32_t n = state->options->fold ? state->cluster->n_links : 0;
  uint64_t *colours = pl_arena_take(state->arena, n * sizeof *colours, _Alignof(uint64_t));
  for (uint32_t l = 0; colours != NULL && l < n; l++)
    colours[l] = pl_hash_word(bits_of(links[l].capacity_Bps), links[l].policy);
  return colours;
}

static uint64_t *colour_ranks(pl_planning *state) {
  const pl_strategy *strategy = state->program->strategy;
  const pl_rank_strides strides = pl_strategy_rank_strides(strategy);
  uint64_t *colours = PL_TAKE(state->arena, uint64_t, pl_strategy_n_ranks(strategy));
  for (int32_t stage = 0; colours != NULL && stage < strategy->pp; stage++)
    for (int32_t r = 0; r < pl_strategy_replicas(strategy); r++)
      for (int32_t t = 0; t < strategy->tmp; t++) {
        uint32_t rank = pl_rank_at(&strides, stage, r, t);
        colours[rank] = rank_colour(state, rank, stage, pl_program_schedule(state->program, r));
      }
  return colours;
}

static pl_code identity(pl_planning *state, const double *capacity_Bps) {
  pl_folding *folding = &state->folding;
  PL_TRY(pl_fold_identity(&state->problem, state->arena, &folding->fold, state->error));
  return pl_quotient_take(&state->problem, &folding->fold, capacity_Bps, NULL, state->arena, &folding->quotient,
                          state->error);
}

static pl_code fold(pl_planning *state, pl_fold_transfer *transfers, pl_link_use *uses, const double *capacity_Bps) {
  if (!state->options->fold) return identity(state, capacity_Bps);
  if (state->cache == NULL)
    return pl_folding_take(&state->problem, transfers, uses, capacity_Bps, state->arena, &state->folding, state->error);
  const pl_folding *kept;
  PL_TRY(pl_topology_cache_folding(state->cache, &state->problem, capacity_Bps, state->arena, &kept, state->error));
  state->folding = *kept;
  return PL_OK;
}

static pl_code make_problem(pl_planning *state) {
  const pl_cluster *cluster = state->cluster;
  uint32_t n_members = 0, n_uses = 0;
  for (uint32_t p = 0; p < state->n_patterns; p++) {
    n_members += state->program->families[state->patterns[p].family].group_size;
    n_uses += state->patterns[p].n_uses;
  }
  uint64_t *rank_colours = colour_ranks(state), *link_colours = colour_links(state);
  pl_fold_transfer *transfers = PL_TAKE(state->arena, pl_fold_transfer, state->n_patterns);
  pl_fold_member *members = pl_arena_take(state->arena, n_members * sizeof *members, _Alignof(pl_fold_member));
  pl_link_use *uses = pl_arena_take(state->arena, n_uses * sizeof *uses, _Alignof(pl_link_use));
  double *capacity_Bps = pl_arena_take(state->arena, cluster->n_links * sizeof *capacity_Bps, _Alignof(double));
  if (state->arena->failed) return no_memory(state);
  for (uint32_t l = 0; l < cluster->n_links; l++)
    capacity_Bps[l] = cluster->links[l].capacity_Bps;
  n_members = n_uses = 0;
  for (uint32_t p = 0; p < state->n_patterns; p++) {
    const pl_pattern *own = &state->patterns[p];
    const pl_family *family = &state->program->families[own->family];
    transfers[p] = (pl_fold_transfer){.colour = own->colour,
                                      .first_member = n_members,
                                      .n_members = family->group_size,
                                      .first_use = n_uses,
                                      .n_uses = own->n_uses};
    for (uint32_t i = 0; i < family->group_size; i++)
      members[n_members++] =
          (pl_fold_member){state->rank_of[group_members(family, own->group)[i]], is_point_to_point(family) ? i : 0};
    if (own->n_uses > 0) memcpy(&uses[n_uses], own->uses, own->n_uses * sizeof *uses);
    n_uses += own->n_uses;
  }
  state->problem = (pl_fold_problem){.n_devices = pl_strategy_n_ranks(state->program->strategy),
                                     .n_links = cluster->n_links,
                                     .n_transfers = state->n_patterns,
                                     .device_colour = rank_colours,
                                     .link_colour = link_colours,
                                     .transfers = transfers,
                                     .members = members,
                                     .uses = uses};
  return fold(state, transfers, uses, capacity_Bps);
}

/* ---- classes ---- */

static uint8_t stream_of(const pl_family *family, uint32_t member) {
  switch (family->kind) {
  case PL_FAMILY_TENSOR:
    return PL_STREAM_FEATURE;
  case PL_FAMILY_HEADS:
    return PL_STREAM_HEADS;
  case PL_FAMILY_CONTEXT:
    return PL_STREAM_CONTEXT;
  case PL_FAMILY_EXPERT:
    return PL_STREAM_EXPERT;
  case PL_FAMILY_EXPERT_DATA:
  case PL_FAMILY_COPIES: /* beside the next reduce-scatter, as FSDP runs it; no program has both */
    return PL_STREAM_EXPERT_GRADIENT;
  case PL_FAMILY_DOWN:
    return member == 0 ? PL_STREAM_SEND_DOWN : PL_STREAM_RECEIVE_DOWN;
  case PL_FAMILY_UP:
    return member == 0 ? PL_STREAM_SEND_UP : PL_STREAM_RECEIVE_UP;
  case PL_FAMILY_DOWN_2:
    return member == 0 ? PL_STREAM_SEND_DOWN_2 : PL_STREAM_RECEIVE_DOWN_2;
  case PL_FAMILY_UP_2:
    return member == 0 ? PL_STREAM_SEND_UP_2 : PL_STREAM_RECEIVE_UP_2;
  case PL_FAMILY_EMBEDDING:
    return PL_STREAM_TIED;
  default:
    return PL_STREAM_GRADIENT;
  }
}

/* Streams whose transfers take turns: what a pass has inside its layers is in the order of its ops, unless another runs
 * beside it. */
static uint8_t turn_of(const pl_strategy *strategy, const pl_family *family) {
  uint8_t stream = stream_of(family, 0);
  if (pl_strategy_hides_tokens(strategy)) return stream;
  bool inside = stream == PL_STREAM_CONTEXT || stream == PL_STREAM_EXPERT || stream == PL_STREAM_HEADS;
  return inside ? PL_STREAM_FEATURE : stream;
}

/* The groups of a family fall into classes as their first patterns do; without ops a family has no classes. */
static pl_code number_groups(pl_planning *state) {
  pl_communication_plan *plan = state->plan;
  pl_group_class *classes = PL_TAKE(state->arena, pl_group_class, state->n_groups);
  state->class_of_group = PL_TAKE(state->arena, uint32_t, state->n_groups);
  uint32_t *of_pattern = PL_TAKE(state->arena, uint32_t, state->n_patterns + 1);
  if (state->arena->failed) return no_memory(state);
  memset(of_pattern, 0xff, state->n_patterns * sizeof *of_pattern);
  const uint32_t *class_of = state->folding.fold.transfers.class_of;
  PL_ASSERT(class_of != NULL || state->options->chunked);
  for (uint32_t f = 0; f < state->program->n_families; f++) {
    const pl_family *family = &state->program->families[f];
    for (uint32_t g = 0; g < family->n_groups; g++) {
      uint32_t *class = &state->class_of_group[state->first_group[f] + g];
      *class = PL_NONE;
      if (family->n_ops == 0) continue;
      uint32_t *known = class;
      if (!state->options->chunked)
        known = &of_pattern[class_of[state->raw[state->first_raw[f] + g * family->n_ops].pattern]];
      if (*known == PL_NONE) {
        *known = plan->n_group_classes++;
        classes[*known] =
            (pl_group_class){.family = f, .group = g, .channels = state->channels[state->first_group[f] + g]};
      }
      *class = *known;
    }
  }
  plan->group_classes = state->group_classes = classes;
  return PL_OK;
}

int pl_communication_slot(pl_group_role role) {
  return role == PL_GROUP_CONTEXT  ? PL_SLOT_CONTEXT
         : role == PL_GROUP_EXPERT ? PL_SLOT_EXPERT
         : role == PL_GROUP_HEADS  ? PL_SLOT_HEADS
                                   : PL_SLOT_TENSOR;
}

static uint32_t slot_group(const pl_planning *state, const pl_device_class *own, int slot) {
  static const uint8_t kinds[PL_SLOT_COUNT] = {
      [PL_SLOT_TENSOR] = PL_FAMILY_TENSOR,       [PL_SLOT_DATA] = PL_FAMILY_DATA,
      [PL_SLOT_SEND_DOWN] = PL_FAMILY_DOWN,      [PL_SLOT_RECEIVE_DOWN] = PL_FAMILY_DOWN,
      [PL_SLOT_SEND_UP] = PL_FAMILY_UP,          [PL_SLOT_RECEIVE_UP] = PL_FAMILY_UP,
      [PL_SLOT_EMBEDDING] = PL_FAMILY_EMBEDDING, [PL_SLOT_CONTEXT] = PL_FAMILY_CONTEXT,
      [PL_SLOT_EXPERT] = PL_FAMILY_EXPERT,       [PL_SLOT_EXPERT_DATA] = PL_FAMILY_EXPERT_DATA,
      [PL_SLOT_COPIES] = PL_FAMILY_COPIES,       [PL_SLOT_HEADS] = PL_FAMILY_HEADS,
      [PL_SLOT_SEND_DOWN_2] = PL_FAMILY_DOWN_2,  [PL_SLOT_RECEIVE_DOWN_2] = PL_FAMILY_DOWN_2,
      [PL_SLOT_SEND_UP_2] = PL_FAMILY_UP_2,      [PL_SLOT_RECEIVE_UP_2] = PL_FAMILY_UP_2};
  const pl_program *program = state->program;
  pl_family_kind kind = (pl_family_kind)kinds[slot];
  int32_t stage = own->stage;
  bool receives = slot == PL_SLOT_RECEIVE_DOWN || slot == PL_SLOT_RECEIVE_UP || slot == PL_SLOT_RECEIVE_DOWN_2 ||
                  slot == PL_SLOT_RECEIVE_UP_2;
  if (receives) stage = pl_program_sender(program, kind, stage);
  uint32_t family = program->family_of[stage][kind];
  if (family == PL_NONE) return PL_NONE;
  int32_t group = pl_program_group(program, kind, own->replica, own->tensor);
  return state->class_of_group[state->first_group[family] + (uint32_t)group];
}

static pl_code number_devices(pl_planning *state) {
  const pl_strategy *strategy = state->program->strategy;
  const pl_rank_strides strides = pl_strategy_rank_strides(strategy);
  uint32_t n_classes = state->folding.fold.devices.n_classes;
  pl_device_class *classes = PL_TAKE(state->arena, pl_device_class, n_classes);
  if (classes == NULL) return no_memory(state);
  PL_ASSERT(state->folding.fold.devices.class_of != NULL);
  for (int32_t stage = 0; stage < strategy->pp; stage++)
    for (int32_t r = 0; r < pl_strategy_replicas(strategy); r++)
      for (int32_t t = 0; t < strategy->tmp; t++) {
        uint32_t rank = pl_rank_at(&strides, stage, r, t), class = state->folding.fold.devices.class_of[rank];
        if (state->folding.fold.devices.first[class] != rank) continue;
        pl_device_class *own = &classes[class];
        *own = (pl_device_class){
            pl_strategy_device_of_rank(strategy, rank), state->folding.fold.devices.size[class], stage, r, t, {0}};
        for (int slot = 0; slot < PL_SLOT_COUNT; slot++)
          own->group_class[slot] = slot_group(state, own, slot);
      }
  state->plan->device_classes = classes;
  state->plan->n_device_classes = n_classes;
  return PL_OK;
}

static pl_code find_participants(pl_planning *state) {
  pl_communication_plan *plan = state->plan;
  uint32_t most = 0, n = 0;
  for (uint32_t c = 0; c < plan->n_group_classes; c++)
    most += state->program->families[plan->group_classes[c].family].group_size;
  pl_participant *participants = PL_TAKE(state->arena, pl_participant, most);
  uint32_t *seen =
      PL_TAKE(state->arena, uint32_t, plan->n_device_classes); /* 1 + last (group class, stream) that met it */
  if (state->arena->failed) return no_memory(state);
  for (uint32_t c = 0; c < plan->n_group_classes; c++) {
    pl_group_class *class = &state->group_classes[c];
    const pl_family *family = &state->program->families[class->family];
    class->first_participant = n;
    for (uint32_t i = 0; i < family->group_size; i++) {
      uint32_t device = state->folding.fold.devices.class_of[state->rank_of[group_members(family, class->group)[i]]];
      if (seen[device] == c + 1 && !is_point_to_point(family)) continue;
      seen[device] = c + 1;
      participants[n++] = (pl_participant){device, stream_of(family, i)};
    }
    class->n_participants = n - class->first_participant;
  }
  plan->participants = participants;
  return PL_OK;
}

/* ---- quotient and specs ---- */

/* The folding's quotient with what it leaves open: whose transfers take turns, and, in copies because the folding may
 * be a cache's, which links are contended. */
static pl_code make_quotient(pl_planning *state) {
  pl_communication_plan *plan = state->plan;
  const pl_fold *fold = &state->folding.fold;
  pl_quotient *quotient = &plan->quotient;
  *quotient = state->folding.quotient;
  quotient->transfers = PL_TAKE(state->arena, pl_quotient_transfer, quotient->n_transfers);
  quotient->uses = PL_TAKE(state->arena, pl_link_use, quotient->n_uses);
  double *bound_Bps = PL_TAKE(state->arena, double, quotient->n_transfers);
  if (state->arena->failed) return no_memory(state);
  for (uint32_t class = 0; class < quotient->n_transfers; class ++) {
    const pl_pattern *first = &state->patterns[fold->transfers.first[class]];
    const pl_family *family = &state->program->families[first->family];
    uint32_t device = fold->devices.class_of[state->rank_of[group_members(family, first->group)[0]]];
    quotient->transfers[class] = state->folding.quotient.transfers[class];
    quotient->transfers[class].serial = device * PL_STREAM_KIND_COUNT + turn_of(state->program->strategy, family);
  }
  for (uint32_t use = 0; use < quotient->n_uses; use++)
    quotient->uses[use] = state->folding.quotient.uses[use];
  for (uint32_t p = 0; p < state->n_patterns; p++) {
    uint32_t class = fold->transfers.class_of[p];
    bound_Bps[class] = fmax(bound_Bps[class], state->patterns[p].rate_bound_Bps);
  }
  if (state->options->prune) PL_TRY(pl_quotient_rivals(quotient, bound_Bps, state->arena, state->error));
  plan->n_transfer_classes = quotient->n_transfers;
  plan->n_implied_links = state->folding.n_implied_links;
  plan->link_of_class = fold->links.first;
  return PL_OK;
}

pl_code pl_communication_plan_take(const pl_cluster *cluster, const pl_program *program,
                                   const pl_communication_options *options, pl_arena *arena,
                                   pl_communication_plan *plan, pl_error *error) {
  *plan = (pl_communication_plan){0};
  pl_planning state = {
      .cluster = cluster, .program = program, .options = options, .arena = arena, .plan = plan, .error = error};
  state.cache = options->cache;
  if (state.cache != NULL) pl_topology_cache_begin(state.cache, cluster, &options->collective);
  PL_TRY(number_ranks(&state));
  PL_TRY(count_groups(&state));
  for (uint32_t f = 0; f < program->n_families; f++)
    PL_TRY(lower_family(&state, f));
  PL_TRY(make_problem(&state));
  PL_TRY(number_groups(&state));
  PL_TRY(number_devices(&state));
  PL_TRY(find_participants(&state));
  if (options->chunked) return PL_OK;
  PL_TRY(make_quotient(&state));
  PL_TRY(pl_communication_make_specs(&state));
  if (!options->prune) return PL_OK;
  return pl_rivals_find(cluster, program, options->marks, state.group_classes, plan, arena, error);
}
