/* Better tables of placements (search/method/placement.h) than those that were enumerated, by local search: from
 * several tables downhill to where none of the moves gains, the first that does each time.
 *
 * Moves: two stages exchange what they hold; a stage moves to another place, the ones between close up; a cell of one
 * stage and one of another exchange pools, or a cell goes where there is room. By cells alone a pool does not get from
 * one end of the pipeline to the other, since on the way stages lie in two nodes: on AMP's heterogeneous cluster the
 * best that they reach takes a fifth longer.
 *
 * Starts: the best table given, and pools in a random order, each filled by as many stages in a row as it holds.
 */
#ifndef PL_SEARCH_PLACEMENT_DESCENT_H
#define PL_SEARCH_PLACEMENT_DESCENT_H

#include "search/method/placement.h"

enum { PL_TABLES_KEPT = 4 };

typedef struct pl_ranked_table {
  pl_placement_table table;
  double estimate_s;
} pl_ranked_table;

/* Best first, each once. */
typedef struct pl_best_tables {
  pl_ranked_table best[PL_TABLES_KEPT];
  uint32_t n;
  size_t cells; /* of a table */
} pl_best_tables;

/* The table is kept if it is one of the best; INFINITY and NAN never are. */
void pl_best_tables_rank(pl_best_tables *best, pl_placement_table table, double estimate_s);

typedef struct pl_table_descent {
  const pl_pools *pools;
  uint32_t n_stages, n_replicas, cell_devices;
  pl_arena *arena; /* of the tables that are kept */
  uint64_t left;   /* scores that may still be asked for */
  /* Of the iteration, in seconds; scratch of its own. */
  pl_code (*score)(void *context, const pl_placement_table *table, double *estimate_s, pl_error *error);
  void *context;
} pl_table_descent;

/* Ranks what is found on the way. */
pl_code pl_table_descend(pl_table_descent *descent, pl_best_tables *best, pl_error *error);

#endif
