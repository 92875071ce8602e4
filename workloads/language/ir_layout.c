/* See workloads/language/ir_layout.h. */
#include "workloads/language/ir_layout.h"

#include <string.h>

static bool knows(const pl_ir_way *ways, int32_t n, pl_ir_name dim) {
  for (int32_t i = 0; i < n; i++)
    if (ways[i].kind == 0 && pl_ir_name_equal(ways[i].dim, dim)) return true;
  return false;
}

static bool is_opaque(const pl_ir_row *row, const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_name dim) {
  return row->opaque != NULL && row->opaque(op, inputs, dim);
}

/* What the outputs call it. */
static pl_ir_name outside(const pl_ir_op *op, pl_ir_name dim) {
  const pl_ir_row *row = pl_ir_row_at(op->row);
  return row->called != NULL ? row->called(op, dim) : dim;
}

static bool is_missing(const pl_ir_op *op, const pl_ir_type *outputs, pl_ir_name dim) {
  for (int32_t i = 0; i < op->n_outputs; i++)
    if (pl_ir_type_find(&outputs[i], outside(op, dim)) < 0) return true;
  return false;
}

/* Dimensions that an op was asked about, and that nothing may cut; as many as there is room for. */
typedef struct opaque_dims {
  pl_ir_name dims[PL_IR_RANK_MAX];
  int32_t n;
} opaque_dims;

static bool is_known_opaque(opaque_dims *known, const pl_ir_row *row, const pl_ir_op *op, const pl_ir_type *inputs,
                            pl_ir_name dim) {
  if (row->opaque == NULL) return false;
  for (int32_t i = 0; i < known->n; i++)
    if (pl_ir_name_equal(known->dims[i], dim)) return true;
  if (!is_opaque(row, op, inputs, dim)) return false;
  if (known->n < PL_IR_RANK_MAX) known->dims[known->n++] = dim;
  return true;
}

static void add_cut(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs, pl_ir_name dim,
                    opaque_dims *opaque, pl_ir_way *ways, int32_t *n) {
  const pl_ir_row *row = pl_ir_row_at(op->row);
  if (*n >= PL_IR_WAYS_MAX || knows(ways, *n, dim) || is_known_opaque(opaque, row, op, inputs, dim)) return;
  if (row->missing == PL_IR_MISSING_NONE && is_missing(op, outputs, dim)) return;
  ways[(*n)++] = (pl_ir_way){.kind = 0, .dim = dim};
}

/* A dimension that the op makes, and not an input's under the name that the outputs have for it. */
static bool is_new(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_name dim) {
  for (int32_t i = 0; i < op->n_inputs; i++)
    for (int32_t j = 0; j < inputs[i].rank; j++)
      if (pl_ir_name_equal(outside(op, inputs[i].dims[j].name), dim)) return false;
  return true;
}

/* Which inputs of an op that is linear in one at a time may be partial sums. */
static bool is_linear_in(const pl_ir_row *row, const pl_ir_op *op, int32_t input) {
  return row->linear == PL_IR_LINEAR_EACH || (row->linear == PL_IR_LINEAR_FIRST && input == 0) ||
         (row->linear == PL_IR_LINEAR_LAST && input == op->n_inputs - 1);
}

int32_t pl_ir_ways_of(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs,
                      pl_ir_way ways[PL_IR_WAYS_MAX]) {
  const pl_ir_row *row = pl_ir_row_at(op->row);
  opaque_dims opaque;
  int32_t n = 0;
  opaque.n = 0;
  ways[n++] = (pl_ir_way){.kind = PL_IR_SAME};
  if (row->linear == PL_IR_LINEAR_JOINT && op->n_inputs > 0)
    ways[n++] = (pl_ir_way){.kind = PL_IR_PARTIAL, .partial = -1};
  for (int32_t i = 0; i < op->n_inputs && n < PL_IR_WAYS_MAX; i++)
    if (is_linear_in(row, op, i) && pl_ir_element_is_number((pl_ir_element)inputs[i].element))
      ways[n++] = (pl_ir_way){.kind = PL_IR_PARTIAL, .partial = (int8_t)i};
  for (int32_t i = 0; i < op->n_inputs; i++)
    for (int32_t j = 0; j < inputs[i].rank; j++)
      add_cut(op, inputs, outputs, inputs[i].dims[j].name, &opaque, ways, &n);
  for (int32_t i = 0; i < op->n_outputs; i++)
    for (int32_t j = 0; j < outputs[i].rank; j++)
      if (is_new(op, inputs, outputs[i].dims[j].name))
        add_cut(op, inputs, outputs, outputs[i].dims[j].name, &opaque, ways, &n);
  return n;
}

void pl_ir_way_apply(const pl_ir_op *op, const pl_ir_way *way, const pl_ir_type *inputs, const pl_ir_type *outputs,
                     int8_t *inputs_on, int8_t *outputs_on) {
  const pl_ir_row *row = pl_ir_row_at(op->row);
  int8_t missing = row->missing == PL_IR_MISSING_MAXIMUM ? PL_IR_MAXIMUM : PL_IR_PARTIAL;
  for (int32_t i = 0; i < op->n_inputs; i++) {
    int32_t dim = way->kind == 0 ? pl_ir_type_find(&inputs[i], way->dim) : -1;
    bool partial = way->kind == PL_IR_PARTIAL && (way->partial < 0 || way->partial == i);
    inputs_on[i] = dim >= 0 ? (int8_t)dim : partial ? PL_IR_PARTIAL : PL_IR_SAME;
  }
  for (int32_t i = 0; i < op->n_outputs; i++) {
    int32_t dim = way->kind == 0 ? pl_ir_type_find(&outputs[i], outside(op, way->dim)) : -1;
    outputs_on[i] = dim >= 0                     ? (int8_t)dim
                    : way->kind == 0             ? missing
                    : way->kind == PL_IR_PARTIAL ? PL_IR_PARTIAL
                                                 : PL_IR_SAME;
  }
}

static const char *layout_text(const pl_ir_type *type, int8_t on) {
  return on == PL_IR_SAME      ? "the same"
         : on == PL_IR_PARTIAL ? "a partial sum"
         : on == PL_IR_MAXIMUM ? "a partial maximum"
                               : type->dims[on].name.text;
}

/* How many operands lie along `axis` as this way has them. */
static int32_t agreement(const pl_ir_op *op, const pl_ir_way *way, int32_t axis, const pl_ir_type *inputs,
                         const pl_ir_type *outputs, int32_t *first_other) {
  int8_t inputs_on[PL_IR_OPERANDS_MAX] = {0}, outputs_on[PL_IR_OPERANDS_MAX] = {0};
  pl_ir_way_apply(op, way, inputs, outputs, inputs_on, outputs_on);
  int32_t n = 0;
  *first_other = -1;
  for (int32_t i = 0; i < op->n_inputs + op->n_outputs; i++) {
    bool input = i < op->n_inputs;
    int8_t is = input ? inputs[i].on[axis] : outputs[i - op->n_inputs].on[axis];
    int8_t should = input ? inputs_on[i] : outputs_on[i - op->n_inputs];
    if (is == should) {
      n++;
    } else if (*first_other < 0) {
      *first_other = i;
    }
  }
  return n;
}

static pl_code check_axis(const pl_ir_mesh *mesh, const pl_ir_op *op, int32_t n, const pl_ir_way *ways, int32_t axis,
                          const pl_ir_type *inputs, const pl_ir_type *outputs, pl_error *error) {
  int32_t best = 0, most = -1, other = -1;
  for (int32_t i = 0; i < n; i++) {
    int32_t differs, same = agreement(op, &ways[i], axis, inputs, outputs, &differs);
    if (same == op->n_inputs + op->n_outputs) return PL_OK;
    if (same > most) most = same, best = i, other = differs;
  }
  int8_t inputs_on[PL_IR_OPERANDS_MAX] = {0}, outputs_on[PL_IR_OPERANDS_MAX] = {0};
  pl_ir_way_apply(op, &ways[best], inputs, outputs, inputs_on, outputs_on);
  bool input = other < op->n_inputs;
  int32_t k = input ? other : other - op->n_inputs;
  const pl_ir_type *type = input ? &inputs[k] : &outputs[k];
  const char *is = layout_text(type, type->on[axis]), *should = layout_text(type, input ? inputs_on[k] : outputs_on[k]);
  return pl_fail(error, PL_BAD_INPUT, "%s %d of %s is %s%s along axis %s, where the others need %s%s",
                 input ? "operand" : "result", k + 1, pl_ir_row_at(op->row)->name, type->on[axis] >= 0 ? "cut on " : "",
                 is, mesh->axes[axis].name.text,
                 (input ? inputs_on[k] : outputs_on[k]) >= 0 ? "it cut on " : "it to be ", should);
}

pl_code pl_ir_layout_check_axis(const pl_ir_mesh *mesh, const pl_ir_op *op, int32_t axis, const pl_ir_type *inputs,
                                const pl_ir_type *outputs, pl_error *error) {
  pl_ir_way ways[PL_IR_WAYS_MAX];
  return check_axis(mesh, op, pl_ir_ways_of(op, inputs, outputs, ways), ways, axis, inputs, outputs, error);
}

pl_code pl_ir_layout_check(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *inputs,
                           const pl_ir_type *outputs, pl_error *error) {
  const pl_ir_row *row = pl_ir_row_at(op->row);
  if (row->layout != NULL) return row->layout(mesh, op, inputs, outputs, error);
  PL_ASSERT(op->n_inputs <= PL_IR_OPERANDS_MAX && op->n_outputs <= PL_IR_OPERANDS_MAX);
  pl_ir_way ways[PL_IR_WAYS_MAX];
  int32_t n = mesh->n_axes > 0 ? pl_ir_ways_of(op, inputs, outputs, ways) : 0; /* the same along every axis */
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    PL_TRY(check_axis(mesh, op, n, ways, axis, inputs, outputs, error));
  return PL_OK;
}
