/* The passes of a crew (workloads/compile/compile.h), compiled into pieces once and emitted for every microbatch. */
#ifndef PL_WORKLOADS_CREW_PASSES_H
#define PL_WORKLOADS_CREW_PASSES_H

#include "workloads/compile/pieces.h"

/* A pass as it is emitted, and how often. */
typedef struct pl_crew_pass {
  pl_pieces pieces;
  uint64_t times;
} pl_crew_pass;

typedef struct pl_crew_passes {
  int32_t n_chunks; /* of the stage */
  /* Per chunk; the last of them with the gradient reductions. */
  pl_crew_pass *forward, *backward, *last_backward;
  pl_crew_pass *inputs, *weights, *last_weights; /* NULL: the schedule has no backward passes in halves */
  pl_pieces epilogue;
} pl_crew_passes;

/* Memory from the context's arena; false: no memory. */
bool pl_crew_passes_take(pl_piece_context *context, const pl_stage_program *stage, pl_crew_passes *passes);
pl_crew_pass *pl_crew_pass_of(const pl_crew_passes *passes, const pl_schedule_step *step);
/* Adds what collectives inside the segments carry, as often as the passes were emitted. */
void pl_crew_passes_add_carried(const pl_crew_passes *passes, double *transfer_bytes);

#endif
