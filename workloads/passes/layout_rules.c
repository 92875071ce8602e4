/* See workloads/passes/layout_rules.h. */
#include "workloads/passes/layout_rules.h"

#include <string.h>

static void add_axis(pl_layout_rules *rules, const char *name, int32_t extent, pl_axis_role role, bool expert,
                     bool shard) {
  if (extent == 1) return;
  int32_t axis = rules->mesh.n_axes++;
  PL_ASSERT(axis < PL_IR_AXES_MAX);
  rules->mesh.axes[axis] = (pl_ir_axis){.name = pl_ir_name_of(name), .extent = extent};
  rules->role[axis] = (uint8_t)role;
  rules->expert[axis] = expert;
  rules->shard[axis] = shard;
}

/* An axis of `extent`, the inner `inner` of it under a name of its own. */
static void add_split(pl_layout_rules *rules, const char *name, const char *inner_name, int32_t extent, int32_t inner,
                      pl_axis_role role, bool expert_outer, bool expert_inner, bool shard) {
  add_axis(rules, name, extent / inner, role, expert_outer, shard);
  add_axis(rules, inner_name, inner, role, expert_inner, shard);
}

static int32_t greatest_common(int64_t a, int64_t b) {
  while (b != 0) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return (int32_t)a;
}

static pl_code check_order(const pl_strategy *strategy, pl_error *error) {
  bool plain = strcmp(strategy->order, "tdp") == 0 || strcmp(strategy->order, "tcdp") == 0;
  if (!plain)
    return pl_fail(error, PL_UNSUPPORTED, "order=%s: programs number their devices tcdp; leave order out",
                   strategy->order);
  if (strategy->split != NULL)
    return pl_fail(error, PL_UNSUPPORTED,
                   "split: replicas with unlike numbers of microbatches have no program yet; leave it out");
  return PL_OK;
}

pl_code pl_layout_rules_take(const pl_model *model, const pl_strategy *strategy, pl_layout_rules *rules,
                             pl_error *error) {
  int32_t cp = pl_strategy_cp(strategy), ep = pl_strategy_ep(strategy), tmp = strategy->tmp, dp = strategy->dp;
  *rules = (pl_layout_rules){.sequence = strategy->sp, .ring = cp > 1 && !strategy->cp_gather, .zero = strategy->zero};
  rules->cp = cp;
  PL_TRY(check_order(strategy, error));
  int32_t kv =
      model->n_kv_heads > 0 ? greatest_common(model->n_kv_heads, tmp) : tmp; /* ranks with heads of their own */
  int32_t tensor_experts = ep > 1 ? greatest_common(ep, tmp) : 1;
  if (ep > 1 && kv != tmp)
    return pl_fail(error, PL_UNSUPPORTED,
                   "experts over %d ranks and %lld key-value heads over %d: programs split the "
                   "tensor axis in one way only",
                   ep, (long long)model->n_kv_heads, tmp);
  int32_t outer = ep > 1 ? ep / tensor_experts : 1; /* of experts, over context and data ranks */
  if (ep > 1 && tensor_experts != tmp && outer > 1)
    return pl_fail(error, PL_UNSUPPORTED, "ep=%d: groups that take a part of the tensor ranks and several replicas",
                   ep);
  int32_t context_experts = greatest_common(outer, cp), data_experts = outer / context_experts;
  if (context_experts != cp && data_experts > 1)
    return pl_fail(error, PL_UNSUPPORTED, "ep=%d: groups that take a part of the context ranks and several replicas",
                   ep);
  int32_t copies = strategy->shard > 0 && strategy->zero > 0 ? strategy->shard : 0;
  if (copies > 0 && (cp > 1 || ep > 1))
    return pl_fail(error, PL_UNSUPPORTED, "shard=%d with context or expert parallelism has no program yet", copies);
  add_axis(rules, "pp", strategy->pp, PL_AXIS_PIPELINE, false, false);
  if (copies > 0 && copies < dp) {
    add_axis(rules, "dp", dp / copies, PL_AXIS_DATA, false, false);
    add_axis(rules, "dps", copies, PL_AXIS_DATA, false, true);
  } else {
    add_split(rules, "dp", "dpe", dp, data_experts, PL_AXIS_DATA, false, true, strategy->zero > 0);
  }
  add_split(rules, "cp", "cpe", cp, context_experts, PL_AXIS_CONTEXT, false, true, strategy->zero > 0);
  if (ep > 1) {
    add_split(rules, "tp", "tpe", tmp, tensor_experts, PL_AXIS_TENSOR, false, true, false);
  } else {
    add_split(rules, "tp", "tpr", tmp, tmp / kv, PL_AXIS_TENSOR, false, false, false);
  }
  return PL_OK;
}

/* ---- dimensions ---- */

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

void pl_layout_input(const pl_layout_rules *rules, pl_ir_type *type) {
  whole(type);
  for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++) {
    if (rules->role[axis] == PL_AXIS_DATA) cut(rules, axis, find(type, "b"), type);
    if (rules->role[axis] == PL_AXIS_CONTEXT) cut(rules, axis, find(type, "s"), type);
  }
}

static bool is_of_experts(const char *path, const pl_ir_type *type) {
  return find(type, "x") >= 0 && strstr(path, "router") == NULL;
}

static void cut_for_tensor(const pl_layout_rules *rules, const char *path, int32_t axis, pl_ir_type *type) {
  static const char *const dims[] = {"v", "g", "r", "f"};
  if (is_of_experts(path, type) || strstr(path, "router") != NULL) return;
  for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++) {
    bool rest = strcmp(rules->mesh.axes[axis].name.text, "tpr") == 0; /* heads of one key-value head */
    if (rest && dims[i][0] == 'g') continue;
    if (cut(rules, axis, find(type, dims[i]), type)) return;
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

static void cut_for_zero(const pl_layout_rules *rules, pl_ir_type *type) {
  bool over[PL_IR_AXES_MAX] = {false};
  for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++)
    over[axis] = rules->shard[axis] && type->on[axis] == PL_IR_SAME;
  int32_t dim = free_dim(rules, type, over);
  for (int32_t axis = 0; dim >= 0 && axis < rules->mesh.n_axes; axis++)
    if (over[axis]) type->on[axis] = (int8_t)dim;
}

static void parameter(const pl_layout_rules *rules, const char *path, pl_ir_type *type) {
  whole(type);
  for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++) {
    if (rules->expert[axis] && is_of_experts(path, type)) cut(rules, axis, find(type, "x"), type);
    if (rules->role[axis] == PL_AXIS_TENSOR) cut_for_tensor(rules, path, axis, type);
  }
}

void pl_layout_parameter(const pl_layout_rules *rules, const char *path, pl_ir_type *type) {
  parameter(rules, path, type);
  if (rules->zero == 3) cut_for_zero(rules, type);
}

void pl_layout_state(const pl_layout_rules *rules, const char *path, pl_ir_type *type) {
  parameter(rules, path, type);
  if (rules->zero > 0) cut_for_zero(rules, type);
}

void pl_layout_handed(const pl_layout_rules *rules, pl_ir_type *type) {
  if (type->rank == 0) return;
  for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++) {
    if (type->on[axis] >= 0 && rules->role[axis] == PL_AXIS_TENSOR && find(type, "v") == type->on[axis]) continue;
    type->on[axis] = PL_IR_SAME;
  }
  for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++) {
    if (type->on[axis] != PL_IR_SAME) continue;
    if (rules->role[axis] == PL_AXIS_DATA) cut(rules, axis, find(type, "b"), type);
    if (rules->role[axis] == PL_AXIS_CONTEXT) cut(rules, axis, find(type, "s"), type);
    if (rules->role[axis] == PL_AXIS_TENSOR && !cut(rules, axis, find(type, "v"), type) && rules->sequence)
      cut(rules, axis, find(type, "s"), type);
  }
}

bool pl_layout_may_cut(const pl_layout_rules *rules, int32_t axis, pl_ir_name dim) {
  static const char *const data[] = {"b", NULL}, *const context[] = {"s", "t", NULL},
                           *const tensor[] = {"g", "r", "v", "f", NULL};
  if (rules->expert[axis] && strcmp(dim.text, "x") == 0) return true;
  if (rules->role[axis] == PL_AXIS_TENSOR && rules->sequence && strcmp(dim.text, "s") == 0) return true;
  const char *const *allowed = rules->role[axis] == PL_AXIS_DATA      ? data
                               : rules->role[axis] == PL_AXIS_CONTEXT ? context
                               : rules->role[axis] == PL_AXIS_TENSOR  ? tensor
                                                                      : NULL;
  for (; allowed != NULL && *allowed != NULL; allowed++)
    if (strcmp(*allowed, dim.text) == 0) return true;
  return false;
}
