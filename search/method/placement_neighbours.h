/* The neighbours of a strategy that is placed: a boundary moved by a layer, a microbatch given from one replica to
 * another, two cells of unlike pools exchanged, with the layers as they are and with those that are best then. One
 * after another and all of them: a strategy of many cells has more than anybody wants to keep.
 */
#ifndef PL_SEARCH_PLACEMENT_NEIGHBOURS_H
#define PL_SEARCH_PLACEMENT_NEIGHBOURS_H

#include "search/method/method.h"

typedef struct pl_placement_neighbours {
  const pl_search_problem *problem;
  pl_strategy from;      /* layers given */
  int kind;              /* of move */
  int64_t first, second; /* places of the next move of its kind */
  bool again;            /* the last exchange is to come once more, with the layers that are best then */
  const uint32_t *exchanged;
} pl_placement_neighbours;

/* `from` is assigned if it is not. Scratch from `arena`, which lives as long as the neighbours. */
pl_code pl_placement_neighbours_init(pl_placement_neighbours *neighbours, const pl_search_problem *problem,
                                     const pl_strategy *from, pl_arena *arena, pl_error *error);
/* False: there is none left, or no memory (the arena's flag). What is new in `moved` is in `arena`. O(1) but for cells
 * that are passed over, O(ranks) for an exchange. */
bool pl_placement_neighbours_next(pl_placement_neighbours *neighbours, pl_arena *arena, pl_strategy *moved);

#endif
