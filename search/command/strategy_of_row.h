/* The strategy of a row of results, as text that --strategy, or a strategy space, reads. */
#ifndef PL_SEARCH_COMMAND_STRATEGY_OF_ROW_H
#define PL_SEARCH_COMMAND_STRATEGY_OF_ROW_H

#include "core/base/arena.h"
#include "search/results/results_reader.h"

/* In `arena`; NULL: no memory. A row of a search has its own text; of a tree it is what was taken of its space. */
const char *pl_strategy_of_row(pl_results_reader *reader, const pl_result_row *row, pl_arena *arena);

#endif
