/* The way into the shared library paceline_hdf5 (room search/hdf5), which alone knows HDF5: parallel HDF5 brings 33
 * libraries along on Debian (curl, Kerberos, LDAP, TLS ...), half of what a small command would do, and most commands
 * read and write no results.
 *
 * Its functions bear the names of those that the others call, and take and give the same: search/results/results_file.h
 * says what pl_results_open does, search/hdf5/results_write.c does it, and search/results/results_file.c calls that. */
#ifndef PL_SEARCH_HDF5_LIBRARY_H
#define PL_SEARCH_HDF5_LIBRARY_H

#include "core/base/status.h"

/* Sets the pointer to a function at `function`. PL_UNSUPPORTED: the library is not there or is another one. */
pl_code pl_hdf5_library_find(const char *name, void *function, pl_error *error);

/* Declares `there`, the library's function of this name, in a function that returns what went wrong. */
#define PL_HDF5_LIBRARY_TRY(name)                                                                                      \
  __typeof__(&name) there;                                                                                             \
  PL_TRY(pl_hdf5_library_find(#name, &there, error))

/* The same in one that cannot go wrong, for what the library has made is at hand. */
#define PL_HDF5_LIBRARY_KNOWN(name)                                                                                    \
  __typeof__(&name) there;                                                                                             \
  PL_ASSERT(pl_hdf5_library_find(#name, &there, NULL) == PL_OK)

#endif
