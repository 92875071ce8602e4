/* Ranked placements (search/method/placement_ranking.h), and whenever a simulation is the best so far its neighbours
 * (search/method/placement_neighbours.h) next, until none of them is better. What two methods share: `placement`, and
 * `bound` on unlike devices or nodes.
 *
 * Rejected: annealing, which needs a temperature for what a descent with good starts reaches.
 */
#ifndef PL_SEARCH_PLACEMENT_SEARCH_H
#define PL_SEARCH_PLACEMENT_SEARCH_H

#include "core/base/hash_index.h"
#include "search/method/placement_neighbours.h"
#include "search/method/placement_ranking.h"

typedef struct pl_placement_search {
  const pl_search_problem *problem;
  pl_arena *arena;
  pl_placement_ranking ranking;
  uint32_t next; /* of the ranking */
  pl_hash_index proposed;
  pl_strategy best; /* of the simulated that fit */
  double best_s;
  bool improved;            /* since its neighbours were proposed */
  bool proposes_neighbours; /* the last proposals were */
  bool descends;            /* its neighbours are not all proposed */
  pl_placement_neighbours neighbours;
} pl_placement_search;

/* Whether it matters which devices form what: they are of unlike types, or in nodes of unlike size or wiring (the
 * narrowest link between two devices of a node, and from one node to the next). Two routes per node. */
bool pl_placement_matters(const pl_cluster *cluster);

/* Ranks the placements; what is kept is in `arena`. */
pl_code pl_placement_search_init(pl_placement_search *search, const pl_search_problem *problem, pl_arena *arena,
                                 pl_error *error);
/* At most `max` proposals that were not made before: neighbours of the best, or, when all of those are proposed, up to
 * `batch` of the ranking. *n = 0: nothing is left. */
pl_code pl_placement_search_propose(pl_placement_search *search, uint32_t max, uint32_t batch, pl_proposal *proposals,
                                    uint32_t *n, pl_error *error);
/* Whether a strategy of another source was not proposed before; from now on it was. Equal hashes count as equal
 * strategies. Out of memory is seen by the arena's flag. */
bool pl_placement_search_note(pl_placement_search *search, const pl_strategy *strategy);
/* As pl_method.learn. */
void pl_placement_search_learn(pl_placement_search *search, const pl_proposal *proposal, const pl_result_row *row);

#endif
