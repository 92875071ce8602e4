/* See workloads/fuse/kernel_wider.h. */
#include "workloads/fuse/kernel_wider.h"

#include <string.h>

#include "core/base/hash_index.h"
#include "workloads/fuse/kernel_steps.h"
#include "workloads/fuse/reading.h"
#include "workloads/language/ir_again.h"
#include "workloads/language/ir_layer.h"
#include "workloads/language/ir_table.h"

/* How a function's values are read, of each of them. */
typedef struct readers {
  const pl_ir_function *f;        /* NULL: there is no such function */
  int32_t *products;              /* that read it first, or what is gathered of it */
  int32_t *of_weights;            /* and of them those for the gradient of their weights */
  bool *norm;                     /* a norm reads it */
  const char **kept;              /* path that it is kept under; NULL: it is not */
  pl_hash_index keep_at, kept_at; /* `keep` and `kept`, by path */
} readers;

typedef struct widening {
  const pl_ir_module *module;
  const pl_ir_function *f;
  readers own, backward, weights; /* of f, and of what is derived from it */
  bool derives;                   /* it is a backward function */
  pl_autocast_form form;
  bool scores; /* softmaxes of scores are in fp32 */
  bool copies; /* attention in steps copies keys and values of shared heads, for each query head */
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

static bool launches(const pl_ir_module *module, const pl_ir_function *f, const pl_ir_op *op, const char *first,
                     const char *second) {
  const pl_ir_launched_ops of = pl_ir_launched_by(module, f, op);
  for (int32_t i = 0; i < of.n; i++)
    if (is(&of.ops[i], first) || is(&of.ops[i], second)) return true;
  return false;
}

/* ---- who reads a value ---- */

/* Of those that an op launches: how many read its operand k first; those of weights' gradients are counted too. */
static int32_t products_of(const pl_ir_function *f, const pl_ir_launched_ops *of, const pl_ir_op *op, int32_t k,
                           int32_t *of_weights) {
  int32_t n = 0, value = of->f == f ? op->inputs[k] : k;
  for (int32_t i = 0; i < of->n; i++) {
    if (!is(&of->ops[i], "product") || of->ops[i].inputs[0] != value) continue;
    n++;
    *of_weights += pl_ir_launched_is_of_weights(of, &of->ops[i]);
  }
  return n;
}

/* In reverse: whoever reads what an op gives stands behind it. */
static void count_readers(const pl_ir_module *module, readers *own) {
  for (int32_t i = own->f->n_ops; i-- > 0;) {
    const pl_ir_op *op = &own->f->ops[i];
    const pl_ir_launched_ops of = pl_ir_launched_by(module, own->f, op);
    bool gathers = is(op, "all_gather"), norm = launches(module, own->f, op, "layer_norm", "rms_norm");
    for (int32_t k = 0; k < op->n_inputs; k++) {
      int32_t value = op->inputs[k];
      own->products[value] +=
          gathers ? own->products[op->first_output] : products_of(own->f, &of, op, k, &own->of_weights[value]);
      if (gathers) own->of_weights[value] += own->of_weights[op->first_output];
      own->norm[value] = own->norm[value] || norm;
    }
  }
}

static bool note_kept(readers *own, pl_arena *arena) {
  for (int32_t i = 0; i < own->f->n_ops; i++) {
    const pl_ir_op *op = &own->f->ops[i];
    bool keeps = is(op, "keep");
    if (!keeps && !is(op, "kept")) continue;
    if (keeps) own->kept[op->inputs[0]] = op->path;
    if (!pl_hash_index_put(keeps ? &own->keep_at : &own->kept_at, pl_hash_text(0, op->path), op, arena)) return false;
  }
  return true;
}

static bool read_function(const pl_ir_module *module, const pl_ir_function *f, pl_arena *arena, readers *own) {
  *own = (readers){.f = f};
  if (f == NULL) return true;
  own->products = PL_TAKE(arena, int32_t, f->n_values + 1);
  own->of_weights = PL_TAKE(arena, int32_t, f->n_values + 1);
  own->norm = PL_TAKE(arena, bool, f->n_values + 1);
  own->kept = PL_TAKE(arena, const char *, f->n_values + 1);
  if (arena->failed) return false;
  count_readers(module, own);
  return note_kept(own, arena);
}

/* The first one under this path; NULL: there is none. */
static const pl_ir_op *at_path(const pl_hash_index *index, const char *path) {
  const pl_ir_op *first = NULL;
  uint32_t probe = 0;
  for (const pl_ir_op *op; (op = pl_hash_index_find(index, pl_hash_text(0, path), &probe)) != NULL;)
    if (strcmp(op->path, path) == 0 && (first == NULL || op < first)) first = op;
  return first;
}

/* ---- casts ---- */

/* In a function derived from it: of what was kept there, for gradients of weights; 0 where products read it again,
 * which cast it anew. */
static int32_t casts_kept(const readers *later, const char *path) {
  const pl_ir_op *kept = at_path(&later->kept_at, path);
  if (kept == NULL) return 0;
  int32_t n = later->of_weights[kept->first_output];
  return later->products[kept->first_output] > n ? 0 : n;
}

/* Casts of a value that are there: those that gradients of weights read, of what is not kept those of a forward pass.
 */
static int32_t casts_of(const widening *own, int32_t value) {
  const char *path = own->own.kept[value];
  if (own->derives) return own->own.of_weights[value];
  if (path == NULL) return own->own.products[value];
  return casts_kept(&own->backward, path) + casts_kept(&own->weights, path);
}

static bool reads_stream(const widening *own, const pl_ir_op *op) {
  for (int32_t k = 0; k < op->n_inputs; k++)
    if (own->stream[op->inputs[k]]) return true;
  return false;
}

static void widen_kept(widening *own, const pl_ir_op *kept, const widening *forward) {
  const pl_ir_op *keep = forward->f != NULL ? at_path(&forward->own.keep_at, kept->path) : NULL;
  if (keep == NULL) return;
  int32_t value = keep->inputs[0];
  bool of_norm = own->form == PL_AUTOCAST_NORMS && widens(forward->f, value) && forward->own.norm[value];
  own->times[kept->first_output] = of_norm ? 2 : forward->times[value];
  own->stream[kept->first_output] = forward->stream[value];
}

/* As it is cast for products; a norm's output that one of them reads is that cast alone. */
static uint8_t times_of(const widening *own, int32_t value, bool of_norm) {
  if (own->form == PL_AUTOCAST_OFF) return 1;
  int32_t n = casts_of(own, value);
  if (n > 1) return (uint8_t)(n < UINT8_MAX ? n : UINT8_MAX);
  return own->stream[value] && !(of_norm && n == 1) ? 2 : 1;
}

/* What a norm in steps multiplies with its weights, in the type that it was given. */
static bool is_normed(const pl_ir_op *op) {
  return is(op, "multiply") && op->reason != NULL && strcmp(op->reason, PL_READ_NORM_STEPS) == 0;
}

/* Of scores: what a softmax gives in fp32, and where a product reads that, or reads its gradient, its cast. */
static bool is_of_scores(const pl_ir_type *type) {
  return pl_ir_type_find(type, pl_ir_name_of("s")) >= 0 && pl_ir_type_find(type, pl_ir_name_of("t")) >= 0;
}

static void widen_scores(widening *own, const pl_ir_op *op) {
  int32_t value = op->first_output;
  if (!own->scores || op->n_outputs == 0 || !has_16_bits(&own->f->values[value].type)) return;
  if (!is_of_scores(&own->f->values[value].type)) return;
  if (launches(own->module, own->f, op, "softmax", "softmax_backward"))
    own->times[value] = own->own.products[value] > 0 ? 3 : 2;
}

/* Keys and values of heads that queries share: as they are rotated or made, they are nobody's any more. */
static void widen_shared(widening *own, const pl_ir_op *op) {
  if (!own->copies || own->derives || !is(op, "product") || op->n_inputs != 2) return;
  for (int k = 0; k < 2; k++) {
    const pl_ir_type *shared = &own->f->values[op->inputs[k]].type, *other = &own->f->values[op->inputs[1 - k]].type;
    int32_t copies = pl_ir_type_find(other, pl_ir_name_of("r"));
    bool core = is_of_scores(other) || is_of_scores(&own->f->values[op->first_output].type);
    if (!core || copies < 0 || pl_ir_type_find(shared, pl_ir_name_of("g")) < 0 || !has_16_bits(shared)) continue;
    if (pl_ir_type_find(shared, pl_ir_name_of("r")) >= 0 || other->dims[copies].extent > UINT8_MAX) continue;
    int32_t value = op->inputs[k], maker = own->f->values[value].op;
    for (; maker != PL_IR_NONE && is(&own->f->ops[maker], "rename"); maker = own->f->values[value].op)
      value = own->f->ops[maker].inputs[0];
    own->times[value] = own->times[op->inputs[k]] = (uint8_t)other->dims[copies].extent;
  }
}

static void widen_outputs(widening *own, const pl_ir_op *op) {
  bool passes = op->n_inputs == 1 && pl_ir_row_at(op->row)->effect == PL_IR_COLLECTIVE;
  bool norm = launches(own->module, own->f, op, "layer_norm", "rms_norm"),
       back = launches(own->module, own->f, op, "layer_norm_backward", "rms_norm_backward");
  bool sums = launches(own->module, own->f, op, "add", "add") && reads_stream(own, op), normed = is_normed(op);
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
    else if (op->n_inputs > 0) {
      widen_outputs(own, op);
      widen_scores(own, op);
      widen_shared(own, op);
    }
  }
}

/* The 16-bit type of a layer, or of what is derived from one; PL_DTYPE_FP32: another, or none. */
static pl_dtype dtype_of(const pl_ir_module *module, const pl_ir_function *f, const pl_ir_function *forward,
                         pl_arena *arena) {
  if (!pl_ir_is_layer(module, forward != NULL ? forward : f, arena)) return PL_DTYPE_FP32;
  for (int32_t i = 0; i < f->n_values; i++)
    if (has_16_bits(&f->values[i].type)) return (pl_dtype)f->values[i].type.element;
  return PL_DTYPE_FP32;
}

static bool take(widening *own, const pl_ir_module *module, const pl_ir_function *f, const pl_framework *framework,
                 pl_dtype dtype, pl_arena *arena) {
  *own = (widening){.module = module,
                    .f = f,
                    .derives = pl_ir_forward_of(module, f->name) != NULL,
                    .form = pl_framework_autocast(framework, dtype),
                    .scores = pl_framework_widens_scores(framework, dtype),
                    .copies = !framework->kernels.fuses_softmax,
                    .times = PL_TAKE(arena, uint8_t, f->n_values + 1),
                    .stream = PL_TAKE(arena, bool, f->n_values + 1)};
  return read_function(module, f, arena, &own->own) &&
         read_function(module, pl_kernel_derived_of(module, f, ".backward"), arena, &own->backward) &&
         read_function(module, pl_kernel_derived_of(module, f, ".weights"), arena, &own->weights) && !arena->failed;
}

bool pl_kernel_wider_take(const pl_ir_module *module, const pl_ir_function *function, const pl_framework *framework,
                          pl_arena *arena, const uint8_t **times) {
  widening own, forward = {.f = pl_ir_forward_of(module, function->name)}, none = {.f = NULL};
  *times = NULL;
  if (module->level != PL_IR_KERNELS) return true;
  bool off = pl_framework_autocast(framework, PL_DTYPE_FP16) == PL_AUTOCAST_OFF &&
             pl_framework_autocast(framework, PL_DTYPE_BF16) == PL_AUTOCAST_OFF;
  pl_dtype dtype = PL_DTYPE_FP32;
  if (!off || framework->kernels.wide_softmax || !framework->kernels.fuses_softmax)
    dtype = dtype_of(module, function, forward.f, arena);
  if (dtype == PL_DTYPE_FP32) return !arena->failed;
  if (forward.f != NULL) {
    if (!take(&forward, module, forward.f, framework, dtype, arena)) return false;
    widen(&forward, &none);
  }
  if (!take(&own, module, function, framework, dtype, arena)) return false;
  widen(&own, &forward);
  *times = own.times;
  return true;
}
