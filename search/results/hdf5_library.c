/* See search/results/hdf5_library.h. */
#include "search/results/hdf5_library.h"

#include "core/system/library.h"

pl_code pl_hdf5_library_find(const char *name, void *function, pl_error *error) {
  char reason[PL_ERROR_MESSAGE_BYTES];
  if (pl_library_find("libpaceline_hdf5.so", name, function, reason, sizeof reason)) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED, "HDF5 cannot be used: %s", reason);
}
