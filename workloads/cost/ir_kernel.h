/* What a kernel of a program of level kernels takes: several ops that are launched as one (the function that `kernel`
 * calls), or a single op.
 *
 * It reads what it is handed and writes what it gives, once; what stays inside does not touch memory. Besides: a
 * gradient buffer that it adds to is read and written; a dropout writes its mask, or reads it, a byte an element; of a
 * table in which it looks up rows it reads those rows; the gradient of a table is set to zero, and its rows are added
 * to; batch norm reads its pictures twice, but for one that is a kernel with its ReLU. Integers (token ids, positions)
 * are not counted. Products with the same first operand are one with all of their columns, products whose results are
 * added up one with all of their depths.
 */
#ifndef PL_WORKLOADS_IR_KERNEL_H
#define PL_WORKLOADS_IR_KERNEL_H

#include "workloads/cost/ir_cost.h"
#include "workloads/framework/framework.h"
#include "workloads/language/ir_routing.h"

struct pl_chain_step;

/* The kernel of an op of function `function`; false: it launches none. `routing`: the module's; `step`: room for what a
 * convolution points to. O(ops of the kernel). */
bool pl_ir_launched(const pl_ir_module *module, const pl_ir_routing *routing, const pl_ir_function *function,
                    const pl_ir_op *op, const pl_framework *framework, pl_category category, pl_op *kernel,
                    struct pl_chain_step *step);
/* A kernel that runs beside it: of a sum of products among which there is a gradient from elsewhere, that autograd adds
 * in a kernel of its own. False: there is none. */
bool pl_ir_launched_beside(const pl_ir_module *module, const pl_ir_routing *routing, const pl_ir_function *function,
                           const pl_ir_op *op, pl_op *kernel);
/* And its time on a device; of an optimizer's step that says what it moves without the launch, which all of an update
 * share. */
bool pl_ir_launched_time(const pl_device_profile *profile, const pl_ir_module *module, const pl_ir_routing *routing,
                         const pl_ir_function *function, const pl_ir_op *op, const pl_framework *framework,
                         pl_category category, pl_op *kernel, pl_op_time *time);

#endif
