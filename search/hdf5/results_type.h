/* What writer and reader of results files share. HDF5 types: include it in this room only. */
#ifndef PL_SEARCH_RESULTS_TYPE_H
#define PL_SEARCH_RESULTS_TYPE_H

#include <hdf5.h>

#include "core/base/status.h"
#include "core/graph/result.h"
#include "search/results/program_columns.h"

#define PL_RESULTS_SCHEMA_NAME "paceline_schema"

/* HDF5 type of a column, in the file and in memory; the caller closes it. Text is NUL-padded UTF-8 of fixed size. */
hid_t pl_results_type(const pl_column_info *column);
/* Opens a results file of this schema for reading, without MPI. PL_BAD_INPUT: absent, not HDF5, damaged, not ours. */
pl_code pl_results_open_serial(const char *path, hid_t *file, pl_error *error);
/* Rows of the file, and whether column `column` is there in the right type and length: PL_BAD_INPUT if not. */
pl_code pl_results_count(const char *path, hid_t file, uint32_t *n_rows, pl_error *error);
/* Stages of the features in the file; 0: it has none. */
uint32_t pl_results_n_stages(hid_t file);
/* Whether the file has the columns of searches. */
bool pl_results_has_search(hid_t file);
/* The columns of programs in the file; none in one that has none. */
void pl_results_program_columns(hid_t file, pl_program_columns *columns);
/* `n_stages` > 0: one of the columns of stages. */
pl_code pl_results_open_column(const char *path, hid_t file, const pl_column_info *column, uint32_t n_rows,
                               uint32_t n_stages, hid_t *dataset, pl_error *error);

#endif
