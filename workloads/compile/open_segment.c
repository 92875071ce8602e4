/* See workloads/compile/open_segment.h. */
#include "workloads/compile/open_segment.h"

#include <string.h>

/* Bytes of progress that stay inside the pass, for the report of the links' loads. */
static void note_carried(pl_open_segment *open, const pl_lowered_op *lowered) {
  for (uint32_t i = 0; i < open->n_carried; i++)
    if (open->carried[i].transfer_class == lowered->transfer_class) {
      open->carried[i].progress_bytes += lowered->progress_bytes;
      return;
    }
  PL_ASSERT(open->n_carried < PL_PIECES_CARRIED);
  open->carried[open->n_carried++] = (pl_carried){lowered->transfer_class, lowered->progress_bytes};
}

/* What a task of several parts is called: halves of backward passes are told apart. */
static const char *name_of_pass(const pl_open_segment *open, uint8_t category) {
  if (open->pass == PL_PASS_INPUTS) return "backward for inputs";
  if (open->pass == PL_PASS_WEIGHTS) return "backward for weights";
  return pl_category_name((pl_category)category);
}

/* A piece of the parts [first, end). */
static void emit_segment(pl_open_segment *open, pl_piece_kind kind, uint32_t first, uint32_t end) {
  if (first == end) return;
  const pl_piece_context *context = open->context;
  pl_memory_effect effect = {0, 0};
  bool has_effect = false;
  for (uint32_t i = first; i < end; i++) {
    const pl_part_note *own = &open->notes[i];
    PL_ASSERT(own->op == PL_NONE || open->tensor != NULL);
    has_effect |= own->has_effect;
    if (own->has_effect) pl_memory_effect_append(&effect, own->effect);
    if (own->op != PL_NONE) note_carried(open, &context->plan->ops[open->tensor->first_op + own->op]);
  }
  if (open->origins != NULL) pl_origins_add_parts(context->options->origins, &open->origins[first], end - first);
  const pl_part *parts = &open->parts[first];
  pl_piece *piece = &open->pieces[open->n_pieces++];
  *piece = (pl_piece){.kind = (uint8_t)kind,
                      .category = parts->category,
                      .segment = pl_graph_builder_segment(context->builder, parts, end - first),
                      .effect = PL_NONE,
                      .name = end - first == 1 ? parts->name : PL_NONE};
  if (has_effect) piece->effect = pl_graph_builder_effect(context->builder, effect.peak_bytes, effect.net_bytes);
  if (context->options->names && piece->name == PL_NONE)
    piece->name =
        pl_graph_builder_name(context->builder, name_of_pass(open, (uint8_t)pl_parts_category(parts, end - first)));
}

static void emit_collectives(pl_open_segment *open, uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end; i++)
    open->pieces[open->n_pieces++] = (pl_piece){.kind = PL_PIECE_COLLECTIVE,
                                                .slot = PL_SLOT_TENSOR,
                                                .op = open->notes[i].op,
                                                .effect = PL_NONE,
                                                .name = open->parts[i].name};
}

/* Several participants start a pass, and may end it, each when it can; from the first collective to the last they are
 * in step. Collectives with no computing between them gain nothing by that. */
static void emit_joint_segment(pl_open_segment *open) {
  uint32_t first = 0, end = open->n_parts;
  while (first < end && open->notes[first].op == PL_NONE)
    first++;
  while (end > first && open->notes[end - 1].op == PL_NONE)
    end--;
  bool computes = false;
  for (uint32_t i = first; i < end; i++)
    computes |= open->notes[i].op == PL_NONE;
  emit_segment(open, PL_PIECE_WORK, 0, first);
  if (computes) {
    emit_segment(open, PL_PIECE_JOINT, first, end);
  } else {
    emit_collectives(open, first, end);
  }
  emit_segment(open, PL_PIECE_WORK, end, open->n_parts);
}

void pl_open_segment_close(pl_open_segment *open) {
  if (open->n_parts == 0) return;
  if (open->tensor != NULL && open->tensor->n_participants > 1) {
    emit_joint_segment(open);
  } else {
    emit_segment(open, PL_PIECE_WORK, 0, open->n_parts);
  }
  open->n_parts = open->n_known_parts = 0;
}

void pl_open_segment_add(pl_open_segment *open, const pl_part *part, uint32_t op, uint32_t made) {
  open->parts[open->n_parts] = *part;
  open->notes[open->n_parts] =
      (pl_part_note){.effect = open->next_effect, .has_effect = open->next_has_effect, .op = op};
  if (open->origins != NULL) open->origins[open->n_parts] = (pl_part_origin){made, open->block};
  open->n_parts++;
  open->next_effect = (pl_memory_effect){0, 0};
  open->next_has_effect = false;
  if (!open->context->options->fuse) pl_open_segment_close(open);
}

void pl_open_segment_communicate(pl_open_segment *open, pl_piece_kind kind, int slot, uint32_t op, const char *name) {
  pl_open_segment_close(open);
  open->pieces[open->n_pieces++] = (pl_piece){.kind = (uint8_t)kind,
                                              .slot = (uint8_t)slot,
                                              .op = op,
                                              .effect = PL_NONE,
                                              .name = pl_open_segment_name(open, name)};
}

void pl_open_segment_know(pl_open_segment *open, const pl_op_list *list, uint32_t first_part) {
  open->known = list;
  open->known_first = first_part;
  open->n_known_parts = open->n_parts - first_part;
}

bool pl_open_segment_repeat(pl_open_segment *open, const pl_op_list *list) {
  uint32_t from = open->known_first, n = open->n_known_parts, to = open->n_parts;
  if (open->known != list || n == 0 || open->next_has_effect) return false;
  memcpy(&open->parts[to], &open->parts[from], n * sizeof *open->parts);
  memcpy(&open->notes[to], &open->notes[from], n * sizeof *open->notes);
  if (open->origins != NULL) memcpy(&open->origins[to], &open->origins[from], n * sizeof *open->origins);
  for (uint32_t i = 0; open->origins != NULL && i < n; i++)
    open->origins[to + i].at = open->block;
  open->n_parts += n;
  return true;
}

void pl_open_segment_take(pl_open_segment *open, uint32_t most) {
  pl_arena *arena = open->context->arena;
  pl_piece_scratch *scratch = open->context->scratch;
  if (most > scratch->room) {
    scratch->parts = pl_arena_take(arena, most * sizeof *open->parts, _Alignof(pl_part));
    scratch->notes = pl_arena_take(arena, most * sizeof *open->notes, _Alignof(pl_part_note));
    if (open->context->options->origins != NULL)
      scratch->origins = pl_arena_take(arena, most * sizeof *open->origins, _Alignof(pl_part_origin));
    scratch->room = most;
  }
  open->parts = scratch->parts;
  open->notes = scratch->notes;
  open->origins = scratch->origins;
  open->pieces = pl_arena_take(arena, most * sizeof *open->pieces, _Alignof(pl_piece));
}
