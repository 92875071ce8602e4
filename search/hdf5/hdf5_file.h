/* What all that writes HDF5 shares: how a file begins, and the cause of a failure in a few words, from HDF5's own error
 * stack, which is never printed. */
#ifndef PL_SEARCH_HDF5_FILE_H
#define PL_SEARCH_HDF5_FILE_H

#include <hdf5.h>

#include "core/base/status.h"

/* Stops HDF5 from printing its error stack; call it before anything else of HDF5. */
void pl_hdf5_quiet(void);
/* Fails with `code` and "PATH: WHAT: cause". */
pl_code pl_hdf5_fail(const char *path, const char *what, pl_code code, pl_error *error);
/* A new file in place of the partial file `name` (core/system/partial_file.h), which is locked: HDF5 takes no lock of
 * its own. Negative: it cannot be made. */
hid_t pl_hdf5_create(const char *name);

#endif
