/* See workloads/language/ir_checking.h: places of the mesh that run fewer microbatches than others. What devices there
 * pass over, nobody may wait for: inside steps nothing meets along these axes. */
#include <inttypes.h>
#include <string.h>

#include "workloads/language/ir_checking.h"
#include "workloads/language/ir_fewer.h"

static const char *axis_name(const pl_ir_module *module, uint32_t axes) {
  int32_t axis = 0;
  while ((axes >> axis & 1) == 0)
    axis++;
  return module->mesh.axes[axis].name.text;
}

/* ---- the places ---- */

static bool overlap(const pl_ir_module *module, const pl_ir_fewer *a, const pl_ir_fewer *b) {
  for (int32_t axis = 0; axis < module->mesh.n_axes; axis++)
    if (a->at[axis] != PL_IR_NONE && b->at[axis] != PL_IR_NONE && a->at[axis] != b->at[axis]) return false;
  return true;
}

static pl_code check_place(const pl_ir_checking *checking, int32_t index) {
  const pl_ir_module *module = checking->module;
  const pl_ir_fewer *own = &module->fewer[index];
  if (module->level < PL_IR_DISTRIBUTED)
    return pl_ir_check_fail(checking, own->place, NULL, NULL, "a program of level %s has no mesh, and no places on it",
                            pl_ir_level_names[module->level]);
  if (own->n_microbatches < 1 || own->n_microbatches >= module->n_microbatches)
    return pl_ir_check_fail(checking, own->place, NULL, NULL,
                            "%d microbatches: a place that is named runs fewer than the %d of all others, and one or "
                            "more",
                            own->n_microbatches, module->n_microbatches);
  for (int32_t i = 0; i < index; i++)
    if (overlap(module, own, &module->fewer[i]))
      return pl_ir_check_fail(checking, own->place, NULL, NULL,
                              "devices at this place have %d microbatches already%s%.0d",
                              module->fewer[i].n_microbatches, module->fewer[i].place.line > 0 ? ": see line " : "",
                              module->fewer[i].place.line);
  return PL_OK;
}

static pl_code check_some_run_all(const pl_ir_checking *checking) {
  const pl_ir_module *module = checking->module;
  uint32_t n = pl_ir_mesh_devices(&module->mesh);
  for (uint32_t device = 0; device < n; device++)
    if (pl_ir_microbatches_of(module, device) == module->n_microbatches) return PL_OK;
  return pl_ir_check_fail(checking, module->fewer[0].place, NULL, NULL,
                          "no device runs all %d microbatches: say as many as most of them run",
                          module->n_microbatches);
}

/* ---- what their steps do ---- */

static uint32_t met_axes(const pl_ir_mesh *mesh, const pl_ir_op *op) {
  uint32_t axes = 0;
  if (pl_ir_row_at(op->row)->effect != PL_IR_COLLECTIVE) return 0;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (pl_ir_op_has_name(op, "over", mesh->axes[axis].name)) axes |= 1u << axis;
  return axes;
}

/* Sums over microbatches of what devices along the axis all hold would differ with their numbers. */
static pl_code check_added(const pl_ir_checking *checking, const pl_ir_function *f, const pl_ir_op *op, uint32_t axes) {
  const pl_ir_type *type = &f->values[op->inputs[0]].type;
  for (int32_t axis = 0; axis < checking->module->mesh.n_axes; axis++)
    if ((axes >> axis & 1) != 0 && type->on[axis] == PL_IR_SAME)
      return pl_ir_check_fail(checking, op->place, f, op,
                              "%s adds up what devices along axis %s hold alike, and some of them run fewer "
                              "microbatches: it needs to be cut or partial along it",
                              pl_ir_row_at(op->row)->name, checking->module->mesh.axes[axis].name.text);
  return PL_OK;
}

static pl_code check_op(const pl_ir_checking *checking, const pl_ir_function *f, const pl_ir_op *op, uint32_t axes) {
  const pl_ir_module *module = checking->module;
  const char *row = pl_ir_row_at(op->row)->name;
  uint32_t met = strcmp(row, "cut") == 0 ? 0 : met_axes(&module->mesh, op) & axes;
  if (met != 0)
    return pl_ir_check_fail(checking, op->place, f, op,
                            "%s meets along axis %s in a step, and some devices along it run fewer microbatches: it "
                            "would wait for them for ever",
                            row, axis_name(module, met));
  if (strcmp(row, "accumulate") == 0 || strcmp(row, "loss") == 0) return check_added(checking, f, op, axes);
  if (strcmp(row, "input") != 0) return PL_OK;
  const pl_ir_type *type = &f->values[op->first_output].type;
  int32_t b = pl_ir_type_find(type, pl_ir_name_of("b"));
  for (int32_t axis = 0; b >= 0 && axis < module->mesh.n_axes; axis++)
    if ((axes >> axis & 1) != 0 && type->on[axis] != b)
      return pl_ir_check_fail(checking, op->place, f, op,
                              "input \"%.60s\" is not cut on b along axis %s, and some devices along it run fewer "
                              "microbatches: they would leave out samples that others have",
                              op->path, module->mesh.axes[axis].name.text);
  return PL_OK;
}

static bool any(const pl_ir_row *row) {
  (void)row;
  return true;
}

static pl_code check_steps_of(const pl_ir_checking *checking, int32_t function, uint32_t axes, bool *seen) {
  pl_ir_inside walk;
  if (function == PL_IR_NONE || seen[function]) return PL_OK;
  seen[function] = true;
  const pl_ir_picked *picked = pl_ir_inside_pick(checking, any);
  if (picked == NULL) return pl_ir_check_no_memory(checking);
  pl_ir_inside_begin(&walk, checking->module, picked, function);
  for (const pl_ir_op *op; (op = pl_ir_inside_next(&walk)) != NULL;)
    PL_TRY(check_op(checking, walk.frames[walk.depth - 1].function, op, axes));
  return PL_OK;
}

static pl_code check_class(const pl_ir_checking *checking, const pl_ir_class *own, uint32_t axes, bool *seen) {
  for (int32_t axis = 0; axis < checking->module->mesh.n_axes; axis++)
    if ((axes >> axis & 1) != 0 && own->at[axis] != PL_IR_NONE)
      return pl_ir_check_fail(checking, own->place, NULL, NULL,
                              "class %s is at one place of axis %s, along which devices run unlike numbers of "
                              "microbatches: others hear from it in all of theirs",
                              own->name, checking->module->mesh.axes[axis].name.text);
  for (int32_t i = 0; i < own->n_chunks; i++) {
    PL_TRY(check_steps_of(checking, own->chunks[i].forward, axes, seen));
    PL_TRY(check_steps_of(checking, own->chunks[i].backward, axes, seen));
    PL_TRY(check_steps_of(checking, own->chunks[i].weights, axes, seen));
  }
  return PL_OK;
}

pl_code pl_ir_check_fewer(pl_ir_checking *checking) {
  const pl_ir_module *module = checking->module;
  if (module->n_fewer == 0) return PL_OK;
  bool *seen = PL_TAKE(checking->scratch, bool, module->n_functions + 1);
  if (seen == NULL) return pl_ir_check_no_memory(checking);
  for (int32_t i = 0; i < module->n_fewer; i++)
    PL_TRY(check_place(checking, i));
  PL_TRY(check_some_run_all(checking));
  for (int32_t c = 0; c < module->n_classes; c++)
    PL_TRY(check_class(checking, &module->classes[c], pl_ir_fewer_axes(module), seen));
  return PL_OK;
}
