/* See workloads/compile/pieces.h. A block's transient peak is taken when its first op starts, and what remains of it is
 * settled when its last op ends. */
#include "workloads/compile/pieces.h"

#include <math.h>
#include <string.h>

#include "workloads/compile/host_floor.h"
#include "workloads/compile/open_segment.h"
#include "workloads/compile/pieces_known.h"
#include "workloads/cost/op_cost.h"

typedef struct gathering {
  pl_open_segment open;
  uint32_t n_blocks_left;     /* of the pass that have ops */
  double pass_gradient_bytes; /* kept per parameter until the end of the pass */
  int64_t kept_bytes;         /* until the end of the pass, of the blocks so far */
  bool awaits_tokens;         /* an exchange with experts has begun */
  bool awaits_product;        /* a tensor collective has begun: what follows the next product waits for it */
  double late_per_host_s;     /* seconds that the device waits per second that the host works, in this pass */
} gathering;

/* ---- parts ---- */

static uint32_t make_origin(const gathering *state, const pl_origin *origin) {
  return state->open.origins == NULL ? PL_NONE : pl_origins_make(state->open.context->options->origins, origin);
}

static void add_computing(gathering *state, pl_ticks ticks, uint8_t category, pl_cost_bound bound, const char *name,
                          uint32_t made) {
  const pl_part part = {.ticks = ticks,
                        .category = category,
                        .computes = true,
                        .is_crowded = state->open.context->is_crowded && bound == PL_BOUND_COMPUTE,
                        .name = pl_open_segment_name(&state->open, name)};
  pl_open_segment_add(&state->open, &part, PL_NONE, made);
}

static void add_work(gathering *state, const pl_origin *origin) {
  add_computing(state, pl_ticks_from_s(origin->cost.time_s), origin->category, origin->cost.bound, origin->name,
                make_origin(state, origin));
}

static pl_origin origin_of(uint8_t category, const char *name, pl_op_time cost) {
  return (pl_origin){
      .block = -1, .name = name, .category = category, .family = PL_NONE, .family_op = PL_NONE, .cost = cost};
}

/* ---- tensor collectives inside a block ---- */

static uint32_t find_op(const pl_family *family, const pl_op *op) {
  uint32_t i = 0;
  while (i < family->n_ops &&
         (family->ops[i].kind != (pl_collective_kind)op->collective || family->ops[i].size_bytes != op->size_bytes))
    i++;
  PL_ASSERT(i < family->n_ops); /* a stage's program lists every collective of its blocks */
  return i;
}

/* A collective whose only rivals are transfers of other kinds is nearly as local as a kernel: it becomes a part. */
static void add_collective(gathering *state, uint32_t own, const char *name) {
  const pl_piece_context *context = state->open.context;
  const pl_group_class *class = state->open.tensor;
  PL_ASSERT(class != NULL);
  if (!context->options->fuse || !class->stays_inside) {
    pl_open_segment_communicate(&state->open, PL_PIECE_COLLECTIVE, PL_SLOT_TENSOR, own, name);
    return;
  }
  const pl_lowered_op *lowered = &context->plan->ops[class->first_op + own];
  const pl_part part = {.ticks = lowered->solo_ticks,
                        .category = PL_CATEGORY_TENSOR,
                        .name = pl_open_segment_name(&state->open, name),
                        .transfers = lowered->has_rivals,
                        .spec = lowered->spec, /* does not matter where there are no rivals */
                        .size_bytes = lowered->progress_bytes};
  const pl_origin origin = {
      .name = name, .block = -1, .category = PL_CATEGORY_TENSOR, .family = class->family, .family_op = own};
  pl_open_segment_add(&state->open, &part, own, make_origin(state, &origin));
}

/* Of the tensor, context or expert group. Only the tensor group's become parts of segments: its members are in step,
 * the others' come from different tensor groups. */
static void add_block_collective(gathering *state, const pl_op *op) {
  const pl_piece_context *context = state->open.context;
  int slot = pl_communication_slot((pl_group_role)op->group);
  uint32_t class = context->device->group_class[slot];
  if (class == PL_NONE) return;
  uint32_t own = find_op(&context->program->families[context->plan->group_classes[class].family], op);
  bool begins = op->overlap != PL_OVERLAP_NONE;
  if (slot == PL_SLOT_TENSOR && !begins) {
    add_collective(state, own, op->name);
    return;
  }
  if (slot == PL_SLOT_TENSOR) state->awaits_product = true;
  if (slot == PL_SLOT_EXPERT && begins) state->awaits_tokens = true;
  pl_open_segment_communicate(&state->open, begins ? PL_PIECE_BEGIN : PL_PIECE_COLLECTIVE, slot, own, op->name);
}

/* The product at `at` hands its output on piece by piece: the collective that sends it begins with it. */
static void begin_collective_of(gathering *state, const pl_op_list *list, uint32_t at) {
  if (list->n_overlaps == 0) return;
  for (uint32_t i = at + 1; i < list->n_ops && list->ops[i].kind != PL_OP_GEMM; i++)
    if (list->ops[i].overlap == PL_OVERLAP_BEGAN) add_block_collective(state, &list->ops[i]);
}

/* ---- blocks and the other instructions ---- */

/* Gradients that are added into the buffers when the pass is over: this block's stay, the last one lets go of all. */
static void keep_gradients(gathering *state, const pl_block_program *block, pl_memory_effect *effect) {
  int64_t own = llrint(block->parameters * state->pass_gradient_bytes) +
                llrint(pl_program_made_gradient_bytes(state->open.context->program, state->open.block));
  state->kept_bytes += own;
  effect->peak_bytes += own;
  effect->net_bytes += own;
  if (--state->n_blocks_left == 0) effect->net_bytes -= state->kept_bytes;
}

static const pl_block_program *block_of(const pl_program *program, const pl_instruction *instruction) {
  return &program->blocks[pl_model_block_class(program->model, instruction->block)];
}

static bool makes_weight_gradients(const pl_instruction *instruction) {
  pl_block_pass pass = pl_instruction_pass(instruction);
  return pass == PL_PASS_BACKWARD || pass == PL_PASS_WEIGHTS;
}

static const pl_op_list *ops_of(const pl_block_program *block, const pl_instruction *instruction) {
  return pl_block_ops(block, pl_instruction_pass(instruction));
}

/* Op `i` of the list, which computes. */
static void add_op(gathering *state, const pl_block_program *block, const pl_instruction *instruction, uint32_t i) {
  const pl_piece_context *context = state->open.context;
  pl_origins *origins = context->options->origins;
  pl_block_pass pass = pl_instruction_pass(instruction);
  const pl_op *op = &ops_of(block, instruction)->ops[i];
  const pl_op_time *plain = &context->prices->times[block->block_class][pass][i];
  if (context->scales == NULL) { /* a sweep's case */
    uint32_t place = ((uint32_t)block->block_class * PL_PASS_COUNT + (uint32_t)pass) * 32 + i;
    add_computing(state, context->prices->ticks[block->block_class][pass][i], op->category, plain->bound, op->name,
                  pl_origins_of_op(origins, op, (int8_t)block->kind, plain, place));
    return;
  }
  const pl_op_time cost = pl_block_scaled_cost(*plain, context->scales, block->block_class, op);
  add_computing(state, pl_ticks_from_s(cost.time_s), op->category, cost.bound, op->name,
                pl_origins_make_of_op(origins, op, (int8_t)block->kind, &cost));
}

/* A half of a backward pass without ops may still leave something to the other: the gradient that reaches the
 * embedding. */
static void leave_waiting(gathering *state, const pl_block_program *block, const pl_instruction *instruction) {
  const pl_memory_effect effect = pl_block_effect(block, pl_instruction_pass(instruction));
  if (instruction->half == 0 || (effect.peak_bytes == 0 && effect.net_bytes == 0)) return;
  const pl_origin origin = origin_of(PL_CATEGORY_BACKWARD, "wait", (pl_op_time){.time_s = 0});
  pl_open_segment_add_effect(&state->open, effect.peak_bytes, effect.net_bytes);
  add_work(state, &origin);
}

static void add_block(gathering *state, const pl_instruction *instruction) {
  const pl_block_program *block = block_of(state->open.context->program, instruction);
  const pl_op_list *list = ops_of(block, instruction);
  state->open.block = instruction->block;
  if (list->n_ops == 0) {
    leave_waiting(state, block, instruction);
    return;
  }
  bool makes_gradients = makes_weight_gradients(instruction);
  pl_memory_effect effect = pl_block_effect(block, pl_instruction_pass(instruction));
  if (makes_gradients) keep_gradients(state, block, &effect);
  if (pl_open_segment_repeat(&state->open, list)) return;
  uint32_t first_part = state->open.n_parts, first_piece = state->open.n_pieces;
  bool is_alike = !state->open.next_has_effect && (!makes_gradients || state->kept_bytes == 0);
  uint32_t last = list->n_ops - 1; /* the last op that computes: there the block settles its balance */
  while (last > 0 && list->ops[last].kind == PL_OP_COLLECTIVE)
    last--;
  bool taken = false;
  for (uint32_t i = 0; i < list->n_ops; i++) {
    const pl_op *op = &list->ops[i];
    if (op->kind == PL_OP_COLLECTIVE) {
      if (op->overlap != PL_OVERLAP_BEGAN) add_block_collective(state, op);
      continue;
    }
    if (op->kind == PL_OP_GEMM) begin_collective_of(state, list, i);
    if (op->overlap == PL_OVERLAP_AWAITS) {
      pl_open_segment_communicate(&state->open, PL_PIECE_COMPLETE,
                                  state->awaits_tokens ? PL_SLOT_EXPERT : PL_SLOT_CONTEXT, PL_NONE, "await");
      state->awaits_tokens = false;
    }
    if (!taken) pl_open_segment_add_effect(&state->open, effect.peak_bytes, effect.peak_bytes);
    taken = true;
    if (i == last) pl_open_segment_add_effect(&state->open, 0, effect.net_bytes - effect.peak_bytes);
    add_op(state, block, instruction, i);
    if (op->kind != PL_OP_GEMM || !state->awaits_product) continue;
    pl_open_segment_communicate(&state->open, PL_PIECE_COMPLETE, PL_SLOT_TENSOR, PL_NONE, "await");
    state->awaits_product = false;
  }
  if (!is_alike || state->open.n_pieces > first_piece) return;
  pl_open_segment_know(&state->open, list, first_part);
}

/* The device runs dry while the host launches the block: its share of the pass's lateness, by what it has to launch. */
static void add_lateness(gathering *state, const pl_instruction *instruction) {
  if (state->late_per_host_s <= 0) return;
  pl_host_load load = pl_host_load_of_instruction(state->open.context, instruction);
  double late_s = load.host_s * state->late_per_host_s;
  if (late_s <= 0) return;
  const pl_op_time cost = {.time_s = late_s, .source = PL_COST_ROOFLINE, .bound = PL_BOUND_LAUNCH};
  pl_origin origin = origin_of(PL_CATEGORY_HOST, "host", cost);
  add_work(state, &origin);
}

/* What was gathered is read and written once more, by one kernel or by one per rank of the group, launched one by one.
 * Of what was updated first a copy per rank, then one per rank and tensor, in loops over views: what Python needs
 * beyond a launch is not in any table and counts nothing. */
static void add_copies(gathering *state, const pl_instruction *instruction) {
  const pl_piece_context *context = state->open.context;
  const pl_program *program = context->program;
  uint32_t stage = (uint32_t)context->device->stage;
  const pl_family *family = &program->families[program->family_of[stage][pl_instruction_family(instruction)]];
  const pl_framework *framework = pl_framework_or_ideal(program->job->framework);
  bool updated = instruction->block < 0;
  double launch_s = updated ? 0 : framework->launch.launch_s, times = updated ? 2 : 1;
  double n_copies = updated || framework->gathers.copies_per_rank ? (double)family->group_size : 1;
  if (updated) n_copies *= 1 + program->stages[stage].n_tensors;
  double bytes = 2 * times * family->ops[instruction->op].size_bytes;
  const pl_op_time cost = pl_gathered_copy_cost(context->profile, bytes, n_copies, launch_s);
  pl_origin origin = origin_of(PL_CATEGORY_DATA, "copy what was gathered", cost);
  origin.bytes = bytes;
  add_work(state, &origin);
}

static void add_optimizer(gathering *state) {
  const pl_piece_context *context = state->open.context;
  int32_t stage = context->device->stage;
  pl_training_state bytes =
      pl_training_state_of(context->program->job, pl_strategy_replicas(context->program->strategy));
  double owned = pl_program_owned_parameters(context->program, stage);
  double traffic = pl_program_update_traffic(context->program, stage);
  pl_op_time cost = pl_optimizer_cost(context->profile, traffic, 1);
  bool held = pl_framework_or_ideal(context->program->job->framework)->update.holds_update;
  double stepped = pl_program_stepped_gradient_bytes(context->program, stage);
  if (!held || stepped > 0)
    pl_open_segment_add_effect(&state->open, llrint((held ? 0 : owned * bytes.update_bytes) + stepped), 0);
  pl_origin origin = origin_of(PL_CATEGORY_OPTIMIZER, "optimizer", cost);
  origin.bytes = traffic;
  add_work(state, &origin);
  double step_s = pl_framework_or_ideal(context->program->job->framework)->launch.step_s;
  if (step_s <= 0) return;
  const pl_op_time constant = {.time_s = step_s, .source = PL_COST_ROOFLINE, .bound = PL_BOUND_LAUNCH};
  pl_origin behind = origin_of(PL_CATEGORY_HOST, "step", constant);
  add_work(state, &behind);
}

static void add_instruction(gathering *state, const pl_instruction *instruction) {
  int data = instruction->across ? PL_SLOT_COPIES : instruction->experts ? PL_SLOT_EXPERT_DATA : PL_SLOT_DATA;
  state->open.block = -1;
  switch ((pl_instruction_kind)instruction->kind) {
  case PL_INSTRUCTION_BLOCK:
    add_block(state, instruction);
    add_lateness(state, instruction);
    break;
  case PL_INSTRUCTION_REDUCE:
    pl_open_segment_communicate(&state->open, PL_PIECE_REDUCE, data, instruction->op, "reduce gradients");
    break;
  case PL_INSTRUCTION_GATHER:
    pl_open_segment_communicate(&state->open, PL_PIECE_GATHER, data, instruction->op, "gather parameters");
    break;
  case PL_INSTRUCTION_AWAIT:
    pl_open_segment_communicate(&state->open, PL_PIECE_AWAIT, data, PL_NONE, "await");
    break;
  case PL_INSTRUCTION_COPY:
    add_copies(state, instruction);
    break;
  case PL_INSTRUCTION_ASSEMBLE:
    add_collective(state, instruction->op, "assemble");
    break;
  case PL_INSTRUCTION_EMBEDDING:
    pl_open_segment_communicate(&state->open, PL_PIECE_EMBEDDING, PL_SLOT_EMBEDDING, instruction->op,
                                "reduce tied embedding");
    break;
  case PL_INSTRUCTION_OPTIMIZER:
    add_optimizer(state);
    break;
  }
}

/* Most ops that a pass can make: a piece each at worst, two where an exchange is begun and awaited, and a part each. */
static uint32_t count_ops(const pl_program *program, const pl_pass *pass) {
  uint32_t n = 2;
  for (uint32_t i = 0; i < pass->n; i++) {
    const pl_instruction *instruction = &pass->instructions[i];
    n += 2; /* its own, and the lateness behind a block */
    if (instruction->kind != PL_INSTRUCTION_BLOCK) continue;
    const pl_op_list *list = ops_of(block_of(program, instruction), instruction);
    n += 3 + list->n_ops + list->n_overlaps;
  }
  return n;
}

static bool runs_ops(const pl_program *program, const pl_instruction *instruction) {
  return instruction->kind == PL_INSTRUCTION_BLOCK && ops_of(block_of(program, instruction), instruction)->n_ops > 0;
}

static bool has_work(const gathering *state) {
  for (uint32_t i = 0; i < state->open.n_pieces; i++)
    if (state->open.pieces[i].kind == PL_PIECE_WORK || state->open.pieces[i].kind == PL_PIECE_JOINT) return true;
  return false;
}

static pl_pieces take_anew(const pl_piece_context *context, const pl_pass *pass, pl_category category) {
  uint32_t most = count_ops(context->program, pass), tensor = context->device->group_class[PL_SLOT_TENSOR];
  gathering state = {.open = {.context = context, .block = -1}};
  if (tensor != PL_NONE) state.open.tensor = &context->plan->group_classes[tensor];
  pl_open_segment_take(&state.open, most);
  if (context->arena->failed) return (pl_pieces){.pieces = NULL};
  const pl_job *job = context->program->job;
  state.pass_gradient_bytes =
      pl_training_state_of(job, pl_strategy_replicas(context->program->strategy)).pass_gradient_bytes;
  double host_s = context->late_s > 0 ? pl_host_load_of(context, pass).host_s : 0;
  if (host_s > 0) state.late_per_host_s = context->late_s / host_s; /* where nothing is launched, late is a rounding */
  for (uint32_t i = 0; i < pass->n; i++) {
    state.n_blocks_left += runs_ops(context->program, &pass->instructions[i]);
    if (pass->instructions[i].kind == PL_INSTRUCTION_BLOCK)
      state.open.pass = pl_instruction_pass(&pass->instructions[i]);
  }
  for (uint32_t i = 0; i < pass->n; i++)
    add_instruction(&state, &pass->instructions[i]);
  pl_open_segment_close(&state.open);
  if (!has_work(&state)) { /* blocks without ops (AMP's identities): the pass still has a place in the stream */
    const pl_origin origin = origin_of((uint8_t)category, "pass", (pl_op_time){.time_s = 0});
    add_work(&state, &origin);
    pl_open_segment_close(&state.open);
  }
  pl_pieces made = {.pieces = state.open.pieces, .n = state.open.n_pieces, .n_carried = state.open.n_carried};
  memcpy(made.carried, state.open.carried, sizeof made.carried);
  return made;
}

pl_pieces pl_pieces_take(const pl_piece_context *context, const pl_pass *pass, pl_category category) {
  pl_pieces made;
  if (pl_pieces_recall(context, pass, category, &made)) return made;
  made = take_anew(context, pass, category);
  if (made.pieces != NULL) pl_pieces_remember(context, pass, category, &made);
  return made;
}
