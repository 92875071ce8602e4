/* What the ops of a model's blocks take on one device: pl_op_cost of each, once. A price depends on the op and the
 * device profile alone, so it holds for every stage, microbatch and strategy that runs these blocks. */
#ifndef PL_WORKLOADS_BLOCK_PRICES_H
#define PL_WORKLOADS_BLOCK_PRICES_H

#include "workloads/cost/op_cost.h"

typedef struct pl_block_prices {
  /* By class of blocks, pass and op of the pass; of collectives nothing. */
  const pl_op_time *times[PL_MODEL_CLASSES_MAX][PL_PASS_COUNT];
  const pl_ticks *ticks[PL_MODEL_CLASSES_MAX][PL_PASS_COUNT]; /* the same on the engine's grid */
} pl_block_prices;

/* `blocks` by class. Memory from `arena`. O(ops). */
pl_code pl_block_prices_take(const pl_model *model, const pl_block_program *blocks, const pl_device_profile *profile,
                             pl_arena *arena, const pl_block_prices **prices, pl_error *error);

#endif
