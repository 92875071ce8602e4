/* Text files that commands write: a file is there whole or not at all.
 *
 * It is written under another name beside its place and takes the place when it is closed, so that a failure, a full
 * disk or a crash leaves nothing half-written and an older file as it was. A symbolic link keeps pointing where it did,
 * and what it points to is replaced. A pipe or a device (/dev/stdout, /dev/null) is written in place and never
 * replaced: renaming a file over it would take it away from everybody.
 *
 * HDF5 files are not written through a stream; they are partial files (core/system/partial_file.h) as well.
 */
#ifndef PL_CORE_OUTPUT_FILE_H
#define PL_CORE_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "core/base/status.h"
#include "core/system/partial_file.h"

typedef struct pl_output_file {
  FILE *stream;            /* to write to; NULL: not open */
  const char *path;        /* as given, for messages; not owned */
  char *place;             /* the name that the file gets; NULL: written in place */
  pl_partial_file partial; /* where it is until then */
  bool force;
} pl_output_file;

/* Looked at before long work, so that it is not done in vain: PL_BAD_INPUT if the name is empty, a directory, in a
 * folder that is missing or cannot be written to, or a file that exists and `force` is not given. Writes nothing. */
pl_code pl_output_file_check(const char *path, bool force, pl_error *error);

/* The same, and opens. `path` must outlive the file. On success pl_output_file_close must be called, after a failure it
 * may be. */
pl_code pl_output_file_open(pl_output_file *file, const char *path, bool force, pl_error *error);

/* Ends the file: with PL_OK it takes its place, with another code (that of what was to fill it) it is removed. Returns
 * that code, or why the file could not be written: PL_IO, or PL_BAD_INPUT if the place was taken meanwhile. Does
 * nothing to a file that is not open. */
pl_code pl_output_file_close(pl_output_file *file, pl_code code, pl_error *error);

#endif
