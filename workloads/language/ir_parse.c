/* See workloads/language/ir_text.h: modules and functions. */
#include <stdlib.h>
#include <string.h>

#include "core/base/printable.h"
#include "core/system/text_file.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_parse.h"
#include "workloads/language/ir_text.h"

/* ---- the head ---- */

static pl_code read_level(pl_ir_reader *reader, pl_ir_level *level) {
  for (int i = 0; i < PL_IR_LEVEL_COUNT; i++) {
    if (!pl_ir_read_sees_word(reader, pl_ir_level_names[i])) continue;
    *level = (pl_ir_level)i;
    return pl_ir_read_next(reader);
  }
  return pl_ir_read_expected(reader, "the level (model, training, distributed or kernels)");
}

static pl_code read_head(pl_ir_reader *reader) {
  pl_ir_module *module = reader->module;
  int64_t version;
  if (!pl_ir_read_sees_word(reader, "plir"))
    return pl_ir_read_expected(reader, "'plir 1 LEVEL NAME', with which a program begins,");
  PL_TRY(pl_ir_read_next(reader));
  PL_TRY(pl_ir_read_integer(reader, "the version of the language", 1, 1, &version));
  PL_TRY(read_level(reader, &module->level));
  const pl_ir_token *token = &reader->token;
  if (token->kind == PL_IR_TOKEN_NAME) {
    const char *name = pl_ir_read_text(reader, token);
    module->name = name != NULL ? pl_arena_strdup(reader->arena, name) : NULL;
  } else if (token->kind == PL_IR_TOKEN_STRING) {
    module->name = pl_ir_lexer_string(&reader->lexer, token, reader->arena, reader->error);
  } else {
    return pl_ir_read_expected(reader, "the program's name (a name, or any \"text\")");
  }
  if (module->name == NULL) return pl_fail_memory(reader->error, reader->lexer.name);
  PL_TRY(pl_ir_read_next(reader));
  return pl_ir_read_statement_end(reader);
}

/* overlap=0 and tokens=delayed behind the name of a framework. */
static pl_code read_launching(pl_ir_reader *reader, pl_ir_launcher *launcher) {
  int64_t overlap;
  bool of_tokens = pl_ir_read_sees_word(reader, "tokens");
  if (!of_tokens && !pl_ir_read_sees_word(reader, "overlap"))
    return pl_ir_read_expected(reader, "overlap=0 or 1, tokens=delayed or shared, or the end of the line");
  if (of_tokens ? launcher->tokens > 0 : launcher->overlap != PL_IR_NONE)
    return pl_ir_read_fail(reader, reader->token.place, "%s= is said twice", of_tokens ? "tokens" : "overlap");
  PL_TRY(pl_ir_read_next(reader));
  PL_TRY(pl_ir_read_mark(reader, '=', "'='"));
  if (!of_tokens) {
    PL_TRY(pl_ir_read_integer(reader, "whether gradients are reduced beside computing (0 or 1)", 0, 1, &overlap));
    launcher->overlap = (int8_t)overlap;
    return PL_OK;
  }
  for (uint8_t i = 1; pl_ir_token_orders[i] != NULL; i++) {
    if (!pl_ir_read_sees_word(reader, pl_ir_token_orders[i])) continue;
    launcher->tokens = i;
    return pl_ir_read_next(reader);
  }
  return pl_ir_read_expected(reader, "delayed or shared");
}

static pl_code read_launcher(pl_ir_reader *reader) {
  pl_ir_launcher *launcher = &reader->module->launcher;
  if (launcher->name != NULL)
    return pl_ir_read_fail(reader, reader->token.place, "a program says its framework once; this is the second time");
  *launcher = (pl_ir_launcher){.overlap = PL_IR_NONE, .place = reader->token.place};
  PL_TRY(pl_ir_read_next(reader));
  if (reader->token.kind != PL_IR_TOKEN_STRING) return pl_ir_read_expected(reader, "the framework's name (\"text\")");
  launcher->name = pl_ir_lexer_string(&reader->lexer, &reader->token, reader->arena, reader->error);
  if (launcher->name == NULL) return pl_fail_memory(reader->error, reader->lexer.name);
  if (launcher->name[0] == 0) return pl_ir_read_fail(reader, reader->token.place, "a framework's name is not empty");
  if (*pl_printable_end(launcher->name) != '\0')
    return pl_ir_read_fail(reader, reader->token.place, "a framework's name has only what can be printed");
  PL_TRY(pl_ir_read_next(reader));
  while (reader->token.kind == PL_IR_TOKEN_NAME)
    PL_TRY(read_launching(reader, launcher));
  return pl_ir_read_statement_end(reader);
}

static pl_code read_mesh_axis(pl_ir_reader *reader) {
  pl_ir_mesh *mesh = &reader->module->mesh;
  pl_ir_place place = reader->token.place;
  pl_ir_axis axis = {.extent = 1};
  int64_t extent;
  PL_TRY(pl_ir_read_name(reader, "an axis (as in dp=8)", &axis.name));
  if (pl_ir_mesh_find(mesh, axis.name) >= 0)
    return pl_ir_read_fail(reader, place, "axis %s stands in the mesh twice", axis.name.text);
  if (mesh->n_axes == PL_IR_AXES_MAX)
    return pl_ir_read_fail(reader, place, "a mesh has at most %d axes", PL_IR_AXES_MAX);
  PL_TRY(pl_ir_read_mark(reader, '=', "'=' and the number of devices along the axis"));
  place = reader->token.place;
  PL_TRY(pl_ir_read_integer(reader, "the number of devices along an axis", 1, PL_IR_DEVICES_MAX, &extent));
  long long devices = (long long)pl_ir_mesh_devices(mesh) * extent;
  if (devices > PL_IR_DEVICES_MAX)
    return pl_ir_read_fail(reader, place, "the mesh would have %lld devices; at most %d", devices, PL_IR_DEVICES_MAX);
  axis.extent = (int32_t)extent;
  mesh->axes[mesh->n_axes++] = axis;
  return PL_OK;
}

static pl_code read_mesh(pl_ir_reader *reader) {
  if (reader->module->mesh.n_axes > 0)
    return pl_ir_read_fail(reader, reader->token.place, "a program has one mesh; this is the second");
  if (reader->module->n_functions > 0)
    return pl_ir_read_fail(reader, reader->token.place, "the mesh stands in front of all functions");
  PL_TRY(pl_ir_read_next(reader));
  for (bool more = true; more;) {
    PL_TRY(read_mesh_axis(reader));
    PL_TRY(pl_ir_read_comma(reader, &more));
  }
  return pl_ir_read_statement_end(reader);
}

/* The platform's device for each one of the mesh. */
static pl_code read_devices(pl_ir_reader *reader) {
  uint32_t *places = NULL, room = 0;
  if (reader->module->places != NULL)
    return pl_ir_read_fail(reader, reader->token.place, "a program says its devices once; this is the second time");
  PL_TRY(pl_ir_read_next(reader));
  for (bool more = true; more;) {
    int64_t place;
    int32_t n = reader->module->n_places;
    if (n == PL_IR_DEVICES_MAX)
      return pl_ir_read_fail(reader, reader->token.place, "more than %d devices", PL_IR_DEVICES_MAX);
    PL_TRY(pl_ir_read_integer(reader, "a device of the platform", 0, PL_IR_DEVICES_MAX - 1, &place));
    places = (uint32_t *)pl_arena_grown(reader->arena, places, (size_t)n, 1, sizeof *places, &room);
    if (places == NULL) return pl_fail_memory(reader->error, reader->lexer.name);
    places[n] = (uint32_t)place;
    reader->module->n_places = n + 1;
    PL_TRY(pl_ir_read_comma(reader, &more));
  }
  reader->module->places = places;
  return pl_ir_read_statement_end(reader);
}

static pl_code read_microbatches(pl_ir_reader *reader) {
  pl_ir_fewer fewer = {.place = reader->token.place};
  int64_t n;
  PL_TRY(pl_ir_read_next(reader));
  PL_TRY(pl_ir_read_integer(reader, "the number of microbatches", 1, INT32_MAX, &n));
  if (!pl_ir_read_sees_word(reader, "at")) {
    reader->module->n_microbatches = (int32_t)n;
    return pl_ir_read_statement_end(reader);
  }
  PL_TRY(pl_ir_read_at(reader, "devices are", fewer.at));
  fewer.n_microbatches = (int32_t)n;
  pl_ir_fewer *room = (pl_ir_fewer *)pl_ir_list_add(reader, &reader->fewer, sizeof fewer);
  if (room == NULL) return pl_fail_memory(reader->error, reader->lexer.name);
  *room = fewer;
  reader->module->fewer = (const pl_ir_fewer *)reader->fewer.items;
  reader->module->n_fewer = reader->fewer.n;
  return pl_ir_read_statement_end(reader);
}

/* ---- functions ---- */

static pl_code read_argument(pl_ir_reader *reader, pl_ir_function *function) {
  const pl_ir_token token = reader->token;
  if (token.kind != PL_IR_TOKEN_VALUE) return pl_ir_read_expected(reader, "an argument (%name: type)");
  const char *name = pl_ir_read_text(reader, &token);
  if (name != NULL && pl_ir_value_find(function, name) != PL_IR_NONE)
    return pl_ir_read_fail(reader, token.place, "%%%.60s is an argument of @%.60s twice", name, function->name);
  name = name != NULL ? pl_arena_strdup(reader->arena, name) : NULL;
  if (name == NULL) return pl_fail_memory(reader->error, reader->lexer.name);
  pl_ir_type type;
  PL_TRY(pl_ir_read_next(reader));
  PL_TRY(pl_ir_read_mark(reader, ':', "':' and the argument's type"));
  PL_TRY(pl_ir_read_type(reader, &type));
  pl_ir_argument(reader->module, function, name, &type);
  return reader->arena->failed ? pl_fail_memory(reader->error, reader->lexer.name) : PL_OK;
}

static pl_code read_arguments(pl_ir_reader *reader, pl_ir_function *function) {
  PL_TRY(pl_ir_read_mark(reader, '(', "'(' and the function's arguments"));
  for (bool more = !pl_ir_read_sees(reader, ')'); more;) {
    PL_TRY(read_argument(reader, function));
    PL_TRY(pl_ir_read_comma(reader, &more));
  }
  return pl_ir_read_mark(reader, ')', "',' and an argument, or ')'");
}

static pl_code read_return(pl_ir_reader *reader, pl_ir_function *function) {
  reader->inputs.n = 0;
  PL_TRY(pl_ir_read_next(reader));
  for (bool more = true; more;) {
    int32_t value, *room = (int32_t *)pl_ir_list_add(reader, &reader->inputs, sizeof value);
    if (room == NULL) return pl_fail_memory(reader->error, reader->lexer.name);
    PL_TRY(pl_ir_read_value(reader, function, &value));
    *room = value;
    PL_TRY(pl_ir_read_comma(reader, &more));
  }
  pl_ir_results_set(reader->module, function, reader->inputs.n, (const int32_t *)reader->inputs.items);
  if (reader->arena->failed) return pl_fail_memory(reader->error, reader->lexer.name);
  PL_TRY(pl_ir_read_statement_end(reader));
  return pl_ir_read_sees(reader, '}') ? PL_OK : pl_ir_read_expected(reader, "'}', since 'return' ends a function,");
}

static pl_code read_function_head(pl_ir_reader *reader, pl_ir_function **function) {
  PL_TRY(pl_ir_read_next(reader));
  const pl_ir_token token = reader->token;
  if (token.kind != PL_IR_TOKEN_FUNCTION) return pl_ir_read_expected(reader, "the function's name (@name)");
  const char *name = pl_ir_read_text(reader, &token);
  if (name == NULL) return reader->error->code;
  int32_t before = pl_ir_function_find(reader->module, name);
  if (before != PL_IR_NONE)
    return pl_ir_read_fail(reader, token.place, "function @%.60s is there already, in line %d", name,
                           reader->module->functions[before]->place.line);
  *function = pl_ir_function_add(reader->module, name);
  if (*function == NULL) return pl_fail_memory(reader->error, reader->lexer.name);
  (*function)->place = token.place;
  return pl_ir_read_next(reader);
}

static pl_code read_function(pl_ir_reader *reader) {
  pl_ir_function *function = NULL;
  PL_TRY(read_function_head(reader, &function));
  PL_TRY(read_arguments(reader, function));
  PL_TRY(pl_ir_read_mark(reader, '{', "'{' and the function's ops"));
  PL_TRY(pl_ir_read_lines(reader));
  while (!pl_ir_read_sees(reader, '}')) {
    bool ends = pl_ir_read_sees_word(reader, "return");
    PL_TRY(ends ? read_return(reader, function) : pl_ir_read_op(reader, function));
  }
  PL_TRY(pl_ir_read_next(reader));
  return pl_ir_read_statement_end(reader);
}

/* ---- the module ---- */

static pl_code read_item(pl_ir_reader *reader) {
  if (pl_ir_read_sees_word(reader, "framework")) return read_launcher(reader);
  if (pl_ir_read_sees_word(reader, "mesh")) return read_mesh(reader);
  if (pl_ir_read_sees_word(reader, "devices")) return read_devices(reader);
  if (pl_ir_read_sees_word(reader, "microbatches")) return read_microbatches(reader);
  if (pl_ir_read_sees_word(reader, "func")) return read_function(reader);
  if (pl_ir_read_sees_word(reader, "class")) return pl_ir_read_class(reader);
  return pl_ir_read_expected(reader, "'framework', 'mesh', 'devices', 'microbatches', 'func' or 'class'");
}

static pl_code read_module(pl_ir_reader *reader) {
  PL_TRY(pl_ir_read_next(reader));
  PL_TRY(pl_ir_read_lines(reader));
  PL_TRY(read_head(reader));
  while (reader->token.kind != PL_IR_TOKEN_END)
    PL_TRY(read_item(reader));
  return PL_OK;
}

pl_code pl_ir_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_ir_module *module,
                    pl_error *error) {
  pl_error own = PL_ERROR_INIT; /* the reader looks at it */
  if (size > PL_IR_TEXT_LIMIT_BYTES)
    return pl_fail(error, PL_BAD_INPUT, "%s: larger than %d MiB", name, PL_IR_TEXT_LIMIT_BYTES >> 20);
  pl_ir_module_init(module, arena, "", PL_IR_MODEL);
  module->source = pl_arena_strdup(arena, name);
  if (arena->failed) return pl_fail_memory(error, name);
  pl_ir_reader reader = {.module = module, .arena = arena, .error = &own};
  pl_ir_lexer_init(&reader.lexer, name, text, size);
  pl_code code = pl_text_check(name, text, size, &own);
  if (code == PL_OK) code = read_module(&reader);
  return code == PL_OK ? PL_OK : pl_fail(error, code, "%s", own.message);
}

pl_code pl_ir_load(const char *path, pl_arena *arena, pl_ir_module *module, pl_error *error) {
  char *text;
  size_t size;
  PL_TRY(pl_text_file_load(path, PL_IR_TEXT_LIMIT_BYTES, &text, &size, error));
  pl_code code = pl_ir_parse(path, text, size, arena, module, error);
  free(text);
  return code;
}
