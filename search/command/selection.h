/* Rows of a results file: filtered, sorted, cut to the first N; and their values. */
#ifndef PL_SEARCH_SELECTION_H
#define PL_SEARCH_SELECTION_H

#include "core/base/arena.h"
#include "search/command/where.h"
#include "search/results/results_reader.h"

typedef struct pl_selection {
  pl_results_reader *reader;
  pl_arena *arena;
  pl_column_list columns;       /* the reader's */
  void *values[PL_RESULT_MOST]; /* in memory, NULL = not loaded; index as in columns */
  const uint32_t *rows;         /* the rows selected, in order */
  uint32_t n_rows;              /* selected */
  uint32_t n_matching;          /* before the cut to `top` */
  uint32_t n_pending;           /* in the file */
} pl_selection;

/* Pending rows are left out unless the condition mentions status. Sorted by column `sort` (candidate among
 * them), NaN and empty last, index among equals. top = 0: all. */
pl_code pl_selection_take(pl_results_reader *reader, const pl_where *where, uint32_t sort, bool descending,
                          uint32_t top, pl_arena *arena, pl_selection *selection, pl_error *error);
/* Value of `column` in file row `row`; reads it if it is not in memory. `value` has room for PL_RESULT_WIDEST_BYTES. */
pl_code pl_selection_value(pl_selection *selection, uint32_t column, uint32_t row, void *value, pl_error *error);

#endif
