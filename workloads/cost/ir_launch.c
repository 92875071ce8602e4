/* See workloads/cost/ir_launch.h. */
#include "workloads/cost/ir_launch.h"

#include <string.h>

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

pl_ir_launch pl_ir_launch_of(const pl_ir_module *module, const pl_ir_routing *routing, const pl_ir_function *function,
                             const pl_ir_op *op) {
  const pl_ir_launched_ops ops = pl_ir_launched_by(module, function, op);
  pl_ir_launch own = {.mesh = &module->mesh, .routing = routing, .f = ops.f, .ops = ops.ops, .n_ops = ops.n};
  if (ops.ops != op) {
    own.n_inputs = own.f->n_arguments;
    for (int32_t i = 0; i < own.n_inputs; i++)
      own.inputs[i] = i;
    own.n_outputs = own.f->n_results;
    for (int32_t i = 0; i < own.n_outputs; i++)
      own.results[i] = own.f->results[i];
    return own;
  }
  for (int32_t i = 0; i < op->n_inputs; i++) {
    bool known = false; /* what is read twice is there */
    for (int32_t k = 0; k < own.n_inputs; k++)
      known = known || own.inputs[k] == op->inputs[i];
    if (!known) own.inputs[own.n_inputs++] = op->inputs[i];
  }
  own.n_outputs = op->n_outputs;
  for (int32_t i = 0; i < op->n_outputs; i++)
    own.results[i] = op->first_output + i;
  return own;
}

/* ---- traffic ---- */

/* What is read of a border value: all of it, or the rows or elements that are looked up. */
static double read_bytes(const pl_ir_launch *own, int32_t value) {
  double picked = 0;
  bool whole = false, any = false;
  for (int32_t i = 0; i < own->n_ops; i++) {
    const pl_ir_op *op = &own->ops[i];
    for (int32_t k = 0; k < op->n_inputs; k++) {
      if (op->inputs[k] != value) continue;
      any = true;
      bool looks_up = (is(op, "embedding") && k == 1) || (is(op, "pick") && k == 0);
      if (looks_up)
        picked += pl_ir_launch_bytes(own, op->first_output);
      else
        whole = true;
    }
  }
  for (int32_t i = 0; i < own->n_outputs; i++) /* a copy */
    whole = whole || (!any && own->results[i] == value);
  return whole ? pl_ir_launch_bytes(own, value) : picked;
}

static bool is_made_by(const pl_ir_launch *own, int32_t value, const char *row) {
  int32_t op = own->f->values[value].op;
  return op != PL_IR_NONE && is(&own->f->ops[op], row);
}

/* A gradient buffer is read and written; what is added to it is counted where it comes from outside. Of a table, rows
 * are added to a dense gradient, which then is; of learned positions the kernel that sums over sequences does it. */
static double accumulated_bytes(const pl_ir_launch *own, const pl_ir_op *op) {
  return 2 * pl_ir_launch_bytes(own, op->inputs[0]);
}

static bool is_of_table(const pl_ir_launch *own, const pl_ir_op *op) {
  return is(op, "embedding_backward") && !is_made_by(own, op->inputs[1], "sum");
}

/* Set to zero and its rows read and written; then read to be added to the buffer. */
static double table_bytes(const pl_ir_launch *own, const pl_ir_op *op) {
  bool handed = false;
  double table = pl_ir_launch_bytes(own, op->first_output), rows = pl_ir_launch_bytes(own, op->inputs[1]);
  for (int32_t i = 0; i < own->n_outputs; i++)
    handed = handed || own->results[i] == op->first_output;
  return 2 * rows + (handed ? 0 : 2 * table);
}

/* Rows of the buffer are read and written. */
static double positions_bytes(const pl_ir_launch *own, const pl_ir_op *op) {
  const pl_ir_op *added = pl_ir_launch_find(own, "accumulate");
  uint8_t element = added != NULL ? pl_ir_launch_type(own, added->inputs[0])->element : (uint8_t)PL_IR_F32;
  return 2 * pl_ir_launch_elements(own, op->inputs[1]) * pl_ir_element_bytes((pl_ir_element)element);
}

/* Copies but the first, and what is read to find the scale. */
static double more_of_cast(const pl_ir_launch *own, const pl_ir_op *op) {
  double more = (double)(pl_ir_integer_of(op, "copies", 1) - 1) * pl_ir_launch_bytes(own, op->first_output);
  return more + (double)pl_ir_integer_of(op, "scaled", 0) * pl_ir_launch_bytes(own, op->inputs[0]);
}

static double traffic(const pl_ir_launch *own) {
  double bytes = 0;
  bool positions = false,
       relu = pl_ir_launch_find(own, "relu") != NULL || pl_ir_launch_find(own, "relu_backward") != NULL;
  for (int32_t i = 0; i < own->n_inputs; i++)
    bytes += read_bytes(own, own->inputs[i]);
  for (int32_t i = 0; i < own->n_outputs; i++)
    bytes += pl_ir_launch_bytes(own, own->results[i]);
  for (int32_t i = 0; i < own->n_ops; i++) {
    const pl_ir_op *op = &own->ops[i];
    if (is_of_table(own, op)) bytes += table_bytes(own, op);
    if (is(op, "embedding_backward") && !is_of_table(own, op)) {
      bytes += positions_bytes(own, op);
      positions = true;
    }
    if (is(op, "accumulate") && !positions) bytes += accumulated_bytes(own, op);
    if (is(op, "dropout")) bytes += pl_ir_launch_elements(own, op->first_output); /* the mask */
    if (is(op, "cast")) bytes += more_of_cast(own, op);
    /* Mean and variance first; what is one kernel with its ReLU keeps what it reads on chip. */
    if (is(op, "batch_norm") && !relu) bytes += pl_ir_launch_bytes(own, op->inputs[0]);
    if (is(op, "batch_norm_backward") && !relu) bytes += 2 * pl_ir_launch_bytes(own, op->inputs[2]);
  }
  return bytes;
}

/* A softmax in one kernel with its causal mask does not read the masked half of what it works on (Megatron's writes
 * zeros there). */
static double unread_bytes(const pl_ir_launch *own, const pl_framework *framework) {
  const pl_ir_op *mask = pl_ir_launch_find(own, "mask"), *softmax = pl_ir_launch_find(own, "softmax"),
                 *back = pl_ir_launch_find(own, "softmax_backward");
  bool causal = mask != NULL && pl_ir_integer_of(mask, "causal", 0) != 0;
  if (!pl_framework_skips_masked(framework, causal)) return 0;
  if (back != NULL) return (pl_ir_launch_bytes(own, back->inputs[0]) + pl_ir_launch_bytes(own, back->inputs[1])) / 2;
  return softmax != NULL ? pl_ir_launch_bytes(own, softmax->inputs[0]) / 2 : 0;
}

/* Norms and softmaxes of 16 bits under autocast move twice as much. */
static double autocast_bytes(const pl_ir_launch *own, const pl_framework *framework, uint8_t element) {
  static const char *const rows[] = {"layer_norm", "layer_norm_backward", "softmax", "softmax_backward"};
  bool is_wide = false;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    is_wide = is_wide || pl_ir_launch_find(own, rows[i]) != NULL;
  bool casts = is_wide && pl_framework_autocast(framework, (pl_dtype)element) != PL_AUTOCAST_OFF;
  return casts ? traffic(own) - unread_bytes(own, framework) : 0;
}

double pl_ir_launch_moves(const pl_ir_launch *own, const pl_framework *framework, uint8_t element) {
  return traffic(own) - unread_bytes(own, framework) + autocast_bytes(own, framework, element);
}

/* ---- what moves nothing ---- */

/* The same elements in the same order: dimensions of one that stand side by side as they are numbered. */
static bool is_flat(const pl_ir_launch *own, const pl_ir_op *op) {
  const pl_ir_attribute *from = pl_ir_attribute_find(op, "from");
  if (is(op, "split")) return true;
  if (!is(op, "join") || from == NULL) return false;
  int32_t first = pl_ir_type_find(pl_ir_launch_type(own, op->inputs[0]), from->names[0]);
  for (int32_t i = 0; i < from->n_names; i++)
    if (pl_ir_type_find(pl_ir_launch_type(own, op->inputs[0]), from->names[i]) != first + i) return false;
  return true;
}

/* TF32 is how products read numbers of 32 bits. */
static bool is_wide(const pl_ir_type *type) {
  return type->element == PL_IR_F32 || type->element == (uint8_t)PL_DTYPE_TF32;
}

static bool casts_nothing(const pl_ir_launch *own, const pl_ir_op *op) {
  return is(op, "cast") && is_wide(pl_ir_launch_type(own, op->inputs[0])) &&
         is_wide(pl_ir_launch_type(own, op->first_output));
}

static bool is_dispatch(const pl_ir_launch *own, const pl_ir_op *op) {
  return pl_ir_is_dispatch(own->routing, own->f, op) && pl_ir_launch_bytes(own, op->inputs[0]) > 0;
}

bool pl_ir_launch_is_nothing(const pl_ir_launch *own) {
  for (int32_t i = 0; i < own->n_ops; i++) {
    const pl_ir_row *row = pl_ir_row_at(own->ops[i].row);
    bool none = row->launches == PL_IR_LAUNCHES_NOTHING || row->effect == PL_IR_READS || row->effect == PL_IR_SENDS ||
                row->effect == PL_IR_CALLS || (row->effect == PL_IR_COLLECTIVE && !pl_ir_row_is_ring(row));
    none = (none || is_flat(own, &own->ops[i]) || casts_nothing(own, &own->ops[i])) && !is_dispatch(own, &own->ops[i]);
    if (!none) return false;
  }
  return own->n_ops > 0;
}
