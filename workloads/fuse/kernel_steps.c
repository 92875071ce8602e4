/* See workloads/fuse/kernel_steps.h. */
#include "workloads/fuse/kernel_steps.h"

#include <string.h>

#include "workloads/fuse/kernel_stepping.h"
#include "workloads/language/ir_again.h"

int32_t pl_kernel_copy(pl_ir_module *module, pl_ir_function *to, const pl_ir_function *from, const pl_ir_op *op,
                       const int32_t *map, int32_t callee) {
  int32_t inputs[PL_IR_OPERANDS_MAX];
  const char *names[PL_IR_OPERANDS_MAX];
  pl_ir_type types[PL_IR_OPERANDS_MAX];
  for (int32_t i = 0; i < op->n_inputs; i++)
    if ((inputs[i] = map != NULL ? map[op->inputs[i]] : op->inputs[i]) == PL_IR_NONE) return PL_IR_NONE; /* no memory */
  pl_ir_making making = pl_ir_making_like(from, op, names, types);
  making.inputs = inputs;
  making.callee = callee;
  return pl_ir_op_add(module, to, &making);
}

int32_t pl_step_append(pl_kernel_stepping *own, const char *row, int32_t n_inputs, const int32_t *inputs,
                       const char *name, const pl_ir_type *type, const char *reason) {
  return pl_ir_op_add(own->to, own->function,
                      &(pl_ir_making){.row = pl_ir_row_of(row),
                                      .n_inputs = n_inputs,
                                      .n_outputs = 1,
                                      .inputs = inputs,
                                      .output_names = &name,
                                      .output_types = type,
                                      .reason = reason,
                                      .callee = PL_IR_NONE});
}

int32_t pl_step_append_same(pl_kernel_stepping *own, const char *row, int32_t value, const char *reason,
                            const pl_ir_attribute *attribute) {
  if (value == PL_IR_NONE) return PL_IR_NONE;
  const char *name = own->function->values[value].name;
  const pl_ir_type type = own->function->values[value].type;
  return pl_ir_op_add(own->to, own->function,
                      &(pl_ir_making){.row = pl_ir_row_of(row),
                                      .n_inputs = 1,
                                      .n_outputs = 1,
                                      .n_attributes = attribute != NULL,
                                      .inputs = &value,
                                      .attributes = attribute,
                                      .output_names = &name,
                                      .output_types = &type,
                                      .reason = reason,
                                      .callee = PL_IR_NONE});
}

int32_t pl_step_cast(pl_kernel_stepping *own, int32_t value, uint8_t element, const char *reason) {
  if (value == PL_IR_NONE) return PL_IR_NONE;
  pl_ir_type type = own->function->values[value].type;
  if (type.element == element) return value;
  type.element = element;
  return pl_step_append(own, "cast", 1, &value, own->function->values[value].name, &type, reason);
}

/* ---- gradients ---- */

/* Of the buffer of a gradient that is made in `element`. */
static uint8_t kept_element(const pl_kernel_stepping *own, uint8_t element) {
  return (uint8_t)pl_framework_gradient_dtype(own->options->framework, (pl_dtype)element);
}

/* In which a gradient travels that is made as `value`; -1: as it is kept. One of 16 bits may stay as it is where a
 * profile says 16 bits. */
static int reduced_element(const pl_kernel_stepping *own, int32_t value) {
  uint8_t made = own->finding.read.f->values[value].type.element;
  int reduced = pl_framework_reduce_dtype(own->options->framework, (pl_dtype)made);
  bool alike = reduced >= 0 && pl_dtype_bytes((pl_dtype)reduced) == pl_dtype_bytes((pl_dtype)made);
  return alike ? made : reduced;
}

static bool passes_on(const pl_kernel_stepping *own, int32_t op) {
  return pl_read_is_collective(&own->finding.read, op) || pl_read_is_view(&own->finding.read, op) ||
         pl_step_is(own, op, "scale");
}

static bool is_of_matrix(const pl_kernel_stepping *own, int32_t op) {
  return pl_step_is(own, op, "product") || pl_step_is(own, op, "convolution_backward_weights") ||
         pl_step_is(own, op, "embedding_backward");
}

/* Cast in front of their reduction to the type that they travel in, behind it to that which they are kept in. */
static void find_gradients(pl_kernel_stepping *own) {
  for (int32_t i = 0; i < own->finding.read.f->n_ops; i++) {
    if (!pl_step_is(own, i, "accumulate")) continue;
    int32_t last = pl_read_op(&own->finding.read, i)->inputs[0], value = last, maker;
    bool meets = false;
    while (maker = pl_read_maker(&own->finding.read, value),
           passes_on(own, maker) && own->finding.n_readers[value] == 1) {
      meets = meets || pl_read_is_collective(&own->finding.read, maker);
      value = pl_read_op(&own->finding.read, maker)->inputs[0];
    }
    uint8_t element = own->finding.read.f->values[value].type.element, kept = kept_element(own, element), sent = kept;
    if (meets && reduced_element(own, value) >= 0) sent = (uint8_t)reduced_element(own, value);
    if (sent != element) own->gradients[value] = sent;
    if (sent != kept) own->gradients[last] = kept;
    own->paths[value] = meets && is_of_matrix(own, maker);
  }
}

/* A gradient buffer on its way to its reduction, in another type than it is kept in. */
static bool is_reduced_narrow(const pl_kernel_stepping *own, int32_t value) {
  return pl_step_is(own, pl_read_maker(&own->finding.read, value), "gradient") && reduced_element(own, value) >= 0 &&
         pl_read_is_collective(&own->finding.read, pl_kernel_reader(&own->finding, value));
}

/* A gradient that was added up, in the type that it travels in: those of a unit, or of all, lie side by side and are
 * one kernel. */
static int32_t cast_of_buffer(pl_kernel_stepping *own, int32_t value, uint8_t element) {
  pl_ir_type type = own->function->values[value].type;
  double kept = pl_ir_element_bytes((pl_ir_element)type.element);
  if (type.element == element) return value;
  type.element = element;
  const pl_ir_attribute moves = pl_ir_real("moves", kept + pl_ir_element_bytes((pl_ir_element)element));
  const char *name = own->function->values[value].name;
  return pl_ir_op_add(own->to, own->function,
                      &(pl_ir_making){.row = pl_ir_row_of("cast"),
                                      .n_inputs = 1,
                                      .n_outputs = 1,
                                      .n_attributes = 1,
                                      .inputs = &value,
                                      .attributes = &moves,
                                      .output_names = &name,
                                      .output_types = &type,
                                      .reason = "as gradients are reduced",
                                      .callee = PL_IR_NONE});
}

/* What is made of a value in another type than it was is in that type too, as far as rows want it so. */
static void follow_element(const pl_kernel_stepping *own, const pl_ir_op *op, int32_t index, pl_ir_type *type) {
  bool follows = passes_on(own, index) || pl_step_is(own, index, "sum_classes") || pl_step_is(own, index, "add");
  if (follows && op->n_inputs > 0) type->element = own->function->values[own->map[op->inputs[0]]].type.element;
}

/* ---- ops ---- */

static const char *const norm_reason = PL_READ_NORM_STEPS;

/* The op in another type, with other operands. Returns its first output. */
static int32_t append_norm(pl_kernel_stepping *own, const pl_ir_op *op, const int32_t *inputs) {
  const char *names[PL_IR_OPERANDS_MAX];
  pl_ir_type types[PL_IR_OPERANDS_MAX];
  pl_ir_making making = pl_ir_making_like(own->finding.read.f, op, names, types);
  for (int32_t i = 0; i < op->n_outputs; i++)
    types[i].element = PL_IR_F32;
  for (int32_t i = 0; i < op->n_inputs; i++)
    if (inputs[i] == PL_IR_NONE) return PL_IR_NONE;
  making.inputs = inputs;
  making.path = NULL;
  making.callee = PL_IR_NONE;
  return pl_ir_op_add(own->to, own->function, &making);
}

int32_t pl_step_wide(pl_kernel_stepping *own, int32_t value) {
  if (own->wide[value] == PL_IR_NONE) own->wide[value] = pl_step_cast(own, own->map[value], PL_IR_F32, norm_reason);
  return own->wide[value];
}

/* An RMS norm in PyTorch ops works on an fp32 copy. The op itself stands for the cast of what comes out, and back for
 * what is made of the gradient that comes in and of x: its kernel is no norm's then. False: it is in one piece, or in
 * fp32 anyhow. */
static bool eager_norm(pl_kernel_stepping *own, int32_t index) {
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  bool back = pl_step_is(own, index, "rms_norm_backward");
  if (!pl_read_is_norm_in_steps(&own->finding.read, index, own->options->framework)) return false;
  uint8_t element = own->finding.read.f->values[op->inputs[0]].type.element;
  int32_t inputs[] = {pl_step_wide(own, op->inputs[0]),
                      pl_step_cast(own, own->map[op->inputs[1]], PL_IR_F32, norm_reason), PL_IR_NONE};
  if (inputs[0] == PL_IR_NONE) return false;
  if (back) {
    pl_step_norm_backward(own, op, inputs[0], own->map[op->inputs[2]]);
    inputs[2] = pl_step_cast(own, own->map[op->inputs[2]], PL_IR_F32, norm_reason);
  }
  int32_t first = append_norm(own, op, inputs);
  own->map[op->first_output] = pl_step_cast(own, first, element, norm_reason);
  if (!back) own->normed[op->first_output] = pl_step_norm(own, op, inputs[0], own->map[op->first_output]);
  for (int32_t i = 1; i < op->n_outputs; i++)
    own->map[op->first_output + i] =
        first != PL_IR_NONE ? pl_step_cast(own, first + i, kept_element(own, element), norm_reason) : PL_IR_NONE;
  return true;
}

static int32_t rotary_step(pl_kernel_stepping *own, int32_t a, int32_t b, const char *name) {
  const int32_t pair[] = {a, b};
  if (a == PL_IR_NONE || b == PL_IR_NONE) return PL_IR_NONE;
  const pl_ir_type type = own->function->values[a].type;
  return pl_step_append(own, "add", 2, pair, name, &type, "rotary positions in steps");
}

/* x cos + cat(-x2, x1) sin in PyTorch ops, as Hugging Face and Megatron-LM write it: of x two products, half of it
 * negated, the halves joined and the sum, 10 readings and writings. Back the two products; the half negated, and each
 * half copied into zeros (a slice's derivative), 5; their sum and that of both ways, 15. (Megatron's join with nothing
 * behind the rotated share moves 2 more, and back 1 less; complex numbers, as torchtitan has them, 10 and 10.) The op
 * itself stands for a product. Said as sums, since x may be a partial one. */
static void eager_rotary(pl_kernel_stepping *own, const pl_ir_op *op, int32_t turned) {
  int32_t x = own->map[op->inputs[0]];
  if (turned == PL_IR_NONE || x == PL_IR_NONE) return;
  int32_t exchanged = rotary_step(own, x, turned, "rotated");
  if (pl_ir_integer_of(op, "inverse", 0) != 0) {
    int32_t halves = rotary_step(own, exchanged, x, "halves");
    rotary_step(own, halves, halves, "slices");
  }
  rotary_step(own, exchanged, exchanged, "turned");
  rotary_step(own, exchanged, turned, "positioned");
}

/* With the results that are asked for, here or elsewhere. */
static int32_t copy_call(pl_kernel_stepping *own, const pl_ir_op *op) {
  int32_t inputs[PL_IR_OPERANDS_MAX], n = 0;
  const char *names[PL_IR_OPERANDS_MAX];
  pl_ir_type types[PL_IR_OPERANDS_MAX];
  for (int32_t i = 0; i < op->n_inputs; i++)
    if ((inputs[i] = own->map[op->inputs[i]]) == PL_IR_NONE) return PL_IR_NONE;
  for (int32_t i = 0; i < op->n_outputs; i++) {
    if (!own->live.result[op->callee][i]) continue;
    names[n] = own->finding.read.f->values[op->first_output + i].name;
    types[n++] = own->finding.read.f->values[op->first_output + i].type;
  }
  int32_t first = pl_ir_op_add(own->to, own->function,
                               &(pl_ir_making){.row = op->row,
                                               .n_inputs = op->n_inputs,
                                               .n_outputs = n,
                                               .n_attributes = op->n_attributes,
                                               .inputs = inputs,
                                               .attributes = op->attributes,
                                               .output_names = names,
                                               .output_types = types,
                                               .path = op->path,
                                               .reason = op->reason,
                                               .callee = op->callee,
                                               .place = op->place});
  for (int32_t i = 0, k = 0; i < op->n_outputs; i++) {
    bool asked = first != PL_IR_NONE && own->live.result[op->callee][i];
    own->map[op->first_output + i] = asked ? first + k++ : PL_IR_NONE;
  }
  return PL_IR_NONE; /* the map is made */
}

static int32_t copy_op(pl_kernel_stepping *own, int32_t index) {
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  int32_t made;
  if (pl_step_keeps_otherwise(own, index, &made)) return made;
  pl_loss_form form = own->options->framework->kernels.loss;
  if (pl_loss_reads_16bit(form) && pl_step_is(own, index, "subtract")) pl_step_cast_again(own, index);
  bool updates = (pl_step_is(own, index, "adam") || pl_step_is(own, index, "sgd")) && own->options->update_bytes > 0;
  if (updates && pl_ir_attribute_find(op, "moves") == NULL) return pl_step_update(own, index);
  if (op->callee != PL_IR_NONE) return copy_call(own, op);
  int32_t first = pl_kernel_copy(own->to, own->function, own->finding.read.f, op, own->map, op->callee);
  if (pl_step_is(own, index, "rotary") && !own->options->framework->kernels.fuses_rotary) eager_rotary(own, op, first);
  pl_step_expert_bias(own, index);
  pl_step_expert_bias_backward(own, index);
  if (pl_step_is(own, index, "gelu")) pl_step_gelu(own, index);
  if (pl_step_is(own, index, "gelu_backward")) pl_step_gelu_backward(own, index);
  if (pl_step_is(own, index, "keep")) pl_step_keep_gelu(own, op);
  return first;
}

/* A gradient that is there, on its way to its buffer. What is made of a matrix is copied into what is reduced, a tensor
 * of all of its function (pl_gradient_path) or a bucket, unless its product has put it there; a flat one is divided by
 * the number of ranks, a factor that the program has in its loss. Of weights in fp32 under autocast that of the cast is
 * flattened. */
static int32_t on_its_way(pl_kernel_stepping *own, int32_t of, int32_t value) {
  const pl_gradient_path path = own->options->framework->gradients.gradient_path;
  const pl_ir_attribute one = pl_ir_real("by", 1);
  bool copies = own->paths[of] && !pl_framework_adds_in_products(own->options->framework),
       casts = own->gradients[of] != PL_IR_NONE;
  uint8_t made = own->finding.read.f->values[of].type.element;
  bool wide = copies && path == PL_GRADIENTS_FLAT &&
              pl_framework_autocast(own->options->framework, (pl_dtype)made) == PL_AUTOCAST_ALL;
  if (wide) value = pl_step_cast(own, value, PL_IR_F32, PL_READ_GRADIENT_OF_WIDE);
  if (copies && (path == PL_GRADIENTS_FLAT || !casts))
    value = pl_step_append_same(own, "copy", value, "into what is reduced", NULL);
  if (casts)
    value = pl_step_cast(own, value, (uint8_t)own->gradients[of],
                         own->gradients[of] == kept_element(own, own->finding.read.f->values[of].type.element)
                             ? "as gradients are kept"
                             : "as gradients are reduced");
  else if (wide)
    value = pl_step_cast(own, value, made, "as gradients are reduced");
  if (copies && path == PL_GRADIENTS_FLAT) value = pl_step_append_same(own, "scale", value, "among the ranks", &one);
  return value;
}

/* What was gathered of a parameter is copied to where it is used, by one kernel or by one a rank. */
static int32_t copy_gathered(pl_kernel_stepping *own, int32_t index, int32_t gathered) {
  const pl_framework *framework = own->options->framework;
  if (!framework->gathers.copies_gathered && !framework->gathers.copies_per_rank) return gathered;
  if (!pl_step_is(own, index, "all_gather") || !pl_step_is(own, pl_read_made(&own->finding.read, index, 0), "param"))
    return gathered;
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  bool vector = own->finding.read.f->values[op->inputs[0]].type.rank < 2;
  if (framework->gathers.gather_unit == PL_GATHER_TENSOR && vector) return gathered; /* every rank has it */
  int64_t n = 1;
  for (int32_t axis = 0; framework->gathers.copies_per_rank && axis < own->to->mesh.n_axes; axis++)
    if (pl_ir_op_has_name(op, "over", own->to->mesh.axes[axis].name)) n *= own->to->mesh.axes[axis].extent;
  const pl_ir_attribute launches = pl_ir_integer("launches", n);
  return pl_step_append_same(own, "copy", gathered, "to where it is used", &launches);
}

/* The same way, of what lies by experts. */
static bool exchanges_alike(const pl_kernel_stepping *own, int32_t op, int32_t other) {
  return (pl_step_exchanges(own, op, "to") && pl_step_exchanges(own, other, "to")) ||
         (pl_step_exchanges(own, op, "from") && pl_step_exchanges(own, other, "from"));
}

static bool is_written(const pl_kernel_stepping *own, int32_t index) {
  return own->map[pl_read_op(&own->finding.read, index)->first_output] != PL_IR_NONE;
}

static void write_op(pl_kernel_stepping *own, int32_t index);

/* Weights of answers, a number for each vector that goes, go right behind the vectors, as dispatchers send them,
 * although nobody reads them before the experts have computed; and their gradients come back behind the vectors'. */
static void send_weights(pl_kernel_stepping *own, int32_t index) {
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  if (!pl_step_is(own, index, "all_to_all") ||
      !pl_read_is_of_tokens(pl_read_type(&own->finding.read, op->first_output)))
    return;
  int32_t user = own->finding.read.user[op->first_output];
  if (user != PL_IR_NONE && exchanges_alike(own, index, user)) return; /* over another axis first */
  for (int32_t i = index + 1; i < own->finding.read.f->n_ops; i++) {
    const pl_ir_op *other = pl_read_op(&own->finding.read, i);
    if (!exchanges_alike(own, index, i) ||
        pl_read_is_of_tokens(pl_read_type(&own->finding.read, other->first_output)) || is_written(own, i))
      continue;
    if (own->map[other->inputs[0]] != PL_IR_NONE) write_op(own, i);
  }
}

static void write_op(pl_kernel_stepping *own, int32_t index) {
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  if (!own->live.op[own->index][index]) return;
  bool in_steps = eager_norm(own, index);
  int32_t answers = pl_step_sort_answers(own, index);
  int32_t inputs[PL_STEP_INPUTS], remade[PL_STEP_INPUTS];
  pl_step_copy_inputs(own, index, inputs);
  pl_step_remake_inputs(own, index, remade);
  int32_t first = in_steps ? PL_IR_NONE : copy_op(own, index);
  send_weights(own, index);
  pl_step_put_inputs_back(own, index, remade);
  pl_step_put_inputs_back(own, index, inputs);
  if (answers != PL_IR_NONE) own->map[op->inputs[0]] = answers;
  for (int32_t k = 0; k < op->n_outputs && op->callee == PL_IR_NONE; k++) {
    int32_t made = first != PL_IR_NONE ? first + k : PL_IR_NONE, of = op->first_output + k;
    if (in_steps) made = own->map[of];
    own->map[of] = made;
    if (made == PL_IR_NONE) continue;
    pl_ir_type *type = &own->function->values[made].type;
    if (pl_step_is(own, index, "gradient")) type->element = kept_element(own, type->element);
    follow_element(own, op, index, type);
    own->map[of] = copy_gathered(own, index, pl_step_copy_heads(own, of, on_its_way(own, of, made)));
    own->map[of] = pl_step_sort_tokens(own, index, own->map[of]);
    if (is_reduced_narrow(own, of)) own->map[of] = cast_of_buffer(own, made, (uint8_t)reduced_element(own, of));
  }
  pl_step_autocast(own, index);
  pl_step_dispatch(own, index);
  pl_step_graph(own, index);
  pl_step_mask(own, index);
  pl_step_measure_loss(own, index);
}

/* Weights and what a job is given: there once, however often a layer runs. */
static bool is_given(const pl_kernel_stepping *own, int32_t index) {
  return pl_step_is(own, index, "param") || pl_step_is(own, index, "input");
}

/* A layer whose forward pass runs more than once: all runs but the last are for nothing, and nothing of them is kept.
 */
static void run_before(pl_kernel_stepping *own, const pl_ir_function *from) {
  bool layer = strcmp(from->name, "layer") == 0;
  for (int64_t run = 1; layer && run < own->options->framework->kernels.forward_runs; run++) {
    for (int32_t i = 0; i < from->n_ops && !own->to->arena->failed; i++)
      if (!pl_step_is(own, i, "keep") && !(is_given(own, i) && is_written(own, i))) write_op(own, i);
    for (int32_t i = 0; i < from->n_ops; i++)
      for (int32_t k = 0; k < from->ops[i].n_outputs && !is_given(own, i); k++) {
        int32_t of = from->ops[i].first_output + k;
        own->map[of] = own->wide[of] = own->normed[of] = own->copies[of] = own->remade[of] = PL_IR_NONE;
      }
    own->n_gelus = 0;
  }
}

static pl_code write_function(pl_kernel_stepping *own, int32_t index, pl_error *error) {
  const pl_ir_function *from = own->from->functions[index];
  pl_arena_mark mark = pl_arena_mark_here(&own->scratch);
  own->index = index;
  own->function = pl_ir_function_add(own->to, from->name);
  own->map = PL_TAKE(&own->scratch, int32_t, from->n_values + 1);
  own->wide = PL_TAKE(&own->scratch, int32_t, from->n_values + 1);
  own->normed = PL_TAKE(&own->scratch, int32_t, from->n_values + 1);
  own->gradients = PL_TAKE(&own->scratch, int16_t, from->n_values + 1);
  own->paths = PL_TAKE(&own->scratch, bool, from->n_values + 1);
  own->heads = PL_TAKE(&own->scratch, const int *, from->n_values + 1);
  own->copies = PL_TAKE(&own->scratch, int32_t, from->n_values + 1);
  own->remade = PL_TAKE(&own->scratch, int32_t, from->n_values + 1);
  own->again = pl_ir_again_take_if_derived(from, &own->scratch);
  own->n_gelus = 0;
  own->answers = PL_IR_NONE;
  if (own->function == NULL || own->map == NULL || own->wide == NULL || own->normed == NULL || own->gradients == NULL ||
      own->paths == NULL || own->heads == NULL || own->copies == NULL || own->remade == NULL || own->again == NULL ||
      !pl_kernel_finding_init(&own->finding, own->from, index, own->options->framework, NULL, &own->scratch) ||
      !pl_step_begin_signs(own))
    return pl_fail_memory(error, "a program's kernels");
  for (int32_t i = 0; i < from->n_values; i++)
    own->map[i] = own->wide[i] = own->normed[i] = own->copies[i] = own->remade[i] = own->gradients[i] = PL_IR_NONE;
  own->reduces = pl_step_reduces_gradients(own);
  find_gradients(own);
  pl_step_find_heads(own);
  pl_step_begin_inputs(own);
  for (int32_t i = 0; i < from->n_arguments; i++)
    own->map[i] = pl_ir_argument(own->to, own->function, from->values[i].name, &from->values[i].type);
  run_before(own, from);
  for (int32_t i = 0; i < from->n_ops && !own->to->arena->failed; i++)
    if ((!pl_step_is(own, i, "all_to_all") && !is_given(own, i)) || !is_written(own, i)) write_op(own, i);
  pl_step_divide_loss(own);
  int32_t *results = PL_TAKE(&own->scratch, int32_t, from->n_results + 1);
  if (results == NULL || own->to->arena->failed) return pl_fail_memory(error, "a program's kernels");
  int32_t n_results = 0;
  for (int32_t i = 0; i < from->n_results; i++)
    if (own->live.result[index][i]) results[n_results++] = own->map[from->results[i]];
  pl_ir_results_set(own->to, own->function, n_results, results);
  own->function->place = from->place;
  pl_arena_release_to(&own->scratch, mark);
  return PL_OK;
}

pl_code pl_kernel_steps(const pl_ir_module *module, const pl_kernels_options *options, pl_arena *arena,
                        pl_ir_module *made, pl_error *error) {
  pl_kernel_stepping own = {.from = module, .to = made, .options = options};
  pl_ir_module_init_like(made, arena, module, PL_IR_KERNELS);
  pl_arena_init(&own.scratch, 1 << 16);
  pl_arena kept; /* while functions give back what they took */
  pl_arena_init(&kept, 1 << 16);
  pl_code code = pl_kernel_live_take(module, options->whole, &kept, &own.live)
                     ? PL_OK
                     : pl_fail_memory(error, "a program's kernels");
  for (int32_t i = 0; i < module->n_functions && code == PL_OK; i++)
    code = write_function(&own, i, error);
  pl_arena_release(&own.scratch);
  pl_arena_release(&kept);
  return code;
}
