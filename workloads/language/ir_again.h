/* What a backward function makes again: forward values, which no gradient that it is handed has part in. */
#ifndef PL_WORKLOADS_IR_AGAIN_H
#define PL_WORKLOADS_IR_AGAIN_H

#include "workloads/language/ir_module.h"

/* Per op, from the arena: it makes a forward value again. Of a function that is handed no gradients none does, nor an
 * op that reads nothing (parameters, data, what was kept). NULL: no memory. O(ops). */
const bool *pl_ir_again_take(const pl_ir_function *function, pl_arena *arena);
/* Whether it was derived from another: it reads what that one kept, or adds to gradients of parameters, which no
 * forward function does. Said by its ops, so that a program that is read from text says it too. O(ops). */
bool pl_ir_is_derived(const pl_ir_function *function);
/* The forward function of a backward one, by name: @f of @f.backward and @f.weights; NULL: there is none. */
const pl_ir_function *pl_ir_forward_of(const pl_ir_module *module, const char *name);
/* pl_ir_again_take of a function that may be none: of one that was not derived no op makes anything again. */
const bool *pl_ir_again_take_if_derived(const pl_ir_function *function, pl_arena *arena);

#endif
