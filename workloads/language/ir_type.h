/* Types of the program language: an element type, named dimensions, and how the value lies on a device mesh.
 *
 *   bf16[b=8/dp, s=1024/cp/tp, h=4096] partial(tp)
 *
 * Extents are those of the whole value. `/axis` behind a dimension: it is cut into as many equal parts as the axis has
 * devices, over several axes outermost (first in the mesh) first; each device holds one part. partial(axis): devices
 * along the axis hold terms of a sum, maximum(axis): candidates for a maximum. Along every other axis devices hold the
 * same. A dimension's name is its meaning: ops match operands by names, never by position, so that the layout rule of
 * an op can be read off its dimensions (ir_table.h).
 *
 * The alternative, positional dimensions with a transpose wherever two ops disagree, was rejected: named products need
 * no transposes at all, and every sharding rule would have to be written per op.
 */
#ifndef PL_WORKLOADS_IR_TYPE_H
#define PL_WORKLOADS_IR_TYPE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/cluster/device_profile.h"

enum { PL_IR_RANK_MAX = 8, PL_IR_AXES_MAX = 8, PL_IR_NAME_MAX = 24 };

/* pl_dtype's types and those of data that is no number to compute with. */
typedef enum pl_ir_element {
  PL_IR_F32 = PL_DTYPE_FP32,
  PL_IR_TF32 = PL_DTYPE_TF32,
  PL_IR_F16 = PL_DTYPE_FP16,
  PL_IR_BF16 = PL_DTYPE_BF16,
  PL_IR_F8 = PL_DTYPE_FP8,
  PL_IR_F4 = PL_DTYPE_FP4,
  PL_IR_I32 = PL_DTYPE_COUNT, /* token ids, positions */
  PL_IR_BIT,                  /* yes or no: signs that a derivative needs */
  PL_IR_ELEMENT_COUNT
} pl_ir_element;

/* "fp32", "bf16", "i32" ...: pl_dtype_name's words. */
const char *pl_ir_element_name(pl_ir_element element);
double pl_ir_element_bytes(pl_ir_element element);
/* Whether it can be computed with. */
static inline bool pl_ir_element_is_number(pl_ir_element element) {
  return element < PL_IR_I32;
}
/* Whether only products are computed in it. */
static inline bool pl_ir_element_is_narrow(pl_ir_element element) {
  return element == PL_IR_F8 || element == PL_IR_F4;
}
/* The element of this name. False: there is none. */
bool pl_ir_element_of(const char *name, pl_ir_element *element);

/* What lies along an axis of the mesh; 0 .. rank - 1: that dimension is cut over it. */
enum { PL_IR_SAME = -1, PL_IR_PARTIAL = -2, PL_IR_MAXIMUM = -3 };

/* A short name, stored in place: compared and copied as a value; unused bytes are zero. */
typedef struct pl_ir_name {
  char text[PL_IR_NAME_MAX];
} pl_ir_name;

pl_ir_name pl_ir_name_of(const char *text); /* asserts that it fits */
static inline bool pl_ir_name_equal(pl_ir_name a, pl_ir_name b) {
  return memcmp(a.text, b.text, PL_IR_NAME_MAX) == 0;
}
/* Whether an axis of a mesh is one of a tensor group, as tuples and trees name theirs (t, tp): whatever begins so. */
static inline bool pl_ir_axis_is_of_tensors(const char *name) {
  return name[0] == 't';
}

#define PL_IR_EXTENT_MAX (INT64_C(1) << 53) /* doubles count so far */

typedef struct pl_ir_dim {
  pl_ir_name name;
  int64_t extent; /* of the whole value, at least 1 */
} pl_ir_dim;

typedef struct pl_ir_type {
  uint8_t element;           /* pl_ir_element */
  uint8_t rank;              /* 0: one number */
  int8_t on[PL_IR_AXES_MAX]; /* per axis of the module's mesh; PL_IR_SAME for axes that it does not have */
  pl_ir_dim dims[PL_IR_RANK_MAX];
} pl_ir_type;

/* Devices as a grid: device index = row-major over the axes, the last axis innermost. No axes: one device. */
typedef struct pl_ir_axis {
  pl_ir_name name;
  int32_t extent;
} pl_ir_axis;

typedef struct pl_ir_mesh {
  int32_t n_axes;
  pl_ir_axis axes[PL_IR_AXES_MAX];
} pl_ir_mesh;

int32_t pl_ir_mesh_find(const pl_ir_mesh *mesh, pl_ir_name name); /* index of an axis, -1 = none */
uint32_t pl_ir_mesh_devices(const pl_ir_mesh *mesh);
/* Coordinate of device `device` along `axis`. */
int32_t pl_ir_mesh_coordinate(const pl_ir_mesh *mesh, uint32_t device, int32_t axis);
/* Devices between neighbours along `axis`. */
uint32_t pl_ir_mesh_stride(const pl_ir_mesh *mesh, int32_t axis);

/* A value held whole by everybody. */
pl_ir_type pl_ir_type_of(pl_ir_element element, int32_t rank, const pl_ir_dim *dims);
/* Index of a dimension, -1 = none. */
static inline int32_t pl_ir_type_find(const pl_ir_type *type, pl_ir_name name) {
  for (int32_t i = 0; i < type->rank; i++)
    if (type->dims[i].name.text[0] == name.text[0] && pl_ir_name_equal(type->dims[i].name, name)) return i;
  return -1;
}
/* The extent of a dimension; 1: it has none of this name. */
static inline int64_t pl_ir_type_extent(const pl_ir_type *type, const char *dim) {
  int32_t at = pl_ir_type_find(type, pl_ir_name_of(dim));
  return at >= 0 ? type->dims[at].extent : 1;
}
bool pl_ir_type_equal(const pl_ir_type *a, const pl_ir_type *b);
/* The same element, names and extents, in the same order, wherever they lie. */
bool pl_ir_type_same_shape(const pl_ir_type *a, const pl_ir_type *b);
/* What one device holds of dimension `dim`. The axes over which it is cut divide it (pl_ir_type_is_valid). */
int64_t pl_ir_type_local_extent(const pl_ir_mesh *mesh, const pl_ir_type *type, int32_t dim);
/* Index of the first element that `device` holds of dimension `dim`. */
int64_t pl_ir_type_local_origin(const pl_ir_mesh *mesh, const pl_ir_type *type, int32_t dim, uint32_t device);
double pl_ir_type_elements(const pl_ir_type *type);                               /* of the whole */
double pl_ir_type_local_elements(const pl_ir_mesh *mesh, const pl_ir_type *type); /* of one device */
double pl_ir_type_local_bytes(const pl_ir_mesh *mesh, const pl_ir_type *type);
/* The part of one device as a value of its own, whole. */
pl_ir_type pl_ir_type_local(const pl_ir_mesh *mesh, const pl_ir_type *type);
/* Dimensions have different names and extents of 1 and more, axes that cut them divide them. */
bool pl_ir_type_is_valid(const pl_ir_mesh *mesh, const pl_ir_type *type);

#endif
