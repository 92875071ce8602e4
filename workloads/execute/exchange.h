/* Collectives as what they mean: devices along some axes of the mesh put together what they hold of a value and each
 * takes the part that its new layout gives it. One function for all_reduce, reduce_scatter, all_gather, all_to_all and
 * cut; that an op does what its name says is a matter of its layouts (ir_rows_collective.c). */
#ifndef PL_WORKLOADS_EXCHANGE_H
#define PL_WORKLOADS_EXCHANGE_H

#include "workloads/execute/holding.h"

/* Fills `to` (zeroed, of the new type) out of `from`, along the axes `over` only. PL_BAD_INPUT: they do not hold what a
 * part needs, as when an axis that is not the innermost one that cuts a dimension is gathered. */
pl_code pl_exchange(const pl_crew *crew, int32_t n_over, const pl_ir_name *over, const pl_holding *from, pl_holding *to,
                    pl_error *error);

/* Every device's value to the one `by` places further along the axes of the op's `over`, round the ring. */
void pl_exchange_shift(const pl_crew *crew, const pl_ir_op *op, const pl_holding *from, pl_holding *to);

/* halo and halo_backward: rows that devices along `over` lack of a part, or what comes back for them. PL_BAD_INPUT:
 * they do not hold them. */
pl_code pl_exchange_halo(const pl_crew *crew, const pl_ir_op *op, const pl_holding *from, pl_holding *to,
                         pl_error *error);

#endif
