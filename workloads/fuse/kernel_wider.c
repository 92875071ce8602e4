/* See workloads/fuse/kernel_wider.h. */
#include "workloads/fuse/kernel_wider.h"

#include <string.h>

#include "workloads/fuse/kernel_steps.h"
#include "workloads/fuse/reading.h"
#include "workloads/language/ir_table.h"

typedef struct widening {
  const pl_ir_module *module;
  const pl_ir_function *f;
  bool derives; /* it is a backward function */
  pl_autocast_form form;
  uint8_t *times;
  bool *stream; /* per value: of the residual stream, or a gradient of it */
} widening;

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

static bool has_16_bits(const pl_ir_type *type) {
  return type->element == PL_IR_F16 || type->element == PL_IR_BF16;
}

/* Tokens that are in 16 bits as the program has them. */
static bool widens(const pl_ir_function *f, int32_t value) {
  const pl_ir_type *type = &f->values[value].type;
  return has_16_bits(type) && pl_read_is_of_tokens(type);
}

static bool launches(const widening *own, const pl_ir_op *op, const char *first, const char *second) {
  const pl_ir_launched_ops of = pl_ir_launched_by(own->module, own->f, op);
  for (int32_t i = 0; i < of.n; i++)
    if (is(&of.ops[i], first) || is(&of.ops[i], second)) return true;
  return false;
}

static bool is_of_weights(const pl_ir_launched_ops *of, const pl_ir_op *product) {
  return pl_ir_type_find(&of->f->values[product->first_output].type, pl_ir_name_of("b")) < 0;
}

/* Of those that an op launches: how many read its operand k first, or of them, for the gradient of their weights. */
static int32_t products_of(const widening *own, const pl_ir_op *op, int32_t k, bool of_weights) {
  const pl_ir_launched_ops of = pl_ir_launched_by(own->module, own->f, op);
  int32_t n = 0, value = of.f == own->f ? op->inputs[k] : k;
  for (int32_t i = 0; i < of.n; i++) {
    bool reads = is(&of.ops[i], "product") && of.ops[i].inputs[0] == value;
    n += reads && (!of_weights || is_of_weights(&of, &of.ops[i]));
  }
  return n;
}

/* That read the value, or what is gathered of it. */
static int32_t products_behind(const widening *own, int32_t value, bool of_weights) {
  int32_t n = 0;
  for (int32_t i = 0; i < own->f->n_ops; i++)
    for (int32_t k = 0; k < own->f->ops[i].n_inputs; k++) {
      const pl_ir_op *op = &own->f->ops[i];
      if (op->inputs[k] != value) continue;
      n += is(op, "all_gather") ? products_behind(own, op->first_output, of_weights)
                                : products_of(own, op, k, of_weights);
    }
  return n;
}

/* In a function derived from it: of what was kept there, for gradients of weights; 0 where products read it again,
 * which cast it anew. */
static int32_t casts_kept(const widening *own, const char *end, const char *path) {
  const widening later = {.module = own->module, .f = pl_kernel_derived_of(own->module, own->f, end)};
  for (int32_t i = 0; later.f != NULL && i < later.f->n_ops; i++) {
    const pl_ir_op *op = &later.f->ops[i];
    if (!is(op, "kept") || strcmp(op->path, path) != 0) continue;
    int32_t n = products_behind(&later, op->first_output, true);
    return products_behind(&later, op->first_output, false) > n ? 0 : n;
  }
  return 0;
}

/* Casts of a value that are there: those that gradients of weights read, of what is not kept those of a forward pass.
 */
static int32_t casts_of(const widening *own, int32_t value) {
  const char *path = NULL;
  if (own->derives) return products_behind(own, value, true);
  for (int32_t i = 0; i < own->f->n_ops; i++)
    if (is(&own->f->ops[i], "keep") && own->f->ops[i].inputs[0] == value) path = own->f->ops[i].path;
  if (path == NULL) return products_behind(own, value, false);
  return casts_kept(own, ".backward", path) + casts_kept(own, ".weights", path);
}

static bool feeds_norm(const widening *own, int32_t value) {
  for (int32_t i = 0; i < own->f->n_ops; i++)
    for (int32_t k = 0; k < own->f->ops[i].n_inputs; k++)
      if (own->f->ops[i].inputs[k] == value && launches(own, &own->f->ops[i], "layer_norm", "rms_norm")) return true;
  return false;
}

static bool reads_stream(const widening *own, const pl_ir_op *op) {
  for (int32_t k = 0; k < op->n_inputs; k++)
    if (own->stream[op->inputs[k]]) return true;
  return false;
}

/* Of the forward function's value that is kept there. */
static bool find_kept(const widening *forward, const char *path, int32_t *value) {
  for (int32_t i = 0; i < forward->f->n_ops; i++) {
    const pl_ir_op *op = &forward->f->ops[i];
    if (!is(op, "keep") || strcmp(op->path, path) != 0) continue;
    *value = op->inputs[0];
    return true;
  }
  return false;
}

static void widen_kept(widening *own, const pl_ir_op *kept, const widening *forward) {
  int32_t value;
  if (forward->f == NULL || !find_kept(forward, kept->path, &value)) return;
  bool of_norm = own->form == PL_AUTOCAST_NORMS && widens(forward->f, value) && feeds_norm(forward, value);
  own->times[kept->first_output] = of_norm ? 2 : forward->times[value];
  own->stream[kept->first_output] = forward->stream[value];
}

/* As it is cast for products; a norm's output that one of them reads is that cast alone. */
static uint8_t times_of(const widening *own, int32_t value, bool of_norm) {
  int32_t n = casts_of(own, value);
  if (n > 1) return (uint8_t)n;
  return own->stream[value] && !(of_norm && n == 1) ? 2 : 1;
}

/* What a norm in steps multiplies with its weights, in the type that it was given. */
static bool is_normed(const pl_ir_op *op) {
  return is(op, "multiply") && op->reason != NULL && strcmp(op->reason, PL_READ_NORM_STEPS) == 0;
}

static void widen_outputs(widening *own, const pl_ir_op *op) {
  bool passes = op->n_inputs == 1 && pl_ir_row_at(op->row)->effect == PL_IR_COLLECTIVE;
  bool norm = launches(own, op, "layer_norm", "rms_norm"),
       back = launches(own, op, "layer_norm_backward", "rms_norm_backward");
  bool sums = launches(own, op, "add", "add") && reads_stream(own, op), normed = is_normed(op);
  for (int32_t value = op->first_output; value < op->first_output + op->n_outputs; value++) {
    if (!widens(own->f, value)) continue;
    own->stream[value] =
        own->form == PL_AUTOCAST_ALL && (norm || back || sums || normed || (passes && reads_stream(own, op)));
    own->times[value] = times_of(own, value, norm && !sums);
  }
}

static void widen(widening *own, const widening *forward) {
  for (int32_t i = 0; i < own->f->n_values; i++)
    own->times[i] = 1;
  for (int32_t i = 0; i < own->f->n_arguments; i++) {
    own->stream[i] = own->form == PL_AUTOCAST_ALL && widens(own->f, i);
    own->times[i] = widens(own->f, i) && own->form == PL_AUTOCAST_ALL ? times_of(own, i, false) : 1;
  }
  for (int32_t i = 0; i < own->f->n_ops; i++) {
    const pl_ir_op *op = &own->f->ops[i];
    if (is(op, "kept"))
      widen_kept(own, op, forward);
    else if (op->n_inputs > 0)
      widen_outputs(own, op);
  }
}

static pl_autocast_form form_of(const pl_ir_function *f, const pl_framework *framework) {
  if (strstr(f->name, "layer") == NULL) return PL_AUTOCAST_OFF;
  for (int32_t i = 0; i < f->n_values; i++)
    if (has_16_bits(&f->values[i].type)) return pl_framework_autocast(framework, (pl_dtype)f->values[i].type.element);
  return PL_AUTOCAST_OFF;
}

static bool take(widening *own, const pl_ir_module *module, const pl_ir_function *f, pl_autocast_form form,
                 pl_arena *arena) {
  *own = (widening){.module = module,
                    .f = f,
                    .derives = pl_kernel_forward_of(module, f->name) != NULL,
                    .form = form,
                    .times = PL_TAKE(arena, uint8_t, f->n_values + 1),
                    .stream = PL_TAKE(arena, bool, f->n_values + 1)};
  return own->times != NULL && own->stream != NULL;
}

bool pl_kernel_wider_take(const pl_ir_module *module, const pl_ir_function *function, const pl_framework *framework,
                          pl_arena *arena, const uint8_t **times) {
  widening own, forward = {.f = pl_kernel_forward_of(module, function->name)}, none = {.f = NULL};
  pl_autocast_form form = form_of(function, framework);
  *times = NULL;
  if (form == PL_AUTOCAST_OFF || module->level != PL_IR_KERNELS) return true;
  if (forward.f != NULL) {
    if (!take(&forward, module, forward.f, form, arena)) return false;
    widen(&forward, &none);
  }
  if (!take(&own, module, function, form, arena)) return false;
  widen(&own, &forward);
  *times = own.times;
  return true;
}
