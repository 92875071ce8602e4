/* Origins: what the parts and tasks of a compiled graph were made from, so that a run can be told op by op.
 *
 * The graph itself knows no ops, and must not. The table is kept beside the graph, in the order in which the compiler
 * makes parts and tasks, only when someone will ask (pl_compile_options.origins): for one, the interval of every
 * candidate of a sweep. So it is small: layers alike share their origins, and a part keeps 8 bytes of its own (88 were
 * copied for each, which was a tenth of a candidate's instructions and a quarter of its memory). Rejected: to tell ops
 * by the names of parts, which are not unique, and which would have to be made for every candidate of a sweep.
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

typedef struct pl_part_origin {
  uint32_t origin; /* among those that were made */
  int32_t at;      /* block of the model; -1: none */
} pl_part_origin;

/* A communication that is a task, or several of consecutive ids (chunked). */
typedef struct pl_task_origin {
  uint32_t first_task, last_task; /* of a rolled graph: rows */
  uint32_t group_class;           /* of the plan */
  uint32_t label;                 /* its name among the graph's, PL_NONE = none */
  uint32_t family, family_op;
  uint8_t category; /* pl_category */
} pl_task_origin;

/* The origin of an op of a block at one device's price, which comes in the passes of many stages. */
typedef struct pl_known_origin {
  const pl_op *op;
  const pl_op_time *price;
  uint32_t made;
} pl_known_origin;

typedef struct pl_origins {
  pl_arena *arena;
  pl_known_origin *known; /* places, of which a later op may take what an earlier one had */
  pl_origin *made;
  uint32_t n_made, made_capacity;
  pl_part_origin *parts; /* as many as the graph has parts */
  uint32_t n_parts, part_capacity;
  pl_task_origin *tasks; /* by increasing task */
  uint32_t n_tasks, task_capacity;
  bool times_only; /* an explanation need not add up flops and bytes */
} pl_origins;

/* Caller's storage; memory comes from `arena`, whose `failed` flag says that it ran out. */
void pl_origins_init(pl_origins *origins, pl_arena *arena);
/* Number of a further origin. */
uint32_t pl_origins_make(pl_origins *origins, const pl_origin *origin);
/* The same of an op of a block of kind `block`; NULL origins: PL_NONE. */
uint32_t pl_origins_make_of_op(pl_origins *origins, const pl_op *op, int8_t block, const pl_op_time *cost);
/* The same where `price` is a constant of the op and the device: made but once, if `place`, any number, is mostly the
 * op's own. */
uint32_t pl_origins_of_op(pl_origins *origins, const pl_op *op, int8_t block, const pl_op_time *price, uint32_t place);
/* Of the next parts that the compiler makes. */
void pl_origins_add_parts(pl_origins *origins, const pl_part_origin *parts, uint32_t n);
static inline const pl_origin *pl_origins_part(const pl_origins *origins, uint32_t part) {
  return &origins->made[origins->parts[part].origin];
}
/* Room for `times` times as many communications and parts again; NULL origins: nothing to do. */
void pl_origins_expect(pl_origins *origins, uint32_t times);
/* Of the next communication. NULL origins: nothing to do. */
void pl_origins_add_task(pl_origins *origins, const pl_task_origin *origin);
/* The communication that `task` belongs to; NULL: none. O(log tasks). */
const pl_task_origin *pl_origins_task(const pl_origins *origins, uint32_t task);

#endif
