/* See workloads/import/program_write.h. */
#include "workloads/import/program_write.h"

#include <string.h>

#include "workloads/language/ir_product.h"

enum { LETTERS_MAX = PL_IR_RANK_MAX };

static pl_ir_name letter_name(char letter) {
  const char text[] = {letter, '\0'};
  return pl_ir_name_of(text);
}

static int32_t names_of(const char *letters, pl_ir_name *names) {
  int32_t n = (int32_t)strlen(letters);
  PL_ASSERT(n <= LETTERS_MAX);
  for (int32_t i = 0; i < n; i++)
    names[i] = letter_name(letters[i]);
  return n;
}

pl_ir_type pl_write_type(const pl_program_writer *to, pl_ir_element element, const char *dims) {
  pl_ir_dim made[LETTERS_MAX];
  pl_ir_name names[LETTERS_MAX];
  int32_t n = names_of(dims, names);
  for (int32_t i = 0; i < n; i++) {
    made[i] = (pl_ir_dim){.name = names[i], .extent = to->extent[dims[i] - 'a']};
    PL_ASSERT(made[i].extent > 0);
  }
  return pl_ir_type_of(element, n, made);
}

/* ---- functions ---- */

pl_ir_function *pl_write_function(pl_program_writer *to, const char *name) {
  to->function = pl_ir_function_add(to->module, name);
  to->n_dropouts = 0;
  to->in_layer = false;
  return to->function;
}

pl_ir_function *pl_write_layer(pl_program_writer *to, const char *name) {
  pl_ir_function *made = pl_write_function(to, name);
  to->in_layer = true;
  return made;
}

int32_t pl_write_argument(pl_program_writer *to, const char *name, const char *dims) {
  pl_ir_type type = pl_write_type(to, to->options->element, dims);
  return pl_ir_argument(to->module, to->function, name, &type);
}

void pl_write_result(pl_program_writer *to, int32_t value) {
  if (value != PL_IR_NONE) pl_ir_results_set(to->module, to->function, 1, &value);
}

/* ---- what comes from outside ---- */

static int32_t typed(pl_program_writer *to, const char *row, const char *name, const char *path, pl_ir_type type,
                     int32_t n_attributes, const pl_ir_attribute *attributes) {
  return pl_ir_op_typed(to->module, to->function, row, name, path, 0, NULL, &type, n_attributes, attributes);
}

const char *pl_write_pair(const pl_program_writer *to, int64_t high, int64_t wide) {
  const char *text = pl_arena_printf(to->module->arena, "%lldx%lld", (long long)high, (long long)wide);
  return text != NULL ? text : "1";
}

int32_t pl_write_param(pl_program_writer *to, const char *path, const char *dims) {
  return typed(to, "param", path, path, pl_write_type(to, to->options->element, dims), 0, NULL);
}

int32_t pl_write_input(pl_program_writer *to, const char *name, const char *dims, int64_t below) {
  const pl_ir_attribute attribute = pl_ir_integer("below", below);
  return typed(to, "input", name, name, pl_write_type(to, PL_IR_I32, dims), 1, &attribute);
}

int32_t pl_write_constant(pl_program_writer *to, double value, const char *dims) {
  const pl_ir_attribute attribute = pl_ir_real("value", value);
  return typed(to, "constant", "constant", NULL, pl_write_type(to, to->options->element, dims), 1, &attribute);
}

/* ---- ops ---- */

static int32_t op(pl_program_writer *to, const char *row, const char *name, int32_t n_inputs, const int32_t *inputs,
                  int32_t n_attributes, const pl_ir_attribute *attributes) {
  return pl_ir_op_infer(to->module, to->function, row, name, n_inputs, inputs, n_attributes, attributes);
}

int32_t pl_write_one(pl_program_writer *to, const char *row, const char *name, int32_t a) {
  return op(to, row, name, 1, &a, 0, NULL);
}

int32_t pl_write_two(pl_program_writer *to, const char *row, const char *name, int32_t a, int32_t b) {
  return op(to, row, name, 2, (const int32_t[]){a, b}, 0, NULL);
}

static int32_t over_names(pl_program_writer *to, const char *row, const char *name, int32_t n_inputs,
                          const int32_t *inputs, const char *over) {
  pl_ir_name names[LETTERS_MAX];
  const pl_ir_attribute attribute = pl_ir_names("over", names_of(over, names), names);
  return op(to, row, name, n_inputs, inputs, 1, &attribute);
}

int32_t pl_write_over(pl_program_writer *to, const char *row, const char *name, int32_t a, const char *over) {
  return over_names(to, row, name, 1, &a, over);
}

int32_t pl_write_two_over(pl_program_writer *to, const char *row, const char *name, int32_t a, int32_t b,
                          const char *over) {
  return over_names(to, row, name, 2, (const int32_t[]){a, b}, over);
}

int32_t pl_write_product(pl_program_writer *to, const char *name, int32_t a, int32_t b, const char *over) {
  return pl_write_two_over(to, "product", name, a, b, over);
}

int32_t pl_write_scale(pl_program_writer *to, const char *name, int32_t a, double by) {
  const pl_ir_attribute attribute = pl_ir_real("by", by);
  return op(to, "scale", name, 1, &a, 1, &attribute);
}

int32_t pl_write_rename(pl_program_writer *to, int32_t a, const char *from, const char *into) {
  if (a == PL_IR_NONE) return a;
  const pl_ir_name names[] = {pl_ir_name_of(from), pl_ir_name_of(into)};
  const pl_ir_attribute attributes[] = {pl_ir_names("from", 1, &names[0]), pl_ir_names("to", 1, &names[1])};
  return op(to, "rename", to->function->values[a].name, 1, &a, 2, attributes);
}

int32_t pl_write_cast(pl_program_writer *to, const char *name, int32_t a, pl_ir_element element) {
  if (a == PL_IR_NONE || to->function->values[a].type.element == element) return a;
  pl_ir_type type = to->function->values[a].type;
  type.element = (uint8_t)element;
  return pl_ir_op_typed(to->module, to->function, "cast", name, NULL, 1, &a, &type, 0, NULL);
}

int32_t pl_write_dropout(pl_program_writer *to, const char *name, int32_t a, double probability) {
  if (!to->options->dropout || probability == 0) return a;
  const pl_ir_attribute attributes[] = {pl_ir_real("p", probability), pl_ir_integer("seed", to->n_dropouts++)};
  return op(to, "dropout", name, 1, &a, 2, attributes);
}

/* ---- small compounds ---- */

static const char *path_of(pl_program_writer *to, const char *path, const char *last) {
  const char *made = pl_arena_printf(to->module->arena, "%s.%s", path, last);
  return made != NULL ? made : path; /* no memory: the arena says so */
}

int32_t pl_write_bias(pl_program_writer *to, const char *path, int32_t a, const char *dims) {
  int32_t bias = pl_write_param(to, path, dims);
  return a == PL_IR_NONE ? a : pl_write_two(to, "add", to->function->values[a].name, a, bias);
}

/* Whether a product of the layer at hand is one in the job's narrow type. */
static bool is_narrow(const pl_program_writer *to, int32_t a, const char *weight) {
  bool wanted = pl_ir_element_is_narrow(to->options->narrow);
  if (!to->in_layer || !wanted || strlen(weight) < 2) return false;
  bool routes = strchr(weight, 'x') != NULL && pl_ir_type_find(&to->function->values[a].type, letter_name('x')) < 0;
  return !routes;
}

static int32_t product_with(pl_program_writer *to, const char *path, int32_t a, int32_t w, const char *weight,
                            const char *over) {
  if (a == PL_IR_NONE || !is_narrow(to, a, weight)) return pl_write_product(to, path, a, w, over);
  pl_ir_name names[LETTERS_MAX];
  const pl_ir_attribute attributes[] = {pl_ir_names("over", names_of(over, names), names),
                                        pl_ir_text(PL_IR_PRODUCT_NARROW, pl_ir_element_name(to->options->narrow)),
                                        pl_ir_text(PL_IR_PRODUCT_AS, pl_ir_element_name(to->options->element))};
  return op(to, "product", path, 2, (const int32_t[]){a, w}, 3, attributes);
}

int32_t pl_write_linear(pl_program_writer *to, const char *path, int32_t a, const char *weight, const char *over,
                        bool bias) {
  int32_t w = pl_write_param(to, path_of(to, path, "weight"), weight);
  int32_t y = product_with(to, path, a, w, weight, over);
  if (!bias) return y;
  char own[LETTERS_MAX + 1];
  size_t n = 0;
  for (const char *letter = weight; *letter != '\0'; letter++)
    if (strchr(over, *letter) == NULL) own[n++] = *letter;
  own[n] = '\0';
  return pl_write_bias(to, path_of(to, path, "bias"), y, own);
}

int32_t pl_write_norm(pl_program_writer *to, const char *path, int32_t a, const char *over) {
  return pl_write_norm_of(to, path, a, over, over);
}

int32_t pl_write_norm_of(pl_program_writer *to, const char *path, int32_t a, const char *over, const char *dims) {
  bool pixel = to->model->norms.norm == PL_NORM_PIXEL, rms = to->model->norms.norm == PL_NORM_RMS || pixel;
  int32_t scale = pixel ? pl_write_constant(to, 1, dims) : pl_write_param(to, path_of(to, path, "scale"), dims);
  int32_t inputs[3] = {a, scale, PL_IR_NONE};
  int32_t n = 2;
  if (!rms)
    inputs[n++] = to->model->norms.norm_bias ? pl_write_param(to, path_of(to, path, "shift"), dims)
                                             : pl_write_constant(to, 0, dims);
  pl_ir_name names[LETTERS_MAX];
  const pl_ir_attribute attributes[] = {pl_ir_names("over", names_of(over, names), names),
                                        pl_ir_real("epsilon", to->model->numbers.norm_epsilon)};
  return op(to, rms ? "rms_norm" : "layer_norm", path, n, inputs, 2, attributes);
}

int32_t pl_write_spread(pl_program_writer *to, const char *name, int32_t a, const char *dims) {
  if (a == PL_IR_NONE) return a;
  pl_ir_type type = pl_write_type(to, to->options->element, dims);
  return pl_ir_op_typed(to->module, to->function, "spread", name, NULL, 1, &a, &type, 0, NULL);
}

int32_t pl_write_padded(pl_program_writer *to, const char *name, int32_t a, const char *over, int64_t first,
                        const char *dims) {
  if (a == PL_IR_NONE) return a;
  pl_ir_type type = pl_write_type(to, to->options->element, dims);
  const pl_ir_name dim = pl_ir_name_of(over);
  const pl_ir_attribute attributes[] = {pl_ir_names("over", 1, &dim), pl_ir_integer("first", first)};
  return pl_ir_op_typed(to->module, to->function, "pad", name, NULL, 1, &a, &type, 2, attributes);
}

int32_t pl_write_chosen(pl_program_writer *to, const char *name, int32_t a, int32_t ids, const char *ids_dims,
                        const char *over) {
  const char *dims = pl_arena_printf(to->module->arena, "%s%s", ids_dims, over);
  int32_t ones = pl_write_constant(to, 1, ids_dims);
  if (dims == NULL || ones == PL_IR_NONE || ids == PL_IR_NONE) return PL_IR_NONE;
  pl_ir_type type = pl_write_type(to, to->options->element, dims);
  pl_ir_name names[LETTERS_MAX];
  const pl_ir_attribute attribute = pl_ir_names("over", names_of(over, names), names);
  int32_t rows = pl_ir_op_typed(to->module, to->function, "place", name, NULL, 2, (const int32_t[]){ones, ids}, &type,
                                1, &attribute);
  return pl_write_product(to, name, rows, a, over);
}

void pl_write_loss(pl_program_writer *to, int32_t losses, const char *over, double n) {
  int32_t mean = pl_write_scale(to, "mean", pl_write_over(to, "sum", "total", losses, over), 1 / n);
  if (mean != PL_IR_NONE) pl_ir_op_typed(to->module, to->function, "loss", NULL, NULL, 1, &mean, NULL, 0, NULL);
}

int32_t pl_write_call(pl_program_writer *to, const char *name, const char *instance, int32_t x) {
  return pl_write_call_of(to, name, instance, &x);
}

int32_t pl_write_call_of(pl_program_writer *to, const char *name, const char *instance, const int32_t *arguments) {
  int32_t callee = pl_ir_function_find(to->module, name);
  if (callee == PL_IR_NONE || to->module->arena->failed) return PL_IR_NONE;
  const pl_ir_function *called = to->module->functions[callee];
  enum { RESULTS_MAX = 2 };
  pl_ir_type types[RESULTS_MAX];
  const char *const names[RESULTS_MAX] = {"x", "x"};
  PL_ASSERT(called->n_results <= RESULTS_MAX);
  for (int32_t i = 0; i < called->n_results; i++)
    types[i] = called->values[called->results[i]].type;
  return pl_ir_op_add(to->module, to->function,
                      &(pl_ir_making){.row = pl_ir_row_of("call"),
                                      .n_inputs = called->n_arguments,
                                      .inputs = arguments,
                                      .n_outputs = called->n_results,
                                      .output_names = names,
                                      .output_types = types,
                                      .path = instance,
                                      .callee = callee});
}
