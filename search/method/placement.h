/* Placements of a strategy on a heterogeneous cluster, up to symmetry.
 *
 * A *pool* is the devices of one type in one node; they count as interchangeable. A *cell* is what one replica needs on
 * one stage: cp * tmp devices, all of one pool, so that tensor and context groups stay inside fast links. A *table*
 * says how many cells of each stage each pool holds: rows add up to dp, a column to at most the pool's devices over the
 * cell's. Pools of one type and size whose routes to every other pool have the same capacities and latencies are alike,
 * and tables that differ by exchanging alike pools are one.
 *
 * Which replica gets which cell is not free: on every stage the replicas take the stage's cells in one order of the
 * pools, fast ones first, so that slow cells of all stages meet in the last replicas. Those can then be given fewer
 * microbatches (the strategy's split), and neighbouring stages of a replica are in one node where the table allows it.
 *
 * Left out, and so not covered by "exact": cells across nodes or types, other pairings of the stages' cells, and which
 * of a pool's devices make a cell (neighbours in the platform's order do).
 */
#ifndef PL_SEARCH_PLACEMENT_H
#define PL_SEARCH_PLACEMENT_H

#include "core/cluster/cluster.h"
#include "workloads/strategy/strategy.h"

typedef struct pl_pool {
  uint32_t first, n; /* into pl_pools.devices */
  uint32_t profile;
  uint32_t kind; /* alike pools have one; they are consecutive */
} pl_pool;

typedef struct pl_pools {
  const pl_pool *pools; /* by slowness, then kind, then their first device */
  uint32_t n_pools, n_profiles_used;
  const uint32_t *devices;
} pl_pools;

/* `slowness`: per profile of the cluster, what sorts the pools. Routes between all pairs of pools are compared when
 * there are at most 64 pools; beyond that none are alike. In `arena`. */
pl_code pl_pools_take(const pl_cluster *cluster, const double *slowness, pl_arena *arena, pl_pools *pools,
                      pl_error *error);

/* [stage][pool], in cells. */
typedef struct pl_placement_table {
  const uint16_t *cells;
} pl_placement_table;

typedef struct pl_placement_tables {
  const pl_placement_table *tables;
  uint32_t n;
  bool complete; /* all of them; false: the first `limit` of their order, which is that of enumeration */
} pl_placement_tables;

/* All tables for `n_stages` and `n_replicas` of cells of `cell_devices`, at most `limit`; none when there is no room.
 * Cost: O(tables * stages * pools) and what backtracking adds (dead ends are cut by the room that is left; 2^24 steps
 * back at most, beyond which the tables are not complete). Memory as for a table, none on the stack. */
pl_code pl_placement_tables_take(const pl_pools *pools, uint32_t n_stages, uint32_t n_replicas, uint32_t cell_devices,
                                 uint32_t limit, pl_arena *arena, pl_placement_tables *tables, pl_error *error);

/* The placement of a table for the strategy's degrees and order. */
pl_code pl_placement_take(const pl_pools *pools, const pl_placement_table *table, const pl_strategy *strategy,
                          pl_arena *arena, const uint32_t **placement, pl_error *error);

#endif
