/* Origins: what the parts and tasks of a compiled graph were made from, so that a run can be told op by op.
 *
 * The graph itself knows no ops, and must not: simulations of a sweep do without this table. It is kept beside the
 * graph, in the order in which the compiler makes parts and tasks, only when someone will ask
 * (pl_compile_options.origins). Rejected: to tell ops by the names of parts, which are not unique, and which would have
 * to be made for every candidate of a sweep.
 */
#ifndef PL_WORKLOADS_ORIGINS_H
#define PL_WORKLOADS_ORIGINS_H

#include "core/base/arena.h"
#include "workloads/cost/op_cost.h"
#include "workloads/ir/op.h"

/* An op as one device runs it. Computing, or one op of a family (workloads/program/program.h): a communication. */
typedef struct pl_origin {
  const pl_op *op; /* NULL: the optimizer, an empty pass, communication */
  int8_t block;    /* pl_block_kind of which it is an op; -1 likewise */
  const char *name;
  uint8_t category;           /* pl_category */
  uint32_t family, family_op; /* PL_NONE: it computes */
  pl_op_time cost;            /* computing only, as below: of one call */
  double flops, bytes;
} pl_origin;

/* A communication that is a task, or several of consecutive ids (chunked). */
typedef struct pl_task_origin {
  uint32_t first_task, last_task;
  uint32_t group_class; /* of the plan */
  uint32_t label;       /* its name among the graph's, PL_NONE = none; origin.name is NULL */
  pl_origin origin;
} pl_task_origin;

typedef struct pl_origins {
  pl_arena *arena;
  pl_origin *parts; /* as many as the graph has parts */
  uint32_t n_parts, part_capacity;
  pl_task_origin *tasks; /* by increasing task */
  uint32_t n_tasks, task_capacity;
} pl_origins;

/* Caller's storage; memory comes from `arena`, whose `failed` flag says that it ran out. */
void pl_origins_init(pl_origins *origins, pl_arena *arena);
/* Of the next part, or communication, that the compiler makes. NULL origins: nothing to do. */
void pl_origins_add_part(pl_origins *origins, const pl_origin *origin);
void pl_origins_add_task(pl_origins *origins, const pl_task_origin *origin);
/* The communication that `task` belongs to; NULL: none. O(log tasks). */
const pl_task_origin *pl_origins_task(const pl_origins *origins, uint32_t task);

#endif
