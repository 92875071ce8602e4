/* Which keys a query sees, and by how much its scores fall with the distance: of `attention`, and of `mask`, where
 * attention is written down in steps (workloads/derive/unfuse.h).
 *
 *   y[s, t] = a[s, t] - slope |s - t|   where s sees t; else `otherwise`, after whose exponential nothing is left
 */
#ifndef PL_WORKLOADS_IR_MASK_H
#define PL_WORKLOADS_IR_MASK_H

#include "workloads/language/ir_table.h"

#define PL_IR_MASK_OTHERWISE (-1e9)

typedef struct pl_ir_mask {
  int64_t window; /* keys fewer positions away than this; 0: all */
  bool causal;    /* keys of positions up to the query's own */
} pl_ir_mask;

static inline pl_ir_mask pl_ir_mask_of(const pl_ir_op *op) {
  return (pl_ir_mask){.window = pl_ir_integer_of(op, "window", 0), .causal = pl_ir_integer_of(op, "causal", 0) != 0};
}
static inline bool pl_ir_mask_sees(const pl_ir_mask *mask, int64_t query, int64_t key) {
  int64_t away = query - key;
  if (mask->causal && away < 0) return false;
  return mask->window == 0 || (away < mask->window && -away < mask->window);
}
/* Of head i of n (Press et al. 2022, section 3): powers of 2^(-8/n) where n is a power of two; else those of the next
 * smaller one, and behind them every second of the next larger one. */
double pl_ir_alibi_slope(int64_t head, int64_t n_heads);

pl_code pl_ir_compute_mask(const pl_ir_computing *computing, pl_error *error);

#endif
