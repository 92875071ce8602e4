/* Text files that users give: read whole, and looked through before a parser sees them. */
#ifndef PL_CORE_TEXT_FILE_H
#define PL_CORE_TEXT_FILE_H

#include <stddef.h>

#include "core/base/status.h"

/* The whole file, with a NUL behind it; the caller frees *text. A file that cannot be opened, or of more than `limit`
 * bytes, is PL_BAD_INPUT; *text is NULL on failure. */
pl_code pl_text_file_load(const char *path, size_t limit_bytes, char **text, size_t *size, pl_error *error);

/* PL_BAD_INPUT with file:line:column at the first byte that is not UTF-8, and at control characters other than tab and
 * line ends (NUL among them). `name` stands for the path. */
pl_code pl_text_check(const char *name, const char *text, size_t size, pl_error *error);

#endif
