/* What rows' `infer` is written with: do operands fit each other, and what shape comes out. Messages name the
 * dimension and both extents; the caller adds the place. */
#ifndef PL_WORKLOADS_IR_OPERANDS_H
#define PL_WORKLOADS_IR_OPERANDS_H

#include "workloads/language/ir_table.h"

const char *pl_ir_op_name(const pl_ir_op *op);
/* "[b=8, s=4]". */
enum { PL_IR_SHAPE_TEXT_BYTES = PL_IR_RANK_MAX * (PL_IR_NAME_MAX + 24) };
const char *pl_ir_shape_text(const pl_ir_type *type, char text[PL_IR_SHAPE_TEXT_BYTES]);

/* Operand `k` (from 0) is no i32. */
pl_code pl_ir_operand_is_number(const pl_ir_op *op, const pl_ir_type *inputs, int32_t k, pl_error *error);
/* Operand `k` is i32: ids, positions. */
pl_code pl_ir_operand_is_integer(const pl_ir_op *op, const pl_ir_type *inputs, int32_t k, pl_error *error);
/* All operands are numbers of one element type. */
pl_code pl_ir_operands_are_numbers(const pl_ir_op *op, const pl_ir_type *inputs, pl_error *error);
/* Dimensions that operands share have the same extent. */
pl_code pl_ir_operands_agree(const pl_ir_op *op, const pl_ir_type *inputs, pl_error *error);
/* Operand `of` has every dimension that operand `k` has. */
pl_code pl_ir_operand_is_within(const pl_ir_op *op, const pl_ir_type *inputs, int32_t k, int32_t of, pl_error *error);
/* Operands `a` and `b` have the same dimensions, in any order. */
pl_code pl_ir_operands_match(const pl_ir_op *op, const pl_ir_type *inputs, int32_t a, int32_t b, pl_error *error);
/* Operand `k` has every dimension that `attribute` names, and none is named twice. */
pl_code pl_ir_operand_has_names(const pl_ir_op *op, const pl_ir_type *inputs, int32_t k, const char *attribute,
                                pl_error *error);
/* The type that is written down has the same dimensions as `type`, in any order. */
pl_code pl_ir_written_matches(const pl_ir_op *op, const pl_ir_type *type, const pl_ir_type *written, pl_error *error);

/* For rows' `opaque`: the dimensions that `over` names. */
bool pl_ir_over_is_opaque(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_name dim);
/* For rows' `flops`: none; one an element of the first operand. */
double pl_ir_no_flops(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs);
double pl_ir_flops_of_first(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs);

/* The whole type: it lies nowhere yet. */
pl_ir_type pl_ir_type_whole(const pl_ir_type *type);
/* Whole, without the dimensions that `attribute` names. */
pl_ir_type pl_ir_type_without(const pl_ir_type *type, const pl_ir_op *op, const char *attribute);

pl_ir_type pl_ir_type_without_dim(const pl_ir_type *type, pl_ir_name dim);

/* `attribute` names one dimension. */
pl_code pl_ir_op_has_one_name(const pl_ir_op *op, const char *attribute, pl_error *error);
pl_ir_name pl_ir_one_name_of(const pl_ir_op *op, const char *attribute); /* which it is known to do */

#endif
