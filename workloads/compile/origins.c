/* See workloads/compile/origins.h. */
#include "workloads/compile/origins.h"

#include <string.h>

void pl_origins_init(pl_origins *origins, pl_arena *arena) {
  *origins = (pl_origins){.arena = arena};
}

uint32_t pl_origins_make(pl_origins *origins, const pl_origin *origin) {
  if (origins->arena->failed) return PL_NONE;
  pl_origin *made =
      pl_arena_grown(origins->arena, origins->made, origins->n_made, 1, sizeof *made, &origins->made_capacity);
  if (made == NULL) return PL_NONE;
  origins->made = made;
  made[origins->n_made] = *origin;
  return origins->n_made++;
}

uint32_t pl_origins_make_of_op(pl_origins *origins, const pl_op *op, int8_t block, const pl_op_time *cost) {
  if (origins == NULL) return PL_NONE;
  const pl_origin origin = {.op = op,
                            .block = block,
                            .name = op->name,
                            .category = op->category,
                            .family = PL_NONE,
                            .family_op = PL_NONE,
                            .cost = *cost,
                            .flops = op->flops,
                            .bytes = op->bytes};
  return pl_origins_make(origins, &origin);
}

uint32_t pl_origins_of_op(pl_origins *origins, const pl_op *op, int8_t block, const pl_op_time *price, uint32_t place) {
  enum { PLACES = 512 };
  if (origins == NULL) return PL_NONE;
  if (origins->known == NULL) origins->known = PL_TAKE(origins->arena, pl_known_origin, PLACES);
  if (origins->known == NULL) return PL_NONE;
  pl_known_origin *known = &origins->known[place % PLACES];
  if (known->op != op || known->price != price)
    *known = (pl_known_origin){op, price, pl_origins_make_of_op(origins, op, block, price)};
  return known->made;
}

void pl_origins_add_parts(pl_origins *origins, const pl_part_origin *parts, uint32_t n) {
  if (origins->arena->failed) return;
  pl_part_origin *grown =
      pl_arena_grown(origins->arena, origins->parts, origins->n_parts, n, sizeof *grown, &origins->part_capacity);
  if (grown == NULL) return;
  origins->parts = grown;
  memcpy(grown + origins->n_parts, parts, n * sizeof *parts);
  origins->n_parts += n;
}

/* The array, with room for `times` times more than there are; as it is, if there is no memory (arena->failed). */
static void *widened(pl_arena *arena, void *items, uint32_t n, uint32_t times, size_t size, uint32_t *room) {
  uint64_t wanted = n * (times + 1ULL);
  if (wanted <= *room || wanted >= PL_NONE) return items;
  void *wider = pl_arena_take(arena, wanted * size, 16);
  if (wider == NULL) return items;
  if (n > 0) memcpy(wider, items, n * size);
  *room = (uint32_t)wanted;
  return wider;
}

void pl_origins_expect(pl_origins *origins, uint32_t times) {
  if (origins == NULL || origins->arena->failed) return;
  origins->tasks =
      widened(origins->arena, origins->tasks, origins->n_tasks, times, sizeof *origins->tasks, &origins->task_capacity);
  origins->parts =
      widened(origins->arena, origins->parts, origins->n_parts, times, sizeof *origins->parts, &origins->part_capacity);
}

void pl_origins_add_task(pl_origins *origins, const pl_task_origin *origin) {
  if (origins == NULL || origins->arena->failed) return;
  PL_ASSERT(origins->n_tasks == 0 || origins->tasks[origins->n_tasks - 1].last_task < origin->first_task);
  pl_task_origin *tasks = pl_arena_grown(origins->arena, origins->tasks, origins->n_tasks, 1, sizeof *origins->tasks,
                                         &origins->task_capacity);
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
