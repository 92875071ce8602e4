/* Values of what goes element by element, and of sums and maxima over dimensions (ir_rows_pointwise.c). */
#ifndef PL_WORKLOADS_IR_POINTWISE_H
#define PL_WORKLOADS_IR_POINTWISE_H

#include "workloads/language/ir_table.h"

/* y = f(a). */
pl_code pl_ir_map(const pl_ir_computing *computing, double (*f)(double a));
/* y = f(a, b), b spread along the dimensions that it lacks. */
pl_code pl_ir_map_two(const pl_ir_computing *computing, double (*f)(double a, double b), pl_error *error);
/* y = f(... f(first, a1) ..., an) over the dimensions `over`. */
pl_code pl_ir_reduce(const pl_ir_computing *computing, double (*f)(double a, double b), double first, pl_error *error);
/* y = a in the order of y, spread along the dimensions that it lacks. */
pl_code pl_ir_compute_spread(const pl_ir_computing *computing, pl_error *error);
/* y = a as it lies. */
pl_code pl_ir_compute_copy(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_scale(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_dropout(const pl_ir_computing *computing, pl_error *error);

double pl_ir_gelu(double a);
double pl_ir_gelu_backward(double a, double dy);
double pl_ir_exact_gelu(double a);
double pl_ir_exact_gelu_backward(double a, double dy);
double pl_ir_silu(double a);
double pl_ir_silu_backward(double a, double dy);
double pl_ir_sigmoid(double a);
double pl_ir_sigmoid_backward(double y, double dy); /* of the output */
double pl_ir_softplus(double a);
double pl_ir_softplus_backward(double a, double dy);
double pl_ir_hard_sigmoid(double a);
double pl_ir_hard_sigmoid_backward(double a, double dy);
double pl_ir_hard_swish(double a);
double pl_ir_hard_swish_backward(double a, double dy);

/* Derivatives; `again` is that of scale and dropout. */
pl_code pl_ir_derive_add(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
pl_code pl_ir_derive_subtract(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
pl_code pl_ir_derive_multiply(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
pl_code pl_ir_derive_divide(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
pl_code pl_ir_derive_again(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
pl_code pl_ir_derive_sum(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
pl_code pl_ir_derive_cast(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
pl_code pl_ir_derive_spread(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
pl_code pl_ir_derive_rename(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
pl_code pl_ir_derive_gelu(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
pl_code pl_ir_derive_silu(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
pl_code pl_ir_derive_sigmoid(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
pl_code pl_ir_derive_softplus(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
pl_code pl_ir_derive_hard_sigmoid(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
pl_code pl_ir_derive_hard_swish(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
pl_code pl_ir_derive_relu(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
pl_code pl_ir_derive_tanh(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
pl_code pl_ir_derive_exp(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
pl_code pl_ir_derive_log(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
pl_code pl_ir_derive_reciprocal(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);

#endif
