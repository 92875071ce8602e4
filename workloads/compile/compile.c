/* See workloads/compile/compile.h. */
#include "workloads/compile/compile.h"

#include <string.h>

#include "workloads/compile/compile_lanes.h"
#include "workloads/compile/crew_passes.h"
#include "workloads/compile/meeting.h"

enum { MOST_PENDING = 64 };

/* One device class while it is unrolled. */
typedef struct unrolling {
  const pl_device_class *device;
  const pl_stage_program *stage;
  pl_schedule schedule; /* that is unrolled */
  uint32_t index, compute_stream;
  uint32_t last;                  /* the last work task so far, PL_NONE at the start */
  uint32_t chain;                 /* the same; with ready streams only of the pass under way */
  uint32_t pending[MOST_PENDING]; /* what the next work task waits for */
  uint32_t n_pending;
  uint32_t *gathers; /* ring of gathers not yet awaited */
  uint32_t first_gather, n_gathers;
  uint32_t last_reduction[2]; /* of experts or across copies: 1; of all else: 0 */
  uint32_t exchange;          /* begun and not yet awaited, PL_NONE = none */
  /* Only with ready streams, where program order is not the order on the stream. */
  uint32_t *forward_end;  /* [chunk][microbatch] last task of the forward */
  uint32_t *inputs_end;   /* likewise, of the backward in whole or for inputs */
  uint32_t *backward_end; /* last task of each backward in whole or for weights, in the schedule's order */
  int64_t n_forward, n_backward;
  int32_t in_flight; /* how many forwards may run ahead of their backwards (Proteus's max ongoing) */
} unrolling;

enum { MOST_GATHERS = 64 };

/* The device classes that are unrolled together: those that have joint segments (core/graph/graph.h), or one alone.
 * They run one stage's program, so the pieces are the same for all. */
typedef struct crew {
  unrolling *members;
  uint32_t n;
  uint32_t *streams; /* compute streams, in the order of the members */
  pl_crew_passes passes;
} crew;

typedef struct compilation {
  const pl_cluster *cluster;
  const pl_program *program;
  const pl_communication_plan *plan;
  const pl_compile_options *options;
  pl_arena *arena;
  pl_graph_builder *builder;
  pl_meetings meetings;
  double *transfer_bytes; /* NULL when chunked */
  uint32_t send_name;
  pl_piece_scratch scratch;
  const pl_block_prices **prices; /* per device profile of the cluster; NULL: not asked for yet */
  pl_error *error;
  pl_lane_making lanes;
  uint32_t *tails; /* per lane */
} compilation;

/* ---- emitting pieces ---- */

static void wait_for(unrolling *own, uint32_t task) {
  if (task == PL_NONE) return;
  PL_ASSERT(own->n_pending < MOST_PENDING);
  own->pending[own->n_pending++] = task;
}

/* `task` is the next on the compute stream. */
static void follow(compilation *state, unrolling *own, uint32_t task) {
  for (uint32_t i = 0; i < own->n_pending; i++)
    pl_graph_builder_edge(state->builder, own->pending[i], task);
  /* The ops of a pass follow each other; in order, the stream says so. */
  if (own->forward_end != NULL && own->chain != PL_NONE) pl_graph_builder_edge(state->builder, own->chain, task);
  own->n_pending = 0;
  own->last = own->chain = task;
}

static void emit_work(compilation *state, unrolling *own, const pl_piece *piece, int32_t microbatch) {
  follow(state, own,
         pl_graph_builder_work(state->builder, piece->segment, own->compute_stream, piece->effect, piece->name,
                               microbatch));
}

static pl_meeting arrive(compilation *state, unrolling *own, int slot, uint32_t op, pl_category category, uint32_t name,
                         int32_t microbatch) {
  const pl_task_text text = {category, name, microbatch};
  return pl_meetings_arrive(&state->meetings, own->index, slot, op, &text);
}

/* What a communication that starts here comes after: the last work and what the next work would wait for. */
static void order_after_work(compilation *state, const unrolling *own, uint32_t task) {
  if (own->chain != PL_NONE) pl_graph_builder_edge(state->builder, own->chain, task);
  for (uint32_t i = 0; i < own->n_pending; i++)
    pl_graph_builder_edge(state->builder, own->pending[i], task);
}

/* Starts an op of a communicator after the work so far; gives the task at which it is over. */
static uint32_t emit_communication(compilation *state, unrolling *own, const pl_piece *piece, int32_t microbatch) {
  static const uint8_t categories[PL_SLOT_COUNT] = {
      [PL_SLOT_TENSOR] = PL_CATEGORY_TENSOR,    [PL_SLOT_DATA] = PL_CATEGORY_DATA,
      [PL_SLOT_CONTEXT] = PL_CATEGORY_CONTEXT,  [PL_SLOT_EXPERT] = PL_CATEGORY_EXPERT,
      [PL_SLOT_EXPERT_DATA] = PL_CATEGORY_DATA, [PL_SLOT_COPIES] = PL_CATEGORY_DATA};
  pl_category category = (pl_category)categories[piece->slot];
  pl_meeting meeting = arrive(state, own, piece->slot, piece->op, category, piece->name, microbatch);
  order_after_work(state, own, meeting.open);
  return meeting.close;
}

static void emit_collective(compilation *state, unrolling *own, const pl_piece *piece, int32_t microbatch) {
  uint32_t close = emit_communication(state, own, piece, microbatch);
  own->n_pending = 0;
  wait_for(own, close);
}

/* The tied embedding's gradients are complete when those of both replicas' data-parallel groups are. */
static void emit_tied(compilation *state, unrolling *own, const pl_piece *piece, int32_t microbatch) {
  const pl_task_text text = {PL_CATEGORY_DATA, piece->name, microbatch};
  pl_meeting meeting = pl_meetings_arrive(&state->meetings, own->index, PL_SLOT_EMBEDDING, piece->op, &text);
  order_after_work(state, own, meeting.open);
  int n = pl_strategy_copies(state->program->strategy) > 1 ? 2 : 1;
  for (int i = 0; i < n; i++)
    if (own->last_reduction[i] != PL_NONE) pl_graph_builder_edge(state->builder, own->last_reduction[i], meeting.open);
  own->last_reduction[0] = meeting.close;
}

/* Copies of a share are reduced when the share is. */
static uint32_t emit_across(compilation *state, unrolling *own, const pl_piece *piece, int32_t microbatch) {
  pl_meeting meeting = arrive(state, own, piece->slot, piece->op, PL_CATEGORY_DATA, piece->name, microbatch);
  pl_graph_builder_edge(state->builder, own->last_reduction[0], meeting.open);
  return meeting.close;
}

static void emit_reduction(compilation *state, unrolling *own, const pl_piece *piece, int32_t microbatch) {
  bool across = piece->slot == PL_SLOT_COPIES;
  uint32_t *last = &own->last_reduction[across || piece->slot == PL_SLOT_EXPERT_DATA];
  *last = across ? emit_across(state, own, piece, microbatch) : emit_communication(state, own, piece, microbatch);
  if (!state->program->strategy->overlap) wait_for(own, *last);
}

static void emit_piece(compilation *state, unrolling *own, const pl_piece *piece, int32_t microbatch) {
  switch ((pl_piece_kind)piece->kind) {
  case PL_PIECE_WORK:
    emit_work(state, own, piece, microbatch);
    break;
  case PL_PIECE_JOINT:
    PL_ASSERT(false); /* of the whole crew: emit_pass */
    break;
  case PL_PIECE_COLLECTIVE:
    emit_collective(state, own, piece, microbatch);
    break;
  case PL_PIECE_BEGIN:
    own->exchange = emit_communication(state, own, piece, microbatch);
    break;
  case PL_PIECE_COMPLETE:
    wait_for(own, own->exchange);
    break;
  case PL_PIECE_REDUCE:
    emit_reduction(state, own, piece, microbatch);
    break;
  case PL_PIECE_EMBEDDING:
    emit_tied(state, own, piece, microbatch);
    break;
  case PL_PIECE_GATHER:
    PL_ASSERT(own->n_gathers < MOST_GATHERS);
    if (own->chain == PL_NONE)
      own->chain = own->last; /* parameters are not gathered before the previous pass is over */
    own->gathers[(own->first_gather + own->n_gathers++) % MOST_GATHERS] =
        emit_communication(state, own, piece, microbatch);
    break;
  case PL_PIECE_AWAIT:
    wait_for(own, own->gathers[own->first_gather]);
    own->first_gather = (own->first_gather + 1) % MOST_GATHERS;
    own->n_gathers--;
    break;
  }
}

static void emit_joint(compilation *state, crew *own, const pl_piece *piece, int32_t microbatch) {
  uint32_t task = pl_graph_builder_joint_work(state->builder, piece->segment, own->streams, own->n, piece->effect,
                                              piece->name, microbatch);
  for (uint32_t i = 0; i < own->n; i++)
    follow(state, &own->members[i], task);
}

static void emit_pass(compilation *state, crew *own, pl_crew_pass *pass, int32_t microbatch) {
  const pl_pieces *pieces = &pass->pieces;
  pass->times += state->meetings.times;
  for (uint32_t i = 0; i < pieces->n; i++) {
    const pl_piece *piece = &pieces->pieces[i];
    if (piece->kind == PL_PIECE_JOINT) {
      emit_joint(state, own, piece, microbatch);
      continue;
    }
    for (uint32_t member = 0; member < own->n; member++)
      emit_piece(state, &own->members[member], piece, microbatch);
  }
}

/* ---- steps ---- */

static uint32_t send_op(const compilation *state, bool backward, int32_t stage, int32_t chunk) {
  const pl_stage_program *sender = &state->program->stages[stage];
  return backward ? sender->send_up[chunk] : sender->send_down[chunk];
}

/* Slot of the device that sends along a wire; the one that receives has the next. */
static int send_slot(const compilation *state, bool backward, int32_t chunk) {
  switch (pl_program_wire(state->program->strategy, backward, chunk)) {
  case PL_FAMILY_DOWN:
    return PL_SLOT_SEND_DOWN;
  case PL_FAMILY_UP:
    return PL_SLOT_SEND_UP;
  case PL_FAMILY_DOWN_2:
    return PL_SLOT_SEND_DOWN_2;
  default:
    return PL_SLOT_SEND_UP_2;
  }
}

/* Index of a pass in the arrays of ready streams. */
static int64_t place_of(const unrolling *own, int32_t chunk, int32_t microbatch) {
  return (int64_t)chunk * own->schedule.n_microbatches + microbatch;
}

static void receive(compilation *state, unrolling *own, bool backward, int32_t chunk, int32_t microbatch) {
  const pl_strategy *strategy = state->program->strategy;
  int32_t from = pl_strategy_chunk_at(strategy, own->stage->stage, chunk) + (backward ? 1 : -1);
  if (from < 0 || from == pl_strategy_n_chunks(strategy)) return;
  int32_t sender = pl_strategy_stage_of(strategy, from), sent = pl_strategy_place_of(strategy, from);
  if (sender == own->stage->stage && pl_strategy_is_v(strategy)) { /* the device has it: in order, it was made before */
    const uint32_t *ends = backward ? own->inputs_end : own->forward_end;
    if (ends != NULL) wait_for(own, ends[place_of(own, sent, microbatch)]);
    return;
  }
  uint32_t op = send_op(state, backward, sender, sent);
  pl_meeting meeting =
      arrive(state, own, send_slot(state, backward, sent) + 1, op, PL_CATEGORY_PIPELINE, state->send_name, microbatch);
  wait_for(own, meeting.close);
}

static void send(compilation *state, unrolling *own, bool backward, int32_t chunk, int32_t microbatch) {
  uint32_t op = send_op(state, backward, own->stage->stage, chunk);
  if (op == PL_NONE) return;
  pl_meeting meeting =
      arrive(state, own, send_slot(state, backward, chunk), op, PL_CATEGORY_PIPELINE, state->send_name, microbatch);
  order_after_work(state, own, meeting.open); /* after the collective, too, on which a pass may end */
}

/* What the order on the compute stream would imply: a backward follows its forward, its second half the first, and a
 * forward waits until few enough are in flight. */
static void wait_for_schedule(unrolling *own, const pl_schedule_step *step) {
  if (own->forward_end == NULL) return;
  if (step->kind == PL_STEP_WEIGHTS) {
    wait_for(own, own->inputs_end[place_of(own, step->chunk, step->microbatch)]);
  } else if (pl_step_is_backward(step)) {
    wait_for(own, own->forward_end[place_of(own, step->chunk, step->microbatch)]);
  } else if (own->n_forward >= own->in_flight) {
    wait_for(own, own->backward_end[own->n_forward - own->in_flight]);
  }
}

static void note_schedule(unrolling *own, const pl_schedule_step *step) {
  if (own->forward_end == NULL) return;
  int64_t place = place_of(own, step->chunk, step->microbatch);
  if (pl_step_is_backward(step)) own->inputs_end[place] = own->last;
  if (pl_step_makes_weights(step)) own->backward_end[own->n_backward++] = own->last;
  if (step->kind != PL_STEP_FORWARD) return;
  own->forward_end[place] = own->last;
  own->n_forward++;
}

static void begin_step(compilation *state, unrolling *own, const pl_schedule_step *step) {
  if (own->forward_end != NULL) own->chain = PL_NONE;
  wait_for_schedule(own, step);
  if (step->kind != PL_STEP_WEIGHTS) receive(state, own, pl_step_is_backward(step), step->chunk, step->microbatch);
}

static void end_step(compilation *state, unrolling *own, const pl_schedule_step *step) {
  if (step->kind != PL_STEP_WEIGHTS) send(state, own, pl_step_is_backward(step), step->chunk, step->microbatch);
  note_schedule(own, step);
}

static void emit_step(compilation *state, crew *own, const pl_schedule_step *step) {
  for (uint32_t member = 0; member < own->n; member++)
    begin_step(state, &own->members[member], step);
  emit_pass(state, own, pl_crew_pass_of(&own->passes, step), step->microbatch);
  for (uint32_t member = 0; member < own->n; member++)
    end_step(state, &own->members[member], step);
}

static void emit_epilogue(compilation *state, crew *own) {
  for (uint32_t i = 0; i < own->passes.epilogue.n; i++)
    for (uint32_t member = 0; member < own->n; member++) {
      const pl_piece *piece = &own->passes.epilogue.pieces[i];
      if (piece->kind == PL_PIECE_WORK) { /* the optimizer; the gradient streams are in order */
        wait_for(&own->members[member], own->members[member].last_reduction[0]);
        wait_for(&own->members[member], own->members[member].last_reduction[1]);
      }
      emit_piece(state, &own->members[member], piece, -1);
    }
}

/* ---- preparing a device class ---- */

static uint32_t add_device(compilation *state, const pl_device_class *class) {
  const pl_device_profile *profile = pl_cluster_profile(state->cluster, class->device);
  pl_resident_memory resident = pl_resident_memory_of(state->program, class->stage);
  bool ignore = state->options->no_overlap_factor;
  const pl_graph_device device = {.device = class->device,
                                  .multiplicity = class->multiplicity,
                                  .overlap_compute = ignore ? 0 : profile->overlap_compute,
                                  .overlap_communication = ignore ? 0 : profile->overlap_communication,
                                  .resident_bytes = (int64_t)pl_resident_bytes(&resident)};
  return pl_graph_builder_device(state->builder, &device);
}

static bool prepare(compilation *state, uint32_t index, unrolling *own) {
  const pl_program *program = state->program;
  const pl_device_class *class = &state->plan->device_classes[index];
  size_t vpp = (size_t)program->strategy->vpp;
  *own = (unrolling){.device = class,
                     .stage = &program->stages[class->stage],
                     .schedule = pl_lane_schedule(program, class, state->options->leapt),
                     .index = index,
                     .last = PL_NONE,
                     .chain = PL_NONE,
                     .last_reduction = {PL_NONE, PL_NONE},
                     .exchange = PL_NONE,
                     .gathers = PL_TAKE(state->arena, uint32_t, MOST_GATHERS)};
  if (state->options->streams == PL_STREAMS_READY) {
    own->forward_end = PL_TAKE(state->arena, uint32_t, vpp * (size_t)own->schedule.n_microbatches);
    own->inputs_end = PL_TAKE(state->arena, uint32_t, vpp * (size_t)own->schedule.n_microbatches);
    own->backward_end = PL_TAKE(state->arena, uint32_t, vpp * (size_t)own->schedule.n_microbatches);
    own->in_flight = pl_schedule_in_flight(&own->schedule);
  }
  own->compute_stream = pl_graph_builder_stream(state->builder, index, PL_STREAM_COMPUTE);
  return !state->arena->failed;
}

/* ---- crews ---- */

static pl_code find_prices(compilation *state, uint32_t device, const pl_block_prices **prices) {
  uint32_t profile = state->cluster->devices[device].profile;
  if (state->prices[profile] == NULL)
    PL_TRY(pl_block_cache_prices(state->options->blocks, state->program->model, state->program->blocks,
                                 &state->cluster->profiles[profile], state->arena, &state->prices[profile],
                                 state->error));
  *prices = state->prices[profile];
  return PL_OK;
}

static bool take_pieces(compilation *state, crew *own) {
  const pl_program *program = state->program;
  const pl_device_class *class = own->members[0].device;
  const pl_stage_program *stage = own->members[0].stage;
  pl_piece_context context = {.program = program,
                              .plan = state->plan,
                              .options = state->options,
                              .device = class,
                              .profile = pl_cluster_profile(state->cluster, class->device),
                              .builder = state->builder,
                              .scratch = &state->scratch,
                              .arena = state->arena};
  if (find_prices(state, class->device, &context.prices) != PL_OK) return false;
  pl_block_scale scales[PL_MODEL_CLASSES_MAX][2];
  if (pl_block_scales_of(state->cluster, program, state->plan, class, scales)) context.scales = scales;
  return pl_crew_passes_take(&context, stage, &own->passes);
}

/* The first participant of the communicator leads: rivals name it (workloads/compile/rivals.h). */
static bool gather_crew(compilation *state, uint32_t index, crew *own) {
  const pl_communication_plan *plan = state->plan;
  uint32_t tensor = plan->device_classes[index].group_class[PL_SLOT_TENSOR];
  const pl_group_class *class = tensor == PL_NONE ? NULL : &plan->group_classes[tensor];
  bool joint = state->options->fuse && class != NULL && class->stays_inside;
  *own = (crew){.n = joint ? class->n_participants : 1};
  own->members = PL_TAKE(state->arena, unrolling, own->n);
  own->streams = PL_TAKE(state->arena, uint32_t, own->n);
  if (state->arena->failed) return false;
  for (uint32_t i = 0; i < own->n; i++) {
    uint32_t member = joint ? plan->participants[class->first_participant + i].device_class : index;
    if (!prepare(state, member, &own->members[i])) return false;
    own->streams[i] = own->members[i].compute_stream;
  }
  return take_pieces(state, own);
}

static bool unroll(compilation *state, uint32_t index, bool *is_unrolled) {
  crew own;
  if (!gather_crew(state, index, &own)) return false;
  const pl_schedule *schedule = &own.members[0].schedule;
  const pl_lane *lane = pl_lane_begin_schedule(&state->lanes, schedule);
  pl_schedule_cursor cursor = {0};
  uint32_t *tail = &state->tails[lane - state->lanes.lanes];
  *tail = (uint32_t)pl_schedule_n_steps(schedule);
  for (int64_t i = 0; i < pl_schedule_n_steps(schedule); i++) {
    const pl_schedule_step step = pl_schedule_next(schedule, &cursor);
    if (step.last && pl_step_makes_weights(&step) && i < *tail) *tail = (uint32_t)i;
    state->meetings.times = pl_lane_times(&state->lanes, lane, i);
    pl_lane_begin_step(&state->lanes, state->builder);
    emit_step(state, &own, &step);
  }
  state->meetings.times = 1;
  pl_lane_begin_step(&state->lanes, state->builder);
  emit_epilogue(state, &own);
  if (state->transfer_bytes != NULL) pl_crew_passes_add_carried(&own.passes, state->transfer_bytes);
  for (uint32_t i = 0; i < own.n; i++)
    is_unrolled[own.members[i].index] = true;
  return !state->arena->failed;
}

/* The crews to come make about as many tasks as the first. */
static void expect_as_many(compilation *state, const bool *is_unrolled) {
  uint32_t n_classes = state->plan->n_device_classes, n_unrolled = 0;
  for (uint32_t class = 0; class < n_classes; class ++)
    n_unrolled += is_unrolled[class];
  PL_ASSERT(n_unrolled > 0);
  pl_graph_builder_expect(state->builder, (n_classes - 1) / n_unrolled);
  pl_origins_expect(state->options->origins, (n_classes - 1) / n_unrolled);
}

pl_code pl_compile(const pl_cluster *cluster, const pl_program *program, const pl_communication_plan *plan,
                   const pl_compile_options *options, pl_arena *arena, pl_compiled *compiled, pl_error *error) {
  *compiled = (pl_compiled){.transfer_bytes = NULL};
  compilation state = {
      .cluster = cluster, .program = program, .plan = plan, .options = options, .arena = arena, .error = error};
  state.prices = PL_TAKE(arena, const pl_block_prices *, cluster->n_profiles);
  state.builder = pl_graph_builder_take(arena, options->streams);
  if (state.builder == NULL || state.prices == NULL) return pl_fail_memory(error, "the graph");
  state.send_name = options->names ? pl_graph_builder_name(state.builder, "send") : PL_NONE;
  for (uint32_t class = 0; class < plan->n_device_classes; class ++)
    add_device(&state, &plan->device_classes[class]);
  PL_TRY(pl_meetings_init(&state.meetings, cluster, program, plan, options, state.builder, arena, error));
  bool *is_unrolled = PL_TAKE(arena, bool, plan->n_device_classes);
  state.tails = pl_arena_take(arena, plan->n_device_classes * sizeof *state.tails, _Alignof(uint32_t));
  if (is_unrolled == NULL || state.tails == NULL ||
      !pl_lane_making_of_schedules(&state.lanes, program, plan, options->leapt, arena))
    return pl_fail_memory(error, "the graph");
  if (!options->chunked) state.transfer_bytes = PL_TAKE(arena, double, plan->n_transfer_classes);
  if (arena->failed) return pl_fail_memory(error, "the graph");
  for (uint32_t class = 0; class < plan->n_device_classes; class ++) {
    if (is_unrolled[class]) continue;
    if (!unroll(&state, class, is_unrolled)) return pl_fail_memory(error, "the graph");
    if (class == 0) expect_as_many(&state, is_unrolled);
  }
  PL_TRY(pl_meetings_finish(&state.meetings, error));
  if (options->fuse) pl_graph_builder_rivals(state.builder, plan->rival_offset, plan->rivals);
  if (state.transfer_bytes != NULL) pl_meetings_add_bytes(&state.meetings, state.transfer_bytes);
  compiled->transfer_bytes = state.transfer_bytes;
  compiled->lanes = pl_lane_making_finish(&state.lanes, state.builder);
  compiled->n_more = state.lanes.n_more;
  compiled->tails = state.tails;
  return pl_graph_builder_freeze(state.builder, &compiled->graph, error);
}
