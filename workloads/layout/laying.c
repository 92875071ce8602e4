/* See workloads/layout/laying.h: each op of a function in the way that costs least. */
#include "workloads/layout/laying_change.h"

#include <math.h>
#include <string.h>

#include "workloads/language/ir_layout.h"
#include "workloads/language/ir_place.h"

enum { OPERANDS_MAX = 32 };

/* ---- what must not move ---- */

static const pl_ir_op *maker(const pl_laying *part, int32_t value) {
  int32_t op = part->from->values[value].op;
  return op == PL_IR_NONE ? NULL : &part->from->ops[op];
}

static bool is_row(const pl_ir_op *op, const char *name) {
  return op != NULL && pl_ir_op_is(op, name);
}

static const pl_layout_rules *rules_of_path(const pl_laying *part, const char *path) {
  const pl_laying_leaves *leaves = part->own->leaves;
  return leaves != NULL ? leaves->of_path(leaves->context, part->from, path) : part->own->rules;
}

static bool is_gathered(const pl_laying *part, int32_t axis) {
  uint8_t role = part->rules->on[axis].role;
  return role == PL_AXIS_DATA || role == PL_AXIS_CONTEXT;
}

/* Devices along the axis have a parameter for tokens of their own, whole or a part that is gathered. */
static bool has_replicas(const pl_laying *part, const char *path, const pl_ir_type *type, int32_t axis) {
  return is_gathered(part, axis) || pl_layout_are_replicas(rules_of_path(part, path), axis, path, type);
}

/* How much a way is held to: an op that was chosen by name is cut as its rules say; then so that what is converted
 * needs no dimension gathered whole and weights stay where they are; then any way. */
typedef enum strictness { AS_NAMED = 0, IN_ORDER, ANY_WAY, N_STRICTNESSES } strictness;

/* Experts are spread over this axis: tokens go to them, not their weights to tokens. */
static bool holds_experts(const pl_laying *part, const pl_ir_type *type, int32_t axis) {
  const pl_ir_name experts = pl_ir_name_of("x");
  return type->on[axis] >= 0 && pl_ir_name_equal(type->dims[type->on[axis]].name, experts) &&
         pl_layout_may_cut(part->rules, axis, experts);
}

static double input_cost(const pl_laying *part, const pl_ir_op *op, int32_t k, int32_t axis, int8_t to,
                         strictness how) {
  const pl_variants *variants = &part->variants[op->inputs[k]];
  int32_t n = part->own->rules->mesh.axes[axis].extent;
  const pl_ir_type *type = &part->to->values[variants->value[0]].type;
  bool parameter = is_row(maker(part, op->inputs[k]), "param");
  bool may_move = (is_gathered(part, axis) || how == ANY_WAY) && to == PL_IR_SAME && !holds_experts(part, type, axis);
  bool state = part->update && is_row(maker(part, op->inputs[k]), "state"); /* who has it updates it */
  if (parameter && type->on[axis] != to && !part->update && !may_move) return HUGE_VAL;
  if (state && type->on[axis] != to && how != ANY_WAY) return HUGE_VAL;
  for (int32_t i = 0; i < variants->n; i++)
    if (part->to->values[variants->value[i]].type.on[axis] == to) return 0;
  return pl_laying_cost(part, type->on[axis], to, axis,
                        pl_ir_type_local_elements(&part->own->rules->mesh, type) * (type->on[axis] >= 0 ? n : 1) *
                            pl_ir_element_bytes((pl_ir_element)type->element));
}

/* Of an output that is added to the gradient of a parameter, as that lies. False: it is not. */
static bool fed_type(const pl_laying *part, const pl_ir_op *op, int32_t k, pl_ir_type *type) {
  const char *path = part->fed[op->first_output + k];
  if (path == NULL) return false;
  *type = part->from->values[op->first_output + k].type;
  pl_layout_parameter(rules_of_path(part, path), path, type);
  return true;
}

/* The gradient of a parameter that is cut over a tensor or expert axis is made cut. */
static bool suits_parameter(const pl_laying *part, const char *path, const pl_ir_type *type, int32_t axis, int8_t on) {
  if (type->on[axis] < 0) return true;
  bool of_experts = strcmp(type->dims[type->on[axis]].name.text, "x") == 0;
  return (has_replicas(part, path, type, axis) && !of_experts) || type->on[axis] == on;
}

/* A gradient that is added up and scattered over several axes of devices with other samples or tokens is so at once:
 * cut along one of them while it still is a sum along one further out, it would have to be made whole in between. */
static bool scatters_at_once(const pl_laying *part, const char *path, const pl_ir_type *fed, const pl_ir_type *made,
                             int32_t axis, int8_t on) {
  if (on < 0 || !has_replicas(part, path, fed, axis)) return true;
  for (int32_t outer = 0; outer < axis; outer++)
    if (part->rules->on[outer].role != PL_AXIS_PIPELINE && fed->on[outer] == on && made->on[outer] != on) return false;
  return true;
}

/* Where an output is stored: optimizers write the layout that state is kept in. False: it is not. */
static bool stored_type(const pl_laying *part, const pl_ir_op *op, int32_t k, pl_ir_type *type) {
  const pl_ir_op *store = part->stored[op->first_output + k];
  if (store == NULL) return false;
  *type = part->from->values[op->first_output + k].type;
  if (pl_ir_attribute_find(store, "slot") != NULL) {
    pl_layout_state(rules_of_path(part, store->path), store->path, type);
  } else {
    pl_layout_parameter(rules_of_path(part, store->path), store->path, type);
  }
  return true;
}

/* What bringing an output there costs, of the part that a device has along the other axes, as of inputs. */
static double stored_cost(const pl_laying *part, const pl_ir_type *type, int32_t axis, int8_t on) {
  const pl_ir_mesh *mesh = &part->own->rules->mesh;
  return pl_laying_cost(part, on, type->on[axis], axis,
                        pl_ir_type_local_elements(mesh, type) * (type->on[axis] >= 0 ? mesh->axes[axis].extent : 1) *
                            pl_ir_element_bytes((pl_ir_element)type->element));
}

/* Dimensions are gathered from the innermost axis that cuts them outwards: where an axis further out gives a cut up,
 * this one cannot keep it, and where one further out takes a cut on, this one cannot have had it. */
static bool suits_outer_axes(const pl_laying *part, const pl_ir_type *is, const pl_ir_type *wanted, int32_t axis,
                             int8_t to) {
  for (int32_t outer = 0; outer < axis; outer++) {
    if (part->rules->on[outer].role == PL_AXIS_PIPELINE || is->on[outer] == wanted->on[outer]) continue;
    if (is->on[outer] >= 0 && is->on[axis] == is->on[outer] && to == is->on[outer]) return false;
    if (wanted->on[outer] >= 0 && is->on[axis] == wanted->on[outer] && to == wanted->on[outer]) return false;
  }
  return true;
}

/* A partial sum that is handed from one dimension to another along an axis further out: each of its terms would be
 * sent, where added up first, and scattered, they are sent as one. */
static bool sends_terms(const pl_laying *part, const pl_ir_type *is, const pl_ir_type *wanted, int32_t axis,
                        int8_t to) {
  if (is->on[axis] != PL_IR_PARTIAL || to != PL_IR_PARTIAL) return false;
  for (int32_t outer = 0; outer < axis; outer++)
    if (part->rules->on[outer].role != PL_AXIS_PIPELINE && is->on[outer] >= 0 && wanted->on[outer] >= 0 &&
        is->on[outer] != wanted->on[outer])
      return true;
  return false;
}

/* A sum over experts would meet at every token what only some experts know. */
static bool is_allowed(const pl_laying *part, const pl_ir_op *op, const pl_ir_way *way, int32_t axis,
                       const int8_t *outputs_on) {
  if (part->update || way->kind != 0) return true;
  if (!pl_layout_may_cut(part->rules, axis, way->dim)) return false;
  const pl_ir_type *first = op->n_inputs > 0 ? &part->from->values[op->inputs[0]].type : NULL;
  bool picture = first != NULL && pl_ir_type_find(first, pl_ir_name_of("y")) >= 0; /* x is its width then */
  bool experts = strcmp(way->dim.text, "x") == 0 && !picture;
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
  int32_t n_ways; /* the same along every axis */
  pl_ir_way ways[PL_IR_WAYS_MAX];
  pl_ir_type inputs[OPERANDS_MAX], outputs[OPERANDS_MAX]; /* as they will lie */
  pl_ir_type stored[OPERANDS_MAX];                        /* of outputs, where they are */
  pl_ir_type fed[OPERANDS_MAX];                           /* of outputs that are gradients, as parameters lie */
  bool is_stored[OPERANDS_MAX], is_fed[OPERANDS_MAX];
} choice;

/* Along such an axis devices have other samples, or other tokens. */
static bool cuts_batch(const pl_laying *part, int32_t axis) {
  return part->rules->on[axis].role == PL_AXIS_DATA || part->rules->on[axis].role == PL_AXIS_CONTEXT;
}

/* A partial sum has to be added up sooner or later. What is made of partial sums here carries that on. Gradients of
 * parameters are added up over the batch behind the last microbatch, whatever is done here; over tensor ranks that have
 * a parameter whole they are so because of it. */
static bool is_owed(const pl_laying *part, const pl_ir_op *op, int32_t k, int32_t axis, const pl_ir_way *way) {
  const char *path = part->fed[op->first_output + k];
  return way->kind == PL_IR_PARTIAL &&
         (path == NULL || !has_replicas(part, path, &part->from->values[op->first_output + k].type, axis));
}

static double owed_cost(const pl_laying *part, const pl_ir_op *op, int32_t k, int32_t axis, const pl_ir_way *way) {
  if (!is_owed(part, op, k, axis, way)) return 0;
  const pl_ir_type *type = &part->from->values[op->first_output + k].type;
  double parts = pl_ir_type_elements(type) * pl_ir_element_bytes((pl_ir_element)type->element);
  for (int32_t other = 0; other < part->own->rules->mesh.n_axes && part->fed[op->first_output + k] == NULL; other++)
    if (cuts_batch(part, other)) parts /= part->own->rules->mesh.axes[other].extent;
  return pl_laying_cost(part, PL_IR_PARTIAL, PL_IR_SAME, axis, parts);
}

static bool is_possible(const pl_laying *part, const choice *own, int32_t axis, const pl_ir_way *way,
                        const int8_t *inputs_on, const int8_t *outputs_on, strictness how) {
  const pl_ir_op *op = own->op;
  if (!is_allowed(part, op, way, axis, outputs_on)) return false;
  if (how != ANY_WAY && way->kind != PL_IR_PARTIAL && pl_laying_carries_heads(part, op, axis)) return false;
  if (how == AS_NAMED && (way->kind != 0 || !pl_layout_may_cut(part->rules, axis, way->dim))) return false;
  for (int32_t i = 0; i < op->n_inputs; i++) {
    const pl_ir_type *is = &part->to->values[pl_laying_value(part, op->inputs[i])].type;
    if (!divides(part, &own->inputs[i], axis, inputs_on[i])) return false;
    if (how != ANY_WAY && !suits_outer_axes(part, is, &own->inputs[i], axis, inputs_on[i])) return false;
    if (how != ANY_WAY && sends_terms(part, is, &own->inputs[i], axis, inputs_on[i])) return false;
    if (how != ANY_WAY && pl_laying_owes_tokens(part, op, axis, inputs_on[i])) return false;
  }
  for (int32_t i = 0; i < op->n_outputs; i++)
    if (!divides(part, &own->outputs[i], axis, outputs_on[i]) ||
        (how != ANY_WAY && own->is_fed[i] &&
         (!suits_parameter(part, part->fed[op->first_output + i], &own->fed[i], axis, outputs_on[i]) ||
          !scatters_at_once(part, part->fed[op->first_output + i], &own->fed[i], &own->outputs[i], axis,
                            outputs_on[i]))))
      return false;
  return true;
}

/* A way along an axis, and where the operands lie by it. */
typedef struct candidate {
  double cost;
  int32_t moves, way; /* operands that do not stay as they are */
  int8_t inputs_on[OPERANDS_MAX], outputs_on[OPERANDS_MAX];
} candidate;

/* The cheapest; of several the one that leaves most operands as they are, and of these the first. */
static bool is_better(const candidate *a, const candidate *b) {
  if (a->cost != b->cost) return a->cost < b->cost;
  return a->moves != b->moves ? a->moves < b->moves : a->way < b->way;
}

/* Whether everything is where it is to be, and nothing is owed: there is no price to ask for. */
static bool is_free(const pl_laying *part, const choice *own, int32_t axis, const candidate *made) {
  for (int32_t i = 0; i < own->op->n_outputs; i++)
    if ((own->is_stored[i] && own->stored[i].on[axis] != made->outputs_on[i]) ||
        is_owed(part, own->op, i, axis, &own->ways[made->way]))
      return false;
  return made->moves == 0;
}

/* Not further than `most`: then it is not the cheapest. */
static double cost_of(const pl_laying *part, const choice *own, int32_t axis, const candidate *made, strictness how,
                      double most) {
  const pl_ir_op *op = own->op;
  double cost = 0;
  for (int32_t i = 0; i < op->n_inputs && cost <= most; i++)
    cost += input_cost(part, op, i, axis, made->inputs_on[i], how);
  for (int32_t i = 0; i < op->n_outputs && cost <= most; i++)
    cost += (own->is_stored[i] ? stored_cost(part, &own->stored[i], axis, made->outputs_on[i]) : 0) +
            owed_cost(part, op, i, axis, &own->ways[made->way]);
  return cost;
}

/* A way along the axis, without its price. False: it is not possible. */
static bool look_at_way(const pl_laying *part, const choice *own, int32_t axis, strictness how, int32_t way,
                        candidate *made) {
  const pl_ir_op *op = own->op;
  made->way = way;
  made->cost = made->moves = 0;
  pl_ir_way_apply(op, &own->ways[way], own->inputs, own->outputs, made->inputs_on, made->outputs_on);
  if (!is_possible(part, own, axis, &own->ways[way], made->inputs_on, made->outputs_on, how)) return false;
  for (int32_t i = 0; i < op->n_inputs; i++)
    made->moves += part->to->values[pl_laying_value(part, op->inputs[i])].type.on[axis] != made->inputs_on[i];
  return true;
}

/* Prices are asked for where they decide, behind what is free. */
static bool choose_so(const pl_laying *part, choice *own, int32_t axis, strictness how) {
  const pl_ir_op *op = own->op;
  candidate best = {.cost = HUGE_VAL}, priced[PL_IR_WAYS_MAX]; /* large: each is filled when it is there */
  int32_t n_priced = 0;
  for (int32_t way = 0; way < own->n_ways; way++) {
    candidate *made = &priced[n_priced];
    if (!look_at_way(part, own, axis, how, way, made)) continue;
    if (!is_free(part, own, axis, made))
      n_priced++;
    else if (is_better(made, &best))
      best = *made;
  }
  for (int32_t i = 0; i < n_priced; i++) {
    candidate *made = &priced[i];
    if (!is_better(made, &best)) continue;
    made->cost = cost_of(part, own, axis, made, how, best.cost);
    if (made->cost < HUGE_VAL && is_better(made, &best)) best = *made;
  }
  if (best.cost == HUGE_VAL) return false;
  for (int32_t i = 0; i < op->n_inputs; i++)
    own->inputs[i].on[axis] = best.inputs_on[i];
  for (int32_t i = 0; i < op->n_outputs; i++)
    own->outputs[i].on[axis] = best.outputs_on[i];
  return true;
}

static bool choose(const pl_laying *part, choice *own, int32_t axis) {
  bool named = part->named && !part->update && part->rules->on[axis].n_dims > 0;
  for (strictness how = named ? AS_NAMED : IN_ORDER; how < N_STRICTNESSES; how++)
    if (choose_so(part, own, axis, how)) return true;
  return false;
}

/* ---- ops ---- */

/* Axes that cut the parts of a halo. */
static int32_t axes_of_parts(const pl_laying *part, const pl_ir_op *op, const int32_t *inputs, const pl_ir_type *types,
                             pl_ir_name *axes) {
  const pl_ir_name parts = pl_ir_attribute_find(op, "to")->names[0];
  const pl_ir_type *apart = pl_ir_type_find(types, parts) >= 0 ? types : &part->to->values[inputs[0]].type;
  int32_t at = pl_ir_type_find(apart, parts), n = 0;
  for (int32_t axis = 0; axis < part->own->rules->mesh.n_axes; axis++)
    if (apart->on[axis] == at) axes[n++] = part->own->rules->mesh.axes[axis].name;
  return n;
}

/* The op in the new function, over `inputs`, with outputs of `types`. */
static pl_code copy_op(pl_laying *part, const pl_ir_op *op, const int32_t *inputs, const pl_ir_type *types,
                       pl_error *error) {
  const char *names[OPERANDS_MAX];
  for (int32_t i = 0; i < op->n_outputs; i++)
    names[i] = part->from->values[op->first_output + i].name;
  pl_ir_attribute attributes[PL_IR_ATTRIBUTES_MAX + 2];
  int32_t n = op->n_attributes;
  for (int32_t i = 0; i < n; i++)
    attributes[i] = op->attributes[i];
  bool ordered = is_row(op, "input") || is_row(op, "dropout");
  if (ordered && part->own->rules->cp > 1) attributes[n++] = pl_ir_integer("zigzag", part->own->rules->cp);
  int32_t row = op->row;
  pl_ir_name around[PL_IR_AXES_MAX];
  if (pl_laying_is_ring(part, op)) {
    row = pl_ir_row_of(is_row(op, "attention") ? "ring_attention" : "ring_attention_backward");
    attributes[n++] = pl_ir_names("over", pl_laying_context_axes(part->rules, around), around);
  }
  if (strncmp(pl_ir_row_at(op->row)->name, "halo", 4) == 0) {
    int32_t n_around = axes_of_parts(part, op, inputs, types, around);
    if (n_around > 0) attributes[n++] = pl_ir_names("over", n_around, around);
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
                                               .origin = op->origin,
                                               .callee = op->callee,
                                               .place = op->place});
  if (part->own->to->arena->failed) return pl_fail_memory(error, "the distributed program");
  for (int32_t i = 0; i < op->n_outputs; i++)
    pl_laying_set(part, op->first_output + i, first + i);
  return PL_OK;
}

static pl_code spread_over_ways(pl_laying *part, const pl_ir_op *op, pl_error *error) {
  choice own; /* large: what nobody reads stays as it was */
  own.op = op;
  for (int32_t i = 0; i < op->n_inputs; i++) {
    own.inputs[i] = part->from->values[op->inputs[i]].type;
    if (pl_laying_value(part, op->inputs[i]) == PL_IR_NONE)
      return pl_fail(error, PL_UNSUPPORTED, "@%s: %%%s is used before it is made", part->from->name,
                     part->from->values[op->inputs[i]].name);
  }
  for (int32_t i = 0; i < op->n_outputs; i++) {
    own.outputs[i] = part->from->values[op->first_output + i].type;
    own.is_stored[i] = stored_type(part, op, i, &own.stored[i]);
    own.is_fed[i] = fed_type(part, op, i, &own.fed[i]);
  }
  own.n_ways = pl_ir_ways_of(op, own.inputs, own.outputs, own.ways);
  for (int32_t axis = 0; axis < part->own->rules->mesh.n_axes; axis++) {
    if (part->rules->on[axis].role == PL_AXIS_PIPELINE) continue;
    if (pl_laying_is_ring(part, op) && part->rules->on[axis].role == PL_AXIS_CONTEXT) {
      pl_laying_in_ring(op, own.inputs, own.outputs, axis);
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
  PL_TRY(copy_op(part, op, inputs, own.outputs, error));
  if (is_row(op, "product")) return pl_laying_gather_heads(part, op, error);
  return is_row(op, "attention_backward") ? pl_laying_scatter_keys(part, op, error) : PL_OK;
}

/* The same, in the memory of the host. */
pl_code pl_laying_copy_placed(pl_laying *part, const pl_ir_op *op, bool host, const int32_t *inputs,
                              const pl_ir_type *types, pl_error *error) {
  pl_ir_op placed = *op;
  pl_ir_attribute attributes[4];
  PL_ASSERT(op->n_attributes < 4);
  for (int32_t i = 0; i < op->n_attributes; i++)
    attributes[i] = op->attributes[i];
  if (host) attributes[placed.n_attributes++] = pl_ir_text(PL_IR_PLACE, PL_IR_PLACE_HOST);
  placed.attributes = attributes;
  return copy_op(part, &placed, inputs, types, error);
}

static pl_code lay_call(pl_laying *part, const pl_ir_op *op, pl_error *error) {
  int32_t inputs[OPERANDS_MAX], made;
  pl_ir_type types[OPERANDS_MAX];
  PL_ASSERT(op->n_inputs <= OPERANDS_MAX && op->n_outputs <= OPERANDS_MAX);
  PL_TRY(pl_partition_function(part->own, op->callee, &made, error));
  const pl_ir_function *callee = part->own->to->functions[made];
  for (int32_t i = 0; i < op->n_inputs; i++)
    PL_TRY(
        pl_laying_convert(part, op->inputs[i], &callee->values[i].type, "as functions hand it on", &inputs[i], error));
  for (int32_t i = 0; i < op->n_outputs; i++)
    types[i] = callee->values[callee->results[i]].type;
  pl_ir_op call = *op;
  call.callee = made;
  return copy_op(part, &call, inputs, types, error);
}

/* The gradient buffer: as the gradients come, or as ZeRO 2 and 3 cut it. */
static pl_code lay_accumulate(pl_laying *part, const pl_ir_op *op, pl_error *error) {
  const pl_layout_rules *rules = rules_of_path(part, op->path);
  pl_ir_type type = part->to->values[pl_laying_value(part, op->inputs[0])].type;
  int32_t converted;
  pl_ir_type buffer = part->from->values[op->inputs[0]].type;
  if (pl_layout_gradient(rules, op->path, &buffer))
    for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++)
      if (buffer.on[axis] >= 0) type.on[axis] = buffer.on[axis];
  PL_TRY(pl_laying_convert(part, op->inputs[0], &type, "as gradients are kept", &converted, error));
  return pl_laying_copy_placed(part, op, rules->host[PL_LAYOUT_GRADIENTS], &converted, NULL, error);
}

static pl_code lay_store(pl_laying *part, const pl_ir_op *op, pl_error *error) {
  pl_ir_type type = part->from->values[op->inputs[0]].type;
  int32_t converted;
  if (pl_ir_attribute_find(op, "slot") != NULL) {
    pl_layout_state(rules_of_path(part, op->path), op->path, &type);
  } else {
    pl_layout_parameter(rules_of_path(part, op->path), op->path, &type);
  }
  PL_TRY(pl_laying_convert(part, op->inputs[0], &type, "as it is stored", &converted, error));
  return copy_op(part, op, &converted, NULL, error);
}

static pl_code lay_held(pl_laying *part, const pl_ir_op *op, pl_error *error) {
  pl_ir_type type = part->from->values[op->first_output].type;
  if (is_row(op, "input")) pl_layout_input(part->rules, &type);
  if (is_row(op, "param")) pl_layout_parameter(rules_of_path(part, op->path), op->path, &type);
  if (is_row(op, "state")) pl_layout_state(rules_of_path(part, op->path), op->path, &type);
  bool is_gradient = is_row(op, "gradient"), host = false;
  if (is_gradient || is_row(op, "state"))
    host = rules_of_path(part, op->path)->host[is_gradient ? PL_LAYOUT_GRADIENTS : PL_LAYOUT_STATES];
  if (is_gradient) {
    /* of @layer.update, as the accumulate of @layer.backward or @layer.weights left it */
    size_t length = strcspn(part->from->name, ".");
    const char *name = pl_arena_printf(part->own->scratch, "/%.*s/%s", (int)length, part->from->name, op->path);
    if (name == NULL || !pl_layout_agree(part->own, name, &type, NULL))
      return pl_fail_memory(error, "the distributed program");
  }
  return pl_laying_copy_placed(part, op, host, NULL, &type, error);
}

/* Where the gradient buffer of this path lies, for who updates: noted as it is written. */
static pl_code note_gradient(pl_laying *part, const pl_ir_op *op, pl_error *error) {
  size_t length = strcspn(part->from->name, ".");
  const char *name = pl_arena_printf(part->own->scratch, "/%.*s/%s", (int)length, part->from->name, op->path);
  const pl_ir_op *made = &part->to->ops[part->to->n_ops - 1];
  pl_ir_type type = part->to->values[made->inputs[0]].type, agreed = type;
  if (name == NULL || !pl_layout_agree(part->own, name, &agreed, NULL))
    return pl_fail_memory(error, "the distributed program");
  if (!pl_ir_type_equal(&type, &agreed))
    return pl_fail(error, PL_UNSUPPORTED, "@%s: gradients of %s come in two layouts", part->from->name, op->path);
  return PL_OK;
}

pl_code pl_laying_op(pl_laying *part, const pl_ir_op *op, pl_error *error) {
  const pl_laying_leaves *leaves = part->own->leaves;
  part->named = false;
  if (leaves != NULL) part->rules = leaves->of_op(leaves->context, part->from, op, &part->named);
  if (is_row(op, "call")) return lay_call(part, op, error);
  if (is_row(op, "keep")) return pl_laying_kept(part, op, true, error);
  if (is_row(op, "kept")) return pl_laying_kept(part, op, false, error);
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
