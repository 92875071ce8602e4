/* Rows of a file of results as strategies, and the command that made them: for who simulates one again or writes what
 * starts it. */
#ifndef PL_SEARCH_RECORDED_ROWS_H
#define PL_SEARCH_RECORDED_ROWS_H

#include "core/base/arena.h"
#include "core/base/status.h"

/* Length of the path in "sweep.h5:17", and the row; -1: none is named. */
size_t pl_recorded_row_split(const char *text, int64_t *row);
/* PL_BAD_INPUT: behind the colon of "sweep.h5:x" stands no row. */
pl_code pl_recorded_row_check(const char *text, pl_error *error);
/* Whether a path of this length ends in .h5 or .hdf5. */
bool pl_recorded_is_results(const char *path, size_t length);

/* "ROW SECONDS STRATEGY", a line each: row `row` (as text; NULL: those that were simulated and fit, best first, at most
 * 1,000 of them). A row of a tree has its choices for a strategy, "layout=dp8,microbatches=4", behind a '?'. */
typedef struct pl_recorded_rows {
  char *command; /* that made the file, quoted as a shell reads it; "" = not recorded */
  char *lines;
} pl_recorded_rows;
pl_code pl_recorded_rows_take(const char *path, const char *row, pl_arena *arena, pl_recorded_rows *rows,
                              pl_error *error);

#endif
