/* Attention in steps: a product that weighs values by a softmax of scores, as it stands in a function. Where a
 * framework has a fused kernel it is one op, `attention` (ir_attention.h). */
#ifndef PL_WORKLOADS_IR_CORE_H
#define PL_WORKLOADS_IR_CORE_H

#include "workloads/language/ir_module.h"

/* Ops, the last first; PL_IR_NONE: there is none of this. */
typedef struct pl_ir_core {
  int32_t context; /* product of probabilities and values */
  int32_t dropout, softmax;
  int32_t added; /* what is added to the scores is its operand 1 */
  int32_t mask, scale;
  int32_t scores; /* product of queries and keys */
} pl_ir_core;

/* Whether op `context` is the last step of one. O(1). */
bool pl_ir_core_find(const pl_ir_function *function, int32_t context, pl_ir_core *core);
/* Whether `op` is one of its steps. */
bool pl_ir_core_has(const pl_ir_core *core, int32_t op);
/* Queries, keys and values of attention whose last or only op `op` is, fused, a ring or in steps. False: it is none. */
bool pl_ir_core_operands(const pl_ir_function *function, int32_t op, int32_t operands[3]);

#endif
