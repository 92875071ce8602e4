/* What the derivative of an op is written with (rows' `derive`; derive/differentiate drives it): gradients of the
 * outputs come in, gradients of the inputs go out, ops are appended to the backward function. */
#ifndef PL_WORKLOADS_IR_DIFFER_H
#define PL_WORKLOADS_IR_DIFFER_H

#include "workloads/language/ir_table.h"

typedef struct pl_ir_differ {
  pl_ir_module *module;
  const pl_ir_function *forward;
  pl_ir_function *backward;
  int32_t *gradients; /* per value of `forward`: its gradient so far in `backward`, PL_IR_NONE = none yet */
  int32_t *seen;      /* per value of `forward`: the same value in `backward` (kept, or made again); PL_IR_NONE */
  /* The value of `forward` as `backward` reads it: asks for it to be kept, or made again, when first asked. */
  int32_t (*see)(struct pl_ir_differ *differ, int32_t value);
  void *context; /* of `see` */
} pl_ir_differ;

/* Gradient of output k of `op`; PL_IR_NONE: nothing depends on it. */
int32_t pl_ir_differ_gradient(const pl_ir_differ *differ, const pl_ir_op *op, int32_t k);
/* The forward value as the backward function has it. */
int32_t pl_ir_differ_value(pl_ir_differ *differ, int32_t value);
/* Whether anything wants the gradient of input k: integers and data do not. */
bool pl_ir_differ_wants(const pl_ir_differ *differ, const pl_ir_op *op, int32_t k);
/* Adds to the gradient of input k of `op`, in whatever order its dimensions are. */
void pl_ir_differ_give(pl_ir_differ *differ, const pl_ir_op *op, int32_t k, int32_t gradient);
/* An op in the backward function with the inferred types of its outputs; returns its first output. `name` is that of
 * the output. */
int32_t pl_ir_differ_op(pl_ir_differ *differ, const char *row, const char *name, int32_t n_inputs,
                        const int32_t *inputs, int32_t n_attributes, const pl_ir_attribute *attributes);

#endif
