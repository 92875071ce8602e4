/* See workloads/layout/layout_rules.h. */
#include "workloads/layout/layout_rules.h"

#include <string.h>

static void add_dim(uint8_t *n, pl_ir_name dims[PL_LAYOUT_DIMS_MAX], const char *dim) {
  PL_ASSERT(*n < PL_LAYOUT_DIMS_MAX);
  dims[(*n)++] = pl_ir_name_of(dim);
}

static void use_for_tensor(const pl_layout_rules *rules, const char *name, pl_layout_use *use) {
  static const char *const dims[] = {"v", "g", "r", "f"}, *const within[] = {"d", "e"};
  bool rest = strcmp(name, "tpr") == 0; /* ranks that share a key-value head */
  for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++)
    if (!rest || dims[i][0] != 'g') add_dim(&use->n_dims, use->dims, dims[i]);
  for (size_t i = 0; rest && i < sizeof(within) / sizeof(within[0]); i++)
    add_dim(&use->n_dims, use->dims, within[i]);
  add_dim(&use->n_handed, use->handed, "v");
  if (!rules->sequence) return;
  add_dim(&use->n_dims, use->dims, "s");
  add_dim(&use->n_handed, use->handed, "s");
}

void pl_layout_axis(pl_layout_rules *rules, const char *name, int32_t extent, pl_axis_role role, bool expert,
                    bool shard) {
  if (extent == 1) return;
  int32_t axis = rules->mesh.n_axes++;
  PL_ASSERT(axis < PL_IR_AXES_MAX);
  rules->mesh.axes[axis] = (pl_ir_axis){.name = pl_ir_name_of(name), .extent = extent};
  pl_layout_use *use = &rules->on[axis];
  *use = (pl_layout_use){.role = (uint8_t)role};
  rules->whole_experts = true;
  use->extra[PL_LAYOUT_STATES] = shard && rules->zero >= 1;
  use->extra[PL_LAYOUT_GRADIENTS] = shard && rules->zero >= 2;
  use->extra[PL_LAYOUT_PARAMETERS] = shard && rules->zero >= 3;
  if (role == PL_AXIS_TENSOR) use_for_tensor(rules, name, use);
  if (role == PL_AXIS_DATA || role == PL_AXIS_CONTEXT) {
    const char *dim = role == PL_AXIS_DATA ? "b" : "s";
    add_dim(&use->n_dims, use->dims, dim);
    add_dim(&use->n_handed, use->handed, dim);
  }
  if (role == PL_AXIS_CONTEXT) add_dim(&use->n_dims, use->dims, "t");
  if (expert) add_dim(&use->n_dims, use->dims, "x");
}

static int32_t find(const pl_ir_type *type, const char *dim) {
  return pl_ir_type_find(type, pl_ir_name_of(dim));
}

static int64_t parts_of(const pl_layout_rules *rules, const pl_ir_type *type, int32_t dim) {
  int64_t parts = 1;
  for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++)
    if (type->on[axis] == dim) parts *= rules->mesh.axes[axis].extent;
  return parts;
}

/* Cuts `type` over `axis` on `dim` if it is there and divides. */
static bool cut(const pl_layout_rules *rules, int32_t axis, int32_t dim, pl_ir_type *type) {
  if (dim < 0 || type->on[axis] != PL_IR_SAME) return false;
  int64_t parts = parts_of(rules, type, dim) * rules->mesh.axes[axis].extent;
  if (type->dims[dim].extent % parts != 0) return false;
  type->on[axis] = (int8_t)dim;
  return true;
}

static void whole(pl_ir_type *type) {
  for (int axis = 0; axis < PL_IR_AXES_MAX; axis++)
    type->on[axis] = PL_IR_SAME;
}

/* The first of `dims` that is there and divides. */
static bool cut_on_first(const pl_layout_rules *rules, int32_t axis, int32_t n, const pl_ir_name *dims,
                         pl_ir_type *type) {
  for (int32_t i = 0; i < n; i++)
    if (cut(rules, axis, pl_ir_type_find(type, dims[i]), type)) return true;
  return false;
}

static bool is_of_activations(const pl_layout_rules *rules, int32_t axis) {
  return rules->on[axis].role == PL_AXIS_DATA || rules->on[axis].role == PL_AXIS_CONTEXT;
}

void pl_layout_input(const pl_layout_rules *rules, pl_ir_type *type) {
  whole(type);
  for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++)
    if (is_of_activations(rules, axis)) cut_on_first(rules, axis, rules->on[axis].n_dims, rules->on[axis].dims, type);
}

bool pl_layout_is_of_experts(const char *path, const pl_ir_type *type) {
  return find(type, "x") >= 0 && strstr(path, "experts") != NULL;
}

static bool is_within_heads(pl_ir_name dim) {
  return strcmp(dim.text, "d") == 0 || strcmp(dim.text, "e") == 0;
}

/* A product's weights. Biases and scales of norms are whole on all ranks that share a head. */
static bool is_of_heads(const pl_ir_type *type) {
  return type->rank > 2 && find(type, "g") >= 0;
}

bool pl_layout_shares_heads(const pl_layout_rules *rules, int32_t axis) {
  return rules->on[axis].role == PL_AXIS_TENSOR && pl_layout_may_cut(rules, axis, pl_ir_name_of("d"));
}

bool pl_layout_cuts_head(const pl_layout_rules *rules, int32_t axis, const pl_ir_type *type) {
  return type->on[axis] >= 0 && pl_layout_shares_heads(rules, axis) && find(type, "g") >= 0 &&
         is_within_heads(type->dims[type->on[axis]].name);
}

static void cut_for_tensor(const pl_layout_rules *rules, const char *path, int32_t axis, pl_ir_type *type) {
  if (rules->whole_experts && pl_layout_is_of_experts(path, type)) return;
  if (strstr(path, "router") != NULL) return;
  for (int32_t i = 0; i < rules->on[axis].n_dims; i++) {
    pl_ir_name dim = rules->on[axis].dims[i];
    if (is_within_heads(dim) && !is_of_heads(type)) continue;
    if (cut(rules, axis, pl_ir_type_find(type, dim), type)) return;
  }
}

/* The first dimension that nothing cuts and all axes of `over` divide together; -1: none. */
static int32_t free_dim(const pl_layout_rules *rules, const pl_ir_type *type, const bool over[PL_IR_AXES_MAX]) {
  int64_t parts = 1;
  for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++)
    if (over[axis]) parts *= rules->mesh.axes[axis].extent;
  for (int32_t dim = 0; dim < type->rank; dim++)
    if (parts_of(rules, type, dim) == 1 && type->dims[dim].extent % parts == 0) return dim;
  return -1;
}

bool pl_layout_are_replicas(const pl_layout_rules *rules, int32_t axis, const char *path, const pl_ir_type *type) {
  return rules->whole_experts && rules->on[axis].role == PL_AXIS_TENSOR &&
         pl_layout_may_cut(rules, axis, pl_ir_name_of("s")) && pl_layout_is_of_experts(path, type);
}

/* Over the axes that are said for this tensor, all of them on one dimension. */
static void cut_further(const pl_layout_rules *rules, pl_layout_tensor tensor, const char *path, pl_ir_type *type) {
  bool over[PL_IR_AXES_MAX] = {false};
  for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++) {
    bool said = rules->on[axis].extra[tensor];
    bool shared =
        tensor != PL_LAYOUT_KEPT && rules->zero > (int32_t)tensor && pl_layout_are_replicas(rules, axis, path, type);
    over[axis] = (said || shared) && type->on[axis] == PL_IR_SAME;
  }
  int32_t dim = free_dim(rules, type, over);
  for (int32_t axis = 0; dim >= 0 && axis < rules->mesh.n_axes; axis++)
    if (over[axis]) type->on[axis] = (int8_t)dim;
}

static void parameter(const pl_layout_rules *rules, const char *path, pl_ir_type *type) {
  whole(type);
  for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++) {
    if (pl_layout_may_cut(rules, axis, pl_ir_name_of("x")) && pl_layout_is_of_experts(path, type))
      cut(rules, axis, find(type, "x"), type);
    if (rules->on[axis].role == PL_AXIS_TENSOR && type->on[axis] == PL_IR_SAME) cut_for_tensor(rules, path, axis, type);
  }
}

void pl_layout_parameter(const pl_layout_rules *rules, const char *path, pl_ir_type *type) {
  parameter(rules, path, type);
  cut_further(rules, PL_LAYOUT_PARAMETERS, path, type);
}

void pl_layout_state(const pl_layout_rules *rules, const char *path, pl_ir_type *type) {
  parameter(rules, path, type);
  cut_further(rules, PL_LAYOUT_STATES, path, type);
}

bool pl_layout_gradient(const pl_layout_rules *rules, const char *path, pl_ir_type *type) {
  bool further = false;
  for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++)
    further = further || rules->on[axis].extra[PL_LAYOUT_GRADIENTS] ||
              (rules->zero > PL_LAYOUT_GRADIENTS && pl_layout_are_replicas(rules, axis, path, type));
  if (!further) return false;
  parameter(rules, path, type);
  cut_further(rules, PL_LAYOUT_GRADIENTS, path, type);
  return true;
}

void pl_layout_kept(const pl_layout_rules *rules, pl_ir_type *type) {
  cut_further(rules, PL_LAYOUT_KEPT, "", type);
}

/* Whether it lies on the dimension that it is handed on with. */
static bool is_handed_so(const pl_layout_use *use, const pl_ir_type *type, int8_t on) {
  for (int32_t i = 0; i < use->n_handed; i++) {
    int32_t dim = pl_ir_type_find(type, use->handed[i]);
    if (dim >= 0) return dim == on;
  }
  return false;
}

void pl_layout_handed(const pl_layout_rules *rules, pl_ir_type *type) {
  if (type->rank == 0) return;
  for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++)
    if (rules->on[axis].role != PL_AXIS_TENSOR || !is_handed_so(&rules->on[axis], type, type->on[axis]))
      type->on[axis] = PL_IR_SAME;
  for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++)
    if (type->on[axis] == PL_IR_SAME) cut_on_first(rules, axis, rules->on[axis].n_handed, rules->on[axis].handed, type);
}

bool pl_layout_may_cut(const pl_layout_rules *rules, int32_t axis, pl_ir_name dim) {
  size_t length = strlen(dim.text), parts = strlen(PL_LAYOUT_PARTS);
  if (length > parts && strcmp(dim.text + length - parts, PL_LAYOUT_PARTS) == 0)
    memset(dim.text + length - parts, 0, parts);
  for (int32_t i = 0; i < rules->on[axis].n_dims; i++)
    if (pl_ir_name_equal(rules->on[axis].dims[i], dim)) return true;
  return false;
}
