/* Placements worth a simulation on unlike devices, by the pipeline objective (search/method/placement_score.h: layers
 * by assign=optimal, microbatches dealt out to unlike replicas), best first:
 *
 *   1. Every candidate of the space is scored as the orders place it.
 *   2. For every shape (pp, dp, cp, tmp) the tables of placements (search/method/placement.h) are scored with the
 * shape's best candidate: all of them up to MOST_TABLES, else those and what local search finds
 * (search/method/placement_descent.h). The PL_TABLES_KEPT best ones are scored with the shape's other candidates, of
 * those that differ in their order alone with the first: a table is the same devices whatever the order.
 *
 * A score costs about the square of the devices (0.3 ms for 16 of them), so that all of them together are limited to
 * SCORE_WORK devices squared: half for step 1 (every so-manieth candidate where they are too many), the rest for the
 * shapes, best first.
 *
 * On a cluster of one type whose nodes are alike step 2 is left out: there the orders say all that tables do.
 *
 * Rejected: simulating all tables (AMP's heterogeneous cluster has 1,770 of pp=4, dp=4, tmp=1 alone, each with as
 * many candidates as the shape has).
 */
#ifndef PL_SEARCH_PLACEMENT_RANKING_H
#define PL_SEARCH_PLACEMENT_RANKING_H

#include "search/method/method.h"

/* A strategy to be simulated; layers by recipe. */
typedef struct pl_placement_entry {
  pl_strategy strategy;
  double estimate_s;
  uint32_t index; /* in the order of making: breaks ties */
} pl_placement_entry;

typedef struct pl_placement_ranking {
  const pl_placement_entry *entries; /* best first */
  uint32_t n;
  uint64_t n_tables; /* that were scored */
} pl_placement_ranking;

/* Everything of a strategy but its layers, its split and where its ranks lie. */
uint64_t pl_placement_key(const pl_strategy *strategy);
/* In `arena`. PL_BAD_INPUT if the space is empty. */
pl_code pl_placement_ranking_take(const pl_search_problem *problem, pl_arena *arena, pl_placement_ranking *ranking,
                                  pl_error *error);

#endif
