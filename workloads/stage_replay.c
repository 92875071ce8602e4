/* See workloads/stage_replay.h. */
#include "workloads/stage_replay.h"

#include <math.h>
#include <string.h>

#include "workloads/block_tape.h"
#include "workloads/caching_allocator.h"

enum { SETTLING = 4 /* microbatches after the first backward pass */ };

/* The tensors of one block and microbatch that have memory. */
typedef struct kept_block {
  uint32_t *held; /* allocator's block by tensor of the block program; PL_NONE: none */
} kept_block;

typedef struct replay {
  const pl_program *program;
  const pl_stage_program *stage;
  pl_arena *arena;
  pl_caching_allocator allocator;
  kept_block *kept; /* microbatch x block of the model */
  uint32_t *gradients;
  uint32_t n_gradients, most_gradients;
  double gradient_bytes; /* per parameter, until the pass is over */
  int64_t peak_bytes, occupied_bytes;
  bool failed;
} replay;

static const pl_block_program *program_of(const replay *own, int32_t block) {
  return &own->program->blocks[pl_model_block_class(own->program->model, block)];
}

static kept_block *kept_of(const replay *own, int32_t microbatch, int32_t block) {
  return &own->kept[(size_t)microbatch * (size_t)pl_model_n_blocks(own->program->model) + (size_t)block];
}

static uint32_t take(replay *own, double size_bytes) {
  uint32_t held = pl_caching_allocator_take(&own->allocator, llrint(size_bytes));
  own->failed |= held == PL_NONE;
  if (own->allocator.used_bytes > own->peak_bytes) {
    own->peak_bytes = own->allocator.used_bytes;
    own->occupied_bytes = own->allocator.occupied_bytes;
  }
  return held;
}

static void give(replay *own, uint32_t *held) {
  if (*held != PL_NONE) pl_caching_allocator_give(&own->allocator, *held);
  *held = PL_NONE;
}

static bool is_counted(const pl_tensor *tensor) {
  return tensor->kind == PL_TENSOR_ACTIVATION || tensor->kind == PL_TENSOR_MASK || tensor->kind == PL_TENSOR_GRADIENT;
}

/* The ops of one list; `staying` outlives it, and so does what is saved when it is the forward list. */
static void run_ops(replay *own, const pl_block_program *block, bool backward, kept_block *kept) {
  const pl_op_list *list = backward ? &block->backward : &block->forward;
  uint32_t staying = backward ? block->input_gradient : block->output, tensors[PL_OP_TENSORS];
  uint32_t last[PL_TAPE_TENSORS] = {0};
  PL_ASSERT(block->n_tensors <= PL_TAPE_TENSORS);
  for (uint32_t i = 0; i < list->n_ops && !own->failed; i++)
    for (uint32_t j = pl_op_tensors(&list->ops[i], tensors); j-- > 0;)
      last[tensors[j]] = i;
  for (uint32_t i = 0; i < list->n_ops && !own->failed; i++) {
    uint32_t n = pl_op_tensors(&list->ops[i], tensors);
    for (uint32_t j = 0; j < n; j++)
      if (kept->held[tensors[j]] == PL_NONE && is_counted(&block->tensors[tensors[j]]))
        kept->held[tensors[j]] = take(own, block->tensors[tensors[j]].size_bytes);
    for (uint32_t j = 0; j < n; j++)
      if (last[tensors[j]] == i && tensors[j] != staying && (backward || !block->tensors[tensors[j]].saved))
        give(own, &kept->held[tensors[j]]);
  }
}

static void forward_block(replay *own, int32_t microbatch, int32_t index, uint32_t *handed) {
  const pl_block_program *block = program_of(own, index);
  if (block->forward.n_ops == 0) return;
  kept_block *kept = kept_of(own, microbatch, index);
  if (kept->held == NULL) kept->held = PL_TAKE(own->arena, uint32_t, block->n_tensors);
  if (kept->held == NULL) {
    own->failed = true;
    return;
  }
  memset(kept->held, 0xff, block->n_tensors * sizeof *kept->held);
  if (block->input != PL_NONE) kept->held[block->input] = *handed;
  if (block->input == PL_NONE) give(own, handed);
  run_ops(own, block, false, kept);
  *handed = block->output == PL_NONE ? PL_NONE : kept->held[block->output];
  if (block->output != PL_NONE) kept->held[block->output] = PL_NONE;
}

/* Gradients of weights that are added to the others when the pass is over. */
static void take_gradients(replay *own, const pl_block_program *block) {
  for (uint32_t i = 0; i < block->n_tensors && own->gradient_bytes > 0; i++) {
    const pl_tensor *tensor = &block->tensors[i];
    if (tensor->kind != PL_TENSOR_PARAMETER || own->n_gradients == own->most_gradients) continue;
    double elements = tensor->size_bytes / pl_dtype_bytes((pl_dtype)tensor->dtype);
    own->gradients[own->n_gradients++] = take(own, elements * own->gradient_bytes);
  }
}

static void backward_block(replay *own, int32_t microbatch, int32_t index, uint32_t *handed) {
  const pl_block_program *block = program_of(own, index);
  kept_block *kept = kept_of(own, microbatch, index);
  if (block->forward.n_ops == 0 || kept->held == NULL) return;
  if (block->output_gradient != PL_NONE)
    kept->held[block->output_gradient] = *handed;
  else
    give(own, handed);
  run_ops(own, block, true, kept);
  if (!own->failed) take_gradients(own, block);
  *handed = PL_NONE;
  for (uint32_t i = 0; i < block->n_tensors && !own->failed; i++) {
    if (i == block->input_gradient)
      *handed = kept->held[i];
    else
      give(own, &kept->held[i]);
  }
}

static void replay_step(replay *own, const pl_step *step) {
  const pl_strategy *strategy = own->program->strategy;
  int32_t chunk = step->chunk * strategy->pp + own->stage->stage;
  int32_t first = strategy->boundary[chunk], end = strategy->boundary[chunk + 1];
  uint32_t handed = PL_NONE; /* what comes from another stage is taken by the op that first touches it */
  if (step->backward) {
    for (int32_t block = end; block-- > first && !own->failed;)
      backward_block(own, step->microbatch, block, &handed);
    while (own->n_gradients > 0 && !own->failed)
      give(own, &own->gradients[--own->n_gradients]);
  } else {
    for (int32_t block = first; block < end && !own->failed; block++)
      forward_block(own, step->microbatch, block, &handed);
  }
  if (!own->failed) give(own, &handed);
}

pl_code pl_stage_replay(const pl_program *program, int32_t stage, pl_arena *arena, pl_replayed_memory *memory,
                        pl_error *error) {
  const pl_stage_program *own = &program->stages[stage];
  const pl_stage_schedule *schedule = &own->schedules[0];
  int32_t in_flight = pl_schedule_in_flight(schedule->steps, schedule->n_steps);
  int32_t most = in_flight / program->strategy->vpp + program->strategy->pp + SETTLING;
  if (most > program->n_microbatches) most = program->n_microbatches;
  enum { MOST_GRADIENTS = 1 << 14 };
  pl_arena_mark mark = pl_arena_mark_here(arena);
  replay state = {.program = program,
                  .stage = own,
                  .arena = arena,
                  .most_gradients = MOST_GRADIENTS,
                  .gradient_bytes =
                      pl_training_state_of(program->job, pl_strategy_replicas(program->strategy)).pass_gradient_bytes};
  pl_caching_allocator_init(&state.allocator, arena);
  state.kept = PL_TAKE(arena, kept_block, (size_t)most * (size_t)pl_model_n_blocks(program->model));
  state.gradients = PL_TAKE(arena, uint32_t, MOST_GRADIENTS);
  state.failed = arena->failed;
  for (int64_t i = 0; i < schedule->n_steps && !state.failed; i++)
    if (schedule->steps[i].microbatch < most) replay_step(&state, &schedule->steps[i]);
  *memory = (pl_replayed_memory){.peak = (double)state.peak_bytes,
                                 .held = (double)(state.allocator.held_bytes - state.peak_bytes),
                                 .stuck = (double)(state.occupied_bytes - state.peak_bytes)};
  bool failed = state.failed;
  pl_arena_release_to(arena, mark);
  return failed ? pl_fail_memory(error, "the replay of a stage's memory") : PL_OK;
}
