/* A run of a program with what its steps do to the memory of their devices, for those who draw it: the graph that is
 * played has none of it, since what lists hold follows from their order alone (workloads/memory/program_memory.h). */
#ifndef PL_WORKLOADS_RUN_PROGRAM_EFFECTS_H
#define PL_WORKLOADS_RUN_PROGRAM_EFFECTS_H

#include "workloads/memory/program_memory.h"
#include "workloads/run/program_members.h"

/* `with`: the graph that was made, of the whole program, with effects of tasks and with what stays on the devices
 * (resident_bytes). What a step takes at the most is there from its first work to its last, as of a strategy from the
 * begin of a pass to its end; a step that computes nothing on a device holds nothing there. `memory`: per class, with
 * its steps. Memory from `arena`; false: there is none. O(tasks + steps). */
bool pl_program_effects_take(const pl_ir_module *module, const pl_program_members *members,
                             const pl_class_memory *memory, pl_arena *arena, pl_graph *with);

#endif
