/* Kernels: a distributed program in, the same as a framework launches it out. Ops that are one kernel under the profile
 * become a function that an op `kernel` calls: queries, keys and values are one product, a bias is added by the product
 * before it, a weight gradient is added up by the product that makes it, bias, dropout and residual addition are one
 * sweep. Forward, backward and recomputed ops go through the same patterns: what is one kernel is found among the ops
 * of a function, whoever wrote them.
 *
 *   %y = kernel @layer.attended.2(%x, %attention.out.2, %attention.out.bias) : bf16[b=2/dp, s=8, h=32]
 *
 * What kernels read and write besides their operands follows from their ops (workloads/cost/ir_kernel.h). Values are
 * what they were: gradients are kept in the framework's type (casts in front of what adds them up), nothing else
 * changes.
 */
#ifndef PL_WORKLOADS_KERNELS_H
#define PL_WORKLOADS_KERNELS_H

#include "workloads/framework/framework.h"
#include "workloads/language/ir_module.h"

typedef struct pl_kernels_options {
  const pl_framework *framework;
  /* What the optimizer's step moves, bytes a parameter, with master weights, casts and clipping; 0: what its op reads
   * and writes. */
  double update_bytes;
  /* What goes over gradients around their reduction, likewise, per gradient that is kept: of those that are not
   * reduced, and of those that are. */
  double kept_bytes, reduced_bytes;
  bool whole; /* results of functions that nothing calls are asked for, as those of a block alone */
} pl_kernels_options;

/* `module` is of level distributed and passed pl_ir_check; `made` lives in `arena` and shares nothing with it but
 * steps, so that it lives no longer. O(ops). */
pl_code pl_ir_kernels(const pl_ir_module *module, const pl_kernels_options *options, pl_arena *arena,
                      pl_ir_module *made, pl_error *error);

#endif
