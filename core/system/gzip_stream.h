/* A stream that compresses: what is written to it goes through gzip to another stream. The bytes depend on the content
 * alone (no name and no time in the header). */
#ifndef PL_CORE_GZIP_STREAM_H
#define PL_CORE_GZIP_STREAM_H

#include <stdbool.h>
#include <stdio.h>

/* Whether a file of that name is to be compressed: it ends in .gz. */
bool pl_gzip_is_wanted(const char *path);

/* NULL: no memory. Close it with fclose, which fails if something could not be written; `to` stays open. */
FILE *pl_gzip_stream_open(FILE *to);

#endif
