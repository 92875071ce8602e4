/* See workloads/execute/holding.h. */
#include "workloads/execute/holding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

pl_holding *pl_holding_create(pl_crew *crew, const pl_ir_type *type) {
  double elements = pl_ir_type_local_elements(crew->mesh, type);
  if (elements * crew->n_devices > 1e9) return NULL; /* 8 GB: no tiny model */
  size_t n = (size_t)elements, head = sizeof(pl_holding) + crew->n_devices * sizeof(pl_ir_tensor);
  pl_holding *holding = (pl_holding *)calloc(1, head + crew->n_devices * n * sizeof(double));
  if (holding == NULL) return NULL;
  holding->references = 1;
  holding->type = *type;
  holding->bytes = elements * pl_ir_element_bytes((pl_ir_element)type->element);
  double *data = (double *)(void *)((char *)holding + head);
  for (uint32_t d = 0; d < crew->n_devices; d++) {
    pl_ir_tensor *part = &holding->parts[d];
    part->type = *type;
    part->n = (int64_t)n;
    part->data = data + d * n;
    for (int32_t i = 0; i < type->rank; i++) {
      part->extent[i] = pl_ir_type_local_extent(crew->mesh, type, i);
      part->origin[i] = pl_ir_type_local_origin(crew->mesh, type, i, crew->devices[d]);
    }
  }
  crew->live_bytes += holding->bytes;
  if (crew->live_bytes > crew->peak_bytes) crew->peak_bytes = crew->live_bytes;
  return holding;
}

void pl_holding_drop(pl_crew *crew, pl_holding *holding) {
  if (holding == NULL || --holding->references > 0) return;
  crew->live_bytes -= holding->bytes;
  free(holding);
}

uint32_t pl_crew_find(const pl_crew *crew, uint32_t device) {
  uint32_t low = 0, high = crew->n_devices;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (crew->devices[middle] < device) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  PL_ASSERT(low < crew->n_devices && crew->devices[low] == device);
  return low;
}

/* Whether this device is the first of those that hold the same. */
static bool is_first(const pl_crew *crew, const pl_ir_type *type, uint32_t device) {
  for (int32_t axis = 0; axis < crew->mesh->n_axes; axis++)
    if (type->on[axis] == PL_IR_SAME &&
        pl_ir_mesh_coordinate(crew->mesh, device, axis) != pl_ir_mesh_coordinate(crew->mesh, crew->devices[0], axis))
      return false;
  return true;
}

/* Index in the whole value of element `i` of a part. */
static size_t index_in_whole(const pl_ir_tensor *part, int64_t i) {
  size_t index = 0, stride = 1;
  for (int32_t dim = part->type.rank - 1; dim >= 0; dim--) {
    index += (size_t)(part->origin[dim] + i % part->extent[dim]) * stride;
    i /= part->extent[dim];
    stride *= (size_t)part->type.dims[dim].extent;
  }
  return index;
}

static bool is_on(const pl_crew *crew, const pl_ir_type *type, int8_t on) {
  for (int32_t axis = 0; axis < crew->mesh->n_axes; axis++)
    if (type->on[axis] == on) return true;
  return false;
}

/* The device that holds the same as `device` and is first. */
static uint32_t first_of(const pl_crew *crew, const pl_ir_type *type, uint32_t device) {
  for (int32_t axis = 0; axis < crew->mesh->n_axes; axis++)
    if (type->on[axis] == PL_IR_SAME)
      device -= (uint32_t)(pl_ir_mesh_coordinate(crew->mesh, device, axis) -
                           pl_ir_mesh_coordinate(crew->mesh, crew->devices[0], axis)) *
                pl_ir_mesh_stride(crew->mesh, axis);
  return device;
}

double pl_holding_differs(const pl_crew *crew, const pl_holding *holding) {
  double most = 0, largest = 0;
  for (uint32_t d = 0; d < crew->n_devices; d++) {
    const pl_ir_tensor *part = &holding->parts[d];
    uint32_t first = pl_crew_find(crew, first_of(crew, &holding->type, crew->devices[d]));
    for (int64_t i = 0; i < part->n; i++) {
      double other = fabs(part->data[i] - holding->parts[first].data[i]);
      if (fabs(part->data[i]) > largest) largest = fabs(part->data[i]);
      if (!(other <= most)) most = other; /* NaN too */
    }
  }
  return largest > 0 ? most / largest : most;
}

void pl_holding_whole(const pl_crew *crew, const pl_holding *holding, double *whole) {
  size_t n = (size_t)pl_ir_type_elements(&holding->type);
  bool maximum = is_on(crew, &holding->type, PL_IR_MAXIMUM);
  for (size_t i = 0; i < n; i++)
    whole[i] = maximum ? -HUGE_VAL : 0;
  for (uint32_t d = 0; d < crew->n_devices; d++) {
    const pl_ir_tensor *part = &holding->parts[d];
    if (!is_first(crew, &holding->type, crew->devices[d])) continue;
    for (int64_t i = 0; i < part->n; i++) {
      double *element = &whole[index_in_whole(part, i)];
      *element = maximum ? fmax(*element, part->data[i]) : *element + part->data[i];
    }
  }
}
