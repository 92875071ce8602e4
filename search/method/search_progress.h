/* What a search says on stderr while it runs: done, best so far, distance to the bound, time left. */
#ifndef PL_SEARCH_SEARCH_PROGRESS_H
#define PL_SEARCH_SEARCH_PROGRESS_H

#include "search/method/search.h"
#include "search/parallel/progress_line.h"

typedef struct pl_search_progress {
  pl_progress_line line;
  int64_t best;    /* `found` of the best that was reported */
  uint32_t budget; /* simulations; 0 = none */
} pl_search_progress;

/* Rank 0, between rounds, when it is time (search/parallel/progress_line.h). `best` NULL: none fits yet. */
void pl_search_progress_report(pl_search_progress *progress, const pl_search_outcome *outcome,
                               const pl_result_row *best, double elapsed_s);
/* Relative distance of the best to the bound below everything that is not simulated: 0 when nothing can be faster, NaN
 * when not known. */
double pl_search_gap(const pl_search_outcome *outcome, const pl_result_row *best);

#endif
