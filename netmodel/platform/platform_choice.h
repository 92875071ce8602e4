/* What a platform may be named by: a file, one that comes with Paceline (dgx-a100-16, hc1), or a machine that
 * `paceline platform make` knows, with its number of nodes (dgx-h100:16; a mixture as
 * p3.8xlarge:3,g4dn.12xlarge:1). */
#ifndef PL_NETMODEL_PLATFORM_CHOICE_H
#define PL_NETMODEL_PLATFORM_CHOICE_H

#include <stddef.h>

#include "core/base/arena.h"
#include "core/base/status.h"

typedef struct pl_platform_text {
  char *text; /* freed by the caller, also after a failure */
  size_t size;
} pl_platform_text;

/* The XML that `choice` stands for. A name that nothing has is PL_BAD_INPUT with the nearest one. */
pl_code pl_platform_text_read(const char *choice, pl_platform_text *text, pl_error *error);

/* All that comes with Paceline: files first, then machines, each sorted as there; NULL ends them. NULL: no memory. */
const char *const *pl_platform_choices(pl_arena *arena);

#endif
