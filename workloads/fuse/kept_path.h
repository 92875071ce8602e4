/* Where a pass keeps what stands for a value of the program beside it: under its path and a word for the part, unless
 * the program keeps something there itself. */
#ifndef PL_WORKLOADS_FUSE_KEPT_PATH_H
#define PL_WORKLOADS_FUSE_KEPT_PATH_H

#include "workloads/language/ir_module.h"

/* "mlp.up.fp8"; "mlp.up.fp8.2" where an op of `from`, the program as it was, has that path. The same whoever asks.
 * NULL: no memory. */
const char *pl_kept_path_of_part(const pl_ir_module *from, const char *path, const char *part, pl_arena *arena);

#endif
