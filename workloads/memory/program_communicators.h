/* Communicators of a program: what a device's buffers of them take beside its tensors (pl_memory_outside_bytes). */
#ifndef PL_WORKLOADS_PROGRAM_COMMUNICATORS_H
#define PL_WORKLOADS_PROGRAM_COMMUNICATORS_H

#include "workloads/language/ir_module.h"
#include "workloads/memory/stage_memory.h"

/* Communicators that a device of each class belongs to: one for each set of axes that collectives of the program go
 * over, one for each class that it sends to forward and one for each backward, one for each set of classes that it sums
 * over, and that of all. What tuples have, whose stages are classes (workloads/program/program.h, families). `likes`:
 * pl_ir_alike_take. In memory of `arena`; NULL: no memory. */
const pl_communicators *pl_program_communicators_take(const pl_cluster *cluster, const pl_ir_module *module,
                                                      const int32_t *likes, pl_arena *arena);

#endif
