/* See workloads/language/ir_mask.h. */
#include "workloads/language/ir_mask.h"

#include <math.h>

#include "workloads/language/ir_walk.h"

double pl_ir_alibi_slope(int64_t head, int64_t n_heads) {
  int64_t lower = 1;
  while (2 * lower <= n_heads)
    lower *= 2;
  if (head < lower) return exp2(-8.0 * (double)(head + 1) / (double)lower);
  return exp2(-4.0 * (double)(2 * (head - lower) + 1) / (double)lower);
}

/* Of the head that the walk is at; 0: no penalties. */
static double slope_at(const pl_ir_op *op, const pl_ir_type *type, const pl_ir_walk *walk) {
  const pl_ir_attribute *heads = pl_ir_attribute_find(op, "alibi");
  int64_t head = 0, n_heads = 1;
  if (heads == NULL) return 0;
  for (int32_t i = 0; i < heads->n_names; i++) {
    int32_t dim = pl_ir_type_find(type, heads->names[i]);
    head = head * type->dims[dim].extent + walk->origin[dim] + walk->index[dim];
    n_heads *= type->dims[dim].extent;
  }
  return pl_ir_alibi_slope(head, n_heads) * pl_ir_real_of(op, "slope", 1);
}

pl_code pl_ir_compute_mask(const pl_ir_computing *computing, pl_error *error) {
  (void)error;
  const pl_ir_op *op = computing->op;
  const pl_ir_tensor *a = &computing->inputs[0], *queries = &computing->inputs[1], *keys = &computing->inputs[2];
  const pl_ir_tensor *tensors[] = {a, queries, keys};
  const pl_ir_mask mask = pl_ir_mask_of(op);
  double otherwise = pl_ir_real_of(op, "otherwise", PL_IR_MASK_OTHERWISE), *y = computing->outputs[0].data;
  if (a->n == 0) return PL_OK;
  pl_ir_walk walk = pl_ir_walk_over(a->type.rank, a->type.dims, 3, tensors);
  do {
    int64_t query = (int64_t)queries->data[walk.at[1]], key = (int64_t)keys->data[walk.at[2]];
    double away = fabs((double)(query - key));
    y[walk.at[0]] =
        pl_ir_mask_sees(&mask, query, key) ? a->data[walk.at[0]] - slope_at(op, &a->type, &walk) * away : otherwise;
  } while (pl_ir_walk_next(&walk));
  return PL_OK;
}
