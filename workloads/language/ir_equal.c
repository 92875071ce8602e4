/* See workloads/language/ir_text.h: whether two programs are the same. */
#include <string.h>

#include "workloads/language/ir_table.h"
#include "workloads/language/ir_text.h"

/* No path, and no instance, are "". */
static bool same_text(const char *a, const char *b) {
  return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

static bool same_attribute(const pl_ir_attribute *a, const pl_ir_attribute *b) {
  if (a->kind != b->kind || !pl_ir_name_equal(a->name, b->name)) return false;
  switch ((pl_ir_attribute_kind)a->kind) {
  case PL_IR_INTEGER:
    return a->integer == b->integer;
  case PL_IR_REAL:
    return memcmp(&a->real, &b->real, sizeof a->real) == 0;
  case PL_IR_TEXT:
    return same_text(a->text, b->text);
  case PL_IR_NAMES:
    break;
  }
  for (int32_t i = 0; i < a->n_names && a->n_names == b->n_names; i++)
    if (!pl_ir_name_equal(a->names[i], b->names[i])) return false;
  return a->n_names == b->n_names;
}

static bool same_op(const pl_ir_op *a, const pl_ir_op *b) {
  if (a->row != b->row || a->callee != b->callee || a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs ||
      a->n_attributes != b->n_attributes || !same_text(a->path, b->path))
    return false;
  if (a->n_outputs > 0 && a->first_output != b->first_output) return false;
  for (int32_t i = 0; i < a->n_inputs; i++)
    if (a->inputs[i] != b->inputs[i]) return false;
  for (int32_t i = 0; i < a->n_attributes; i++)
    if (!same_attribute(&a->attributes[i], &b->attributes[i])) return false;
  return true;
}

static bool same_function(const pl_ir_function *a, const pl_ir_function *b) {
  if (a->n_ops != b->n_ops || a->n_values != b->n_values || a->n_arguments != b->n_arguments ||
      a->n_results != b->n_results || !same_text(a->name, b->name))
    return false;
  for (int32_t i = 0; i < a->n_values; i++)
    if (!same_text(a->values[i].name, b->values[i].name) || a->values[i].op != b->values[i].op ||
        !pl_ir_type_equal(&a->values[i].type, &b->values[i].type))
      return false;
  for (int32_t i = 0; i < a->n_ops; i++)
    if (!same_op(&a->ops[i], &b->ops[i])) return false;
  for (int32_t i = 0; i < a->n_results; i++)
    if (a->results[i] != b->results[i]) return false;
  return true;
}

static bool same_class(const pl_ir_class *a, const pl_ir_class *b, int32_t n_axes) {
  if (a->n_chunks != b->n_chunks || a->n_steps != b->n_steps || a->update != b->update || !same_text(a->name, b->name))
    return false;
  for (int32_t axis = 0; axis < n_axes; axis++)
    if (a->at[axis] != b->at[axis]) return false;
  for (int32_t i = 0; i < a->n_chunks; i++)
    if (a->chunks[i].chunk != b->chunks[i].chunk || a->chunks[i].forward != b->chunks[i].forward ||
        a->chunks[i].backward != b->chunks[i].backward || a->chunks[i].weights != b->chunks[i].weights ||
        a->chunks[i].first_microbatch != b->chunks[i].first_microbatch ||
        a->chunks[i].n_microbatches != b->chunks[i].n_microbatches)
      return false;
  for (int32_t i = 0; i < a->n_steps; i++)
    if (a->steps[i].kind != b->steps[i].kind || a->steps[i].chunk != b->steps[i].chunk ||
        a->steps[i].microbatch != b->steps[i].microbatch)
      return false;
  return true;
}

static bool same_mesh(const pl_ir_mesh *a, const pl_ir_mesh *b) {
  for (int32_t axis = 0; axis < a->n_axes && a->n_axes == b->n_axes; axis++)
    if (a->axes[axis].extent != b->axes[axis].extent || !pl_ir_name_equal(a->axes[axis].name, b->axes[axis].name))
      return false;
  return a->n_axes == b->n_axes;
}

static bool same_fewer(const pl_ir_module *a, const pl_ir_module *b) {
  if (a->n_fewer != b->n_fewer) return false;
  for (int32_t i = 0; i < a->n_fewer; i++) {
    if (a->fewer[i].n_microbatches != b->fewer[i].n_microbatches) return false;
    for (int32_t axis = 0; axis < a->mesh.n_axes; axis++)
      if (a->fewer[i].at[axis] != b->fewer[i].at[axis]) return false;
  }
  return true;
}

static bool same_launcher(const pl_ir_launcher *a, const pl_ir_launcher *b) {
  if ((a->name == NULL) != (b->name == NULL) || a->overlap != b->overlap || a->tokens != b->tokens) return false;
  return a->name == NULL || same_text(a->name, b->name);
}

bool pl_ir_module_equal(const pl_ir_module *a, const pl_ir_module *b) {
  if (a->level != b->level || a->n_microbatches != b->n_microbatches || a->n_functions != b->n_functions ||
      a->n_classes != b->n_classes || !same_text(a->name, b->name) || !same_mesh(&a->mesh, &b->mesh) ||
      a->n_places != b->n_places || !same_fewer(a, b) || !same_launcher(&a->launcher, &b->launcher))
    return false;
  for (int32_t i = 0; i < a->n_places; i++)
    if (a->places[i] != b->places[i]) return false;
  for (int32_t i = 0; i < a->n_functions; i++)
    if (!same_function(a->functions[i], b->functions[i])) return false;
  for (int32_t i = 0; i < a->n_classes; i++)
    if (!same_class(&a->classes[i], &b->classes[i], a->mesh.n_axes)) return false;
  return true;
}
