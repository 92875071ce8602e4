/* One value of a results column as text and as JSON, the same in every command that prints results. */
#ifndef PL_SEARCH_COLUMN_TEXT_H
#define PL_SEARCH_COLUMN_TEXT_H

#include "core/graph/result.h"
#include "core/text/json_writer.h"

/* Exact text (doubles read back as the same double, NaN is empty, digests are 16 hex digits, status by name). Returns
 * the length needed. */
int pl_column_text(const pl_column_info *column, const void *value, char *text, size_t size);
void pl_column_json(pl_json *json, const pl_column_info *column, const void *value);
/* Every column of a row, as members of the object that is open; those of searches where row->search is set. */
void pl_row_json(pl_json *json, const pl_result_row *row);

/* "1.2 s, 3,400 tokens/s, MFU 40.1 %, peak 30.1 GiB", what summaries say of a row; of programs whose memory is not
 * known, that. Returns `text`. */
enum { PL_ROW_FIGURES_BYTES = 192 };
const char *pl_row_figures(const pl_result_row *row, char text[PL_ROW_FIGURES_BYTES]);

#endif
