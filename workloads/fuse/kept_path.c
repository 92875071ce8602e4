/* See workloads/fuse/kept_path.h. */
#include "workloads/fuse/kept_path.h"

#include <string.h>

static bool is_taken(const pl_ir_module *from, const char *path) {
  for (int32_t f = 0; f < from->n_functions; f++)
    for (int32_t i = 0; i < from->functions[f]->n_ops; i++) {
      const char *own = from->functions[f]->ops[i].path;
      if (own != NULL && strcmp(own, path) == 0) return true;
    }
  return false;
}

const char *pl_kept_path_of_part(const pl_ir_module *from, const char *path, const char *part, pl_arena *arena) {
  const char *made = pl_arena_printf(arena, "%s.%s", path, part);
  for (int n = 2; made != NULL && is_taken(from, made); n++)
    made = pl_arena_printf(arena, "%s.%s.%d", path, part, n);
  return made;
}
