/* Products in a narrow type (fp8, NVFP4), as frameworks launch them: what they read is cast by a kernel of its own, for
 * each linear layer, and for both products of its backward pass at once; what sequence parallelism gathers, and what is
 * kept for the backward pass, is the cast one where nothing else reads it. Weights in the narrow type are at hand
 * (their casts are not modelled). Of `fp8_scaling`: with `dynamic` and without a tensor group inputs are kept as they
 * are and cast once more for the weights' gradients; with `rowwise` every product casts both of its operands, weights
 * included, for itself, of values that are kept and gathered as they are. What is cast to NVFP4 is read three times:
 * for its largest element, for the copy as it is, and, rotated, for the transposed one. Internal to
 * workloads/fuse/kernel*.c.
 *
 * After Transformer Engine, pytorch/module/{linear,layernorm_linear,base}.py (grad_output_preprocess casts before it
 * gathers), pytorch/csrc/quantizer.cpp of 2.8 (NVFP4Quantizer), and torchao's float8_linear.py.
 */
#ifndef PL_WORKLOADS_KERNEL_NARROW_H
#define PL_WORKLOADS_KERNEL_NARROW_H

#include "workloads/fuse/kernel_groups.h"

typedef struct pl_kernel_narrowing {
  bool any;         /* products of the module are narrow */
  uint8_t element;  /* of the first of them */
  bool casts_again; /* for the weights' gradients */
  bool is_apart;    /* every product casts its operands for itself, and nothing is gathered cast */
  bool is_turned;   /* of those: operands of this product are scaled along their outer dimension */
  bool is_scaled;   /* what is cast is read for its largest element first */
  const pl_ir_module *from;
  pl_ir_module *to;
  const pl_kernel_finding *finding; /* of the function that is written */
  pl_ir_function *function;         /* that it becomes */
  const int32_t *next_of;           /* per op: the next of its group */
  int32_t *map;                     /* per value of the old function: of the new one */
  int32_t *narrow;                  /* per value: cast */
  bool *is_taken;                   /* per value: by a linear layer */
  const bool *again;                /* per op: it makes a forward value again */
  int32_t *values;                  /* scratch, as the two below */
  int32_t *before, *swapped, n_swapped;
} pl_kernel_narrowing;

void pl_narrowing_init(pl_kernel_narrowing *own, const pl_ir_module *from, pl_ir_module *to,
                       const pl_framework *framework);
/* False: no memory. */
bool pl_narrowing_begin(pl_kernel_narrowing *own, const pl_kernel_finding *finding, pl_ir_function *function,
                        const int32_t *next_of, int32_t *map, pl_arena *scratch);
/* Gathers, and what is kept and read again, of values that only narrow products read. False: it is to be written as it
 * is. */
bool pl_narrowing_writes(pl_kernel_narrowing *own, int32_t op);
/* Around a group that is written: what its products read instead. */
void pl_narrowing_swap(pl_kernel_narrowing *own, int32_t group);
void pl_narrowing_swap_back(pl_kernel_narrowing *own);

#endif
