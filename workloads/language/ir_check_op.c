/* See workloads/language/ir_check_op.h. */
#include "workloads/language/ir_check_op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workloads/language/ir_layout.h"
#include "workloads/language/ir_operands.h"
#include "workloads/language/ir_parse.h"
#include "workloads/language/ir_piece.h"
#include "workloads/language/ir_text.h"

/* ---- the form ---- */

static pl_code check_count(const char *name, const char *what, int32_t n, int32_t least, int32_t most,
                           pl_error *error) {
  if (n >= least && (most < 0 || n <= most)) return PL_OK;
  char range[48];
  snprintf(range, sizeof range, least == most ? "%d" : "%d to %d", least, most < 0 ? PL_IR_OPERANDS_MAX : most);
  return pl_fail(error, PL_BAD_INPUT, "%s has %d %s%s; it %s %s", name, n, what, n == 1 ? "" : "s",
                 *what == 'o' ? "takes" : "gives", range);
}

static const pl_ir_attribute_rule *find_rule(const pl_ir_row *row, const char *name) {
  for (size_t i = 0; i < sizeof row->attributes / sizeof row->attributes[0] && row->attributes[i].name != NULL; i++)
    if (strcmp(row->attributes[i].name, name) == 0) return &row->attributes[i];
  return NULL;
}

static const char *kind_words(uint8_t kind) {
  return kind == PL_IR_INTEGER ? "an integer"
         : kind == PL_IR_REAL  ? "a number"
         : kind == PL_IR_NAMES ? "names"
                               : "\"text\"";
}

static pl_code check_attribute(const pl_ir_row *row, const pl_ir_attribute *attribute, pl_error *error) {
  const pl_ir_attribute_rule *rule = find_rule(row, attribute->name.text);
  if (rule == NULL) {
    const char *words[sizeof row->attributes / sizeof row->attributes[0] + 1] = {NULL};
    char hint[PL_IR_HINT_BYTES];
    for (size_t i = 0; i + 1 < sizeof words / sizeof words[0]; i++)
      words[i] = row->attributes[i].name;
    return pl_fail(error, PL_BAD_INPUT, "%s has no attribute '%s'%s", row->name, attribute->name.text,
                   pl_ir_hint(attribute->name.text, words, hint));
  }
  bool number = rule->kind == PL_IR_REAL && attribute->kind == PL_IR_INTEGER;
  if (attribute->kind != rule->kind && !number)
    return pl_fail(error, PL_BAD_INPUT, "%s of %s (%s) is %s, not %s", rule->name, row->name, rule->meaning,
                   kind_words(rule->kind), kind_words(attribute->kind));
  if (attribute->kind == PL_IR_REAL && !isfinite(attribute->real))
    return pl_fail(error, PL_BAD_INPUT, "%s of %s is not finite", rule->name, row->name);
  if (attribute->kind == PL_IR_TEXT && strlen(attribute->text) > PL_IR_TEXT_MAX)
    return pl_fail(error, PL_BAD_INPUT, "%s of %s has %zu letters; at most %d", rule->name, row->name,
                   strlen(attribute->text), PL_IR_TEXT_MAX);
  return PL_OK;
}

static pl_code check_attributes(const pl_ir_row *row, const pl_ir_op *op, pl_error *error) {
  for (int32_t i = 0; i < op->n_attributes; i++)
    PL_TRY(check_attribute(row, &op->attributes[i], error));
  for (size_t i = 0; i < sizeof row->attributes / sizeof row->attributes[0] && row->attributes[i].name != NULL; i++) {
    const pl_ir_attribute_rule *rule = &row->attributes[i];
    if (rule->required && pl_ir_attribute_find(op, rule->name) == NULL)
      return pl_fail(error, PL_BAD_INPUT, "%s lacks {%s=...}: %s (%s)", row->name, rule->name, rule->meaning,
                     kind_words(rule->kind));
  }
  return PL_OK;
}

static pl_code check_path(const pl_ir_row *row, const pl_ir_op *op, pl_error *error) {
  bool calls = row->effect == PL_IR_CALLS;
  if (calls && op->callee == PL_IR_NONE)
    return pl_fail(error, PL_BAD_INPUT, "%s lacks the function that is called: %s @name \"instance\"(...)", row->name,
                   row->name);
  if (!calls && op->callee != PL_IR_NONE)
    return pl_fail(error, PL_BAD_INPUT, "%s calls no function; 'call' does", row->name);
  if (!row->has_path && op->path != NULL)
    return pl_fail(error, PL_BAD_INPUT, "%s takes no path, here \"%.60s\"", row->name, op->path);
  if (row->has_path && !calls && (op->path == NULL || op->path[0] == '\0'))
    return pl_fail(error, PL_BAD_INPUT, "%s lacks its path: %s \"path\"(...)", row->name, row->name);
  if (op->path != NULL && strlen(op->path) > PL_IR_TEXT_MAX)
    return pl_fail(error, PL_BAD_INPUT, "the path of %s has %zu letters; at most %d", row->name, strlen(op->path),
                   PL_IR_TEXT_MAX);
  return PL_OK;
}

pl_code pl_ir_op_form_check(const pl_ir_module *module, const pl_ir_op *op, pl_error *error) {
  (void)module;
  const pl_ir_row *row = pl_ir_row_at(op->row);
  PL_ASSERT(op->n_inputs <= PL_IR_OPERANDS_MAX && op->n_outputs <= PL_IR_OPERANDS_MAX);
  PL_TRY(check_count(row->name, "operand", op->n_inputs, row->least_inputs, row->most_inputs, error));
  if (row->n_outputs >= 0)
    PL_TRY(check_count(row->name, "result", op->n_outputs, row->n_outputs, row->n_outputs, error));
  PL_TRY(check_path(row, op, error));
  return check_attributes(row, op, error);
}

/* ---- types ---- */

pl_code pl_ir_type_check(const pl_ir_mesh *mesh, const pl_ir_type *type, pl_error *error) {
  if (pl_ir_type_is_valid(mesh, type)) return PL_OK;
  char text[PL_IR_TYPE_TEXT_BYTES];
  for (int32_t i = 0; i < type->rank; i++) {
    int64_t parts = 1;
    for (int32_t axis = 0; axis < mesh->n_axes; axis++)
      if (type->on[axis] == i) parts *= mesh->axes[axis].extent;
    if (type->dims[i].extent % parts != 0)
      return pl_fail(error, PL_BAD_INPUT, "%s=%lld is cut into %lld parts, which do not divide it, in %s",
                     type->dims[i].name.text, (long long)type->dims[i].extent, (long long)parts,
                     pl_ir_type_text(mesh, type, text));
  }
  return pl_fail(error, PL_BAD_INPUT,
                 "%s is no type on this mesh: dimensions have different names and extents of 1 and more",
                 pl_ir_type_text(mesh, type, text));
}

/* Types of the operands; what is inferred is whole. */
static void take_inputs(const pl_ir_function *function, int32_t n, const int32_t *inputs, pl_ir_type *types) {
  for (int32_t i = 0; i < n; i++)
    types[i] = function->values[inputs[i]].type;
}

static pl_code infer_whole(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  const pl_ir_row *row = pl_ir_row_at(op->row);
  if (row->infer == NULL) return PL_OK;
  pl_ir_type whole[PL_IR_OPERANDS_MAX];
  for (int32_t i = 0; i < op->n_inputs; i++)
    whole[i] = pl_ir_type_whole(&inputs[i]);
  return row->infer(op, whole, outputs, error);
}

/* Along each axis the first way in which the operands lie as they do; none: the same, which the check then refuses. */
static void infer_layout(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs) {
  pl_ir_way ways[PL_IR_WAYS_MAX];
  int8_t in[PL_IR_OPERANDS_MAX], out[PL_IR_OPERANDS_MAX];
  pl_ir_type whole[PL_IR_OPERANDS_MAX];
  for (int32_t i = 0; i < op->n_outputs; i++)
    whole[i] = outputs[i];
  int32_t n = pl_ir_ways_of(op, inputs, whole, ways);
  for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
    bool found = false;
    for (int32_t w = 0; w < n && !found; w++) {
      pl_ir_way_apply(op, &ways[w], inputs, whole, in, out);
      found = true;
      for (int32_t i = 0; i < op->n_inputs; i++)
        found = found && in[i] == inputs[i].on[axis];
      for (int32_t i = 0; i < op->n_outputs && found; i++)
        outputs[i].on[axis] = out[i];
    }
  }
}

static pl_code call_types(const pl_ir_module *module, const pl_ir_making *making, pl_ir_type *types, pl_error *error) {
  const pl_ir_function *callee = module->functions[making->callee];
  PL_TRY(check_count(callee->name, "result", making->n_outputs, callee->n_results, callee->n_results, error));
  for (int32_t i = 0; i < callee->n_results; i++)
    types[i] = callee->values[callee->results[i]].type;
  return PL_OK;
}

pl_code pl_ir_op_types(const pl_ir_module *module, const pl_ir_function *function, const pl_ir_making *making,
                       pl_ir_type *types, pl_error *error) {
  const pl_ir_row *row = pl_ir_row_at(making->row);
  pl_ir_type inputs[PL_IR_OPERANDS_MAX];
  const pl_ir_op op = {.row = (uint16_t)making->row,
                       .n_inputs = (uint16_t)making->n_inputs,
                       .n_outputs = (uint16_t)making->n_outputs,
                       .n_attributes = (uint16_t)making->n_attributes,
                       .inputs = making->inputs,
                       .attributes = making->attributes,
                       .path = making->path,
                       .callee = making->callee};
  PL_TRY(pl_ir_op_form_check(module, &op, error));
  if (row->effect == PL_IR_CALLS) return call_types(module, making, types, error);
  if (row->typed || row->infer == NULL)
    return pl_fail(error, PL_BAD_INPUT, "the type of what %s gives must be written behind it: ... : bf16[b=8, h=64]",
                   row->name);
  if (row->layout != NULL && module->mesh.n_axes > 0)
    return pl_fail(error, PL_BAD_INPUT, "how the result of %s lies must be written behind it: ... : bf16[b=8/dp]",
                   row->name);
  take_inputs(function, making->n_inputs, making->inputs, inputs);
  PL_TRY(infer_whole(&op, inputs, types, error));
  if (row->layout == NULL) infer_layout(&module->mesh, &op, inputs, types);
  return PL_OK;
}

/* ---- calls ---- */

static pl_code check_handed(const pl_ir_mesh *mesh, const char *what, int32_t k, const char *callee,
                            const pl_ir_type *is, const pl_ir_type *should, pl_error *error) {
  if (pl_ir_type_equal(is, should)) return PL_OK;
  char a[PL_IR_TYPE_TEXT_BYTES], b[PL_IR_TYPE_TEXT_BYTES];
  return pl_fail(error, PL_BAD_INPUT, "%s %d of this call is %s, and that of @%s is %s", what, k + 1,
                 pl_ir_type_text(mesh, is, a), callee, pl_ir_type_text(mesh, should, b));
}

static pl_code check_piece(const pl_ir_op *op, pl_error *error) {
  int64_t of = pl_ir_integer_of(op, PL_IR_PIECES, 1), index = pl_ir_integer_of(op, PL_IR_PIECE, 0);
  if (of < 1 || of > INT32_MAX) return pl_fail(error, PL_BAD_INPUT, "pieces=%lld of a call: 1 or more", (long long)of);
  if (index >= 0 && index < of) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "piece=%lld of a call: of %lld pieces there are 0 to %lld", (long long)index,
                 (long long)of, (long long)of - 1);
}

static pl_code check_call(const pl_ir_module *module, const pl_ir_op *op, const pl_ir_type *inputs,
                          const pl_ir_type *outputs, pl_error *error) {
  const pl_ir_function *callee = module->functions[op->callee];
  PL_TRY(check_piece(op, error));
  if (op->n_inputs != callee->n_arguments || op->n_outputs != callee->n_results) {
    char name[64];
    snprintf(name, sizeof name, "@%.60s", callee->name);
    PL_TRY(check_count(name, "operand", op->n_inputs, callee->n_arguments, callee->n_arguments, error));
    PL_TRY(check_count(name, "result", op->n_outputs, callee->n_results, callee->n_results, error));
  }
  for (int32_t i = 0; i < op->n_inputs; i++)
    PL_TRY(check_handed(&module->mesh, "operand", i, callee->name, &inputs[i], &callee->values[i].type, error));
  for (int32_t i = 0; i < op->n_outputs; i++)
    PL_TRY(check_handed(&module->mesh, "result", i, callee->name, &outputs[i], &callee->values[callee->results[i]].type,
                        error));
  return PL_OK;
}

/* ---- the whole op ---- */

static pl_code check_inferred(const pl_ir_module *module, const pl_ir_op *op, const pl_ir_type *inputs,
                              const pl_ir_type *outputs, pl_error *error) {
  pl_ir_type inferred[PL_IR_OPERANDS_MAX];
  if (pl_ir_row_at(op->row)->infer == NULL) return PL_OK;
  for (int32_t i = 0; i < op->n_outputs; i++)
    inferred[i] = pl_ir_type_whole(&outputs[i]);
  PL_TRY(infer_whole(op, inputs, inferred, error));
  for (int32_t i = 0; i < op->n_outputs; i++) {
    if (pl_ir_type_same_shape(&inferred[i], &outputs[i])) continue;
    char a[PL_IR_TYPE_TEXT_BYTES], b[PL_IR_TYPE_TEXT_BYTES];
    pl_ir_type written = pl_ir_type_whole(&outputs[i]);
    return pl_fail(error, PL_BAD_INPUT, "result %d of %s is written as %s; from its operands follows %s", i + 1,
                   pl_ir_row_at(op->row)->name, pl_ir_type_text(&module->mesh, &written, a),
                   pl_ir_type_text(&module->mesh, &inferred[i], b));
  }
  return PL_OK;
}

pl_code pl_ir_op_check(const pl_ir_module *module, const pl_ir_function *function, const pl_ir_op *op,
                       pl_error *error) {
  pl_ir_type inputs[PL_IR_OPERANDS_MAX], outputs[PL_IR_OPERANDS_MAX];
  const pl_ir_row *row = pl_ir_row_at(op->row);
  PL_TRY(pl_ir_op_form_check(module, op, error));
  take_inputs(function, op->n_inputs, op->inputs, inputs);
  for (int32_t i = 0; i < op->n_outputs; i++) {
    outputs[i] = function->values[op->first_output + i].type;
    PL_TRY(pl_ir_type_check(&module->mesh, &outputs[i], error));
  }
  if (row->effect == PL_IR_CALLS) return check_call(module, op, inputs, outputs, error);
  PL_TRY(check_inferred(module, op, inputs, outputs, error));
  return pl_ir_layout_check(&module->mesh, op, inputs, outputs, error);
}
