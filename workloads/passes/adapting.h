/* What the files of adapting share: a function on its way to another way of saying it. Internal to workloads/passes. */
#ifndef PL_WORKLOADS_ADAPTING_H
#define PL_WORKLOADS_ADAPTING_H

#include "workloads/derive/rewrite.h"
#include "workloads/passes/adapt.h"

/* Into how many parts axes that activations are cut on take dimension `dim` of a value of this type. */
int32_t pl_adapting_parts(const pl_layout_rules *rules, const pl_ir_type *type, pl_ir_name dim);
/* "y_parts" of y: the new dimension. */
pl_ir_name pl_adapting_parts_name(pl_ir_name dim);
/* `type` with the dimension at `at` as two: `outer`, and `inner` in its place. */
void pl_adapting_split_type(pl_ir_type *type, int32_t at, pl_ir_dim outer, pl_ir_dim inner);
/* Dimensions `outer` and `inner` of a value as `to`. */
int32_t pl_adapting_join(pl_rewriting *own, const char *name, int32_t value, pl_ir_name outer, pl_ir_name inner,
                         pl_ir_name to);

/* adapt_norms.c: parts that the op's pictures are normalised in; 1: as it stands. */
int32_t pl_adapt_norm_parts(const pl_ir_function *function, const pl_ir_op *op, int32_t replicas);
bool pl_adapt_is_norm(const pl_ir_op *op);
void pl_adapt_norm(pl_rewriting *own, const pl_ir_op *op, int32_t groups);

/* adapt_windows.c: whether some dimension that the op's windows slide over is taken apart; and the op so. */
bool pl_adapt_has_halo(const pl_ir_function *function, const pl_ir_op *op, const pl_layout_rules *rules);
void pl_adapt_windows(pl_rewriting *own, const pl_ir_op *op, const pl_layout_rules *rules);

#endif
