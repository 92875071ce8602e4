/* A platform file written out again from what the scan has let through, for SimGrid to read.
 *
 * SimGrid never sees the file itself: its reader (flexml) and ours (expat) could differ about where a comment ends or
 * how the text is encoded, the file could change between the two, and a name that ends in ".so" would be loaded as
 * code. The copy is plain XML with every element in the line where it stands in the file, so that SimGrid's messages
 * keep their lines. It lives in memory (memfd_create) and is gone when it is closed.
 */
#ifndef PL_NETMODEL_PLATFORM_COPY_H
#define PL_NETMODEL_PLATFORM_COPY_H

#include <stddef.h>

#include "core/base/arena.h"
#include "core/base/status.h"

enum { PL_COPY_PATH_BYTES = 32 };

/* Scans `text` as pl_platform_scan_text does and makes the copy. `path` is where SimGrid finds it, until *file is
 * closed with close(2). */
pl_code pl_platform_copy_open(const char *name, const char *text, size_t size, pl_arena *arena, int *file,
                              char path[PL_COPY_PATH_BYTES], pl_error *error);

#endif
