/* Which devices of a program's graph take part in its transfers: in those too that occupy no stream of theirs, as
 * sends, halos, sums over classes and copies to hosts do. */
#ifndef PL_WORKLOADS_RUN_PROGRAM_MEMBERS_H
#define PL_WORKLOADS_RUN_PROGRAM_MEMBERS_H

#include "workloads/compile/ir_graph.h"

typedef struct pl_program_members {
  const pl_ir_graph *made;
  uint32_t *number; /* per device of the cluster that of the graph; PL_NONE: the program has it not */
  int32_t *list;    /* per device of the graph its list (class) */
} pl_program_members;

/* Memory from `arena`; false: there is none. */
bool pl_program_members_take(const pl_cluster *cluster, const pl_ir_module *module, const pl_ir_graph *made,
                             pl_arena *arena, pl_program_members *members);
/* How many of the transfers that a task stands for each of the devices that a device of the graph stands for takes part
 * in; of a collective 1. */
uint32_t pl_program_members_times(const pl_program_members *members, const pl_task *task, uint32_t device);

#endif
