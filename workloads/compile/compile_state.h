/* A strategy's program while it is unrolled (workloads/compile/compile.c): its device classes, the crews that are
 * unrolled together, and what their pieces make of the graph (workloads/compile/emit_pieces.c). */
#ifndef PL_WORKLOADS_COMPILE_STATE_H
#define PL_WORKLOADS_COMPILE_STATE_H

#include "workloads/compile/compile.h"
#include "workloads/compile/compile_lanes.h"
#include "workloads/compile/crew_passes.h"
#include "workloads/compile/meeting.h"

enum { PL_MOST_PENDING = 64, PL_MOST_GATHERS = 64 };

/* What orders the pieces of a pass. Of two that run beside each other each has its own. */
typedef struct pl_passage {
  uint32_t chain;    /* the last work task so far; with ready streams only of the pass under way. PL_NONE: none */
  uint32_t exchange; /* begun and not yet awaited, PL_NONE = none */
  uint32_t tokens;   /* likewise, of tokens with experts */
  uint32_t n_pending;
  uint32_t pending[PL_MOST_PENDING]; /* what the next work task waits for */
} pl_passage;

/* One device class while it is unrolled. */
typedef struct pl_unrolling {
  const pl_device_class *device;
  const pl_stage_program *stage;
  pl_schedule schedule; /* that is unrolled */
  uint32_t index, compute_stream;
  uint32_t last;          /* the last work task of the stream so far, PL_NONE at the start */
  pl_passage now, beside; /* of the pass whose pieces are emitted, and of the one that runs beside it */
  uint32_t gathered;      /* the last collective of the tensor group, beside which nothing computes, not even the pass
                             beside; PL_NONE: none since */
  uint32_t *gathers;      /* ring of gathers not yet awaited */
  uint32_t first_gather, n_gathers;
  uint32_t last_reduction[2]; /* of experts or across copies: 1; of all else: 0 */
  bool waits;                 /* at sends, until they have arrived */
  bool owes; /* the gradients of the backward pass before, which wait for what the next pass receives */
  int32_t owed_chunk, owed_microbatch;
  /* Only with ready streams, where program order is not the order on the stream. */
  uint32_t *forward_end;  /* [chunk][microbatch] last task of the forward */
  uint32_t *inputs_end;   /* likewise, of the backward in whole or for inputs */
  uint32_t *backward_end; /* last task of each backward in whole or for weights, in the schedule's order */
  int64_t n_forward, n_backward;
  int32_t in_flight; /* how many forwards may run ahead of their backwards (Proteus's max ongoing) */
} pl_unrolling;

/* The device classes that are unrolled together: those that have joint segments (core/graph/graph.h), or one alone.
 * They run one stage's program, so the pieces are the same for all. */
typedef struct pl_compile_crew {
  pl_unrolling *members;
  uint32_t n;
  uint32_t *streams; /* compute streams, in the order of the members */
  pl_crew_passes passes;
} pl_compile_crew;

typedef struct pl_compilation {
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
  uint32_t *tails; /* per lane: pl_compiled */
} pl_compilation;

/* What the next work task waits for. */
void pl_unrolling_wait_for(pl_unrolling *own, uint32_t task);
/* What a communication that starts here comes after: the last work and what the next work would wait for. */
void pl_unrolling_order_after(pl_compilation *state, const pl_unrolling *own, uint32_t task);
/* Arrives at an op of the communicator in a slot (workloads/compile/meeting.h). */
pl_meeting pl_unrolling_arrive(pl_compilation *state, pl_unrolling *own, int slot, uint32_t op, pl_category category,
                               uint32_t name, int32_t microbatch);
void pl_emit_piece(pl_compilation *state, pl_unrolling *own, const pl_piece *piece, int32_t microbatch);
/* All pieces of a pass, of all members in turn. */
void pl_emit_pass(pl_compilation *state, pl_compile_crew *own, pl_crew_pass *pass, int32_t microbatch);

/* Whether experts exchange tokens in it. */
bool pl_pieces_exchange_tokens(const pl_pieces *pieces);

/* A pass that runs beside another. */
typedef struct pl_emit_side {
  pl_crew_pass *pass;
  int32_t microbatch;
  uint64_t times; /* that what it makes counts (pl_lane_times) */
  uint32_t at;    /* piece */
} pl_emit_side;

/* Changes over to the pass beside, for every member. */
void pl_crew_change_over(pl_compile_crew *own);
/* The pieces of both, the members' `now` being sides[0]'s before and behind it: each goes on until experts exchange its
 * tokens (of those that something of the pass itself runs beside, until it waits for them), and the other computes
 * meanwhile. Work stays in the order of its stream, so a pass that has not what it waits for holds up both. The second
 * goes first if it exchanges tokens, as in Megatron Core's combined 1F1B and in DualPipe: what of a backward pass comes
 * before its first exchange is little. */
void pl_emit_sides(pl_compilation *state, pl_compile_crew *own, pl_emit_side sides[2]);

#endif
