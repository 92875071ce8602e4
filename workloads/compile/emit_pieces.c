/* See workloads/compile/compile_state.h. */
#include "workloads/compile/compile_state.h"

void pl_unrolling_wait_for(pl_unrolling *own, uint32_t task) {
  if (task == PL_NONE) return;
  PL_ASSERT(own->now.n_pending < PL_MOST_PENDING);
  own->now.pending[own->now.n_pending++] = task;
}

/* `task` is the next on the compute stream. */
static void follow(pl_compilation *state, pl_unrolling *own, uint32_t task) {
  for (uint32_t i = 0; i < own->now.n_pending; i++)
    pl_graph_builder_edge(state->builder, own->now.pending[i], task);
  /* The ops of a pass follow each other; in order, the stream says so. */
  if (own->forward_end != NULL && own->now.chain != PL_NONE)
    pl_graph_builder_edge(state->builder, own->now.chain, task);
  own->now.n_pending = 0;
  own->last = own->now.chain = task;
}

static void emit_work(pl_compilation *state, pl_unrolling *own, const pl_piece *piece, int32_t microbatch) {
  follow(state, own,
         pl_graph_builder_work(state->builder, piece->segment, own->compute_stream, piece->effect, piece->name,
                               microbatch));
}

pl_meeting pl_unrolling_arrive(pl_compilation *state, pl_unrolling *own, int slot, uint32_t op, pl_category category,
                               uint32_t name, int32_t microbatch) {
  const pl_task_text text = {category, name, microbatch};
  return pl_meetings_arrive(&state->meetings, own->index, slot, op, &text);
}

/* What a communication that starts here comes after: the last work and what the next work would wait for. */
void pl_unrolling_order_after(pl_compilation *state, const pl_unrolling *own, uint32_t task) {
  if (own->now.chain != PL_NONE) pl_graph_builder_edge(state->builder, own->now.chain, task);
  for (uint32_t i = 0; i < own->now.n_pending; i++)
    pl_graph_builder_edge(state->builder, own->now.pending[i], task);
}

/* Starts an op of a communicator after the work so far; gives the task at which it is over. */
static uint32_t emit_communication(pl_compilation *state, pl_unrolling *own, const pl_piece *piece,
                                   int32_t microbatch) {
  static const uint8_t categories[PL_SLOT_COUNT] = {
      [PL_SLOT_TENSOR] = PL_CATEGORY_TENSOR,    [PL_SLOT_DATA] = PL_CATEGORY_DATA,
      [PL_SLOT_CONTEXT] = PL_CATEGORY_CONTEXT,  [PL_SLOT_EXPERT] = PL_CATEGORY_EXPERT,
      [PL_SLOT_EXPERT_DATA] = PL_CATEGORY_DATA, [PL_SLOT_COPIES] = PL_CATEGORY_DATA,
      [PL_SLOT_HEADS] = PL_CATEGORY_TENSOR};
  pl_category category = (pl_category)categories[piece->slot];
  pl_meeting meeting = pl_unrolling_arrive(state, own, piece->slot, piece->op, category, piece->name, microbatch);
  pl_unrolling_order_after(state, own, meeting.open);
  return meeting.close;
}

static void emit_collective(pl_compilation *state, pl_unrolling *own, const pl_piece *piece, int32_t microbatch) {
  uint32_t close = emit_communication(state, own, piece, microbatch);
  own->now.n_pending = 0;
  pl_unrolling_wait_for(own, close);
  if (piece->slot == PL_SLOT_TENSOR) own->gathered = close;
}

/* The tied embedding's gradients are complete when those of both replicas' data-parallel groups are. */
static void emit_tied(pl_compilation *state, pl_unrolling *own, const pl_piece *piece, int32_t microbatch) {
  const pl_task_text text = {PL_CATEGORY_DATA, piece->name, microbatch};
  pl_meeting meeting = pl_meetings_arrive(&state->meetings, own->index, PL_SLOT_EMBEDDING, piece->op, &text);
  pl_unrolling_order_after(state, own, meeting.open);
  int n = pl_strategy_copies(state->program->strategy) > 1 ? 2 : 1;
  for (int i = 0; i < n; i++)
    if (own->last_reduction[i] != PL_NONE) pl_graph_builder_edge(state->builder, own->last_reduction[i], meeting.open);
  own->last_reduction[0] = meeting.close;
}

/* Copies of a share are reduced when the share is. */
static uint32_t emit_across(pl_compilation *state, pl_unrolling *own, const pl_piece *piece, int32_t microbatch) {
  pl_meeting meeting =
      pl_unrolling_arrive(state, own, piece->slot, piece->op, PL_CATEGORY_DATA, piece->name, microbatch);
  pl_graph_builder_edge(state->builder, own->last_reduction[0], meeting.open);
  return meeting.close;
}

static void emit_reduction(pl_compilation *state, pl_unrolling *own, const pl_piece *piece, int32_t microbatch) {
  bool across = piece->slot == PL_SLOT_COPIES;
  uint32_t *last = &own->last_reduction[across || piece->slot == PL_SLOT_EXPERT_DATA];
  *last = across ? emit_across(state, own, piece, microbatch) : emit_communication(state, own, piece, microbatch);
  if (!state->program->strategy->overlap) pl_unrolling_wait_for(own, *last);
}

void pl_emit_piece(pl_compilation *state, pl_unrolling *own, const pl_piece *piece, int32_t microbatch) {
  switch ((pl_piece_kind)piece->kind) {
  case PL_PIECE_WORK:
    emit_work(state, own, piece, microbatch);
    break;
  case PL_PIECE_JOINT:
    PL_ASSERT(false); /* of the whole crew: pl_emit_pass */
    break;
  case PL_PIECE_COLLECTIVE:
    emit_collective(state, own, piece, microbatch);
    break;
  case PL_PIECE_BEGIN:
    *(piece->slot == PL_SLOT_EXPERT ? &own->now.tokens : &own->now.exchange) =
        emit_communication(state, own, piece, microbatch);
    break;
  case PL_PIECE_COMPLETE:
    pl_unrolling_wait_for(own, piece->slot == PL_SLOT_EXPERT ? own->now.tokens : own->now.exchange);
    break;
  case PL_PIECE_REDUCE:
    emit_reduction(state, own, piece, microbatch);
    break;
  case PL_PIECE_EMBEDDING:
    emit_tied(state, own, piece, microbatch);
    break;
  case PL_PIECE_GATHER:
    PL_ASSERT(own->n_gathers < PL_MOST_GATHERS);
    if (own->now.chain == PL_NONE)
      own->now.chain = own->last; /* parameters are not gathered before the previous pass is over */
    own->gathers[(own->first_gather + own->n_gathers++) % PL_MOST_GATHERS] =
        emit_communication(state, own, piece, microbatch);
    break;
  case PL_PIECE_AWAIT:
    pl_unrolling_wait_for(own, own->gathers[own->first_gather]);
    own->first_gather = (own->first_gather + 1) % PL_MOST_GATHERS;
    own->n_gathers--;
    break;
  }
}

static void emit_joint(pl_compilation *state, pl_compile_crew *own, const pl_piece *piece, int32_t microbatch) {
  uint32_t task = pl_graph_builder_joint_work(state->builder, piece->segment, own->streams, own->n, piece->effect,
                                              piece->name, microbatch);
  for (uint32_t i = 0; i < own->n; i++)
    follow(state, &own->members[i], task);
}

/* Of all members. */
static void emit_piece_of(pl_compilation *state, pl_compile_crew *own, const pl_piece *piece, int32_t microbatch) {
  if (piece->kind == PL_PIECE_JOINT) {
    emit_joint(state, own, piece, microbatch);
    return;
  }
  for (uint32_t member = 0; member < own->n; member++)
    pl_emit_piece(state, &own->members[member], piece, microbatch);
}

void pl_emit_pass(pl_compilation *state, pl_compile_crew *own, pl_crew_pass *pass, int32_t microbatch) {
  pass->times += state->meetings.times;
  for (uint32_t i = 0; i < pass->pieces.n; i++)
    emit_piece_of(state, own, &pass->pieces.pieces[i], microbatch);
}

/* ---- passes beside each other ---- */

static bool exchanges_tokens(const pl_piece *piece) {
  return (piece->kind == PL_PIECE_COLLECTIVE || piece->kind == PL_PIECE_BEGIN) && piece->slot == PL_SLOT_EXPERT;
}

/* Of tokens that were on their way beside others of the pass. */
static bool awaits_tokens(const pl_piece *piece) {
  return piece->kind == PL_PIECE_COMPLETE && piece->slot == PL_SLOT_EXPERT;
}

bool pl_pieces_exchange_tokens(const pl_pieces *pieces) {
  for (uint32_t i = 0; i < pieces->n; i++)
    if (exchanges_tokens(&pieces->pieces[i])) return true;
  return false;
}

void pl_crew_change_over(pl_compile_crew *own) {
  for (uint32_t i = 0; i < own->n; i++) {
    pl_unrolling *member = &own->members[i];
    const pl_passage now = member->now;
    member->now = member->beside;
    member->beside = now;
  }
}

/* On to behind its next exchange and those that follow it at once (weights of answers go behind the tokens), and what
 * runs beside it, or to its end. */
static void emit_side(pl_compilation *state, pl_compile_crew *own, pl_emit_side *side) {
  const pl_pieces *pieces = &side->pass->pieces;
  state->meetings.times = side->times;
  for (uint32_t i = 0; i < own->n && side->at < pieces->n; i++) {
    pl_unrolling_wait_for(&own->members[i], own->members[i].gathered);
    own->members[i].gathered = PL_NONE;
  }
  for (bool waits = false, began = false; side->at < pieces->n; side->at++) {
    const pl_piece *piece = &pieces->pieces[side->at];
    bool exchanges = exchanges_tokens(piece);
    if ((waits && !exchanges) || (began && awaits_tokens(piece))) break;
    emit_piece_of(state, own, piece, side->microbatch);
    waits = exchanges && piece->kind == PL_PIECE_COLLECTIVE;
    began |= exchanges && piece->kind == PL_PIECE_BEGIN;
  }
}

void pl_emit_sides(pl_compilation *state, pl_compile_crew *own, pl_emit_side sides[2]) {
  int turn = 0;
  for (int i = 0; i < 2; i++)
    sides[i].pass->times += sides[i].times;
  bool second_first = pl_pieces_exchange_tokens(&sides[1].pass->pieces);
  if (second_first) pl_crew_change_over(own);
  turn = second_first ? 1 : 0;
  while (sides[0].at < sides[0].pass->pieces.n || sides[1].at < sides[1].pass->pieces.n) {
    emit_side(state, own, &sides[turn]);
    pl_crew_change_over(own);
    turn = 1 - turn;
  }
  if (turn == 1) pl_crew_change_over(own);
}
