/* See workloads/compile/ir_graph_state.h: of programs of level kernels, gradients that are sums over further devices
 * once they are reduced, as those of norms are where ranks of a tensor group have other tokens. */
#include "workloads/compile/ir_graph_state.h"

/* The op behind casts that makes an operand; NULL: an argument. */
static const pl_ir_op *maker_of(const pl_ir_function *f, const pl_ir_op *op) {
  int32_t at = f->values[op->inputs[0]].op;
  while (at != PL_IR_NONE && pl_ir_op_is(&f->ops[at], "cast"))
    at = f->values[f->ops[at].inputs[0]].op;
  return at != PL_IR_NONE ? &f->ops[at] : NULL;
}

/* The gradient that it adds up a shard of; NULL: it is no such op. */
static const pl_ir_op *gradient_of(const pl_ir_function *f, const pl_ir_op *op) {
  const pl_ir_op *shard = pl_ir_op_is(op, "all_reduce") ? maker_of(f, op) : NULL;
  if (shard == NULL || (!pl_ir_op_is(shard, "reduce_scatter") && !pl_ir_op_is(shard, "all_reduce"))) return NULL;
  const pl_ir_op *gradient = maker_of(f, shard);
  return gradient != NULL && pl_ir_op_is(gradient, "gradient") ? gradient : NULL;
}

uint32_t pl_ir_graph_tensor_axes(const pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op,
                                 uint32_t axes) {
  const pl_ir_mesh *mesh = &own->module->mesh;
  uint32_t tensor = 0;
  bool of_experts = pl_ir_type_find(&f->values[op->inputs[0]].type, pl_ir_name_of("x")) >= 0;
  if (own->framework->gradients.gradient_path != PL_GRADIENTS_ADDED || of_experts || !pl_ir_op_is(op, "all_reduce"))
    return 0;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if ((axes >> axis & 1) != 0 && pl_ir_axis_is_of_tensors(mesh->axes[axis].name.text)) tensor |= 1u << axis;
  return tensor != axes ? tensor : 0;
}

/* What is added up over tensor ranks of the gradient that the op takes; axes 0: nothing. */
static pl_ir_meeting sum_of(const pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op,
                            const pl_ir_op **gradient) {
  pl_ir_meeting made = {.axes = 0};
  *gradient = gradient_of(f, op);
  if (*gradient != NULL) return pl_ir_graph_meeting_of(own, f, op);
  const pl_ir_op *maker = pl_ir_op_is(op, "all_reduce") ? maker_of(f, op) : NULL;
  if (maker == NULL || !pl_ir_op_is(maker, "gradient")) return made;
  made = pl_ir_graph_meeting_of(own, f, op);
  made.axes = pl_ir_graph_tensor_axes(own, f, op, made.axes); /* the others are a bucket's */
  made.category = PL_CATEGORY_TENSOR;
  made.stream = PL_STREAM_FEATURE;
  *gradient = maker;
  return made;
}

static pl_ir_bucket *sum_over(pl_ir_graphing *own, const pl_ir_meeting *meeting) {
  uint32_t i = 0;
  while (i < own->n_sums && own->sums[i].meeting.axes != meeting->axes)
    i++;
  if (i == PL_IR_BUCKETS_MAX) return NULL;
  if (i < own->n_sums) return &own->sums[i];
  own->n_sums++;
  own->sums[i] = (pl_ir_bucket){.meeting = *meeting};
  own->sums[i].meeting.bytes = 0;
  return &own->sums[i];
}

/* The first of them stands for all: the gradients of what is first in the model are ready last. */
static bool put(pl_ir_graphing *own, pl_ir_bucket *sum, const char *prefix, const char *path) {
  if (sum->n++ > 0) return true;
  const char *whole = pl_ir_graph_join(own, prefix, path);
  sum->members = PL_TAKE(own->arena, pl_ir_reduction *, 1);
  if (whole == NULL || sum->members == NULL) return false;
  sum->members[0] = pl_ir_graph_reduction_of(own, whole);
  return true;
}

static bool scan(pl_ir_graphing *own, int32_t function, const char *prefix) {
  const pl_ir_function *f = own->module->functions[function];
  const pl_ir_doing *doing = pl_ir_graph_doing(own, function);
  for (int32_t i = 0; doing != NULL && i < f->n_ops; i++) {
    const pl_ir_op *op = &f->ops[i];
    if ((doing->ops[i] & PL_IR_DOES_CALL) != 0) {
      const char *inner = pl_ir_graph_join(own, prefix, op->path);
      if (inner == NULL || !scan(own, op->callee, inner)) return false;
    }
    if ((doing->ops[i] & PL_IR_DOES_MOVE) == 0) continue;
    const pl_ir_op *gradient;
    const pl_ir_meeting meeting = sum_of(own, f, op, &gradient);
    if (meeting.axes == 0) continue;
    pl_ir_bucket *sum = sum_over(own, &meeting);
    if (sum == NULL) continue; /* it meets by itself */
    sum->meeting.bytes += meeting.bytes;
    if (!put(own, sum, prefix, gradient->path)) return false;
  }
  return doing != NULL;
}

pl_code pl_ir_graph_send_sums(pl_ir_graphing *own) {
  own->n_sums = 0;
  if (own->module->level != PL_IR_KERNELS || own->now->class->update == PL_IR_NONE ||
      own->framework->gradients.gradient_path != PL_GRADIENTS_ADDED)
    return PL_OK;
  if (!scan(own, own->now->class->update, "")) return pl_ir_graph_no_memory(own);
  for (uint32_t i = 0; i < own->n_sums; i++) {
    const pl_ir_reduction *first = own->sums[i].members[0];
    const pl_ir_arrival shards = {.tasks = first != NULL ? first->tasks : NULL};
    pl_ir_arrival arrival;
    PL_TRY(pl_ir_graph_flush(own));
    PL_TRY(pl_ir_graph_meet(own, &own->sums[i].meeting, PL_IR_BEHIND_WORK, &shards, &arrival));
    own->sums[i].tasks = arrival.tasks;
  }
  return PL_OK;
}

bool pl_ir_graph_is_summed(const pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op,
                           pl_ir_arrival *output) {
  const pl_ir_op *gradient;
  if (own->n_sums == 0 || own->category != PL_CATEGORY_OPTIMIZER) return false;
  const uint32_t axes = sum_of(own, f, op, &gradient).axes;
  for (uint32_t i = 0; i < own->n_sums && axes != 0; i++)
    if (own->sums[i].meeting.axes == axes) {
      output->tasks = own->sums[i].tasks;
      return true;
    }
  return false;
}
