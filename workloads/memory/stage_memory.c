/* See workloads/memory/stage_memory.h. */
#include "workloads/memory/stage_memory.h"

#include <math.h>

static const double fp32_bytes = 4, fp64_bytes = 8;

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

/* Copies of many tensors in one, and of one in a wider type. No freed activation is as large as they are, so that the
 * allocator takes them from the device and keeps them: they stand beside everything else. */
static double copy_bytes(const pl_program *program, const pl_stage_program *own, const pl_training_state *bytes) {
  const pl_framework *framework = pl_framework_or_ideal(program->job->framework);
  int32_t zero = program->strategy->zero;
  bool narrow = bytes->gradient_bytes < fp32_bytes; /* gradients are kept in 16 bits */
  double sum = 0, flat = fmin(own->parameters, framework->memory.flat_elements);
  if (pl_program_shards(program, false) > 1) {
    if (narrow) sum += flat * bytes->gradient_bytes;
    if (zero >= 1) sum += flat * bytes->gathered_bytes;
    /* The type of travel: one bucket at a time. */
    bool converted = zero < 2 && bytes->reduced_bytes < bytes->gradient_bytes;
    double bucket = program->job->bucket_bytes > 0 ? program->job->bucket_bytes / bytes->reduced_bytes : INFINITY;
    if (converted) sum += fmin(own->parameters, bucket) * bytes->reduced_bytes;
  }
  if (!framework->memory.copies_gradient) return sum;
  if (!narrow || zero == 0) return sum + own->largest_parameters * fp32_bytes;
  return sum + fmin(own->largest_parameters, sharded_parameters(program, own)) * fp64_bytes;
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

/* ZeRO's units that are whole at a time, FSDP's in particular. FSDP 2 gathers into a tensor of the stream of its
 * all-gathers, of which two are there in the forward pass, that of the unit before until this one is copied out
 * (_fsdp_param_group.py, wait_for_unshard), and copies out to the parameters; of a gradient that autograd has made it
 * makes a copy in the type of its reduction (_fsdp_collectives.py, foreach_reduce; so does FSDP 1 if that is another
 * type, _runtime_utils.py, _reduce_grad). What one stream has freed serves no other, so that these stand beside each
 * other; and the shards of gradients, which are made on the stream of the reductions, stay there from the first step on
 * whether they are set to None or not. */
static double unsharded_bytes(const pl_program *program, const pl_stage_program *own, const pl_training_state *bytes,
                              double largest) {
  const pl_framework *framework = pl_framework_or_ideal(program->job->framework);
  pl_gradient_path path = framework->gradients.gradient_path;
  int32_t zero = program->strategy->zero;
  double sum = 0, ahead = framework->gathers.gathers_ahead ? 2 : 1, made = pl_dtype_bytes(program->job->dtype);
  if (path == PL_GRADIENTS_CHUNKED && zero >= 2)
    sum += (ahead > 1 ? largest_pair(program, own) : largest) * bytes->gathered_bytes;
  if (zero >= 3) sum += (path == PL_GRADIENTS_CHUNKED ? 1 : ahead) * largest * bytes->gathered_bytes;
  if (zero < 2) return sum;
  double unit_bytes = fmin(fmax(pl_program_bucket_bytes(program), largest * bytes->gradient_bytes),
                           fmax(own->parameters, largest) * bytes->gradient_bytes);
  if (path == PL_GRADIENTS_ADDED) return sum + unit_bytes;
  bool copied = path == PL_GRADIENTS_CHUNKED || bytes->reduced_bytes != made;
  return sum + unit_bytes / bytes->gradient_bytes * (made + (copied ? bytes->reduced_bytes : 0));
}

/* Of a block: its weights that a product in a narrow type multiplies with, as they are and transposed. */
static double narrow_weight_bytes(const pl_block_program *block) {
  double sum = 0;
  for (uint32_t i = 0; i < block->forward.n_ops; i++) {
    const pl_op *op = &block->forward.ops[i];
    if (op->kind != PL_OP_GEMM || (op->dtype != PL_DTYPE_FP8 && op->dtype != PL_DTYPE_FP4)) continue;
    for (int k = 0; k < PL_OP_INPUTS; k++) {
      const pl_tensor *tensor = op->inputs[k] == PL_NONE ? NULL : &block->tensors[op->inputs[k]];
      if (tensor == NULL || tensor->kind != PL_TENSOR_PARAMETER || !pl_tensor_is_matrix(tensor)) continue;
      sum += 2 * tensor->size_bytes / pl_dtype_bytes((pl_dtype)tensor->dtype) * pl_dtype_bytes((pl_dtype)op->dtype);
    }
  }
  return sum;
}

static double narrow_copies_bytes(const pl_program *program, const pl_stage_program *own) {
  const pl_strategy *strategy = program->strategy;
  double sum = 0;
  for (int32_t chunk = 0; chunk < strategy->vpp; chunk++) {
    int32_t global = pl_strategy_chunk_at(strategy, own->stage, chunk);
    for (int32_t index = strategy->boundary[global]; index < strategy->boundary[global + 1]; index++)
      sum += narrow_weight_bytes(&program->blocks[pl_model_block_class(program->model, index)]);
  }
  return sum;
}

static double buffer_bytes(const pl_program *program, int32_t stage, const pl_training_state *bytes) {
  const pl_strategy *strategy = program->strategy;
  const pl_stage_program *own = &program->stages[stage];
  const pl_framework *framework = pl_framework_or_ideal(program->job->framework);
  bool by_tensor = framework->gathers.gather_unit == PL_GATHER_TENSOR; /* its gradients are reduced one by one too */
  double largest = by_tensor ? own->largest_parameters : own->largest_block_parameters;
  double sum = 2 * (largest_message(program, PL_FAMILY_DOWN, stage) + largest_message(program, PL_FAMILY_UP, stage));
  if (pl_strategy_is_v(strategy))
    sum += 2 * (largest_message(program, PL_FAMILY_DOWN_2, stage) + largest_message(program, PL_FAMILY_UP_2, stage));
  sum += copy_bytes(program, own, bytes) + pipeline_buffer_bytes(program, own, bytes);
  if (pl_program_shards(program, false) > 1 || pl_program_shards(program, true) > 1)
    sum += unsharded_bytes(program, own, bytes, largest);
  if (program->job->fp8 && framework->memory.caches_narrow_weights) sum += narrow_copies_bytes(program, own);
  return sum + (strategy->zero >= 2 ? sharded_parameters(program, own) : own->parameters) * bytes->extra_gradient_bytes;
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

/* Communicators that a device of the stage belongs to, and the one of all devices. */
static int32_t communicators_of(const pl_program *program, int32_t stage) {
  const pl_strategy *strategy = program->strategy;
  int32_t n = strategy->pp * pl_strategy_replicas(strategy) * strategy->tmp > 1;
  for (int kind = 0; kind < PL_FAMILY_KIND_COUNT; kind++)
    n += program->family_of[stage][kind] != PL_NONE;
  return n;
}

double pl_memory_outside_bytes(const pl_framework *framework, const pl_device_profile *profile, int32_t n) {
  double context = framework->memory.context_bytes, each = framework->memory.communicator_bytes;
  return (context < 0 ? profile->reserved_bytes : context) + n * (each < 0 ? profile->communicator_bytes : each);
}

static double outside_bytes(const pl_program *program, int32_t stage, const pl_device_profile *profile) {
  const pl_framework *framework = pl_framework_or_ideal(program->job->framework);
  return pl_memory_outside_bytes(framework, profile, communicators_of(program, stage));
}

double pl_allocator_limit(const pl_program *program, int32_t stage, const pl_device_profile *profile) {
  return profile->memory_bytes - outside_bytes(program, stage, profile);
}

pl_held_memory pl_held_memory_of(const pl_program *program, int32_t stage, const pl_device_profile *profile,
                                 double peak_bytes, const pl_replayed_memory *replayed) {
  const pl_framework *framework = pl_framework_or_ideal(program->job->framework);
  double outside = outside_bytes(program, stage, profile), stretch = 1 + framework->memory.fragmentation;
  pl_held_memory held = {.allocator = (peak_bytes + framework->memory.workspace_bytes) * stretch,
                         .usable = (profile->memory_bytes - outside) / stretch - framework->memory.workspace_bytes};
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
