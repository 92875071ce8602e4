/* Local tensors in another order of dimensions, spread along dimensions that they lack: how rows' `compute` turn named
 * operands into arrays with plain loops. Dimensions are matched by name. */
#ifndef PL_WORKLOADS_IR_ARRANGE_H
#define PL_WORKLOADS_IR_ARRANGE_H

#include "workloads/language/ir_table.h"

/* An order of dimensions with local extents: a tensor without data. */
pl_ir_tensor pl_ir_order_empty(void);
/* Appends dimension `dim` of `tensor`; n grows with it. */
void pl_ir_order_push(pl_ir_tensor *order, const pl_ir_tensor *tensor, int32_t dim);
/* All dimensions of `tensor` that `attribute` of the op names (`named`), or all others; returns their extent. */
int64_t pl_ir_order_push_named(pl_ir_tensor *order, const pl_ir_tensor *tensor, const pl_ir_op *op,
                               const char *attribute, bool named);

/* `from`, in the order of `like`, into to[like->n]. Every dimension of `from` is one of `like`. */
void pl_ir_arrange(const pl_ir_tensor *from, const pl_ir_tensor *like, double *to);
/* The other way round: adds what lies in the order of `like` to `into`, which may lack dimensions of it. */
void pl_ir_arrange_sum(const pl_ir_tensor *like, const double *from, pl_ir_tensor *into);
/* pl_ir_arrange, in scratch memory, or from's own data where it lies so already; NULL: no memory. */
const double *pl_ir_arranged(pl_arena *scratch, const pl_ir_tensor *from, const pl_ir_tensor *like);

#endif
