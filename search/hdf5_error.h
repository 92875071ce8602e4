/* The cause of an HDF5 failure in a few words, from HDF5's own error stack, which is never printed. */
#ifndef PL_SEARCH_HDF5_ERROR_H
#define PL_SEARCH_HDF5_ERROR_H

#include "core/status.h"

/* Stops HDF5 from printing its error stack; call it before anything else of HDF5. */
void pl_hdf5_quiet(void);
/* Fails with `code` and "PATH: WHAT: cause". */
pl_code pl_hdf5_fail(const char *path, const char *what, pl_code code, pl_error *error);

#endif
