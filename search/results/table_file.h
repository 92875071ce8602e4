/* A table that is at hand as a whole, as HDF5: one dataset per column over one dimension, as results files have them
 * (search/results/results_file.h), with units and descriptions, so that h5py, pandas, xarray and ncdump open it. */
#ifndef PL_SEARCH_TABLE_FILE_H
#define PL_SEARCH_TABLE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"

typedef enum pl_table_type { PL_TABLE_TEXT = 0, PL_TABLE_INTEGER, PL_TABLE_NUMBER } pl_table_type;

typedef struct pl_table_column {
  const char *name, *unit, *description; /* unit "" = none */
  pl_table_type type;
  const void *values; /* per row: const char * (UTF-8), int64_t, double */
} pl_table_column;

/* `dimension` names the rows. Under a temporary name first, so that there is never half a file. PL_BAD_INPUT: the file
 * exists and not `replace`, or cannot be made there; PL_IO: a disk that is full. n_rows at least 1. */
pl_code pl_table_store(const char *path, const char *dimension, const char *command, const pl_table_column *columns,
                       uint32_t n_columns, uint32_t n_rows, bool replace, pl_error *error);

#endif
