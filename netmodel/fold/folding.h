/* A fold problem solved: what is implied dropped, classes found, the quotient of these. */
#ifndef PL_NETMODEL_FOLDING_H
#define PL_NETMODEL_FOLDING_H

#include "netmodel/fold/fold.h"
#include "netmodel/fold/quotient.h"

typedef struct pl_folding {
  pl_fold fold;         /* links: only those that count, and of these only `first` and the sizes */
  pl_quotient quotient; /* before pl_quotient_rivals; serials are 0 */
  uint32_t n_implied_links;
} pl_folding;

/* pl_quotient_drop_implied_links, pl_fold_refine and pl_quotient_take in a row, each on the links that transfers still
 * cross: of a large cluster often less than half, and then less than half of those. `transfers` and `uses` are the
 * problem's arrays, which are rewritten; `link_capacity_Bps` per link of the problem. Results from `arena`. */
pl_code pl_folding_take(const pl_fold_problem *problem, pl_fold_transfer *transfers, pl_link_use *uses,
                        const double *link_capacity_Bps, pl_arena *arena, pl_folding *folding, pl_error *error);

#endif
