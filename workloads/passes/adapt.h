/* Ops of a planned model program that are said in another way because of how their leaf cuts them:
 *
 *   batch norms  are over all pictures of a microbatch; frameworks let each replica normalise over its own, and
 * exchange nothing: the pictures are `split` into replicas, outermost, and these alone are normalised over windows need
 * what lies beside them: where the height or width that they slide over is cut, a `halo` gives each part the rows that
 * it lacks, and the parts' results are joined
 *
 * Both make a new outermost dimension of parts ("b_parts", "y_parts"), which may be cut as the dimension itself may be.
 */
#ifndef PL_WORKLOADS_ADAPT_H
#define PL_WORKLOADS_ADAPT_H

#include "workloads/tree/tree_plan.h"

/* Rewrites functions of the plan's program. What does not divide, or would need more than its neighbours have, stays as
 * it is, and is gathered. O(ops). */
pl_code pl_plan_adapt(pl_tree_plan *plan, pl_error *error);

/* Groups of pictures of an iteration that a distributed program's batch norms are over, microbatches and replicas;
 * 1: there are no batch norms; 0: unlike numbers. */
int32_t pl_norm_groups_of_program(const pl_ir_module *distributed);
/* Batch norms of a model program over each of `groups` parts of the pictures; such as do not divide stay as they are.
 */
pl_code pl_ir_group_norms(pl_ir_module *model, int32_t groups, pl_error *error);

#endif
