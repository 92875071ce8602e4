/* Parameters that ZeRO-3 gathers, and gradients between their products and where they stay, in a replay: see
 * workloads/memory/replay.h. Read in pytorch/pytorch@010ae4a89516 torch/distributed/fsdp/_fully_shard
 * (_fsdp_collectives.py, _fsdp_param_group.py), torch/distributed/fsdp/_flat_param.py and _runtime_utils.py of 2.1, and
 * microsoft/DeepSpeed@v0.11.1 deepspeed/runtime/zero (partition_parameters.py, stage3.py).
 *
 * FSDP 2 gathers a unit into a tensor of the stream of its gathers, which in a forward pass lives until the next one
 * has been copied out, and copies from there to a tensor per parameter, of the stream that computes. FSDP 1 gathers a
 * flat tensor, whose views the parameters are, behind a cast of its own share. DeepSpeed gathers some tensors at a time
 * and puts the parts of each together in a tensor of its own, all in the stream of its gathers.
 *
 * Gradients of a unit lie in tensors of the stream that computes until the unit is over. FSDP 1 puts them together in a
 * flat one there, and casts that in the stream of its reductions, if they travel in another type; FSDP 2 copies them to
 * one of the stream that computes, which stays until the next unit's turn. What comes out of a reduction is of its
 * stream, and stays until the optimizer has stepped, or is added to what is there.
 */
#include <math.h>

#include "workloads/memory/replay.h"

static pl_gathered_unit *unit_of(const pl_replay *own, int32_t block, bool experts) {
  return &own->units[block][experts];
}

static bool in_chunks(const pl_replay *own) {
  return own->framework->gradients.gradient_path == PL_GRADIENTS_CHUNKED;
}

static bool in_units(const pl_replay *own) {
  return own->framework->gradients.gradient_path != PL_GRADIENTS_ADDED;
}

/* Whether gradients go from their products to shards, unit by unit. */
static bool are_scattered(const pl_replay *own) {
  return own->program->strategy->zero >= 2 && in_units(own);
}

static const pl_communication *communication_of(const pl_replay *own, const pl_instruction *instruction) {
  uint32_t family = own->program->family_of[own->stage->stage][pl_instruction_family(instruction)];
  return &own->program->families[family].ops[instruction->op];
}

/* Whether experts have communicators of their own. */
static bool is_apart(const pl_replay *own, const pl_tensor *tensor) {
  return tensor->expert && pl_program_has_expert_data(own->program->model, own->program->strategy);
}

/* ---- gathers ---- */

/* What was gathered is copied to the block's parameters, each a tensor. */
static void copy_out(pl_replay *own, int32_t block, bool experts, uint32_t stream) {
  const pl_block_program *of = pl_replay_block(own, block);
  pl_gathered_unit *unit = unit_of(own, block, experts);
  if (unit->copied == NULL) {
    unit->copied = PL_TAKE(own->arena, uint32_t, of->n_tensors);
    if (unit->copied == NULL) {
      own->failed = true;
      return;
    }
    for (uint32_t i = 0; i < of->n_tensors; i++)
      unit->copied[i] = PL_NONE;
  }
  for (uint32_t i = 0; i < of->n_tensors && !own->failed; i++) {
    const pl_tensor *tensor = &of->tensors[i];
    if (tensor->kind != PL_TENSOR_PARAMETER || is_apart(own, tensor) != experts || unit->copied[i] != PL_NONE) continue;
    unit->copied[i] = pl_replay_take(own, stream, pl_replay_elements(tensor) * own->bytes.gathered_bytes);
  }
}

static void gather(pl_replay *own, const pl_instruction *instruction) {
  enum { FETCHED = 50000000 }; /* elements that DeepSpeed gathers at a time: stage3_prefetch_bucket_size */
  pl_gathered_unit *unit = unit_of(own, instruction->block, instruction->experts);
  double size_bytes = communication_of(own, instruction)->size_bytes;
  if (!in_units(own)) {
    pl_replay_use(own, PL_REPLAY_GATHERS, fmin(size_bytes, FETCHED * own->bytes.gathered_bytes));
    if (!own->failed) copy_out(own, instruction->block, instruction->experts, PL_REPLAY_GATHERS);
    return;
  }
  if (in_chunks(own)) return; /* its host asks for it when the unit's turn has come: see copy */
  if (own->bytes.gathered_bytes != own->bytes.parameter_bytes)
    pl_replay_use(own, PL_REPLAY_GATHERS, size_bytes / pl_program_shards(own->program, instruction->experts));
  if (unit->n_came == PL_REPLAY_GATHERED || own->failed) return;
  unit->came[unit->n_came++] = pl_replay_take(own, PL_REPLAY_GATHERS, size_bytes);
}

/* FSDP 2's host asks for a unit's memory in front of its forward pass, and for that of the next in a backward pass when
 * this one has been copied: the device gathers ahead, in the order of the host there are two at most. */
static void copy(pl_replay *own, const pl_instruction *instruction) {
  if (!in_chunks(own)) return;
  uint32_t came = pl_replay_take(own, PL_REPLAY_GATHERS, communication_of(own, instruction)->size_bytes);
  pl_replay_give(own, &own->last_come);
  copy_out(own, instruction->block, instruction->experts, PL_REPLAY_COMPUTES);
  if (instruction->backward)
    pl_replay_give(own, &came);
  else
    own->last_come = came;
}

void pl_replay_reshard(pl_replay *own, int32_t block, bool backward) {
  if (own->program->strategy->zero < 3 || (!backward && own->stays[block])) return;
  bool marked = own->framework->memory.records_streams;
  for (int experts = 0; experts <= 1; experts++) {
    pl_gathered_unit *unit = unit_of(own, block, experts);
    while (unit->n_came > 0)
      pl_replay_let_go(own, &unit->came[--unit->n_came], marked);
    for (uint32_t i = 0; unit->copied != NULL && i < pl_replay_block(own, block)->n_tensors; i++)
      pl_replay_let_go(own, &unit->copied[i], marked);
  }
}

void pl_replay_find_stays(pl_replay *own, int32_t chunk) {
  const pl_pass *forward = &own->stage->forward[chunk];
  const pl_pass *backward = own->stage->backward != NULL ? &own->stage->backward[chunk] : &own->stage->inputs[chunk];
  if (own->program->strategy->zero < 3) return;
  for (uint32_t i = 0; i < forward->n; i++)
    if (forward->instructions[i].kind == PL_INSTRUCTION_GATHER) own->stays[forward->instructions[i].block] = true;
  for (uint32_t i = 0; i < backward->n; i++)
    if (backward->instructions[i].kind == PL_INSTRUCTION_GATHER) own->stays[backward->instructions[i].block] = false;
}

/* ---- gradients ---- */

bool pl_replay_stands_alone(const pl_replay *own) {
  const pl_framework *framework = own->framework;
  bool buffers = framework->gradients.clears || framework->kernels.fuses_accumulation ||
                 framework->gradients.keeps_16bit_gradients;
  return own->program->strategy->zero < 2 && !buffers;
}

/* Whether the pass makes gradients that are there until the step. */
static bool begins_alone(const pl_replay *own) {
  return own->begins && pl_replay_stands_alone(own) && own->framework->gradients.life != PL_GRADIENTS_CONSUMED;
}

/* What was a tensor of a pass goes over to a list. */
static void adopt(pl_replay *own, pl_replay_list *list, uint32_t *held) {
  if (*held >= PL_REPLAY_BORROWED || own->failed) return;
  pl_replay_append(own, list, *held);
  if (!own->failed) *held = PL_NONE;
}

void pl_replay_keep_product(pl_replay *own, const pl_tensor *tensor, uint32_t *held) {
  bool in_buffer = tensor->kind == PL_TENSOR_PARAMETER_GRADIENT;
  bool of_experts = tensor->dims[0] == 'e' && pl_program_has_expert_data(own->program->model, own->program->strategy);
  if (own->bytes.pass_gradient_bytes > 0 && in_buffer)
    pl_replay_add(own, &own->of_pass, PL_REPLAY_COMPUTES, pl_replay_elements(tensor) * own->bytes.pass_gradient_bytes);
  else if (are_scattered(own))
    adopt(own, &own->pending[of_experts], held);
  else if (!in_buffer && begins_alone(own) && own->made_bytes == own->bytes.gradient_bytes)
    adopt(own, &own->of_step, held);
  else if (!in_buffer && begins_alone(own) && in_units(own)) /* which no kernel of its own adds to its buffer */
    pl_replay_add(own, &own->of_step, PL_REPLAY_COMPUTES, pl_replay_elements(tensor) * own->bytes.gradient_bytes);
}

void pl_replay_keep_sum(pl_replay *own, const pl_tensor *buffer) {
  if (begins_alone(own) && own->made_bytes != own->bytes.gradient_bytes)
    pl_replay_add(own, &own->of_step, PL_REPLAY_COMPUTES, pl_replay_elements(buffer) * own->bytes.gradient_bytes);
}

/* A table's gradient that is added to a buffer takes nothing here: what the lookup makes as a whole would show in
 * the calibration's runs with vocabularies of 32 k to 256 k (0.2 to 1.6 GB), and does not. */
static void keep_other(pl_replay *own, const pl_tensor *parameter) {
  double elements = pl_replay_elements(parameter);
  if (own->bytes.pass_gradient_bytes > 0)
    pl_replay_add(own, &own->of_pass, PL_REPLAY_COMPUTES, elements * own->bytes.pass_gradient_bytes);
  else if (are_scattered(own))
    pl_replay_add(own, &own->pending[is_apart(own, parameter)], PL_REPLAY_COMPUTES, elements * own->made_bytes);
  else if (begins_alone(own))
    pl_replay_add(own, &own->of_step, PL_REPLAY_COMPUTES, elements * own->bytes.gradient_bytes);
}

void pl_replay_keep_others(pl_replay *own, const pl_block_program *block) {
  if (own->bytes.pass_gradient_bytes <= 0 && !are_scattered(own) && !begins_alone(own)) return;
  for (uint32_t i = 0; i < block->n_tensors && !own->failed; i++)
    if (block->tensors[i].kind == PL_TENSOR_PARAMETER &&
        (block->kind == PL_BLOCK_EMBEDDING || !pl_tensor_is_matrix(&block->tensors[i])))
      keep_other(own, &block->tensors[i]);
}

/* Of what a unit's gradients are put together in, to the share that comes out of it. */
static void scatter(pl_replay *own, double elements, bool experts) {
  double share = elements / pl_program_shards(own->program, experts);
  bool casts = own->bytes.reduced_bytes != own->bytes.gradient_bytes;
  uint32_t out = PL_NONE;
  if (casts) out = pl_replay_take(own, PL_REPLAY_REDUCES, share * own->bytes.reduced_bytes);
  if (!own->failed && own->begins)
    pl_replay_add(own, &own->of_step, PL_REPLAY_REDUCES, share * own->bytes.gradient_bytes);
  else if (!own->failed)
    pl_replay_use(own, PL_REPLAY_REDUCES, share * own->bytes.gradient_bytes);
  if (!own->failed) pl_replay_give(own, &out);
}

static void reduce_flat(pl_replay *own, double elements, bool experts) {
  uint32_t flat = pl_replay_take(own, PL_REPLAY_COMPUTES, elements * own->made_bytes), cast = PL_NONE;
  if (!own->failed) pl_replay_clear(own, &own->pending[experts]);
  if (own->bytes.reduced_bytes != own->made_bytes && !own->failed)
    cast = pl_replay_take(own, PL_REPLAY_REDUCES, elements * own->bytes.reduced_bytes);
  if (!own->failed) scatter(own, elements, experts);
  if (own->failed) return;
  pl_replay_give(own, &cast);
  pl_replay_give(own, &flat);
}

static void reduce_chunks(pl_replay *own, double elements, bool experts) {
  pl_replay_give(own, &own->last_reduced);
  own->last_reduced = pl_replay_take(own, PL_REPLAY_COMPUTES, elements * own->bytes.reduced_bytes);
  if (!own->failed) pl_replay_clear(own, &own->pending[experts]);
  if (!own->failed && are_scattered(own)) scatter(own, elements, experts);
}

static void reduce(pl_replay *own, const pl_instruction *instruction) {
  double size_bytes = communication_of(own, instruction)->size_bytes;
  if (instruction->across) return; /* in place */
  double elements = size_bytes / own->bytes.reduced_bytes;
  if (in_chunks(own)) {
    reduce_chunks(own, elements, instruction->experts);
  } else if (are_scattered(own)) {
    reduce_flat(own, elements, instruction->experts);
  } else if (own->program->strategy->zero >= 2) { /* from a bucket: laid out anew, and what comes out */
    uint32_t laid = PL_NONE;
    if (own->framework->memory.copies_scattered) laid = pl_replay_take(own, PL_REPLAY_REDUCES, size_bytes);
    if (!own->failed)
      pl_replay_use(own, PL_REPLAY_REDUCES, size_bytes / pl_program_shards(own->program, instruction->experts));
    if (!own->failed) pl_replay_give(own, &laid);
  } else if (own->bytes.reduced_bytes < own->bytes.gradient_bytes) {
    pl_replay_use(own, PL_REPLAY_COMPUTES, size_bytes);
  }
}

void pl_replay_communicate(pl_replay *own, const pl_instruction *instruction) {
  switch ((pl_instruction_kind)instruction->kind) {
  case PL_INSTRUCTION_GATHER:
    if (instruction->block >= 0) gather(own, instruction);
    break;
  case PL_INSTRUCTION_COPY:
    if (instruction->block >= 0) copy(own, instruction);
    break;
  case PL_INSTRUCTION_REDUCE:
    reduce(own, instruction);
    break;
  default:
    break;
  }
}
