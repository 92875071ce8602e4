/* Rows of ops with state: what a device holds besides the values of a function. The executor has their values. */
#include <inttypes.h>
#include <string.h>

#include "workloads/language/ir_operands.h"
#include "workloads/language/ir_piece.h"
#include "workloads/language/ir_place.h"

/* What is held is cut or the same: a parameter that is a sum of terms would be no parameter. */
static pl_code held(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs,
                    pl_error *error) {
  const pl_ir_type *type = op->n_inputs > 0 ? &inputs[0] : &outputs[0];
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (type->on[axis] == PL_IR_PARTIAL || type->on[axis] == PL_IR_MAXIMUM)
      return pl_fail(error, PL_BAD_INPUT, "%s of %s is a partial %s along axis %s: it can only be cut or the same",
                     op->n_inputs > 0 ? "operand 1" : "the result", pl_ir_op_name(op),
                     type->on[axis] == PL_IR_PARTIAL ? "sum" : "maximum", mesh->axes[axis].name.text);
  return PL_OK;
}

/* Sums of terms may be added up behind the op: the gradient buffer, the loss. */
static pl_code summed(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs,
                      pl_error *error) {
  const pl_ir_type *type = op->n_inputs > 0 ? &inputs[0] : &outputs[0];
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (type->on[axis] == PL_IR_MAXIMUM)
      return pl_fail(error, PL_BAD_INPUT, "%s of %s is a partial maximum along axis %s: all_reduce it before",
                     op->n_inputs > 0 ? "operand 1" : "the result", pl_ir_op_name(op), mesh->axes[axis].name.text);
  return PL_OK;
}

/* As it is written: what is kept may lie anyhow; a call's operands are compared with the callee's where the module is
 * checked. */
static pl_code anyhow(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs,
                      pl_error *error) {
  (void)mesh, (void)op, (void)inputs, (void)outputs, (void)error;
  return PL_OK;
}

static pl_code number_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  (void)outputs;
  return pl_ir_operand_is_number(op, inputs, 0, error);
}

static pl_code written_number_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs,
                                    pl_error *error) {
  (void)inputs;
  pl_ir_element element = (pl_ir_element)outputs[0].element;
  if (pl_ir_element_is_number(element)) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "the result of %s is written as %s: it needs to be a number to compute with",
                 pl_ir_op_name(op), pl_ir_element_name(element));
}

static pl_code input_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  (void)inputs;
  if (outputs[0].element != PL_IR_BIT) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "the result of %s is written as bit: data are numbers to compute with, or i32",
                 pl_ir_op_name(op));
}

/* Where it lies: on the device, or in the memory of its host. */
static pl_code place_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  const char *place = pl_ir_text_of(op, PL_IR_PLACE);
  (void)inputs, (void)outputs;
  if (place[0] == 0 || strcmp(place, PL_IR_PLACE_HOST) == 0) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "in=\"%.32s\" of %s: it lies on the device, or in=\"host\"", place,
                 pl_ir_op_name(op));
}

static pl_code state_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(place_infer(op, inputs, outputs, error));
  return written_number_infer(op, inputs, outputs, error);
}

static pl_code placed_number_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(place_infer(op, inputs, outputs, error));
  return number_infer(op, inputs, outputs, error);
}

static pl_code loss_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  char text[PL_IR_SHAPE_TEXT_BYTES];
  (void)outputs;
  PL_TRY(pl_ir_operand_is_number(op, inputs, 0, error));
  if (inputs[0].rank == 0) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "operand 1 of loss is %s, and a loss is one number: sum over its dimensions",
                 pl_ir_shape_text(&inputs[0], text));
}

#define PLACE                                                                                                          \
  { PL_IR_PLACE, PL_IR_TEXT, false, "host: in the memory of the device's host, not on the device" }

const pl_ir_row pl_ir_rows_state[] = {
    {.name = "input",
     .meaning = "data of the iteration: this microbatch's part of tokens, targets, positions or pictures",
     .n_outputs = 1,
     .has_path = true,
     .typed = true,
     .effect = PL_IR_READS,
     .attributes = {{"below", PL_IR_INTEGER, false, "integers of it are 0 to this less one"},
                    {"distance", PL_IR_INTEGER, false,
                     "of buckets of distances: from which on all are in the last one"},
                    {"zigzag", PL_IR_INTEGER, false, "context ranks whose order of chunks the sequence is in; 1"}},
     .layout = held,
     .infer = input_infer,
     .flops = pl_ir_no_flops},
    {.name = "param",
     .meaning = "the weight of this path",
     .n_outputs = 1,
     .has_path = true,
     .typed = true,
     .effect = PL_IR_READS,
     .infer = written_number_infer,
     .layout = held,
     .flops = pl_ir_no_flops},
    {.name = "keep",
     .launches = PL_IR_LAUNCHES_NOTHING,
     .meaning = "keeps a for the backward function of the same instance and microbatch",
     .least_inputs = 1,
     .most_inputs = 1,
     .has_path = true,
     .effect = PL_IR_WRITES,
     .attributes = {PLACE},
     .infer = place_infer,
     .layout = anyhow,
     .flops = pl_ir_no_flops},
    {.name = "kept",
     .meaning = "what the forward function of the same instance and microbatch kept",
     .n_outputs = 1,
     .has_path = true,
     .typed = true,
     .effect = PL_IR_READS,
     .attributes = {PLACE},
     .infer = place_infer,
     .layout = anyhow,
     .flops = pl_ir_no_flops},
    {.name = "call",
     .meaning = "results of the function for these arguments, its paths behind the instance's",
     .most_inputs = -1,
     .n_outputs = -1,
     .has_path = true,
     .typed = true,
     .effect = PL_IR_CALLS,
     .attributes = {{PL_IR_PIECE, PL_IR_INTEGER, false, "which piece of the samples it runs on, from 0"},
                    {PL_IR_PIECES, PL_IR_INTEGER, false, "how many pieces there are; 1"}},
     .layout = anyhow,
     .flops = pl_ir_no_flops},
    {.name = "kernel",
     .meaning = "results of the function for these arguments, whose ops are launched as one kernel",
     .most_inputs = -1,
     .n_outputs = -1,
     .has_path = true,
     .typed = true,
     .effect = PL_IR_CALLS,
     .layout = anyhow,
     .flops = pl_ir_no_flops},
    {.name = "accumulate",
     .meaning = "gradient buffer of the parameter += a",
     .least_inputs = 1,
     .most_inputs = 1,
     .has_path = true,
     .effect = PL_IR_WRITES,
     .attributes = {PLACE},
     .infer = placed_number_infer,
     .layout = summed,
     .flops = pl_ir_flops_of_first},
    {.name = "gradient",
     .meaning = "the gradient buffer of the parameter: sum over the microbatches of this iteration",
     .n_outputs = 1,
     .has_path = true,
     .typed = true,
     .effect = PL_IR_READS,
     .attributes = {PLACE},
     .infer = state_infer,
     .layout = summed,
     .flops = pl_ir_no_flops},
    {.name = "state",
     .meaning = "optimizer state of the parameter, zero in the first iteration",
     .n_outputs = 1,
     .has_path = true,
     .typed = true,
     .effect = PL_IR_READS,
     .attributes = {{"slot", PL_IR_TEXT, true, "which state: m, v"}, PLACE},
     .infer = state_infer,
     .layout = held,
     .flops = pl_ir_no_flops},
    {.name = "store",
     .launches = PL_IR_LAUNCHES_NOTHING,
     .meaning = "parameter, or its state, = a from the next iteration on",
     .least_inputs = 1,
     .most_inputs = 1,
     .has_path = true,
     .effect = PL_IR_WRITES,
     .attributes = {{"slot", PL_IR_TEXT, false, "which state; without it the parameter"}},
     .infer = number_infer,
     .layout = held,
     .flops = pl_ir_no_flops},
    {.name = "loss",
     .launches = PL_IR_LAUNCHES_NOTHING,
     .meaning = "loss of the iteration += a",
     .least_inputs = 1,
     .most_inputs = 1,
     .effect = PL_IR_WRITES,
     .infer = loss_infer,
     .layout = summed,
     .flops = pl_ir_flops_of_first},
    {.name = NULL}};
_Static_assert(sizeof pl_ir_rows_state / sizeof pl_ir_rows_state[0] == PL_IR_N_ROWS_STATE + 1, "as ir_table.h counts");
