/* Replicas of a tuple that run unlike numbers of microbatches (split=3:1), as places of the mesh that run fewer
 * (language/ir_fewer.h). */
#ifndef PL_WORKLOADS_UNLIKE_REPLICAS_H
#define PL_WORKLOADS_UNLIKE_REPLICAS_H

#include "workloads/language/ir_module.h"
#include "workloads/strategy/strategy.h"

/* The module has the mesh of the strategy's recipe, and the microbatches of the replica that has most. A strategy
 * without a split, or whose replicas are alike, leaves it as it is. */
pl_code pl_unlike_replicas(const pl_strategy *strategy, pl_ir_module *module, pl_error *error);
/* Whether the schedule orders the microbatches of some replica otherwise than those of the one that has most with some
 * left out, which is what a program runs; *n is how many that replica has. O(steps). */
bool pl_unlike_replicas_differ(const pl_strategy *strategy, int32_t *n);

#endif
