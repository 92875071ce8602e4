/* Tasks on processes of their own: for libraries that hold one of something per process (SimGrid's engine), so that
 * threads would take turns.
 *
 * Children are forked, have a copy of all memory, and take tasks in order from a shared counter; what a task finds it
 * writes to memory that the caller has shared (pl_shared_take) at a place of its own, so that the outcome does not
 * depend on which process took what. A child that a signal ends is one error of this process.
 */
#ifndef PL_CORE_PROCESSES_H
#define PL_CORE_PROCESSES_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

typedef pl_code pl_process_task(void *context, uint32_t index, pl_error *error);

/* Runs task(context, 0 .. n_tasks - 1) on at most `n_processes` children. No task is begun after one has failed; of
 * several failures the one of the lowest index is returned. A child may use one thread only. PL_IO: no process can be
 * made, or one ended by a signal. */
pl_code pl_processes_run(uint32_t n_processes, uint32_t n_tasks, pl_process_task *task, void *context, pl_error *error);

/* Zeroed memory that children write and this process reads; NULL: none. */
void *pl_shared_take(size_t bytes);
void pl_shared_release(void *memory, size_t bytes);

#endif
