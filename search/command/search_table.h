/* Searches side by side: several methods on one problem (--compare), one on variations of the platform (--vary), or
 * both: what the tables of papers show, and what a change of the hardware pays when the strategy may follow it. Each
 * cell is the search that its method makes alone (search/method/search.h).
 */
#ifndef PL_SEARCH_SEARCH_TABLE_H
#define PL_SEARCH_SEARCH_TABLE_H

#include <stdio.h>

#include "netmodel/platform/platform_vary.h"
#include "search/method/search.h"
#include "search/run/space_session.h"

enum { PL_SEARCH_TABLE_METHODS = 16, PL_SEARCH_MEAN_OF = 10 };

typedef struct pl_search_cell {
  const pl_method *method;
  uint32_t point; /* of the grid; PL_NONE: the platform as it is */
  uint64_t platform_digest;
  pl_search_end end;
  uint64_t enumerated;
  uint32_t n_rows, n_fit;
  pl_result_row best; /* with best.search = &values; only if n_fit > 0 */
  pl_search_values values;
  double mean_s; /* of the n_mean best, at most PL_SEARCH_MEAN_OF; NaN: none fits */
  uint32_t n_mean;
} pl_search_cell;

typedef struct pl_search_table {
  const pl_method *methods[PL_SEARCH_TABLE_METHODS];
  uint32_t n_methods;
  pl_vary_grid grid; /* n_points 0: no variations */
  pl_search_cell *cells;
  uint32_t n_cells; /* methods of the platform as it is, then those of each point */
} pl_search_table;

/* "amp,megatron": PL_BAD_INPUT names an unknown method and those there are; twice the same; too many. */
pl_code pl_search_table_read_methods(pl_search_table *table, const char *names, pl_error *error);

/* Runs all cells with the budget, gap and threads of `search`, whose problem, method and top are replaced and whose
 * known rows and log must be none. Cells in the session's arena; what the searches took is given back. Collective.
 * A failure names the variation and method. */
pl_code pl_search_table_run(pl_search_table *table, const pl_search *search, pl_space_session *session,
                            pl_job_options *job, MPI_Comm comm, pl_error *error);

void pl_search_table_print(FILE *stream, const pl_search_table *table, bool json);

#endif
