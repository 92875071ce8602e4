/* See search/results/results_file.h: what needs no HDF5, and the way to what does (search/hdf5). */
#include "search/results/results_file.h"

#include "search/results/hdf5_library.h"

pl_code pl_results_create(const char *path, const pl_provenance *provenance, uint32_t n_rows, bool replace,
                          pl_error *error) {
  PL_HDF5_LIBRARY_TRY(pl_results_create);
  return there(path, provenance, n_rows, replace, error);
}

pl_code pl_results_begin(const char *path, const pl_provenance *provenance, uint32_t n_rows, pl_partial_file *partial,
                         pl_error *error) {
  PL_HDF5_LIBRARY_TRY(pl_results_begin);
  return there(path, provenance, n_rows, partial, error);
}

pl_code pl_results_check_resume(const char *path, const pl_provenance *provenance, uint32_t n_rows, int32_t *status,
                                pl_error *error) {
  PL_HDF5_LIBRARY_TRY(pl_results_check_resume);
  return there(path, provenance, n_rows, status, error);
}

pl_code pl_results_open(const char *path, MPI_Comm comm, uint32_t n_rows, uint32_t block_rows, pl_results_file **file,
                        bool *split, pl_error *error) {
  PL_HDF5_LIBRARY_TRY(pl_results_open);
  return there(path, comm, n_rows, block_rows, file, split, error);
}

pl_code pl_results_write(pl_results_file *file, uint32_t first, uint32_t count, const pl_result_row *rows,
                         pl_error *error) {
  PL_HDF5_LIBRARY_TRY(pl_results_write);
  return there(file, first, count, rows, error);
}

pl_code pl_results_close(pl_results_file *file, pl_error *error) {
  if (file == NULL) return PL_OK;
  PL_HDF5_LIBRARY_TRY(pl_results_close);
  return there(file, error);
}

void pl_results_fail_after(pl_results_file *file, int64_t n_writes) {
  PL_HDF5_LIBRARY_KNOWN(pl_results_fail_after);
  there(file, n_writes);
}

pl_code pl_results_versions_of(pl_results_versions *versions, pl_error *error) {
  PL_HDF5_LIBRARY_TRY(pl_results_versions_of);
  return there(versions, error);
}
