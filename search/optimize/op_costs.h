/* Costs that a trace cannot say: a CSV file of what ops take when they are fused, in half precision, and what they
 * keep.
 *
 *   ops,time_s,half_time_s,activation_bytes,read_by
 *   backward3+backward2,0.0013,,,          fused ops, by their names in order
 *   gemm,,0.0004,,                         an op in half precision
 *   forward3,,,67108864,backward3          bytes that an op keeps, and the op that reads them last
 *   (launch),0.000005,,,                   what each op saves that is fused with the one before it
 *   (message),0.00002,,,                   latency of a message or collective
 */
#ifndef PL_SEARCH_OP_COSTS_H
#define PL_SEARCH_OP_COSTS_H

#include "core/base/arena.h"
#include "core/base/hash_index.h"
#include "core/base/status.h"

typedef struct pl_op_cost_row {
  const char *ops, *read_by;
  double time_s, half_time_s, activation_bytes; /* negative: not given */
} pl_op_cost_row;

typedef struct pl_op_costs {
  pl_op_cost_row *rows;
  uint32_t n;
  double launch_s, message_s; /* negative: not given */
  pl_hash_index index;
} pl_op_costs;

/* Everything in `arena`. PL_BAD_INPUT with file:line. */
pl_code pl_op_costs_load(const char *path, pl_arena *arena, pl_op_costs *costs, pl_error *error);
/* The same from memory; `name` stands for the path. */
pl_code pl_op_costs_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_op_costs *costs,
                          pl_error *error);
/* NULL: nothing is said of it. */
const pl_op_cost_row *pl_op_costs_find(const pl_op_costs *costs, const char *ops);

#endif
