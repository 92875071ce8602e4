/* What a site's figures leave (workloads/run/site_remains.h), of the rows of a sweep or search at it: by how much it
 * moved them. Nothing is printed where nothing moved. */
#ifndef PL_SEARCH_REMAINING_ROWS_H
#define PL_SEARCH_REMAINING_ROWS_H

#include <stdio.h>

#include "core/text/json_writer.h"
#include "search/run/evaluate.h"
#include "workloads/run/site_remains.h"

/* Of a row of `evaluation`, by its degrees. */
pl_remaining pl_remaining_of_row(const pl_evaluation *evaluation, const pl_result_row *row);
/* Of rows that are not told one by one: that their times are moved. */
void pl_remaining_rows_note(FILE *stream);
/* A line of the first, the best, and the range of all n > 0. */
void pl_remaining_rows_print(FILE *stream, const pl_evaluation *evaluation, const pl_result_row *rows, uint32_t n);
/* "remains" of one row, into the object that is open. */
void pl_remaining_rows_json(pl_json *json, const pl_evaluation *evaluation, const pl_result_row *row);

#endif
