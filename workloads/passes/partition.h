/* Partition: a training program and what a strategy tree says of it in, the distributed program out. Collectives come
 * out of mismatches: each op is laid out in the way that costs least to bring its operands to (Proteus, section V, says
 * the same of its strategy transformation), where its leaf (workloads/layout/layout_rules.h) says what data,
 * parameters, gradients and state lie on and which dimensions may be cut; an operand that lies otherwise is converted,
 * with the reason written beside it. Cost is time where the tree has prices of a platform, else bytes. Weights never
 * move along tensor axes, and ZeRO's shards are only ever gathered.
 *
 * Stages: the ops of the main functions go to the chunks of the modules that they call, values that cross are sent.
 */
#ifndef PL_WORKLOADS_PARTITION_H
#define PL_WORKLOADS_PARTITION_H

#include "workloads/tree/tree_plan.h"

/* `training` was derived from the plan's program. `tied`: the head reads the embedding's table. The module lives in
 * `arena`. PL_UNSUPPORTED: what this pass cannot say. O(ops * axes). */
pl_code pl_ir_partition(const pl_ir_module *training, const pl_tree_plan *plan, bool tied, pl_arena *arena,
                        pl_ir_module *distributed, pl_error *error);

#endif
