/* See workloads/memory/outlook.h. */
#include "workloads/memory/outlook.h"

#include "workloads/fuse/kernel_wider.h"
#include "workloads/fuse/reading.h"
#include "workloads/language/ir_place.h"
#include "workloads/language/ir_product.h"
#include "workloads/language/ir_routing.h"
#include "workloads/language/ir_table.h"

typedef struct looking {
  const pl_ir_module *module;
  const pl_framework *framework;
  pl_arena *arena;
  pl_ir_routing routing;
} looking;

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

bool pl_memory_op_reads(const pl_ir_op *op) {
  return pl_ir_row_at(op->row)->effect == PL_IR_READS || op->n_outputs == 0;
}

static int32_t *last_reads(const pl_ir_function *f, pl_arena *arena) {
  int32_t *last = PL_TAKE(arena, int32_t, f->n_values + 1);
  if (last == NULL) return NULL;
  for (int32_t i = 0; i < f->n_values; i++)
    last[i] = -1;
  for (int32_t i = 0; i < f->n_ops; i++)
    for (int32_t k = 0; k < f->ops[i].n_inputs; k++)
      last[f->ops[i].inputs[k]] = i;
  for (int32_t i = 0; i < f->n_results; i++)
    last[f->results[i]] = f->n_ops;
  return last;
}

/* Whether an update reads states that lie in the host. */
static bool in_host(const pl_ir_function *f, const pl_ir_op *op) {
  for (int32_t i = 0; i < op->n_inputs; i++) {
    int32_t maker = f->values[op->inputs[i]].op;
    if (maker != PL_IR_NONE && is(&f->ops[maker], "state") && pl_ir_op_is_in_host(&f->ops[maker])) return true;
  }
  return false;
}

static pl_memory_role role_of(const looking *own, const pl_ir_function *f, const pl_ir_op *op) {
  static const struct {
    const char *row;
    pl_memory_role role;
  } roles[] = {{"call", PL_ROLE_CALLS},         {"rename", PL_ROLE_SHARES},        {"cut", PL_ROLE_SHARES},
               {"spread", PL_ROLE_SHARES},      {"constant", PL_ROLE_SHARES},      {"split", PL_ROLE_SHARES},
               {"param", PL_ROLE_IS_PARAMETER}, {"gradient", PL_ROLE_IS_GRADIENT}, {"sgd", PL_ROLE_IS_UPDATE}};
  if (pl_ir_is_dispatch(&own->routing, f, op)) return PL_ROLE_MAKES;
  if (is(op, "accumulate") && pl_ir_op_is_in_host(op)) return PL_ROLE_ADDS_IN_HOST;
  if (is(op, "gradient") && pl_ir_op_is_in_host(op)) return PL_ROLE_IS_GRADIENT_IN_HOST;
  for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
    if (is(op, roles[i].row) && (op->n_outputs > 0 || roles[i].role < PL_ROLE_IS_PARAMETER)) return roles[i].role;
  if (is(op, "adam") && op->n_outputs > 0) return in_host(f, op) ? PL_ROLE_IS_UPDATE_IN_HOST : PL_ROLE_IS_UPDATE;
  if (is(op, "keep")) return pl_ir_op_is_in_host(op) ? PL_ROLE_SENDS_TO_HOST : PL_ROLE_KEEPS;
  if (is(op, "kept")) return pl_ir_op_is_in_host(op) ? PL_ROLE_TAKES_FROM_HOST : PL_ROLE_TAKES;
  return pl_memory_op_reads(op) ? PL_ROLE_READS : PL_ROLE_MAKES;
}

/* Bytes of the masks that an op writes. */
static double mask_bytes(const looking *own, const pl_ir_function *f, const pl_ir_op *op) {
  const pl_ir_launched_ops of = pl_ir_launched_by(own->module, f, op);
  double bytes = 0;
  for (const pl_ir_op *each = of.ops; each < of.ops + of.n; each++)
    if (is(each, "dropout"))
      bytes += pl_ir_type_local_elements(&own->module->mesh, &of.f->values[each->first_output].type);
  return bytes;
}

/* Elements of gradients that an op, or what it calls, adds up. */
static double added_by(const looking *own, const pl_ir_function *f, const pl_ir_op *op) {
  const pl_ir_launched_ops of = pl_ir_launched_by(own->module, f, op);
  double elements = 0;
  for (const pl_ir_op *each = of.ops; each < of.ops + of.n; each++)
    if (is(each, "accumulate"))
      elements += pl_ir_type_local_elements(&own->module->mesh, &of.f->values[each->inputs[0]].type);
  return elements;
}

/* ---- what buffers hold: workloads/memory/buffer_memory.h ---- */

/* Of a kernel of copies, casts and scales alone; of one such op. */
static bool only_copies(const looking *own, const pl_ir_function *f, const pl_ir_op *op) {
  const pl_ir_launched_ops of = pl_ir_launched_by(own->module, f, op);
  for (const pl_ir_op *each = of.ops; each < of.ops + of.n; each++)
    if (!is(each, "copy") && !is(each, "cast") && !is(each, "scale")) return false;
  return true;
}

/* Parameters that were gathered, and copies of them. */
static bool is_gathered(const looking *own, const pl_ir_function *f, int32_t value) {
  const pl_ir_op *op = pl_ir_maker_of(f, value);
  if (op == NULL || op->n_inputs == 0) return false;
  const pl_ir_op *before = pl_ir_maker_of(f, op->inputs[0]);
  if (is(op, "all_gather")) return before != NULL && is(before, "param");
  return only_copies(own, f, op) && is_gathered(own, f, op->inputs[0]);
}

/* Of a product of those that `op` launches which has operand k of it for a weight. */
static pl_ir_element narrow_in(const looking *own, const pl_ir_function *f, const pl_ir_op *op, int32_t k) {
  const pl_ir_launched_ops of = pl_ir_launched_by(own->module, f, op);
  int32_t value = of.f == f ? op->inputs[k] : k; /* an argument of its kernel */
  pl_ir_element element;
  for (const pl_ir_op *each = of.ops; each < of.ops + of.n; each++)
    if (is(each, "product") && each->inputs[1] == value &&
        pl_ir_element_of(pl_ir_text_of(each, PL_IR_PRODUCT_NARROW), &element))
      return element;
  return PL_IR_ELEMENT_COUNT;
}

static pl_ir_element narrow_element(const looking *own, const pl_ir_function *f, int32_t value) {
  pl_ir_element found = PL_IR_ELEMENT_COUNT;
  for (int32_t i = 0; i < f->n_ops && found == PL_IR_ELEMENT_COUNT; i++)
    for (int32_t k = 0; k < f->ops[i].n_inputs && found == PL_IR_ELEMENT_COUNT; k++) {
      const pl_ir_op *op = &f->ops[i];
      if (op->inputs[k] != value) continue;
      bool passes = op->n_outputs == 1 && (is(op, "all_gather") || only_copies(own, f, op));
      found = passes ? narrow_element(own, f, op->first_output) : narrow_in(own, f, op, k);
    }
  return found;
}

pl_ir_element pl_memory_narrow_element(const pl_ir_module *module, const pl_ir_function *f, int32_t value) {
  const looking own = {.module = module};
  return narrow_element(&own, f, value);
}

/* What is added up behind a collective, perhaps cast. */
static bool is_added(const looking *own, const pl_ir_function *f, int32_t value) {
  for (int32_t i = 0; i < f->n_ops; i++)
    for (int32_t k = 0; k < f->ops[i].n_inputs; k++)
      if (f->ops[i].inputs[k] == value) return added_by(own, f, &f->ops[i]) > 0;
  return false;
}

/* A gradient on its way to its reduction: its copies, and where they are of all of a function, what they are of. */
static void leave_path(const looking *own, const pl_ir_function *f, int32_t value, pl_outlook *look) {
  const pl_ir_op *op = pl_ir_maker_of(f, value);
  bool whole = own->framework->gradients.gradient_path != PL_GRADIENTS_ADDED;
  look->bytes[value] = 0;
  for (int32_t i = 0; op != NULL && only_copies(own, f, op) && i < op->n_inputs; i++) {
    const pl_ir_op *before = pl_ir_maker_of(f, op->inputs[i]);
    if (whole || (before != NULL && only_copies(own, f, before))) leave_path(own, f, op->inputs[i], look);
  }
}

static void leave_buffers(const looking *own, const pl_ir_function *f, pl_outlook *look) {
  for (int32_t i = 0; i < f->n_values; i++)
    if (is_gathered(own, f, i)) look->bytes[i] = 0;
  for (int32_t i = 0; i < f->n_ops; i++) {
    const pl_ir_op *op = &f->ops[i];
    bool reduces = is(op, "reduce_scatter") || is(op, "all_reduce");
    if (!reduces || !is_added(own, f, op->first_output)) continue;
    look->bytes[op->first_output] = 0;
    leave_path(own, f, op->inputs[0], look);
  }
}

/* PyTorch's cross entropy keeps the 16-bit logits, and has the gradient of the targets' elements in a tensor of its
 * own, beside the fp32 one that it makes of it (PL_LOSS_COPIES). */
static double beside_loss(const looking *own, const pl_ir_function *f, const pl_ir_op *op) {
  const pl_ir_launched_ops of = pl_ir_launched_by(own->module, f, op);
  if (own->framework->kernels.loss != PL_LOSS_COPIES) return 0;
  for (const pl_ir_op *each = of.ops; each < of.ops + of.n; each++) {
    if (!is(each, "place")) continue;
    const pl_ir_type *type = &f->values[op->first_output].type; /* a rank's part of it */
    double elements = pl_ir_type_local_elements(&own->module->mesh, type);
    bool cast = false; /* of logits that are made in 16 bits */
    for (int32_t i = 0; i < f->n_ops; i++)
      cast = cast || (is(&f->ops[i], "cast") && f->ops[i].inputs[0] == op->first_output);
    return elements * (pl_ir_element_bytes((pl_ir_element)type->element) + (cast ? 2 : 0));
  }
  return 0;
}

static int32_t written_over(const looking *own, const pl_ir_function *f, const pl_ir_op *op, const pl_ir_type *type) {
  const pl_ir_launched_ops of = pl_ir_launched_by(own->module, f, op);
  bool over =
      is(op, "all_reduce") || (of.n > 0 && pl_read_loss_is_in_place(own->framework->kernels.loss, &of.ops[0], type));
  for (int32_t i = 0; over && i < op->n_inputs; i++)
    if (pl_ir_type_same_shape(&f->values[op->inputs[i]].type, type)) return op->inputs[i];
  return PL_IR_NONE;
}

static int32_t dropouts_in(const pl_ir_module *module, const pl_ir_function *f) {
  int32_t n = 0;
  for (int32_t i = 0; i < f->n_ops; i++) {
    n += is(&f->ops[i], "dropout");
    if (is(&f->ops[i], "kernel")) n += dropouts_in(module, module->functions[f->ops[i].callee]);
  }
  return n;
}

/* In the order in which ops name them. */
static bool list_ends(const looking *own, const pl_ir_function *f, pl_outlook *look) {
  int32_t n = f->n_values, at = 0;
  for (int32_t i = 0; i < f->n_ops; i++)
    n += f->ops[i].n_inputs + f->ops[i].n_outputs;
  look->ends = PL_TAKE(own->arena, int32_t, n + 1);
  look->ends_at = PL_TAKE(own->arena, int32_t, f->n_ops + 2);
  if (own->arena->failed) return false;
  for (int32_t i = 0; i < f->n_ops; i++) {
    const pl_ir_op *op = &f->ops[i];
    look->ends_at[i] = at;
    for (int32_t k = 0; k < op->n_inputs + op->n_outputs; k++) {
      int32_t value = k < op->n_inputs ? op->inputs[k] : op->first_output + k - op->n_inputs;
      if (look->last[value] <= i) look->ends[at++] = value;
    }
  }
  look->ends_at[f->n_ops] = at;
  for (int32_t value = 0; value < f->n_values; value++)
    if (look->last[value] >= f->n_ops) look->ends[at++] = value;
  look->ends_at[f->n_ops + 1] = at;
  return true;
}

static bool look_at_ops(const looking *own, const pl_ir_function *f, pl_outlook *look) {
  const uint8_t *times;
  look->last = last_reads(f, own->arena);
  if (look->last == NULL || !list_ends(own, f, look)) return false;
  if (!pl_kernel_wider_take(own->module, f, own->framework, own->arena, &times)) return false;
  look->over = PL_TAKE(own->arena, int32_t, f->n_values + 1);
  look->bytes = PL_TAKE(own->arena, double, f->n_values + 1);
  look->masks = PL_TAKE(own->arena, double, f->n_ops + 1);
  look->added = PL_TAKE(own->arena, double, f->n_ops + 1);
  look->beside = PL_TAKE(own->arena, double, f->n_ops + 1);
  look->elements = PL_TAKE(own->arena, double, f->n_ops + 1);
  look->roles = PL_TAKE(own->arena, uint8_t, f->n_ops + 1);
  for (int32_t i = 0; !own->arena->failed && i < f->n_ops; i++) {
    const pl_ir_op *op = &f->ops[i];
    look->roles[i] = (uint8_t)role_of(own, f, op);
    if (look->roles[i] >= PL_ROLE_IS_PARAMETER)
      look->elements[i] = pl_ir_type_local_elements(&own->module->mesh, &f->values[op->first_output].type);
    look->masks[i] = mask_bytes(own, f, op);
    look->added[i] = added_by(own, f, op);
    look->beside[i] = own->module->level == PL_IR_KERNELS ? beside_loss(own, f, op) : 0;
    for (int32_t value = op->first_output; value < op->first_output + op->n_outputs; value++) {
      const pl_ir_type *type = &f->values[value].type;
      look->over[value] = written_over(own, f, op, type);
      look->bytes[value] = type->element == PL_IR_I32 ? 0
                                                      : pl_ir_type_local_bytes(&own->module->mesh, type) *
                                                            pl_ir_routed_share(&own->routing, type);
      if (is(op, "copy")) look->bytes[value] *= (double)pl_ir_integer_of(op, "times", 1);
      if (times != NULL) look->bytes[value] *= times[value];
    }
  }
  if (!own->arena->failed && own->module->level == PL_IR_KERNELS) leave_buffers(own, f, look);
  return !own->arena->failed;
}

pl_outlook *pl_outlooks_take(const pl_ir_module *module, const pl_framework *framework, pl_arena *arena) {
  const looking own = {.module = module, .framework = framework, .arena = arena, .routing = pl_ir_routing_of(module)};
  pl_outlook *all = PL_TAKE(arena, pl_outlook, module->n_functions + 1);
  for (int32_t i = 0; i < module->n_functions && !arena->failed; i++) {
    const pl_ir_function *f = module->functions[i];
    if (!look_at_ops(&own, f, &all[i])) return NULL;
    const char *name = pl_arena_printf(arena, "%s.backward", f->name);
    int32_t backward = name != NULL ? pl_ir_function_find(module, name) : PL_IR_NONE;
    if (backward != PL_IR_NONE)
      all[i].makes_again = dropouts_in(module, module->functions[backward]) > dropouts_in(module, f);
  }
  return arena->failed ? NULL : all;
}
