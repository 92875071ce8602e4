/* See workloads/memory/stage_memory.h. */
#include "workloads/memory/stage_memory.h"

#include <math.h>

/* Largest message that the stage receives from `sender`'s family. */
static double largest_message(const pl_program *program, pl_family_kind kind, int32_t stage) {
  if (program->strategy->pp == 1) return 0;
  uint32_t index = program->family_of[pl_program_sender(program, kind, stage)][kind];
  double largest = 0;
  for (uint32_t i = 0; index != PL_NONE && i < program->families[index].n_ops; i++)
    largest = fmax(largest, program->families[index].ops[i].size_bytes);
  return largest;
}

/* Of one rank where all ranks that hold the same ones share them: experts may be held by others than all else. */
static double sharded_parameters(const pl_program *program, const pl_stage_program *own) {
  return (own->parameters - own->expert_parameters) / pl_program_shards(program, false) +
         own->expert_parameters / pl_program_shards(program, true);
}

/* fp32 weights of FSDP are sharded from stage 2 on; what is computed with are 16-bit copies, of everything until stage
 * 2, of what is gathered with stage 3. */
static double parameter_bytes(const pl_program *program, const pl_stage_program *own, const pl_training_state *bytes) {
  int32_t zero = program->strategy->zero, sharded_from = bytes->cast_bytes > 0 ? 2 : 3;
  double kept = (zero >= sharded_from ? sharded_parameters(program, own) : own->parameters) * bytes->parameter_bytes;
  return kept + (zero >= 3 ? 0 : own->parameters * bytes->cast_bytes);
}

/* Buffers of a static graph between forward and backward passes: as many as there are, whatever the schedule needs. The
 * simulation has what it needs: min(pp - stage, microbatches) with 1F1B. */
static double pipeline_buffer_bytes(const pl_program *program, const pl_stage_program *own,
                                    const pl_training_state *bytes) {
  const pl_strategy *strategy = program->strategy;
  double buffers = pl_framework_or_ideal(program->job->framework)->pipeline.pipeline_buffers * strategy->pp;
  if (buffers == 0 || strategy->pp == 1 || own->stage == strategy->pp - 1 || program->n_microbatches == 1) return 0;
  double saved = 0, needed = fmin(strategy->pp - own->stage, program->n_microbatches);
  for (int32_t block = strategy->boundary[own->stage]; block < strategy->boundary[own->stage + 1]; block++)
    saved += program->blocks[pl_model_block_class(program->model, block)].saved_bytes;
  return fmax(buffers - needed, 0) * saved + fmax(buffers - 1, 0) * own->parameters * bytes->cast_bytes;
}

/* Of two blocks in a row that have most. */
static double largest_pair(const pl_program *program, const pl_stage_program *own) {
  const int32_t *boundary = program->strategy->boundary;
  double most = own->largest_block_parameters, before = 0;
  for (int32_t chunk = 0; chunk < program->strategy->vpp; chunk++) {
    int32_t global = pl_strategy_chunk_at(program->strategy, own->stage, chunk);
    for (int32_t block = boundary[global]; block < boundary[global + 1]; block++) {
      double parameters = program->blocks[pl_model_block_class(program->model, block)].parameters;
      most = fmax(most, before + parameters);
      before = parameters;
    }
  }
  return most;
}

/* Of a block: its weights that a product in a narrow type multiplies with, in that. */
static double narrow_weight_bytes(const pl_block_program *block) {
  double sum = 0;
  for (uint32_t i = 0; i < block->forward.n_ops; i++) {
    const pl_op *op = &block->forward.ops[i];
    if (op->kind != PL_OP_GEMM || (op->dtype != PL_DTYPE_FP8 && op->dtype != PL_DTYPE_FP4)) continue;
    for (int k = 0; k < PL_OP_INPUTS; k++) {
      const pl_tensor *tensor = op->inputs[k] == PL_NONE ? NULL : &block->tensors[op->inputs[k]];
      if (tensor == NULL || tensor->kind != PL_TENSOR_PARAMETER || !pl_tensor_is_matrix(tensor)) continue;
      sum += tensor->size_bytes / pl_dtype_bytes((pl_dtype)tensor->dtype) * pl_dtype_bytes((pl_dtype)op->dtype);
    }
  }
  return sum;
}

static double narrow_bytes(const pl_program *program, const pl_stage_program *own) {
  const pl_strategy *strategy = program->strategy;
  double sum = 0;
  for (int32_t chunk = 0; chunk < strategy->vpp; chunk++) {
    int32_t global = pl_strategy_chunk_at(strategy, own->stage, chunk);
    for (int32_t index = strategy->boundary[global]; index < strategy->boundary[global + 1]; index++)
      sum += narrow_weight_bytes(&program->blocks[pl_model_block_class(program->model, index)]);
  }
  return sum;
}

pl_buffer_facts pl_stage_buffer_facts(const pl_program *program, int32_t stage) {
  const pl_stage_program *own = &program->stages[stage];
  const pl_framework *framework = pl_framework_or_ideal(program->job->framework);
  return (pl_buffer_facts){
      .framework = framework,
      .bytes = program->training,
      .made_bytes = pl_dtype_bytes(program->job->dtype),
      .bucket_bytes = pl_program_bucket_bytes(program),
      .zero = program->strategy->zero,
      .shares = pl_program_shards(program, false) > 1 || pl_program_shards(program, true) > 1,
      .recomputes = pl_strategy_multiplies_again(program->strategy),
      .parameters = own->parameters,
      .sharded = sharded_parameters(program, own),
      .largest_parameters = own->largest_parameters,
      .largest_block = own->largest_block_parameters,
      .largest_pair = pl_buffer_counts_pairs(framework) ? largest_pair(program, own) : 0,
      .narrow = program->job->fp8 && framework->memory.caches_narrow_weights ? narrow_bytes(program, own) : 0,
  };
}

static double buffer_bytes(const pl_program *program, int32_t stage, const pl_training_state *bytes) {
  const pl_strategy *strategy = program->strategy;
  const pl_stage_program *own = &program->stages[stage];
  const pl_buffer_facts facts = pl_stage_buffer_facts(program, stage);
  double sum = 2 * (largest_message(program, PL_FAMILY_DOWN, stage) + largest_message(program, PL_FAMILY_UP, stage));
  if (pl_strategy_is_v(strategy))
    sum += 2 * (largest_message(program, PL_FAMILY_DOWN_2, stage) + largest_message(program, PL_FAMILY_UP_2, stage));
  sum += pl_copied_bytes(&facts) + pipeline_buffer_bytes(program, own, bytes);
  sum += pl_unsharded_bytes(&facts);
  sum += pl_narrow_copies_bytes(&facts);
  return sum + pl_extra_gradient_bytes(&facts);
}

pl_resident_memory pl_resident_memory_of(const pl_program *program, int32_t stage) {
  const pl_strategy *strategy = program->strategy;
  const pl_stage_program *own = &program->stages[stage];
  const pl_training_state bytes = program->training;
  double whole = own->parameters, sharded = sharded_parameters(program, own);
  bool stay = pl_program_gradient_life(program) == PL_GRADIENTS_STAY;
  pl_resident_memory memory = {
      .parameters = parameter_bytes(program, own, &bytes),
      .gradients = stay ? (strategy->zero >= 2 ? sharded : whole) * bytes.gradient_bytes : 0,
      .optimizer = (strategy->zero >= 1 ? sharded : whole) * bytes.optimizer_bytes,
      .update = (strategy->zero >= 1 ? sharded : whole) * bytes.update_bytes,
      .buffers = buffer_bytes(program, stage, &bytes),
  };
  const pl_framework *framework = pl_framework_or_ideal(program->job->framework);
  if (framework->update.lists_update && strategy->zero == 0) memory.update *= 2;
  if (framework->update.holds_update) {
    memory.buffers += memory.update;
    memory.update = 0;
  }
  memory.stepped = pl_program_stepped_gradient_bytes(program, stage);
  memory.update += memory.stepped;
  return memory;
}

void pl_communicators_add(pl_communicators *all, uint32_t in_node) {
  enum { LEAST = 3 }; /* of a node: NVIDIA/nccl@v2.18.5-1 src/transport/nvls.cc, ncclNvlsInit */
  all->n++;
  if (in_node >= LEAST) all->in_switch += (int32_t)in_node;
}

/* Those of a device of the stage, and the one of all devices. */
static pl_communicators communicators_of(const pl_cluster *cluster, const pl_program *program, int32_t stage) {
  const pl_strategy *strategy = program->strategy;
  uint32_t n = (uint32_t)(strategy->pp * pl_strategy_replicas(strategy) * strategy->tmp);
  uint32_t node = cluster->nodes[cluster->devices[pl_strategy_device(strategy, stage, 0, 0)].node].n_devices;
  pl_communicators all = {0};
  if (n > 1) pl_communicators_add(&all, n < node ? n : node);
  for (int kind = 0; kind < PL_FAMILY_KIND_COUNT; kind++) {
    uint32_t family = program->family_of[stage][kind];
    if (family != PL_NONE)
      pl_communicators_add(&all, pl_program_group_neighbours(cluster, program, &program->families[family]));
  }
  return all;
}

double pl_memory_outside_bytes(const pl_framework *framework, const pl_device_profile *profile, pl_communicators own) {
  double context = framework->memory.context_bytes, each = framework->memory.communicator_bytes;
  double held = context < 0 ? profile->reserved_bytes : context;
  if (each >= 0) return held + own.n * each;
  held += own.n * profile->communicator_bytes;
  return framework->memory.switch_buffers ? held + own.in_switch * profile->switch_bytes : held;
}

static double outside_bytes(const pl_cluster *cluster, const pl_program *program, int32_t stage,
                            const pl_device_profile *profile) {
  const pl_framework *framework = pl_framework_or_ideal(program->job->framework);
  return pl_memory_outside_bytes(framework, profile, communicators_of(cluster, program, stage));
}

double pl_allocator_limit(const pl_cluster *cluster, const pl_program *program, int32_t stage,
                          const pl_device_profile *profile) {
  return profile->memory_bytes - outside_bytes(cluster, program, stage, profile);
}

pl_held_memory pl_held_memory_of(const pl_cluster *cluster, const pl_program *program, int32_t stage,
                                 const pl_device_profile *profile, double peak_bytes,
                                 const pl_replayed_memory *replayed) {
  const pl_framework *framework = pl_framework_or_ideal(program->job->framework);
  bool replays = framework->memory.allocator != PL_ALLOCATOR_EXACT; /* which makes what is lost itself */
  double stretch = 1 + (replays ? 0 : framework->memory.fragmentation);
  double outside = outside_bytes(cluster, program, stage, profile), inside = pl_framework_workspace_bytes(framework);
  pl_held_memory held = {.allocator = (peak_bytes + inside) * stretch,
                         .usable = (profile->memory_bytes - outside) / stretch - inside};
  if (replayed != NULL) {
    held.allocator = replayed->reserved;
    held.usable -= replayed->stuck;
    /* The replay has the last word: what it got to hold was too little, or it got through. */
    if (replayed->full) held.usable = fmin(held.usable, fmin(replayed->peak, nextafter(peak_bytes, 0)));
    if (!replayed->full) held.usable = fmax(held.usable, fmin(peak_bytes, held.usable + replayed->stuck));
  }
  held.device = held.allocator + outside;
  return held;
}

pl_memory_effect pl_block_effect(const pl_block_program *block, pl_block_pass pass) {
  const double peaks[PL_PASS_COUNT] = {fmax(block->forward_peak_bytes, block->saved_bytes), block->backward_peak_bytes,
                                       block->inputs_peak_bytes, block->weights_peak_bytes};
  const double nets[PL_PASS_COUNT] = {block->saved_bytes, -block->saved_bytes,
                                      block->waiting_bytes - block->saved_bytes, -block->waiting_bytes};
  double peak = peaks[pass], net = nets[pass];
  return (pl_memory_effect){.peak_bytes = llrint(fmax(peak, 0)), .net_bytes = llrint(net)};
}
