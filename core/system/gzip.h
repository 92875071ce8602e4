/* Files compressed with gzip, from memory to memory (RFC 1952, by zlib; several members behind one another count as
 * one file, as gzip has it). */
#ifndef PL_CORE_GZIP_H
#define PL_CORE_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/status.h"

/* Whether the bytes begin as a gzip file does. */
bool pl_gzip_is(const char *data, size_t size);

/* The content with a NUL behind it; the caller frees *text, which is NULL on failure. PL_BAD_INPUT: damaged, cut off,
 * or more than `limit_bytes` of content. `name` stands for the path. About 200 MB/s of content. */
pl_code pl_gzip_expand(const char *name, const char *data, size_t size, size_t limit_bytes, char **text,
                       size_t *text_size, pl_error *error);

#endif
