/* What an op of the program language takes on a device: its kernel as cost models know kernels (workloads/ir/op.h),
 * made from its row, its types and what one device holds of them. One kernel per op, nothing fused: what a framework
 * would make one kernel is several here, so that times of programs are above those of `simulate --framework`. */
#ifndef PL_WORKLOADS_IR_COST_H
#define PL_WORKLOADS_IR_COST_H

#include "core/graph/graph.h"
#include "workloads/cost/op_cost.h"
#include "workloads/language/ir_table.h"

/* The kernel; false: the op launches none (it reads state, gives a view, or moves data, which is the network's). */
bool pl_ir_kernel(const pl_ir_mesh *mesh, const pl_ir_function *function, const pl_ir_op *op, pl_category category,
                  pl_op *kernel);
/* What the op takes on a device; false: nothing. A profile that lists its row by name says it, also of views and state;
 * others price the kernel. Such a rate of one's own is a roofline's. `kernel` is that of pl_ir_kernel, all zero where
 * it has none. */
bool pl_ir_op_time(const pl_device_profile *profile, const pl_ir_mesh *mesh, const pl_ir_function *function,
                   const pl_ir_op *op, pl_category category, pl_op *kernel, pl_op_time *time);
/* Bytes of a collective of this op on each device, as netmodel/collective/collective.h counts them. */
double pl_ir_collective_bytes(const pl_ir_mesh *mesh, const pl_ir_function *function, const pl_ir_op *op);

#endif
