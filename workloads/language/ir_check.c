/* See workloads/language/ir_check.h: functions, and what the parts of the check share. */
#include "workloads/language/ir_check.h"

#include <stdio.h>
#include <string.h>

#include "core/base/digest.h"
#include "workloads/language/ir_checking.h"
#include "workloads/language/ir_text.h"

/* ---- where ---- */

const char *pl_ir_where(const pl_ir_function *function, const pl_ir_op *op, char text[PL_IR_WHERE_BYTES]) {
  if (op->place.line > 0) {
    snprintf(text, PL_IR_WHERE_BYTES, "line %d", op->place.line);
  } else {
    snprintf(text, PL_IR_WHERE_BYTES, "op %d of @%.80s", (int)(op - function->ops) + 1, function->name);
  }
  return text;
}

pl_code pl_ir_check_fail(const pl_ir_checking *checking, pl_ir_place place, const pl_ir_function *function,
                         const pl_ir_op *op, const char *format, ...) {
  char text[PL_ERROR_MESSAGE_BYTES];
  const pl_ir_module *module = checking->module;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const char *name = module->source != NULL ? module->source : module->name;
  if (place.line > 0)
    return pl_fail(checking->error, PL_BAD_INPUT, "%s:%d:%d: %s", name, place.line, place.column, text);
  if (function != NULL && op != NULL)
    return pl_fail(checking->error, PL_BAD_INPUT, "program %.80s: @%.80s, op %d (%s%s%.80s): %s", name, function->name,
                   (int)(op - function->ops) + 1, pl_ir_row_at(op->row)->name, op->n_outputs > 0 ? " %" : "",
                   op->n_outputs > 0 ? function->values[op->first_output].name : "", text);
  if (function != NULL)
    return pl_fail(checking->error, PL_BAD_INPUT, "program %.80s: @%.80s: %s", name, function->name, text);
  return pl_fail(checking->error, PL_BAD_INPUT, "program %.80s: %s", name, text);
}

pl_code pl_ir_check_no_memory(const pl_ir_checking *checking) {
  return pl_fail_memory(checking->error, "the check of a program");
}

/* ---- functions ---- */

/* What calls make of a function. */
typedef struct reach {
  int64_t ops; /* behind all calls, at most PL_IR_EXPANDED_MAX + 1 */
  int32_t depth;
  size_t path; /* letters of the longest */
} reach;

static size_t path_length(const pl_ir_op *op, const reach *callee) {
  size_t own = op->path != NULL ? strlen(op->path) : 0;
  if (callee == NULL) return own;
  return callee->path + (own > 0 && callee->path > 0 ? own + 1 : 0);
}

static pl_code check_reach(const pl_ir_checking *checking, int32_t f, const pl_ir_op *op, reach *reaches) {
  const pl_ir_function *function = checking->module->functions[f];
  const reach *callee = op->callee != PL_IR_NONE ? &reaches[op->callee] : NULL;
  reach *own = &reaches[f];
  size_t length = path_length(op, callee);
  if (length > own->path) own->path = length;
  own->ops += 1 + (callee != NULL ? callee->ops : 0);
  if (callee != NULL && callee->depth + 1 > own->depth) own->depth = callee->depth + 1;
  if (length > PL_IR_TEXT_MAX)
    return pl_ir_check_fail(checking, op->place, function, op, "a path inside this call has %zu letters; at most %d",
                            length, PL_IR_TEXT_MAX);
  if (own->depth > PL_IR_DEPTH_MAX)
    return pl_ir_check_fail(checking, op->place, function, op, "calls nest %d deep here; at most %d", own->depth,
                            PL_IR_DEPTH_MAX);
  if (own->ops > PL_IR_EXPANDED_MAX)
    return pl_ir_check_fail(checking, op->place, function, op,
                            "up to here @%.60s has more than %d ops, those of the functions that it calls included",
                            function->name, PL_IR_EXPANDED_MAX);
  return PL_OK;
}

/* Operands are made above, results are the next values: true of what was read; passes may be wrong. */
static pl_code check_order(const pl_ir_checking *checking, const pl_ir_function *function, const pl_ir_op *op,
                           int32_t *n_values) {
  for (int32_t i = 0; i < op->n_inputs; i++)
    if (op->inputs[i] < 0 || op->inputs[i] >= *n_values)
      return pl_ir_check_fail(checking, op->place, function, op, "operand %d is used before it is made", i + 1);
  if (op->n_outputs > 0 && op->first_output != *n_values)
    return pl_ir_check_fail(checking, op->place, function, op, "its results are not the next values of the function");
  *n_values += op->n_outputs;
  if (*n_values > function->n_values)
    return pl_ir_check_fail(checking, op->place, function, op, "it gives values that the function does not have");
  return PL_OK;
}

static bool is_kernel(const pl_ir_op *op) {
  return pl_ir_op_is(op, "kernel");
}

/* What a device does by itself, all at once. */
static pl_code check_kernel(const pl_ir_checking *checking, const pl_ir_function *function, const pl_ir_op *op) {
  const pl_ir_function *callee = checking->module->functions[op->callee];
  if (op->path != NULL && op->path[0] != '\0')
    return pl_ir_check_fail(checking, op->place, function, op,
                            "a kernel is no instance of anything: leave out \"%.60s\"", op->path);
  for (int32_t i = 0; i < callee->n_ops; i++) {
    const pl_ir_row *row = pl_ir_row_at(callee->ops[i].row);
    bool meets = row->effect == PL_IR_COLLECTIVE && strcmp(row->name, "cut") != 0;
    if (meets || row->effect == PL_IR_SENDS || row->effect == PL_IR_CALLS)
      return pl_ir_check_fail(checking, op->place, function, op,
                              "@%.60s is no kernel: it has %s, and a kernel is what a device computes by itself",
                              callee->name, row->name);
  }
  return PL_OK;
}

static pl_code check_level(const pl_ir_checking *checking, const pl_ir_function *function, const pl_ir_op *op) {
  const pl_ir_row *row = pl_ir_row_at(op->row);
  pl_ir_level level = checking->module->level;
  if (is_kernel(op) && level != PL_IR_KERNELS)
    return pl_ir_check_fail(checking, op->place, function, op,
                            "kernel stands in programs of level kernels only; this one is of level %s",
                            pl_ir_level_names[level]);
  if (level >= PL_IR_DISTRIBUTED || (row->effect != PL_IR_COLLECTIVE && row->effect != PL_IR_SENDS)) return PL_OK;
  return pl_ir_check_fail(checking, op->place, function, op,
                          "%s stands in programs of level distributed only; this one is of level %s", row->name,
                          pl_ir_level_names[level]);
}

static pl_code check_op(const pl_ir_checking *checking, int32_t f, const pl_ir_op *op) {
  const pl_ir_function *function = checking->module->functions[f];
  pl_error inner = PL_ERROR_INIT;
  if (op->row >= pl_ir_n_rows() || op->callee >= f)
    return pl_ir_check_fail(checking, op->place, function, op, "it calls a function that is not defined above");
  if (checking->is_made) return PL_OK;
  PL_TRY(check_level(checking, function, op));
  if (pl_ir_op_check(checking->module, function, op, &inner) == PL_OK)
    return is_kernel(op) ? check_kernel(checking, function, op) : PL_OK;
  return pl_ir_check_fail(checking, op->place, function, op, "%s", inner.message);
}

static pl_code check_function(const pl_ir_checking *checking, int32_t f, reach *reaches) {
  const pl_ir_function *function = checking->module->functions[f];
  int32_t n_values = function->n_arguments;
  pl_error inner = PL_ERROR_INIT;
  reaches[f] = (reach){.depth = 1};
  if (!pl_ir_is_name(function->name))
    return pl_ir_check_fail(checking, function->place, NULL, NULL, "'%.60s' is no name of a function", function->name);
  for (int32_t i = 0; i < function->n_values && !checking->is_made; i++)
    if (!pl_ir_is_name(function->values[i].name))
      return pl_ir_check_fail(checking, function->place, function, NULL, "'%.60s' is no name of a value",
                              function->values[i].name);
  for (int32_t i = 0; i < function->n_arguments && !checking->is_made; i++)
    if (pl_ir_type_check(&checking->module->mesh, &function->values[i].type, &inner) != PL_OK)
      return pl_ir_check_fail(checking, function->place, function, NULL, "argument %%%.60s: %s",
                              function->values[i].name, inner.message);
  for (int32_t i = 0; i < function->n_ops; i++) {
    const pl_ir_op *op = &function->ops[i];
    PL_TRY(check_order(checking, function, op, &n_values));
    PL_TRY(check_op(checking, f, op));
    PL_TRY(check_reach(checking, f, op, reaches));
  }
  for (int32_t i = 0; i < function->n_results; i++)
    if (function->results[i] < 0 || function->results[i] >= n_values)
      return pl_ir_check_fail(checking, function->place, function, NULL, "result %d is no value of it", i + 1);
  return PL_OK;
}

pl_code pl_ir_check_functions(pl_ir_checking *checking) {
  const pl_ir_module *module = checking->module;
  reach *reaches = PL_TAKE(checking->scratch, reach, module->n_functions + 1);
  checking->n_expanded = PL_TAKE(checking->scratch, int64_t, module->n_functions + 1);
  if (reaches == NULL || checking->n_expanded == NULL) return pl_ir_check_no_memory(checking);
  for (int32_t f = 0; f < module->n_functions; f++) {
    PL_TRY(check_function(checking, f, reaches));
    checking->n_expanded[f] = reaches[f].ops;
  }
  return PL_OK;
}

/* ---- names of classes ---- */

int32_t pl_ir_class_find(const pl_ir_checking *checking, pl_ir_name name) {
  uint32_t probe = 0;
  uint64_t hash = pl_hash_bytes(name.text, strlen(name.text), 0);
  for (const pl_ir_class *own; (own = pl_hash_index_find(&checking->class_names, hash, &probe)) != NULL;)
    if (strcmp(own->name, name.text) == 0) return (int32_t)(own - checking->module->classes);
  return PL_IR_NONE;
}

static pl_code index_classes(pl_ir_checking *checking) {
  for (int32_t c = 0; c < checking->module->n_classes; c++) {
    const pl_ir_class *own = &checking->module->classes[c];
    if (!pl_ir_is_name(own->name) || strlen(own->name) >= PL_IR_NAME_MAX)
      return pl_ir_check_fail(checking, own->place, NULL, NULL, "'%.60s' is no name of a class: at most %d letters",
                              own->name, PL_IR_NAME_MAX - 1);
    if (pl_ir_class_find(checking, pl_ir_name_of(own->name)) != PL_IR_NONE)
      return pl_ir_check_fail(checking, own->place, NULL, NULL, "class %s is there twice", own->name);
    if (!pl_hash_index_put(&checking->class_names, pl_hash_bytes(own->name, strlen(own->name), 0), own,
                           checking->scratch))
      return pl_ir_check_no_memory(checking);
  }
  return PL_OK;
}

static pl_code check(const pl_ir_module *module, bool is_made, pl_error *error) {
  pl_arena scratch;
  pl_arena_init(&scratch, 1 << 16);
  pl_ir_checking checking = {.module = module, .scratch = &scratch, .error = error, .is_made = is_made};
  pl_code code = pl_ir_check_functions(&checking);
  if (code == PL_OK) code = index_classes(&checking);
  if (code == PL_OK) code = pl_ir_check_classes(&checking);
  if (code == PL_OK) code = pl_ir_check_fewer(&checking);
  if (code == PL_OK) code = pl_ir_check_state(&checking);
  if (code == PL_OK) code = pl_ir_check_flow(&checking);
  pl_arena_release(&scratch);
  return code;
}

pl_code pl_ir_check(const pl_ir_module *module, pl_error *error) {
  return check(module, false, error);
}

pl_code pl_ir_check_made(const pl_ir_module *module, pl_error *error) {
#ifdef NDEBUG
  return check(module, true, error);
#else
  return check(module, false, error);
#endif
}
