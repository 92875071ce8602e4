/* What a backward function makes again: forward values, which no gradient that it is handed has part in. */
#ifndef PL_WORKLOADS_IR_AGAIN_H
#define PL_WORKLOADS_IR_AGAIN_H

#include "workloads/language/ir_module.h"

/* Per op, from the arena: it makes a forward value again. Of a function that is handed no gradients none does, nor an
 * op that reads nothing (parameters, data, what was kept). NULL: no memory. O(ops). */
const bool *pl_ir_again_take(const pl_ir_function *function, pl_arena *arena);
/* The same of a function that may be none: without ops that were derived from others none makes anything again. */
const bool *pl_ir_again_take_if_derived(const pl_ir_function *function, pl_arena *arena);

#endif
