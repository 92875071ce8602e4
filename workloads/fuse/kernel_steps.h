/* What a framework launches besides the ops of a program, or in more steps than the program has: casts of gradients to
 * the type of their buffers and of their reduction, norms in PyTorch ops, the loss's division. A program in, the same
 * with these ops out: functions keep their places. Internal to workloads/fuse/kernel*.c. */
#ifndef PL_WORKLOADS_KERNEL_STEPS_H
#define PL_WORKLOADS_KERNEL_STEPS_H

#include "workloads/fuse/kernels.h"
#include "workloads/language/ir_table.h"

pl_code pl_kernel_steps(const pl_ir_module *module, const pl_kernels_options *options, pl_arena *arena,
                        pl_ir_module *made, pl_error *error);

/* Per function: its ops, values and results that somebody asks for. */
typedef struct pl_kernel_live {
  bool **op, **value, **result;
} pl_kernel_live;

/* `whole`: results of functions that nothing calls are asked for. False: no memory. kernel_live.c */
bool pl_kernel_live_take(const pl_ir_module *module, bool whole, pl_arena *scratch, pl_kernel_live *live);

/* An activation that is made again of what is kept anyhow. */
typedef struct pl_kernel_remade {
  const pl_ir_op *op, *keep; /* of the forward function: the activation, and what keeps its operand */
  const pl_ir_type *type;
  const pl_ir_op *times; /* of experts, whose gated activation is weighted by the same kernel: what keeps the other
                            factor, NULL: the activation alone is made again */
} pl_kernel_remade;

/* Whether what `keep` of f keeps is one; and what `kept` of a backward function f reads. kernel_remade.c */
bool pl_kernel_is_remade(const pl_ir_function *f, const pl_ir_op *keep, pl_kernel_remade *made);
/* The same of an activation that is squared by its kernel, whose operand is kept in its place. */
bool pl_kernel_is_squared(const pl_ir_function *f, const pl_ir_op *keep, pl_kernel_remade *made);
bool pl_kernel_squared_of(const pl_ir_module *module, const pl_ir_function *f, const pl_ir_op *kept,
                          pl_kernel_remade *made);
bool pl_kernel_remade_of(const pl_ir_module *module, const pl_ir_function *f, const pl_ir_op *kept,
                         pl_kernel_remade *made);

/* Whether what `keep` of forward function f keeps is the fp32 copy that a norm in steps works on, because nothing but
 * its derivative reads it; and of what `kept` of a backward function reads. kernel_remade.c */
bool pl_kernel_keeps_wide(const pl_ir_module *module, const pl_ir_function *f, const pl_ir_op *keep);
bool pl_kernel_kept_is_wide(const pl_ir_module *module, const pl_ir_function *f, const pl_ir_op *kept);

/* The exponentials of a vocabulary's loss in one kernel, which it makes again of the logits and the greatest of each
 * token instead of writing and reading them: exp(logits - greatest). */
typedef struct pl_kernel_exponentials {
  const pl_ir_function *forward;
  const pl_ir_op *cast, *subtract, *exp; /* cast: of logits that are read in 16 bits, else NULL */
  int32_t logits, greatest;              /* values of the forward function */
} pl_kernel_exponentials;

/* Whether what `keep` of f keeps are some; and what `kept` of a backward function f reads. `narrow`: logits are read as
 * their product has made them. kernel_remade.c */
bool pl_kernel_is_exponentials(const pl_ir_function *f, const pl_ir_op *keep, bool narrow,
                               pl_kernel_exponentials *made);
bool pl_kernel_exponentials_of(const pl_ir_module *module, const pl_ir_function *f, const pl_ir_op *kept, bool narrow,
                               pl_kernel_exponentials *made);

/* The function derived from @f whose name ends so; NULL: none. kernel_remade.c */
const pl_ir_function *pl_kernel_derived_of(const pl_ir_module *module, const pl_ir_function *f, const char *end);

/* `op` of `from` once more in `to`, operands by `map` (NULL: the same values), with another callee where it calls.
 * Returns its first output. */
int32_t pl_kernel_copy(pl_ir_module *module, pl_ir_function *to, const pl_ir_function *from, const pl_ir_op *op,
                       const int32_t *map, int32_t callee);

#endif
