/* See workloads/fuse/kernel_narrow.h. */
#include "workloads/fuse/kernel_narrow.h"

#include <string.h>

#include "workloads/fuse/kept_path.h"
#include "workloads/fuse/kernel_steps.h"
#include "workloads/language/ir_again.h"
#include "workloads/language/ir_place.h"
#include "workloads/language/ir_product.h"

static const char *const reason = "for products in it";

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

/* PL_IR_ELEMENT_COUNT: it is none. */
static pl_ir_element narrow_element(const pl_ir_op *op) {
  pl_ir_element element = PL_IR_ELEMENT_COUNT;
  if (is(op, "product")) (void)pl_ir_element_of(pl_ir_text_of(op, PL_IR_PRODUCT_NARROW), &element);
  return element;
}

static bool is_narrow(const pl_ir_op *op) {
  return narrow_element(op) != PL_IR_ELEMENT_COUNT;
}

/* ---- what is read by narrow products alone ---- */

static bool is_tensor_axis(const pl_ir_axis *axis) {
  return pl_ir_axis_is_of_tensors(axis->name.text) && axis->extent > 1;
}

/* Sequence parallelism's, of what is cast before: tokens of the tensor group. */
static bool gathers_tokens(const pl_kernel_narrowing *own, const pl_ir_op *op) {
  const pl_ir_module *module = own->from;
  bool over = false;
  if (own->is_apart || !is(op, "all_gather") || !pl_ir_op_has_name(op, "dim", pl_ir_name_of("s"))) return false;
  for (int32_t i = 0; i < module->mesh.n_axes; i++)
    over = over || (is_tensor_axis(&module->mesh.axes[i]) && pl_ir_op_has_name(op, "over", module->mesh.axes[i].name));
  return over;
}

/* Values that are kept, read again, gathered and kept again are looked through so often; a program may go in a circle.
 */
enum { MOST_READS = 8 };

static bool reads_kept_narrow(const pl_kernel_narrowing *own, const pl_ir_function *f, const pl_ir_op *op,
                              int32_t depth);

/* Of a value that is no parameter. `f` is a function of own->from. */
static bool only_narrow_reads(const pl_kernel_narrowing *own, const pl_ir_function *f, int32_t value, int32_t depth) {
  bool any = false;
  if (depth == MOST_READS) return false;
  for (int32_t i = 0; i < f->n_results; i++)
    if (f->results[i] == value) return false;
  for (int32_t i = 0; i < f->n_ops; i++) {
    const pl_ir_op *op = &f->ops[i];
    for (int32_t k = 0; k < op->n_inputs; k++) {
      if (op->inputs[k] != value) continue;
      bool narrow = is_narrow(op) ||
                    (gathers_tokens(own, op) && only_narrow_reads(own, f, op->first_output, depth + 1)) ||
                    (is(op, "keep") && reads_kept_narrow(own, f, op, depth + 1));
      if (!narrow) return false;
      any = true;
    }
  }
  return any;
}

static bool is_kept_at(const pl_ir_op *op, const char *path) {
  return is(op, "kept") && op->path != NULL && strcmp(op->path, path) == 0;
}

/* Whether all that read it again in a function, which is *any, are. */
static bool reads_narrow(const pl_kernel_narrowing *own, const pl_ir_function *f, const char *path, int32_t depth,
                         bool *any) {
  for (int32_t i = 0; f != NULL && i < f->n_ops; i++) {
    if (!is_kept_at(&f->ops[i], path)) continue;
    if (!only_narrow_reads(own, f, f->ops[i].first_output, depth)) return false;
    *any = true;
  }
  return true;
}

static const pl_ir_function *derived(const pl_kernel_narrowing *own, const pl_ir_function *f, const char *end) {
  const pl_ir_function *forward = pl_ir_forward_of(own->from, f->name);
  return pl_kernel_derived_of(own->from, forward != NULL ? forward : f, end);
}

/* What `keep` or `kept` of function f is of, is kept in the narrow type. */
static bool reads_kept_narrow(const pl_kernel_narrowing *own, const pl_ir_function *f, const pl_ir_op *op,
                              int32_t depth) {
  bool any = false;
  return !own->casts_again && !pl_ir_op_is_in_host(op) &&
         reads_narrow(own, derived(own, f, ".backward"), op->path, depth, &any) &&
         reads_narrow(own, derived(own, f, ".weights"), op->path, depth, &any) && any;
}

static bool is_kept_narrow(const pl_kernel_narrowing *own, const pl_ir_function *f, const pl_ir_op *op) {
  return reads_kept_narrow(own, f, op, 0);
}

static bool has_narrow_reader(const pl_ir_function *f, int32_t value) {
  for (int32_t i = 0; i < f->n_ops; i++)
    for (int32_t k = 0; k < f->ops[i].n_inputs; k++)
      if (f->ops[i].inputs[k] == value && is_narrow(&f->ops[i])) return true;
  return false;
}

static bool reads_some_narrow(const pl_ir_function *f, const char *path) {
  for (int32_t i = 0; f != NULL && i < f->n_ops; i++)
    if (is_kept_at(&f->ops[i], path) && has_narrow_reader(f, f->ops[i].first_output)) return true;
  return false;
}

/* Kept in both types: a narrow product reads it, and something else does. */
static bool is_kept_twice(const pl_kernel_narrowing *own, const pl_ir_function *f, const pl_ir_op *op) {
  bool some = reads_some_narrow(derived(own, f, ".backward"), op->path) ||
              reads_some_narrow(derived(own, f, ".weights"), op->path);
  return some && !own->casts_again && !pl_ir_op_is_in_host(op) && !is_kept_narrow(own, f, op);
}

/* ---- casts ---- */

static const pl_ir_function *old(const pl_kernel_narrowing *own) {
  return own->finding->read.f;
}

/* Of the narrow products that read a value, or what is gathered of it. */
static uint8_t element_for(const pl_kernel_narrowing *own, int32_t value) {
  const pl_ir_function *f = old(own);
  for (int32_t i = 0; i < f->n_ops; i++)
    for (int32_t k = 0; k < f->ops[i].n_inputs; k++) {
      const pl_ir_op *op = &f->ops[i];
      if (op->inputs[k] != value) continue;
      if (is_narrow(op)) return (uint8_t)narrow_element(op);
      if (gathers_tokens(own, op)) return element_for(own, op->first_output);
    }
  return own->element;
}

/* The type that a value of the old function has when it is cast. */
static pl_ir_type narrow_type(const pl_kernel_narrowing *own, int32_t value) {
  pl_ir_type type = own->function->values[own->map[value]].type;
  type.element = element_for(own, value);
  return type;
}

static int32_t append_cast(pl_kernel_narrowing *own, pl_ir_function *to, int32_t input, const char *name,
                           const pl_ir_type *type, int64_t copies) {
  pl_ir_attribute attributes[2];
  int32_t n = 0;
  if (copies > 1) attributes[n++] = pl_ir_integer("copies", copies);
  int64_t reads = own->is_scaled && (!own->is_apart || own->is_turned);
  if (type->element == PL_IR_F4) reads = 2;
  if (reads > 0) attributes[n++] = pl_ir_integer("scaled", reads);
  return pl_ir_op_add(own->to, to,
                      &(pl_ir_making){.row = pl_ir_row_of("cast"),
                                      .n_inputs = 1,
                                      .n_outputs = 1,
                                      .n_attributes = n,
                                      .inputs = &input,
                                      .attributes = attributes,
                                      .output_names = &name,
                                      .output_types = type,
                                      .reason = reason,
                                      .callee = PL_IR_NONE});
}

static const char *name_in(const pl_kernel_narrowing *own, int32_t value) {
  const char *name = pl_arena_printf(own->to->arena, "%s.%s", old(own)->values[value].name,
                                     pl_ir_element_name((pl_ir_element)element_for(own, value)));
  return name != NULL ? name : "narrow";
}

static void cast_one(pl_kernel_narrowing *own, int32_t value, int64_t copies) {
  if (own->map[value] == PL_IR_NONE) return; /* no memory */
  const pl_ir_type type = narrow_type(own, value);
  own->narrow[value] = append_cast(own, own->function, own->map[value], name_in(own, value), &type, copies);
}

/* Several that one product works on, gradients of queries, keys and values, by one kernel. */
static void cast_together(pl_kernel_narrowing *own, int32_t n, const int32_t *values, int64_t copies) {
  const char *name = pl_arena_printf(own->to->arena, "%s.%s", old(own)->name, name_in(own, values[n - 1]));
  pl_ir_function *kernel = name != NULL ? pl_ir_function_add(own->to, name) : NULL;
  int32_t callee = own->to->n_functions - 1, operands[PL_IR_OPERANDS_MAX], inside[PL_IR_OPERANDS_MAX];
  pl_ir_type types[PL_IR_OPERANDS_MAX];
  const char *names[PL_IR_OPERANDS_MAX];
  if (kernel == NULL) return;
  for (int32_t i = 0; i < n; i++) {
    if (own->map[values[i]] == PL_IR_NONE) return;
    operands[i] = own->map[values[i]];
    types[i] = narrow_type(own, values[i]);
    names[i] = name_in(own, values[i]);
    inside[i] =
        pl_ir_argument(own->to, kernel, old(own)->values[values[i]].name, &own->function->values[operands[i]].type);
  }
  for (int32_t i = 0; i < n; i++)
    if (inside[i] != PL_IR_NONE) inside[i] = append_cast(own, kernel, inside[i], names[i], &types[i], copies);
  pl_ir_results_set(own->to, kernel, n, inside);
  int32_t first = pl_ir_op_add(own->to, own->function,
                               &(pl_ir_making){.row = pl_ir_row_of("kernel"),
                                               .n_inputs = n,
                                               .n_outputs = n,
                                               .inputs = operands,
                                               .output_names = names,
                                               .output_types = types,
                                               .path = "",
                                               .callee = callee});
  for (int32_t i = 0; i < n; i++)
    own->narrow[values[i]] = first == PL_IR_NONE ? PL_IR_NONE : first + i;
}

static void cast_values(pl_kernel_narrowing *own, int32_t n, const int32_t *values, int64_t copies) {
  if (n == 1) cast_one(own, values[0], copies);
  if (n > 1) cast_together(own, n, values, copies);
}

/* ---- a function ---- */

void pl_narrowing_init(pl_kernel_narrowing *own, const pl_ir_module *from, pl_ir_module *to,
                       const pl_framework *framework) {
  bool group = false;
  for (int32_t i = 0; i < from->mesh.n_axes; i++)
    group = group || is_tensor_axis(&from->mesh.axes[i]);
  *own = (pl_kernel_narrowing){.from = from,
                               .to = to,
                               .casts_again = (framework->kernels.fp8_scaling == PL_FP8_DYNAMIC && !group) ||
                                              framework->kernels.fp8_scaling == PL_FP8_ROWWISE,
                               .is_apart = framework->kernels.fp8_scaling == PL_FP8_ROWWISE,
                               .is_scaled = framework->kernels.fp8_scaling != PL_FP8_DELAYED};
  for (int32_t f = 0; f < from->n_functions && !own->any; f++)
    for (int32_t i = 0; i < from->functions[f]->n_ops && !own->any; i++) {
      own->element = (uint8_t)narrow_element(&from->functions[f]->ops[i]);
      own->any = own->element != PL_IR_ELEMENT_COUNT;
    }
}

bool pl_narrowing_begin(pl_kernel_narrowing *own, const pl_kernel_finding *finding, pl_ir_function *function,
                        const int32_t *next_of, int32_t *map, pl_arena *scratch) {
  if (!own->any) return true;
  int32_t n = finding->read.f->n_values;
  own->finding = finding;
  own->function = function;
  own->next_of = next_of;
  own->map = map;
  own->narrow = PL_TAKE(scratch, int32_t, n + 1);
  own->is_taken = PL_TAKE(scratch, bool, n + 1);
  own->values = PL_TAKE(scratch, int32_t, n + 1);
  own->swapped = PL_TAKE(scratch, int32_t, n + 1);
  own->before = PL_TAKE(scratch, int32_t, n + 1);
  own->again = pl_ir_again_take_if_derived(finding->read.f, scratch);
  own->n_swapped = 0;
  for (int32_t i = 0; own->narrow != NULL && i < n; i++)
    own->narrow[i] = PL_IR_NONE;
  return !scratch->failed;
}

/* The op with its operand cast, which gives what is cast of its own result. */
static void write_cast(pl_kernel_narrowing *own, const pl_ir_op *op) {
  const char *names[PL_IR_OPERANDS_MAX];
  pl_ir_type types[PL_IR_OPERANDS_MAX];
  pl_ir_making making = pl_ir_making_like(old(own), op, names, types);
  if (op->n_inputs > 0) {
    if (own->narrow[op->inputs[0]] == PL_IR_NONE) cast_one(own, op->inputs[0], 2);
    if (own->narrow[op->inputs[0]] == PL_IR_NONE) return; /* no memory */
    making.inputs = &own->narrow[op->inputs[0]];
    own->is_taken[op->inputs[0]] = own->is_taken[op->inputs[0]] || gathers_tokens(own, op); /* for a layer */
  }
  making.callee = PL_IR_NONE;
  for (int32_t i = 0; i < op->n_outputs; i++)
    types[i].element = element_for(own, op->first_output + i);
  int32_t first = pl_ir_op_add(own->to, own->function, &making);
  for (int32_t i = 0; i < op->n_outputs; i++) {
    own->map[op->first_output + i] = PL_IR_NONE;
    own->narrow[op->first_output + i] = first == PL_IR_NONE ? PL_IR_NONE : first + i;
  }
}

/* What is kept in the narrow type beside what is kept as it is, under its path and that type's name; and read again. */
static void write_part(pl_kernel_narrowing *own, const pl_ir_op *op) {
  bool keeps = is(op, "keep");
  int32_t value = keeps ? op->inputs[0] : op->first_output;
  if (!keeps && !has_narrow_reader(old(own), value)) return;
  pl_ir_element element = (pl_ir_element)element_for(own, value);
  const char *path = pl_kept_path_of_part(own->from, op->path, pl_ir_element_name(element), own->to->arena);
  pl_ir_type type = old(own)->values[value].type;
  type.element = (uint8_t)element;
  if (keeps && own->narrow[value] == PL_IR_NONE) cast_one(own, value, 2);
  if (path == NULL || (keeps && own->narrow[value] == PL_IR_NONE)) return; /* no memory */
  int32_t made = pl_ir_op_add(own->to, own->function,
                              &(pl_ir_making){.row = op->row,
                                              .n_inputs = keeps,
                                              .n_outputs = !keeps,
                                              .inputs = &own->narrow[value],
                                              .output_names = &path,
                                              .output_types = &type,
                                              .path = path,
                                              .reason = reason,
                                              .callee = PL_IR_NONE});
  if (!keeps) own->narrow[value] = made;
}

bool pl_narrowing_writes(pl_kernel_narrowing *own, int32_t index) {
  if (!own->any) return false;
  const pl_ir_op *op = &old(own)->ops[index];
  bool keeps = is(op, "keep") || is(op, "kept");
  if (keeps && is_kept_twice(own, old(own), op)) {
    write_part(own, op);
    return false;
  }
  bool writes = (keeps && is_kept_narrow(own, old(own), op)) ||
                (gathers_tokens(own, op) && only_narrow_reads(own, old(own), op->first_output, 0));
  if (writes) write_cast(own, op);
  return writes;
}

/* ---- around a group ---- */

static bool is_among(const int32_t *values, int32_t n, int32_t value) {
  for (int32_t i = 0; i < n; i++)
    if (values[i] == value) return true;
  return false;
}

static void swap(pl_kernel_narrowing *own, int32_t value) {
  if (own->narrow[value] == PL_IR_NONE || is_among(own->swapped, own->n_swapped, value)) return;
  own->before[own->n_swapped] = own->map[value];
  own->swapped[own->n_swapped++] = value;
  own->map[value] = own->narrow[value];
}

/* Operand k of the group's narrow products, where it is no parameter: in *values, those that are not cast yet or are to
 * be cast once more. Returns their number. */
static int32_t take_values(pl_kernel_narrowing *own, int32_t group, bool of_weights, int32_t k, int32_t *values) {
  int32_t n = 0;
  for (int32_t i = group; i != PL_IR_NONE; i = own->next_of[i]) {
    const pl_ir_op *op = &old(own)->ops[i];
    if (!is_narrow(op) || (pl_read_weight(&own->finding->read, i) == NULL) != of_weights) continue;
    int32_t value = op->inputs[k];
    bool known = own->narrow[value] != PL_IR_NONE, is_there = own->map[value] != PL_IR_NONE;
    bool for_weights = (k == 0 || own->is_apart) && own->casts_again;
    bool again = known && is_there && (of_weights ? for_weights : own->is_taken[value]);
    if ((!known || again) && !is_among(values, n, value)) values[n++] = value;
  }
  return n;
}

/* Whether it is of a linear layer, perhaps computed again, not of a gradient. */
static bool is_of_layer(const pl_kernel_narrowing *own, int32_t group) {
  for (int32_t i = group; i != PL_IR_NONE; i = own->next_of[i])
    if (is_narrow(&old(own)->ops[i])) return !pl_ir_is_derived(old(own)) || own->again[i];
  return false;
}

static bool casts_once(const pl_kernel_narrowing *own, int32_t group, bool of_weights, int32_t k) {
  bool one = of_weights ? k == 0 : is_of_layer(own, group);
  return own->casts_again && (one || own->is_apart);
}

/* Two copies, as it is and transposed, unless the transposed one is made of another cast. A scale a row is that of what
 * is summed over: the outer dimension of what a weight gradient reads. Of products for weights what the layer was given
 * (operand 0) and its gradient are cast each by itself. */
static void take(pl_kernel_narrowing *own, int32_t group, bool of_weights, int32_t k) {
  int32_t *values = own->values, n = take_values(own, group, of_weights, k, values);
  own->is_turned = of_weights;
  for (int32_t at = 0; at < n; at += PL_IR_OPERANDS_MAX) /* more than one kernel can have */
    cast_values(own, n - at < PL_IR_OPERANDS_MAX ? n - at : PL_IR_OPERANDS_MAX, values + at,
                casts_once(own, group, of_weights, k) ? 1 : 2);
}

/* Weights that are cast where they are used: nobody reads the cast, which stands for what the product reads. For the
 * gradient of what came in they are scaled along the other dimension. */
static void cast_weights(pl_kernel_narrowing *own, int32_t group) {
  own->is_turned = !is_of_layer(own, group);
  for (int32_t i = group; own->is_apart && i != PL_IR_NONE; i = own->next_of[i]) {
    const pl_ir_op *op = &old(own)->ops[i];
    if (!is_narrow(op) || pl_read_weight(&own->finding->read, i) == NULL) continue;
    int32_t weight = own->map[op->inputs[1]];
    if (weight == PL_IR_NONE) continue; /* no memory */
    pl_ir_type type = own->function->values[weight].type;
    type.element = (uint8_t)narrow_element(op);
    append_cast(own, own->function, weight, "weight.narrow", &type, 1);
  }
}

void pl_narrowing_swap(pl_kernel_narrowing *own, int32_t group) {
  own->n_swapped = 0;
  if (!own->any) return;
  cast_weights(own, group);
  take(own, group, false, 0);
  take(own, group, true, 0);
  take(own, group, true, 1);
  for (int32_t i = group; i != PL_IR_NONE; i = own->next_of[i]) {
    const pl_ir_op *op = &old(own)->ops[i];
    if (!is_narrow(op)) continue;
    bool of_weights = pl_read_weight(&own->finding->read, i) == NULL;
    for (int32_t k = 0; k < (of_weights ? 2 : 1); k++) {
      own->is_taken[op->inputs[k]] = own->is_taken[op->inputs[k]] || !of_weights;
      swap(own, op->inputs[k]);
    }
  }
}

void pl_narrowing_swap_back(pl_kernel_narrowing *own) {
  while (own->n_swapped > 0) {
    own->n_swapped--;
    own->map[own->swapped[own->n_swapped]] = own->before[own->n_swapped];
  }
}
