/* Residuals of several groups, of which each counts the same however many it has: how wide a share of them lies. */
#ifndef PL_VALIDATION_RESIDUAL_POOL_H
#define PL_VALIDATION_RESIDUAL_POOL_H

#include "core/base/arena.h"
#include "core/base/status.h"

typedef struct pl_pooled {
  double off, weight;
} pl_pooled;

/* Room doubles in the arena. */
typedef struct pl_residual_pool {
  pl_arena *arena;
  pl_pooled *all;
  uint32_t n, capacity, group; /* where the open group begins */
  uint32_t n_groups;           /* closed ones that were not empty */
} pl_residual_pool;

pl_residual_pool pl_residual_pool_in(pl_arena *arena);
/* |ln(measured / predicted)|, into the open group. Nothing for what is not positive. No memory: the arena's failed
 * flag.
 */
void pl_residual_pool_add(pl_residual_pool *pool, double measured, double predicted);
/* A value as it is. */
void pl_residual_pool_put(pl_residual_pool *pool, double off);
/* Ends a group, which weighs 1, and opens the next. */
void pl_residual_pool_close_group(pl_residual_pool *pool);
/* The smallest value that the share `q` of all weight does not exceed; NaN without any. Sorts. Groups are closed. */
double pl_residual_pool_quantile(pl_residual_pool *pool, double q);

#endif
