/* See search/bound/lower_bound.h. */
#include "search/bound/lower_bound.h"

#include <math.h>
#include <string.h>

#include "search/bound/lower_bound_parts.h"
#include "workloads/cost/op_cost.h"
#include "workloads/run/site_remains.h"

/* Durations are rounded to ticks one by one; what the host is late by in small pieces. */
static const double rounding = 1e-6;

/* One pass of a chunk on the device of one chain: seconds. */
typedef struct pass_time {
  double work;                  /* computing and the collectives that it waits for */
  double host;                  /* to launch it */
  double gathers, first_gather; /* the latter in front of all blocks; 0: there is none, or blocks run beside it */
  bool computes, awaits;        /* a block has come */
  double reduces[2];            /* of all but experts; of experts or across copies */
} pass_time;

/* A chunk: a microbatch's two passes. */
typedef struct chunk_time {
  double forward, backward; /* at least each */
  double both;              /* at least together */
  double path;              /* of `both` what other stages wait for */
  double streams;           /* of the gradient stream */
  double late;              /* of `both` what the host is late by */
} chunk_time;

typedef struct stage_time {
  chunk_time first; /* chunk */
  double busy;      /* a microbatch's passes of all chunks */
  double streams;
  double down, up; /* from here to the next stage; from the next stage to here */
  double end;      /* behind the last backward pass */
} stage_time;

typedef struct bounding {
  pl_lower_bounds *bounds;
  const pl_program *program;
  const pl_bound_blocks *blocks;
  pl_bound_layout *layout;
  const pl_bound_chain *chain; /* of the layout's */
  int32_t stage;
  bool ahead, waits, hosts; /* hosts: what the host is late by can be told from what the device does */
  stage_time *stages;
  pl_error *error;
} bounding;

/* ---- passes ---- */

static pl_code collective_s(bounding *state, pl_family_kind kind, pl_collective_kind collective, double size_bytes,
                            double *time_s) {
  pl_ticks ticks;
  PL_TRY(pl_bound_collective_ticks(state->bounds, state->layout, state->chain->groups[state->stage][kind], collective,
                                   size_bytes, &ticks, state->error));
  *time_s = pl_ticks_to_s(ticks);
  return PL_OK;
}

/* Op of a family of the stage. */
static pl_code family_op_s(bounding *state, pl_family_kind kind, uint32_t op, double *time_s) {
  uint32_t f = state->program->family_of[state->stage][kind];
  *time_s = 0;
  if (f == PL_NONE || op == PL_NONE) return PL_OK;
  const pl_communication *own = &state->program->families[f].ops[op];
  return collective_s(state, kind, own->kind, own->size_bytes, time_s);
}

/* What `count` blocks of a class need beside their computing; without what the other pass of a pair may hide. */
static pl_code add_beside(bounding *state, const pl_bound_pass *own, int32_t count, pass_time *sum) {
  double time_s;
  if (state->hosts) sum->host += count * own->host_s;
  for (uint32_t i = 0; i < own->n_collectives; i++) {
    const pl_bound_collective *collective = &own->collectives[i];
    if (collective->family == PL_FAMILY_EXPERT && pl_strategy_hides_tokens(state->program->strategy)) continue;
    PL_TRY(collective_s(state, collective->family, collective->kind, collective->size_bytes, &time_s));
    sum->work += count * collective->count * time_s;
  }
  return PL_OK;
}

/* Computing and collectives of `count` blocks of each class, which is 0 of most. */
static pl_code add_blocks(bounding *state, const int32_t *count, int pass, pass_time *sum) {
  uint32_t profile = state->chain->profiles[state->stage];
  pl_ticks ticks = 0;
  int32_t n_classes = pl_model_n_classes(state->program->model);
  for (int32_t c = 0; c < n_classes; c++)
    if (count[c] > 0) ticks += count[c] * state->blocks->passes[c][pass].compute[profile];
  sum->work += pl_ticks_to_s(ticks);
  for (int32_t c = 0; c < n_classes; c++)
    if (count[c] > 0) PL_TRY(add_beside(state, &state->blocks->passes[c][pass], count[c], sum));
  return PL_OK;
}

static pl_code add_block(bounding *state, int32_t class_of_block, int pass, pass_time *sum) {
  const pl_bound_pass *own = &state->blocks->passes[class_of_block][pass];
  sum->work += pl_ticks_to_s(own->compute[state->chain->profiles[state->stage]]);
  return add_beside(state, own, 1, sum);
}

static pl_code add_instruction(bounding *state, const pl_instruction *instruction, int32_t *count, pass_time *sum) {
  pl_family_kind data = pl_instruction_family(instruction);
  int stream = instruction->experts || instruction->across;
  double time_s;
  switch ((pl_instruction_kind)instruction->kind) {
  case PL_INSTRUCTION_BLOCK:
    count[pl_model_block_class(state->program->model, instruction->block)]++;
    sum->computes = true;
    if (!sum->awaits) sum->first_gather = 0; /* the loss, beside what the head needs */
    return PL_OK;
  case PL_INSTRUCTION_REDUCE:
    PL_TRY(family_op_s(state, data, instruction->op, &time_s));
    sum->reduces[stream] += time_s;
    return PL_OK;
  case PL_INSTRUCTION_GATHER:
    PL_TRY(family_op_s(state, data, instruction->op, &time_s));
    if (instruction->experts) return PL_OK; /* on a stream of its own */
    if (sum->gathers <= 0 && !sum->computes) sum->first_gather = time_s;
    sum->gathers += time_s;
    return PL_OK;
  case PL_INSTRUCTION_ASSEMBLE:
    PL_TRY(family_op_s(state, PL_FAMILY_TENSOR, instruction->op, &time_s));
    sum->work += time_s;
    return PL_OK;
  case PL_INSTRUCTION_AWAIT:
    sum->awaits = true;
    return PL_OK;
  case PL_INSTRUCTION_COPY:
  case PL_INSTRUCTION_EMBEDDING:
  case PL_INSTRUCTION_OPTIMIZER:
    return PL_OK;
  }
  return PL_OK;
}

static pl_code time_pass(bounding *state, const pl_pass *pass, int which, pass_time *sum) {
  int32_t count[PL_MODEL_CLASSES_MAX] = {0};
  *sum = (pass_time){0};
  for (uint32_t i = 0; i < pass->n; i++)
    PL_TRY(add_instruction(state, &pass->instructions[i], count, sum));
  return add_blocks(state, count, which, sum);
}

/* ---- chunks ---- */

/* Both passes of a microbatch. Gathers that run ahead begin when the pass before is over, so the first of them shows.
 */
static chunk_time join(const bounding *state, const pass_time *f, const pass_time *b) {
  bool overlap = state->program->strategy->overlap;
  double reduces = b->reduces[0] + b->reduces[1], gathers = f->gathers + b->gathers;
  chunk_time chunk = {.forward = f->work, .backward = b->work, .both = fmax(f->work + b->work, f->host + b->host)};
  if (state->waits) {
    chunk.forward = fmax(f->work, f->host);
    chunk.backward = fmax(b->work, b->host);
    chunk.both = chunk.forward + chunk.backward;
  }
  chunk.late = chunk.both - chunk.forward - b->work;
  /* Parameters are gathered while an activation or a gradient is waited for, and what is sent does not wait for the
   * reductions. With a pipeline they may also come while the host is late. */
  chunk.path = chunk.both;
  double worked = state->program->strategy->pp > 1 ? f->work + b->work : chunk.both;
  worked = state->ahead ? fmax(worked + f->first_gather + b->first_gather, gathers) : worked + gathers;
  if (!overlap) worked += reduces; /* computing waits for them */
  chunk.both = fmax(chunk.both, worked);
  chunk.streams = gathers + b->reduces[0];
  return chunk;
}

/* ---- what follows the last backward pass ---- */

/* Reductions of the last backward pass beside its computing: seconds since it began. */
typedef struct tail {
  const chunk_time *chunk;
  pass_time so_far;
  double host;      /* of the whole pass */
  double length;    /* of the pass, at least */
  double done[2];   /* when the streams' reductions so far are over: as in pass_time */
  uint32_t n_after; /* blocks that are still to come */
} tail;

/* When a reduction after what was so far may begin. The host is late by its share behind each block. */
static double reduction_start(const tail *own) {
  if (own->n_after == 0) return own->length;
  return own->so_far.work + (own->host > 0 ? own->chunk->late * own->so_far.host / own->host : 0);
}

/* A stream's reductions follow one another; those across copies follow the share's own. */
static pl_code add_reduction(bounding *state, const pl_instruction *instruction, tail *own) {
  bool second = instruction->experts || instruction->across;
  double time_s, start = fmax(reduction_start(own), own->done[second]);
  if (instruction->across) start = fmax(start, own->done[0]);
  PL_TRY(family_op_s(state, pl_instruction_family(instruction), instruction->op, &time_s));
  own->done[second] = start + time_s;
  return PL_OK;
}

static pl_code add_to_tail(bounding *state, const pl_instruction *instruction, tail *own) {
  if (instruction->kind == PL_INSTRUCTION_REDUCE) return add_reduction(state, instruction, own);
  if (instruction->kind != PL_INSTRUCTION_BLOCK) return PL_OK;
  own->n_after--;
  int32_t class_of_block = pl_model_block_class(state->program->model, instruction->block);
  return add_block(state, class_of_block, PL_BOUND_BACKWARD, &own->so_far);
}

/* How much later than the pass its reductions are over, of both streams. */
static pl_code time_tail(bounding *state, const pl_pass *pass, const chunk_time *chunk, double left[2]) {
  tail own = {.chunk = chunk, .length = chunk->both - chunk->forward};
  pass_time whole;
  PL_TRY(time_pass(state, pass, PL_BOUND_BACKWARD, &whole));
  own.host = whole.host;
  for (uint32_t i = 0; i < pass->n; i++)
    own.n_after += pass->instructions[i].kind == PL_INSTRUCTION_BLOCK;
  for (uint32_t i = 0; i < pass->n; i++)
    PL_TRY(add_to_tail(state, &pass->instructions[i], &own));
  for (int stream = 0; stream <= 1; stream++)
    left[stream] = fmax(0, own.done[stream] - own.length);
  return PL_OK;
}

/* With overlap what is left of the reductions that began with the last backward pass, of which each begins when the
 * blocks before it are done. */
static pl_code time_end(bounding *state, const pl_stage_program *own, const chunk_time *chunk, double *end) {
  const pl_strategy *strategy = state->program->strategy;
  pass_time rest;
  double tied = 0, optimizer = 0, gather = 0, left[2];
  PL_TRY(time_pass(state, &own->epilogue, PL_BOUND_FORWARD, &rest));
  for (uint32_t i = 0; i < own->epilogue.n; i++) {
    const pl_instruction *instruction = &own->epilogue.instructions[i];
    double time_s;
    if (instruction->kind == PL_INSTRUCTION_EMBEDDING)
      PL_TRY(family_op_s(state, PL_FAMILY_EMBEDDING, instruction->op, &tied));
    if (instruction->kind != PL_INSTRUCTION_GATHER) continue;
    PL_TRY(family_op_s(state, pl_instruction_family(instruction), instruction->op, &time_s));
    gather = fmax(gather, time_s);
  }
  if (strategy->overlap && pl_strategy_splits_backward(strategy)) {
    left[0] = left[1] = 0; /* the last pass for weights may be of another chunk */
  } else if (strategy->overlap) {
    PL_TRY(time_tail(state, &own->last_backward[0], chunk, left));
  } else {
    memcpy(left, rest.reduces, sizeof left);
  }
  const pl_device_profile *profile = &state->bounds->cluster->profiles[state->chain->profiles[state->stage]];
  optimizer = pl_optimizer_cost(profile, pl_program_update_traffic(state->program, state->stage), 1).time_s;
  *end = fmax(left[0] + tied, left[1]) + optimizer + gather;
  return PL_OK;
}

/* ---- stages ---- */

static pl_code time_stage(bounding *state, stage_time *sum) {
  const pl_strategy *strategy = state->program->strategy;
  const pl_stage_program *own = &state->program->stages[state->stage];
  *sum = (stage_time){0};
  for (int32_t chunk = 0; chunk < strategy->vpp; chunk++) {
    pass_time f, b;
    PL_TRY(time_pass(state, &own->forward[chunk], PL_BOUND_FORWARD, &f));
    PL_TRY(time_pass(state, &own->backward[chunk], PL_BOUND_BACKWARD, &b));
    chunk_time both = join(state, &f, &b);
    if (chunk == 0) sum->first = both;
    sum->busy += both.both;
    sum->streams += both.streams;
  }
  return time_end(state, own, &sum->first, &sum->end);
}

/* The sends of the first chunks' boundaries. */
static pl_code time_sends(bounding *state) {
  int32_t pp = state->program->strategy->pp;
  for (int32_t stage = 0; stage + 1 < pp; stage++) {
    state->stage = stage;
    PL_TRY(family_op_s(state, PL_FAMILY_DOWN, state->program->stages[stage].send_down[0], &state->stages[stage].down));
    state->stage = stage + 1;
    PL_TRY(family_op_s(state, PL_FAMILY_UP, state->program->stages[stage + 1].send_up[0], &state->stages[stage].up));
  }
  return PL_OK;
}

/* The largest of the bounds of search/bound/lower_bound.h. */
static double combine(const bounding *state, int64_t m) {
  const pl_strategy *strategy = state->program->strategy;
  const stage_time *stages = state->stages;
  bool in_order = state->bounds->options->streams != PL_STREAMS_READY;
  bool splits = pl_strategy_splits_backward(strategy), is_known = strategy->schedule != PL_SCHEDULE_LISTED && !splits;
  bool in_halves = strategy->schedule == PL_SCHEDULE_GPIPE || strategy->schedule == PL_SCHEDULE_FIFO;
  double filled = 0, entered = 0, all = 0, most = 0;
  for (int32_t s = 0; s < strategy->pp; s++)
    all += stages[s].first.path + stages[s].down + stages[s].up;
  for (int32_t s = 0; s < strategy->pp; s++) {
    const stage_time *own = &stages[s];
    double loose = strategy->pp > 1 ? own->first.both - own->first.path : 0; /* of the first and the last pass */
    double full = (double)m * own->busy - loose;
    if (!splits) most = fmax(most, filled + full + stages[0].end);
    most = fmax(most, entered + full + own->end);
    most = fmax(most, (double)m * own->streams);
    if (strategy->vpp == 1 && in_order && is_known) {
      int64_t w = in_halves ? 0 : strategy->pp - s - 1 < m ? strategy->pp - s - 1 : m - 1;
      double trips = (double)(m - w) * own->first.both + (double)w * own->first.backward;
      most = fmax(most, all - own->first.path + trips - loose + stages[0].end);
    }
    filled += own->first.path + own->down + own->up;
    entered += own->first.forward + own->down;
  }
  return most * (1 - rounding);
}

static pl_code time_chain(bounding *state, double *time_s) {
  const pl_strategy *strategy = state->program->strategy;
  for (state->stage = 0; state->stage < strategy->pp; state->stage++)
    PL_TRY(time_stage(state, &state->stages[state->stage]));
  PL_TRY(time_sends(state));
  *time_s = combine(
      state, pl_strategy_microbatches(strategy, state->program->job, state->chain->replica / pl_strategy_cp(strategy)));
  return PL_OK;
}

double pl_bound_remains(const pl_lower_bounds *bounds, const pl_strategy *strategy) {
  if (bounds->options->remains == NULL) return 1;
  const pl_configuration at = pl_configuration_of(
      bounds->cluster->profiles[0].name,
      pl_remains_size(bounds->options->remains_size, bounds->model, bounds->job->seq), bounds->job, strategy);
  return exp(pl_remaining_at(bounds->options->remains, &at).mean);
}

pl_lower_bounds *pl_lower_bounds_take(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                                      const pl_simulate_options *options, pl_arena *arena) {
  pl_lower_bounds *bounds = PL_TAKE(arena, pl_lower_bounds, 1);
  if (bounds == NULL) return NULL;
  *bounds = (pl_lower_bounds){.cluster = cluster, .model = model, .job = job, .options = options, .arena = arena};
  bounds->collectives = (pl_collective_options){.sharing = options->sharing,
                                                .algorithm = options->algorithm,
                                                .profile = options->chunked ? NULL : options->collective_profile};
  pl_arena_init(&bounds->scratch, 0);
  pl_topology_cache_init(&bounds->topology, SIZE_MAX);
  pl_topology_cache_begin(&bounds->topology, cluster, &bounds->collectives);
  pl_block_functions_init(&bounds->functions, PL_BLOCK_CACHE_BYTES);
  return bounds;
}

void pl_lower_bounds_release(pl_lower_bounds *bounds) {
  if (bounds == NULL) return;
  pl_arena_release(&bounds->scratch);
  pl_topology_cache_release(&bounds->topology);
  pl_block_functions_release(&bounds->functions);
}

pl_code pl_lower_bound_of(pl_lower_bounds *bounds, const pl_strategy *strategy, pl_lower_bound *bound,
                          pl_error *error) {
  PL_ASSERT(strategy->boundary != NULL);
  const pl_framework *framework = pl_framework_or_ideal(bounds->job->framework);
  const pl_bound_frame *frame = &bounds->frame;
  *bound = (pl_lower_bound){.time_s = 0};
  PL_TRY(pl_bound_frame_find(bounds, strategy, error));
  pl_bound_memory(bounds, bound);
  if (bound->shortfall_bytes > 0) return PL_OK;
  PL_TRY(pl_bound_frame_passes(bounds));
  PL_TRY(pl_program_making_finish(frame->making));
  PL_TRY(pl_bound_layout_find_groups(bounds, &frame->program, frame->layout, error));
  bounding state = {
      .bounds = bounds, .program = &frame->program, .blocks = frame->blocks, .layout = frame->layout, .error = error};
  state.ahead = framework->gathers.gathers_ahead;
  state.hosts = bounds->options->streams != PL_STREAMS_READY;
  state.waits = framework->launch.host_window == PL_HOST_PASS && strategy->pp > 1;
  state.stages = PL_TAKE(&bounds->scratch, stage_time, strategy->pp);
  if (state.stages == NULL) return pl_fail_memory(error, "the lower bounds");
  for (uint32_t i = 0; i < state.layout->n_chains; i++) {
    double time_s;
    state.chain = &state.layout->chains[i];
    PL_TRY(time_chain(&state, &time_s));
    bound->time_s = fmax(bound->time_s, time_s);
  }
  bound->time_s *= pl_bound_remains(bounds, strategy);
  return PL_OK;
}
