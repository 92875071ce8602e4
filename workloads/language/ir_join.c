/* See workloads/language/ir_join.h. */
#include "workloads/language/ir_join.h"

#include <string.h>

#include "workloads/language/ir_arrange.h"
#include "workloads/language/ir_operands.h"
#include "workloads/language/ir_walk.h"

/* A tensor along one dimension: data[outer, extent, inner]. */
typedef struct along {
  int64_t outer, extent, inner;
} along;

static along along_of(const pl_ir_tensor *tensor, pl_ir_name dim) {
  int32_t at = pl_ir_type_find(&tensor->type, dim);
  along of = {.outer = 1, .extent = tensor->extent[at], .inner = 1};
  for (int32_t i = 0; i < tensor->type.rank; i++) {
    if (i < at) of.outer *= tensor->extent[i];
    if (i > at) of.inner *= tensor->extent[i];
  }
  return of;
}

pl_code pl_ir_compute_concatenate(const pl_ir_computing *computing, pl_error *error) {
  pl_ir_name over = pl_ir_one_name_of(computing->op, "over");
  pl_ir_tensor *out = &computing->outputs[0];
  const along to = along_of(out, over);
  int64_t at = 0;
  for (int32_t k = 0; k < computing->op->n_inputs; k++) {
    const pl_ir_tensor *in = &computing->inputs[k];
    pl_ir_tensor order = pl_ir_order_empty(); /* the operand's extents in the result's order */
    for (int32_t i = 0; i < out->type.rank; i++)
      pl_ir_order_push(&order, in, pl_ir_type_find(&in->type, out->type.dims[i].name));
    const double *from = pl_ir_arranged(computing->scratch, in, &order);
    if (from == NULL) return pl_fail_memory(error, "a concatenation");
    const along of = along_of(&order, over);
    for (int64_t o = 0; o < to.outer; o++)
      memcpy(&out->data[(o * to.extent + at) * to.inner], &from[o * of.extent * of.inner],
             (size_t)(of.extent * of.inner) * sizeof(double));
    at += of.extent;
  }
  return PL_OK;
}

/* Element i of `piece` along `over` is element i * n + at of `whole`, whose elements they are in turn. Between parts of
 * one cut of both: piece and whole have like parts then. */
static void turn(const pl_ir_computing *computing, const pl_ir_tensor *piece, const pl_ir_tensor *whole, int64_t n,
                 int64_t at, bool gathers) {
  pl_ir_name over = pl_ir_one_name_of(computing->op, "over");
  int64_t step = pl_ir_tensor_step(whole, over), own_step = pl_ir_tensor_step(piece, over);
  int64_t extent = piece->extent[pl_ir_type_find(&piece->type, over)];
  const pl_ir_type rest = pl_ir_type_without_dim(&piece->type, over);
  PL_ASSERT(whole->extent[pl_ir_type_find(&whole->type, over)] == n * extent);
  pl_ir_walk walk = pl_ir_walk_over(rest.rank, rest.dims, 2, (const pl_ir_tensor *[]){whole, piece});
  do {
    for (int64_t i = 0; i < extent; i++) {
      double *large = &whole->data[walk.at[0] + (i * n + at) * step], *small = &piece->data[walk.at[1] + i * own_step];
      *(gathers ? large : small) = gathers ? *small : *large;
    }
  } while (pl_ir_walk_next(&walk));
}

pl_code pl_ir_compute_deal(const pl_ir_computing *computing, pl_error *error) {
  int32_t n = computing->op->n_outputs;
  (void)error;
  for (int32_t k = 0; k < n; k++)
    turn(computing, &computing->outputs[k], &computing->inputs[0], n, k, false);
  return PL_OK;
}

pl_code pl_ir_compute_interleave(const pl_ir_computing *computing, pl_error *error) {
  int32_t n = computing->op->n_inputs;
  (void)error;
  for (int32_t k = 0; k < n; k++)
    turn(computing, &computing->inputs[k], &computing->outputs[0], n, k, true);
  return PL_OK;
}

/* The dimensions that `apart` has where `joined` has one, beside each other in that one's place: the same elements in
 * the same order. */
static pl_ir_tensor beside(const pl_ir_tensor *joined, pl_ir_name one, const pl_ir_tensor *apart,
                           const pl_ir_attribute *names) {
  pl_ir_tensor order = pl_ir_order_empty();
  for (int32_t i = 0; i < joined->type.rank; i++) {
    if (!pl_ir_name_equal(joined->type.dims[i].name, one)) {
      pl_ir_order_push(&order, joined, i);
      continue;
    }
    for (int32_t k = 0; k < names->n_names; k++)
      pl_ir_order_push(&order, apart, pl_ir_type_find(&apart->type, names->names[k]));
  }
  return order;
}

pl_code pl_ir_compute_split(const pl_ir_computing *computing, pl_error *error) {
  (void)error;
  const pl_ir_tensor *in = &computing->inputs[0];
  pl_ir_tensor *out = &computing->outputs[0];
  pl_ir_tensor order =
      beside(in, pl_ir_one_name_of(computing->op, "from"), out, pl_ir_attribute_find(computing->op, "to"));
  order.data = in->data;
  pl_ir_arrange(&order, out, out->data);
  return PL_OK;
}

pl_code pl_ir_compute_join(const pl_ir_computing *computing, pl_error *error) {
  (void)error;
  pl_ir_tensor *out = &computing->outputs[0];
  const pl_ir_tensor order = beside(out, pl_ir_one_name_of(computing->op, "to"), &computing->inputs[0],
                                    pl_ir_attribute_find(computing->op, "from"));
  pl_ir_arrange(&computing->inputs[0], &order, out->data);
  return PL_OK;
}

pl_code pl_ir_compute_triangle(const pl_ir_computing *computing, pl_error *error) {
  const pl_ir_attribute *from = pl_ir_attribute_find(computing->op, "from");
  bool backward = pl_ir_type_find(&computing->inputs[0].type, from->names[0]) < 0;
  const pl_ir_tensor *in = &computing->inputs[0], *out = &computing->outputs[0];
  const pl_ir_tensor *square = backward ? out : in, *triangle = backward ? in : out;
  pl_ir_name to = pl_ir_one_name_of(computing->op, "to");
  PL_TRY(pl_ir_tensor_is_whole(computing, triangle, to, error));
  PL_TRY(pl_ir_tensor_is_whole(computing, square, from->names[0], error));
  PL_TRY(pl_ir_tensor_is_whole(computing, square, from->names[1], error));
  int64_t row = pl_ir_tensor_step(square, from->names[0]), column = pl_ir_tensor_step(square, from->names[1]);
  int64_t n = square->extent[pl_ir_type_find(&square->type, from->names[0])], step = pl_ir_tensor_step(triangle, to);
  bool itself = pl_ir_integer_of(computing->op, "itself", 0) != 0;
  const pl_ir_type rest = pl_ir_type_without_dim(&triangle->type, to);
  pl_ir_walk walk = pl_ir_walk_over(rest.rank, rest.dims, 2, (const pl_ir_tensor *[]){square, triangle});
  do {
    int64_t at = walk.at[1];
    for (int64_t i = 0; i < n; i++)
      for (int64_t k = 0; k < i + itself; k++, at += step) {
        double *element = &square->data[walk.at[0] + i * row + k * column];
        *(backward ? element : &triangle->data[at]) = backward ? triangle->data[at] : *element;
      }
  } while (pl_ir_walk_next(&walk));
  return PL_OK;
}
