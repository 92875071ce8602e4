/* The segment under way while a pass is made into pieces: its parts, what they do to memory, and the collectives among
 * them. Of parts that are closed become pieces: a segment on the compute stream, or a joint one between collectives
 * that stay inside the crew. Memory effects are given at the granularity of a block's pass, so that fused and unfused
 * tasks see the same balance.
 */
#ifndef PL_WORKLOADS_OPEN_SEGMENT_H
#define PL_WORKLOADS_OPEN_SEGMENT_H

#include "workloads/compile/pieces.h"

/* What a part does to memory, and which op of the tensor family it is. */
typedef struct pl_part_note {
  pl_memory_effect effect;
  bool has_effect;
  uint32_t op; /* PL_NONE = it computes */
} pl_part_note;

typedef struct pl_open_segment {
  const pl_piece_context *context;
  const pl_group_class *tensor; /* the device's tensor-parallel communicator; NULL: none */
  pl_block_pass pass;           /* of the blocks of the pass */
  pl_piece *pieces;             /* so far */
  uint32_t n_pieces;
  pl_part *parts; /* of the segment */
  pl_part_note *notes;
  pl_part_origin *origins; /* NULL: nobody asks */
  uint32_t n_parts;
  const pl_op_list *known; /* the last list whose parts are all in the segment, whatever block comes */
  uint32_t known_first, n_known_parts;
  int32_t block;                /* of the model, whose parts are added; -1: of none */
  pl_memory_effect next_effect; /* of the part that is added next */
  bool next_has_effect;
  pl_carried carried[PL_PIECES_CARRIED];
  uint32_t n_carried;
} pl_open_segment;

/* Room for `most` parts and pieces, which are written before they are read; the arena says whether there was memory. */
void pl_open_segment_take(pl_open_segment *open, uint32_t most);
/* Adds a part that computes or, with `op` of the tensor family, a collective. `made`: number of its origin; PL_NONE:
 * nobody asks. */
void pl_open_segment_add(pl_open_segment *open, const pl_part *part, uint32_t op, uint32_t made);
/* Makes pieces of what is there. */
void pl_open_segment_close(pl_open_segment *open);
/* A piece of its own, behind the segment that it closes. */
void pl_open_segment_communicate(pl_open_segment *open, pl_piece_kind kind, int slot, uint32_t op, const char *name);
/* From `first_part` on stand all parts of the list. */
void pl_open_segment_know(pl_open_segment *open, const pl_op_list *list, uint32_t first_part);
/* A block like one before it in the segment has the same parts. False: there is none, or it is not known to be. */
bool pl_open_segment_repeat(pl_open_segment *open, const pl_op_list *list);

/* `effect` follows what is there. */
static inline void pl_memory_effect_append(pl_memory_effect *sum, pl_memory_effect effect) {
  int64_t peak = sum->net_bytes + effect.peak_bytes;
  if (peak > sum->peak_bytes) sum->peak_bytes = peak;
  sum->net_bytes += effect.net_bytes;
}

/* Of the part that is added next. */
static inline void pl_open_segment_add_effect(pl_open_segment *open, int64_t peak_bytes, int64_t net_bytes) {
  pl_memory_effect_append(&open->next_effect, (pl_memory_effect){peak_bytes, net_bytes});
  open->next_has_effect = true;
}

static inline uint32_t pl_open_segment_name(const pl_open_segment *open, const char *name) {
  return open->context->options->names ? pl_graph_builder_name(open->context->builder, name) : PL_NONE;
}

#endif
