/* See workloads/passes/partition_function.h: each op of a function in the way that costs least. */
#include "workloads/passes/partition_function.h"

#include <math.h>
#include <string.h>

#include "workloads/language/ir_layout.h"

enum { OPERANDS_MAX = 32 };

/* ---- what must not move ---- */

static const pl_ir_op *maker(const pl_laying *part, int32_t value) {
  int32_t op = part->from->values[value].op;
  return op == PL_IR_NONE ? NULL : &part->from->ops[op];
}

static bool is_row(const pl_ir_op *op, const char *name) {
  return op != NULL && strcmp(pl_ir_row_at(op->row)->name, name) == 0;
}

static bool is_gathered(const pl_laying *part, int32_t axis) {
  uint8_t role = part->own->rules->role[axis];
  return role == PL_AXIS_DATA || role == PL_AXIS_CONTEXT;
}

/* Cost of bringing a value along one axis from one layout to another, in parts of what a device holds of it when it is
 * whole along the axis; HUGE_VAL: not done. */
static double cost_between(int8_t from, int8_t to, int32_t n) {
  double share = (double)(n - 1) / n;
  if (from == to) return 0;
  if (from == PL_IR_PARTIAL || from == PL_IR_MAXIMUM)
    return to == PL_IR_SAME ? 2 * share : to >= 0 && from == PL_IR_PARTIAL ? share : HUGE_VAL;
  if (from == PL_IR_SAME) return to >= 0 ? 0 : HUGE_VAL;
  return to == PL_IR_SAME ? share : to >= 0 ? share / n : HUGE_VAL;
}

static double input_cost(const pl_laying *part, const pl_ir_op *op, int32_t k, int32_t axis, int8_t to) {
  const pl_variants *variants = &part->variants[op->inputs[k]];
  int32_t n = part->own->rules->mesh.axes[axis].extent;
  const pl_ir_type *type = &part->to->values[variants->value[0]].type;
  bool parameter = is_row(maker(part, op->inputs[k]), "param");
  if (parameter && type->on[axis] != to && !part->update && !(is_gathered(part, axis) && to == PL_IR_SAME))
    return HUGE_VAL;
  for (int32_t i = 0; i < variants->n; i++)
    if (part->to->values[variants->value[i]].type.on[axis] == to) return 0;
  return cost_between(type->on[axis], to, n) * pl_ir_type_local_elements(&part->own->rules->mesh, type) *
         (type->on[axis] >= 0 ? n : 1) * pl_ir_element_bytes((pl_ir_element)type->element);
}

/* The gradient of a parameter that is cut over a tensor or expert axis is made cut. */
static bool suits_parameter(const pl_laying *part, const pl_ir_op *op, int32_t k, int32_t axis, int8_t on) {
  const char *path = part->fed[op->first_output + k];
  if (path == NULL) return true;
  pl_ir_type type = part->from->values[op->first_output + k].type;
  pl_layout_parameter(part->own->rules, path, &type);
  if (type.on[axis] < 0) return true;
  bool of_experts = strcmp(type.dims[type.on[axis]].name.text, "x") == 0;
  return (is_gathered(part, axis) && !of_experts) || type.on[axis] == on;
}

/* What bringing an output to where it is stored costs: optimizers write the layout that state is kept in. */
static double stored_cost(const pl_laying *part, const pl_ir_op *op, int32_t k, int32_t axis, int8_t on) {
  const pl_ir_op *store = part->stored[op->first_output + k];
  if (store == NULL) return 0;
  pl_ir_type type = part->from->values[op->first_output + k].type;
  if (pl_ir_attribute_find(store, "slot") != NULL) {
    pl_layout_state(part->own->rules, store->path, &type);
  } else {
    pl_layout_parameter(part->own->rules, store->path, &type);
  }
  return cost_between(on, type.on[axis], part->own->rules->mesh.axes[axis].extent) * pl_ir_type_elements(&type) *
         pl_ir_element_bytes((pl_ir_element)type.element);
}

/* Dimensions are gathered from the innermost axis that cuts them outwards: where an axis further out gives a cut up,
 * this one cannot keep it, and where one further out takes a cut on, this one cannot have had it. */
static bool suits_outer_axes(const pl_laying *part, const pl_ir_type *is, const pl_ir_type *wanted, int32_t axis,
                             int8_t to) {
  for (int32_t outer = 0; outer < axis; outer++) {
    if (part->own->rules->role[outer] == PL_AXIS_PIPELINE || is->on[outer] == wanted->on[outer]) continue;
    if (is->on[outer] >= 0 && is->on[axis] == is->on[outer] && to == is->on[outer]) return false;
    if (wanted->on[outer] >= 0 && is->on[axis] == wanted->on[outer] && to == wanted->on[outer]) return false;
  }
  return true;
}

/* A sum over experts would meet at every token what only some experts know. */
static bool is_allowed(const pl_laying *part, const pl_ir_op *op, const pl_ir_way *way, int32_t axis,
                       const int8_t *outputs_on) {
  if (part->update || way->kind != 0) return true;
  if (!pl_layout_may_cut(part->own->rules, axis, way->dim)) return false;
  bool experts = strcmp(way->dim.text, "x") == 0;
  for (int32_t i = 0; experts && i < op->n_outputs; i++)
    if (outputs_on[i] == PL_IR_PARTIAL) return false;
  return true;
}

static bool divides(const pl_laying *part, const pl_ir_type *type, int32_t axis, int8_t on) {
  if (on < 0) return true;
  int64_t parts = part->own->rules->mesh.axes[axis].extent;
  for (int32_t other = 0; other < part->own->rules->mesh.n_axes; other++)
    if (other != axis && type->on[other] == on) parts *= part->own->rules->mesh.axes[other].extent;
  return type->dims[on].extent % parts == 0;
}

typedef struct choice {
  const pl_ir_op *op;
  pl_ir_type inputs[OPERANDS_MAX], outputs[OPERANDS_MAX]; /* as they will lie */
} choice;

/* A partial sum has to be added up sooner or later. What is made of partial sums here carries that on, but for
 * gradients of parameters, which are added up behind the last microbatch whatever is done here. */
static double owed_cost(const pl_laying *part, const pl_ir_op *op, int32_t k, int32_t axis, const pl_ir_way *way) {
  if (way->kind != PL_IR_PARTIAL || part->fed[op->first_output + k] != NULL) return 0;
  const pl_ir_type *type = &part->from->values[op->first_output + k].type;
  int32_t n = part->own->rules->mesh.axes[axis].extent;
  double parts = pl_ir_type_elements(type) * pl_ir_element_bytes((pl_ir_element)type->element);
  for (int32_t other = 0; other < part->own->rules->mesh.n_axes; other++)
    if (part->own->rules->role[other] == PL_AXIS_DATA || part->own->rules->role[other] == PL_AXIS_CONTEXT)
      parts /= part->own->rules->mesh.axes[other].extent;
  return cost_between(PL_IR_PARTIAL, PL_IR_SAME, n) * parts;
}

/* The cheapest way along `axis`; of several the one that leaves most operands as they are. */
static bool choose(const pl_laying *part, choice *own, int32_t axis) {
  const pl_ir_op *op = own->op;
  pl_ir_way ways[PL_IR_WAYS_MAX];
  int8_t inputs_on[OPERANDS_MAX], outputs_on[OPERANDS_MAX], best_inputs[OPERANDS_MAX], best_outputs[OPERANDS_MAX];
  int32_t n = pl_ir_ways_of(op, own->inputs, own->outputs, ways), least_moves = 0;
  double least = HUGE_VAL;
  for (int32_t w = 0; w < n; w++) {
    pl_ir_way_apply(op, &ways[w], own->inputs, own->outputs, inputs_on, outputs_on);
    bool possible = is_allowed(part, op, &ways[w], axis, outputs_on);
    double cost = 0;
    int32_t moves = 0;
    for (int32_t i = 0; i < op->n_inputs && possible; i++) {
      const pl_ir_type *is = &part->to->values[pl_laying_value(part, op->inputs[i])].type;
      possible = divides(part, &own->inputs[i], axis, inputs_on[i]) &&
                 suits_outer_axes(part, is, &own->inputs[i], axis, inputs_on[i]);
      cost += input_cost(part, op, i, axis, inputs_on[i]);
      moves += is->on[axis] != inputs_on[i];
    }
    for (int32_t i = 0; i < op->n_outputs && possible; i++) {
      possible =
          divides(part, &own->outputs[i], axis, outputs_on[i]) && suits_parameter(part, op, i, axis, outputs_on[i]);
      cost += stored_cost(part, op, i, axis, outputs_on[i]) + owed_cost(part, op, i, axis, &ways[w]);
    }
    if (!possible || cost > least || (cost == least && moves >= least_moves) || cost == HUGE_VAL) continue;
    least = cost;
    least_moves = moves;
    memcpy(best_inputs, inputs_on, sizeof(best_inputs));
    memcpy(best_outputs, outputs_on, sizeof(best_outputs));
  }
  if (least == HUGE_VAL) return false;
  for (int32_t i = 0; i < op->n_inputs; i++)
    own->inputs[i].on[axis] = best_inputs[i];
  for (int32_t i = 0; i < op->n_outputs; i++)
    own->outputs[i].on[axis] = best_outputs[i];
  return true;
}

/* ---- ring attention ---- */

static bool is_ring(const pl_laying *part, const pl_ir_op *op) {
  return part->own->rules->ring && (is_row(op, "attention") || is_row(op, "attention_backward"));
}

static int32_t context_axes(const pl_layout_rules *rules, pl_ir_name *axes) {
  int32_t n = 0;
  for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++)
    if (rules->role[axis] == PL_AXIS_CONTEXT) axes[n++] = rules->mesh.axes[axis].name;
  return n;
}

/* Along context axes who has the queries' sequence is cut on it, and who has the keys' on that. */
static void lay_in_ring(choice *own, int32_t axis) {
  pl_ir_name s = pl_ir_name_of("s"), t = pl_ir_name_of("t");
  for (int32_t i = 0; i < own->op->n_inputs + own->op->n_outputs; i++) {
    pl_ir_type *type = i < own->op->n_inputs ? &own->inputs[i] : &own->outputs[i - own->op->n_inputs];
    int32_t dim = pl_ir_type_find(type, s);
    type->on[axis] = (int8_t)(dim >= 0 ? dim : pl_ir_type_find(type, t));
  }
}

/* ---- ops ---- */

/* The op in the new function, over `inputs`, with outputs of `types`. */
static pl_code copy_op(pl_laying *part, const pl_ir_op *op, const int32_t *inputs, const pl_ir_type *types,
                       pl_error *error) {
  const char *names[OPERANDS_MAX];
  for (int32_t i = 0; i < op->n_outputs; i++)
    names[i] = part->from->values[op->first_output + i].name;
  pl_ir_attribute attributes[8];
  int32_t n = op->n_attributes;
  for (int32_t i = 0; i < n; i++)
    attributes[i] = op->attributes[i];
  bool ordered = is_row(op, "input") || is_row(op, "dropout");
  if (ordered && part->own->rules->cp > 1) attributes[n++] = pl_ir_integer("zigzag", part->own->rules->cp);
  int32_t row = op->row;
  pl_ir_name around[PL_IR_AXES_MAX];
  if (is_ring(part, op)) {
    row = pl_ir_row_of(is_row(op, "attention") ? "ring_attention" : "ring_attention_backward");
    attributes[n++] = pl_ir_names("over", context_axes(part->own->rules, around), around);
  }
  int32_t first = pl_ir_op_add(part->own->to, part->to,
                               &(pl_ir_making){.row = row,
                                               .n_inputs = op->n_inputs,
                                               .inputs = inputs,
                                               .n_outputs = op->n_outputs,
                                               .output_names = names,
                                               .output_types = types,
                                               .n_attributes = n,
                                               .attributes = attributes,
                                               .path = op->path,
                                               .reason = op->reason,
                                               .callee = op->callee,
                                               .place = op->place});
  if (part->own->to->arena->failed) return pl_fail_memory(error, "the distributed program");
  for (int32_t i = 0; i < op->n_outputs; i++)
    pl_laying_set(part, op->first_output + i, first + i);
  return PL_OK;
}

static pl_code spread_over_ways(pl_laying *part, const pl_ir_op *op, pl_error *error) {
  choice own = {.op = op};
  for (int32_t i = 0; i < op->n_inputs; i++) {
    own.inputs[i] = part->from->values[op->inputs[i]].type;
    if (pl_laying_value(part, op->inputs[i]) == PL_IR_NONE)
      return pl_fail(error, PL_UNSUPPORTED, "@%s: %%%s is used before it is made", part->from->name,
                     part->from->values[op->inputs[i]].name);
  }
  for (int32_t i = 0; i < op->n_outputs; i++)
    own.outputs[i] = part->from->values[op->first_output + i].type;
  for (int32_t axis = 0; axis < part->own->rules->mesh.n_axes; axis++) {
    if (part->own->rules->role[axis] == PL_AXIS_PIPELINE) continue;
    if (is_ring(part, op) && part->own->rules->role[axis] == PL_AXIS_CONTEXT) {
      lay_in_ring(&own, axis);
      continue;
    }
    if (!choose(part, &own, axis))
      return pl_fail(error, PL_UNSUPPORTED, "@%s: no way to lay out %s (%%%s) along axis %s", part->from->name,
                     pl_ir_row_at(op->row)->name, op->n_outputs > 0 ? part->from->values[op->first_output].name : "",
                     part->own->rules->mesh.axes[axis].name.text);
  }
  int32_t inputs[OPERANDS_MAX];
  const char *reader = op->n_outputs > 0 ? part->from->values[op->first_output].name : pl_ir_row_at(op->row)->name;
  const char *reason = pl_arena_printf(part->own->scratch, "read by %%%s", reader);
  if (reason == NULL) return pl_fail_memory(error, "the distributed program");
  for (int32_t i = 0; i < op->n_inputs; i++)
    PL_TRY(pl_laying_convert(part, op->inputs[i], &own.inputs[i], reason, &inputs[i], error));
  return copy_op(part, op, inputs, own.outputs, error);
}

static const char *agreed_name(pl_laying *part, const pl_ir_op *op, bool kept) {
  if (!kept) return pl_arena_printf(part->own->scratch, "/%s/%s", part->from->name, op->path);
  size_t length = strcspn(part->from->name, "."); /* "layer" of layer.backward */
  return pl_arena_printf(part->own->scratch, "%.*s/%s", (int)length, part->from->name, op->path);
}

/* What is kept of a value: as it was made, or added up, if that was done here. */
static int32_t kept_variant(const pl_laying *part, int32_t value) {
  const pl_variants *variants = &part->variants[value];
  for (int32_t i = 0; i < variants->n; i++) {
    const pl_ir_type *type = &part->to->values[variants->value[i]].type;
    bool whole = true;
    for (int32_t axis = 0; axis < part->own->rules->mesh.n_axes; axis++)
      whole = whole && type->on[axis] != PL_IR_PARTIAL && type->on[axis] != PL_IR_MAXIMUM;
    if (whole) return variants->value[i];
  }
  return variants->value[0];
}

static pl_code lay_kept(pl_laying *part, const pl_ir_op *op, bool keep, pl_error *error) {
  const char *name = agreed_name(part, op, true);
  int32_t input = keep ? kept_variant(part, op->inputs[0]) : PL_IR_NONE;
  pl_ir_type type = keep ? part->to->values[input].type : part->from->values[op->first_output].type;
  if (name == NULL || !pl_layout_agree(part->own, name, &type)) return pl_fail_memory(error, "the distributed program");
  return copy_op(part, op, &input, &type, error);
}

static pl_code lay_call(pl_laying *part, const pl_ir_op *op, pl_error *error) {
  int32_t inputs[OPERANDS_MAX], made;
  pl_ir_type types[OPERANDS_MAX];
  PL_ASSERT(op->n_inputs <= OPERANDS_MAX && op->n_outputs <= OPERANDS_MAX);
  for (int32_t i = 0; i < op->n_inputs; i++)
    PL_TRY(pl_laying_handed(part, op->inputs[i], &inputs[i], error));
  PL_TRY(pl_partition_function(part->own, op->callee, &made, error));
  const pl_ir_function *callee = part->own->to->functions[made];
  for (int32_t i = 0; i < op->n_inputs; i++)
    if (!pl_ir_type_equal(&callee->values[i].type, &part->to->values[inputs[i]].type))
      return pl_fail(error, PL_UNSUPPORTED, "@%s is called with arguments that lie in two ways", callee->name);
  for (int32_t i = 0; i < op->n_outputs; i++)
    types[i] = callee->values[callee->results[i]].type;
  pl_ir_op call = *op;
  call.callee = made;
  return copy_op(part, &call, inputs, types, error);
}

/* The gradient buffer: as the gradients come, or as ZeRO 2 and 3 cut it. */
static pl_code lay_accumulate(pl_laying *part, const pl_ir_op *op, pl_error *error) {
  const pl_layout_rules *rules = part->own->rules;
  pl_ir_type type = part->to->values[pl_laying_value(part, op->inputs[0])].type;
  int32_t converted;
  if (rules->zero >= 2) {
    pl_ir_type state = part->from->values[op->inputs[0]].type;
    pl_layout_state(rules, op->path, &state);
    for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++)
      if (state.on[axis] >= 0) type.on[axis] = state.on[axis];
  }
  PL_TRY(pl_laying_convert(part, op->inputs[0], &type, "as gradients are kept", &converted, error));
  return copy_op(part, op, &converted, NULL, error);
}

static pl_code lay_store(pl_laying *part, const pl_ir_op *op, pl_error *error) {
  pl_ir_type type = part->from->values[op->inputs[0]].type;
  int32_t converted;
  if (pl_ir_attribute_find(op, "slot") != NULL) {
    pl_layout_state(part->own->rules, op->path, &type);
  } else {
    pl_layout_parameter(part->own->rules, op->path, &type);
  }
  PL_TRY(pl_laying_convert(part, op->inputs[0], &type, "as it is stored", &converted, error));
  return copy_op(part, op, &converted, NULL, error);
}

static pl_code lay_held(pl_laying *part, const pl_ir_op *op, pl_error *error) {
  pl_ir_type type = part->from->values[op->first_output].type;
  if (is_row(op, "input")) pl_layout_input(part->own->rules, &type);
  if (is_row(op, "param")) pl_layout_parameter(part->own->rules, op->path, &type);
  if (is_row(op, "state")) pl_layout_state(part->own->rules, op->path, &type);
  if (is_row(op, "gradient")) {
    /* of @layer.update, as the accumulate of @layer.backward or @layer.weights left it */
    size_t length = strcspn(part->from->name, ".");
    const char *name = pl_arena_printf(part->own->scratch, "/%.*s/%s", (int)length, part->from->name, op->path);
    if (name == NULL || !pl_layout_agree(part->own, name, &type))
      return pl_fail_memory(error, "the distributed program");
  }
  return copy_op(part, op, NULL, &type, error);
}

/* Where the gradient buffer of this path lies, for who updates: noted as it is written. */
static pl_code note_gradient(pl_laying *part, const pl_ir_op *op, pl_error *error) {
  size_t length = strcspn(part->from->name, ".");
  const char *name = pl_arena_printf(part->own->scratch, "/%.*s/%s", (int)length, part->from->name, op->path);
  const pl_ir_op *made = &part->to->ops[part->to->n_ops - 1];
  pl_ir_type type = part->to->values[made->inputs[0]].type, agreed = type;
  if (name == NULL || !pl_layout_agree(part->own, name, &agreed))
    return pl_fail_memory(error, "the distributed program");
  if (!pl_ir_type_equal(&type, &agreed))
    return pl_fail(error, PL_UNSUPPORTED, "@%s: gradients of %s come in two layouts", part->from->name, op->path);
  return PL_OK;
}

pl_code pl_laying_op(pl_laying *part, const pl_ir_op *op, pl_error *error) {
  if (is_row(op, "call")) return lay_call(part, op, error);
  if (is_row(op, "keep")) return lay_kept(part, op, true, error);
  if (is_row(op, "kept")) return lay_kept(part, op, false, error);
  if (is_row(op, "store")) return lay_store(part, op, error);
  if (is_row(op, "accumulate")) {
    PL_TRY(lay_accumulate(part, op, error));
    return note_gradient(part, op, error);
  }
  if (is_row(op, "loss")) {
    int32_t input = pl_laying_value(part, op->inputs[0]);
    return copy_op(part, op, &input, NULL, error);
  }
  if (pl_ir_row_at(op->row)->effect == PL_IR_READS) return lay_held(part, op, error);
  return spread_over_ways(part, op, error);
}

static bool is_late(const pl_ir_op *op) {
  return is_row(op, "keep");
}

/* What is kept comes last, when it is known what was made of it. */
static pl_code lay_ops(pl_laying *part, pl_error *error) {
  for (int late = 0; late < 2; late++)
    for (int32_t i = 0; i < part->from->n_ops; i++)
      if (is_late(&part->from->ops[i]) == (late == 1)) PL_TRY(pl_laying_op(part, &part->from->ops[i], error));
  return PL_OK;
}

/* ---- functions ---- */

bool pl_layout_agree(pl_partitioning *own, const char *name, pl_ir_type *type) {
  for (int32_t i = 0; i < own->n_agreed; i++)
    if (strcmp(own->agreed[i].name, name) == 0) {
      *type = own->agreed[i].type;
      return true;
    }
  if (own->n_agreed == own->room_agreed) {
    int32_t room = own->room_agreed > 0 ? 2 * own->room_agreed : 64;
    pl_agreed *larger = PL_TAKE(own->scratch, pl_agreed, room);
    if (larger == NULL) return false;
    if (own->n_agreed > 0) memcpy(larger, own->agreed, (size_t)own->n_agreed * sizeof(*larger));
    own->agreed = larger;
    own->room_agreed = room;
  }
  own->agreed[own->n_agreed++] = (pl_agreed){.name = name, .type = *type};
  return true;
}

pl_code pl_laying_init(pl_laying *part, pl_partitioning *own, const pl_ir_function *from, pl_ir_function *to,
                       pl_error *error) {
  const char **fed = PL_TAKE(own->scratch, const char *, from->n_values + 1);
  const pl_ir_op **stored = PL_TAKE(own->scratch, const pl_ir_op *, from->n_values + 1);
  *part = (pl_laying){.own = own, .from = from, .to = to, .fed = fed, .stored = stored};
  part->variants = PL_TAKE(own->scratch, pl_variants, from->n_values + 1);
  if (fed == NULL || stored == NULL || part->variants == NULL || to == NULL)
    return pl_fail_memory(error, "the distributed program");
  for (int32_t i = 0; i < from->n_ops; i++) {
    const pl_ir_op *op = &from->ops[i];
    if (is_row(op, "accumulate")) fed[op->inputs[0]] = op->path;
    if (is_row(op, "store")) stored[op->inputs[0]] = op;
    part->update = part->update || is_row(op, "gradient");
  }
  return PL_OK;
}

pl_code pl_partition_function(pl_partitioning *own, int32_t function, int32_t *made, pl_error *error) {
  *made = own->made[function];
  if (*made != PL_IR_NONE) return PL_OK;
  const pl_ir_function *from = own->from->functions[function];
  pl_laying part;
  /* Callees first: they are added while this one is written, so it is added when it is whole. */
  pl_ir_function *to = PL_TAKE(own->to->arena, pl_ir_function, 1);
  if (to != NULL) to->name = pl_arena_strdup(own->to->arena, from->name);
  PL_TRY(pl_laying_init(&part, own, from, to, error));
  for (int32_t i = 0; i < from->n_arguments; i++) {
    pl_ir_type type = from->values[i].type;
    pl_layout_handed(own->rules, &type);
    pl_laying_set(&part, i, pl_ir_argument(own->to, to, from->values[i].name, &type));
  }
  PL_TRY(lay_ops(&part, error));
  int32_t results[OPERANDS_MAX];
  PL_ASSERT(from->n_results <= OPERANDS_MAX);
  for (int32_t i = 0; i < from->n_results; i++)
    PL_TRY(pl_laying_handed(&part, from->results[i], &results[i], error));
  pl_ir_results_set(own->to, to, from->n_results, results);
  own->made[function] = *made = pl_ir_function_append(own->to, to);
  return *made != PL_IR_NONE ? PL_OK : pl_fail_memory(error, "the distributed program");
}
