/* See workloads/passes/adapt.h: convolutions and pooling whose height or width is cut.
 *
 * Part p of n of a result has out / n rows and sees (out / n - 1) stride + reach rows of the picture, from
 * p (out / n) stride - padding on: `halo` gives it these, with zeros (of a maximum: nothing) outside of the picture, so
 * that the op itself pads no more along this dimension. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "workloads/language/ir_table.h"
#include "workloads/language/ir_window.h"
#include "workloads/passes/adapting.h"

enum { ATTRIBUTES_MAX = 16 };

static bool is_row(const pl_ir_op *op, const char *name) {
  return pl_ir_op_is(op, name);
}

static bool windows_of(const pl_ir_function *function, const pl_ir_op *op, pl_ir_windows *windows) {
  bool convolves = is_row(op, "convolution");
  if (!convolves && !is_row(op, "max_pool") && !is_row(op, "average_pool")) return false;
  const pl_ir_type *picture = &function->values[op->inputs[0]].type;
  const pl_ir_type *weights = convolves ? &function->values[op->inputs[1]].type : NULL;
  return pl_ir_windows_of(op, picture, weights, windows, NULL) == PL_OK;
}

typedef struct sliced {
  int64_t parts, rows, first, step; /* parts 1: whole */
} sliced;

static int64_t reach_of(const pl_ir_window *window) {
  return window->dilation * (window->size - 1) + 1;
}

/* What each of `parts` needs; whole where it does not divide, or needs more than its neighbours' rows. */
static sliced slice(const pl_ir_window *window, int64_t parts, bool counts_inside) {
  const sliced whole = {.parts = 1};
  bool pads = window->before > 0 || window->after > 0;
  if (parts < 2 || window->in % parts != 0 || window->out % parts != 0 || (counts_inside && pads)) return whole;
  int64_t held = window->in / parts, made = window->out / parts;
  sliced is = {.parts = parts,
               .rows = (made - 1) * window->stride + reach_of(window),
               .first = -window->before,
               .step = made * window->stride};
  for (int64_t p = 0; p < parts; p++) {
    int64_t from = is.first + p * is.step, to = from + is.rows;
    if (from < 0) from = 0;
    if (to > window->in) to = window->in;
    if (from < (p - 1) * held || to > (p + 2) * held) return whole;
  }
  return is;
}

static sliced slice_of(const pl_ir_function *function, const pl_ir_op *op, const pl_ir_windows *windows, int32_t i,
                       const pl_layout_rules *rules) {
  const pl_ir_type *picture = &function->values[op->inputs[0]].type;
  pl_ir_name dim = pl_ir_attribute_find(op, "window")->names[i];
  bool inside = is_row(op, "average_pool") && pl_ir_integer_of(op, "inside", 0) != 0;
  return slice(&windows->of[i], pl_adapting_parts(rules, picture, dim), inside);
}

bool pl_adapt_has_halo(const pl_ir_function *function, const pl_ir_op *op, const pl_layout_rules *rules) {
  pl_ir_windows windows;
  if (!windows_of(function, op, &windows)) return false;
  int32_t rank = function->values[op->inputs[0]].type.rank;
  bool any = false;
  for (int32_t i = 0; i < windows.n; i++) {
    bool taken = slice_of(function, op, &windows, i, rules).parts > 1;
    rank += taken;
    any = any || taken;
  }
  return any && rank < PL_IR_RANK_MAX;
}

static pl_ir_name rows_name(pl_ir_name dim) {
  pl_ir_name made = {{0}}; /* names are compared whole */
  snprintf(made.text, sizeof made.text, "%.*s_rows", (int)(sizeof made.text - sizeof "_rows"), dim.text);
  return made;
}

/* The picture with the rows that each part sees. */
static int32_t halo(pl_rewriting *own, const char *name, int32_t x, pl_ir_name dim, const sliced *is, bool lowest) {
  pl_ir_type type = own->to->values[x].type;
  const pl_ir_name both[] = {pl_adapting_parts_name(dim), rows_name(dim)};
  pl_adapting_split_type(&type, pl_ir_type_find(&type, dim), (pl_ir_dim){.name = both[0], .extent = is->parts},
                         (pl_ir_dim){.name = both[1], .extent = is->rows});
  const pl_ir_attribute attributes[] = {pl_ir_names("dim", 1, &dim), pl_ir_names("to", 2, both),
                                        pl_ir_integer("first", is->first), pl_ir_integer("step", is->step),
                                        pl_ir_integer("lowest", 1)};
  return pl_ir_op_typed(own->module, own->to, "halo", name, NULL, 1, &x, &type, lowest ? 5 : 4, attributes);
}

/* One number for each dimension of the window: "2x1". */
static pl_ir_attribute numbers(pl_rewriting *own, const char *attribute, int32_t n, const int64_t *of) {
  const char *text = "";
  for (int32_t i = 0; i < n && text != NULL; i++)
    text = pl_arena_printf(own->module->arena, "%s%s%" PRId64, text, i > 0 ? "x" : "", of[i]);
  return pl_ir_text(attribute, text != NULL ? text : "0");
}

/* The op's attributes, over rows of parts, which are padded already. */
static int32_t attributes_of(pl_rewriting *own, const pl_ir_op *op, const pl_ir_windows *windows, const sliced *is,
                             pl_ir_name *names, pl_ir_attribute *attributes) {
  int64_t before[PL_IR_WINDOWS_MAX], after[PL_IR_WINDOWS_MAX];
  int32_t n = 0;
  for (int32_t i = 0; i < windows->n; i++) {
    pl_ir_name dim = pl_ir_attribute_find(op, "window")->names[i];
    names[i] = is[i].parts > 1 ? rows_name(dim) : dim;
    before[i] = is[i].parts > 1 ? 0 : windows->of[i].before;
    after[i] = is[i].parts > 1 ? 0 : windows->of[i].after;
  }
  for (int32_t i = 0; i < op->n_attributes; i++) {
    const char *name = op->attributes[i].name.text;
    if (strcmp(name, "window") != 0 && strncmp(name, "padding", strlen("padding")) != 0)
      attributes[n++] = op->attributes[i];
  }
  attributes[n++] = pl_ir_names("window", windows->n, names);
  attributes[n++] = numbers(own, "padding", windows->n, before);
  attributes[n++] = numbers(own, "padding_after", windows->n, after);
  return n;
}

void pl_adapt_windows(pl_rewriting *own, const pl_ir_op *op, const pl_layout_rules *rules) {
  const pl_ir_attribute *window = pl_ir_attribute_find(op, "window");
  const char *name = own->from->values[op->first_output].name;
  pl_ir_windows windows;
  sliced is[PL_IR_WINDOWS_MAX];
  pl_ir_name names[PL_IR_WINDOWS_MAX];
  pl_ir_attribute attributes[ATTRIBUTES_MAX];
  int32_t inputs[] = {own->made[op->inputs[0]], op->n_inputs > 1 ? own->made[op->inputs[1]] : PL_IR_NONE};
  if (!windows_of(own->from, op, &windows)) return;
  for (int32_t i = 0; i < windows.n && inputs[0] != PL_IR_NONE; i++) {
    is[i] = slice_of(own->from, op, &windows, i, rules);
    if (is[i].parts > 1) inputs[0] = halo(own, name, inputs[0], window->names[i], &is[i], is_row(op, "max_pool"));
  }
  int32_t n = attributes_of(own, op, &windows, is, names, attributes);
  if (inputs[0] == PL_IR_NONE || own->module->arena->failed) return;
  int32_t y =
      pl_ir_op_infer(own->module, own->to, pl_ir_row_at(op->row)->name, name, op->n_inputs, inputs, n, attributes);
  for (int32_t i = 0; i < windows.n; i++)
    if (is[i].parts > 1)
      y = pl_adapting_join(own, name, y, pl_adapting_parts_name(window->names[i]), names[i], window->names[i]);
  own->made[op->first_output] = y;
}
