/* See workloads/assign/stage_costs.h. */
#include "workloads/assign/stage_costs.h"

#include <math.h>

#include "workloads/assign/family_time.h"
#include "workloads/compile/block_scale.h"
#include "workloads/cost/op_cost.h"
#include "workloads/memory/stage_memory.h"

enum { FORWARD = 0, BACKWARD, N_PASSES, MOST_KNOWN = 32 };

typedef struct known_time {
  uint8_t kind;
  double size_bytes, time_s;
} known_time;

typedef struct costing {
  const pl_cluster *cluster;
  const pl_job *job;
  const pl_strategy *strategy;
  const pl_model *model;
  pl_program *program;
  pl_block_cache *blocks;
  const pl_communication_plan *plan; /* where blocks were measured; else NULL */
  pl_family_time communication;
  double (*compute_s)[PL_MODEL_CLASSES_MAX][N_PASSES]; /* by device type and class of blocks */
  pl_training_state state;
  pl_arena *arena;
  pl_error *error;
} costing;

/* One stage of devices. */
typedef struct pricing {
  int32_t stage;
  double block_s[PL_MODEL_CLASSES_MAX][N_PASSES];
  double floor_s[PL_MODEL_CLASSES_MAX][N_PASSES]; /* of measured blocks, collectives inside */
  double reduce_s[2], gather_s[2];                /* per parameter: of all but experts, of experts */
  double constant_s, optimizer_s;                 /* optimizer: per parameter that is owned */
  double kept_s; /* what goes over gradients around their reduction: per gradient that is kept */
  double usable_bytes, passing_bytes;
  int32_t in_flight;
} pricing;

static pl_code no_memory(const costing *state) {
  return pl_fail_memory(state->error, "the prices of the stages");
}

/* ---- computing ---- */

static double list_s(const pl_op_list *list, const pl_op_time *times) {
  double time_s = 0;
  for (uint32_t i = 0; i < list->n_ops; i++)
    if (list->ops[i].kind != PL_OP_COLLECTIVE) time_s += times[i].time_s;
  return time_s;
}

static pl_code price_blocks(costing *state) {
  state->compute_s = (void *)PL_TAKE(state->arena, double, state->cluster->n_profiles *PL_MODEL_CLASSES_MAX *N_PASSES);
  if (state->compute_s == NULL) return no_memory(state);
  for (uint32_t p = 0; p < state->cluster->n_profiles; p++) {
    const pl_block_prices *prices;
    PL_TRY(pl_block_cache_prices(state->blocks, state->model, state->program->blocks, &state->cluster->profiles[p],
                                 state->arena, &prices, state->error));
    for (int32_t c = 0; c < pl_model_n_classes(state->model); c++) {
      const pl_block_program *block = &state->program->blocks[c];
      state->compute_s[p][c][FORWARD] = list_s(&block->forward, prices->times[c][PL_PASS_FORWARD]);
      state->compute_s[p][c][BACKWARD] = list_s(&block->backward, prices->times[c][PL_PASS_BACKWARD]);
    }
  }
  return PL_OK;
}

/* Share of the microbatches of the replica that has most. */
static double share_of(const costing *state, int32_t replica) {
  int64_t n = pl_strategy_microbatches(state->strategy, state->job, replica / pl_strategy_cp(state->strategy));
  return (double)n / state->program->n_microbatches;
}

static void at_least(double *value, double other) {
  *value = fmax(*value, other);
}

static void price_device(const costing *state, pricing *own, int32_t replica, int32_t tensor) {
  uint32_t device = pl_strategy_device(state->strategy, own->stage, replica, tensor);
  uint32_t p = state->cluster->devices[device].profile;
  const pl_device_profile *profile = &state->cluster->profiles[p];
  double share = share_of(state, replica);
  for (int32_t c = 0; c < pl_model_n_classes(state->model) && state->plan == NULL; c++)
    for (int pass = 0; pass < N_PASSES; pass++)
      at_least(&own->block_s[c][pass], share * state->compute_s[p][c][pass]);
  own->usable_bytes =
      fmin(own->usable_bytes, pl_held_memory_of(state->cluster, state->program, own->stage, profile, 0, NULL).usable);
  at_least(&own->optimizer_s, pl_optimizer_cost(profile, 1e9, state->state.update_traffic_bytes).time_s / 1e9);
  double kept = pl_program_whole_traffic(state->job, state->strategy);
  if (kept > 0) at_least(&own->kept_s, pl_optimizer_cost(profile, 1e9, kept).time_s / 1e9);
}

/* With measured blocks: what devices of a class take. */
static void price_class(const costing *state, pricing *own, const pl_device_class *class) {
  const pl_device_profile *profile = pl_cluster_profile(state->cluster, class->device);
  double share = share_of(state, class->replica);
  pl_block_scale scales[PL_MODEL_CLASSES_MAX][2];
  PL_ASSERT(pl_block_scales_of(state->cluster, state->program, state->plan, class, scales));
  for (int32_t c = 0; c < pl_model_n_classes(state->model); c++)
    for (int pass = 0; pass < N_PASSES; pass++) {
      const pl_block_program *block = &state->program->blocks[c];
      const pl_op_list *list = pass == FORWARD ? &block->forward : &block->backward;
      double time_s = 0;
      for (uint32_t i = 0; i < list->n_ops; i++)
        if (list->ops[i].kind != PL_OP_COLLECTIVE)
          time_s += pl_block_scaled_cost(pl_op_cost(profile, &list->ops[i]), scales, c, &list->ops[i]).time_s;
      at_least(&own->block_s[c][pass], share * time_s);
      at_least(&own->floor_s[c][pass], share * scales[c][pass].floor_s);
    }
}

static void price_devices(const costing *state, pricing *own) {
  own->usable_bytes = INFINITY;
  for (int32_t r = 0; r < pl_strategy_replicas(state->strategy); r++)
    for (int32_t t = 0; t < state->strategy->tmp; t++)
      price_device(state, own, r, t);
  for (uint32_t c = 0; state->plan != NULL && c < state->plan->n_device_classes; c++)
    if (state->plan->device_classes[c].stage == own->stage) price_class(state, own, &state->plan->device_classes[c]);
}

static pl_code take_plan(costing *state, const pl_collective_options *options) {
  if (state->job->op_profile == NULL) return PL_OK;
  pl_communication_plan *plan = PL_TAKE(state->arena, pl_communication_plan, 1);
  const pl_communication_options how = {.collective = *options, .fold = true, .alone = true};
  if (plan == NULL) return no_memory(state);
  state->plan = plan;
  return pl_communication_plan_take(state->cluster, state->program, &how, state->arena, plan, state->error);
}

/* ---- communication ---- */

static const pl_family *family_of(const costing *state, int32_t stage, pl_family_kind kind) {
  uint32_t index = state->program->family_of[stage][kind];
  return index == PL_NONE ? NULL : &state->program->families[index];
}

/* Times of a family's ops, each found once. */
static pl_code find_time(costing *state, known_time *known, uint32_t *n, const pl_op *op, double *time_s) {
  for (uint32_t i = 0; i < *n; i++)
    if (known[i].kind == op->collective && known[i].size_bytes == op->size_bytes) {
      *time_s = known[i].time_s;
      return PL_OK;
    }
  PL_TRY(pl_family_time_of(&state->communication, (pl_collective_kind)op->collective, op->size_bytes, time_s,
                           state->error));
  if (*n < MOST_KNOWN) known[(*n)++] = (known_time){op->collective, op->size_bytes, *time_s};
  return PL_OK;
}

/* Adds to the blocks' times the collectives of one family that computing waits for. */
static pl_code price_collectives(costing *state, pricing *own, pl_family_kind family_kind) {
  const pl_family *family = family_of(state, own->stage, family_kind);
  known_time known[MOST_KNOWN];
  uint32_t n_known = 0;
  if (family == NULL) return PL_OK;
  PL_TRY(pl_family_time_begin(&state->communication, family, state->error));
  for (int32_t c = 0; c < pl_model_n_classes(state->model); c++)
    for (int pass = 0; pass < N_PASSES; pass++) {
      const pl_block_program *block = &state->program->blocks[c];
      const pl_op_list *list = pass == FORWARD ? &block->forward : &block->backward;
      for (uint32_t i = 0; i < list->n_ops; i++) {
        const pl_op *op = &list->ops[i];
        double time_s;
        if (op->kind != PL_OP_COLLECTIVE || op->overlap != PL_OVERLAP_NONE ||
            pl_program_family_kind((pl_group_role)op->group) != family_kind)
          continue;
        PL_TRY(find_time(state, known, &n_known, op, &time_s));
        own->block_s[c][pass] += time_s;
      }
    }
  return PL_OK;
}

/* constant_s += what an empty one takes; *slope_s: per byte, between half and twice `typical_bytes`. */
static pl_code price_line(costing *state, const pl_family *family, pl_collective_kind kind, double typical_bytes,
                          double *constant_s, double *slope_s) {
  double small_s, large_s;
  *slope_s = 0;
  if (family == NULL || !(typical_bytes > 0)) return PL_OK;
  PL_TRY(pl_family_time_begin(&state->communication, family, state->error));
  PL_TRY(pl_family_time_of(&state->communication, kind, typical_bytes / 2, &small_s, state->error));
  PL_TRY(pl_family_time_of(&state->communication, kind, typical_bytes * 2, &large_s, state->error));
  *slope_s = fmax(0, (large_s - small_s) / (1.5 * typical_bytes));
  *constant_s += fmax(0, small_s - *slope_s * typical_bytes / 2);
  return PL_OK;
}

static pl_code price_gradients(costing *state, pricing *own) {
  const pl_stage_program *stage = &state->program->stages[own->stage];
  const pl_collective_kind reduce = pl_program_reduction(state->program);
  const double held[2] = {stage->parameters - stage->expert_parameters, stage->expert_parameters};
  static const pl_family_kind kinds[2] = {PL_FAMILY_DATA, PL_FAMILY_EXPERT_DATA};
  const pl_training_state *bytes = &state->state;
  for (int experts = 0; experts <= 1; experts++) {
    const pl_family *family = family_of(state, own->stage, kinds[experts]);
    PL_TRY(price_line(state, family, reduce, held[experts] * bytes->reduced_bytes, &own->constant_s,
                      &own->reduce_s[experts]));
    own->reduce_s[experts] *= bytes->reduced_bytes;
    if (state->strategy->zero == 0) continue;
    PL_TRY(price_line(state, family, PL_ALL_GATHER, held[experts] * bytes->gathered_bytes, &own->constant_s,
                      &own->gather_s[experts]));
    own->gather_s[experts] *= bytes->gathered_bytes;
  }
  double share = bytes->reduced_bytes / pl_strategy_sharers(state->strategy), across_s = 0;
  PL_TRY(price_line(state, family_of(state, own->stage, PL_FAMILY_COPIES), PL_ALL_REDUCE, stage->parameters * share,
                    &own->constant_s, &across_s));
  own->reduce_s[0] += across_s * share;
  return PL_OK;
}

/* A tied embedding's all-reduce between the stages of embedding and head: neither's optimizer runs before it is over,
 * and it does not begin before the first stage has ended. */
static pl_code price_embedding(costing *state, pricing *own) {
  const pl_family *family = family_of(state, 0, PL_FAMILY_EMBEDDING);
  double time_s, tied = 0;
  if (family == NULL || (own->stage != 0 && own->stage != state->strategy->pp - 1)) return PL_OK;
  for (int32_t c = 0; c < pl_model_n_classes(state->model); c++)
    tied = fmax(tied, state->program->blocks[c].tied_parameters);
  if (state->strategy->zero >= 2) tied /= pl_strategy_sharers(state->strategy);
  PL_TRY(pl_family_time_begin(&state->communication, family, state->error));
  PL_TRY(pl_family_time_of(&state->communication, PL_ALL_REDUCE, tied * state->state.reduced_bytes, &time_s,
                           state->error));
  own->constant_s += time_s;
  return PL_OK;
}

/* ---- memory of a stage, without its layers ---- */

static double passing_of(const pl_block_program *block) {
  return fmax(block->forward_peak_bytes - block->saved_bytes, block->backward_peak_bytes);
}

/* Of any block that the stage may have: layers anywhere, the ends at the ends; of unlike blocks, all anywhere. */
static double largest_passing(const costing *state, int32_t stage) {
  const int32_t first = PL_MODEL_BLOCKS_BEFORE_LAYERS, end = first + state->model->n_layers;
  bool has_parts = state->model->unlike.parts != NULL;
  double largest = 0;
  for (int32_t block = 0; block < pl_model_n_blocks(state->model); block++) {
    bool fits = has_parts || (block < first ? stage == 0 : block < end || stage == state->strategy->pp - 1);
    const pl_block_program *program = &state->program->blocks[pl_model_block_class(state->model, block)];
    if (fits) largest = fmax(largest, passing_of(program));
  }
  return largest;
}

static void price_memory(costing *state, pricing *own) {
  const pl_stage_program *stage = &state->program->stages[own->stage];
  pl_resident_memory resident = pl_resident_memory_of(state->program, own->stage);
  own->passing_bytes = resident.buffers;
  own->passing_bytes += largest_passing(state, own->stage);
  for (int32_t i = 0; i < state->program->n_schedules; i++) {
    int32_t in_flight = pl_schedule_in_flight(&stage->schedules[i]);
    if (in_flight > own->in_flight) own->in_flight = in_flight;
  }
}

/* ---- layers ---- */

typedef struct layer_price {
  double time_s, backward_s, sync_s, memory_bytes;
} layer_price;

/* Of one block on the stage, added to its layer's. */
static void add_block(const costing *state, const pricing *own, int32_t block, double *backward_s, double *reduction_s,
                      layer_price *price) {
  const pl_strategy *strategy = state->strategy;
  int32_t c = pl_model_block_class(state->model, block);
  const pl_block_program *program = &state->program->blocks[c];
  const pl_training_state *bytes = &state->state;
  bool apart = pl_program_has_expert_data(state->model, strategy);
  double experts = apart ? program->expert_parameters : 0, rest = program->parameters - experts;
  if (program->kind == PL_BLOCK_HEAD && strategy->pp > 1) rest += program->tied_parameters;
  double whole = rest + experts;
  double sharded = rest / pl_program_shards(state->program, false) + experts / pl_program_shards(state->program, true);
  price->time_s += own->block_s[c][FORWARD] + own->block_s[c][BACKWARD];
  *backward_s += own->block_s[c][BACKWARD];
  *reduction_s += rest * own->reduce_s[0] + experts * own->reduce_s[1];
  price->sync_s += rest * own->gather_s[0] + experts * own->gather_s[1];
  price->sync_s += (strategy->zero >= 1 ? sharded : whole) * own->optimizer_s;
  price->sync_s += (strategy->zero >= 2 ? sharded : whole) * own->kept_s;
  int32_t sharded_from = bytes->cast_bytes > 0 ? 2 : 3;
  double state_bytes = (strategy->zero >= sharded_from ? sharded : whole) * bytes->parameter_bytes +
                       (strategy->zero >= 3 ? 0 : whole) * bytes->cast_bytes +
                       (strategy->zero >= 2 ? sharded : whole) * (bytes->gradient_bytes) +
                       (strategy->zero >= 1 ? sharded : whole) * bytes->optimizer_bytes;
  double kept_bytes = own->in_flight * program->saved_bytes + whole * bytes->pass_gradient_bytes;
  price->memory_bytes += state_bytes + fmax(kept_bytes, (strategy->zero >= 1 ? sharded : whole) * bytes->update_bytes);
}

static layer_price price_layer(const costing *state, const pricing *own, int32_t layer) {
  layer_price price = {0};
  double backward_s = 0, reduction_s = 0;
  int32_t n_layers = state->model->n_layers, first = layer + PL_MODEL_BLOCKS_BEFORE_LAYERS, last = first;
  if (layer == 0) first = 0;
  if (layer == n_layers - 1) last = pl_model_n_blocks(state->model) - 1;
  for (int32_t block = first; block <= last; block++)
    add_block(state, own, block, &backward_s, &reduction_s, &price);
  price.backward_s = backward_s;
  price.sync_s += state->strategy->overlap ? fmax(0, reduction_s - backward_s) : reduction_s;
  return price;
}

typedef struct tables {
  double **time_s, **backward_s, **cut_s, **sync_s, **slack_s, **memory_bytes, *constant_s, *room_bytes, *in_flight;
} tables;

static void fill_chunk(const costing *state, const pricing *own, int32_t chunk, const tables *out) {
  double share = state->strategy->vpp;
  for (int32_t layer = 0; layer < state->model->n_layers; layer++) {
    layer_price price = price_layer(state, own, layer);
    out->backward_s[chunk][layer] = price.backward_s;
    out->time_s[chunk][layer + 1] = out->time_s[chunk][layer] + price.time_s;
    out->sync_s[chunk][layer + 1] = out->sync_s[chunk][layer] + share * price.sync_s;
    out->memory_bytes[chunk][layer + 1] = out->memory_bytes[chunk][layer] + price.memory_bytes;
  }
  out->constant_s[chunk] = own->constant_s;
  /* no stage waits for a round trip when all microbatches fit in, nor where all forward passes come first; the halves
   * of backward passes fill the pauses */
  bool waits = state->strategy->schedule == PL_SCHEDULE_1F1B && state->strategy->vpp == 1;
  out->in_flight[chunk] = waits && own->in_flight < state->program->n_microbatches ? own->in_flight : (double)INFINITY;
  out->room_bytes[chunk] = (own->usable_bytes - own->passing_bytes) / share;
}

static pl_code price_stage(costing *state, int32_t stage, const tables *out) {
  static const pl_family_kind inside[] = {PL_FAMILY_TENSOR, PL_FAMILY_HEADS, PL_FAMILY_CONTEXT, PL_FAMILY_EXPERT};
  pl_arena_mark scratch = pl_arena_mark_here(state->arena);
  pricing own = {.stage = stage};
  price_devices(state, &own);
  for (int i = 0; i < 4; i++)
    PL_TRY(price_collectives(state, &own, inside[i]));
  for (int32_t c = 0; c < pl_model_n_classes(state->model); c++)
    for (int pass = 0; pass < N_PASSES; pass++)
      at_least(&own.block_s[c][pass], own.floor_s[c][pass]);
  PL_TRY(price_gradients(state, &own));
  PL_TRY(price_embedding(state, &own));
  price_memory(state, &own);
  /* in flight: passes of chunks, spread over the chunks of the stage */
  own.in_flight = (own.in_flight + state->strategy->vpp - 1) / state->strategy->vpp;
  for (int32_t place = 0; place < state->strategy->vpp; place++)
    fill_chunk(state, &own, pl_strategy_chunk_at(state->strategy, stage, place), out);
  pl_arena_release_to(state->arena, scratch);
  return PL_OK;
}

/* ---- cuts ---- */

static pl_code send_s(costing *state, int32_t stage, pl_family_kind kind, double size_bytes, double *time_s) {
  const pl_family *family = family_of(state, stage, kind);
  *time_s = 0;
  if (family == NULL) return PL_OK;
  bool splits = state->job->split_sends && state->strategy->tmp > 1 && !state->strategy->sp;
  double gather_s = 0;
  PL_TRY(pl_family_time_begin(&state->communication, family, state->error));
  PL_TRY(pl_family_time_of(&state->communication, PL_SEND, splits ? size_bytes / state->strategy->tmp : size_bytes,
                           time_s, state->error));
  if (!splits) return PL_OK;
  int32_t receiver = pl_program_receiver(state->program, kind, stage);
  PL_TRY(pl_family_time_begin(&state->communication, family_of(state, receiver, PL_FAMILY_TENSOR), state->error));
  PL_TRY(pl_family_time_of(&state->communication, PL_ALL_GATHER, size_bytes, &gather_s, state->error));
  *time_s += gather_s;
  return PL_OK;
}

/* What lies between the end of a stage's last backward pass and that of the first stage: the backward passes of the
 * layers before it, each on the fastest of the stages that may have it. Sending them is left out. */
static void fill_slack(const costing *state, const tables *out) {
  for (int32_t chunk = 1; chunk < pl_strategy_n_chunks(state->strategy); chunk++)
    for (int32_t layer = 0; layer < state->model->n_layers; layer++) {
      double least_s = out->backward_s[0][layer];
      for (int32_t before = 1; before < chunk && before < state->strategy->pp; before++)
        least_s = fmin(least_s, out->backward_s[before][layer]);
      out->slack_s[chunk][layer + 1] = out->slack_s[chunk][layer] + least_s;
    }
}

static pl_code price_cuts(costing *state, const tables *out) {
  int32_t pp = state->strategy->pp, n_chunks = pl_strategy_n_chunks(state->strategy), n = state->model->n_layers;
  for (int32_t chunk = 0; chunk + 1 < n_chunks; chunk++) {
    int32_t from = pl_strategy_stage_of(state->strategy, chunk), to = pl_strategy_stage_of(state->strategy, chunk + 1);
    bool is_v = pl_strategy_is_v(state->strategy);
    if (from == to) continue;   /* where a V turns */
    if (chunk >= pp && !is_v) { /* the same devices as a round before */
      out->cut_s[chunk] = out->cut_s[chunk - pp];
      continue;
    }
    pl_arena_mark scratch = pl_arena_mark_here(state->arena);
    double both_s[PL_MODEL_CLASSES_MAX]; /* of a cut behind a block of a class; negative: not asked for */
    for (int32_t c = 0; c < PL_MODEL_CLASSES_MAX; c++)
      both_s[c] = -1;
    for (int32_t b = 1; b < n; b++) {
      int32_t c = pl_model_block_class(state->model, PL_MODEL_BLOCKS_BEFORE_LAYERS + b - 1);
      double bytes = state->program->blocks[c].output_bytes, down_s = 0, up_s = 0;
      if (both_s[c] < 0) {
        int32_t sent = pl_strategy_place_of(state->strategy, chunk);
        int32_t received = pl_strategy_place_of(state->strategy, chunk + 1);
        PL_TRY(send_s(state, from, pl_program_wire(state->strategy, false, sent), bytes, &down_s));
        PL_TRY(send_s(state, to, pl_program_wire(state->strategy, true, received), bytes, &up_s));
        both_s[c] = down_s + up_s;
      }
      out->cut_s[chunk][b] = both_s[c];
    }
    pl_arena_release_to(state->arena, scratch);
  }
  return PL_OK;
}

/* ---- all ---- */

static double **take_rows(pl_arena *arena, int32_t n_rows, int32_t width) {
  double **rows = PL_TAKE(arena, double *, n_rows);
  for (int32_t i = 0; rows != NULL && i < n_rows; i++)
    rows[i] = PL_TAKE(arena, double, width);
  return rows;
}

static pl_code take_program(costing *state, pl_strategy *uniform) {
  *uniform = *state->strategy;
  uniform->recipe = PL_ASSIGN_UNIFORM;
  PL_TRY(pl_strategy_assign(uniform, state->model, state->job, state->cluster, state->arena, state->error));
  const pl_block_shard shard = pl_strategy_shard(uniform, state->job);
  const pl_block_program *blocks;
  pl_block_cache_begin(state->blocks, state->cluster, state->model);
  PL_TRY(pl_block_cache_programs(state->blocks, state->model, &shard, state->arena, &blocks, state->error));
  return pl_program_of_blocks_take(state->model, state->job, uniform, blocks, state->arena, state->program,
                                   state->error);
}

pl_code pl_stage_costs_take(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                            const pl_strategy *strategy, const pl_collective_options *options, pl_block_cache *blocks,
                            pl_arena *arena, pl_stage_costs *costs, pl_error *error) {
  int32_t n_chunks = pl_strategy_n_chunks(strategy), width = model->n_layers + 1, pp = strategy->pp;
  tables out = {.time_s = take_rows(arena, n_chunks, width),
                .cut_s = take_rows(arena, n_chunks, width),
                .sync_s = take_rows(arena, n_chunks, width),
                .slack_s = take_rows(arena, n_chunks, width),
                .backward_s = take_rows(arena, n_chunks, width),
                .memory_bytes = take_rows(arena, n_chunks, width),
                .constant_s = PL_TAKE(arena, double, n_chunks),
                .room_bytes = PL_TAKE(arena, double, n_chunks),
                .in_flight = PL_TAKE(arena, double, n_chunks)};
  pl_strategy *uniform = PL_TAKE(arena, pl_strategy, 1);
  costing state = {.cluster = cluster,
                   .job = job,
                   .strategy = uniform,
                   .model = model,
                   .program = &costs->program,
                   .blocks = blocks,
                   .state = pl_training_state_of(job, pl_strategy_replicas(strategy)),
                   .arena = arena,
                   .error = error};
  if (arena->failed) return no_memory(&state);
  PL_ASSERT(out.time_s != NULL && out.cut_s != NULL && out.backward_s != NULL && out.slack_s != NULL);
  state.strategy = strategy;
  PL_TRY(take_program(&state, uniform));
  PL_TRY(pl_family_time_init(&state.communication, cluster, options, arena, error));
  PL_TRY(take_plan(&state, options));
  PL_TRY(price_blocks(&state));
  for (int32_t stage = 0; stage < pp; stage++)
    PL_TRY(price_stage(&state, stage, &out));
  fill_slack(&state, &out);
  PL_TRY(price_cuts(&state, &out));
  double rounds = (double)costs->program.n_microbatches * strategy->vpp + pp - 1 - (double)pp * strategy->vpp;
  costs->problem = (pl_assignment_problem){.n_layers = model->n_layers,
                                           .n_stages = n_chunks,
                                           .rounds = fmax(0, rounds),
                                           .time_s = (const double *const *)out.time_s,
                                           .cut_s = (const double *const *)out.cut_s,
                                           .sync_s = (const double *const *)out.sync_s,
                                           .sync_slack_s = (const double *const *)out.slack_s,
                                           .in_flight = out.in_flight,
                                           .sync_constant_s = out.constant_s,
                                           .memory_bytes = (const double *const *)out.memory_bytes,
                                           .memory_room_bytes = out.room_bytes};
  return PL_OK;
}
