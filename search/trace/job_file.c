/* See search/trace/job_file.h; search/hdf5/job_store.c does it. */
#include "search/trace/job_file.h"

#include "search/results/hdf5_library.h"

pl_code pl_job_file_store(const char *path, bool force, const pl_trace *trace, pl_error *error) {
  PL_HDF5_LIBRARY_TRY(pl_job_file_store);
  return there(path, force, trace, error);
}

pl_code pl_job_file_open(const char *path, pl_trace *trace, pl_error *error) {
  PL_HDF5_LIBRARY_TRY(pl_job_file_open);
  return there(path, trace, error);
}

pl_code pl_job_file_load(const char *path, pl_trace *trace, pl_error *error) {
  PL_HDF5_LIBRARY_TRY(pl_job_file_load);
  return there(path, trace, error);
}
