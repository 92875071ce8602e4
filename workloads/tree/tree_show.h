/* A tree after propagation, for people: stages, leaves, and of every function how each op lies, who said so, and which
 * collectives stand where layouts differ. */
#ifndef PL_WORKLOADS_TREE_SHOW_H
#define PL_WORKLOADS_TREE_SHOW_H

#include <stdio.h>

#include "workloads/tree/tree_plan.h"

/* `distributed` was partitioned by the plan. */
void pl_tree_show(FILE *stream, const pl_tree_plan *plan, const pl_ir_module *distributed);

#endif
