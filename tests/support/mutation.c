/* See tests/support/mutation.h. */
#include "tests/support/mutation.h"

#include <string.h>

#include "workloads/language/ir_table.h"

const char *const mutation_names[N_MUTATIONS] = {"left out", "doubled", "misplaced"};

static bool is(const pl_ir_op *op, const char *name) {
  return strcmp(pl_ir_row_at(op->row)->name, name) == 0;
}

static bool moves(const pl_ir_op *op) {
  return pl_ir_row_at(op->row)->effect == PL_IR_COLLECTIVE && !is(op, "cut") && op->n_inputs == 1;
}

bool mutation_is_subject(const pl_ir_op *op) {
  static const char *const others[] = {"send", "receive", "sum_classes", "scale", "accumulate", NULL};
  for (const char *const *name = others; *name != NULL; name++)
    if (is(op, *name)) return true;
  return moves(op);
}

/* ---- mutated copies ---- */

/* The function with room for one op and one value more, nothing shared that a mutation changes. */
static pl_ir_function *copied(const pl_ir_function *from, pl_arena *arena) {
  pl_ir_function *made = PL_TAKE(arena, pl_ir_function, 1);
  *made = *from;
  made->ops = PL_TAKE(arena, pl_ir_op, from->n_ops + 1);
  made->values = PL_TAKE(arena, pl_ir_value, from->n_values + 1);
  memcpy(made->ops, from->ops, (size_t)from->n_ops * sizeof(*made->ops));
  memcpy(made->values, from->values, (size_t)from->n_values * sizeof(*made->values));
  for (int32_t i = 0; i < from->n_ops; i++) {
    int32_t *inputs = PL_TAKE(arena, int32_t, from->ops[i].n_inputs + 1);
    for (int32_t k = 0; k < from->ops[i].n_inputs; k++)
      inputs[k] = from->ops[i].inputs[k];
    made->ops[i].inputs = inputs;
  }
  int32_t *results = PL_TAKE(arena, int32_t, from->n_results + 1);
  for (int32_t i = 0; i < from->n_results; i++)
    results[i] = from->results[i];
  made->results = results;
  return made;
}

/* Who reads `value` from op `first` on reads `other`. */
static void reads_other(pl_ir_function *function, int32_t first, int32_t value, int32_t other) {
  for (int32_t i = first; i < function->n_ops; i++)
    for (int32_t k = 0; k < function->ops[i].n_inputs; k++)
      if (function->ops[i].inputs[k] == value) ((int32_t *)(uintptr_t)function->ops[i].inputs)[k] = other;
  for (int32_t i = 0; i < function->n_results; i++)
    if (function->results[i] == value) ((int32_t *)(uintptr_t)function->results)[i] = other;
}

/* Who waits for nothing has what lay there: zeros. */
static void do_not_wait(pl_ir_op *op, pl_arena *arena) {
  pl_ir_attribute *value = PL_TAKE(arena, pl_ir_attribute, 1);
  *value = pl_ir_real("value", 0);
  op->row = (uint16_t)pl_ir_row_of("constant");
  op->attributes = value;
  op->n_attributes = 1;
}

/* The op is gone, and its value is what it was given. */
static void leave_out(pl_ir_function *function, int32_t at, pl_arena *arena) {
  const pl_ir_op op = function->ops[at];
  if (is(&op, "receive")) {
    do_not_wait(&function->ops[at], arena);
    return;
  }
  if (op.n_outputs == 1) {
    reads_other(function, at + 1, op.first_output, op.inputs[0]);
    /* The value stays in the table, so that numbers stay: an argument that nobody reads would move the others. */
    function->values[op.first_output].op = PL_IR_NONE;
  }
  memmove(&function->ops[at], &function->ops[at + 1], (size_t)(function->n_ops - at - 1) * sizeof(*function->ops));
  function->n_ops--;
  for (int32_t i = 0; i < function->n_values; i++)
    if (function->values[i].op > at) function->values[i].op--;
}

/* The op once more behind itself, on what it gave, or again on what it was given. */
static void apply_twice(pl_ir_function *function, int32_t at, pl_arena *arena) {
  memmove(&function->ops[at + 1], &function->ops[at], (size_t)(function->n_ops - at) * sizeof(*function->ops));
  function->n_ops++;
  for (int32_t i = 0; i < function->n_values; i++)
    if (function->values[i].op > at) function->values[i].op++;
  pl_ir_op *again = &function->ops[at + 1];
  if (again->n_outputs == 0) return;
  int32_t *inputs = PL_TAKE(arena, int32_t, 1), first = again->first_output, added = function->n_values++;
  inputs[0] = first; /* a receive has none */
  function->values[added] = function->values[first];
  function->values[added].name = "twice";
  function->values[added].op = at + 1;
  reads_other(function, at + 2, first, added);
  again->inputs = inputs;
  again->first_output = added;
}

static const pl_ir_attribute *changed(const pl_ir_op *op, const char *name, const pl_ir_name *names, pl_arena *arena) {
  pl_ir_attribute *attributes = PL_TAKE(arena, pl_ir_attribute, op->n_attributes);
  for (int32_t i = 0; i < op->n_attributes; i++) {
    attributes[i] = op->attributes[i];
    if (strcmp(attributes[i].name.text, name) != 0) continue;
    attributes[i].names = names;
    attributes[i].n_names = 1;
  }
  return attributes;
}

/* Another value of the same type that is there before the op, the nearest; what is read instead. */
static bool read_another(pl_ir_function *function, int32_t at) {
  pl_ir_op *op = &function->ops[at];
  int32_t *inputs = (int32_t *)(uintptr_t)op->inputs, first = op->n_outputs > 0 ? op->first_output : function->n_values;
  for (int32_t i = function->n_values; i-- > 0;) {
    const pl_ir_value *value = &function->values[i];
    bool is_there = i < function->n_arguments || (value->op != PL_IR_NONE && value->op < at);
    if (!is_there || i == inputs[0] || i == first) continue;
    if (!pl_ir_type_equal(&value->type, &function->values[inputs[0]].type)) continue;
    if (value->op != PL_IR_NONE && function->ops[value->op].row == pl_ir_row_of("rename")) continue; /* the same */
    inputs[0] = i;
    return true;
  }
  return false;
}

static bool to_another_parameter(pl_ir_function *function, int32_t at) {
  pl_ir_op *op = &function->ops[at];
  const pl_ir_type *type = &function->values[op->inputs[0]].type;
  for (int32_t i = 0; i < function->n_ops; i++) {
    const pl_ir_op *second = &function->ops[i];
    if (i == at || !is(second, "accumulate") || strcmp(op->path, second->path) == 0) continue;
    if (!pl_ir_type_equal(type, &function->values[second->inputs[0]].type)) continue;
    op->path = second->path;
    return true;
  }
  return false;
}

static bool along_another_axis(const pl_ir_module *module, pl_ir_op *op, pl_arena *arena) {
  pl_ir_name *other = PL_TAKE(arena, pl_ir_name, 1);
  for (int32_t axis = 0; axis < module->mesh.n_axes; axis++) {
    if (pl_ir_op_has_name(op, "over", module->mesh.axes[axis].name)) continue;
    *other = module->mesh.axes[axis].name;
    op->attributes = changed(op, "over", other, arena);
    return true;
  }
  return false;
}

static bool names_class(const pl_ir_attribute *attribute, const char *class) {
  for (int32_t i = 0; i < attribute->n_names; i++)
    if (strcmp(attribute->names[i].text, class) == 0) return true;
  return false;
}

static bool with_another_class(const pl_ir_module *module, pl_ir_op *op, const char *name, pl_arena *arena) {
  pl_ir_name *other = PL_TAKE(arena, pl_ir_name, 1);
  const pl_ir_attribute *at = pl_ir_attribute_find(op, name);
  for (int32_t c = 0; c < module->n_classes; c++) {
    if (names_class(at, module->classes[c].name)) continue;
    *other = pl_ir_name_of(module->classes[c].name);
    op->attributes = changed(op, name, other, arena);
    return true;
  }
  return false;
}

static bool misplace(const pl_ir_module *module, pl_ir_function *function, int32_t at, pl_arena *arena) {
  pl_ir_op *op = &function->ops[at];
  if (is(op, "accumulate")) return to_another_parameter(function, at);
  if (is(op, "scale")) return read_another(function, at);
  if (is(op, "send")) return with_another_class(module, op, "to", arena);
  if (is(op, "receive")) return with_another_class(module, op, "from", arena);
  if (is(op, "sum_classes")) return with_another_class(module, op, "classes", arena) || read_another(function, at);
  return along_another_axis(module, op, arena) || read_another(function, at);
}

bool mutation_of_op(pl_ir_module *module, int32_t f, int32_t at, mutation kind, pl_arena *arena) {
  pl_ir_function *mutant = copied(module->functions[f], arena);
  bool made = true;
  if (kind == LEAVE_OUT) leave_out(mutant, at, arena);
  if (kind == DOUBLE) apply_twice(mutant, at, arena);
  if (kind == MISPLACE) made = misplace(module, mutant, at, arena);
  if (made) module->functions[f] = mutant;
  return made;
}

/* Forward behind everything, the others before everything. */
static void move_step(pl_ir_step *steps, int32_t n, int32_t at) {
  const pl_ir_step step = steps[at];
  if (step.kind == PL_IR_STEP_F) {
    memmove(&steps[at], &steps[at + 1], (size_t)(n - at - 1) * sizeof(*steps));
    steps[n - 1] = step;
  } else {
    memmove(&steps[1], &steps[0], (size_t)at * sizeof(*steps));
    steps[0] = step;
  }
}

void mutation_of_step(pl_ir_class *class, int32_t at, mutation kind, pl_arena *arena) {
  int32_t n = class->n_steps;
  pl_ir_step *steps = PL_TAKE(arena, pl_ir_step, n + 1);
  memcpy(steps, class->steps, (size_t)n * sizeof(*steps));
  if (kind == MISPLACE) {
    move_step(steps, n, at);
  } else {
    int32_t from = kind == DOUBLE ? at : at + 1, to = kind == DOUBLE ? at + 1 : at;
    memmove(&steps[to], &steps[from], (size_t)(n - from) * sizeof(*steps));
    class->n_steps += to - from;
  }
  class->steps = steps;
}

void mutation_of_fewer(pl_ir_module *module, int32_t at, mutation kind, pl_arena *arena) {
  pl_ir_fewer *copy = PL_TAKE(arena, pl_ir_fewer, module->n_fewer + 1);
  int32_t n = 0;
  for (int32_t i = 0; i < module->n_fewer; i++) {
    if (i != at || kind != LEAVE_OUT) copy[n++] = module->fewer[i];
    if (i == at && kind == DOUBLE) copy[n++] = module->fewer[i];
    if (i == at && kind == MISPLACE) copy[n - 1].n_microbatches++;
  }
  module->fewer = copy;
  module->n_fewer = n;
}
