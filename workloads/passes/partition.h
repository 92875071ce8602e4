/* Partition: a training program and a strategy in, the distributed program out. Collectives come out of mismatches:
 * each op is laid out in the way that costs least to bring its operands to (Proteus, section V, says the same of its
 * strategy transformation), where the strategy's rules (layout_rules.h) say what data, parameters, gradients and state
 * lie on and which dimensions may be cut; an operand that lies otherwise is converted, with the reason written beside
 * it. Weights never move along tensor axes, and ZeRO's shards are only ever gathered.
 *
 * Stages: the ops of the main functions go to the chunks of the blocks that they call, values that cross are sent.
 */
#ifndef PL_WORKLOADS_PARTITION_H
#define PL_WORKLOADS_PARTITION_H

#include "workloads/framework/job.h"
#include "workloads/passes/layout_rules.h"

/* `strategy` has boundaries and passed pl_strategy_check. The module lives in `arena`. PL_UNSUPPORTED: what the rules
 * or this pass cannot say. O(ops * axes). */
pl_code pl_ir_partition(const pl_ir_module *training, const pl_model *model, const pl_job *job,
                        const pl_strategy *strategy, pl_arena *arena, pl_ir_module *distributed, pl_error *error);

#endif
