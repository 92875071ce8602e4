/* The results file of a search: that of sweeps (search/results/results_file.h) with the columns of searches, of which
 * nobody knows beforehand how long it gets. One process, rank 0's.
 *
 * It is made with room for some rows; rows beyond those that are found are pending. When it is full, a file of twice
 * the room is made beside it, filled with what is there and renamed over it; at the end it is made once more, with
 * exactly the rows that were found. So there is a whole file under the final name at any time, with every acknowledged
 * row, and its structure never moves while it is open.
 *
 * Rejected: extensible (chunked) datasets. To extend one moves metadata of an open file, which a kill may tear
 * (chunked files lost rows, FINDINGS of results_file.h); and reading needs no rows of fill values either way.
 */
#ifndef PL_SEARCH_SEARCH_FILE_H
#define PL_SEARCH_SEARCH_FILE_H

#include "core/base/arena.h"
#include "search/results/results_file.h"

typedef struct pl_search_file pl_search_file;

/* Nothing is written before the first rows. With `resume` and a file at `path`, its acknowledged rows up to the first
 * pending one are read into `arena`, with row->search; PL_BAD_INPUT if it is of another search. Without a file, or
 * without `resume`, PL_BAD_INPUT if none can be created. */
pl_code pl_search_file_create(const char *path, const pl_provenance *provenance, bool replace, bool resume,
                              pl_arena *arena, pl_search_file **file, pl_result_row **known, uint32_t *n_known,
                              pl_error *error);
/* Rows with row->search; acknowledged when this returns. */
pl_code pl_search_file_append(pl_search_file *file, uint32_t count, const pl_result_row *rows, pl_error *error);
/* Cuts the file to the rows that are there; without rows there is no file. */
pl_code pl_search_file_finish(pl_search_file *file, pl_error *error);
/* NULL is allowed; what was appended stays. */
void pl_search_file_destroy(pl_search_file *file);

#endif
