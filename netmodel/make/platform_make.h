/* `paceline platform make KIND`: writes platform files for known machines at any size.
 *
 * The files in platforms/ are what this command writes with its defaults; a golden test holds them to it. */
#ifndef PL_NETMODEL_PLATFORM_MAKE_H
#define PL_NETMODEL_PLATFORM_MAKE_H

#include <stddef.h>

#include "core/base/status.h"
#include "netmodel/make/platform_writer.h"

/* argv[0] is what help and messages call the command. Returns the exit status: 0, 1 (cannot write) or 2 (bad request,
 * file exists). */
int pl_platform_make_run(int argc, char **argv);

/* The text that `paceline platform make KIND` prints, in memory for the caller to free. */
pl_code pl_platform_make_text(const char *kind, char **text, size_t *size, pl_error *error);

/* Writes `plan` to `path` through a temporary file beside it, so that a full disk or a crash leaves nothing
 * half-written. An existing file is PL_BAD_INPUT unless `force`. */
pl_code pl_platform_make_file(const pl_platform_plan *plan, const char *path, bool force, pl_error *error);

#endif
