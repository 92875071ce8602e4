/* See workloads/language/ir_arrange.h. */
#include "workloads/language/ir_arrange.h"

pl_ir_tensor pl_ir_order_empty(void) {
  return (pl_ir_tensor){.n = 1};
}

void pl_ir_order_push(pl_ir_tensor *order, const pl_ir_tensor *tensor, int32_t dim) {
  int32_t at = order->type.rank++;
  PL_ASSERT(at < PL_IR_RANK_MAX);
  order->type.dims[at] = tensor->type.dims[dim];
  order->extent[at] = tensor->extent[dim];
  order->origin[at] = tensor->origin[dim];
  order->n *= tensor->extent[dim];
}

int64_t pl_ir_order_push_named(pl_ir_tensor *order, const pl_ir_tensor *tensor, const pl_ir_op *op,
                               const char *attribute, bool named) {
  int64_t extent = 1;
  for (int32_t i = 0; i < tensor->type.rank; i++) {
    if (pl_ir_op_has_name(op, attribute, tensor->type.dims[i].name) != named) continue;
    pl_ir_order_push(order, tensor, i);
    extent *= tensor->extent[i];
  }
  return extent;
}

/* Elements of `from` between neighbours along each dimension of `like`; 0 along those that it lacks. */
static void strides_in(const pl_ir_tensor *from, const pl_ir_tensor *like, int64_t strides[PL_IR_RANK_MAX]) {
  int64_t stride = 1;
  for (int32_t i = 0; i < like->type.rank; i++)
    strides[i] = 0;
  for (int32_t i = from->type.rank - 1; i >= 0; i--) {
    int32_t at = pl_ir_type_find(&like->type, from->type.dims[i].name);
    PL_ASSERT(at >= 0 && like->extent[at] == from->extent[i]);
    strides[at] = stride;
    stride *= from->extent[i];
  }
}

void pl_ir_arrange(const pl_ir_tensor *from, const pl_ir_tensor *like, double *to) {
  int64_t strides[PL_IR_RANK_MAX], index[PL_IR_RANK_MAX] = {0}, at = 0;
  int32_t last = like->type.rank - 1;
  strides_in(from, like, strides);
  if (last < 0) {
    to[0] = from->data[0];
    return;
  }
  for (int64_t done = 0; done < like->n;) {
    for (int64_t i = 0; i < like->extent[last]; i++)
      to[done++] = from->data[at + i * strides[last]];
    for (int32_t i = last - 1; i >= 0; i--) {
      at += strides[i];
      if (++index[i] < like->extent[i]) break;
      at -= strides[i] * like->extent[i];
      index[i] = 0;
    }
  }
}

void pl_ir_arrange_sum(const pl_ir_tensor *like, const double *from, pl_ir_tensor *into) {
  int64_t strides[PL_IR_RANK_MAX], index[PL_IR_RANK_MAX] = {0}, at = 0;
  strides_in(into, like, strides);
  for (int64_t done = 0; done < like->n; done++) {
    into->data[at] += from[done];
    for (int32_t i = like->type.rank - 1; i >= 0; i--) {
      at += strides[i];
      if (++index[i] < like->extent[i]) break;
      at -= strides[i] * like->extent[i];
      index[i] = 0;
    }
  }
}

const double *pl_ir_arranged(pl_arena *scratch, const pl_ir_tensor *from, const pl_ir_tensor *like) {
  bool same = from->type.rank == like->type.rank;
  for (int32_t i = 0; same && i < from->type.rank; i++)
    same = pl_ir_name_equal(from->type.dims[i].name, like->type.dims[i].name);
  if (same) return from->data;
  double *to = PL_TAKE(scratch, double, like->n);
  if (to != NULL) pl_ir_arrange(from, like, to);
  return to;
}
