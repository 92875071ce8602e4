/* See workloads/language/ir_join.h. */
#include "workloads/language/ir_join.h"

#include <string.h>

#include "workloads/language/ir_arrange.h"
#include "workloads/language/ir_operands.h"

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
