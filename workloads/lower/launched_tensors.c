/* See workloads/lower/launched_tensors.h. */
#include "workloads/lower/launched_tensors.h"

#include <string.h>

#include "core/cluster/cluster.h"
#include "workloads/language/ir_product.h"
#include "workloads/language/ir_table.h"
#include "workloads/layout/layout_rules.h"
#include "workloads/lower/kernel_names.h"

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

/* ---- tables ---- */

static uint32_t look_up(const pl_launched_table *table, const char *path, int64_t seed) {
  for (int32_t i = 0; i < table->n; i++) {
    const pl_launched_entry *entry = &table->entries[i];
    if (path != NULL ? strcmp(entry->path, path) == 0 : entry->seed == seed) return entry->tensor;
  }
  return PL_NONE;
}

static uint32_t put(pl_launched_table *table, const char *path, int64_t seed, uint32_t tensor) {
  PL_ASSERT(table->n < PL_LAUNCHED_PATHS);
  table->entries[table->n++] = (pl_launched_entry){path, seed, tensor};
  return tensor;
}

/* ---- batches ---- */

static bool has_name(const pl_ir_name *names, int32_t n, pl_ir_name name) {
  for (int32_t i = 0; i < n; i++)
    if (pl_ir_name_equal(names[i], name)) return true;
  return false;
}

/* What sequences are joined with others into. */
static int32_t add_joined(const pl_ir_function *f, pl_ir_name *names, int32_t n, int32_t room) {
  for (int32_t i = 0; i < f->n_ops; i++) {
    const pl_ir_attribute *from = pl_ir_attribute_find(&f->ops[i], "from"),
                          *to = pl_ir_attribute_find(&f->ops[i], "to");
    if (!is(&f->ops[i], "join") || from == NULL || to == NULL || n == room) continue;
    bool joined = false;
    for (int32_t k = 0; k < from->n_names; k++)
      joined = joined || has_name(names, n, from->names[k]);
    if (joined && !has_name(names, n, to->names[0])) names[n++] = to->names[0];
  }
  return n;
}

static pl_ir_function *scale_function(const pl_ir_function *f, const pl_ir_name *names, int32_t n, int64_t mbs,
                                      pl_arena *scratch) {
  pl_ir_function *made = PL_TAKE(scratch, pl_ir_function, 1);
  pl_ir_value *values = PL_TAKE(scratch, pl_ir_value, f->n_values + 1);
  if (made == NULL || values == NULL) return NULL;
  memcpy(values, f->values, (size_t)f->n_values * sizeof *values);
  for (int32_t value = 0; value < f->n_values; value++)
    for (int32_t dim = 0; dim < values[value].type.rank; dim++)
      if (has_name(names, n, values[value].type.dims[dim].name)) values[value].type.dims[dim].extent *= mbs;
  *made = *f;
  made->values = values;
  return made;
}

bool pl_launching_scale(const pl_ir_module *kernels, int64_t mbs, pl_arena *scratch, pl_ir_module *scaled) {
  pl_ir_name names[4] = {pl_ir_name_of("b")};
  int32_t n = 1;
  *scaled = *kernels;
  if (mbs == 1) return true;
  for (int32_t i = 0; i < kernels->n_functions; i++)
    n = add_joined(kernels->functions[i], names, n, (int32_t)(sizeof names / sizeof *names));
  scaled->functions = PL_TAKE(scratch, pl_ir_function *, kernels->n_functions + 1);
  for (int32_t i = 0; scaled->functions != NULL && i < kernels->n_functions; i++)
    scaled->functions[i] = scale_function(kernels->functions[i], names, n, mbs, scratch);
  return !scratch->failed;
}

/* ---- values ---- */

/* As tensors of blocks are called: experts are e, picked tokens and those of keys s. */
static char letter_of(char dim) {
  return dim == 'm' || dim == 't' ? 's' : dim == 'j' ? 'h' : dim == 'x' ? 'e' : dim;
}

/* Dimensions of a device's part; a fifth one and more are heads. */
static void dims_of(const pl_launching *own, const pl_ir_type *type, pl_tensor *tensor) {
  const pl_ir_type local = pl_ir_type_local(&own->kernels->mesh, type), part = pl_ir_routed_part(&own->routing, &local);
  int32_t over = type->rank > PL_TENSOR_RANK ? type->rank - PL_TENSOR_RANK : 0, at = 0;
  for (int32_t i = 0; i < type->rank; i++) {
    int64_t extent = part.dims[i].extent;
    bool more = over > 0 && i > PL_TENSOR_RANK - 2 && i <= PL_TENSOR_RANK - 2 + over;
    if (more) {
      tensor->dims[at - 1] = 'a';
      tensor->extent[at - 1] *= extent;
      continue;
    }
    tensor->dims[at] = letter_of(type->dims[i].name.text[0]);
    tensor->extent[at++] = extent;
  }
  tensor->rank = (uint8_t)at;
}

static uint32_t add_tensor(pl_launching *own, const char *name, pl_tensor_kind kind, const pl_ir_type *type,
                           double size_bytes) {
  pl_tape *tape = own->tape;
  PL_ASSERT(tape->n_tensors < PL_TAPE_TENSORS);
  pl_tensor *tensor = &tape->tensors[tape->n_tensors];
  *tensor = (pl_tensor){.name = name, .kind = (uint8_t)kind, .dtype = type->element, .size_bytes = size_bytes};
  if (type->element == PL_IR_BIT) {
    tensor->kind = PL_TENSOR_SIGNS;
    tensor->dtype = PL_DTYPE_FP8;
  }
  dims_of(own, type, tensor);
  return tape->n_tensors++;
}

static const pl_ir_type *type_of(const pl_launching *own, int32_t value) {
  return &own->f->values[value].type;
}

double pl_launching_bytes(const pl_launching *own, int32_t value) {
  const pl_ir_type *type = type_of(own, value);
  if (type->element == PL_IR_I32) return 0;
  return pl_ir_type_local_bytes(&own->kernels->mesh, type) * pl_ir_routed_share(&own->routing, type) *
         (own->times != NULL ? own->times[value] : 1);
}

/* The parameter whose gradient it is: of tokens nothing is left in it. NULL: another value. */
static const char *parameter_of_gradient(const pl_launching *own, int32_t value) {
  int32_t reader = own->last[value];
  if (reader == PL_IR_NONE || reader == own->f->n_ops) return NULL;
  if (pl_ir_type_find(type_of(own, value), pl_ir_name_of("b")) >= 0) return NULL;
  const pl_ir_launched_ops of = pl_ir_launched_by(own->kernels, own->f, &own->f->ops[reader]);
  for (int32_t i = 0; i < of.n; i++)
    if (is(&of.ops[i], "accumulate")) return of.ops[i].path;
  return NULL;
}

bool pl_launching_is_of_parameter(const pl_launching *own, int32_t value) {
  return parameter_of_gradient(own, value) != NULL;
}

static pl_tensor_kind kind_of(const pl_launching *own, int32_t value) {
  int32_t maker = own->f->values[value].op;
  bool made_forward = maker != PL_IR_NONE && own->again[maker];
  if (!own->backward || made_forward) return PL_TENSOR_ACTIVATION;
  /* Where the profile keeps all of them until the pass is over, they are not this block's to count. */
  bool keeps = own->tape->framework->gradients.keeps_16bit_gradients;
  return keeps && pl_launching_is_of_parameter(own, value) ? PL_TENSOR_PARAMETER_GRADIENT : PL_TENSOR_GRADIENT;
}

/* Copies of a value that are one tensor. */
static double times_of(const pl_launching *own, int32_t value) {
  int32_t maker = own->f->values[value].op;
  bool copy = maker != PL_IR_NONE && is(&own->f->ops[maker], "copy");
  return copy ? (double)pl_ir_integer_of(&own->f->ops[maker], "times", 1) : 1;
}

uint32_t pl_launching_make(pl_launching *own, int32_t value, const char *name) {
  const pl_ir_type *type = type_of(own, value);
  if (type->element == PL_IR_I32 || type->rank == 0) return PL_NONE;
  const char *parameter = own->backward ? parameter_of_gradient(own, value) : NULL;
  uint32_t made =
      add_tensor(own, name, kind_of(own, value), type, times_of(own, value) * pl_launching_bytes(own, value));
  own->tape->tensors[made].expert = parameter != NULL && pl_layout_is_of_experts(parameter, type);
  return made;
}

uint32_t pl_launching_beside(pl_launching *own, uint32_t tensor, int32_t value) {
  if (tensor == PL_NONE) return PL_NONE;
  pl_tensor *made = &own->tape->tensors[tensor];
  uint8_t dim = (uint8_t)(made->rank == PL_TENSOR_RANK ? made->rank - 2 : made->rank - 1);
  double others = 1, elements = pl_ir_type_local_elements(&own->kernels->mesh, type_of(own, value));
  for (uint8_t i = 0; i < made->rank; i++)
    if (i != dim) others *= (double)made->extent[i];
  made->extent[dim] += (int64_t)(elements / others);
  made->size_bytes += pl_launching_bytes(own, value);
  return tensor;
}

void pl_launching_share(pl_launching *own, int32_t index) {
  const pl_ir_op *op = &own->f->ops[index];
  for (int32_t i = 0; i < op->n_outputs && op->n_inputs > 0; i++)
    own->tensor[op->first_output + i] = own->tensor[op->inputs[0]];
}

bool pl_launching_is_read_later(const pl_launching *own, uint32_t tensor, int32_t op) {
  for (int32_t i = 0; i < own->f->n_values; i++)
    if (own->tensor[i] == tensor && own->last[i] > op) return true;
  return tensor == own->tape->output_gradient && own->f->n_arguments > 0;
}

void pl_launching_keep(pl_launching *own, const char *path, uint32_t tensor) {
  put(&own->kept, path, 0, tensor);
}

uint32_t pl_launching_kept(const pl_launching *own, const char *path) {
  for (int32_t i = 0; i < own->kept.n; i++)
    if (strcmp(own->kept.entries[i].path, path) == 0) return own->kept.entries[i].tensor;
  PL_NEVER("what is read again was kept");
}

uint32_t pl_launching_mask(pl_launching *own, const pl_ir_launched_ops *of, const pl_ir_op *dropout, const char *name) {
  int64_t seed = pl_ir_integer_of(dropout, "seed", 0);
  uint32_t known = look_up(&own->masks, NULL, seed);
  if (known != PL_NONE) return known;
  const pl_ir_type *type = &of->f->values[dropout->first_output].type;
  double elements = pl_ir_type_local_elements(&own->kernels->mesh, type);
  return put(&own->masks, NULL, seed, add_tensor(own, name, PL_TENSOR_MASK, type, elements));
}

/* ---- parameters ---- */

/* The parameter that a value inside what `op` launches is; NULL: none. */
static const pl_ir_op *parameter_in(const pl_launching *own, const pl_ir_op *op, const pl_ir_launched_ops *of,
                                    int32_t value) {
  if (of->f != own->f) {
    if (value >= of->f->n_arguments) return NULL;
    value = op->inputs[value];
  }
  int32_t maker = own->f->values[value].op;
  return maker != PL_IR_NONE && is(&own->f->ops[maker], "param") ? &own->f->ops[maker] : NULL;
}

static bool is_tied(const pl_launching *own, const pl_ir_op *param) {
  return own->block->kind == PL_BLOCK_HEAD && strcmp(param->path, "embedding.table") == 0;
}

/* A parameter's part of a packed tensor: `n` matrices, one for each expert of the device (0: none has a dimension of
 * experts), of so many rows and columns. */
typedef struct packed_part {
  const char *dims;
  int64_t n, first, second;
} packed_part;

static uint32_t packed_tensor(pl_tape *tape, const char *name, const packed_part *part) {
  const int64_t extent[] = {part->n, part->first, part->second};
  return part->n > 0 ? pl_tape_tensor(tape, name, PL_TENSOR_PARAMETER, tape->shard->dtype, part->dims, extent)
                     : pl_tape_parameter(tape, name, part->dims, part->first, part->second);
}

/* One tensor, the last dimension of which grows, or the first where it counts vectors. */
static uint32_t pack(pl_launching *own, const pl_ir_op *param, uint32_t tensor, const char *name,
                     const packed_part *part) {
  pl_tape *tape = own->tape;
  if (pl_launching_parameter(own, param->path) != PL_NONE) return tensor;
  if (tensor == PL_NONE) {
    tensor = packed_tensor(tape, name, part);
    tape->tensors[tensor].expert = pl_layout_is_of_experts(param->path, type_of(own, param->first_output));
  } else {
    pl_tensor *packed = &tape->tensors[tensor];
    uint8_t grows = packed->dims[0] == 'p' ? 0 : (uint8_t)(packed->rank - 1);
    packed->extent[grows] += packed->rank == 1 || packed->dims[0] == 'p' ? part->first : part->second;
    packed->size_bytes = pl_tape_elements(tape, tensor) * pl_dtype_bytes((pl_dtype)packed->dtype);
  }
  if (is_tied(own, param)) tape->tied = tensor;
  return put(&own->parameters, param->path, 0, tensor);
}

static void pack_products(pl_launching *own, const pl_ir_op *op, const pl_ir_launched_ops *of,
                          const pl_kernel_names *names) {
  uint32_t weights = PL_NONE, biases = PL_NONE;
  for (int32_t i = 0; i < of->n; i++) {
    const pl_ir_op *each = &of->ops[i];
    const pl_ir_op *param = each->n_inputs == 2 ? parameter_in(own, op, of, each->inputs[1]) : NULL;
    if (param == NULL) continue;
    const pl_ir_type read = pl_ir_type_local(&own->kernels->mesh, &of->f->values[each->inputs[0]].type),
                     weight = pl_ir_type_local(&own->kernels->mesh, type_of(own, param->first_output));
    if (is(each, "product")) {
      const pl_ir_product shape = pl_ir_product_of(each, &read, &weight);
      const packed_part part = {.dims = "io", .first = shape.k, .second = shape.n},
                        of_experts = {.dims = "eio", .n = shape.batch, .first = shape.k, .second = shape.n};
      bool expert = pl_layout_is_of_experts(param->path, type_of(own, param->first_output));
      weights = pack(own, param, weights, names->forward, expert ? &of_experts : &part);
    } else if (is(each, "add") && weights != PL_NONE) {
      const packed_part part = {.dims = "o", .first = (int64_t)pl_ir_type_elements(&weight)};
      biases = pack(own, param, biases, names->bias, &part);
    }
  }
}

static void pack_norm(pl_launching *own, const pl_ir_op *op, const pl_ir_launched_ops *of,
                      const pl_kernel_names *names) {
  uint32_t vectors = PL_NONE; /* of norms of queries and of keys, which are one kernel, too */
  for (int32_t i = 0; i < of->n; i++) {
    if (!is(&of->ops[i], "layer_norm") && !is(&of->ops[i], "rms_norm")) continue;
    for (int32_t k = 1; k < of->ops[i].n_inputs; k++) {
      const pl_ir_op *param = parameter_in(own, op, of, of->ops[i].inputs[k]);
      if (param == NULL) continue;
      const pl_ir_type *type = type_of(own, param->first_output);
      int64_t width = (int64_t)pl_ir_type_local_elements(&own->kernels->mesh, type);
      if (vectors != PL_NONE && own->tape->tensors[vectors].extent[1] != width) vectors = PL_NONE;
      const packed_part part = {.dims = "ph", .first = 1, .second = width};
      vectors = pack(own, param, vectors, names->forward, &part);
    }
  }
}

void pl_launching_find_packs(pl_launching *own) {
  for (int32_t i = 0; i < own->f->n_ops; i++) {
    const pl_ir_op *op = &own->f->ops[i];
    const pl_ir_launched_ops of = pl_ir_launched_by(own->kernels, own->f, op);
    const char *name = pl_launching_name(own, i), *bias = pl_launching_bias_name(own, i);
    const pl_kernel_names names = {.forward = name, .bias = bias != NULL ? bias : "bias"};
    pack_products(own, op, &of, &names);
    pack_norm(own, op, &of, &names);
  }
}

uint32_t pl_launching_parameter(const pl_launching *own, const char *path) {
  return look_up(&own->parameters, path, 0);
}

uint32_t pl_launching_parameter_of(pl_launching *own, const pl_ir_op *param) {
  uint32_t known = pl_launching_parameter(own, param->path);
  if (known != PL_NONE) return known;
  const pl_ir_type *type = type_of(own, param->first_output);
  uint32_t made = add_tensor(own, pl_launching_parameter_name(own, param->path), PL_TENSOR_PARAMETER, type,
                             pl_ir_type_local_bytes(&own->kernels->mesh, type));
  own->tape->tensors[made].expert = pl_layout_is_of_experts(param->path, type);
  return put(&own->parameters, param->path, 0, made);
}

uint32_t pl_launching_buffer(pl_launching *own, const char *path) {
  uint32_t parameter = pl_launching_parameter(own, path);
  if (parameter == PL_NONE) return PL_NONE;
  uint32_t known = look_up(&own->buffers, NULL, parameter);
  if (known != PL_NONE) return known;
  const pl_tape *tape = own->tape;
  pl_dtype dtype = pl_framework_gradient_dtype(tape->framework, tape->shard->dtype);
  uint32_t made =
      pl_tape_like(own->tape, parameter, tape->tensors[parameter].name, PL_TENSOR_PARAMETER_GRADIENT, dtype);
  return put(&own->buffers, NULL, parameter, made);
}
