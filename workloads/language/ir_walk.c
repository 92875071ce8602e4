/* See workloads/language/ir_walk.h. */
#include "workloads/language/ir_walk.h"

#include <inttypes.h>

#include "workloads/language/ir_operands.h"

int64_t pl_ir_tensor_step(const pl_ir_tensor *tensor, pl_ir_name dim) {
  int64_t step = 1;
  for (int32_t i = tensor->type.rank - 1; i >= 0; i--) {
    if (pl_ir_name_equal(tensor->type.dims[i].name, dim)) return step;
    step *= tensor->extent[i];
  }
  return 0;
}

pl_code pl_ir_tensor_is_whole(const pl_ir_computing *computing, const pl_ir_tensor *tensor, pl_ir_name dim,
                              pl_error *error) {
  int32_t i = pl_ir_type_find(&tensor->type, dim);
  if (tensor->extent[i] == tensor->type.dims[i].extent) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s is given %" PRId64 " of %s=%" PRId64 ", which it needs whole",
                 pl_ir_op_name(computing->op), tensor->extent[i], dim.text, tensor->type.dims[i].extent);
}

pl_ir_walk pl_ir_walk_over(int32_t n_dims, const pl_ir_dim *dims, int32_t n_tensors,
                           const pl_ir_tensor *const *tensors) {
  PL_ASSERT(n_tensors <= PL_IR_WALK_TENSORS);
  pl_ir_walk walk = {.rank = n_dims, .n_tensors = n_tensors};
  for (int32_t i = 0; i < n_dims; i++) {
    for (int32_t k = 0; k < n_tensors; k++) {
      int32_t own = pl_ir_type_find(&tensors[k]->type, dims[i].name);
      if (own < 0) continue;
      PL_ASSERT(walk.extent[i] == 0 || walk.extent[i] == tensors[k]->extent[own]);
      walk.extent[i] = tensors[k]->extent[own];
      walk.origin[i] = tensors[k]->origin[own];
      walk.whole[i] = tensors[k]->type.dims[own].extent;
      walk.step[k][i] = pl_ir_tensor_step(tensors[k], dims[i].name);
    }
    PL_ASSERT(walk.extent[i] > 0);
  }
  return walk;
}

bool pl_ir_walk_next(pl_ir_walk *walk) {
  for (int32_t i = walk->rank - 1; i >= 0; i--) {
    bool more = ++walk->index[i] < walk->extent[i];
    for (int32_t k = 0; k < walk->n_tensors; k++)
      walk->at[k] += more ? walk->step[k][i] : -walk->step[k][i] * (walk->extent[i] - 1);
    if (more) return true;
    walk->index[i] = 0;
  }
  return false;
}

int64_t pl_ir_walk_count(const pl_ir_walk *walk) {
  int64_t n = 1;
  for (int32_t i = 0; i < walk->rank; i++)
    n *= walk->extent[i];
  return n;
}

int64_t pl_ir_walk_place(const pl_ir_walk *walk) {
  int64_t place = 0;
  for (int32_t i = 0; i < walk->rank; i++)
    place = place * walk->whole[i] + walk->origin[i] + walk->index[i];
  return place;
}
