/* Ops of the flat function (workloads/onnx/flat.h): inputs, weights and tables where they are first read, names that
 * operands agree on. */
#include <ctype.h>
#include <string.h>

#include "workloads/onnx/flat.h"

const pl_ir_type *pl_flat_type(const pl_flat *own, int32_t made) {
  return &own->function->values[made].type;
}

pl_ir_dim pl_flat_dim(const pl_flat *own, int32_t leaf) {
  return (pl_ir_dim){pl_axis_name(&own->axes, leaf), own->axes.all[pl_axis_find(&own->axes, leaf)].extent};
}

bool pl_flat_has(const pl_flat *own, int32_t made, int32_t leaf) {
  return pl_ir_type_find(pl_flat_type(own, made), pl_axis_name(&own->axes, leaf)) >= 0;
}

int32_t pl_flat_names(const pl_flat *own, int32_t made, const pl_axis_list *leaves, pl_ir_name *names) {
  int32_t n = 0;
  for (int32_t i = 0; i < leaves->n; i++)
    if (pl_flat_has(own, made, leaves->leaf[i])) names[n++] = pl_axis_name(&own->axes, leaves->leaf[i]);
  return n;
}

/* Letters, digits and _ of a text, others as _; behind its last '/'. */
static const char *as_name(pl_arena *arena, const char *text) {
  const char *slash = strrchr(text, '/');
  char *made = pl_arena_strdup(arena, slash != NULL && slash[1] != 0 ? slash + 1 : text);
  if (made == NULL) return "x";
  size_t n = strnlen(made, 60);
  made[n] = 0;
  for (char *at = made; *at != 0; at++)
    if (!isalnum((unsigned char)*at) && *at != '_' && *at != '.') *at = '_';
  return made[0] == 0 || isdigit((unsigned char)made[0]) || made[0] == '.' ? pl_arena_printf(arena, "x%s", made) : made;
}

/* "Add_12" is called add: numbers differ from layer to layer. */
const char *pl_flat_name(const pl_flat *own, const pl_step *step) {
  char *made = pl_arena_strdup(own->module->arena, step->match != NULL ? step->row->op : step->node->op);
  for (char *at = made; at != NULL && *at != 0; at++)
    *at = (char)tolower((unsigned char)*at);
  return made != NULL ? made : "x";
}

void pl_flat_set(pl_flat *own, const pl_step *step, int32_t made) {
  own->made[step->out] = made;
}

/* ---- ops ---- */

/* Says of operands that a row does not take which node has them. */
static bool fits(pl_flat *own, int32_t row, int32_t n_inputs, const int32_t *inputs, int32_t n_attributes,
                 const pl_ir_attribute *attributes, pl_ir_type *outputs) {
  const pl_ir_row *of = pl_ir_row_at(row);
  pl_ir_type in[PL_IR_OPERANDS_MAX];
  pl_error why = PL_ERROR_INIT;
  for (int32_t i = 0; i < n_inputs; i++)
    in[i] = own->function->values[inputs[i]].type;
  const pl_ir_op op = {.row = (uint16_t)row,
                       .inputs = inputs,
                       .n_inputs = (uint16_t)n_inputs,
                       .n_outputs = (uint16_t)of->n_outputs,
                       .n_attributes = (uint16_t)n_attributes,
                       .attributes = attributes};
  if (of->infer == NULL || of->infer(&op, in, outputs, &why) == PL_OK) return true;
  (void)pl_flat_fail(own, own->writing, "%s", why.message);
  return false;
}

int32_t pl_flat_infer(pl_flat *own, const char *row, const char *name, int32_t n_inputs, const int32_t *inputs,
                      int32_t n_attributes, const pl_ir_attribute *attributes) {
  pl_ir_type outputs[PL_IR_OPERANDS_MAX];
  for (int32_t i = 0; i < n_inputs; i++)
    if (inputs[i] == PL_IR_NONE) return PL_IR_NONE;
  if (!fits(own, pl_ir_row_of(row), n_inputs, inputs, n_attributes, attributes, outputs)) return PL_IR_NONE;
  return pl_ir_op_infer(own->module, own->function, row, name, n_inputs, inputs, n_attributes, attributes);
}

int32_t pl_flat_typed(pl_flat *own, const char *row, const char *name, const char *path, int32_t n_inputs,
                      const int32_t *inputs, const pl_ir_type *type, int32_t n_attributes,
                      const pl_ir_attribute *attributes) {
  pl_ir_type output = *type;
  for (int32_t i = 0; i < n_inputs; i++)
    if (inputs[i] == PL_IR_NONE) return PL_IR_NONE;
  if (!fits(own, pl_ir_row_of(row), n_inputs, inputs, n_attributes, attributes, &output)) return PL_IR_NONE;
  return pl_ir_op_typed(own->module, own->function, row, name, path, n_inputs, inputs, type, n_attributes, attributes);
}

int32_t pl_flat_op1(pl_flat *own, const char *row, const char *name, int32_t a, int32_t n,
                    const pl_ir_attribute *attributes) {
  return a == PL_IR_NONE ? a : pl_flat_infer(own, row, name, 1, &a, n, attributes);
}

int32_t pl_flat_op2(pl_flat *own, const char *row, const char *name, int32_t a, int32_t b, int32_t n,
                    const pl_ir_attribute *attributes) {
  const int32_t inputs[] = {a, b};
  if (a == PL_IR_NONE || b == PL_IR_NONE) return PL_IR_NONE;
  return pl_flat_infer(own, row, name, 2, inputs, n, attributes);
}

int32_t pl_flat_over(pl_flat *own, const char *row, const char *name, int32_t a, const pl_axis_list *over) {
  pl_ir_name names[PL_AXIS_LEAVES_MAX] = {{{0}}};
  int32_t n = a == PL_IR_NONE ? 0 : pl_flat_names(own, a, over, names);
  const pl_ir_attribute attribute = pl_ir_names("over", n, names);
  return n == 0 ? a : pl_flat_op1(own, row, name, a, 1, &attribute);
}

int32_t pl_flat_scale(pl_flat *own, int32_t a, double by) {
  const pl_ir_attribute attribute = pl_ir_real("by", by);
  return by == 1 ? a : pl_flat_op1(own, "scale", "scaled", a, 1, &attribute);
}

int32_t pl_flat_rename(pl_flat *own, int32_t made, pl_ir_name from, pl_ir_name to) {
  const pl_ir_attribute attributes[] = {pl_ir_names("from", 1, &from), pl_ir_names("to", 1, &to)};
  if (made == PL_IR_NONE) return made;
  return pl_flat_infer(own, "rename", own->function->values[made].name, 1, &made, 2, attributes);
}

int32_t pl_flat_spread(pl_flat *own, int32_t a, int32_t b) {
  if (a == PL_IR_NONE || b == PL_IR_NONE) return PL_IR_NONE;
  pl_ir_type type = *pl_flat_type(own, a);
  const pl_ir_type *with = pl_flat_type(own, b);
  int32_t before = type.rank;
  for (int32_t i = 0; i < with->rank; i++)
    if (pl_ir_type_find(&type, with->dims[i].name) < 0 && type.rank < PL_IR_RANK_MAX)
      type.dims[type.rank++] = with->dims[i];
  if (type.rank == before) return a;
  return pl_flat_typed(own, "spread", "spread", NULL, 1, &a, &type, 0, NULL);
}

int32_t pl_flat_pair(pl_flat *own, const char *row, const char *name, int32_t a, int32_t b) {
  bool swaps = strcmp(row, "add") == 0 || strcmp(row, "multiply") == 0;
  if (a == PL_IR_NONE || b == PL_IR_NONE) return PL_IR_NONE;
  if (swaps && pl_flat_type(own, b)->rank > pl_flat_type(own, a)->rank) {
    int32_t other = a;
    a = b;
    b = other;
  }
  return pl_flat_op2(own, row, name, pl_flat_spread(own, a, b), b, 0, NULL);
}

int32_t pl_flat_constant(pl_flat *own, double number, int32_t like) {
  const pl_ir_attribute value = pl_ir_real("value", number);
  const pl_ir_type type = pl_ir_type_of((pl_ir_element)pl_flat_type(own, like)->element, 0, NULL);
  return pl_flat_typed(own, "constant", "number", NULL, 0, NULL, &type, 1, &value);
}

int32_t pl_flat_add_number(pl_flat *own, int32_t a, double number) {
  if (a == PL_IR_NONE || number == 0) return a;
  return pl_flat_op2(own, "add", "shifted", a, pl_flat_constant(own, number, a), 0, NULL);
}

/* ---- what comes from outside ---- */

static pl_code type_of(pl_flat *own, int32_t value, pl_ir_element element, pl_ir_type *type) {
  pl_axis_list leaves = {0};
  *type = pl_ir_type_of(element, 0, NULL);
  if (!pl_flat_leaves(own, value, 0, pl_flat_shape(own, value)->rank, &leaves) || leaves.n > PL_IR_RANK_MAX)
    return pl_fail(own->error, PL_UNSUPPORTED, "%s: '%s' is taken apart into more than %d dimensions", own->graph->path,
                   own->graph->values[value].name, PL_IR_RANK_MAX);
  for (int32_t i = 0; i < leaves.n; i++) {
    type->dims[type->rank++] = pl_flat_dim(own, leaves.leaf[i]);
    for (int32_t k = 0; k < i; k++)
      if (pl_ir_name_equal(type->dims[i].name, type->dims[k].name))
        return pl_fail(own->error, PL_UNSUPPORTED, "%s: two dimensions of '%s' are the same one of the graph",
                       own->graph->path, own->graph->values[value].name);
  }
  return PL_OK;
}

static pl_code write_read(pl_flat *own, int32_t value, const char *row, const char *path, pl_ir_element element,
                          int32_t *made) {
  pl_ir_type type;
  PL_TRY(type_of(own, value, element, &type));
  const pl_ir_attribute below = pl_ir_integer("below", own->below[value]);
  const char *name = as_name(own->module->arena, own->graph->values[value].name);
  *made = pl_flat_typed(own, row, name, path, 0, NULL, &type, own->below[value] > 0, &below);
  own->made[value] = *made;
  return *made == PL_IR_NONE ? pl_fail_memory(own->error, "the program of an ONNX graph") : PL_OK;
}

/* Numbers that are the same are one table, whichever values have them. */
static pl_code write_numbers(pl_flat *own, int32_t value, const char *path, pl_ir_element element, int32_t *made) {
  const double *numbers = pl_flat_shape(own, value)->numbers;
  int32_t at = 0;
  *made = own->made[value];
  if (*made != PL_IR_NONE) return PL_OK;
  while (at < own->n_tables && own->tables[at] != numbers)
    at++;
  if (at == PL_FLAT_TABLES_MAX)
    return pl_fail(own->error, PL_UNSUPPORTED, "%s: more than %d tables of constants", own->graph->path,
                   PL_FLAT_TABLES_MAX);
  if (at == own->n_tables) own->tables[own->n_tables++] = numbers;
  return write_read(own, value, "input", pl_arena_printf(own->module->arena, "%s.%d", path, at), element, made);
}

pl_code pl_flat_table(pl_flat *own, int32_t value, int32_t *made) {
  return write_numbers(own, value, "table", own->element, made);
}

pl_code pl_flat_list(pl_flat *own, int32_t value, int32_t *made) {
  return write_numbers(own, value, "list", PL_IR_I32, made);
}

/* The dimension of a weight that counts tokens' places, as many as a sample has; -1: none. */
static int32_t place_dim(const pl_flat *own, int32_t value, const pl_ir_type *type) {
  pl_axis_list leaves = {0};
  (void)pl_flat_leaves((pl_flat *)own, value, 0, pl_flat_shape(own, value)->rank, &leaves);
  for (int32_t i = 0; i < leaves.n; i++)
    if (pl_axis_is(&own->axes, leaves.leaf[i], PL_AXIS_TOKENS))
      return pl_ir_type_find(type, pl_axis_name(&own->axes, leaves.leaf[i]));
  return -1;
}

/* Rows of a table of positions are looked up by places, which the data says, though all of them are there in their
 * order: a sequence may stand in another one. */
pl_code pl_flat_weight(pl_flat *own, int32_t value, int32_t *made) {
  const char *path = own->graph->values[value].name, *name = as_name(own->module->arena, path);
  pl_ir_type type;
  PL_TRY(type_of(own, value, own->element, &type));
  int32_t dim = place_dim(own, value, &type);
  if (dim < 0) return write_read(own, value, "param", path, own->element, made);
  const pl_ir_name over = pl_ir_name_of("places");
  const pl_ir_type places = pl_ir_type_of(PL_IR_I32, 1, &type.dims[dim]);
  const pl_ir_attribute below = pl_ir_integer("below", type.dims[dim].extent), along = pl_ir_names("over", 1, &over);
  type.dims[dim].name = over;
  int32_t table = pl_flat_typed(own, "param", name, path, 0, NULL, &type, 0, NULL);
  int32_t ids = pl_flat_typed(own, "input", "positions", "positions", 0, NULL, &places, 1, &below);
  *made = pl_flat_op2(own, "embedding", "rows", ids, table, 1, &along);
  own->made[value] = *made;
  return *made == PL_IR_NONE ? pl_fail_memory(own->error, "the program of an ONNX graph") : PL_OK;
}

pl_code pl_flat_value(pl_flat *own, const pl_step *step, int32_t value, int32_t *made) {
  *made = own->made[value];
  if (*made != PL_IR_NONE) return PL_OK;
  const pl_onnx_abstract *shape = pl_flat_shape(own, value);
  if (pl_flat_is_constant(own, value)) {
    double number;
    if (!pl_flat_scalar(own, value, &number)) return pl_flat_table(own, value, made);
    const pl_ir_attribute attribute = pl_ir_real("value", number);
    const pl_ir_type type = pl_ir_type_of(own->element, 0, NULL);
    *made = pl_flat_typed(own, "constant", "number", NULL, 0, NULL, &type, 1, &attribute);
    return *made == PL_IR_NONE ? pl_fail_memory(own->error, "the program of an ONNX graph") : PL_OK;
  }
  const char *path = as_name(own->module->arena, own->graph->values[value].name);
  if (own->graph->values[value].initializer != NULL) return pl_flat_weight(own, value, made);
  if (own->graph->values[value].node == PL_ONNX_NONE)
    return write_read(own, value, "input", path, pl_onnx_type_is_real(shape->type) ? own->element : PL_IR_I32, made);
  return pl_flat_fail(own, step, "reads '%s', which has no value", own->graph->values[value].name);
}

/* ---- operands that agree ---- */

pl_code pl_flat_join(pl_flat *own, const pl_step *step, const pl_axis_list *leaves, pl_ir_name name, int32_t *made) {
  pl_ir_name names[PL_AXIS_LEAVES_MAX];
  int32_t n = *made != PL_IR_NONE ? pl_flat_names(own, *made, leaves, names) : 0;
  if (n == 0) return PL_OK;
  if (n != leaves->n) return pl_flat_fail(own, step, "a broadcast dimension is taken apart");
  const pl_ir_attribute attributes[] = {pl_ir_names("from", n, names), pl_ir_names("to", 1, &name)};
  *made = pl_flat_op1(own, "join", "joined", *made, 2, attributes);
  return PL_OK;
}

pl_code pl_flat_split(pl_flat *own, const pl_step *step, pl_ir_name name, const pl_axis_list *leaves, int32_t *made) {
  pl_ir_name into[PL_AXIS_LEAVES_MAX];
  if (*made == PL_IR_NONE) return PL_OK;
  pl_ir_type type = *pl_flat_type(own, *made), whole = type;
  type.rank = 0;
  for (int32_t i = 0; i < whole.rank; i++) {
    if (!pl_ir_name_equal(whole.dims[i].name, name)) {
      type.dims[type.rank++] = whole.dims[i];
      continue;
    }
    for (int32_t k = 0; k < leaves->n; k++) {
      if (type.rank + whole.rank - i - 1 >= PL_IR_RANK_MAX)
        return pl_flat_fail(own, step, "more than %d dimensions", PL_IR_RANK_MAX);
      type.dims[type.rank++] = pl_flat_dim(own, leaves->leaf[k]);
      into[k] = pl_axis_name(&own->axes, leaves->leaf[k]);
    }
  }
  const pl_ir_attribute attributes[] = {pl_ir_names("from", 1, &name), pl_ir_names("to", leaves->n, into)};
  *made = pl_flat_typed(own, "split", "split", NULL, 1, made, &type, 2, attributes);
  return PL_OK;
}

/* Leaves that do not nest: joined, and taken apart anew. */
static pl_code regroup(pl_flat *own, const pl_step *step, const pl_axis_list *from, const pl_axis_list *to,
                       int32_t *made) {
  pl_ir_name names[PL_AXIS_LEAVES_MAX], joined = pl_ir_name_of("joined");
  int32_t n = pl_flat_names(own, *made, from, names);
  if (n == 0) return PL_OK;
  if (n != from->n) return pl_flat_fail(own, step, "a broadcast dimension is taken apart");
  /* Under its last name at once, if nothing else is called that. */
  pl_ir_name last = pl_axis_name(&own->axes, to->leaf[0]);
  bool is_free = pl_ir_type_find(pl_flat_type(own, *made), last) < 0;
  for (int32_t i = 0; i < n; i++)
    is_free = is_free || pl_ir_name_equal(names[i], last);
  if (to->n == 1 && is_free) joined = last;
  if (n == 1) {
    joined = names[0];
  } else {
    PL_TRY(pl_flat_join(own, step, from, joined, made));
  }
  if (*made == PL_IR_NONE) return PL_OK;
  if (to->n == 1) {
    if (!pl_ir_name_equal(joined, last)) *made = pl_flat_rename(own, *made, joined, last);
    return PL_OK;
  }
  return pl_flat_split(own, step, joined, to, made);
}

static void drop_ones(const pl_flat *own, pl_axis_list *list) {
  int32_t n = 0;
  for (int32_t i = 0; i < list->n; i++)
    if (own->axes.all[list->leaf[i]].extent > 1) list->leaf[n++] = list->leaf[i];
  list->n = n;
}

pl_code pl_flat_conform(pl_flat *own, const pl_step *step, int32_t from, int32_t to, int32_t *made) {
  pl_axis_list a = {0}, b = {0};
  if (from == PL_AXIS_NONE || to == PL_AXIS_NONE || *made == PL_IR_NONE) return PL_OK;
  if (!pl_axis_leaves(&own->axes, from, &a) || !pl_axis_leaves(&own->axes, to, &b))
    return pl_flat_fail(own, step, "too many dimensions");
  if (a.n != 1 || b.n != 1) drop_ones(own, &a), drop_ones(own, &b);
  bool alike = a.n == b.n;
  for (int32_t i = 0; i < a.n && alike; i++)
    alike = own->axes.all[a.leaf[i]].extent == own->axes.all[b.leaf[i]].extent;
  if (!alike) return regroup(own, step, &a, &b, made);
  for (int32_t i = 0; i < a.n; i++) {
    pl_ir_name is = pl_axis_name(&own->axes, a.leaf[i]), wanted = pl_axis_name(&own->axes, b.leaf[i]);
    if (pl_ir_name_equal(is, wanted) || !pl_flat_has(own, *made, a.leaf[i])) continue;
    if (pl_ir_type_find(pl_flat_type(own, *made), wanted) >= 0)
      return pl_flat_fail(own, step, "two dimensions of an operand would both be called %s", wanted.text);
    *made = pl_flat_rename(own, *made, is, wanted);
  }
  return PL_OK;
}

pl_code pl_flat_conformed(pl_flat *own, const pl_step *step, int32_t value, int32_t *made) {
  PL_TRY(pl_flat_value(own, step, value, made));
  const int32_t *from = pl_flat_axes(own, value), *to = pl_flat_axes(own, step->out);
  int32_t rank = pl_flat_shape(own, value)->rank, off = pl_flat_shape(own, step->out)->rank - rank;
  for (int32_t i = 0; i < rank; i++)
    if (i + off >= 0) PL_TRY(pl_flat_conform(own, step, from[i], to[i + off], made));
  return PL_OK;
}
