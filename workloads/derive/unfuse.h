/* Attention in steps, as frameworks without a fused kernel have it:
 *
 *   attention(q, k, v, positions, positions)   becomes   scores = product(q, k), scale, mask, softmax, dropout,
 *                                                        product with v
 *
 * It is the same function: probabilities are dropped at the same pairs. Derivatives, layouts and kernels are those of
 * the ops. What the fused op alone can say stays: a log-sum-exp that somebody reads (sinks), `blocks`.
 */
#ifndef PL_WORKLOADS_UNFUSE_H
#define PL_WORKLOADS_UNFUSE_H

#include "workloads/language/ir_module.h"

/* Rewrites functions of a model program. O(ops). */
pl_code pl_ir_unfuse(pl_ir_module *model, pl_error *error);

#endif
