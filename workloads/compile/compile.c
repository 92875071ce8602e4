/* See workloads/compile/compile.h. */
#include "workloads/compile/compile.h"

#include <string.h>

#include "workloads/compile/compile_state.h"

/* ---- steps ---- */

static uint32_t send_op(const pl_compilation *state, bool backward, int32_t stage, int32_t chunk) {
  const pl_stage_program *sender = &state->program->stages[stage];
  return backward ? sender->send_up[chunk] : sender->send_down[chunk];
}

/* Slot of the device that sends along a wire; the one that receives has the next. */
static int send_slot(const pl_compilation *state, bool backward, int32_t chunk) {
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
static int64_t place_of(const pl_unrolling *own, int32_t chunk, int32_t microbatch) {
  return (int64_t)chunk * own->schedule.n_microbatches + microbatch;
}

static void receive(pl_compilation *state, pl_unrolling *own, bool backward, int32_t chunk, int32_t microbatch) {
  const pl_strategy *strategy = state->program->strategy;
  int32_t from = pl_strategy_chunk_at(strategy, own->stage->stage, chunk) + (backward ? 1 : -1);
  if (from < 0 || from == pl_strategy_n_chunks(strategy)) return;
  int32_t sender = pl_strategy_stage_of(strategy, from), sent = pl_strategy_place_of(strategy, from);
  if (sender == own->stage->stage && pl_strategy_is_v(strategy)) { /* the device has it: in order, it was made before */
    const uint32_t *ends = backward ? own->inputs_end : own->forward_end;
    if (ends != NULL) pl_unrolling_wait_for(own, ends[place_of(own, sent, microbatch)]);
    return;
  }
  uint32_t op = send_op(state, backward, sender, sent);
  pl_meeting meeting = pl_unrolling_arrive(state, own, send_slot(state, backward, sent) + 1, op, PL_CATEGORY_PIPELINE,
                                           state->send_name, microbatch);
  if (own->waits) pl_unrolling_order_after(state, own, meeting.open);
  pl_unrolling_wait_for(own, meeting.close);
}

static void send(pl_compilation *state, pl_unrolling *own, bool backward, int32_t chunk, int32_t microbatch) {
  uint32_t op = send_op(state, backward, own->stage->stage, chunk);
  if (op == PL_NONE) return;
  pl_meeting meeting = pl_unrolling_arrive(state, own, send_slot(state, backward, chunk), op, PL_CATEGORY_PIPELINE,
                                           state->send_name, microbatch);
  pl_unrolling_order_after(state, own, meeting.open); /* after the collective, too, on which a pass may end */
  if (own->waits) pl_unrolling_wait_for(own, meeting.close);
}

/* Two neighbours that both sent first would wait for each other for good: the gradient goes out when what the next
 * forward pass computes on has come, and only then. */
static void send_owed(pl_compilation *state, pl_unrolling *own) {
  if (!own->owes) return;
  own->owes = false;
  send(state, own, true, own->owed_chunk, own->owed_microbatch);
}

/* What the order on the compute stream would imply: a backward follows its forward, its second half the first, and a
 * forward waits until few enough are in flight. */
static void wait_for_schedule(pl_unrolling *own, const pl_schedule_step *step) {
  if (own->forward_end == NULL) return;
  if (step->kind == PL_STEP_WEIGHTS) {
    pl_unrolling_wait_for(own, own->inputs_end[place_of(own, step->chunk, step->microbatch)]);
  } else if (pl_step_is_backward(step)) {
    pl_unrolling_wait_for(own, own->forward_end[place_of(own, step->chunk, step->microbatch)]);
  } else if (own->n_forward >= own->in_flight) {
    pl_unrolling_wait_for(own, own->backward_end[own->n_forward - own->in_flight]);
  }
}

static void note_schedule(pl_unrolling *own, const pl_schedule_step *step) {
  if (own->forward_end == NULL) return;
  int64_t place = place_of(own, step->chunk, step->microbatch);
  if (pl_step_is_backward(step)) own->inputs_end[place] = own->now.chain;
  if (pl_step_makes_weights(step)) own->backward_end[own->n_backward++] = own->now.chain;
  if (step->kind != PL_STEP_FORWARD) return;
  own->forward_end[place] = own->now.chain;
  own->n_forward++;
}

static void begin_step(pl_compilation *state, pl_unrolling *own, const pl_schedule_step *step) {
  if (own->forward_end != NULL) own->now.chain = PL_NONE;
  wait_for_schedule(own, step);
  if (step->kind != PL_STEP_WEIGHTS) receive(state, own, pl_step_is_backward(step), step->chunk, step->microbatch);
  send_owed(state, own);
}

static void end_step(pl_compilation *state, pl_unrolling *own, const pl_schedule_step *step) {
  if (step->kind != PL_STEP_WEIGHTS) send(state, own, pl_step_is_backward(step), step->chunk, step->microbatch);
  note_schedule(own, step);
}

/* `owes`: what the step would send waits for what the next one receives. */
static void emit_step(pl_compilation *state, pl_compile_crew *own, const pl_schedule_step *step, bool owes) {
  for (uint32_t member = 0; member < own->n; member++)
    begin_step(state, &own->members[member], step);
  pl_emit_pass(state, own, pl_crew_pass_of(&own->passes, step), step->microbatch);
  for (uint32_t member = 0; member < own->n; member++) {
    pl_unrolling *it = &own->members[member];
    it->owes = owes;
    it->owed_chunk = step->chunk;
    it->owed_microbatch = step->microbatch;
    if (!owes) end_step(state, it, step);
  }
}

/* What follows waits for what either waits for. */
static void meet_again(pl_unrolling *own) {
  for (uint32_t i = 0; i < own->beside.n_pending; i++)
    pl_unrolling_wait_for(own, own->beside.pending[i]);
  own->now.chain = own->last;
  own->now.exchange = own->now.tokens = PL_NONE;
}

/* A forward pass and, beside it, a backward one: both have received what they compute on when they begin. */
static void emit_pair(pl_compilation *state, pl_compile_crew *own, const pl_schedule_step steps[2],
                      const uint64_t times[2]) {
  pl_emit_side sides[2];
  for (uint32_t member = 0; member < own->n; member++) {
    own->members[member].beside = own->members[member].now;
    own->members[member].gathered = PL_NONE;
  }
  for (int i = 0; i < 2; i++) {
    sides[i] = (pl_emit_side){
        .pass = pl_crew_pass_of(&own->passes, &steps[i]), .microbatch = steps[i].microbatch, .times = times[i]};
    state->meetings.times = times[i];
    for (uint32_t member = 0; member < own->n; member++)
      begin_step(state, &own->members[member], &steps[i]);
    pl_crew_change_over(own);
  }
  pl_emit_sides(state, own, sides);
  for (int i = 0; i < 2; i++) {
    state->meetings.times = times[i];
    for (uint32_t member = 0; member < own->n; member++)
      end_step(state, &own->members[member], &steps[i]);
    pl_crew_change_over(own);
  }
  for (uint32_t member = 0; member < own->n; member++)
    meet_again(&own->members[member]);
}

static void emit_epilogue(pl_compilation *state, pl_compile_crew *own) {
  for (uint32_t i = 0; i < own->passes.epilogue.n; i++)
    for (uint32_t member = 0; member < own->n; member++) {
      const pl_piece *piece = &own->passes.epilogue.pieces[i];
      if (piece->kind == PL_PIECE_WORK) { /* the optimizer; the gradient streams are in order */
        pl_unrolling_wait_for(&own->members[member], own->members[member].last_reduction[0]);
        pl_unrolling_wait_for(&own->members[member], own->members[member].last_reduction[1]);
      }
      pl_emit_piece(state, &own->members[member], piece, -1);
    }
}

/* ---- preparing a device class ---- */

/* Of what runs beside exchanges of experts. */
static double crowding_of(const pl_compilation *state, const pl_device_profile *profile) {
  const pl_program *program = state->program;
  if (!pl_strategy_hides_tokens(program->strategy)) return 0;
  return pl_framework_crowding(program->job->framework, profile);
}

bool pl_compile_crowds_products(const pl_job *job, const pl_strategy *strategy) {
  const pl_framework *framework = pl_framework_or_ideal(job->framework);
  bool userbuffers = framework->pipeline.overlaps_tensor && strategy->sp && !(job->fp8 && job->fp4);
  return strategy->tmp > 1 && framework->pipeline.overlaps_tensor_backward && !userbuffers;
}

static double tensor_crowding_of(const pl_compilation *state, const pl_device_profile *profile) {
  return pl_compile_crowds_products(state->program->job, state->program->strategy) ? pl_tensor_crowding(profile) : 0;
}

static uint32_t add_device(pl_compilation *state, const pl_device_class *class) {
  const pl_device_profile *profile = pl_cluster_profile(state->cluster, class->device);
  pl_resident_memory resident = pl_resident_memory_of(state->program, class->stage);
  bool ignore = state->options->no_overlap_factor;
  const pl_graph_device device = {.device = class->device,
                                  .multiplicity = class->multiplicity,
                                  .overlap_compute = ignore ? 0 : profile->overlap_compute,
                                  .overlap_communication = ignore ? 0 : profile->overlap_communication,
                                  .overlap_exchange = ignore ? 0 : crowding_of(state, profile),
                                  .overlap_tensor = ignore ? 0 : tensor_crowding_of(state, profile),
                                  .waits_for_place = profile->fills_device,
                                  .resident_bytes = (int64_t)pl_resident_bytes(&resident)};
  return pl_graph_builder_device(state->builder, &device);
}

static bool prepare(pl_compilation *state, uint32_t index, pl_unrolling *own) {
  const pl_program *program = state->program;
  const pl_device_class *class = &state->plan->device_classes[index];
  size_t vpp = (size_t)program->strategy->vpp;
  *own = (pl_unrolling){.device = class,
                        .stage = &program->stages[class->stage],
                        .schedule = pl_lane_schedule(program, class, state->options->leapt),
                        .index = index,
                        .last = PL_NONE,
                        .last_reduction = {PL_NONE, PL_NONE},
                        .now = {.chain = PL_NONE, .exchange = PL_NONE, .tokens = PL_NONE},
                        .gathered = PL_NONE,
                        .gathers = PL_TAKE(state->arena, uint32_t, PL_MOST_GATHERS)};
  /* Streams that take what is ready have no order to wait in. */
  own->waits = state->options->streams != PL_STREAMS_READY &&
               pl_framework_or_ideal(program->job->framework)->pipeline.send_wait_s > 0;
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

static pl_code find_prices(pl_compilation *state, uint32_t device, const pl_block_prices **prices) {
  uint32_t profile = state->cluster->devices[device].profile;
  if (state->prices[profile] == NULL)
    PL_TRY(pl_block_cache_prices(state->options->blocks, state->program->model, state->program->blocks,
                                 &state->cluster->profiles[profile], state->arena, &state->prices[profile],
                                 state->error));
  *prices = state->prices[profile];
  return PL_OK;
}

static bool take_pieces(pl_compilation *state, pl_compile_crew *own) {
  const pl_program *program = state->program;
  const pl_device_class *class = own->members[0].device;
  const pl_stage_program *stage = own->members[0].stage;
  const pl_device_profile *profile = pl_cluster_profile(state->cluster, class->device);
  pl_piece_context context = {.program = program,
                              .plan = state->plan,
                              .options = state->options,
                              .device = class,
                              .profile = profile,
                              .is_crowded = crowding_of(state, profile) > 0 || tensor_crowding_of(state, profile) > 0,
                              .builder = state->builder,
                              .scratch = &state->scratch,
                              .arena = state->arena};
  if (find_prices(state, class->device, &context.prices) != PL_OK) return false;
  pl_block_scale scales[PL_MODEL_CLASSES_MAX][2];
  if (pl_block_scales_of(state->cluster, program, state->plan, class, scales)) context.scales = scales;
  return pl_crew_passes_take(&context, stage, &own->passes);
}

/* The first participant of the communicator leads: rivals name it (workloads/compile/rivals.h). */
static bool gather_crew(pl_compilation *state, uint32_t index, pl_compile_crew *own) {
  const pl_communication_plan *plan = state->plan;
  uint32_t tensor = plan->device_classes[index].group_class[PL_SLOT_TENSOR];
  const pl_group_class *class = tensor == PL_NONE ? NULL : &plan->group_classes[tensor];
  bool joint = state->options->fuse && class != NULL && class->stays_inside;
  *own = (pl_compile_crew){.n = joint ? class->n_participants : 1};
  own->members = PL_TAKE(state->arena, pl_unrolling, own->n);
  own->streams = PL_TAKE(state->arena, uint32_t, own->n);
  if (state->arena->failed) return false;
  for (uint32_t i = 0; i < own->n; i++) {
    uint32_t member = joint ? plan->participants[class->first_participant + i].device_class : index;
    if (!prepare(state, member, &own->members[i])) return false;
    own->streams[i] = own->members[i].compute_stream;
  }
  return take_pieces(state, own);
}

/* Whether experts exchange tokens in the step or in the one that it is joined with, which comes next: else a pair is
 * one pass after the other. */
static bool hides_exchange(const pl_compile_crew *own, const pl_schedule_step *step, const pl_schedule *schedule,
                           pl_schedule_cursor cursor) {
  if (!step->joined) return false;
  const pl_schedule_step beside = pl_schedule_next(schedule, &cursor);
  return pl_pieces_exchange_tokens(&pl_crew_pass_of(&own->passes, step)->pieces) ||
         pl_pieces_exchange_tokens(&pl_crew_pass_of(&own->passes, &beside)->pieces);
}

/* Whether the backward pass `step`, the i-th, is followed by a forward pass where hosts wait at sends. */
static bool owes_gradient(const pl_compile_crew *own, const pl_schedule_step *step, int64_t i,
                          pl_schedule_cursor cursor) {
  const pl_schedule *schedule = &own->members[0].schedule;
  if (!own->members[0].waits || step->kind != PL_STEP_BACKWARD || i + 1 == pl_schedule_n_steps(schedule)) return false;
  return pl_schedule_next(schedule, &cursor).kind == PL_STEP_FORWARD;
}

/* The tail (pl_compiled) begins with `i` at the latest where the step that `i` begins with, or that is beside it, is
 * the last to make gradients of a chunk's weights. */
static void find_tail(const pl_schedule_step *step, int64_t i, uint32_t *tail) {
  if (step->last && pl_step_makes_weights(step) && i < *tail) *tail = (uint32_t)i;
}

static bool unroll(pl_compilation *state, uint32_t index, bool *is_unrolled) {
  pl_compile_crew own;
  if (!gather_crew(state, index, &own)) return false;
  const pl_schedule *schedule = &own.members[0].schedule;
  const pl_lane *lane = pl_lane_begin_schedule(&state->lanes, schedule);
  pl_schedule_cursor cursor = {0};
  uint32_t *tail = &state->tails[lane - state->lanes.lanes];
  *tail = (uint32_t)pl_schedule_n_steps(schedule);
  for (int64_t i = 0; i < pl_schedule_n_steps(schedule); i++) {
    pl_schedule_step steps[2] = {pl_schedule_next(schedule, &cursor)};
    uint64_t times[2] = {pl_lane_times(&state->lanes, lane, i)};
    state->meetings.times = times[0];
    find_tail(&steps[0], i, tail);
    pl_lane_begin_step(&state->lanes, state->builder);
    if (!hides_exchange(&own, &steps[0], schedule, cursor)) {
      emit_step(state, &own, &steps[0], owes_gradient(&own, &steps[0], i, cursor));
      continue;
    }
    steps[1] = pl_schedule_next(schedule, &cursor);
    find_tail(&steps[1], i, tail);
    times[1] = pl_lane_times(&state->lanes, lane, ++i);
    emit_pair(state, &own, steps, times);
    pl_lane_begin_step(&state->lanes, state->builder); /* lists have as many steps as they have */
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
static void expect_as_many(pl_compilation *state, const bool *is_unrolled) {
  uint32_t n_classes = state->plan->n_device_classes, n_unrolled = 0;
  for (uint32_t class = 0; class < n_classes; class ++)
    n_unrolled += is_unrolled[class];
  PL_ASSERT(n_unrolled > 0);
  pl_graph_builder_expect(state->builder, (n_classes - 1) / n_unrolled);
  pl_origins_expect(state->options->origins, (n_classes - 1) / n_unrolled);
}

/* Who sends and who receives must come to it in the same order on either side. */
static pl_code check_waits(const pl_strategy *strategy, pl_error *error) {
  if (strategy->vpp > 1)
    return pl_fail(
        error, PL_UNSUPPORTED,
        "vpp=%d: with the framework's send_wait the last stage would wait for the first and the first for the "
        "last; use vpp=1, or a framework without",
        strategy->vpp);
  if (pl_strategy_splits_backward(strategy))
    return pl_fail(
        error, PL_UNSUPPORTED,
        "schedule=%s: with the framework's send_wait neighbours would wait for each other, one for a gradient "
        "and one for what the next forward pass computes on; use 1f1b or gpipe, or a framework without",
        pl_schedule_name(strategy->schedule));
  return PL_OK;
}

pl_code pl_compile(const pl_cluster *cluster, const pl_program *program, const pl_communication_plan *plan,
                   const pl_compile_options *options, pl_arena *arena, pl_compiled *compiled, pl_error *error) {
  *compiled = (pl_compiled){.transfer_bytes = NULL};
  bool waits = pl_framework_or_ideal(program->job->framework)->pipeline.send_wait_s > 0;
  if (waits) PL_TRY(check_waits(program->strategy, error));
  pl_compilation state = {
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
  if (program->strategy->listed == NULL && !waits)
    pl_graph_builder_is_acyclic(state.builder); /* by rule, not by hand */
  return pl_graph_builder_freeze(state.builder, &compiled->graph, error);
}
