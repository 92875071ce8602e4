/* See workloads/language/ir_type.h. */
#include "workloads/language/ir_type.h"

#include <string.h>

#include "core/base/status.h"

const char *pl_ir_element_name(pl_ir_element element) {
  return element == PL_IR_I32 ? "i32" : element == PL_IR_BIT ? "bit" : pl_dtype_name((pl_dtype)element);
}

double pl_ir_element_bytes(pl_ir_element element) {
  return element == PL_IR_I32 ? 4 : element == PL_IR_BIT ? 0.125 : pl_dtype_bytes((pl_dtype)element);
}

bool pl_ir_element_of(const char *name, pl_ir_element *element) {
  for (int i = 0; i < PL_IR_ELEMENT_COUNT; i++)
    if (strcmp(pl_ir_element_name((pl_ir_element)i), name) == 0) {
      *element = (pl_ir_element)i;
      return true;
    }
  return false;
}

pl_ir_name pl_ir_name_of(const char *text) {
  pl_ir_name name = {{0}};
  size_t length = strlen(text);
  PL_ASSERT(length < PL_IR_NAME_MAX);
  memcpy(name.text, text, length);
  return name;
}

int32_t pl_ir_mesh_find(const pl_ir_mesh *mesh, pl_ir_name name) {
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (pl_ir_name_equal(mesh->axes[axis].name, name)) return axis;
  return -1;
}

uint32_t pl_ir_mesh_devices(const pl_ir_mesh *mesh) {
  uint32_t n = 1;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    n *= (uint32_t)mesh->axes[axis].extent;
  return n;
}

uint32_t pl_ir_mesh_stride(const pl_ir_mesh *mesh, int32_t axis) {
  uint32_t stride = 1;
  for (int32_t inner = axis + 1; inner < mesh->n_axes; inner++)
    stride *= (uint32_t)mesh->axes[inner].extent;
  return stride;
}

int32_t pl_ir_mesh_coordinate(const pl_ir_mesh *mesh, uint32_t device, int32_t axis) {
  return (int32_t)(device / pl_ir_mesh_stride(mesh, axis) % (uint32_t)mesh->axes[axis].extent);
}

pl_ir_type pl_ir_type_of(pl_ir_element element, int32_t rank, const pl_ir_dim *dims) {
  PL_ASSERT(rank >= 0 && rank <= PL_IR_RANK_MAX);
  pl_ir_type type = {.element = (uint8_t)element, .rank = (uint8_t)rank};
  for (int axis = 0; axis < PL_IR_AXES_MAX; axis++)
    type.on[axis] = PL_IR_SAME;
  for (int32_t i = 0; i < rank; i++)
    type.dims[i] = dims[i];
  return type;
}

bool pl_ir_type_same_shape(const pl_ir_type *a, const pl_ir_type *b) {
  if (a->element != b->element || a->rank != b->rank) return false;
  for (int32_t i = 0; i < a->rank; i++)
    if (a->dims[i].extent != b->dims[i].extent || !pl_ir_name_equal(a->dims[i].name, b->dims[i].name)) return false;
  return true;
}

bool pl_ir_type_equal(const pl_ir_type *a, const pl_ir_type *b) {
  return pl_ir_type_same_shape(a, b) && memcmp(a->on, b->on, sizeof(a->on)) == 0;
}

/* Devices over which dimension `dim` is cut. */
static int64_t parts_of(const pl_ir_mesh *mesh, const pl_ir_type *type, int32_t dim) {
  int64_t parts = 1;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (type->on[axis] == dim) parts *= mesh->axes[axis].extent;
  return parts;
}

int64_t pl_ir_type_local_extent(const pl_ir_mesh *mesh, const pl_ir_type *type, int32_t dim) {
  return type->dims[dim].extent / parts_of(mesh, type, dim);
}

int64_t pl_ir_type_local_origin(const pl_ir_mesh *mesh, const pl_ir_type *type, int32_t dim, uint32_t device) {
  int64_t part = 0;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (type->on[axis] == dim) part = part * mesh->axes[axis].extent + pl_ir_mesh_coordinate(mesh, device, axis);
  return part * pl_ir_type_local_extent(mesh, type, dim);
}

double pl_ir_type_elements(const pl_ir_type *type) {
  double n = 1;
  for (int32_t i = 0; i < type->rank; i++)
    n *= (double)type->dims[i].extent;
  return n;
}

double pl_ir_type_local_elements(const pl_ir_mesh *mesh, const pl_ir_type *type) {
  double n = 1;
  for (int32_t i = 0; i < type->rank; i++)
    n *= (double)pl_ir_type_local_extent(mesh, type, i);
  return n;
}

double pl_ir_type_local_bytes(const pl_ir_mesh *mesh, const pl_ir_type *type) {
  return pl_ir_type_local_elements(mesh, type) * pl_ir_element_bytes((pl_ir_element)type->element);
}

pl_ir_type pl_ir_type_local(const pl_ir_mesh *mesh, const pl_ir_type *type) {
  pl_ir_type local = pl_ir_type_of((pl_ir_element)type->element, type->rank, type->dims);
  for (int32_t i = 0; i < type->rank; i++)
    local.dims[i].extent = pl_ir_type_local_extent(mesh, type, i);
  return local;
}

bool pl_ir_type_is_valid(const pl_ir_mesh *mesh, const pl_ir_type *type) {
  if (type->rank > PL_IR_RANK_MAX || type->element >= PL_IR_ELEMENT_COUNT) return false;
  for (int32_t axis = 0; axis < PL_IR_AXES_MAX; axis++) {
    if (type->on[axis] < PL_IR_MAXIMUM || type->on[axis] >= type->rank) return false;
    if (axis >= mesh->n_axes && type->on[axis] != PL_IR_SAME) return false;
  }
  for (int32_t i = 0; i < type->rank; i++) {
    if (type->dims[i].extent < 1 || type->dims[i].extent % parts_of(mesh, type, i) != 0) return false;
    if (pl_ir_type_find(type, type->dims[i].name) != i) return false;
  }
  return true;
}
