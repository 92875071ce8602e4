/* Which ops keep memory for which, from what a trace says of the allocator (pl_trace_block).
 *
 * A block belongs to the first op that its thread starts, or launches, after it was taken: frameworks make the room for
 * a result in front of the op that fills it. Read last is it by the last op that the thread of its return had started
 * or launched by then. Blocks that are taken before the step, or outlive it, are no activations: weights, gradients,
 * what comes next. Counted are the blocks that are there at the moment when most is: what is gone by then, or comes
 * later, takes no room beside them. Of ranks that are alike the one that holds most counts, op by op.
 */
#ifndef PL_SEARCH_TRACE_MEMORY_H
#define PL_SEARCH_TRACE_MEMORY_H

#include "search/optimize/step_model.h"

typedef struct pl_unit_memory {
  double bytes;    /* that the unit keeps for later ones; 0: none */
  uint32_t reader; /* unit that reads the last of it; PL_NONE */
} pl_unit_memory;

/* Per unit of the model, in `arena`; all 0 without blocks. False: no memory. O((ops + blocks) log ops). */
bool pl_unit_memory_take(const pl_step_model *model, pl_arena *arena, pl_unit_memory **memory);

#endif
