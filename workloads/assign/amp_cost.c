/* See workloads/assign/amp_cost.h. */
#include "workloads/assign/amp_cost.h"

#include <math.h>
#include <string.h>

#include "workloads/cost/op_cost.h"
#include "workloads/cost/op_profile.h"
#include "workloads/lower/block_program.h"
#include "workloads/program/program.h"

typedef struct costing {
  const pl_cluster *cluster;
  const pl_model *model;
  const pl_job *job;
  const pl_strategy *strategy;
  pl_arena *arena;
  pl_error *error;
} costing;

static pl_code bandwidth_between(const costing *state, uint32_t source, uint32_t destination, double *rate_Bps) {
  pl_route route;
  PL_TRY(pl_cluster_route(state->cluster, source, destination, &route, state->error));
  for (uint32_t i = 0; i < route.n_links; i++)
    *rate_Bps = fmin(*rate_Bps, state->cluster->links[route.links[i]].capacity_Bps);
  return PL_OK;
}

/* Rank `position` of ring `ring` of a stage: of its tensor groups, or of those that hold the same weights. */
static uint32_t member(const costing *state, int32_t stage, bool tensor, int32_t ring, int32_t position) {
  return tensor ? pl_strategy_device(state->strategy, stage, ring, position)
                : pl_strategy_device(state->strategy, stage, position, ring);
}

/* Seconds per byte of equation 3, on the slowest ring of the stage. */
static pl_code ring_cost(const costing *state, int32_t stage, bool tensor, double *cost_s) {
  int32_t replicas = pl_strategy_replicas(state->strategy), tmp = state->strategy->tmp;
  int32_t n = tensor ? tmp : replicas, n_rings = tensor ? replicas : tmp;
  double slowest_Bps = INFINITY;
  *cost_s = 0;
  if (n == 1) return PL_OK;
  for (int32_t ring = 0; ring < n_rings; ring++)
    for (int32_t i = 0; i < n; i++)
      PL_TRY(bandwidth_between(state, member(state, stage, tensor, ring, i),
                               member(state, stage, tensor, ring, (i + 1) % n), &slowest_Bps));
  *cost_s = 2.0 * (n - 1) / (n * slowest_Bps);
  return PL_OK;
}

/* Of all-reduces. All-gathers and reduce-scatters, which sequence parallelism has in their place, go round the ring
 * once instead of twice. */
static double reduced_bytes(const pl_op_list *list) {
  double bytes = 0;
  for (uint32_t i = 0; i < list->n_ops; i++) {
    const pl_op *op = &list->ops[i];
    if (op->kind != PL_OP_COLLECTIVE || op->group != PL_GROUP_TENSOR) continue;
    bool once = op->collective == PL_ALL_GATHER || op->collective == PL_REDUCE_SCATTER;
    bytes += once ? op->size_bytes / 2 : op->size_bytes;
  }
  return bytes;
}

/* AMP's table: the measured forward pass of the block at this tensor degree, at the smallest microbatch there is; NULL
 * when nothing was measured. */
static const pl_pass_time *measured(const costing *state, int32_t block_class, const char *device) {
  const pl_op_profile *profile = state->job->op_profile;
  const pl_pass_time *found = NULL;
  for (uint32_t i = 0; profile != NULL && i < profile->n_times; i++) {
    const pl_pass_time *time = &profile->times[i];
    if (time->backward || time->tmp != state->strategy->tmp || strcmp(time->device, device) != 0 ||
        !pl_pass_time_is_of(time, state->model, block_class, state->job->dtype, state->job->seq))
      continue;
    if (found == NULL || time->mbs < found->mbs) found = time;
  }
  return found;
}

/* Of one sequence, collectives of the tensor group inside. */
static double forward_s(const costing *state, const pl_device_profile *profile, const pl_block_program *block,
                        double tensor_cost_s) {
  double collectives_s = tensor_cost_s * reduced_bytes(&block->forward), time_s = 0;
  const pl_pass_time *time = measured(state, block->block_class, profile->name);
  if (time != NULL) return time->time_s / time->mbs + (time->has_collectives ? 0 : collectives_s);
  for (uint32_t i = 0; i < block->forward.n_ops; i++)
    if (block->forward.ops[i].kind != PL_OP_COLLECTIVE) time_s += pl_op_cost(profile, &block->forward.ops[i]).time_s;
  return time_s + collectives_s;
}

static double mean_forward_s(const costing *state, const pl_block_program *block, double tensor_cost_s) {
  const pl_strategy *strategy = state->strategy;
  double total_s = 0;
  for (uint32_t p = 0; p < state->cluster->n_profiles; p++) {
    int64_t n_devices = 0;
    for (uint32_t rank = 0; rank < pl_strategy_n_ranks(strategy); rank++)
      n_devices += state->cluster->devices[pl_strategy_device_of_rank(strategy, rank)].profile == p;
    if (n_devices > 0)
      total_s += forward_s(state, &state->cluster->profiles[p], block, tensor_cost_s) * (double)n_devices;
  }
  return total_s / pl_strategy_n_ranks(strategy);
}

/* Times and parameters of the layers, embedding with the first and all behind the layers with the last. */
static pl_code price_layers(const costing *state, double tensor_cost_s, double *time_s, double *parameters,
                            double *crossing_bytes) {
  pl_block_shard shard = pl_strategy_shard(state->strategy, state->job);
  double own_s[PL_MODEL_CLASSES_MAX] = {0}, own_parameters[PL_MODEL_CLASSES_MAX] = {0};
  int32_t n = state->model->n_layers;
  shard.mbs = 1;
  shard.sp = state->model->moe.n_experts > 0 && shard.tmp > 1; /* experts know no other way */
  shard.recompute = PL_RECOMPUTE_NONE;
  *crossing_bytes = 0;
  for (int32_t c = 0; c < pl_model_n_classes(state->model); c++) {
    pl_arena_mark scratch = pl_arena_mark_here(state->arena);
    pl_block_program block;
    PL_TRY(pl_block_class_program_take(state->model, c, &shard, state->arena, &block, state->error));
    own_s[c] = 3.0 * state->strategy->mbs * mean_forward_s(state, &block, tensor_cost_s);
    own_parameters[c] = block.parameters;
    if (block.kind == PL_BLOCK_LAYER || block.kind == PL_BLOCK_EXPERT_LAYER)
      *crossing_bytes = fmax(*crossing_bytes, state->strategy->mbs * block.output_bytes);
    pl_arena_release_to(state->arena, scratch);
  }
  for (int32_t block = 0; block < pl_model_n_blocks(state->model); block++) {
    int32_t layer = block - PL_MODEL_BLOCKS_BEFORE_LAYERS, last = n - 1;
    layer = layer < 0 ? 0 : layer > last ? last : layer;
    int32_t c = pl_model_block_class(state->model, block);
    time_s[layer + 1] += own_s[c];
    parameters[layer + 1] += own_parameters[c];
  }
  for (int32_t layer = 0; layer < n; layer++) {
    time_s[layer + 1] += time_s[layer];
    parameters[layer + 1] += parameters[layer];
  }
  return PL_OK;
}

static pl_code price_sends(const costing *state, double crossing_bytes, double *send_s, const double **cut_s) {
  const pl_strategy *strategy = state->strategy;
  int32_t n_cuts = pl_strategy_n_chunks(strategy) - 1, n_layers = state->model->n_layers, tmp = strategy->tmp;
  int32_t n_pipelines = pl_strategy_replicas(strategy) * tmp;
  for (int32_t cut = 0; cut < n_cuts; cut++) {
    double *row = PL_TAKE(state->arena, double, n_layers + 1), slowest_s = 0;
    if (row == NULL) return pl_fail_memory(state->error, "AMP's costs");
    for (int32_t i = 0; i < n_pipelines; i++) {
      double rate_Bps = INFINITY;
      uint32_t from = pl_strategy_device(strategy, pl_strategy_stage_of(strategy, cut), i / tmp, i % tmp);
      uint32_t to = pl_strategy_device(strategy, pl_strategy_stage_of(strategy, cut + 1), i / tmp, i % tmp);
      if (from != to) PL_TRY(bandwidth_between(state, from, to, &rate_Bps)); /* equal where a V turns */
      send_s[i * n_cuts + cut] = crossing_bytes / rate_Bps;
      slowest_s = fmax(slowest_s, crossing_bytes / rate_Bps);
    }
    for (int32_t b = 1; b < n_layers; b++)
      row[b] = slowest_s;
    cut_s[cut] = row;
  }
  return PL_OK;
}

pl_code pl_amp_costs_take(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                          const pl_strategy *strategy, pl_arena *arena, pl_amp_costs *costs, pl_error *error) {
  const costing state = {cluster, model, job, strategy, arena, error};
  int32_t n_chunks = pl_strategy_n_chunks(strategy), n = model->n_layers;
  int32_t n_pipelines = pl_strategy_replicas(strategy) * strategy->tmp;
  double *time_s = PL_TAKE(arena, double, n + 1), *parameters = PL_TAKE(arena, double, n + 1);
  double *sync_s = PL_TAKE(arena, double, strategy->pp), *send_s = PL_TAKE(arena, double, n_pipelines *n_chunks);
  const double **cut_s = PL_TAKE(arena, const double *, n_chunks);
  if (arena->failed) return pl_fail_memory(error, "AMP's costs");
  double slowest_s = 0, crossing_bytes;
  double gradient_bytes = pl_training_state_of(job, pl_strategy_replicas(strategy)).reduced_bytes;
  for (int32_t stage = 0; stage < strategy->pp; stage++) {
    double tensor_s;
    PL_TRY(ring_cost(&state, stage, true, &tensor_s));
    PL_TRY(ring_cost(&state, stage, false, &sync_s[stage]));
    sync_s[stage] *= gradient_bytes;
    slowest_s = fmax(slowest_s, tensor_s);
  }
  PL_TRY(price_layers(&state, slowest_s, time_s, parameters, &crossing_bytes));
  PL_TRY(price_sends(&state, crossing_bytes, send_s, cut_s));
  int64_t most = 0;
  for (int32_t data = 0; data < strategy->dp; data++)
    most = pl_strategy_microbatches(strategy, job, data) > most ? pl_strategy_microbatches(strategy, job, data) : most;
  *costs = (pl_amp_costs){
      .problem = {.n_layers = n, .n_stages = n_chunks, .rounds = (double)most - 1, .time_s = time_s, .cut_s = cut_s},
      .parameters = parameters,
      .sync_s = sync_s,
      .send_s = send_s,
      .n_pipelines = n_pipelines,
      .pp = strategy->pp};
  return PL_OK;
}

double pl_amp_costs_time(const pl_amp_costs *costs, const int32_t *boundary) {
  const pl_amp_problem *problem = &costs->problem;
  int32_t n_cuts = problem->n_stages - 1;
  double largest_s = 0, sends_s = 0, sync_s = 0;
  for (int32_t i = 0; i < problem->n_stages; i++)
    largest_s = fmax(largest_s, problem->time_s[boundary[i + 1]] - problem->time_s[boundary[i]]);
  for (int32_t p = 0; p < costs->n_pipelines; p++) {
    double own_s = 0;
    for (int32_t cut = 0; cut < n_cuts; cut++)
      own_s += costs->send_s[p * n_cuts + cut];
    sends_s = fmax(sends_s, own_s);
  }
  for (int32_t stage = 0; stage < costs->pp; stage++) {
    double held = 0;
    for (int32_t i = stage; i < problem->n_stages; i += costs->pp)
      held += costs->parameters[boundary[i + 1]] - costs->parameters[boundary[i]];
    sync_s = fmax(sync_s, held * costs->sync_s[stage]);
  }
  return problem->rounds * largest_s + sends_s + problem->time_s[problem->n_layers] + sync_s;
}
