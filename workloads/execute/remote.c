/* See workloads/execute/remote.h. A part that is cut on a dimension is blocks of [outer, here, inner]; the parts of a
 * group along that dimension are put together, or taken apart, block by block. */
#include "workloads/execute/remote.h"

#include <string.h>

bool pl_remote_is_narrow(const pl_execution *own, const pl_ir_type *type) {
  return own->options.single && pl_ir_element_is_number((pl_ir_element)type->element);
}

static pl_code group_along(pl_execution *own, const bool along[PL_IR_AXES_MAX], pl_peer_group *group, uint32_t *at,
                           pl_error *error) {
  const pl_ir_mesh *mesh = &own->module->mesh;
  uint32_t device = own->options.peers->device, n = 1;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (along[axis]) n *= (uint32_t)mesh->axes[axis].extent;
  uint32_t *devices = PL_TAKE(&own->scratch, uint32_t, n);
  if (devices == NULL) return pl_execution_no_memory(error);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t rest = i;
    devices[i] = device;
    for (int32_t axis = mesh->n_axes - 1; axis >= 0; axis--) {
      if (!along[axis]) continue;
      uint32_t extent = (uint32_t)mesh->axes[axis].extent, stride = pl_ir_mesh_stride(mesh, axis);
      devices[i] += (rest % extent) * stride - (uint32_t)pl_ir_mesh_coordinate(mesh, device, axis) * stride;
      rest /= extent;
    }
    if (devices[i] == device) *at = i;
  }
  *group = (pl_peer_group){.n = n, .devices = devices};
  return PL_OK;
}

pl_code pl_remote_group(pl_execution *own, const pl_ir_op *op, pl_peer_group *group, uint32_t *at, pl_error *error) {
  const pl_ir_mesh *mesh = &own->module->mesh;
  bool along[PL_IR_AXES_MAX] = {false};
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    along[axis] = pl_ir_op_has_name(op, "over", mesh->axes[axis].name);
  return group_along(own, along, group, at, error);
}

/* Copies n parts that lie behind each other into a value that they are slices of along `dim`, or back. */
static void slices(const pl_ir_tensor *value, int32_t dim, uint32_t n, double *parts, bool together) {
  PL_ASSERT(dim >= 0 && n > 0);
  int64_t outer = 1, inner = 1, here = value->extent[dim] / n;
  for (int32_t i = 0; i < value->type.rank; i++)
    *(i < dim ? &outer : &inner) *= i == dim ? 1 : value->extent[i];
  size_t bytes = (size_t)(here * inner) * sizeof(double);
  for (uint32_t part = 0; part < n; part++)
    for (int64_t o = 0; o < outer; o++) {
      double *in_value = value->data + (o * n + part) * here * inner;
      double *in_part = parts + ((int64_t)part * outer + o) * here * inner;
      memcpy(together ? in_value : in_part, together ? in_part : in_value, bytes);
    }
}

static int32_t dim_of(const pl_ir_op *op, const char *attribute, const pl_ir_type *type) {
  return pl_ir_type_find(type, pl_ir_attribute_find(op, attribute)->names[0]);
}

static pl_code all_reduce(pl_execution *own, const pl_ir_op *op, const pl_ir_tensor *from, pl_ir_tensor *to,
                          pl_error *error) {
  const pl_peers *peers = own->options.peers;
  const pl_ir_mesh *mesh = &own->module->mesh;
  bool along[PL_IR_AXES_MAX] = {false}, maximum = false;
  pl_peer_group group = {0};
  uint32_t at = 0;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
    bool over = pl_ir_op_has_name(op, "over", mesh->axes[axis].name);
    along[axis] = over && (from->type.on[axis] == PL_IR_PARTIAL || from->type.on[axis] == PL_IR_MAXIMUM);
    maximum = maximum || (along[axis] && from->type.on[axis] == PL_IR_MAXIMUM);
  }
  PL_TRY(group_along(own, along, &group, &at, error));
  memcpy(to->data, from->data, (size_t)from->n * sizeof(double));
  return peers->ops->all_reduce(peers->own, &group, pl_remote_is_narrow(own, &from->type), maximum, to->data, to->n,
                                error);
}

static pl_code move(pl_execution *own, const pl_ir_op *op, const pl_ir_tensor *from, pl_ir_tensor *to,
                    pl_error *error) {
  const pl_peers *peers = own->options.peers;
  const char *name = pl_ir_row_at(op->row)->name;
  bool narrow = pl_remote_is_narrow(own, &from->type);
  pl_peer_group group = {0};
  uint32_t at = 0;
  if (strcmp(name, "all_reduce") == 0) return all_reduce(own, op, from, to, error);
  PL_TRY(pl_remote_group(own, op, &group, &at, error));
  if (strcmp(name, "shift") == 0)
    return pl_remote_turn(own, &group, at, pl_ir_integer_of(op, "by", 1), from, to, error);
  double *sent = PL_TAKE(&own->scratch, double, from->n), *got = PL_TAKE(&own->scratch, double, to->n);
  if (sent == NULL || got == NULL) return pl_execution_no_memory(error);
  if (strcmp(name, "reduce_scatter") == 0) {
    slices(from, dim_of(op, "dim", &from->type), group.n, sent, false);
    return peers->ops->reduce_scatter(peers->own, &group, narrow, sent, to->data, to->n, error);
  }
  if (strcmp(name, "all_gather") == 0) {
    PL_TRY(peers->ops->all_gather(peers->own, &group, narrow, from->data, got, from->n, error));
    slices(to, dim_of(op, "dim", &to->type), group.n, got, true);
    return PL_OK;
  }
  if (strcmp(name, "all_to_all") != 0) return pl_fail(error, PL_UNSUPPORTED, "%s between processes", name);
  slices(from, dim_of(op, "to", &from->type), group.n, sent, false);
  PL_TRY(peers->ops->all_to_all(peers->own, &group, narrow, sent, got, to->n / group.n, error));
  slices(to, dim_of(op, "from", &to->type), group.n, got, true);
  return PL_OK;
}

pl_code pl_remote_collective(pl_execution *own, pl_member *m, pl_frame *f, const pl_ir_op *op, pl_error *error) {
  (void)m;
  pl_arena_mark mark = pl_arena_mark_here(&own->scratch);
  pl_ir_tensor *to = &f->values[op->first_output]->parts[0];
  PL_TRY(move(own, op, &f->values[op->inputs[0]]->parts[0], to, error));
  pl_arena_release_to(&own->scratch, mark);
  return PL_OK;
}

pl_code pl_remote_turn(pl_execution *own, const pl_peer_group *group, uint32_t at, int64_t by, const pl_ir_tensor *from,
                       pl_ir_tensor *to, pl_error *error) {
  const pl_peers *peers = own->options.peers;
  bool narrow = pl_remote_is_narrow(own, &from->type);
  int64_t n = group->n, away = ((by % n) + n) % n;
  if (away == 0) {
    memcpy(to->data, from->data, (size_t)from->n * sizeof(double));
    return PL_OK;
  }
  PL_TRY(peers->ops->send(peers->own, group->devices[(at + away) % n], 0, narrow, from->data, from->n, error));
  return peers->ops->receive(peers->own, group->devices[(at + n - away) % n], 0, narrow, to->data, to->n, error);
}

/* ---- between classes ---- */

/* The device of another class with the same other coordinates: the same place in its crew. */
static uint32_t counterpart(const pl_member *m, const pl_member *other) {
  return other->all[m->position];
}

/* One for each tag and microbatch; 0 is for what goes round. */
static int64_t channel_of(const pl_execution *own, const pl_member *m, const pl_ir_op *op) {
  const char *tag = pl_ir_text_of(op, "tag");
  int64_t index = 0;
  while (strcmp(own->tags[index], tag) != 0)
    index++;
  return 1 + index * own->module->n_microbatches + m->microbatch;
}

static pl_code sum_classes(pl_execution *own, pl_member *m, pl_frame *f, const pl_ir_op *op, pl_error *error) {
  const pl_peers *peers = own->options.peers;
  const pl_ir_attribute *classes = pl_ir_attribute_find(op, "classes");
  uint32_t *devices = PL_TAKE(&own->scratch, uint32_t, classes->n_names), n = 0;
  pl_holding *sum = pl_holding_create(&m->crew, &f->function->values[op->first_output].type);
  f->values[op->first_output] = sum;
  if (devices == NULL || sum == NULL) return pl_execution_no_memory(error);
  for (int32_t i = 0; i < classes->n_names; i++) {
    uint32_t device = counterpart(m, pl_execution_member(own, classes->names[i].text)), at = n++;
    for (; at > 0 && devices[at - 1] > device; at--)
      devices[at] = devices[at - 1];
    devices[at] = device;
  }
  pl_ir_tensor *to = &sum->parts[0];
  memcpy(to->data, f->values[op->inputs[0]]->parts[0].data, (size_t)to->n * sizeof(double));
  const pl_peer_group group = {.n = n, .devices = devices};
  return peers->ops->all_reduce(peers->own, &group, pl_remote_is_narrow(own, &to->type), false, to->data, to->n, error);
}

static pl_code receive(pl_execution *own, pl_member *m, pl_frame *f, const pl_ir_op *op, pl_error *error) {
  const pl_peers *peers = own->options.peers;
  const pl_ir_type *type = &f->function->values[op->first_output].type;
  pl_holding *made = pl_holding_create(&m->crew, type);
  f->values[op->first_output] = made;
  if (made == NULL) return pl_execution_no_memory(error);
  uint32_t from = counterpart(m, pl_execution_member(own, pl_ir_text_of(op, "from")));
  return peers->ops->receive(peers->own, from, channel_of(own, m, op), pl_remote_is_narrow(own, type),
                             made->parts[0].data, made->parts[0].n, error);
}

pl_code pl_remote_mail(pl_execution *own, pl_member *m, pl_frame *f, const pl_ir_op *op, pl_special what,
                       pl_error *error) {
  const pl_peers *peers = own->options.peers;
  if (what == PL_SPECIAL_RECEIVE) return receive(own, m, f, op, error);
  pl_arena_mark mark = pl_arena_mark_here(&own->scratch);
  if (what == PL_SPECIAL_SUM_CLASSES) {
    PL_TRY(sum_classes(own, m, f, op, error));
    pl_arena_release_to(&own->scratch, mark);
    return PL_OK;
  }
  const pl_ir_tensor *part = &f->values[op->inputs[0]]->parts[0];
  uint32_t to = counterpart(m, pl_execution_member(own, pl_ir_text_of(op, "to")));
  return peers->ops->send(peers->own, to, channel_of(own, m, op), pl_remote_is_narrow(own, &part->type), part->data,
                          part->n, error);
}
