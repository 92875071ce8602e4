/* What each device of a program holds: parameters, gradients and optimizer state by path, and the values that are alive
 * at once, in the order of its list: from the op that makes one to its last reader, kept values up to the backward
 * function that reads them. Renames, cuts and their like hold nothing of their own, what stays inside a kernel does not
 * exist; a dropout's mask, a byte an element, is kept from the forward pass to the backward pass that does not make it
 * again. Bytes of parameters, gradients and state are the framework's (workloads/program/program.h,
 * pl_training_state), how they lie is the program's.
 *
 * What is kept in the host is on the device while its function runs and the one behind it, backward from the function
 * before the one that reads it. Gradients stay on the device where the host has the states.
 *
 * Not counted: what an allocator holds beyond tensors (a caching one is not replayed, its profile's `fragmentation`
 * is), token ids.
 */
#ifndef PL_WORKLOADS_PROGRAM_MEMORY_H
#define PL_WORKLOADS_PROGRAM_MEMORY_H

#include "core/cluster/cluster.h"
#include "workloads/framework/framework.h"
#include "workloads/language/ir_recurrence.h"

/* What a step of a list does to the memory of its devices, bytes above what was there before: what it leaves, and the
 * most in it. Of steps that run beside each other the first has that of all of them, the others nothing. */
typedef struct pl_step_memory {
  double net, peak;
} pl_step_memory;

/* Of a device of one class, bytes. */
typedef struct pl_class_memory {
  double parameters, gradients, optimizer, values;
  double buffers;  /* of level kernels what the framework holds besides (workloads/memory/buffer_memory.h) */
  double peak;     /* of all of them at once, or while the optimizer works */
  double host;     /* in the memory of its host: states, and the most that is kept there at once */
  double capacity; /* what the device with least memory has for them */
  const pl_step_memory *steps; /* of its list, and behind them the update; NULL: not asked for */
} pl_class_memory;

/* What is there from the iteration's begin to its end. */
static inline double pl_class_stays_bytes(const pl_class_memory *memory) {
  return memory->parameters + memory->gradients + memory->optimizer + memory->buffers;
}

/* The type that a program computes in: that of its narrowest parameter. */
pl_dtype pl_program_dtype(const pl_ir_module *module);

/* `module` passed pl_ir_check, of level distributed or kernels, and runs on the cluster. `memory`: one per class, from
 * the arena. `recurrence`: what is known to recur in its lists; NULL: nothing is. O(ops behind the passes of one
 * microbatch
 * + steps outside of what recurs). */
pl_code pl_program_memory_take(const pl_cluster *cluster, const pl_ir_module *module, const pl_framework *framework,
                               const pl_ir_recurrence *recurrence, pl_arena *arena, pl_class_memory **memory,
                               pl_error *error);
/* The same, and what each step of the lists does. */
pl_code pl_program_memory_of_steps(const pl_cluster *cluster, const pl_ir_module *module, const pl_framework *framework,
                                   pl_arena *arena, pl_class_memory **memory, pl_error *error);

#endif
