/* See workloads/language/ir_fewer.h. */
#include "workloads/language/ir_fewer.h"

#include "workloads/language/ir_table.h"

int32_t pl_ir_microbatches_of(const pl_ir_module *module, uint32_t device) {
  for (int32_t i = 0; i < module->n_fewer; i++)
    if (pl_ir_mesh_is_at(&module->mesh, module->fewer[i].at, device)) return module->fewer[i].n_microbatches;
  return module->n_microbatches;
}

bool pl_ir_runs(const pl_ir_module *module, uint32_t device, int32_t microbatch) {
  return module->n_fewer == 0 || microbatch < pl_ir_microbatches_of(module, device);
}

uint32_t pl_ir_fewer_axes(const pl_ir_module *module) {
  uint32_t axes = 0;
  for (int32_t i = 0; i < module->n_fewer; i++)
    for (int32_t axis = 0; axis < module->mesh.n_axes; axis++)
      if (module->fewer[i].at[axis] != PL_IR_NONE) axes |= 1u << axis;
  return axes;
}

static int64_t places_along(const pl_ir_mesh *mesh, uint32_t axes) {
  int64_t n = 1;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if ((axes >> axis & 1) != 0) n *= mesh->axes[axis].extent;
  return n;
}

/* The device at place `at` along these axes, first axis outermost, and where `device` is along all others. */
static uint32_t device_at(const pl_ir_mesh *mesh, uint32_t axes, uint32_t device, int64_t at) {
  for (int32_t axis = mesh->n_axes - 1; axis >= 0; axis--) {
    if ((axes >> axis & 1) == 0) continue;
    uint32_t stride = pl_ir_mesh_stride(mesh, axis);
    device -= (uint32_t)pl_ir_mesh_coordinate(mesh, device, axis) * stride;
    device += (uint32_t)(at % mesh->axes[axis].extent) * stride;
    at /= mesh->axes[axis].extent;
  }
  return device;
}

double pl_ir_share_run(const pl_ir_module *module) {
  uint32_t axes = pl_ir_fewer_axes(module);
  int64_t n = places_along(&module->mesh, axes);
  double sum = 0;
  if (axes == 0) return 1;
  for (int64_t at = 0; at < n; at++)
    sum += pl_ir_microbatches_of(module, device_at(&module->mesh, axes, 0, at));
  return sum / ((double)n * module->n_microbatches);
}

uint32_t pl_ir_sample_axes(const pl_ir_module *module) {
  uint32_t axes = 0;
  int32_t input = pl_ir_row_of("input");
  for (int32_t f = 0; module->n_fewer > 0 && f < module->n_functions; f++)
    for (int32_t i = 0; i < module->functions[f]->n_ops; i++) {
      const pl_ir_op *op = &module->functions[f]->ops[i];
      if (op->row != input) continue;
      const pl_ir_type *type = &module->functions[f]->values[op->first_output].type;
      int32_t b = pl_ir_type_find(type, pl_ir_name_of("b"));
      for (int32_t axis = 0; b >= 0 && axis < module->mesh.n_axes; axis++)
        if (type->on[axis] == b) axes |= 1u << axis;
    }
  return axes;
}

pl_ir_turn pl_ir_turn_of(const pl_ir_module *module, uint32_t sample_axes, uint32_t device, int32_t microbatch) {
  pl_ir_turn turn = {.microbatch = microbatch};
  if (module->n_fewer == 0) return turn;
  turn.parts = places_along(&module->mesh, sample_axes);
  bool before = true; /* this device's own part */
  for (int64_t at = 0; at < turn.parts; at++) {
    uint32_t other = device_at(&module->mesh, sample_axes, device, at);
    int32_t n = pl_ir_microbatches_of(module, other);
    before = before && other != device;
    turn.missing += n < microbatch ? microbatch - n : 0;
    turn.missing += before && n <= microbatch;
  }
  return turn;
}
