/* See workloads/compile/origins.h. */
#include "workloads/compile/origins.h"

#include <string.h>

enum { FIRST_CAPACITY = 256 };

void pl_origins_init(pl_origins *origins, pl_arena *arena) {
  *origins = (pl_origins){.arena = arena};
}

/* Room for one more of `size` bytes; NULL: no memory. */
static void *grown(pl_arena *arena, void *array, uint32_t n, uint32_t *capacity, size_t size) {
  if (n < *capacity) return array;
  uint32_t bigger = *capacity == 0 ? FIRST_CAPACITY : 2 * *capacity;
  void *copy = bigger <= n ? NULL : pl_arena_take(arena, bigger * size, 16);
  if (copy == NULL) {
    arena->failed = true;
    return NULL;
  }
  if (n > 0) memcpy(copy, array, n * size);
  *capacity = bigger;
  return copy;
}

void pl_origins_add_part(pl_origins *origins, const pl_origin *origin) {
  if (origins == NULL || origins->arena->failed) return;
  pl_origin *parts =
      grown(origins->arena, origins->parts, origins->n_parts, &origins->part_capacity, sizeof *origins->parts);
  if (parts == NULL) return;
  origins->parts = parts;
  parts[origins->n_parts++] = *origin;
}

void pl_origins_add_task(pl_origins *origins, const pl_task_origin *origin) {
  if (origins == NULL || origins->arena->failed) return;
  PL_ASSERT(origins->n_tasks == 0 || origins->tasks[origins->n_tasks - 1].last_task < origin->first_task);
  pl_task_origin *tasks =
      grown(origins->arena, origins->tasks, origins->n_tasks, &origins->task_capacity, sizeof *origins->tasks);
  if (tasks == NULL) return;
  origins->tasks = tasks;
  tasks[origins->n_tasks++] = *origin;
}

const pl_task_origin *pl_origins_task(const pl_origins *origins, uint32_t task) {
  uint32_t low = 0, high = origins->n_tasks;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (origins->tasks[middle].last_task < task)
      low = middle + 1;
    else
      high = middle;
  }
  return low < origins->n_tasks && origins->tasks[low].first_task <= task ? &origins->tasks[low] : NULL;
}
