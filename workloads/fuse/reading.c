/* See workloads/fuse/reading.h. */
#include "workloads/fuse/reading.h"

bool pl_reading_take(pl_reading *own, const pl_ir_mesh *mesh, const pl_ir_function *f, pl_arena *arena) {
  const int32_t keep = pl_ir_row_of("keep");
  int32_t *n_users = PL_TAKE(arena, int32_t, f->n_values + 1), *user = PL_TAKE(arena, int32_t, f->n_values + 1);
  *own = (pl_reading){.mesh = mesh, .f = f, .n_users = n_users, .user = user};
  if (n_users == NULL || user == NULL) return false;
  for (int32_t i = 0; i < f->n_values; i++)
    user[i] = PL_IR_NONE;
  for (int32_t i = 0; i < f->n_ops; i++)
    for (int32_t k = 0; k < f->ops[i].n_inputs && f->ops[i].row != keep; k++)
      if (n_users[f->ops[i].inputs[k]]++ == 0) user[f->ops[i].inputs[k]] = i;
  return true;
}

bool pl_read_is_one_of(const pl_reading *own, int32_t op, const char *const *rows) {
  for (; *rows != NULL; rows++)
    if (pl_read_is(own, op, *rows)) return true;
  return false;
}

int32_t pl_read_made(const pl_reading *own, int32_t op, int32_t i) {
  return op != PL_IR_NONE && i < pl_read_op(own, op)->n_inputs ? pl_read_maker(own, pl_read_op(own, op)->inputs[i])
                                                               : PL_IR_NONE;
}

/* ---- what ops are ---- */

bool pl_read_is_activation(const pl_reading *own, int32_t op) {
  static const char *const rows[] = {"gelu", "silu", "relu", NULL};
  return pl_read_is_one_of(own, op, rows);
}

bool pl_read_is_square(const pl_reading *own, int32_t op) {
  return pl_read_is(own, op, "multiply") && pl_read_op(own, op)->inputs[0] == pl_read_op(own, op)->inputs[1];
}

bool pl_read_is_norm(const pl_reading *own, int32_t op) {
  static const char *const rows[] = {"rms_norm", "layer_norm", NULL};
  return pl_read_is_one_of(own, op, rows);
}

bool pl_read_is_view(const pl_reading *own, int32_t op) {
  static const char *const rows[] = {"rename", "cut", NULL};
  return pl_read_is_one_of(own, op, rows);
}

bool pl_read_is_collective(const pl_reading *own, int32_t op) {
  if (op == PL_IR_NONE) return false;
  const pl_ir_row *row = pl_ir_row_at(pl_read_op(own, op)->row);
  return row->effect == PL_IR_COLLECTIVE && row->compute == NULL && !pl_ir_row_is_ring(row);
}

bool pl_read_is_reduction(const pl_reading *own, int32_t op) {
  static const char *const rows[] = {"all_reduce", "reduce_scatter", NULL};
  return pl_read_is_one_of(own, op, rows);
}

const char *pl_read_param(const pl_reading *own, int32_t value) {
  static const char *const through[] = {"all_gather", "cast", "copy", "rename", "cut", NULL};
  int32_t op = pl_read_maker(own, value);
  while (pl_read_is_one_of(own, op, through))
    op = pl_read_made(own, op, 0);
  return pl_read_is(own, op, "param") ? pl_read_op(own, op)->path : NULL;
}

const char *pl_read_weight(const pl_reading *own, int32_t op) {
  const pl_ir_op *is = pl_read_op(own, op);
  return is->n_inputs > 1 ? pl_read_param(own, is->inputs[1]) : NULL;
}

bool pl_read_is_bias(const pl_reading *own, int32_t op) {
  return pl_read_is(own, op, "add") && pl_read_weight(own, op) != NULL;
}

bool pl_read_is_partial(const pl_reading *own, int32_t value) {
  const pl_ir_type *type = pl_read_type(own, value);
  for (int32_t axis = 0; axis < own->mesh->n_axes; axis++)
    if (type->on[axis] == PL_IR_PARTIAL) return true;
  return false;
}

/* ---- patterns ---- */

bool pl_read_is_before_residual(const pl_reading *own, int32_t op) {
  while (op != PL_IR_NONE &&
         (pl_read_is_bias(own, op) || pl_read_is(own, op, "dropout") || pl_read_is_reduction(own, op)))
    op = pl_read_next(own, op);
  return pl_read_is(own, op, "add");
}

void pl_read_residual(const pl_reading *own, int32_t add, pl_residual_ops *found) {
  int32_t value = pl_read_op(own, add)->inputs[1], at = pl_read_maker(own, value);
  *found = (pl_residual_ops){.dropout = PL_IR_NONE, .reduction = PL_IR_NONE, .value = value};
  if (pl_read_is(own, at, "dropout")) {
    found->dropout = at;
    value = pl_read_op(own, at)->inputs[0];
  } else if (pl_read_is_reduction(own, at) && pl_read_is(own, pl_read_made(own, at, 0), "dropout")) {
    found->dropout = pl_read_made(own, at, 0);
    found->reduction = at;
    found->value = pl_read_op(own, at)->inputs[0];
    return;
  }
  for (at = pl_read_maker(own, value); found->n_biases < PL_RESIDUAL_BIASES && at != PL_IR_NONE &&
                                       pl_read_is_bias(own, at) && pl_read_is_before_residual(own, at);
       at = pl_read_maker(own, value)) {
    found->biases[found->n_biases++] = at;
    value = pl_read_op(own, at)->inputs[0];
  }
  found->value = value;
}

static bool is_passed(const pl_reading *own, int32_t op) {
  static const char *const rows[] = {"rotary", "scale", "convolution",      "softplus",        "rms_norm", "layer_norm",
                                     "cast",   "copy",  "state_space_scan", "delta_rule_scan", NULL};
  return pl_read_is_view(own, op) || pl_read_is_collective(own, op) || pl_read_is_activation(own, op) ||
         pl_read_is_bias(own, op) || pl_read_is_one_of(own, op, rows);
}

bool pl_read_heads(const pl_reading *own, int32_t value, pl_head_ops *found) {
  *found = (pl_head_ops){PL_IR_NONE, PL_IR_NONE, PL_IR_NONE, PL_IR_NONE};
  for (int32_t op = pl_read_maker(own, value); op != PL_IR_NONE; op = pl_read_made(own, op, 0)) {
    if (pl_read_is(own, op, "product")) {
      if (pl_read_weight(own, op) != NULL) found->product = op;
      return found->product != PL_IR_NONE;
    }
    if (!is_passed(own, op)) return false;
    if (pl_read_is(own, op, "rotary")) found->rotary = op;
    if (pl_read_is_norm(own, op)) found->norm = op;
    if (pl_read_is_bias(own, op)) found->bias = op;
  }
  return false;
}

bool pl_read_is_norm_in_steps(const pl_reading *own, int32_t op, const pl_framework *framework) {
  static const char *const rows[] = {"rms_norm", "rms_norm_backward", NULL};
  if (framework->kernels.fuses_norm || !pl_read_is_one_of(own, op, rows) || pl_read_weight(own, op) == NULL)
    return false;
  pl_ir_element element = (pl_ir_element)pl_read_type(own, pl_read_op(own, op)->inputs[0])->element;
  return pl_ir_element_bytes(element) < pl_ir_element_bytes(PL_IR_F32);
}

bool pl_read_is_bias_in_steps(const pl_reading *own, int32_t op, const pl_framework *framework) {
  return !framework->kernels.fuses_expert_bias && pl_read_is_bias(own, op) &&
         pl_read_is_of_experts(pl_read_type(own, pl_read_op(own, op)->first_output));
}

int32_t pl_read_lookup(const pl_reading *own, int32_t value) {
  int32_t op = pl_read_maker(own, value);
  while (pl_read_is_view(own, op))
    op = pl_read_made(own, op, 0);
  return pl_read_is(own, op, "embedding") ? op : PL_IR_NONE;
}

/* The result of an activation, perhaps squared. */
static bool is_activated(const pl_reading *own, int32_t value) {
  int32_t op = pl_read_maker(own, value);
  if (pl_read_is_square(own, op)) op = pl_read_made(own, op, 0);
  return pl_read_is_activation(own, op);
}

int32_t pl_read_chosen(const pl_reading *own, int32_t multiply) {
  if (!pl_read_is(own, multiply, "multiply")) return PL_IR_NONE;
  int32_t op = pl_read_made(own, multiply, 1);
  while (pl_read_is_collective(own, op) || pl_read_is_view(own, op))
    op = pl_read_made(own, op, 0);
  return pl_read_is(own, op, "top_k") ? op : PL_IR_NONE;
}

int32_t pl_read_gate(const pl_reading *own, int32_t multiply) {
  if (!pl_read_is(own, multiply, "multiply") || pl_read_is_square(own, multiply)) return -1;
  for (int32_t i = 0; i < 2; i++)
    if (is_activated(own, pl_read_op(own, multiply)->inputs[i])) return i;
  return -1;
}
