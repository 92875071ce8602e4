/* See core/system/temporary_folder.h. */
#include "core/system/temporary_folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

pl_code pl_temporary_folder_make(pl_arena *arena, const char **path, pl_error *error) {
  const char *parent = getenv("TMPDIR");
  if (parent == NULL || parent[0] == '\0') parent = "/tmp";
  char *made = pl_arena_printf(arena, "%s/paceline-XXXXXX", parent);
  if (made == NULL) return pl_fail_memory(error, "the name of a folder");
  if (mkdtemp(made) == NULL)
    return pl_fail(error, PL_IO, "cannot make a folder for temporary files in %s: %s; set TMPDIR", parent,
                   strerror(errno));
  *path = made;
  return PL_OK;
}
