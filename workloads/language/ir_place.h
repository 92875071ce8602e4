/* Where what is kept, and the state of the optimizer, lies: attribute `in` of keep, kept and state. What the program
 * computes does not depend on it; time and memory do. */
#ifndef PL_WORKLOADS_IR_PLACE_H
#define PL_WORKLOADS_IR_PLACE_H

#include <string.h>

#include "workloads/language/ir_module.h"

#define PL_IR_PLACE      "in"
#define PL_IR_PLACE_HOST "host"

static inline bool pl_ir_op_is_in_host(const pl_ir_op *op) {
  return strcmp(pl_ir_text_of(op, PL_IR_PLACE), PL_IR_PLACE_HOST) == 0;
}

#endif
