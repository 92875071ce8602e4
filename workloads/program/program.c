/* See workloads/program/program.h. */
#include "workloads/program/program_making.h"

#include <math.h>
#include <string.h>

#include "workloads/lower/block_program.h"
#include "workloads/program/measured_block.h"

/* Adam's arithmetic as torch's foreach form does it, one pass over the tensors per step: exp_avg.lerp_ (3 tensors
 * read or written), exp_avg_sq.mul_ (2) and addcmul_ (4), sqrt (2), division by the bias correction (2), add of eps
 * (2), addcdiv_ (4), weight decay (2): 21 of four bytes where the fused form has 7 (p, m, v twice, g once). */
static const double foreach_passes = 21, fused_passes = 7, fp32_bytes = 4;
/* A moment of a byte, and its share of the scale of 256 of them (Dettmers et al. 2022, block-wise quantization). */
static const double small_moment_bytes = 1 + 4.0 / 256;

/* Read and written by Adam's arithmetic on tensors of `bytes` a number, and both moments with it. */
static double adam_traffic(const pl_framework *framework, double bytes) {
  switch (framework->update.optimizer) {
  case PL_OPTIMIZER_FUSED:
    return fused_passes * bytes;
  case PL_OPTIMIZER_FUSED_8BIT:
    return (fused_passes - 4) * bytes + 4 * small_moment_bytes;
  default:
    return foreach_passes * bytes;
  }
}

static double moments_of(const pl_framework *framework, double bytes) {
  return 2 * (framework->update.optimizer == PL_OPTIMIZER_FUSED_8BIT ? small_moment_bytes : bytes);
}

static bool is_fused(const pl_framework *framework) {
  return framework->update.optimizer == PL_OPTIMIZER_FUSED || framework->update.optimizer == PL_OPTIMIZER_FUSED_8BIT;
}

static double update_traffic_of(const pl_framework *framework, pl_dtype dtype, double gradient, double cast) {
  bool fused = is_fused(framework);
  double steps = adam_traffic(framework, fp32_bytes);
  /* A gradient of 16 bits is first turned into fp32: read, written, and read again. The norm reads all gradients, the
   * clipping reads and writes them, as does the division by the scale of the loss. */
  double converted = gradient < fp32_bytes ? gradient + fp32_bytes : 0;
  double clipped = framework->update.clips_gradients ? 3 * fp32_bytes : 0;
  if (framework->update.unscales_gradients && dtype == PL_DTYPE_FP16) clipped += 2 * fp32_bytes;
  /* The foreach form casts the weights back by copies of their own. */
  return steps + converted + clipped + cast + (fused || cast == 0 ? 0 : fp32_bytes);
}

/* Of a gradient on its way, where `kept` are kept. */
static double reduced_bytes_of(const pl_framework *framework, pl_dtype dtype, double kept) {
  int narrow = pl_framework_reduce_dtype(framework, dtype);
  return narrow < 0 ? kept : pl_dtype_bytes((pl_dtype)narrow);
}

/* Read and written per gradient that is kept, whoever owns the parameter: buffers are cleared, and what is reduced is
 * copied, divided and looked at. */
static double whole_traffic_of(const pl_framework *framework, double kept, double reduced, int32_t dp) {
  return (framework->gradients.clears ? kept : 0) + (dp > 1 ? framework->gradients.passes * reduced : 0);
}

/* Weights in one type and nothing beside them. */
static pl_training_state state_of_sgd(const pl_framework *framework, pl_dtype dtype, int32_t dp) {
  double compute = pl_dtype_bytes(dtype), reduced = reduced_bytes_of(framework, dtype, compute);
  return (pl_training_state){.parameter_bytes = compute,
                             .gathered_bytes = compute,
                             .gradient_bytes = compute,
                             .reduced_bytes = reduced,
                             .update_traffic_bytes = 3 * compute,
                             .whole_traffic_bytes = whole_traffic_of(framework, compute, reduced, dp)};
}

/* Adam on tensors of one type: as many passes over them as in fp32, and no conversions. */
static pl_training_state state_of_alone(const pl_framework *framework, pl_dtype dtype, double gradient, int32_t dp) {
  double compute = pl_dtype_bytes(dtype), reduced = reduced_bytes_of(framework, dtype, gradient);
  return (pl_training_state){.parameter_bytes = compute,
                             .gathered_bytes = compute,
                             .gradient_bytes = gradient,
                             .reduced_bytes = reduced,
                             .optimizer_bytes = moments_of(framework, compute),
                             .update_bytes = framework->update.optimizer == PL_OPTIMIZER_FOREACH ? compute : 0,
                             .update_traffic_bytes = adam_traffic(framework, compute) +
                                                     (framework->update.clips_gradients ? 3 * gradient : 0),
                             .whole_traffic_bytes = whole_traffic_of(framework, gradient, reduced, dp)};
}

pl_training_state pl_training_state_of(const pl_job *job, int32_t dp) {
  const pl_framework *framework = pl_framework_or_ideal(job->framework);
  double compute = pl_dtype_bytes(job->dtype);
  double gradient = pl_dtype_bytes(pl_framework_gradient_dtype(framework, job->dtype));
  if (framework->update.optimizer == PL_OPTIMIZER_SGD) return state_of_sgd(framework, job->dtype, dp);
  if (framework->update.weights == PL_WEIGHTS_ALONE) return state_of_alone(framework, job->dtype, gradient, dp);
  bool single = compute >= fp32_bytes; /* weights are their own master copy, beside momentum and variance */
  bool wide = pl_framework_autocast(framework, job->dtype) == PL_AUTOCAST_ALL;
  bool own_master = single || framework->update.weights == PL_WEIGHTS_FP32;
  double reduced = reduced_bytes_of(framework, job->dtype, gradient);
  pl_training_state state = {.parameter_bytes = own_master ? fp32_bytes : compute,
                             .cast_bytes = own_master && !single ? compute : 0,
                             .gathered_bytes = wide ? fp32_bytes : compute,
                             .gradient_bytes = gradient,
                             .reduced_bytes = reduced,
                             .optimizer_bytes = moments_of(framework, fp32_bytes) + (own_master ? 0 : fp32_bytes),
                             .update_bytes = gradient < fp32_bytes ? fp32_bytes : 0,
                             .update_traffic_bytes =
                                 update_traffic_of(framework, job->dtype, gradient, single ? 0 : compute),
                             .whole_traffic_bytes = whole_traffic_of(framework, gradient, reduced, dp)};
  if (framework->gradients.keeps_16bit_gradients && gradient > compute) {
    state.pass_gradient_bytes = framework->gradients.holds_16bit_gradients ? 0 : compute;
    state.extra_gradient_bytes = framework->gradients.holds_16bit_gradients ? compute : 0;
  }
  if (framework->gradients.copies_buckets && dp > 1)
    state.extra_gradient_bytes += framework->gradients.keeps_16bit_gradients && gradient > compute ? compute : gradient;
  /* The foreach form makes the denominator as a list of its own. */
  if (framework->update.optimizer == PL_OPTIMIZER_FOREACH) state.update_bytes += fp32_bytes;
  return state;
}

static pl_training_state training_state_of(const pl_program *program) {
  bool whole = pl_framework_reduces_whole(program->job->framework, program->strategy->zero);
  return pl_training_state_of(program->job, whole ? 1 : pl_strategy_replicas(program->strategy));
}

double pl_program_owned_parameters(const pl_program *program, int32_t stage) {
  const pl_stage_program *own = &program->stages[stage];
  if (program->strategy->zero < 1) return own->parameters;
  return (own->parameters - own->expert_parameters) / pl_program_shards(program, false) +
         own->expert_parameters / pl_program_shards(program, true);
}

double pl_program_whole_traffic(const pl_job *job, const pl_strategy *strategy) {
  const pl_framework *framework = pl_framework_or_ideal(job->framework);
  int32_t reducers = strategy->zero >= 2 ? 1 : pl_strategy_replicas(strategy);
  const pl_training_state state = pl_training_state_of(job, reducers);
  /* FSDP casts what it has added up to the type of the reduction, which others' passes have in them. */
  bool casts = reducers > 1 && framework->gradients.gradient_path != PL_GRADIENTS_ADDED &&
               state.reduced_bytes != state.gradient_bytes;
  return state.whole_traffic_bytes + (casts ? state.gradient_bytes + state.reduced_bytes : 0);
}

double pl_program_update_traffic(const pl_program *program, int32_t stage) {
  double owned = pl_program_owned_parameters(program, stage);
  double kept = program->strategy->zero >= 2 ? owned : program->stages[stage].parameters;
  return owned * pl_training_state_of(program->job, 1).update_traffic_bytes +
         kept * pl_program_whole_traffic(program->job, program->strategy);
}

/* ---- gradients that are not always there ---- */

double pl_program_bucket_bytes(const pl_program *program) {
  bool whole = isinf(program->job->bucket_bytes);
  bool units = pl_framework_or_ideal(program->job->framework)->gradients.gradient_path != PL_GRADIENTS_ADDED;
  return whole && program->strategy->zero >= 2 && !units ? 0 : program->job->bucket_bytes;
}

pl_gradient_life pl_program_gradient_life(const pl_program *program) {
  const pl_strategy *strategy = program->strategy;
  bool once = program->n_microbatches == 1 && strategy->vpp == 1 && !pl_strategy_splits_backward(strategy);
  return once ? pl_framework_or_ideal(program->job->framework)->gradients.life : PL_GRADIENTS_STAY;
}

static double shared_among_ranks(const pl_program *program, double all, double experts) {
  if (program->strategy->zero < 2) return all;
  return (all - experts) / pl_program_shards(program, false) + experts / pl_program_shards(program, true);
}

/* Without a pipeline head and embedding have one gradient, which the head makes. */
double pl_program_made_gradient_bytes(const pl_program *program, int32_t block) {
  pl_gradient_life life = pl_program_gradient_life(program);
  if (life == PL_GRADIENTS_STAY) return 0;
  const pl_model *model = program->model;
  const pl_block_program *own = &program->blocks[pl_model_block_class(model, block)];
  double tied = program->strategy->pp == 1 ? own->tied_parameters : 0;
  if (life == PL_GRADIENTS_CONSUMED) return tied * program->training.gradient_bytes;
  double parameters = own->parameters + tied;
  for (int32_t other = 0; own->kind == PL_BLOCK_EMBEDDING && other < pl_model_n_blocks(model); other++)
    if (program->strategy->pp == 1 && pl_model_block_kind(model, other) == PL_BLOCK_HEAD)
      parameters -= program->blocks[pl_model_block_class(model, other)].tied_parameters;
  return shared_among_ranks(program, parameters, own->expert_parameters) * program->training.gradient_bytes;
}

double pl_program_stepped_gradient_bytes(const pl_program *program, int32_t stage) {
  const pl_stage_program *own = &program->stages[stage];
  if (pl_program_gradient_life(program) != PL_GRADIENTS_MADE) return 0;
  return shared_among_ranks(program, own->parameters, own->expert_parameters) * program->training.gradient_bytes;
}

/* ---- stages ---- */

static uint32_t send_op(pl_program_making *state, bool backward, int32_t stage, int32_t chunk) {
  const pl_program *program = state->program;
  const pl_strategy *strategy = program->strategy;
  int32_t global = pl_strategy_chunk_at(strategy, stage, chunk), other = backward ? global - 1 : global + 1;
  int32_t boundary = backward ? global : global + 1;
  pl_family_kind kind = pl_program_wire(strategy, backward, chunk);
  if (strategy->pp == 1 || boundary == 0 || boundary == pl_strategy_n_chunks(strategy)) return PL_NONE;
  if (pl_strategy_stage_of(strategy, other) == stage) return PL_NONE; /* where a V turns */
  double size_bytes =
      pl_making_crossing_bytes(program, boundary) / (pl_making_splits_sends(program) ? strategy->tmp : 1);
  return pl_making_op(state, program->family_of[stage][kind], PL_SEND, size_bytes);
}

static bool make_schedules(pl_program_making *state, int32_t stage, pl_stage_program *own) {
  const pl_program *program = state->program;
  const pl_strategy *strategy = program->strategy;
  pl_schedule *schedules = PL_TAKE(state->arena, pl_schedule, program->n_schedules);
  if (schedules == NULL) return false;
  for (int32_t data = 0; data < strategy->dp; data++) {
    pl_schedule *schedule = &schedules[program->schedule_of[data]];
    if (schedule->n_microbatches > 0) continue;
    *schedule = pl_schedule_of(strategy, (int32_t)pl_strategy_microbatches(strategy, program->job, data), stage);
  }
  own->schedules = schedules;
  return true;
}

/* Numbered as they come among the data ranks. */
static pl_code number_schedules(pl_program *program, pl_arena *arena, pl_error *error) {
  const pl_strategy *strategy = program->strategy;
  int32_t *schedule_of = PL_TAKE(arena, int32_t, strategy->dp);
  int64_t *known = PL_TAKE(arena, int64_t, strategy->dp);
  if (arena->failed) return pl_fail_memory(error, "the schedules");
  for (int32_t data = 0; data < strategy->dp; data++) {
    int64_t n = pl_strategy_microbatches(strategy, program->job, data);
    int32_t index = data == 0 ? 0 : schedule_of[data - 1];
    if (program->n_schedules == 0 || known[index] != n)
      for (index = 0; index < program->n_schedules && known[index] != n;)
        index++;
    if (index == program->n_schedules) known[program->n_schedules++] = n;
    schedule_of[data] = index;
    if (n > program->n_microbatches) program->n_microbatches = (int32_t)n;
  }
  program->schedule_of = schedule_of;
  return PL_OK;
}

static uint32_t count_tensors(const pl_block_program *block) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < block->n_tensors; i++)
    n += block->tensors[i].kind == PL_TENSOR_PARAMETER;
  return n;
}

/* Per class of blocks; told once, as a class comes again in every layer. */
static pl_code hold_classes(pl_program_making *state) {
  const pl_program *program = state->program;
  int32_t n_classes = pl_model_n_classes(program->model), n_blocks = pl_model_n_blocks(program->model);
  pl_held_class *held = PL_TAKE(state->arena, pl_held_class, n_classes);
  if (held == NULL) return pl_fail_memory(state->error, "the program");
  for (int32_t block = 0; block < n_blocks; block++) {
    pl_held_class *own = &held[pl_model_block_class(program->model, block)];
    if (own->is_known) continue;
    const pl_block_program *blocks = pl_making_block(program, block);
    *own = (pl_held_class){.is_known = true,
                           .parameters = pl_making_held_parameters(program, block),
                           .expert_parameters = pl_making_held_experts(program, block),
                           .largest_parameters = blocks->largest_parameters,
                           .n_tensors = count_tensors(blocks)};
  }
  state->held = held;
  return PL_OK;
}

static void count_parameters(const pl_program_making *state, pl_stage_program *own) {
  const pl_program *program = state->program;
  const pl_strategy *strategy = program->strategy;
  for (int32_t chunk = 0; chunk < strategy->vpp; chunk++) {
    int32_t global = pl_strategy_chunk_at(strategy, own->stage, chunk);
    for (int32_t block = strategy->boundary[global]; block < strategy->boundary[global + 1]; block++) {
      const pl_held_class *held = &state->held[pl_model_block_class(program->model, block)];
      own->parameters += held->parameters;
      own->expert_parameters += held->expert_parameters;
      own->largest_block_parameters = fmax(own->largest_block_parameters, held->parameters);
      own->largest_parameters = fmax(own->largest_parameters, held->largest_parameters);
      own->n_tensors += held->n_tensors;
    }
  }
}

/* What is known of a stage before its passes are written: what it holds and what it sends. */
static pl_code make_frame(pl_program_making *state, int32_t stage, pl_stage_program *own) {
  const pl_program *program = state->program;
  int32_t vpp = program->strategy->vpp;
  uint32_t *sends = pl_arena_take(state->arena, 2 * (size_t)vpp * sizeof *sends, _Alignof(uint32_t));
  own->stage = stage;
  if (sends == NULL || (!state->outline && !make_schedules(state, stage, own)))
    return pl_fail_memory(state->error, "the program");
  uint32_t *send_down = sends, *send_up = sends + vpp;
  count_parameters(state, own);
  for (int32_t chunk = 0; chunk < vpp; chunk++) {
    send_down[chunk] = send_op(state, false, stage, chunk);
    send_up[chunk] = send_op(state, true, stage, chunk);
  }
  own->send_down = send_down;
  own->send_up = send_up;
  return PL_OK;
}

/* The halves of the backward passes; `reduces`: gradients are reduced with the last one. */
static pl_code make_halves(pl_program_making *state, int32_t stage, bool reduces, pl_stage_program *own) {
  size_t vpp = (size_t)state->program->strategy->vpp;
  pl_pass *inputs = PL_TAKE(state->arena, pl_pass, vpp), *weights = PL_TAKE(state->arena, pl_pass, vpp);
  pl_pass *last_weights = PL_TAKE(state->arena, pl_pass, vpp);
  if (state->arena->failed) return pl_fail_memory(state->error, "the program");
  for (int32_t chunk = 0; chunk < (int32_t)vpp; chunk++) {
    PL_TRY(pl_making_pass(state, stage, chunk, PL_PASS_INPUTS, false, &inputs[chunk]));
    PL_TRY(pl_making_pass(state, stage, chunk, PL_PASS_WEIGHTS, false, &weights[chunk]));
    last_weights[chunk] = weights[chunk];
    if (reduces) PL_TRY(pl_making_pass(state, stage, chunk, PL_PASS_WEIGHTS, true, &last_weights[chunk]));
  }
  own->inputs = inputs;
  own->weights = weights;
  own->last_weights = last_weights;
  return PL_OK;
}

/* Gradients are sharded as soon as they are made: with every backward pass. */
static bool reduces_every_time(const pl_strategy *strategy) {
  return strategy->zero >= 2;
}

/* All passes but the last backward ones. */
static pl_code make_passes(pl_program_making *state, int32_t stage, pl_stage_program *own) {
  pl_program *program = state->program;
  const pl_strategy *strategy = program->strategy;
  size_t vpp = (size_t)strategy->vpp;
  pl_pass *passes = pl_arena_take(state->arena, 2 * vpp * sizeof *passes, _Alignof(pl_pass));
  if (passes == NULL) return pl_fail_memory(state->error, "the program");
  pl_pass *forward = passes, *backward = forward + vpp;
  uint64_t seen = 0; /* classes, whose ops are there */
  for (int32_t chunk = 0; chunk < strategy->vpp; chunk++) {
    int32_t global = pl_strategy_chunk_at(strategy, stage, chunk);
    for (int32_t block = strategy->boundary[global]; block < strategy->boundary[global + 1]; block++) {
      int32_t class_of_block = pl_model_block_class(program->model, block);
      if ((seen >> class_of_block & 1) == 0)
        pl_making_block_collectives(state, stage, &program->blocks[class_of_block]);
      seen |= (uint64_t)1 << class_of_block;
    }
    PL_TRY(pl_making_pass(state, stage, chunk, PL_PASS_FORWARD, false, &forward[chunk]));
    PL_TRY(pl_making_pass(state, stage, chunk, PL_PASS_BACKWARD, reduces_every_time(strategy), &backward[chunk]));
  }
  for (uint32_t i = 0; i < program->n_measured; i++) /* never run: what they take alone is asked for */
    if (program->measured[i].tmp > 1) pl_making_block_collectives(state, stage, &program->measured[i].program);
  own->forward = forward;
  own->backward = backward;
  return PL_OK;
}

/* What follows: the last backward passes and the epilogue. */
static pl_code make_last_passes(pl_program_making *state, int32_t stage, pl_stage_program *own) {
  const pl_strategy *strategy = state->program->strategy;
  size_t vpp = (size_t)strategy->vpp;
  pl_pass *last_backward = pl_arena_take(state->arena, vpp * sizeof *last_backward, _Alignof(pl_pass));
  if (last_backward == NULL) return pl_fail_memory(state->error, "the program");
  for (int32_t chunk = 0; chunk < strategy->vpp; chunk++) {
    last_backward[chunk] = own->backward[chunk];
    if (strategy->overlap && !reduces_every_time(strategy))
      PL_TRY(pl_making_pass(state, stage, chunk, PL_PASS_BACKWARD, true, &last_backward[chunk]));
  }
  own->last_backward = last_backward;
  if (pl_strategy_splits_backward(strategy)) /* ZeRO is below 2 then */
    PL_TRY(make_halves(state, stage, strategy->overlap, own));
  return pl_making_epilogue(state, own);
}

/* An optimizer that steps while the backward pass goes on needs the whole gradient there and then. */
static pl_code check_gradient_life(const pl_program_making *state) {
  const pl_program *program = state->program;
  const pl_framework *framework = pl_framework_or_ideal(program->job->framework);
  if (framework->gradients.life != PL_GRADIENTS_CONSUMED) return PL_OK;
  if (program->n_microbatches > 1)
    return pl_fail(state->error, PL_BAD_INPUT,
                   "%s: an optimizer that steps in the backward pass (gradients: consumed) needs one microbatch per "
                   "step; here are %d: make mbs larger or --gbs smaller",
                   framework->name, program->n_microbatches);
  if (pl_program_shards(program, false) > 1 && program->strategy->zero < 2)
    return pl_fail(state->error, PL_BAD_INPUT,
                   "%s: an optimizer that steps in the backward pass (gradients: consumed) needs dp=1 or zero=2 or 3: "
                   "buckets of gradients are reduced later",
                   framework->name);
  return PL_OK;
}

static pl_code make_frames(pl_program_making *state) {
  pl_program *program = state->program;
  int32_t pp = program->strategy->pp;
  program->training = training_state_of(program);
  PL_TRY(number_schedules(program, state->arena, state->error));
  PL_TRY(check_gradient_life(state));
  PL_TRY(pl_making_families(state));
  PL_TRY(hold_classes(state));
  state->stages = PL_TAKE(state->arena, pl_stage_program, pp);
  if (state->stages == NULL) return pl_fail_memory(state->error, "the stages");
  program->stages = state->stages;
  for (int32_t stage = 0; stage < pp; stage++)
    PL_TRY(make_frame(state, stage, &state->stages[stage]));
  return state->arena->failed ? pl_fail_memory(state->error, "the program") : PL_OK;
}

pl_code pl_program_making_plain(pl_program_making *state) {
  if (state->has_plain) return PL_OK;
  for (int32_t stage = 0; stage < state->program->strategy->pp; stage++)
    PL_TRY(make_passes(state, stage, &state->stages[stage]));
  state->has_plain = true;
  state->keeps_plain = !reduces_every_time(state->program->strategy);
  if (state->outline && state->keeps_plain) state->plain_starts = pl_making_note_starts(state);
  return state->arena->failed ? pl_fail_memory(state->error, "the program") : PL_OK;
}

pl_code pl_program_making_finish(pl_program_making *state) {
  PL_TRY(pl_program_making_plain(state));
  for (int32_t stage = 0; stage < state->program->strategy->pp; stage++)
    PL_TRY(make_last_passes(state, stage, &state->stages[stage]));
  return state->arena->failed ? pl_fail_memory(state->error, "the program") : PL_OK;
}

pl_code pl_program_take(const pl_model *model, const pl_job *job, const pl_strategy *strategy, pl_arena *arena,
                        pl_program *program, pl_error *error) {
  const pl_block_shard shard = pl_strategy_shard(strategy, job);
  const pl_block_program *blocks;
  PL_TRY(pl_block_programs_take(model, &shard, arena, &blocks, error));
  return pl_program_of_blocks_take(model, job, strategy, blocks, arena, program, error);
}

pl_code pl_program_of_blocks_take(const pl_model *model, const pl_job *job, const pl_strategy *strategy,
                                  const pl_block_program *blocks, pl_arena *arena, pl_program *program,
                                  pl_error *error) {
  *program = (pl_program){.model = model, .job = job, .strategy = strategy, .blocks = blocks};
  PL_TRY(pl_measured_blocks_take(model, job, strategy, arena, &program->measured, &program->n_measured, error));
  pl_program_making state = {.program = program, .arena = arena, .error = error};
  PL_TRY(make_frames(&state));
  return pl_program_making_finish(&state);
}

pl_code pl_program_outline_begin(const pl_model *model, const pl_job *job, const pl_strategy *strategy,
                                 const pl_block_program *blocks, pl_arena *arena, pl_program *program,
                                 pl_program_making **making, pl_error *error) {
  *program = (pl_program){.model = model, .job = job, .strategy = strategy, .blocks = blocks};
  *making = PL_TAKE(arena, pl_program_making, 1);
  if (*making == NULL) return pl_fail_memory(error, "the program");
  **making = (pl_program_making){.program = program, .outline = true, .arena = arena, .error = error};
  PL_TRY(make_frames(*making));
  (*making)->starts = pl_making_note_starts(*making);
  return (*making)->starts != NULL ? PL_OK : pl_fail_memory(error, "the program");
}

void pl_program_outline_again(pl_program_making *making, const pl_strategy *strategy, pl_error *error) {
  making->error = error;
  making->program->strategy = strategy;
  making->program->training = training_state_of(making->program);
  making->has_plain = making->has_plain && making->keeps_plain && !reduces_every_time(strategy);
  pl_making_start_again(making, making->has_plain ? making->plain_starts : making->starts);
}
