/* Reads results files, one process, without MPI: `show`, and the summary at the end of a sweep. */
#ifndef PL_SEARCH_RESULTS_READER_H
#define PL_SEARCH_RESULTS_READER_H

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/graph/result.h"
#include "core/text/json_writer.h"

typedef struct pl_results_reader pl_results_reader;

/* PL_BAD_INPUT: absent, not HDF5, damaged or truncated, not ours. A file with pending rows is fine. The caller destroys
 * it. */
pl_code pl_results_reader_create(const char *path, pl_results_reader **reader, pl_error *error);
void pl_results_reader_destroy(pl_results_reader *reader);
uint32_t pl_results_reader_n_rows(const pl_results_reader *reader);
/* Whether the file has the features of one number per candidate (core/graph/features.h). */
bool pl_results_reader_has_features(const pl_results_reader *reader);
/* Whether the file has the columns of searches. */
bool pl_results_reader_has_search(const pl_results_reader *reader);
/* What the file may have columns of: pl_result_columns, and behind them those of programs, if it has these. */
pl_column_list pl_results_reader_columns(const pl_results_reader *reader);
/* Whether it is a file of programs. */
bool pl_results_reader_has_program(const pl_results_reader *reader);
/* A whole column, n_rows elements of column->size bytes, from `arena`. */
pl_code pl_results_reader_column(pl_results_reader *reader, const pl_column_info *column, pl_arena *arena,
                                 void **values, pl_error *error);
/* One element (column->size bytes) into `value`. Costs a read: for wide columns of few rows. */
pl_code pl_results_reader_element(pl_results_reader *reader, const pl_column_info *column, uint32_t row, void *value,
                                  pl_error *error);
/* All columns of one row but features and those of searches. */
pl_code pl_results_reader_row(pl_results_reader *reader, uint32_t row, pl_result_row *result, pl_error *error);
/* An attribute of the root group, a text or a number, as text in `arena`; NULL: there is none, or no memory. */
const char *pl_results_reader_attribute(pl_results_reader *reader, const char *name, pl_arena *arena);
/* "bf16 with fp8 products (86.8 % of their work; ...)": what all rows compute in; NULL likewise. */
const char *pl_results_reader_types(pl_results_reader *reader, pl_arena *arena);
/* The recorded command line (search/run/run_options.h), in `arena`; NULL: there is none, or no memory. */
const char *pl_results_reader_command(pl_results_reader *reader, pl_arena *arena);
/* Every attribute of the root group that is a text or a number, as keys of the object that is open. */
pl_code pl_results_reader_attributes_json(pl_results_reader *reader, pl_json *json, pl_error *error);
/* Stages of the features in the file; 0: it has none. */
uint32_t pl_results_reader_n_stages(const pl_results_reader *reader);
/* One of pl_stage_feature_columns of one row: a number per stage of the file, NaN beyond the candidate's. */
pl_code pl_results_reader_stages(pl_results_reader *reader, const pl_column_info *column, uint32_t row, double *values,
                                 pl_error *error);
/* Reads every attribute of the root group, and keeps none: whether they can be read. */
pl_code pl_results_reader_check_attributes(pl_results_reader *reader, pl_error *error);
/* Rows first .. first + count - 1 with all columns but features; those of searches into `values`, to which the rows
 * then point, where it is not NULL. */
pl_code pl_results_reader_rows(pl_results_reader *reader, uint32_t first, uint32_t count, pl_result_row *rows,
                               pl_search_values *values, pl_error *error);

/* Counts by status, and the best candidate: the lowest iteration time among those that fit, lowest index among equals.
 */
typedef struct pl_results_summary {
  uint32_t n_rows, n_by_status[4];
  uint32_t best; /* UINT32_MAX: none fits */
} pl_results_summary;

pl_code pl_results_reader_summarise(pl_results_reader *reader, pl_arena *arena, pl_results_summary *summary,
                                    pl_error *error);

#endif
