/* What is there before the first step of a replay, and the optimizer's step: see workloads/memory/replay.h. */
#include <math.h>

#include "workloads/memory/buffer_memory.h"
#include "workloads/memory/replay.h"
#include "workloads/memory/stage_memory.h"

static const double fp32_bytes = 4, fp64_bytes = 8;

/* A tied head beside its embedding has no weight of its own. */
static bool is_tied(const pl_replay *own, const pl_block_program *block, const pl_tensor *tensor) {
  bool beside = own->stage->stage == 0 && own->program->strategy->boundary[0] == 0;
  return beside && block->tied_parameters > 0 && pl_replay_elements(tensor) == block->tied_parameters;
}

static void add_weight(pl_replay *own, pl_held_weight weight) {
  pl_held_weight *longer =
      pl_arena_grown(own->arena, own->weights, own->n_weights, 1, sizeof *longer, &own->weights_room);
  own->failed |= longer == NULL;
  if (own->failed) return;
  own->weights = longer;
  own->weights[own->n_weights++] = weight;
}

static void add_weights(pl_replay *own, const pl_block_program *block) {
  const pl_strategy *strategy = own->program->strategy;
  for (uint32_t i = 0; i < block->n_tensors; i++) {
    const pl_tensor *tensor = &block->tensors[i];
    if (tensor->kind != PL_TENSOR_PARAMETER || is_tied(own, block, tensor)) continue;
    double shards = strategy->zero >= 1 ? pl_program_shards(own->program, tensor->expert) : 1;
    /* Every expert has weights of its own (Transformer Engine's GroupedLinear, loops over experts). */
    int64_t n = tensor->expert && tensor->dims[0] == 'e' ? tensor->extent[0] : 1;
    double elements = pl_replay_elements(tensor) / (double)n;
    for (int64_t each = 0; each < n && !own->failed; each++)
      add_weight(own, (pl_held_weight){.elements = elements, .share = ceil(elements / shards)});
  }
}

static void find_weights(pl_replay *own) {
  const pl_strategy *strategy = own->program->strategy;
  for (int32_t place = 0; place < strategy->vpp; place++) {
    int32_t chunk = pl_strategy_chunk_at(strategy, own->stage->stage, place);
    for (int32_t index = strategy->boundary[chunk]; index < strategy->boundary[chunk + 1]; index++)
      add_weights(own, pl_replay_block(own, index));
  }
}

static double sum_of(const pl_replay *own, bool shared) {
  double sum = 0;
  for (uint32_t i = 0; i < own->n_weights; i++)
    sum += shared ? own->weights[i].share : own->weights[i].elements;
  return sum;
}

static void take_some(pl_replay *own, double size_bytes) {
  if (size_bytes > 0 && !own->failed) pl_replay_take(own, PL_REPLAY_COMPUTES, size_bytes);
}

/* Of gradients as they travel, in the order in which they come. */
static void take_buckets(pl_replay *own) {
  double full_bytes = own->program->job->bucket_bytes, elements = 0;
  for (uint32_t i = own->n_weights; i-- > 0;) {
    elements += own->weights[i].elements;
    if (i > 0 && (full_bytes <= 0 || elements * own->bytes.gradient_bytes < full_bytes)) continue;
    take_some(own, elements * own->bytes.extra_gradient_bytes);
    elements = 0;
  }
}

/* Per parameter, of the fp32 copy beside 16-bit weights; the rest of the optimizer's state are moments. */
static double master_bytes(const pl_replay *own) {
  bool has = own->framework->update.weights == PL_WEIGHTS_WITH_MASTER && own->bytes.parameter_bytes < fp32_bytes;
  return has ? fmin(fp32_bytes, own->bytes.optimizer_bytes) : 0;
}

/* A bucket of ZeRO 2 and 3, whose gradients are copied into it, is there from the beginning. */
static void take_gradients(pl_replay *own, const pl_buffer_facts *facts) {
  int32_t zero = own->program->strategy->zero;
  bool scattered = zero >= 2 && own->framework->gradients.gradient_path != PL_GRADIENTS_ADDED;
  if (scattered || pl_replay_stands_alone(own)) return;
  if (zero >= 2 && facts->shares) take_some(own, pl_unsharded_unit_bytes(facts));
  take_some(own, sum_of(own, zero >= 2) * own->bytes.gradient_bytes);
}

void pl_replay_take_state(pl_replay *own) {
  int32_t zero = own->program->strategy->zero, sharded_from = own->bytes.cast_bytes > 0 ? 2 : 3;
  const pl_buffer_facts facts = pl_stage_buffer_facts(own->program, own->stage->stage);
  find_weights(own);
  take_some(own, pl_framework_workspace_bytes(own->framework));
  for (uint32_t i = 0; i < own->n_weights; i++) {
    const pl_held_weight *weight = &own->weights[i];
    take_some(own, (zero >= sharded_from ? weight->share : weight->elements) * own->bytes.parameter_bytes);
    take_some(own, zero >= 3 ? 0 : weight->elements * own->bytes.cast_bytes);
  }
  take_buckets(own);
  take_some(own, pl_narrow_copies_bytes(&facts));
  take_gradients(own, &facts);
  take_some(own, sum_of(own, true) * master_bytes(own));
}

/* ---- the optimizer ---- */

static void make_moments(pl_replay *own) {
  double moment_bytes = (own->bytes.optimizer_bytes - master_bytes(own)) / 2;
  for (uint32_t i = 0; i < own->n_weights && moment_bytes > 0; i++)
    for (int moment = 0; moment < 2; moment++)
      take_some(own, own->weights[i].share * moment_bytes);
}

/* Copies of many gradients in one, to be reduced, and of the largest in a wider type. */
static void copy_gradients(pl_replay *own, const pl_buffer_facts *facts) {
  double flat = fmin(facts->parameters, own->framework->memory.flat_elements);
  bool narrow = own->bytes.gradient_bytes < fp32_bytes;
  if (facts->shares && narrow) pl_replay_use(own, PL_REPLAY_COMPUTES, flat * own->bytes.gradient_bytes);
  if (!own->framework->memory.copies_gradient || own->failed) return;
  bool shared = narrow && facts->zero > 0;
  pl_replay_use(own, PL_REPLAY_COMPUTES,
                shared ? fmin(facts->largest_parameters, facts->sharded) * fp64_bytes
                       : facts->largest_parameters * fp32_bytes);
}

/* What the step takes while it runs: tensor by tensor, or in one flat tensor, which stays. */
static void take_working_memory(pl_replay *own, bool first) {
  pl_replay_list *list = &own->of_pass; /* no pass is under way */
  bool lists = !own->framework->update.holds_update ||
               (own->framework->update.lists_update && own->program->strategy->zero == 0);
  for (uint32_t i = 0; i < own->n_weights && lists && !own->failed; i++)
    pl_replay_add(own, list, PL_REPLAY_COMPUTES, own->weights[i].share * own->bytes.update_bytes);
  if (own->framework->update.holds_update && first) take_some(own, sum_of(own, true) * own->bytes.update_bytes);
  if (!own->failed) pl_replay_clear(own, list);
}

/* Where updated weights are copied tensor by tensor they are gathered into one flat tensor per rank; NCCL, which
 * gathers into one tensor, has another of all of them under that list. */
static void gather_by_rank(pl_replay *own) {
  const double most = 1 << 14; /* tensors: of more ranks several are one */
  pl_replay_list *list = &own->of_pass;
  double shards = pl_program_shards(own->program, false), share_bytes = sum_of(own, true) * own->bytes.gathered_bytes;
  double n = fmin(shards, most);
  pl_replay_add(own, list, PL_REPLAY_COMPUTES, share_bytes);
  for (double i = 0; i < n && !own->failed; i++)
    pl_replay_add(own, list, PL_REPLAY_COMPUTES, share_bytes * (shards / n));
  if (!own->failed) pl_replay_add(own, list, PL_REPLAY_COMPUTES, share_bytes * shards);
  if (!own->failed) pl_replay_clear(own, list);
}

void pl_replay_step(pl_replay *own, bool first) {
  const pl_buffer_facts facts = pl_stage_buffer_facts(own->program, own->stage->stage);
  const pl_pass *epilogue = &own->stage->epilogue;
  for (uint32_t i = 0; i < epilogue->n && !own->failed; i++)
    if (epilogue->instructions[i].kind == PL_INSTRUCTION_REDUCE) pl_replay_communicate(own, &epilogue->instructions[i]);
  if (own->failed) return;
  copy_gradients(own, &facts);
  if (first && !own->failed) make_moments(own);
  if (!own->failed) take_working_memory(own, first);
  bool gathers = (facts.zero == 1 || facts.zero == 2) && facts.shares && !own->failed;
  if (gathers && own->framework->gathers.copies_per_tensor) gather_by_rank(own);
  if (gathers && !own->failed)
    pl_replay_use(own, PL_REPLAY_COMPUTES,
                  fmin(facts.parameters, own->framework->memory.flat_elements) * own->bytes.gathered_bytes);
  if (!own->failed) pl_replay_clear(own, &own->of_step);
}
