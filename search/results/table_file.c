/* See search/results/table_file.h; search/hdf5/table_write.c does it. */
#include "search/results/table_file.h"

#include "search/results/hdf5_library.h"

pl_code pl_table_store(const char *path, const char *dimension, const char *command, const pl_table_column *columns,
                       uint32_t n_columns, uint32_t n_rows, bool replace, pl_error *error) {
  PL_HDF5_LIBRARY_TRY(pl_table_store);
  return there(path, dimension, command, columns, n_columns, n_rows, replace, error);
}
