/* Which layouts an op allows: the one rule of ir_table.h, per axis of the mesh. */
#ifndef PL_WORKLOADS_IR_LAYOUT_H
#define PL_WORKLOADS_IR_LAYOUT_H

#include "workloads/language/ir_table.h"

/* One way for an op to lie along one axis. */
typedef struct pl_ir_way {
  int8_t kind;    /* PL_IR_SAME, PL_IR_PARTIAL, or 0: cut on `dim` */
  int8_t partial; /* PARTIAL of an op that is linear in one input: that; -1: all (JOINT) */
  pl_ir_name dim; /* as the inputs call it; a new one of the outputs */
} pl_ir_way;

enum { PL_IR_WAYS_MAX = 2 * PL_IR_RANK_MAX + 8 };
/* All ways of this op, whole types of its operands given. Returns how many. A way to cut a dimension is there whether
 * or not the axis divides its extent. */
int32_t pl_ir_ways_of(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs,
                      pl_ir_way ways[PL_IR_WAYS_MAX]);
/* What a way means for operands along an axis: `on` of each input and each output. */
void pl_ir_way_apply(const pl_ir_op *op, const pl_ir_way *way, const pl_ir_type *inputs, const pl_ir_type *outputs,
                     int8_t *inputs_on, int8_t *outputs_on);
/* Layouts of inputs and outputs are one of the ways along every axis. The message names axis, operand and what would
 * do; the caller adds the place. */
pl_code pl_ir_layout_check(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *inputs,
                           const pl_ir_type *outputs, pl_error *error);
/* The same along one axis, by the one rule, whatever the row's `layout` says. */
pl_code pl_ir_layout_check_axis(const pl_ir_mesh *mesh, const pl_ir_op *op, int32_t axis, const pl_ir_type *inputs,
                                const pl_ir_type *outputs, pl_error *error);

#endif
