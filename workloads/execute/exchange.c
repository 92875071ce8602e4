/* See workloads/execute/exchange.h. */
#include "workloads/execute/exchange.h"

#include <math.h>
#include <string.h>

typedef struct meeting {
  const pl_crew *crew;
  const pl_holding *from;
  pl_holding *to;
  bool over[PL_IR_AXES_MAX];
  bool maximum;
} meeting;

/* Adds (or places) what `source` and `part` have in common; returns how many elements. */
static int64_t bring(const meeting *own, const pl_ir_tensor *source, pl_ir_tensor *part) {
  int32_t rank = part->type.rank;
  int64_t low[PL_IR_RANK_MAX], extent[PL_IR_RANK_MAX], n = 1;
  for (int32_t i = 0; i < rank; i++) {
    int64_t end = source->origin[i] + source->extent[i], other = part->origin[i] + part->extent[i];
    low[i] = source->origin[i] > part->origin[i] ? source->origin[i] : part->origin[i];
    extent[i] = (end < other ? end : other) - low[i];
    if (extent[i] <= 0) return 0;
    n *= extent[i];
  }
  for (int64_t k = 0; k < n; k++) {
    int64_t rest = k, in = 0, out = 0, in_stride = 1, out_stride = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
      int64_t at = low[i] + rest % extent[i];
      rest /= extent[i];
      in += (at - source->origin[i]) * in_stride;
      out += (at - part->origin[i]) * out_stride;
      in_stride *= source->extent[i];
      out_stride *= part->extent[i];
    }
    double *element = &part->data[out];
    *element = own->maximum ? fmax(*element, source->data[in]) : *element + source->data[in];
  }
  return n;
}

/* Whether `other` brings something to `device`: it differs along axes of the meeting only, and not along those where
 * both hold the same. */
static bool meets(const meeting *own, uint32_t device, uint32_t other) {
  const pl_ir_mesh *mesh = own->crew->mesh;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if ((!own->over[axis] || own->from->type.on[axis] == PL_IR_SAME) &&
        pl_ir_mesh_coordinate(mesh, device, axis) != pl_ir_mesh_coordinate(mesh, other, axis))
      return false;
  return true;
}

pl_code pl_exchange(const pl_crew *crew, int32_t n_over, const pl_ir_name *over, const pl_holding *from, pl_holding *to,
                    pl_error *error) {
  meeting own = {.crew = crew, .from = from, .to = to};
  int64_t terms = 1;
  for (int32_t i = 0; i < n_over; i++) {
    int32_t axis = pl_ir_mesh_find(crew->mesh, over[i]);
    if (axis < 0) return pl_fail(error, PL_BAD_INPUT, "the mesh has no axis %s", over[i].text);
    own.over[axis] = true;
    if (from->type.on[axis] == PL_IR_MAXIMUM) own.maximum = true;
    if (from->type.on[axis] == PL_IR_PARTIAL || from->type.on[axis] == PL_IR_MAXIMUM)
      terms *= crew->mesh->axes[axis].extent;
  }
  for (uint32_t d = 0; d < crew->n_devices; d++) {
    pl_ir_tensor *part = &to->parts[d];
    int64_t n = 0;
    for (int64_t i = 0; own.maximum && i < part->n; i++)
      part->data[i] = -HUGE_VAL;
    for (uint32_t other = 0; other < crew->n_devices; other++)
      if (meets(&own, crew->devices[d], crew->devices[other])) n += bring(&own, &from->parts[other], part);
    if (n != terms * part->n)
      return pl_fail(error, PL_BAD_INPUT, "device %u needs %lld elements and those that meet it hold %lld of them",
                     crew->devices[d], (long long)(terms * part->n), (long long)n);
  }
  return PL_OK;
}

void pl_exchange_shift(const pl_crew *crew, const pl_ir_op *op, const pl_holding *from, pl_holding *to) {
  for (uint32_t d = 0; d < crew->n_devices; d++) {
    int64_t n = 0, place = 0;
    for (uint32_t other = 0; other < crew->n_devices; other++) {
      if (!pl_ir_op_joins(crew->mesh, op, crew->devices[d], crew->devices[other])) continue;
      if (other == d) place = n;
      n++;
    }
    PL_ASSERT(n > 0); /* d itself */
    int64_t wanted = ((place - pl_ir_integer_of(op, "by", 1)) % n + n) % n;
    for (uint32_t other = 0; other < crew->n_devices; other++) {
      if (!pl_ir_op_joins(crew->mesh, op, crew->devices[d], crew->devices[other]) || wanted-- != 0) continue;
      memcpy(to->parts[d].data, from->parts[other].data, (size_t)to->parts[d].n * sizeof(double));
    }
  }
}
