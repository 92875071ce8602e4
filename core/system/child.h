/* Work in a process of its own: for libraries of others that crash on a damaged file, or never come back from one.
 *
 * The child has limits of processor time and memory that grow with the file, prints where nobody sees it, and leaves no
 * core. Whatever happens to it, this process ends up with one error, or with all that the work had to say: what was
 * printed is passed on only after the work ended well. To be called before there are threads and before MPI starts.
 */
#ifndef PL_CORE_CHILD_H
#define PL_CORE_CHILD_H

#include <stdio.h>

#include "core/base/status.h"

typedef struct pl_child {
  const char *path; /* of the file: for messages, and its size sets the limits */
  const char *kind; /* what the file should be: "HDF5" */
  /* In the child, which has a copy of all memory. `out` and `notes` are where the work prints. */
  pl_code (*work)(void *context, FILE *out, FILE *notes, pl_error *error);
  void *context;
} pl_child;

/* Fails as the work does; PL_BAD_INPUT if it crashed, took too long, or wanted far more memory than such a file can
 * need. Otherwise what it printed goes to `out` and `notes`. */
pl_code pl_child_run(const pl_child *child, FILE *out, FILE *notes, pl_error *error);

#endif
