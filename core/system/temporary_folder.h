/* A folder for files that only this process reads. */
#ifndef PL_CORE_TEMPORARY_FOLDER_H
#define PL_CORE_TEMPORARY_FOLDER_H

#include "core/base/arena.h"
#include "core/base/status.h"

/* Makes an empty one in TMPDIR, or in /tmp; *path in `arena`, of any length. PL_IO with the reason when it cannot be
 * made. The caller removes what it writes there, and the folder. */
pl_code pl_temporary_folder_make(pl_arena *arena, const char **path, pl_error *error);

#endif
