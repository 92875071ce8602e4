/* The row of masks. Equation: ir_mask.h. */
#include "workloads/language/ir_differ.h"
#include "workloads/language/ir_mask.h"
#include "workloads/language/ir_operands.h"

/* One dimension of the scores, not that of the other. */
static pl_code check_positions(const pl_ir_op *op, const pl_ir_type *inputs, int32_t k, pl_error *error) {
  PL_TRY(pl_ir_operand_is_integer(op, inputs, k, error));
  PL_TRY(pl_ir_operand_is_within(op, inputs, k, 0, error));
  if (inputs[k].rank == 1) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "operand %d of mask are positions: of one dimension, not of %d", k + 1,
                 inputs[k].rank);
}

static pl_code infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_operand_is_number(op, inputs, 0, error));
  PL_TRY(check_positions(op, inputs, 1, error));
  PL_TRY(check_positions(op, inputs, 2, error));
  if (pl_ir_name_equal(inputs[1].dims[0].name, inputs[2].dims[0].name))
    return pl_fail(error, PL_BAD_INPUT, "operands 2 and 3 of mask both count dimension '%s': queries and keys differ",
                   inputs[1].dims[0].name.text);
  if (pl_ir_attribute_find(op, "alibi") != NULL) PL_TRY(pl_ir_operand_has_names(op, inputs, 0, "alibi", error));
  outputs[0] = pl_ir_type_whole(&inputs[0]);
  return PL_OK;
}

/* What is not seen has no part in the gradient. */
static pl_code derive(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  int32_t dy = pl_ir_differ_gradient(differ, op, 0), n = 0;
  if (dy == PL_IR_NONE || !pl_ir_differ_wants(differ, op, 0)) return PL_OK;
  pl_ir_attribute attributes[4];
  for (int32_t i = 0; i < op->n_attributes; i++) {
    pl_ir_name name = op->attributes[i].name;
    if (pl_ir_name_equal(name, pl_ir_name_of("causal")) || pl_ir_name_equal(name, pl_ir_name_of("window")))
      attributes[n++] = op->attributes[i];
  }
  attributes[n++] = pl_ir_real("otherwise", 0);
  const int32_t inputs[] = {dy, pl_ir_differ_value(differ, op->inputs[1]), pl_ir_differ_value(differ, op->inputs[2])};
  pl_ir_differ_give(differ, op, 0, pl_ir_differ_op(differ, "mask", "da", 3, inputs, n, attributes));
  return PL_OK;
}

const pl_ir_row pl_ir_rows_mask[] = {
    {.name = "mask",
     .meaning = "a[s, t], less slope |s - t|, where the query at position s sees the key at t; else `otherwise`",
     .least_inputs = 3,
     .most_inputs = 3,
     .n_outputs = 1,
     .attributes =
         {{.name = "causal", .kind = PL_IR_INTEGER, .meaning = "1: a query sees keys of positions up to its own"},
          {.name = "window", .kind = PL_IR_INTEGER, .meaning = "sees keys fewer positions away than this; 0: all"},
          {.name = "otherwise", .kind = PL_IR_REAL, .meaning = "where it sees none; -1e9"},
          {.name = "alibi",
           .kind = PL_IR_NAMES,
           .meaning = "dimensions that count heads: scores fall with the distance"},
          {.name = "slope", .kind = PL_IR_REAL, .meaning = "factor of the slopes of alibi; 1"}},
     .infer = infer,
     .compute = pl_ir_compute_mask,
     .derive = derive},
    {.name = NULL}};
_Static_assert(sizeof pl_ir_rows_mask / sizeof pl_ir_rows_mask[0] == PL_IR_N_ROWS_MASK + 1, "as ir_table.h counts");
