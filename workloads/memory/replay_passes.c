/* Passes of a stage's blocks in a replay: see workloads/memory/replay.h. */
#include <string.h>

#include "workloads/memory/replay.h"

static pl_kept_block *kept_of(const pl_replay *own, int32_t microbatch, int32_t block) {
  return &own->kept[(size_t)microbatch * (size_t)pl_model_n_blocks(own->program->model) + (size_t)block];
}

/* Of what a tensor collective gathers, where the framework keeps such buffers. They only grow. */
static bool lies_in_buffer(pl_replay *own, const pl_tensor *tensor) {
  int which = tensor->kind == PL_TENSOR_GRADIENT;
  if (tensor->size_bytes <= own->gathered[which].size_bytes) return true;
  uint32_t larger = pl_replay_take(own, PL_REPLAY_COMPUTES, tensor->size_bytes);
  pl_replay_give(own, &own->gathered[which].held);
  own->gathered[which].held = larger;
  own->gathered[which].size_bytes = tensor->size_bytes;
  return true;
}

/* Of a tensor that a recomputation makes again in part, that part is given up behind the forward pass and taken again
 * by its first reader of the backward pass. */
static void resize(pl_replay *own, const pl_tensor *tensor, double size_bytes, uint32_t *held) {
  if (own->failed || !tensor->saved || tensor->remade_bytes <= 0 || *held >= PL_REPLAY_BORROWED) return;
  pl_replay_give(own, held);
  *held = pl_replay_take(own, PL_REPLAY_COMPUTES, size_bytes);
}

static void keep_part(pl_replay *own, const pl_block_program *block, pl_kept_block *kept) {
  for (uint32_t t = 0; t < block->n_tensors; t++)
    resize(own, &block->tensors[t], block->tensors[t].size_bytes - block->tensors[t].remade_bytes, &kept->held[t]);
}

static void take_for(pl_replay *own, const pl_tensor *tensor, const pl_request *request, uint32_t *held) {
  if (request->remade) resize(own, tensor, tensor->size_bytes, held);
  if (*held != PL_NONE || !request->held) return;
  bool borrows = request->gathered && own->keeps_gathered && lies_in_buffer(own, tensor);
  *held = borrows ? PL_REPLAY_BORROWED : pl_replay_take(own, PL_REPLAY_COMPUTES, request->size_bytes);
}

static void ask(pl_replay *own, const pl_block_program *block, const pl_request *request, pl_kept_block *kept) {
  uint32_t *held = &kept->held[request->tensor];
  switch ((pl_request_kind)request->kind) {
  case PL_REQUEST_TAKE:
    take_for(own, &block->tensors[request->tensor], request, held);
    break;
  case PL_REQUEST_PRODUCT:
    pl_replay_keep_product(own, &block->tensors[request->tensor], held);
    break;
  case PL_REQUEST_ADDED:
    pl_replay_keep_sum(own, &block->tensors[request->tensor]);
    break;
  case PL_REQUEST_GIVE:
    pl_replay_let_go(own, held, request->marked);
    break;
  }
}

static void run_ops(pl_replay *own, int32_t index, pl_block_pass pass, pl_kept_block *kept) {
  const pl_block_program *block = pl_replay_block(own, index);
  pl_pass_requests *requests = &own->requests[pl_model_block_class(own->program->model, index)][pass];
  if (requests->all == NULL && !pl_pass_requests_take(block, pass, own->arena, requests)) own->failed = true;
  int64_t before = own->n_launches;
  for (uint32_t i = 0; i < requests->n && !own->failed; i++) {
    own->n_launches = before + requests->all[i].n_launches;
    ask(own, block, &requests->all[i], kept);
  }
  own->n_launches = before + requests->n_ops;
}

static void forward_block(pl_replay *own, int32_t microbatch, int32_t index, uint32_t *handed) {
  const pl_block_program *block = pl_replay_block(own, index);
  if (block->forward.n_ops == 0) return;
  pl_kept_block *kept = kept_of(own, microbatch, index);
  if (kept->held == NULL) kept->held = PL_TAKE(own->arena, uint32_t, block->n_tensors);
  if (kept->held == NULL) {
    own->failed = true;
    return;
  }
  memset(kept->held, 0xff, block->n_tensors * sizeof *kept->held);
  if (block->input != PL_NONE) kept->held[block->input] = *handed;
  if (block->input == PL_NONE) pl_replay_give(own, handed);
  run_ops(own, index, PL_PASS_FORWARD, kept);
  keep_part(own, block, kept);
  *handed = block->output == PL_NONE ? PL_NONE : kept->held[block->output];
  if (block->output != PL_NONE) kept->held[block->output] = PL_NONE;
}

static void backward_block(pl_replay *own, int32_t microbatch, int32_t index, pl_block_pass pass, uint32_t *handed) {
  const pl_block_program *block = pl_replay_block(own, index);
  pl_kept_block *kept = kept_of(own, microbatch, index);
  bool weights = pass == PL_PASS_WEIGHTS;
  if (block->forward.n_ops == 0 || kept->held == NULL) return;
  if (!weights && block->output_gradient != PL_NONE)
    kept->held[block->output_gradient] = *handed;
  else
    pl_replay_give(own, handed);
  run_ops(own, index, pass, kept);
  if (pass != PL_PASS_INPUTS && !own->failed) pl_replay_keep_others(own, block);
  *handed = PL_NONE;
  for (uint32_t i = 0; i < block->n_tensors && !own->failed; i++) {
    if (kept->held[i] == PL_NONE) continue;
    bool is_handed = i == block->input_gradient && !weights;
    if (is_handed) {
      *handed = kept->held[i];
      kept->held[i] = PL_NONE;
    }
    if (is_handed || (pass == PL_PASS_INPUTS && block->tensors[i].waits)) continue;
    pl_replay_give(own, &kept->held[i]);
  }
}

static const pl_pass *pass_of(const pl_replay *own, const pl_schedule_step *step, bool last) {
  const pl_stage_program *stage = own->stage;
  switch ((pl_block_pass)step->kind) {
  case PL_PASS_FORWARD:
    return &stage->forward[step->chunk];
  case PL_PASS_INPUTS:
    return &stage->inputs[step->chunk];
  case PL_PASS_WEIGHTS:
    return last ? &stage->last_weights[step->chunk] : &stage->weights[step->chunk];
  default:
    return last ? &stage->last_backward[step->chunk] : &stage->backward[step->chunk];
  }
}

static void run_block(pl_replay *own, int32_t microbatch, int32_t block, pl_block_pass pass, uint32_t *handed) {
  if (pass == PL_PASS_FORWARD)
    forward_block(own, microbatch, block, handed);
  else
    backward_block(own, microbatch, block, pass, handed);
  if (!own->failed) pl_replay_reshard(own, block, pass != PL_PASS_FORWARD);
}

/* A pass that is under way. */
typedef struct running {
  const pl_schedule_step *step;
  const pl_pass *pass;
  uint32_t at;     /* its next instruction */
  uint32_t handed; /* from block to block; what comes from another stage is taken by the op that first touches it */
} running;

static running begin(const pl_replay *own, const pl_schedule_step *step, bool last) {
  return (running){.step = step, .pass = pass_of(own, step, last), .handed = PL_NONE};
}

/* Up to and with its next block. False: it has none any more. */
static bool go_on(pl_replay *own, running *run) {
  own->begins = run->step->microbatch == 0;
  while (run->at < run->pass->n && !own->failed) {
    const pl_instruction *instruction = &run->pass->instructions[run->at++];
    if (instruction->kind == PL_INSTRUCTION_BLOCK) {
      run_block(own, run->step->microbatch, instruction->block, (pl_block_pass)run->step->kind, &run->handed);
      return true;
    }
    pl_replay_communicate(own, instruction);
  }
  return false;
}

static void end(pl_replay *own, running *run) {
  if (run->step->kind != PL_STEP_FORWARD) pl_replay_clear(own, &own->of_pass);
  if (!own->failed) pl_replay_give(own, &run->handed);
  if (!own->failed && run->step->kind != PL_STEP_FORWARD) pl_replay_give(own, &own->last_reduced);
}

void pl_replay_run(pl_replay *own, const pl_schedule_step *step, bool last) {
  running run = begin(own, step, last);
  while (go_on(own, &run))
    continue;
  if (!own->failed) end(own, &run);
}

void pl_replay_run_pair(pl_replay *own, const pl_schedule_step *forward, const pl_schedule_step *backward, bool last) {
  running there = begin(own, forward, last), back = begin(own, backward, last);
  for (bool more = true; more && !own->failed;) {
    more = go_on(own, &back);
    more = go_on(own, &there) || more;
  }
  if (!own->failed) end(own, &back);
  if (!own->failed) end(own, &there);
}
