/* See workloads/language/ir_parse.h: types, values, attributes and ops. */
#include <stdio.h>
#include <string.h>

#include "workloads/language/ir_check_op.h"
#include "workloads/language/ir_parse.h"

enum { MOST_OPERANDS = UINT16_MAX, MOST_NAMES = UINT8_MAX };

/* ---- types ---- */

static pl_code read_element(pl_ir_reader *reader, pl_ir_type *type) {
  const char *words[PL_IR_ELEMENT_COUNT + 1] = {NULL};
  for (int i = 0; i < PL_IR_ELEMENT_COUNT; i++)
    words[i] = pl_ir_element_name((pl_ir_element)i);
  for (int i = 0; i < PL_IR_ELEMENT_COUNT; i++) {
    if (!pl_ir_read_sees_word(reader, words[i])) continue;
    type->element = (uint8_t)i;
    return pl_ir_read_next(reader);
  }
  if (reader->token.kind != PL_IR_TOKEN_NAME) return pl_ir_read_expected(reader, "a type (as in bf16[b=8, h=64])");
  char hint[PL_IR_HINT_BYTES];
  const char *word = pl_ir_read_text(reader, &reader->token);
  if (word == NULL) return reader->error->code;
  return pl_ir_read_fail(reader, reader->token.place, "'%.60s' is not an element type%s", word,
                         pl_ir_hint(word, words, hint));
}

/* An axis of the mesh which this type has nothing along yet. */
static pl_code read_axis(pl_ir_reader *reader, pl_ir_type *type, int8_t on, int32_t *axis) {
  pl_ir_place place = reader->token.place;
  const pl_ir_mesh *mesh = &reader->module->mesh;
  pl_ir_name name;
  PL_TRY(pl_ir_read_name(reader, "an axis of the mesh", &name));
  *axis = pl_ir_mesh_find(mesh, name);
  if (*axis < 0) {
    const char *words[PL_IR_AXES_MAX + 1] = {NULL};
    char hint[PL_IR_HINT_BYTES];
    for (int32_t i = 0; i < mesh->n_axes; i++)
      words[i] = mesh->axes[i].name.text;
    return pl_ir_read_fail(reader, place, "'%s' is not an axis of the mesh%s", name.text,
                           pl_ir_hint(name.text, words, hint));
  }
  if (type->on[*axis] != PL_IR_SAME)
    return pl_ir_read_fail(reader, place, "axis %s stands in this type twice: a value lies one way along an axis",
                           name.text);
  type->on[*axis] = on;
  return PL_OK;
}

static pl_code read_dim(pl_ir_reader *reader, pl_ir_type *type) {
  pl_ir_place place = reader->token.place;
  pl_ir_dim dim = {.extent = 0};
  PL_TRY(pl_ir_read_name(reader, "a dimension (as in h=64)", &dim.name));
  if (type->rank == PL_IR_RANK_MAX)
    return pl_ir_read_fail(reader, place, "a value has at most %d dimensions", PL_IR_RANK_MAX);
  if (pl_ir_type_find(type, dim.name) >= 0)
    return pl_ir_read_fail(reader, place, "dimension %s stands in this type twice", dim.name.text);
  PL_TRY(pl_ir_read_mark(reader, '=', "'=' and the dimension's extent"));
  PL_TRY(pl_ir_read_integer(reader, "an extent", 1, PL_IR_EXTENT_MAX, &dim.extent));
  type->dims[type->rank++] = dim;
  for (int32_t axis, last = -1; pl_ir_read_sees(reader, '/'); last = axis) {
    PL_TRY(pl_ir_read_next(reader));
    place = reader->token.place;
    PL_TRY(read_axis(reader, type, (int8_t)(type->rank - 1), &axis));
    if (axis < last)
      return pl_ir_read_fail(reader, place, "axes stand in the order of the mesh, outermost first: /%s before /%s",
                             reader->module->mesh.axes[axis].name.text, reader->module->mesh.axes[last].name.text);
  }
  return PL_OK;
}

static pl_code read_held(pl_ir_reader *reader, pl_ir_type *type, int8_t what) {
  PL_TRY(pl_ir_read_next(reader));
  PL_TRY(pl_ir_read_mark(reader, '(', "'(' and axes of the mesh"));
  for (bool more = true; more;) {
    int32_t axis;
    PL_TRY(read_axis(reader, type, what, &axis));
    PL_TRY(pl_ir_read_comma(reader, &more));
  }
  return pl_ir_read_mark(reader, ')', "',' and an axis, or ')'");
}

pl_code pl_ir_read_type(pl_ir_reader *reader, pl_ir_type *type) {
  *type = pl_ir_type_of(PL_IR_F32, 0, NULL);
  PL_TRY(read_element(reader, type));
  PL_TRY(pl_ir_read_mark(reader, '[', "'[' and the dimensions ([] of a single number)"));
  for (bool more = !pl_ir_read_sees(reader, ']'); more;) {
    PL_TRY(read_dim(reader, type));
    PL_TRY(pl_ir_read_comma(reader, &more));
  }
  PL_TRY(pl_ir_read_mark(reader, ']', "'/' and an axis, ',' and a dimension, or ']'"));
  for (;;) {
    bool sum = pl_ir_read_sees_word(reader, "partial");
    if (!sum && !pl_ir_read_sees_word(reader, "maximum")) return PL_OK;
    PL_TRY(read_held(reader, type, sum ? PL_IR_PARTIAL : PL_IR_MAXIMUM));
  }
}

/* ---- names of values and functions ---- */

enum { WORDS_IN_HINT = 256 };

pl_code pl_ir_read_value(pl_ir_reader *reader, const pl_ir_function *function, int32_t *value) {
  if (reader->token.kind != PL_IR_TOKEN_VALUE) return pl_ir_read_expected(reader, "a value (%name)");
  const char *name = pl_ir_read_text(reader, &reader->token);
  if (name == NULL) return reader->error->code;
  *value = pl_ir_value_find(function, name);
  if (*value != PL_IR_NONE) return pl_ir_read_next(reader);
  const char *words[WORDS_IN_HINT + 1] = {NULL};
  char hint[PL_IR_HINT_BYTES];
  for (int32_t i = 0; i < WORDS_IN_HINT && i < function->n_values; i++)
    words[i] = function->values[function->n_values - 1 - i].name;
  return pl_ir_read_fail(reader, reader->token.place, "%%%.60s is used before it is made in @%.60s%s", name,
                         function->name, pl_ir_hint(name, words, hint));
}

pl_code pl_ir_read_callee(pl_ir_reader *reader, int32_t *callee) {
  if (reader->token.kind != PL_IR_TOKEN_FUNCTION) return pl_ir_read_expected(reader, "a function (@name)");
  const char *name = pl_ir_read_text(reader, &reader->token);
  if (name == NULL) return reader->error->code;
  const pl_ir_module *module = reader->module;
  *callee = pl_ir_function_find(module, name);
  if (*callee != PL_IR_NONE) return pl_ir_read_next(reader);
  const char *words[WORDS_IN_HINT + 1] = {NULL};
  char hint[PL_IR_HINT_BYTES];
  for (int32_t i = 0; i < WORDS_IN_HINT && i < module->n_functions; i++)
    words[i] = module->functions[module->n_functions - 1 - i]->name;
  return pl_ir_read_fail(reader, reader->token.place, "no function @%.60s stands above%s", name,
                         pl_ir_hint(name, words, hint));
}

/* ---- attributes ---- */

static pl_code add_name(pl_ir_reader *reader, pl_ir_attribute *attribute) {
  pl_ir_place place = reader->token.place;
  pl_ir_name name, *room = (pl_ir_name *)pl_ir_list_add(reader, &reader->names, sizeof(pl_ir_name));
  if (room == NULL) return pl_fail_memory(reader->error, reader->lexer.name);
  if (attribute->n_names == MOST_NAMES)
    return pl_ir_read_fail(reader, place, "an attribute has at most %d names", MOST_NAMES);
  PL_TRY(pl_ir_read_name(reader, "a name", &name));
  *room = name;
  attribute->n_names++;
  return PL_OK;
}

static pl_code read_attribute_names(pl_ir_reader *reader, pl_ir_attribute *attribute) {
  attribute->kind = PL_IR_NAMES;
  if (!pl_ir_read_sees(reader, '(')) return add_name(reader, attribute);
  PL_TRY(pl_ir_read_mark(reader, '(', "'('"));
  for (bool more = !pl_ir_read_sees(reader, ')'); more;) {
    PL_TRY(add_name(reader, attribute));
    PL_TRY(pl_ir_read_comma(reader, &more));
  }
  return pl_ir_read_mark(reader, ')', "',' and a name, or ')'");
}

static pl_code read_attribute_value(pl_ir_reader *reader, pl_ir_attribute *attribute) {
  const pl_ir_token *token = &reader->token;
  if (token->kind == PL_IR_TOKEN_NAME || pl_ir_read_sees(reader, '(')) return read_attribute_names(reader, attribute);
  if (token->kind == PL_IR_TOKEN_INTEGER) {
    attribute->kind = PL_IR_INTEGER;
    attribute->integer = token->integer;
  } else if (token->kind == PL_IR_TOKEN_REAL) {
    attribute->kind = PL_IR_REAL;
    attribute->real = token->real;
  } else if (token->kind == PL_IR_TOKEN_STRING) {
    attribute->kind = PL_IR_TEXT;
    attribute->text = pl_ir_lexer_string(&reader->lexer, token, reader->arena, reader->error);
    if (attribute->text == NULL) return reader->error->code;
  } else {
    return pl_ir_read_expected(reader, "the attribute's value (a number, a name, (names) or \"text\")");
  }
  return pl_ir_read_next(reader);
}

static pl_code read_attribute(pl_ir_reader *reader) {
  pl_ir_place place = reader->token.place;
  pl_ir_attribute attribute = {.kind = PL_IR_INTEGER};
  PL_TRY(pl_ir_read_name(reader, "an attribute (name=value)", &attribute.name));
  const pl_ir_attribute *before = (const pl_ir_attribute *)reader->attributes.items;
  for (int32_t i = 0; i < reader->attributes.n; i++)
    if (pl_ir_name_equal(before[i].name, attribute.name))
      return pl_ir_read_fail(reader, place, "attribute %s is given twice", attribute.name.text);
  if (reader->attributes.n == PL_IR_ATTRIBUTES_MAX)
    return pl_ir_read_fail(reader, place, "an op has at most %d attributes", PL_IR_ATTRIBUTES_MAX);
  PL_TRY(pl_ir_read_mark(reader, '=', "'=' and the attribute's value"));
  PL_TRY(read_attribute_value(reader, &attribute));
  pl_ir_attribute *room = (pl_ir_attribute *)pl_ir_list_add(reader, &reader->attributes, sizeof attribute);
  if (room == NULL) return pl_fail_memory(reader->error, reader->lexer.name);
  *room = attribute;
  return PL_OK;
}

/* Names are known by number until the list of all of them stands still. */
static void place_names(pl_ir_reader *reader) {
  pl_ir_attribute *attributes = (pl_ir_attribute *)reader->attributes.items;
  const pl_ir_name *names = (const pl_ir_name *)reader->names.items;
  for (int32_t i = 0, used = 0; i < reader->attributes.n; used += attributes[i++].n_names)
    if (attributes[i].kind == PL_IR_NAMES && attributes[i].n_names > 0) attributes[i].names = names + used;
}

static pl_code read_attributes(pl_ir_reader *reader) {
  reader->attributes.n = reader->names.n = 0;
  if (!pl_ir_read_sees(reader, '{')) return PL_OK;
  reader->nesting++;
  PL_TRY(pl_ir_read_next(reader));
  for (bool more = !pl_ir_read_sees(reader, '}'); more;) {
    PL_TRY(read_attribute(reader));
    PL_TRY(pl_ir_read_comma(reader, &more));
  }
  if (!pl_ir_read_sees(reader, '}')) return pl_ir_read_expected(reader, "',' and an attribute, or '}'");
  reader->nesting--;
  place_names(reader);
  return pl_ir_read_next(reader);
}

/* ---- ops ---- */

static pl_code read_output(pl_ir_reader *reader, const pl_ir_function *function) {
  const pl_ir_token token = reader->token;
  if (token.kind != PL_IR_TOKEN_VALUE) return pl_ir_read_expected(reader, "a value (%name)");
  const char *name = pl_ir_read_text(reader, &token);
  if (name == NULL) return reader->error->code;
  bool taken = pl_ir_value_find(function, name) != PL_IR_NONE;
  const char **names = (const char **)reader->outputs.items;
  for (int32_t i = 0; i < reader->outputs.n; i++)
    taken = taken || strcmp(names[i], name) == 0;
  if (taken)
    return pl_ir_read_fail(reader, token.place, "%%%.60s is made twice in @%.60s: a value is assigned once", name,
                           function->name);
  if (reader->outputs.n == PL_IR_OPERANDS_MAX)
    return pl_ir_read_fail(reader, token.place, "an op gives at most %d values", PL_IR_OPERANDS_MAX);
  const char **room = (const char **)pl_ir_list_add(reader, &reader->outputs, sizeof name);
  if (room == NULL) return pl_fail_memory(reader->error, reader->lexer.name);
  *room = pl_arena_strdup(reader->arena, name);
  if (*room == NULL) return pl_fail_memory(reader->error, reader->lexer.name);
  return pl_ir_read_next(reader);
}

static pl_code read_outputs(pl_ir_reader *reader, const pl_ir_function *function) {
  reader->outputs.n = 0;
  if (reader->token.kind != PL_IR_TOKEN_VALUE) return PL_OK;
  for (bool more = true; more;) {
    PL_TRY(read_output(reader, function));
    PL_TRY(pl_ir_read_comma(reader, &more));
  }
  return pl_ir_read_mark(reader, '=', "',' and a value, or '=' and an op");
}

static pl_code read_row(pl_ir_reader *reader, pl_ir_making *making) {
  if (reader->token.kind != PL_IR_TOKEN_NAME)
    return pl_ir_read_expected(reader,
                               reader->outputs.n > 0 ? "an op (as in %y = add(%a, %b))" : "an op, 'return' or '}'");
  const char *name = pl_ir_read_text(reader, &reader->token);
  if (name == NULL) return reader->error->code;
  making->place = reader->token.place;
  making->row = pl_ir_row_find(name);
  if (making->row >= 0) return pl_ir_read_next(reader);
  const char *words[WORDS_IN_HINT + 1] = {NULL};
  char hint[PL_IR_HINT_BYTES];
  for (int32_t i = 0; i < WORDS_IN_HINT && i < pl_ir_n_rows(); i++)
    words[i] = pl_ir_row_at(i)->name;
  return pl_ir_read_fail(reader, reader->token.place, "'%.60s' is not an op%s", name, pl_ir_hint(name, words, hint));
}

static pl_code read_callee_and_path(pl_ir_reader *reader, pl_ir_making *making) {
  making->callee = PL_IR_NONE;
  if (reader->token.kind == PL_IR_TOKEN_FUNCTION) PL_TRY(pl_ir_read_callee(reader, &making->callee));
  if (making->callee != PL_IR_NONE) making->path = "";
  if (reader->token.kind != PL_IR_TOKEN_STRING) return PL_OK;
  making->path = pl_ir_lexer_string(&reader->lexer, &reader->token, reader->arena, reader->error);
  return making->path != NULL ? pl_ir_read_next(reader) : reader->error->code;
}

static pl_code read_inputs(pl_ir_reader *reader, const pl_ir_function *function) {
  reader->inputs.n = 0;
  PL_TRY(pl_ir_read_mark(reader, '(', "'(' and the op's operands"));
  for (bool more = !pl_ir_read_sees(reader, ')'); more;) {
    pl_ir_place place = reader->token.place;
    int32_t value = PL_IR_NONE, *room = (int32_t *)pl_ir_list_add(reader, &reader->inputs, sizeof value);
    if (room == NULL) return pl_fail_memory(reader->error, reader->lexer.name);
    if (reader->inputs.n > PL_IR_OPERANDS_MAX)
      return pl_ir_read_fail(reader, place, "an op takes at most %d operands", PL_IR_OPERANDS_MAX);
    PL_TRY(pl_ir_read_value(reader, function, &value));
    *room = value;
    PL_TRY(pl_ir_read_comma(reader, &more));
  }
  return pl_ir_read_mark(reader, ')', "',' and a value, or ')'");
}

static pl_code read_written_types(pl_ir_reader *reader) {
  reader->types.n = 0;
  if (!pl_ir_read_sees(reader, ':')) return PL_OK;
  PL_TRY(pl_ir_read_next(reader));
  PL_TRY(pl_ir_read_lines(reader));
  for (bool more = true; more;) {
    pl_ir_place place = reader->token.place;
    pl_ir_type type;
    PL_TRY(pl_ir_read_type(reader, &type));
    if (reader->types.n == reader->outputs.n)
      return pl_ir_read_fail(reader, place, "one type too many: this op gives %d value%s", reader->outputs.n,
                             reader->outputs.n == 1 ? "" : "s");
    pl_ir_type *room = (pl_ir_type *)pl_ir_list_add(reader, &reader->types, sizeof type);
    if (room == NULL) return pl_fail_memory(reader->error, reader->lexer.name);
    *room = type;
    PL_TRY(pl_ir_read_comma(reader, &more));
  }
  if (reader->types.n < reader->outputs.n)
    return pl_ir_read_fail(reader, reader->token.place, "%d type%s for %d values", reader->types.n,
                           reader->types.n == 1 ? "" : "s", reader->outputs.n);
  return PL_OK;
}

/* What is not written follows from the operands. */
static pl_code infer_types(pl_ir_reader *reader, const pl_ir_function *function, const pl_ir_making *making) {
  if (reader->types.n > 0 || reader->outputs.n == 0) return PL_OK;
  for (int32_t i = 0; i < reader->outputs.n; i++)
    if (pl_ir_list_add(reader, &reader->types, sizeof(pl_ir_type)) == NULL)
      return pl_fail_memory(reader->error, reader->lexer.name);
  pl_error inner = PL_ERROR_INIT;
  if (pl_ir_op_types(reader->module, function, making, (pl_ir_type *)reader->types.items, &inner) == PL_OK)
    return PL_OK;
  return pl_ir_read_fail(reader, making->place, "%s", inner.message);
}

static const char *take_reason(pl_ir_reader *reader) {
  if (reader->token.kind == PL_IR_TOKEN_LINE && reader->token.length > 0) reader->comment = reader->token;
  return reader->comment.length > 0 ? pl_ir_read_text(reader, &reader->comment) : NULL;
}

pl_code pl_ir_read_op(pl_ir_reader *reader, pl_ir_function *function) {
  pl_ir_making making = {.callee = PL_IR_NONE};
  reader->comment.length = 0;
  PL_TRY(read_outputs(reader, function));
  PL_TRY(read_row(reader, &making));
  PL_TRY(read_callee_and_path(reader, &making));
  PL_TRY(read_inputs(reader, function));
  PL_TRY(read_attributes(reader));
  PL_TRY(read_written_types(reader));
  making.n_inputs = reader->inputs.n;
  making.n_outputs = reader->outputs.n;
  making.n_attributes = reader->attributes.n;
  making.inputs = (const int32_t *)reader->inputs.items;
  making.attributes = (const pl_ir_attribute *)reader->attributes.items;
  making.output_names = (const char *const *)reader->outputs.items;
  PL_TRY(infer_types(reader, function, &making));
  making.output_types = (const pl_ir_type *)reader->types.items;
  making.reason = take_reason(reader);
  pl_ir_op_add(reader->module, function, &making);
  if (reader->arena->failed) return pl_fail_memory(reader->error, reader->lexer.name);
  return pl_ir_read_statement_end(reader);
}
