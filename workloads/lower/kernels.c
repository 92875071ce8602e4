/* What lowers the kernels of each kind of the op table's column (workloads/lower/lowering.h). A kind without a line
 * here does not compile. */
#include "core/cluster/cluster.h"
#include "workloads/lower/lowering.h"

pl_lowers pl_lowers_of(pl_ir_kernel_kind kernels) {
  switch (kernels) {
  case PL_IR_KERNELS_SWEEP:
    return pl_lower_sweep;
  case PL_IR_KERNELS_NONE:
    return pl_lower_nothing;
  case PL_IR_KERNELS_SAME:
    return pl_lower_same;
  case PL_IR_KERNELS_PRODUCT:
    return pl_lower_product;
  case PL_IR_KERNELS_REDUCTION:
    return pl_lower_reduce;
  case PL_IR_KERNELS_NORM:
    return pl_lower_norm;
  case PL_IR_KERNELS_ADDITION:
    return pl_lower_add;
  case PL_IR_KERNELS_DROPOUT:
    return pl_lower_dropout;
  case PL_IR_KERNELS_ACTIVATION:
    return pl_lower_activation;
  case PL_IR_KERNELS_MULTIPLICATION:
    return pl_lower_multiply;
  case PL_IR_KERNELS_CONVOLUTION:
    return pl_lower_convolution;
  case PL_IR_KERNELS_POOL:
    return pl_lower_pool;
  case PL_IR_KERNELS_BATCH_NORM:
    return pl_lower_batch_norm;
  case PL_IR_KERNELS_REARRANGEMENT:
    return pl_lower_rearranged;
  case PL_IR_KERNELS_SUM:
    return pl_lower_sweep;
  case PL_IR_KERNELS_TOP_K:
    return pl_lower_sweep;
  case PL_IR_KERNELS_SPREAD:
    return pl_lower_same;
  case PL_IR_KERNELS_EMBEDDING: /* of positions: where they are added */
    return pl_lower_nothing;
  case PL_IR_KERNELS_CROSS_ENTROPY:
    return pl_lower_sweep;
  case PL_IR_KERNELS_CAST:
    return pl_lower_sweep;
  }
  PL_ASSERT(!"a kind of kernels");
  return pl_lower_sweep;
}
