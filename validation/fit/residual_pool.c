/* See validation/fit/residual_pool.h. */
#include "validation/fit/residual_pool.h"

#include <math.h>
#include <stdlib.h>

pl_residual_pool pl_residual_pool_in(pl_arena *arena) {
  return (pl_residual_pool){.arena = arena};
}

void pl_residual_pool_put(pl_residual_pool *pool, double off) {
  pl_pooled *all = pl_arena_grown(pool->arena, pool->all, pool->n, 1, sizeof *all, &pool->capacity);
  if (all == NULL) return;
  pool->all = all;
  pool->all[pool->n++] = (pl_pooled){.off = off, .weight = 1};
}

void pl_residual_pool_add(pl_residual_pool *pool, double measured, double predicted) {
  if (measured > 0 && predicted > 0) pl_residual_pool_put(pool, fabs(log(measured / predicted)));
}

void pl_residual_pool_close_group(pl_residual_pool *pool) {
  for (uint32_t i = pool->group; i < pool->n; i++)
    pool->all[i].weight = 1.0 / (pool->n - pool->group);
  pool->n_groups += pool->n > pool->group;
  pool->group = pool->n;
}

static int compare(const void *left, const void *right) {
  const pl_pooled *a = left, *b = right;
  return (a->off > b->off) - (a->off < b->off);
}

double pl_residual_pool_quantile(pl_residual_pool *pool, double q) {
  double total = 0, sum = 0;
  if (pool->n == 0) return NAN;
  qsort(pool->all, pool->n, sizeof *pool->all, compare);
  for (uint32_t i = 0; i < pool->n; i++)
    total += pool->all[i].weight;
  for (uint32_t i = 0; i < pool->n; i++) {
    sum += pool->all[i].weight;
    if (sum >= q * total * (1 - 1e-12)) return pool->all[i].off;
  }
  return pool->all[pool->n - 1].off;
}
