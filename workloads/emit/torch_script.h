/* A program as a script for torchrun: what its lists do, in PyTorch, op by op (torch_runtime.py has the ops). The
 * script needs nothing of Paceline: types, groups of ranks, messages, order and optimizer are the program's, parameters
 * and data are made as the executor makes them. */
#ifndef PL_WORKLOADS_TORCH_SCRIPT_H
#define PL_WORKLOADS_TORCH_SCRIPT_H

#include <stdio.h>

#include "workloads/language/ir_module.h"

/* Whether every op has its like in the runtime. PL_UNSUPPORTED names the first that has none, with its place. */
pl_code pl_torch_script_check(const pl_ir_module *module, pl_error *error);
/* `module` passed pl_ir_check and pl_torch_script_check. Scratch from `arena`. */
pl_code pl_torch_script_write(const pl_ir_module *module, FILE *stream, pl_arena *arena, pl_error *error);

#endif
