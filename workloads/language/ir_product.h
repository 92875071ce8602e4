/* The shape of a matrix product: `batch` times [m, k] and [k, n]. */
#ifndef PL_WORKLOADS_IR_PRODUCT_H
#define PL_WORKLOADS_IR_PRODUCT_H

#include "workloads/language/ir_module.h"

/* Attributes: the element type that operands are multiplied in, and that of the result. */
#define PL_IR_PRODUCT_NARROW "narrow"
#define PL_IR_PRODUCT_AS     "as"

/* What a product is computed in: what `narrow` says, else its operands' type. */
pl_ir_element pl_ir_product_element(const pl_ir_op *op, const pl_ir_type *first);

typedef struct pl_ir_product {
  int64_t batch;   /* dimensions of both operands that stay */
  int64_t m, n;    /* those of the first alone, of the second alone */
  int64_t k;       /* those summed over */
  bool transposed; /* what is summed over lies outermost in the first operand: a weight gradient reads its input so */
} pl_ir_product;

/* Of an op `product` on operands of these types: local ones give the shape of what a device computes. */
pl_ir_product pl_ir_product_of(const pl_ir_op *op, const pl_ir_type *first, const pl_ir_type *second);

#endif
