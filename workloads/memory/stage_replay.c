/* See workloads/memory/stage_replay.h. */
#include "workloads/memory/stage_replay.h"

#include <math.h>
#include <string.h>

#include "workloads/memory/caching_allocator.h"
#include "workloads/memory/pass_requests.h"
#include "workloads/memory/stage_memory.h"

enum {
  SETTLING = 4,   /* microbatches after the first backward pass */
  ITERATIONS = 3, /* the optimizer's state comes in the first, what it leaves free is shared out anew in the second */
  MOST_TENSORS = 1 << 14,
  BORROWED = PL_NONE - 1 /* of a tensor: it lies in a buffer that stays */
};

static const double fp32_bytes = 4;

/* A weight of the stage. */
typedef struct held_weight {
  double elements, share; /* of it, and of its optimizer's state on this rank */
} held_weight;

/* The tensors of one block and microbatch that have memory. */
typedef struct kept_block {
  uint32_t *held; /* allocator's block by tensor of the block program; PL_NONE: none */
} kept_block;

/* Freed by the host, marked by a collective: it comes free when the device has passed the launch. */
typedef struct waiting_block {
  uint32_t held;
  int64_t launch;
} waiting_block;

typedef struct replay {
  const pl_program *program;
  const pl_stage_program *stage;
  pl_arena *arena;
  pl_caching_allocator allocator;
  kept_block *kept; /* microbatch x block of the model */
  uint32_t *gradients;
  uint32_t n_gradients;
  held_weight *weights;
  uint32_t n_weights;
  pl_training_state bytes;
  struct {
    uint32_t held;
    double size_bytes;
  } gathered[2];               /* buffers that stay: of activations, of gradients */
  int64_t n_launches, n_ahead; /* ops so far, and how many of them the device lags behind; 0: nothing waits */
  waiting_block *waiting;      /* a ring of MOST_TENSORS */
  uint32_t first_waiting, n_waiting;
  bool keeps_gathered; /* the framework does, in buffers that stay */
  pl_pass_requests requests[PL_MODEL_CLASSES_MAX][PL_PASS_COUNT];
  int64_t peak_bytes, occupied_bytes;
  bool failed;
} replay;

static const pl_block_program *program_of(const replay *own, int32_t block) {
  return &own->program->blocks[pl_model_block_class(own->program->model, block)];
}

static kept_block *kept_of(const replay *own, int32_t microbatch, int32_t block) {
  return &own->kept[(size_t)microbatch * (size_t)pl_model_n_blocks(own->program->model) + (size_t)block];
}

static void settle_until(replay *own, int64_t launch) {
  while (own->n_waiting > 0 && own->waiting[own->first_waiting].launch <= launch) {
    uint32_t held = own->waiting[own->first_waiting].held;
    own->first_waiting = (own->first_waiting + 1) % MOST_TENSORS;
    own->n_waiting--;
    pl_caching_allocator_give(&own->allocator, held);
  }
}

/* The host waits for the device. */
static void settle(void *own) {
  settle_until(own, INT64_MAX);
}

static uint32_t take(replay *own, double size_bytes) {
  settle_until(own, own->n_launches - own->n_ahead);
  uint32_t held = pl_caching_allocator_take(&own->allocator, llrint(size_bytes));
  own->failed |= held == PL_NONE;
  if (own->allocator.used_bytes > own->peak_bytes) {
    own->peak_bytes = own->allocator.used_bytes;
    own->occupied_bytes = own->allocator.occupied_bytes;
  }
  return held;
}

static void give(replay *own, uint32_t *held) {
  if (*held < BORROWED) pl_caching_allocator_give(&own->allocator, *held);
  *held = PL_NONE;
}

/* As give, or later. */
static void let_go(replay *own, uint32_t *held, bool marked) {
  if (own->n_ahead == 0 || !marked || *held >= BORROWED || own->n_waiting == MOST_TENSORS) {
    give(own, held);
    return;
  }
  uint32_t last = (own->first_waiting + own->n_waiting++) % MOST_TENSORS;
  own->waiting[last] = (waiting_block){.held = *held, .launch = own->n_launches};
  *held = PL_NONE;
}

/* Of what a tensor collective gathers, where the framework keeps such buffers. They only grow. */
static bool lies_in_buffer(replay *own, const pl_tensor *tensor) {
  int which = tensor->kind == PL_TENSOR_GRADIENT;
  if (tensor->size_bytes <= own->gathered[which].size_bytes) return true;
  uint32_t larger = take(own, tensor->size_bytes);
  give(own, &own->gathered[which].held);
  own->gathered[which].held = larger;
  own->gathered[which].size_bytes = tensor->size_bytes;
  return true;
}

static double elements_of(const pl_tensor *tensor) {
  return tensor->size_bytes / pl_dtype_bytes((pl_dtype)tensor->dtype);
}

static void take_gradient(replay *own, const pl_tensor *tensor) {
  if (own->bytes.pass_gradient_bytes == 0 || own->n_gradients == MOST_TENSORS || own->failed) return;
  own->gradients[own->n_gradients++] = take(own, elements_of(tensor) * own->bytes.pass_gradient_bytes);
}

/* Of a tensor that a recomputation makes again in part, that part is given up behind the forward pass and taken again
 * by its first reader of the backward pass. */
static void resize(replay *own, const pl_tensor *tensor, double size_bytes, uint32_t *held) {
  if (own->failed || !tensor->saved || tensor->remade_bytes <= 0 || *held >= BORROWED) return;
  give(own, held);
  *held = take(own, size_bytes);
}

static void keep_part(replay *own, const pl_block_program *block, kept_block *kept) {
  for (uint32_t t = 0; t < block->n_tensors; t++)
    resize(own, &block->tensors[t], block->tensors[t].size_bytes - block->tensors[t].remade_bytes, &kept->held[t]);
}

static void take_for(replay *own, const pl_tensor *tensor, const pl_request *request, uint32_t *held) {
  if (request->remade) resize(own, tensor, tensor->size_bytes, held);
  if (*held != PL_NONE || !request->held) return;
  bool borrows = request->gathered && own->keeps_gathered && lies_in_buffer(own, tensor);
  *held = borrows ? BORROWED : take(own, request->size_bytes);
}

/* A weight gradient in a tensor of its own, which the sum over microbatches is not, is what a product takes. */
static void ask(replay *own, const pl_block_program *block, const pl_request *request, kept_block *kept) {
  uint32_t *held = &kept->held[request->tensor];
  switch ((pl_request_kind)request->kind) {
  case PL_REQUEST_TAKE:
    take_for(own, &block->tensors[request->tensor], request, held);
    break;
  case PL_REQUEST_PRODUCT:
    take_gradient(own, &block->tensors[request->tensor]);
    break;
  case PL_REQUEST_GIVE:
    let_go(own, held, request->marked);
    break;
  }
}

static void run_ops(replay *own, int32_t index, pl_block_pass pass, kept_block *kept) {
  const pl_block_program *block = program_of(own, index);
  pl_pass_requests *requests = &own->requests[pl_model_block_class(own->program->model, index)][pass];
  if (requests->all == NULL && !pl_pass_requests_take(block, pass, own->arena, requests)) own->failed = true;
  int64_t before = own->n_launches;
  for (uint32_t i = 0; i < requests->n && !own->failed; i++) {
    own->n_launches = before + requests->all[i].n_launches;
    ask(own, block, &requests->all[i], kept);
  }
  own->n_launches = before + requests->n_ops;
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
  run_ops(own, index, PL_PASS_FORWARD, kept);
  keep_part(own, block, kept);
  *handed = block->output == PL_NONE ? PL_NONE : kept->held[block->output];
  if (block->output != PL_NONE) kept->held[block->output] = PL_NONE;
}

/* Gradients of weights that are added to the others when the pass is over: those that no product makes. */
static void take_gradients(replay *own, const pl_block_program *block) {
  for (uint32_t i = 0; i < block->n_tensors; i++)
    if (block->tensors[i].kind == PL_TENSOR_PARAMETER &&
        (block->kind == PL_BLOCK_EMBEDDING || !pl_tensor_is_matrix(&block->tensors[i])))
      take_gradient(own, &block->tensors[i]);
}

static void backward_block(replay *own, int32_t microbatch, int32_t index, pl_block_pass pass, uint32_t *handed) {
  const pl_block_program *block = program_of(own, index);
  kept_block *kept = kept_of(own, microbatch, index);
  bool weights = pass == PL_PASS_WEIGHTS;
  if (block->forward.n_ops == 0 || kept->held == NULL) return;
  if (!weights && block->output_gradient != PL_NONE)
    kept->held[block->output_gradient] = *handed;
  else
    give(own, handed);
  run_ops(own, index, pass, kept);
  if (pass != PL_PASS_INPUTS && !own->failed) take_gradients(own, block);
  *handed = PL_NONE;
  for (uint32_t i = 0; i < block->n_tensors && !own->failed; i++) {
    bool is_handed = i == block->input_gradient && !weights;
    if (is_handed) {
      *handed = kept->held[i];
      kept->held[i] = PL_NONE;
    }
    if (is_handed || (pass == PL_PASS_INPUTS && block->tensors[i].waits)) continue;
    give(own, &kept->held[i]);
  }
}

static void replay_step(replay *own, const pl_schedule_step *step) {
  const pl_strategy *strategy = own->program->strategy;
  int32_t chunk = pl_strategy_chunk_at(strategy, own->stage->stage, step->chunk);
  int32_t first = strategy->boundary[chunk], end = strategy->boundary[chunk + 1];
  uint32_t handed = PL_NONE; /* what comes from another stage is taken by the op that first touches it */
  if (step->kind != PL_STEP_FORWARD) {
    for (int32_t block = end; block-- > first && !own->failed;)
      backward_block(own, step->microbatch, block, (pl_block_pass)step->kind, &handed);
    while (own->n_gradients > 0 && !own->failed)
      give(own, &own->gradients[--own->n_gradients]);
  } else {
    for (int32_t block = first; block < end && !own->failed; block++)
      forward_block(own, step->microbatch, block, &handed);
  }
  if (!own->failed) give(own, &handed);
}

/* ---- what stays, and the optimizer ---- */

/* A tied head beside its embedding has no weight of its own. */
static bool is_tied(const replay *own, const pl_block_program *block, const pl_tensor *tensor) {
  bool beside = own->stage->stage == 0 && own->program->strategy->boundary[0] == 0;
  return beside && block->tied_parameters > 0 && elements_of(tensor) == block->tied_parameters;
}

static void add_weights(replay *own, const pl_block_program *block) {
  const pl_strategy *strategy = own->program->strategy;
  for (uint32_t i = 0; i < block->n_tensors; i++) {
    const pl_tensor *tensor = &block->tensors[i];
    if (tensor->kind != PL_TENSOR_PARAMETER || own->n_weights == MOST_TENSORS) continue;
    if (is_tied(own, block, tensor)) continue;
    double shards = strategy->zero >= 1 ? pl_program_shards(own->program, tensor->expert) : 1;
    own->weights[own->n_weights++] =
        (held_weight){.elements = elements_of(tensor), .share = ceil(elements_of(tensor) / shards)};
  }
}

static void find_weights(replay *own) {
  const pl_strategy *strategy = own->program->strategy;
  for (int32_t place = 0; place < strategy->vpp; place++) {
    int32_t chunk = pl_strategy_chunk_at(strategy, own->stage->stage, place);
    for (int32_t index = strategy->boundary[chunk]; index < strategy->boundary[chunk + 1]; index++)
      add_weights(own, program_of(own, index));
  }
}

static double sum_of(const replay *own, bool shared) {
  double sum = 0;
  for (uint32_t i = 0; i < own->n_weights; i++)
    sum += shared ? own->weights[i].share : own->weights[i].elements;
  return sum;
}

static void take_some(replay *own, double size_bytes) {
  if (size_bytes > 0 && !own->failed) take(own, size_bytes);
}

/* Of gradients as they travel, in the order in which they come. */
static void take_buckets(replay *own) {
  double full_bytes = own->program->job->bucket_bytes, elements = 0;
  for (uint32_t i = own->n_weights; i-- > 0;) {
    elements += own->weights[i].elements;
    if (i > 0 && (full_bytes <= 0 || elements * own->bytes.gradient_bytes < full_bytes)) continue;
    take_some(own, elements * own->bytes.extra_gradient_bytes);
    elements = 0;
  }
}

static void take_weights(replay *own) {
  const pl_framework *framework = pl_framework_or_ideal(own->program->job->framework);
  int32_t zero = own->program->strategy->zero, sharded_from = own->bytes.cast_bytes > 0 ? 2 : 3;
  take_some(own, framework->memory.workspace_bytes);
  for (uint32_t i = 0; i < own->n_weights; i++) {
    const held_weight *weight = &own->weights[i];
    take_some(own, (zero >= sharded_from ? weight->share : weight->elements) * own->bytes.parameter_bytes);
    take_some(own, zero >= 3 ? 0 : weight->elements * own->bytes.cast_bytes);
  }
  take_buckets(own);
  take_some(own, sum_of(own, zero >= 2) * own->bytes.gradient_bytes);
  take_some(own, sum_of(own, true) * fmax(own->bytes.optimizer_bytes - 2 * fp32_bytes, 0));
}

/* The optimizer's step: the first makes the moments. Where updated weights are copied tensor by tensor they are
 * gathered into one flat tensor per rank; NCCL, which gathers into one tensor, has another of all of them under that
 * list. */
static void step_optimizer(replay *own, bool first) {
  const pl_strategy *strategy = own->program->strategy;
  const pl_framework *framework = pl_framework_or_ideal(own->program->job->framework);
  for (uint32_t i = 0; i < own->n_weights && first && own->bytes.optimizer_bytes >= 2 * fp32_bytes; i++)
    for (int moment = 0; moment < 2; moment++)
      take_some(own, own->weights[i].share * fp32_bytes);
  double shards = pl_program_shards(own->program, false), share_bytes = sum_of(own, true) * own->bytes.gathered_bytes;
  if (!framework->gathers.copies_per_tensor || (strategy->zero != 1 && strategy->zero != 2) || shards <= 1) return;
  own->n_gradients = 0; /* none is there */
  own->gradients[own->n_gradients++] = take(own, share_bytes);
  for (double i = 0; i < shards && own->n_gradients < MOST_TENSORS / 2 && !own->failed; i++)
    own->gradients[own->n_gradients++] = take(own, share_bytes);
  if (!own->failed) own->gradients[own->n_gradients++] = take(own, share_bytes * shards);
  while (own->n_gradients > 0 && !own->failed)
    give(own, &own->gradients[--own->n_gradients]);
}

/* The passes of the first microbatches come in the same order whatever follows them, but where all forwards come first;
 * so the schedule need not be longer than they are. */
static pl_schedule schedule_of(const replay *own, int32_t n_microbatches) {
  const pl_schedule *whole = &own->stage->schedules[0];
  const pl_strategy *strategy = own->program->strategy;
  int32_t round = pl_schedule_round(strategy), n = (n_microbatches + round - 1) / round * round;
  bool turns = whole->kind == PL_SCHEDULE_GPIPE || whole->kind == PL_SCHEDULE_FIFO;
  if (turns || !pl_schedule_recurs(strategy) || n >= whole->n_microbatches) return *whole;
  return pl_schedule_of(own->program->strategy, n, own->stage->stage);
}

static void train(replay *own, int32_t n_microbatches) {
  const pl_schedule schedule = schedule_of(own, n_microbatches);
  find_weights(own);
  take_weights(own);
  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
    pl_schedule_cursor cursor = {0};
    for (int64_t i = 0; i < pl_schedule_n_steps(&schedule) && !own->failed; i++) {
      const pl_schedule_step step = pl_schedule_next(&schedule, &cursor);
      if (step.microbatch < n_microbatches) replay_step(own, &step);
    }
    if (!own->failed) step_optimizer(own, iteration == 0);
  }
}

/* With a host that is `n_ahead` ops ahead of the device. */
static pl_code replay_once(const pl_program *program, int32_t stage, double limit_bytes, int64_t n_ahead,
                           pl_arena *arena, pl_replayed_memory *memory, pl_error *error) {
  const pl_stage_program *own = &program->stages[stage];
  int32_t in_flight = pl_schedule_in_flight(&own->schedules[0]);
  int32_t most = in_flight / program->strategy->vpp + program->strategy->pp + SETTLING;
  if (pl_strategy_splits_backward(program->strategy)) most += pl_schedule_filling(program->strategy);
  if (!pl_schedule_recurs(program->strategy)) most = program->n_microbatches;
  if (most > program->n_microbatches) most = program->n_microbatches;
  pl_arena_mark mark = pl_arena_mark_here(arena);
  replay state = {.program = program,
                  .stage = own,
                  .arena = arena,
                  .gathered = {{.held = PL_NONE}, {.held = PL_NONE}},
                  .n_ahead = n_ahead,
                  .keeps_gathered = pl_framework_or_ideal(program->job->framework)->memory.keeps_gathered,
                  .bytes = program->training};
  pl_caching_allocator_init(&state.allocator, arena);
  state.allocator.limit_bytes = limit_bytes > 0 ? llrint(limit_bytes) : 0;
  state.kept = PL_TAKE(arena, kept_block, (size_t)most * (size_t)pl_model_n_blocks(program->model));
  state.gradients = PL_TAKE(arena, uint32_t, MOST_TENSORS);
  state.weights = PL_TAKE(arena, held_weight, MOST_TENSORS);
  if (n_ahead > 0) {
    state.waiting = PL_TAKE(arena, waiting_block, MOST_TENSORS);
    state.allocator.settle = settle;
    state.allocator.waiting = &state;
  }
  state.failed = arena->failed;
  if (!state.failed) train(&state, most);
  *memory = (pl_replayed_memory){.peak = (double)state.peak_bytes,
                                 .reserved = (double)state.allocator.most_held_bytes,
                                 .stuck = (double)(state.occupied_bytes - state.peak_bytes),
                                 .full = state.allocator.full};
  bool failed = state.failed && !state.allocator.full;
  pl_arena_release_to(arena, mark);
  return failed ? pl_fail_memory(error, "the replay of a stage's memory") : PL_OK;
}

pl_code pl_stage_replay(const pl_program *program, int32_t stage, double limit_bytes, pl_arena *arena,
                        pl_replayed_memory *memory, pl_error *error) {
  const pl_framework *framework = pl_framework_or_ideal(program->job->framework);
  PL_TRY(replay_once(program, stage, limit_bytes, 0, arena, memory, error));
  bool ahead = framework->memory.records_streams && framework->launch.host_window != PL_HOST_KERNEL &&
               framework->launch.collective_rank_s <= 0;
  if (!ahead || memory->full) return PL_OK;
  double peak = memory->peak; /* of tensors that somebody needs */
  PL_TRY(replay_once(program, stage, limit_bytes, (int64_t)framework->launch.ops_ahead, arena, memory, error));
  memory->peak = fmin(memory->peak, peak);
  return PL_OK;
}
