/* See workloads/program.h. */
#include "workloads/program.h"

#include <math.h>
#include <string.h>

/* Adam's arithmetic as torch's foreach form does it, one pass over the tensors per step: exp_avg.lerp_ (3 tensors
 * read or written), exp_avg_sq.mul_ (2) and addcmul_ (4), sqrt (2), division by the bias correction (2), add of eps
 * (2), addcdiv_ (4), weight decay (2): 21 of four bytes where the fused form has 7 (p, m, v twice, g once). */
static const double foreach_passes = 21, fused_passes = 7, fp32_bytes = 4;

static double update_traffic_of(const pl_framework *framework, double gradient, double cast) {
  bool fused = framework->optimizer == PL_OPTIMIZER_FUSED;
  double steps = (fused ? fused_passes : foreach_passes) * fp32_bytes;
  /* A gradient of 16 bits is first turned into fp32: read, written, and read again. The norm reads all gradients, the
   * clipping reads and writes them. */
  double converted = gradient < fp32_bytes ? gradient + fp32_bytes : 0;
  double clipped = framework->clips_gradients ? 3 * fp32_bytes : 0;
  /* The foreach form casts the weights back by copies of their own. */
  return steps + converted + clipped + cast + (fused || cast == 0 ? 0 : fp32_bytes);
}

pl_training_state pl_training_state_of(const pl_job *job, int32_t dp) {
  const pl_framework *framework = pl_framework_or_ideal(job->framework);
  double compute = pl_dtype_bytes(job->dtype);
  double gradient = pl_dtype_bytes(pl_framework_gradient_dtype(framework, job->dtype));
  bool single = compute >= fp32_bytes; /* weights are their own master copy, beside momentum and variance */
  bool own_master = single || framework->weights == PL_WEIGHTS_FP32;
  pl_training_state state = {
      .parameter_bytes = own_master ? fp32_bytes : compute,
      .cast_bytes = own_master && !single ? compute : 0,
      .gathered_bytes = compute,
      .gradient_bytes = gradient,
      .reduced_bytes = framework->reduce_dtype < 0 ? gradient : pl_dtype_bytes((pl_dtype)framework->reduce_dtype),
      .optimizer_bytes = own_master ? 2 * fp32_bytes : 3 * fp32_bytes,
      .update_bytes = gradient < fp32_bytes ? fp32_bytes : 0,
      .update_traffic_bytes = update_traffic_of(framework, gradient, single ? 0 : compute)};
  if (framework->keeps_16bit_gradients && gradient > compute) state.pass_gradient_bytes = compute;
  if (framework->copies_buckets && dp > 1)
    state.extra_gradient_bytes += framework->keeps_16bit_gradients && gradient > compute ? compute : gradient;
  /* The foreach form makes the denominator as a list of its own. */
  if (framework->optimizer == PL_OPTIMIZER_FOREACH) state.update_bytes += fp32_bytes;
  return state;
}

/* ---- families and their ops, while the program is made ---- */

enum { FIRST_OPS = 8 };

typedef struct making {
  pl_program *program;
  pl_arena *arena;
  pl_family *families;
  pl_communication **ops; /* per family: what families[].ops points to, and how many it holds */
  uint32_t *capacity;
  pl_error *error;
} making;

static const pl_block_program *block_program(const pl_program *program, int32_t block) {
  return &program->blocks[pl_model_block_kind(program->model, block)];
}

static bool grow_ops(making *state, uint32_t family) {
  pl_family *own = &state->families[family];
  uint32_t capacity = own->n_ops == 0 ? FIRST_OPS : 2 * own->n_ops;
  pl_communication *bigger = PL_TAKE(state->arena, pl_communication, capacity);
  if (bigger == NULL) return false;
  if (own->n_ops > 0) memcpy(bigger, own->ops, own->n_ops * sizeof *bigger);
  own->ops = state->ops[family] = bigger;
  state->capacity[family] = capacity;
  return true;
}

/* The op's index in the family; equal ops are one. Few as a rule: sizes come from six block kinds and sums over a
 * chunk; but uneven chunks may all have different sums. A failed arena is found at the end of pl_program_take. */
static uint32_t family_op(making *state, uint32_t family, pl_collective_kind kind, double size_bytes) {
  pl_family *own = &state->families[family];
  for (uint32_t i = 0; i < own->n_ops; i++)
    if (own->ops[i].kind == kind && own->ops[i].size_bytes == size_bytes) return i;
  if (own->n_ops == state->capacity[family] && !grow_ops(state, family)) return 0;
  state->ops[family][own->n_ops] = (pl_communication){kind, size_bytes};
  return own->n_ops++;
}

bool pl_program_has_expert_data(const pl_model *model, const pl_strategy *strategy) {
  return model->n_experts > 0 && (strategy->tmp > 1 || pl_strategy_ep(strategy) > 1);
}

double pl_program_shards(const pl_program *program, bool experts) {
  const pl_strategy *strategy = program->strategy;
  return experts && pl_program_has_expert_data(program->model, strategy) ? pl_strategy_expert_replicas(strategy)
                                                                         : pl_strategy_replicas(strategy);
}

int32_t pl_program_receiver(const pl_program *program, pl_family_kind kind, int32_t stage) {
  int32_t pp = program->strategy->pp;
  return kind == PL_FAMILY_DOWN ? (stage + 1) % pp : (stage + pp - 1) % pp;
}

int32_t pl_program_sender(const pl_program *program, pl_family_kind kind, int32_t stage) {
  return pl_program_receiver(program, kind == PL_FAMILY_DOWN ? PL_FAMILY_UP : PL_FAMILY_DOWN, stage);
}

static int32_t stage_of_block(const pl_program *program, int32_t block) {
  int32_t chunk = 0;
  while (program->strategy->boundary[chunk + 1] <= block)
    chunk++;
  return chunk % program->strategy->pp;
}

static int32_t head_stage(const pl_program *program) {
  return stage_of_block(program, pl_model_n_blocks(program->model) - 2);
}

static bool has_split_tied_embedding(const pl_program *program) {
  return program->model->tied_embeddings && head_stage(program) != 0;
}

static bool family_exists(const pl_program *program, pl_family_kind kind, int32_t stage) {
  const pl_strategy *strategy = program->strategy;
  bool ring = strategy->vpp > 1;
  switch (kind) {
  case PL_FAMILY_TENSOR:
    return strategy->tmp > 1;
  case PL_FAMILY_DATA:
    return pl_strategy_replicas(strategy) > 1;
  case PL_FAMILY_CONTEXT:
    return strategy->cp > 1;
  case PL_FAMILY_EXPERT:
    return strategy->ep > 1;
  case PL_FAMILY_EXPERT_DATA:
    return pl_program_has_expert_data(program->model, strategy) && pl_strategy_expert_replicas(strategy) > 1;
  case PL_FAMILY_DOWN:
    return strategy->pp > 1 && (ring || stage < strategy->pp - 1);
  case PL_FAMILY_UP:
    return strategy->pp > 1 && (ring || stage > 0);
  case PL_FAMILY_EMBEDDING:
    return stage == 0 && has_split_tied_embedding(program);
  case PL_FAMILY_KIND_COUNT:
    break;
  }
  return false;
}

/* Group number and position of the device of replica r and tensor rank t, whose flat index is r * tmp + t. */
typedef struct seat {
  int32_t group, position;
} seat;

static seat seat_of(const pl_strategy *strategy, pl_family_kind kind, int32_t r, int32_t t) {
  int32_t flat = r * strategy->tmp + t, cp = pl_strategy_cp(strategy), ep = pl_strategy_ep(strategy);
  switch (kind) {
  case PL_FAMILY_TENSOR:
    return (seat){r, t};
  case PL_FAMILY_DATA:
    return (seat){t, r};
  case PL_FAMILY_CONTEXT:
    return (seat){r / cp * strategy->tmp + t, r % cp};
  case PL_FAMILY_EXPERT:
    return (seat){flat / ep, flat % ep};
  case PL_FAMILY_EXPERT_DATA:
    return (seat){flat % ep, flat / ep};
  default:
    return (seat){flat, 0};
  }
}

int32_t pl_program_group(const pl_program *program, pl_family_kind kind, int32_t replica, int32_t tensor) {
  return seat_of(program->strategy, kind, replica, tensor).group;
}

static int32_t group_size(const pl_strategy *strategy, pl_family_kind kind) {
  switch (kind) {
  case PL_FAMILY_TENSOR:
    return strategy->tmp;
  case PL_FAMILY_DATA:
    return pl_strategy_replicas(strategy);
  case PL_FAMILY_CONTEXT:
    return pl_strategy_cp(strategy);
  case PL_FAMILY_EXPERT:
    return pl_strategy_ep(strategy);
  case PL_FAMILY_EXPERT_DATA:
    return pl_strategy_expert_replicas(strategy);
  default:
    return 2;
  }
}

static bool is_pair(pl_family_kind kind) {
  return kind == PL_FAMILY_DOWN || kind == PL_FAMILY_UP || kind == PL_FAMILY_EMBEDDING;
}

static void fill_members(const pl_program *program, pl_family *family, uint32_t *members) {
  const pl_strategy *strategy = program->strategy;
  int32_t other = family->kind == PL_FAMILY_EMBEDDING ? head_stage(program)
                                                      : pl_program_receiver(program, family->kind, family->stage);
  for (int32_t r = 0; r < pl_strategy_replicas(strategy); r++)
    for (int32_t t = 0; t < strategy->tmp; t++) {
      const seat own = seat_of(strategy, family->kind, r, t);
      uint32_t *group = &members[(size_t)own.group * family->group_size];
      group[own.position] = pl_strategy_device(strategy, family->stage, r, t);
      if (is_pair(family->kind)) group[1] = pl_strategy_device(strategy, other, r, t);
    }
}

static pl_code make_family(making *state, pl_family_kind kind, int32_t stage) {
  pl_program *program = state->program;
  const pl_strategy *strategy = program->strategy;
  uint32_t index = program->n_families++, n_ranks = (uint32_t)(pl_strategy_replicas(strategy) * strategy->tmp);
  pl_family *family = &state->families[index];
  *family = (pl_family){.kind = kind, .stage = stage, .group_size = (uint32_t)group_size(strategy, kind)};
  family->n_groups = is_pair(kind) ? n_ranks : n_ranks / family->group_size;
  uint32_t *members = PL_TAKE(state->arena, uint32_t, (size_t)family->n_groups * family->group_size);
  if (members == NULL) return pl_fail_memory(state->error, "the communicators");
  fill_members(program, family, members);
  family->members = members;
  program->family_of[stage][kind] = index;
  if (kind == PL_FAMILY_EMBEDDING) program->family_of[head_stage(program)][kind] = index;
  return PL_OK;
}

static pl_code make_families(making *state) {
  pl_program *program = state->program;
  uint32_t most = (uint32_t)program->strategy->pp * PL_FAMILY_KIND_COUNT;
  state->families = PL_TAKE(state->arena, pl_family, most);
  state->ops = PL_TAKE(state->arena, pl_communication *, most);
  state->capacity = PL_TAKE(state->arena, uint32_t, most);
  program->family_of =
      pl_arena_take(state->arena, sizeof(uint32_t[PL_FAMILY_KIND_COUNT]) * (size_t)program->strategy->pp, 8);
  if (state->arena->failed) return pl_fail_memory(state->error, "the communicators");
  memset(program->family_of, 0xff, sizeof(uint32_t[PL_FAMILY_KIND_COUNT]) * (size_t)program->strategy->pp);
  for (int32_t stage = 0; stage < program->strategy->pp; stage++)
    for (int kind = 0; kind < PL_FAMILY_KIND_COUNT; kind++)
      if (family_exists(program, (pl_family_kind)kind, stage)) PL_TRY(make_family(state, (pl_family_kind)kind, stage));
  program->families = state->families;
  return PL_OK;
}

pl_family_kind pl_program_family_kind(pl_group_role role) {
  return role == PL_GROUP_CONTEXT ? PL_FAMILY_CONTEXT : role == PL_GROUP_EXPERT ? PL_FAMILY_EXPERT : PL_FAMILY_TENSOR;
}

/* The ops of the families inside a stage are those of the blocks that the stage holds. */
static void add_block_collectives(making *state, int32_t stage, int32_t block) {
  const pl_block_program *program = block_program(state->program, block);
  const pl_op_list lists[2] = {program->forward, program->backward};
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < lists[pass].n_ops; i++) {
      const pl_op *op = &lists[pass].ops[i];
      if (op->kind != PL_OP_COLLECTIVE) continue;
      uint32_t family = state->program->family_of[stage][pl_program_family_kind((pl_group_role)op->group)];
      if (family != PL_NONE) family_op(state, family, (pl_collective_kind)op->collective, op->size_bytes);
    }
}

/* ---- passes ---- */

/* Instructions per block at most: block, reduce of experts and of all else, and per parameter tensor that is gathered
 * by itself, all experts' together, gather, await and copy; and some at the ends. */
enum { GATHER_WINDOW = 2, GATHERS_PER_BLOCK = 9, INSTRUCTIONS_PER_BLOCK = 3 + 6 * GATHERS_PER_BLOCK };

typedef struct pass_making {
  making *state;
  int32_t stage;
  pl_instruction *list;
  uint32_t n;
  double pending[2]; /* gradients (parameters) not yet reduced: of all but experts, of experts */
} pass_making;

static void add(pass_making *pass, pl_instruction_kind kind, bool backward, int32_t block, uint32_t op) {
  pass->list[pass->n++] = (pl_instruction){.kind = (uint8_t)kind, .backward = backward, .block = block, .op = op};
}

static const pl_framework *framework_of(const pl_program *program) {
  return pl_framework_or_ideal(program->job->framework);
}

static pl_training_state training_state_of(const pl_program *program) {
  return pl_training_state_of(program->job, pl_strategy_replicas(program->strategy));
}

/* The family that reduces and gathers what belongs to experts, or all else. */
static uint32_t data_family(const pass_making *pass, bool experts) {
  return pass->state->program->family_of[pass->stage][experts ? PL_FAMILY_EXPERT_DATA : PL_FAMILY_DATA];
}

static void add_reduce(pass_making *pass, double parameters, bool experts) {
  const pl_program *program = pass->state->program;
  bool whole =
      program->strategy->zero == 0 || (program->strategy->zero >= 2 && framework_of(program)->scatters_by_all_reduce);
  pl_collective_kind kind = whole ? PL_ALL_REDUCE : PL_REDUCE_SCATTER;
  uint32_t family = data_family(pass, experts);
  if (family == PL_NONE || parameters <= 0) return;
  add(pass, PL_INSTRUCTION_REDUCE, true, -1,
      family_op(pass->state, family, kind, parameters * training_state_of(program).reduced_bytes));
  pass->list[pass->n - 1].experts = experts;
}

/* Parameters that this stage holds for a block: a tied head apart from its embedding has a copy of the table. */
static double held_parameters(const pl_program *program, int32_t block) {
  const pl_block_program *own = block_program(program, block);
  if (own->kind != PL_BLOCK_HEAD || !has_split_tied_embedding(program)) return own->parameters;
  return own->parameters + own->tied_parameters;
}

/* Of these, the experts', where another family than the data family has them. */
static double held_experts(const pl_program *program, int32_t block) {
  if (!pl_program_has_expert_data(program->model, program->strategy)) return 0;
  return block_program(program, block)->expert_parameters;
}

static double held_part(const pl_program *program, int32_t block, bool experts) {
  double part = held_experts(program, block);
  return experts ? part : held_parameters(program, block) - part;
}

/* What has been gathered for a block and not yet awaited: ops of the data family and of the expert-data family. */
typedef struct gathered_block {
  uint32_t n, ops[2 * GATHERS_PER_BLOCK];
  bool experts[2 * GATHERS_PER_BLOCK];
} gathered_block;

/* Tensors of a block that are gathered by themselves: the matrices, the last of them with what is left over when there
 * are too many. Vectors stay on every rank, as below DeepSpeed's threshold; they count nothing here. Experts that have
 * a family of their own are not among them. */
static uint32_t matrices_of(const pl_block_program *block, bool with_experts, double parameters[GATHERS_PER_BLOCK]) {
  uint32_t n = 0, most = GATHERS_PER_BLOCK - 1;
  for (uint32_t i = 0; i < block->n_tensors; i++) {
    const pl_tensor *tensor = &block->tensors[i];
    if (tensor->kind != PL_TENSOR_PARAMETER || tensor->rank < 2 || tensor->dims[0] == 'p') continue;
    if (tensor->expert && !with_experts) continue;
    double elements = 1;
    for (uint8_t d = 0; d < tensor->rank; d++)
      elements *= (double)tensor->extent[d];
    if (n == most)
      parameters[n - 1] += elements;
    else
      parameters[n++] = elements;
  }
  return n;
}

static bool is_layer(pl_block_kind kind) {
  return kind == PL_BLOCK_LAYER || kind == PL_BLOCK_EXPERT_LAYER;
}

/* Parameters that are let go after the recomputation, because too many others come before their next use. */
static bool gathers_again(const pl_program *program, int32_t block, double parameters) {
  double most = framework_of(program)->reuse_parameters;
  return most > 0 && parameters > most && program->strategy->recompute == PL_RECOMPUTE_FULL &&
         is_layer(pl_model_block_kind(program->model, block));
}

static void add_gather(pass_making *pass, int32_t block, double parameters, bool experts, bool backward,
                       gathered_block *gathered) {
  uint32_t family = data_family(pass, experts);
  if (family == PL_NONE || parameters <= 0) return;
  double bytes = training_state_of(pass->state->program).gathered_bytes;
  uint32_t op = family_op(pass->state, family, PL_ALL_GATHER, parameters * bytes);
  add(pass, PL_INSTRUCTION_GATHER, backward, block, op);
  pass->list[pass->n - 1].experts = experts;
  if (gathered == NULL) return;
  gathered->experts[gathered->n] = experts;
  gathered->ops[gathered->n++] = op;
}

/* Starts gathering what `block` needs. */
static void add_gathers(pass_making *pass, int32_t block, bool backward, gathered_block *gathered) {
  const pl_program *program = pass->state->program;
  double held = held_part(program, block, false), experts = held_part(program, block, true);
  double parameters[GATHERS_PER_BLOCK];
  uint32_t n = 0;
  gathered->n = 0;
  if (framework_of(program)->gather_unit == PL_GATHER_TENSOR)
    n = matrices_of(block_program(program, block), experts == 0, parameters);
  if (n == 0) parameters[n++] = held;
  int times = backward && gathers_again(program, block, held + experts) ? 2 : 1;
  for (int time = 0; time < times; time++) {
    for (uint32_t i = 0; i < n; i++)
      add_gather(pass, block, parameters[i], false, backward, gathered);
    add_gather(pass, block, experts, true, backward, gathered);
  }
}

static void add_awaits(pass_making *pass, int32_t block, bool backward, const gathered_block *gathered) {
  bool copies = framework_of(pass->state->program)->copies_per_rank;
  for (uint32_t i = 0; i < gathered->n; i++)
    add(pass, PL_INSTRUCTION_AWAIT, backward, block, PL_NONE);
  for (uint32_t i = 0; copies && i < gathered->n; i++) {
    add(pass, PL_INSTRUCTION_COPY, backward, block, gathered->ops[i]);
    pass->list[pass->n - 1].experts = gathered->experts[i];
  }
}

/* Closes the buckets that are full, or all that hold something. */
static void close_buckets(pass_making *pass, bool all) {
  const pl_program *program = pass->state->program;
  double gradient_bytes = training_state_of(program).gradient_bytes;
  for (int experts = 0; experts <= 1; experts++) {
    if (!all && pass->pending[experts] * gradient_bytes < program->job->bucket_bytes) continue;
    add_reduce(pass, pass->pending[experts], experts);
    pass->pending[experts] = 0;
  }
}

static void add_pending(pass_making *pass, int32_t block) {
  for (int experts = 0; experts <= 1; experts++)
    pass->pending[experts] += held_part(pass->state->program, block, experts);
  close_buckets(pass, false);
}

/* Blocks first, first + step, ... (count of them). ZeRO-3 gathers parameters up to two blocks ahead or, in a framework
 * that does not gather ahead, when a block is to run. */
static void add_blocks(pass_making *pass, int32_t first, int32_t count, bool backward, bool reduces) {
  const pl_program *program = pass->state->program;
  bool gathers = program->strategy->zero == 3;
  int32_t step = backward ? -1 : 1, ahead = framework_of(program)->gathers_ahead ? GATHER_WINDOW : 1;
  gathered_block gathered[GATHER_WINDOW] = {{0}};
  for (int32_t i = 0; gathers && ahead > 1 && i < ahead && i < count; i++)
    add_gathers(pass, first + i * step, backward, &gathered[i]);
  for (int32_t i = 0; i < count; i++) {
    int32_t block = first + i * step;
    gathered_block *own = &gathered[i % GATHER_WINDOW];
    if (gathers && ahead == 1) add_gathers(pass, block, backward, own);
    if (gathers) add_awaits(pass, block, backward, own);
    add(pass, PL_INSTRUCTION_BLOCK, backward, block, PL_NONE);
    if (gathers && ahead > 1 && i + ahead < count) add_gathers(pass, block + ahead * step, backward, own);
    if (reduces) add_pending(pass, block);
  }
  if (reduces) close_buckets(pass, true);
}

/* Bytes of the activation behind block boundary `boundary` of the chunks, on one rank; its gradient has as many. */
static double crossing_bytes(const pl_program *program, int32_t boundary) {
  return block_program(program, program->strategy->boundary[boundary] - 1)->output_bytes;
}

static bool splits_sends(const pl_program *program) {
  return program->job->split_sends && program->strategy->tmp > 1 && !program->strategy->sp;
}

/* What a pass receives comes in shares when it comes from another chunk. */
static void add_assemble(pass_making *pass, int32_t global, bool backward) {
  const pl_program *program = pass->state->program;
  int32_t boundary = backward ? global + 1 : global;
  if (!splits_sends(program) || boundary == 0 || boundary == pl_strategy_n_chunks(program->strategy)) return;
  add(pass, PL_INSTRUCTION_ASSEMBLE, backward, -1,
      family_op(pass->state, program->family_of[pass->stage][PL_FAMILY_TENSOR], PL_ALL_GATHER,
                crossing_bytes(program, boundary)));
}

static pl_code make_pass(making *state, int32_t stage, int32_t chunk, bool backward, bool reduces, pl_pass *made) {
  const pl_strategy *strategy = state->program->strategy;
  int32_t global = chunk * strategy->pp + stage;
  int32_t start = strategy->boundary[global], end = strategy->boundary[global + 1];
  pass_making pass = {.state = state, .stage = stage};
  pass.list = PL_TAKE(state->arena, pl_instruction, INSTRUCTIONS_PER_BLOCK * (end - start) + 4);
  if (pass.list == NULL) return pl_fail_memory(state->error, "the program");
  add_assemble(&pass, global, backward);
  add_blocks(&pass, backward ? end - 1 : start, end - start, backward, reduces);
  *made = (pl_pass){pass.list, pass.n};
  return PL_OK;
}

static pl_code make_epilogue(making *state, pl_stage_program *own) {
  pl_program *program = state->program;
  const pl_strategy *strategy = program->strategy;
  pass_making pass = {.state = state, .stage = own->stage};
  pass.list = PL_TAKE(state->arena, pl_instruction, 6);
  if (pass.list == NULL) return pl_fail_memory(state->error, "the program");
  const double parts[] = {own->parameters - own->expert_parameters, own->expert_parameters};
  for (int experts = 0; experts <= 1 && !strategy->overlap && strategy->zero < 2; experts++)
    add_reduce(&pass, parts[experts], experts);
  uint32_t embedding = program->family_of[own->stage][PL_FAMILY_EMBEDDING];
  if (embedding != PL_NONE) {
    double size_bytes = program->blocks[PL_BLOCK_HEAD].tied_parameters * training_state_of(program).reduced_bytes;
    add(&pass, PL_INSTRUCTION_EMBEDDING, true, -1, family_op(state, embedding, PL_ALL_REDUCE, size_bytes));
  }
  add(&pass, PL_INSTRUCTION_OPTIMIZER, false, -1, PL_NONE);
  for (int experts = 0; experts <= 1 && (strategy->zero == 1 || strategy->zero == 2); experts++)
    add_gather(&pass, -1, parts[experts], experts, false, NULL);
  own->epilogue = (pl_pass){pass.list, pass.n};
  return PL_OK;
}

/* ---- stages ---- */

static uint32_t send_op(making *state, pl_family_kind kind, int32_t stage, int32_t chunk) {
  const pl_program *program = state->program;
  const pl_strategy *strategy = program->strategy;
  int32_t global = chunk * strategy->pp + stage;
  int32_t boundary = kind == PL_FAMILY_DOWN ? global + 1 : global;
  if (strategy->pp == 1 || boundary == 0 || boundary == pl_strategy_n_chunks(strategy)) return PL_NONE;
  double size_bytes = crossing_bytes(program, boundary) / (splits_sends(program) ? strategy->tmp : 1);
  return family_op(state, program->family_of[stage][kind], PL_SEND, size_bytes);
}

static void find_last_microbatches(pl_stage_program *own, int32_t *last) {
  for (int64_t i = 0; i < own->n_steps; i++)
    if (own->steps[i].backward) last[own->steps[i].chunk] = own->steps[i].microbatch;
  own->last_microbatch = last;
}

static void count_parameters(const pl_program *program, pl_stage_program *own) {
  const pl_strategy *strategy = program->strategy;
  for (int32_t chunk = 0; chunk < strategy->vpp; chunk++) {
    int32_t global = chunk * strategy->pp + own->stage;
    for (int32_t block = strategy->boundary[global]; block < strategy->boundary[global + 1]; block++) {
      double parameters = held_parameters(program, block);
      own->parameters += parameters;
      own->expert_parameters += held_experts(program, block);
      own->largest_block_parameters = fmax(own->largest_block_parameters, parameters);
    }
  }
}

static pl_code make_stage(making *state, int32_t stage, pl_stage_program *own) {
  pl_program *program = state->program;
  const pl_strategy *strategy = program->strategy;
  size_t vpp = (size_t)strategy->vpp;
  own->stage = stage;
  own->steps = pl_schedule_take(strategy, program->n_microbatches, stage, state->arena);
  own->n_steps = 2 * (int64_t)strategy->vpp * program->n_microbatches;
  pl_pass *forward = PL_TAKE(state->arena, pl_pass, vpp), *backward = PL_TAKE(state->arena, pl_pass, vpp);
  pl_pass *last_backward = PL_TAKE(state->arena, pl_pass, vpp);
  int32_t *last = PL_TAKE(state->arena, int32_t, vpp);
  uint32_t *send_down = PL_TAKE(state->arena, uint32_t, vpp), *send_up = PL_TAKE(state->arena, uint32_t, vpp);
  if (state->arena->failed) return pl_fail_memory(state->error, "the program");
  find_last_microbatches(own, last);
  count_parameters(program, own);
  for (int32_t chunk = 0; chunk < strategy->vpp; chunk++) {
    int32_t global = chunk * strategy->pp + stage;
    for (int32_t block = strategy->boundary[global]; block < strategy->boundary[global + 1]; block++)
      add_block_collectives(state, stage, block);
    bool every_time = strategy->zero >= 2; /* gradients are sharded as soon as they are made */
    PL_TRY(make_pass(state, stage, chunk, false, false, &forward[chunk]));
    PL_TRY(make_pass(state, stage, chunk, true, every_time, &backward[chunk]));
    PL_TRY(make_pass(state, stage, chunk, true, every_time || strategy->overlap, &last_backward[chunk]));
    send_down[chunk] = send_op(state, PL_FAMILY_DOWN, stage, chunk);
    send_up[chunk] = send_op(state, PL_FAMILY_UP, stage, chunk);
  }
  own->forward = forward;
  own->backward = backward;
  own->last_backward = last_backward;
  own->send_down = send_down;
  own->send_up = send_up;
  return make_epilogue(state, own);
}

pl_code pl_program_take(const pl_model *model, const pl_job *job, const pl_strategy *strategy, pl_arena *arena,
                        pl_program *program, pl_error *error) {
  *program = (pl_program){.model = model, .job = job, .strategy = strategy};
  program->n_microbatches = (int32_t)(job->gbs / ((int64_t)strategy->dp * strategy->mbs));
  const pl_block_shard shard = pl_strategy_shard(strategy, job);
  for (int kind = 0; kind < PL_BLOCK_KIND_COUNT; kind++)
    PL_TRY(pl_block_program_take(model, (pl_block_kind)kind, &shard, arena, &program->blocks[kind], error));
  making state = {.program = program, .arena = arena, .error = error};
  PL_TRY(make_families(&state));
  pl_stage_program *stages = PL_TAKE(arena, pl_stage_program, strategy->pp);
  if (stages == NULL) return pl_fail_memory(error, "the stages");
  program->stages = stages;
  for (int32_t stage = 0; stage < strategy->pp; stage++)
    PL_TRY(make_stage(&state, stage, &stages[stage]));
  return arena->failed ? pl_fail_memory(error, "the program") : PL_OK;
}
