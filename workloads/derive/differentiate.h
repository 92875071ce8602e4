/* From a model program to a training program: backward functions by reverse-mode differentiation, what they need of the
 * forward pass kept or made again, gradients accumulated, an optimizer.
 *
 *   @layer            keeps what @layer.backward reads of it
 *   @layer.backward   arguments: gradients of its results; results: gradients of its arguments
 *   @layer.weights    where the backward pass is split: what only gradients of weights need (Qi et al. 2023, B and W)
 *   @layer.update     its weights' optimizer step
 *   @main, @main.backward, @main.weights, @update      call them by instance
 *
 * Nobody says what is kept: a value is kept exactly if a backward function reads it and does not make it again.
 * Parameters, data and what is only another name for a value are read again.
 */
#ifndef PL_WORKLOADS_DIFFERENTIATE_H
#define PL_WORKLOADS_DIFFERENTIATE_H

#include "workloads/ir/op.h"
#include "workloads/language/ir_module.h"

/* In the path of what a backward function keeps for the weights' pass. */
#define PL_BACKWARD_FOR_WEIGHTS "for_weights."

/* What a backward function makes again (pl_recompute of workloads/ir/op.h):
 *   none        nothing
 *   selective   the rows `selected`, where they are needed
 *   full        all ops but calls, in program order in front of everything else: arguments alone are kept. `whole`: up
 *               to the results, which nobody reads (checkpoints that run a block once more); else what is read,
 *               and up to the last dropout
 *   alternate   the same but for what pl_recompute_alternate keeps
 */
typedef struct pl_recompute_choice {
  const char *function; /* of the model program */
  uint8_t recompute;    /* pl_recompute */
  const uint8_t *ops;   /* per op of the function what is said of it alone (pl_recompute_of_op); NULL: nothing */
} pl_recompute_choice;

typedef struct pl_differentiate_options {
  bool sgd; /* else Adam, with fp32 states m and v */
  double rate, beta1, beta2, epsilon;
  bool splits_weights, whole, attends_again; /* attends_again: what `alternate` does with fused attention */
  int32_t n_choices;                         /* functions that are not named recompute nothing */
  const pl_recompute_choice *choices;
  const char *const *selected; /* names of rows; NULL ends them; NULL: attention, in one op or in steps */
} pl_differentiate_options;

/* Ops that are attention, in one or in steps, which `selective` makes again. `attends` is false, per op. */
void pl_recompute_find_attention(const pl_ir_function *function, bool *attends);

/* Which ops `alternate` makes again: torchtitan's selective checkpointing per op (activation_checkpoint.py,
 * _apply_op_sac, as of 2025). Matrix products of linear layers are counted as they are called, and every second one is
 * made again, from the second on; with them all else but fused attention, whose kernel may be on the list of what is
 * kept (`attention`: it is not). The class has one layer for expanded keys and values, one for the compressed form and
 * the rotated share (ir_latent.h); routers are made again and not counted (per_op_sac_force_recompute_mm_shapes_by_fqns
 * of its defaults), nor are the experts' grouped products, which are other ops than aten.mm. Gate and up projection are
 * two. Collectives are not known here: see workloads/lower/lower_recompute.c. */
void pl_recompute_alternate(const pl_ir_function *function, bool attention, bool *again);

/* Adam, rate 1e-3, 0.9, 0.999, 1e-8; no recomputation, no split. */
pl_differentiate_options pl_differentiate_defaults(void);

/* `training` is made in `arena` and shares nothing with `model`, which is at level model, with one class. PL_BAD_INPUT:
 * a choice names a function or a row that is not there, an op without a derivative stands where a gradient must pass.
 */
pl_code pl_ir_differentiate(const pl_ir_module *model, const pl_differentiate_options *options, pl_arena *arena,
                            pl_ir_module *training, pl_error *error);

/* The same of one function of `model` alone, whose classes are not looked at: `training` gets what it calls and itself,
 * with what they keep, and their backward functions. *backward: index in `training`, PL_IR_NONE: no gradient comes back
 * to it. */
pl_code pl_ir_differentiate_function(const pl_ir_module *model, int32_t function,
                                     const pl_differentiate_options *options, pl_arena *arena, pl_ir_module *training,
                                     int32_t *forward, int32_t *backward, pl_error *error);

#endif
