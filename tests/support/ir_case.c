/* See tests/support/ir_case.h. */
#include "tests/support/ir_case.h"

#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random.h"

/* ---- operands ---- */

pl_ir_type ir_type(const char *dims) {
  pl_ir_type type = pl_ir_type_of(PL_IR_F32, 0, NULL);
  char name[PL_IR_NAME_MAX];
  for (int used = 0, extent; sscanf(dims, " %23[^=]=%d%n", name, &extent, &used) == 2; dims += used)
    type.dims[type.rank++] = (pl_ir_dim){.name = pl_ir_name_of(name), .extent = extent};
  return type;
}

static double uniform(ir_case *one, double least, double most) {
  return least + (most - least) * (double)(random_u64(&one->random) >> 11) * 0x1p-53;
}

static pl_ir_attribute names_attribute(ir_case *one, const char *name, const char **text) {
  pl_ir_name *names = PL_TAKE(one->arena, pl_ir_name, PL_IR_RANK_MAX);
  int32_t n = 0;
  char word[PL_IR_NAME_MAX];
  bool many = **text == '(';
  *text += many;
  for (int used = 0; sscanf(*text, " %23[a-z_0-9]%n", word, &used) == 1;) {
    names[n++] = pl_ir_name_of(word);
    *text += used;
    if (!many || **text == ')') break;
    *text += 1; /* comma */
  }
  *text += many;
  return pl_ir_names(name, n, names);
}

static pl_ir_attribute read_attribute(ir_case *one, const pl_ir_row *row, const char **text) {
  char *name = pl_arena_take(one->arena, PL_IR_NAME_MAX, 1);
  int used = 0;
  assert_int_equal(sscanf(*text, " %23[a-z_0-9]=%n", name, &used), 1);
  *text += used;
  const pl_ir_attribute_rule *rule = row->attributes;
  while (rule->name != NULL && strcmp(rule->name, name) != 0)
    rule++;
  if (rule->name == NULL) fail_msg("%s has no attribute %s", row->name, name);
  if (rule->kind == PL_IR_NAMES) return names_attribute(one, name, text);
  if (rule->kind == PL_IR_TEXT) {
    bool quoted = **text == '"';
    *text += quoted;
    size_t length = strcspn(*text, quoted ? "\"" : ",");
    const char *word = pl_arena_printf(one->arena, "%.*s", (int)length, *text);
    *text += length + quoted;
    return pl_ir_text(name, word);
  }
  char *end;
  double value = strtod(*text, &end);
  *text = end;
  return rule->kind == PL_IR_REAL ? pl_ir_real(name, value) : pl_ir_integer(name, (int64_t)value);
}

void ir_case_init(ir_case *one, pl_arena *arena, uint64_t seed, const char *row, const char *attributes) {
  *one = (ir_case){.arena = arena, .random = seed};
  one->op.row = (uint16_t)pl_ir_row_of(row);
  const pl_ir_row *of = pl_ir_row_at(one->op.row);
  while (*attributes != 0) {
    one->attributes[one->op.n_attributes++] = read_attribute(one, of, &attributes);
    attributes += strspn(attributes, ", ");
  }
  one->op.attributes = one->attributes;
  one->op.n_outputs = (uint16_t)(of->n_outputs < 0 ? 2 : of->n_outputs); /* deal: of any number */
}

static double *add_operand(ir_case *one, const char *dims, pl_ir_element element, int64_t *n) {
  int32_t k = one->op.n_inputs++;
  one->in[k] = ir_type(dims);
  one->in[k].element = (uint8_t)element;
  *n = (int64_t)pl_ir_type_elements(&one->in[k]);
  one->data[k] = PL_TAKE(one->arena, double, *n);
  return one->data[k];
}

double *ir_case_between(ir_case *one, const char *dims, double least, double most) {
  int64_t n;
  double *data = add_operand(one, dims, PL_IR_F32, &n);
  for (int64_t i = 0; i < n; i++)
    data[i] = uniform(one, least, most);
  return data;
}

double *ir_case_numbers(ir_case *one, const char *dims) {
  return ir_case_between(one, dims, -1, 1);
}

double *ir_case_integers(ir_case *one, const char *dims, int32_t below) {
  int64_t n;
  double *data = add_operand(one, dims, PL_IR_I32, &n);
  for (int64_t i = 0; i < n; i++)
    data[i] = random_below(&one->random, (uint32_t)below);
  return data;
}

double *ir_case_permutation(ir_case *one, const char *dims) {
  int64_t n;
  double *data = add_operand(one, dims, PL_IR_I32, &n);
  for (int64_t i = 0; i < n; i++) {
    int64_t j = random_below(&one->random, (uint32_t)(i + 1));
    data[i] = data[j];
    data[j] = (double)i;
  }
  return data;
}

void ir_case_set(double *operand, int n, const double *values) {
  memcpy(operand, values, (size_t)n * sizeof(double));
}

void ir_case_written(ir_case *one, const char *dims) {
  one->out[0] = ir_type(dims);
}

/* ---- computing ---- */

static pl_ir_tensor whole_tensor(const pl_ir_type *type, double *data) {
  pl_ir_tensor tensor = {.type = *type, .n = (int64_t)pl_ir_type_elements(type), .data = data};
  for (int32_t i = 0; i < type->rank; i++)
    tensor.extent[i] = type->dims[i].extent;
  return tensor;
}

static pl_code compute(pl_arena *scratch, const pl_ir_op *op, const pl_ir_tensor *in, pl_ir_tensor *out, bool single,
                       pl_error *error) {
  const pl_ir_computing computing = {.op = op,
                                     .inputs = in,
                                     .outputs = out,
                                     .scratch = scratch,
                                     .single = single,
                                     .iteration = 3,
                                     .turn.microbatch = 1};
  return pl_ir_row_at(op->row)->compute(&computing, error);
}

pl_code ir_case_run(ir_case *one, pl_arena *scratch, bool single, pl_error *error) {
  pl_ir_tensor in[IR_CASE_OPERANDS], out[IR_CASE_OPERANDS];
  for (int32_t k = 0; k < one->op.n_inputs; k++)
    in[k] = whole_tensor(&one->in[k], one->data[k]);
  for (int32_t k = 0; k < one->op.n_outputs; k++) {
    one->answer[k] = PL_TAKE(one->arena, double, pl_ir_type_elements(&one->out[k]));
    out[k] = whole_tensor(&one->out[k], one->answer[k]);
  }
  return compute(scratch, &one->op, in, out, single, error);
}

static pl_code compute_whole(ir_case *one, pl_error *error) {
  PL_TRY(pl_ir_row_at(one->op.row)->infer(&one->op, one->in, one->out, error));
  return ir_case_run(one, one->arena, false, error);
}

void ir_case_compute(ir_case *one) {
  pl_error error = PL_ERROR_INIT;
  if (compute_whole(one, &error) != PL_OK) fail_msg("%s", error.message);
}

void ir_case_expect(const ir_case *one, int n, const double *values) {
  assert_int_equal((int)pl_ir_type_elements(&one->out[0]), n);
  for (int i = 0; i < n; i++)
    assert_true(fabs(one->answer[0][i] - values[i]) < 1e-15);
}

const char *ir_case_refused(ir_case *one, pl_error *error) {
  *error = PL_ERROR_INIT;
  assert_int_equal(compute_whole(one, error), PL_BAD_INPUT);
  return error->message;
}

/* ---- parts ---- */

static int32_t n_terms(const pl_ir_mesh *mesh, const pl_ir_type *type) {
  int32_t n = 1;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (type->on[axis] == PL_IR_PARTIAL) n *= mesh->axes[axis].extent;
  return n;
}

static int32_t term_of(const pl_ir_mesh *mesh, const pl_ir_type *type, uint32_t device) {
  int32_t term = 0;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (type->on[axis] == PL_IR_PARTIAL)
      term = term * mesh->axes[axis].extent + pl_ir_mesh_coordinate(mesh, device, axis);
  return term;
}

/* terms[term][element] of the whole value: random ones that add up to it. */
static double **make_terms(ir_case *one, const double *data, int64_t n, int32_t terms) {
  double **made = PL_TAKE(one->arena, double *, terms);
  for (int32_t term = 0; term < terms; term++)
    made[term] = PL_TAKE(one->arena, double, n);
  for (int64_t i = 0; i < n; i++) {
    made[terms - 1][i] = data[i];
    for (int32_t term = 0; term < terms - 1; term++) {
      made[term][i] = uniform(one, -1, 1);
      made[terms - 1][i] -= made[term][i];
    }
  }
  return made;
}

pl_ir_tensor ir_tensor(pl_arena *arena, const pl_ir_mesh *mesh, const pl_ir_type *type, uint32_t device) {
  pl_ir_tensor tensor = {.type = *type, .n = 1};
  for (int32_t i = 0; i < type->rank; i++) {
    tensor.extent[i] = pl_ir_type_local_extent(mesh, type, i);
    tensor.origin[i] = pl_ir_type_local_origin(mesh, type, i, device);
    tensor.n *= tensor.extent[i];
  }
  tensor.data = PL_TAKE(arena, double, tensor.n);
  return tensor;
}

/* Place in the whole of element `i` of a part. */
static int64_t place_in_whole(const pl_ir_tensor *part, int64_t i) {
  int64_t index[PL_IR_RANK_MAX], place = 0;
  for (int32_t d = part->type.rank - 1; d >= 0; d--) {
    index[d] = part->origin[d] + i % part->extent[d];
    i /= part->extent[d];
  }
  for (int32_t d = 0; d < part->type.rank; d++)
    place = place * part->type.dims[d].extent + index[d];
  return place;
}

static bool is_first_of_same(const pl_ir_mesh *mesh, const pl_ir_type *type, uint32_t device) {
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (type->on[axis] == PL_IR_SAME && pl_ir_mesh_coordinate(mesh, device, axis) != 0) return false;
  return true;
}

static bool has_maximum(const pl_ir_type *type) {
  for (int32_t axis = 0; axis < PL_IR_AXES_MAX; axis++)
    if (type->on[axis] == PL_IR_MAXIMUM) return true;
  return false;
}

static void layout_text(const ir_case *one, const pl_ir_mesh *mesh, char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (int32_t i = 0; i < one->op.n_inputs + one->op.n_outputs; i++)
    for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
      const pl_ir_type *type = i < one->op.n_inputs ? &one->in[i] : &one->out[i - one->op.n_inputs];
      int8_t on = type->on[axis];
      used += (size_t)snprintf(text + used, size - used, "%s%s", axis == 0 ? " " : "/",
                               on >= 0               ? type->dims[on].name.text
                               : on == PL_IR_SAME    ? "same"
                               : on == PL_IR_PARTIAL ? "partial"
                                                     : "maximum");
    }
}

static void compare(ir_case *one, const pl_ir_mesh *mesh, int32_t output, int64_t i, double is, double tolerance) {
  double should = one->answer[output][i];
  if (one->differs[0] != 0 || is == should || fabs(is - should) <= tolerance * (1 + fabs(should))) return;
  char layouts[512];
  layout_text(one, mesh, layouts, sizeof(layouts));
  (void)snprintf(
      one->differs, sizeof(one->differs), "%s on %u devices,%s: element %lld of output %d is %.17g instead of %.17g",
      pl_ir_row_at(one->op.row)->name, pl_ir_mesh_devices(mesh), layouts, (long long)i, output + 1, is, should);
}

/* parts[device] of one output become the whole. */
static void join(ir_case *one, const pl_ir_mesh *mesh, int32_t output, const pl_ir_tensor *parts, int32_t stride,
                 double tolerance) {
  const pl_ir_type *type = &one->out[output];
  int64_t n = (int64_t)pl_ir_type_elements(type);
  bool maximum = has_maximum(type);
  double *whole = PL_TAKE(one->arena, double, n);
  for (int64_t i = 0; i < n; i++)
    whole[i] = maximum ? -INFINITY : 0;
  for (uint32_t device = 0; device < pl_ir_mesh_devices(mesh); device++) {
    const pl_ir_tensor *part = &parts[(int32_t)device * stride];
    if (!is_first_of_same(mesh, type, device)) continue;
    for (int64_t i = 0; i < part->n; i++) {
      double *to = &whole[place_in_whole(part, i)];
      *to = maximum ? fmax(*to, part->data[i]) : *to + part->data[i];
    }
  }
  for (int64_t i = 0; i < n; i++)
    compare(one, mesh, output, i, whole[i], tolerance);
  if (n_terms(mesh, type) > 1 || maximum) return;
  for (uint32_t device = 0; device < pl_ir_mesh_devices(mesh); device++) /* those that hold the same, too */
    for (int64_t i = 0; i < parts[(int32_t)device * stride].n; i++) {
      const pl_ir_tensor *part = &parts[(int32_t)device * stride];
      compare(one, mesh, output, place_in_whole(part, i), part->data[i], tolerance);
    }
}

const char *ir_case_differs(ir_case *one, const pl_ir_mesh *mesh, double tolerance) {
  one->differs[0] = 0;
  pl_arena_mark mark = pl_arena_mark_here(one->arena);
  uint32_t devices = pl_ir_mesh_devices(mesh);
  pl_error error = PL_ERROR_INIT;
  double **terms[IR_CASE_OPERANDS];
  pl_ir_tensor *out = PL_TAKE(one->arena, pl_ir_tensor, devices * IR_CASE_OPERANDS);
  for (int32_t k = 0; k < one->op.n_inputs; k++)
    terms[k] = make_terms(one, one->data[k], (int64_t)pl_ir_type_elements(&one->in[k]), n_terms(mesh, &one->in[k]));
  for (uint32_t device = 0; device < devices; device++) {
    pl_ir_tensor in[IR_CASE_OPERANDS], *own = &out[device * IR_CASE_OPERANDS];
    for (int32_t k = 0; k < one->op.n_inputs; k++) {
      in[k] = ir_tensor(one->arena, mesh, &one->in[k], device);
      const double *from = terms[k][term_of(mesh, &one->in[k], device)];
      for (int64_t i = 0; i < in[k].n; i++)
        in[k].data[i] = from[place_in_whole(&in[k], i)];
    }
    for (int32_t k = 0; k < one->op.n_outputs; k++)
      own[k] = ir_tensor(one->arena, mesh, &one->out[k], device);
    if (compute(one->arena, &one->op, in, own, false, &error) != PL_OK && one->differs[0] == 0)
      (void)snprintf(one->differs, sizeof(one->differs), "%.700s", error.message);
  }
  for (int32_t k = 0; k < one->op.n_outputs; k++)
    join(one, mesh, k, &out[k], IR_CASE_OPERANDS, tolerance);
  pl_arena_release_to(one->arena, mark);
  return one->differs[0] != 0 ? one->differs : NULL;
}

void ir_case_check_layout(ir_case *one, const pl_ir_mesh *mesh, double tolerance) {
  const char *differs = ir_case_differs(one, mesh, tolerance);
  if (differs != NULL) fail_msg("%s", differs);
}

bool ir_case_lay(ir_case *one, const pl_ir_mesh *mesh, int32_t axis, const pl_ir_way *way) {
  int8_t in_on[IR_CASE_OPERANDS], out_on[IR_CASE_OPERANDS];
  bool valid = true;
  pl_ir_way_apply(&one->op, way, one->in, one->out, in_on, out_on);
  for (int32_t k = 0; k < one->op.n_inputs; k++) {
    one->in[k].on[axis] = in_on[k];
    valid &= pl_ir_type_is_valid(mesh, &one->in[k]);
  }
  for (int32_t k = 0; k < one->op.n_outputs; k++) {
    one->out[k].on[axis] = out_on[k];
    valid &= pl_ir_type_is_valid(mesh, &one->out[k]);
  }
  return valid;
}

static int32_t check_mesh(ir_case *one, int32_t first, int32_t second, double tolerance) {
  const pl_ir_mesh mesh = {.n_axes = second > 1 ? 2 : 1,
                           .axes = {{pl_ir_name_of("x"), first}, {pl_ir_name_of("y"), second}}};
  pl_ir_way ways[PL_IR_WAYS_MAX];
  pl_error error = PL_ERROR_INIT;
  int32_t n = pl_ir_ways_of(&one->op, one->in, one->out, ways), n_tried = 0;
  for (int32_t i = 0; i < n; i++)
    for (int32_t j = 0; j < (second > 1 ? n : 1); j++) {
      bool valid = ir_case_lay(one, &mesh, 0, &ways[i]);
      if (second > 1) valid = ir_case_lay(one, &mesh, 1, &ways[j]);
      if (!valid) continue;
      if (pl_ir_layout_check(&mesh, &one->op, one->in, one->out, &error) != PL_OK) fail_msg("%s", error.message);
      ir_case_check_layout(one, &mesh, tolerance);
      n_tried++;
    }
  const pl_ir_way same = {.kind = PL_IR_SAME};
  ir_case_lay(one, &mesh, 0, &same);
  ir_case_lay(one, &mesh, 1, &same);
  return n_tried;
}

int32_t ir_case_check_ways(ir_case *one, double tolerance) {
  ir_case_compute(one);
  return check_mesh(one, 2, 1, tolerance) + check_mesh(one, 3, 1, tolerance) + check_mesh(one, 2, 2, tolerance);
}

/* ---- derivatives ---- */

static int32_t see_argument(pl_ir_differ *differ, int32_t value) {
  (void)differ;
  return value; /* arguments of the backward function are the forward function's values */
}

pl_code ir_case_differentiate(ir_case *one, int64_t takes, pl_ir_module *module, pl_ir_function **backward,
                              int32_t *gradients, pl_error *error) {
  pl_ir_module_init(module, one->arena, "case", PL_IR_TRAINING);
  pl_ir_function *forward = pl_ir_function_add(module, "forward");
  *backward = pl_ir_function_add(module, "backward");
  int32_t inputs[IR_CASE_OPERANDS], n_in = one->op.n_inputs, n_out = one->op.n_outputs;
  for (int32_t k = 0; k < n_in; k++)
    inputs[k] = pl_ir_argument(module, forward, "in", &one->in[k]);
  const char *names[IR_CASE_OPERANDS];
  for (int32_t k = 0; k < n_out; k++)
    names[k] = "out";
  (void)pl_ir_op_add(module, forward,
                     &(pl_ir_making){.row = one->op.row,
                                     .n_inputs = n_in,
                                     .inputs = inputs,
                                     .n_outputs = n_out,
                                     .output_names = names,
                                     .output_types = one->out,
                                     .n_attributes = one->op.n_attributes,
                                     .attributes = one->op.attributes,
                                     .callee = PL_IR_NONE});
  int32_t seen[2 * IR_CASE_OPERANDS];
  for (int32_t i = 0; i < n_in + n_out; i++) {
    (void)pl_ir_argument(module, *backward, "value", i < n_in ? &one->in[i] : &one->out[i - n_in]);
    gradients[i] = seen[i] = PL_IR_NONE;
  }
  for (int32_t k = 0; k < n_out; k++)
    gradients[n_in + k] = pl_ir_argument(module, *backward, "gradient", &one->out[k]);
  pl_ir_differ differ = {.module = module,
                         .forward = forward,
                         .backward = *backward,
                         .gradients = gradients,
                         .seen = seen,
                         .see = see_argument};
  one->arena->fail_after = takes;
  pl_code code = pl_ir_row_at(one->op.row)->derive(&differ, &forward->ops[0], error);
  one->arena->fail_after = -1;
  return code;
}

/* values[i] of the backward function, arguments given. */
static void evaluate(pl_arena *arena, const pl_ir_function *function, double **values) {
  pl_error error = PL_ERROR_INIT;
  for (int32_t o = 0; o < function->n_ops; o++) {
    const pl_ir_op *op = &function->ops[o];
    pl_ir_tensor in[IR_CASE_OPERANDS], out[IR_CASE_OPERANDS];
    for (int32_t k = 0; k < op->n_inputs; k++)
      in[k] = whole_tensor(&function->values[op->inputs[k]].type, values[op->inputs[k]]);
    for (int32_t k = 0; k < op->n_outputs; k++) {
      const pl_ir_type *type = &function->values[op->first_output + k].type;
      values[op->first_output + k] = PL_TAKE(arena, double, pl_ir_type_elements(type));
      out[k] = whole_tensor(type, values[op->first_output + k]);
    }
    if (compute(arena, op, in, out, false, &error) != PL_OK) fail_msg("%s", error.message);
  }
}

static double weighted_sum(ir_case *one, double *const *weights) {
  double sum = 0;
  pl_arena_mark mark = pl_arena_mark_here(one->arena);
  ir_case_compute(one);
  for (int32_t k = 0; k < one->op.n_outputs; k++)
    for (int64_t i = 0; i < (int64_t)pl_ir_type_elements(&one->out[k]); i++)
      sum += weights[k][i] * one->answer[k][i];
  pl_arena_release_to(one->arena, mark);
  return sum;
}

static void compare_gradient(ir_case *one, int32_t k, const double *gradient, double *const *weights,
                             double tolerance) {
  const double step = 1e-5;
  for (int64_t i = 0; i < (int64_t)pl_ir_type_elements(&one->in[k]); i++) {
    double here = one->data[k][i];
    one->data[k][i] = here + step;
    double above = weighted_sum(one, weights);
    one->data[k][i] = here - step;
    double below = weighted_sum(one, weights), is = gradient != NULL ? gradient[i] : 0;
    one->data[k][i] = here;
    double should = (above - below) / (2 * step);
    if (!(fabs(is - should) <= tolerance * (1 + fabs(should))))
      fail_msg("%s: derivative by element %lld of input %d is %.17g; differences say %.17g",
               pl_ir_row_at(one->op.row)->name, (long long)i, k + 1, is, should);
  }
}

void ir_case_check_gradients(ir_case *one, double tolerance) {
  ir_case_compute(one);
  pl_ir_module module;
  pl_ir_function *backward;
  int32_t gradients[2 * IR_CASE_OPERANDS], n_in = one->op.n_inputs, n_out = one->op.n_outputs;
  pl_error error = PL_ERROR_INIT;
  if (ir_case_differentiate(one, -1, &module, &backward, gradients, &error) != PL_OK) fail_msg("%s", error.message);
  double **values = PL_TAKE(one->arena, double *, backward->n_values), *weights[IR_CASE_OPERANDS];
  for (int32_t k = 0; k < n_in; k++)
    values[k] = one->data[k];
  for (int32_t k = 0; k < n_out; k++) {
    int64_t n = (int64_t)pl_ir_type_elements(&one->out[k]);
    values[n_in + k] = one->answer[k];
    weights[k] = values[n_in + n_out + k] = PL_TAKE(one->arena, double, n);
    for (int64_t i = 0; i < n; i++)
      weights[k][i] = uniform(one, -1, 1);
  }
  evaluate(one->arena, backward, values);
  for (int32_t k = 0; k < n_in; k++)
    if (one->in[k].element != PL_IR_I32)
      compare_gradient(one, k, gradients[k] != PL_IR_NONE ? values[gradients[k]] : NULL, weights, tolerance);
}
