/* Matrix products with weights, and the collectives of the tensor group that they need.
 *
 * A product whose weight is cut on a dimension of its output is split by columns, one whose weight is cut on a
 * dimension that is summed over by rows (Shoeybi et al. 2019, section 3). A bias of what is not a partial sum is added
 * by the product's kernel. What a product split by columns gathers is gathered by the kernel that is its own (names,
 * place and type, fp8, are the product's), so all-gathers are not lowered where they stand but where they are read.
 */
#include <string.h>

#include "core/cluster/cluster.h"
#include "workloads/language/ir_product.h"
#include "workloads/lower/lowering.h"

bool pl_lower_has_dim(const pl_lowering *to, int32_t value, pl_ir_name dim) {
  return pl_ir_type_find(pl_read_type(&to->read, value), dim) >= 0;
}

static bool sums_over(const pl_lowering *to, int32_t op, pl_ir_name dim) {
  return pl_ir_op_has_name(pl_read_op(&to->read, op), "over", dim);
}

static pl_parallel parallel_of(const pl_lowering *to, int32_t op) {
  int32_t weight = pl_read_op(&to->read, op)->inputs[1];
  const pl_ir_type *type = pl_read_type(&to->read, weight);
  for (int32_t axis = 0; axis < to->read.mesh->n_axes; axis++)
    if (type->on[axis] >= 0 && pl_ir_axis_is_of_tensors(to->read.mesh->axes[axis].name.text))
      return sums_over(to, op, type->dims[type->on[axis]].name) ? PL_PARALLEL_ROW : PL_PARALLEL_COLUMN;
  return PL_PARALLEL_NONE;
}

/* What this rank has of an operand, of all sequences of the microbatch. */
static pl_ir_type local_of(const pl_lowering *to, int32_t value) {
  pl_ir_type type = pl_ir_type_local(to->read.mesh, pl_read_type(&to->read, value));
  int32_t batch = pl_ir_type_find(&type, pl_ir_name_of("b"));
  if (batch >= 0) type.dims[batch].extent *= to->tape->mbs;
  return type;
}

pl_linear pl_lower_shape(const pl_lowering *to, int32_t op) {
  const int32_t *inputs = pl_read_op(&to->read, op)->inputs;
  const pl_ir_type read = local_of(to, inputs[0]), weight = local_of(to, inputs[1]);
  const pl_ir_product shape = pl_ir_product_of(pl_read_op(&to->read, op), &read, &weight);
  return (pl_linear){
      .parallel = parallel_of(to, op), .in = shape.k, .out = shape.n, .m = shape.m, .products = {op}, .n_products = 1};
}

/* Rows and widths of the whole model, unpadded. */
static void size_whole(const pl_lowering *to, int32_t op, pl_linear *linear) {
  const pl_ir_op *product = pl_read_op(&to->read, op);
  const pl_ir_type *made = pl_read_type(&to->read, product->first_output),
                   *weight = pl_read_type(&to->read, product->inputs[1]);
  linear->model_in = linear->model_out = linear->model_rows = 1;
  for (int32_t i = 0; i < weight->rank; i++)
    *(sums_over(to, op, weight->dims[i].name) ? &linear->model_in : &linear->model_out) *=
        pl_lower_whole(to, product->inputs[1], weight->dims[i].name.text[0]);
  for (int32_t i = 0; i < made->rank; i++) {
    char dim = made->dims[i].name.text[0];
    if (pl_lower_has_dim(to, product->inputs[1], made->dims[i].name)) continue;
    linear->model_rows *= dim == 'b' ? (double)to->tape->mbs : pl_lower_whole(to, product->first_output, dim);
  }
}

pl_linear pl_lower_linear(const pl_lowering *to, int32_t op) {
  static const pl_tape_names plain = PL_LINEAR_NAMES("linear");
  pl_linear linear = pl_lower_shape(to, op);
  size_whole(to, op, &linear);
  linear.names = to->block->names[op] != NULL ? *to->block->names[op] : plain;
  return linear;
}

static uint32_t output_of(pl_lowering *to, int32_t op, const pl_linear *linear) {
  return pl_tape_activation(to->tape, linear->names.forward, linear->m / to->tape->mbs,
                            pl_lower_last_letter(to, pl_read_op(&to->read, op)->first_output), linear->out);
}

/* Where a value of the same elements was made. */
static int32_t source_of(const pl_lowering *to, int32_t value) {
  int32_t op = pl_read_maker(&to->read, value);
  while (pl_read_is(&to->read, op, "scale") || pl_read_is(&to->read, op, "rename") ||
         pl_read_is(&to->read, op, "dropout"))
    op = pl_read_maker(&to->read, pl_read_op(&to->read, op)->inputs[0]);
  return op;
}

/* What is added to a product's output by its kernel: not to partial sums, nor what a residual addition adds. */
static int32_t bias_of(const pl_lowering *to, int32_t op, pl_parallel parallel) {
  if (parallel == PL_PARALLEL_ROW) return PL_IR_NONE;
  int32_t value = pl_read_op(&to->read, op)->first_output;
  int32_t bias = pl_read_bias_behind(&to->read, value);
  return bias != PL_IR_NONE && !pl_read_is_before_residual(&to->read, bias) ? bias : PL_IR_NONE;
}

/* ---- collectives of the tensor group ---- */

static bool is_of_tensor_group(const pl_lowering *to, int32_t op) {
  return pl_ir_axis_is_of_tensors(pl_ir_text_of(pl_read_op(&to->read, op), "over"));
}

bool pl_lower_is_reduction(const pl_lowering *to, int32_t op) {
  return (pl_read_is(&to->read, op, "all_reduce") || pl_read_is(&to->read, op, "reduce_scatter")) &&
         is_of_tensor_group(to, op);
}

uint32_t pl_lower_reduced(pl_lowering *to, int32_t value, uint32_t partial) {
  static const pl_tape_names sum = PL_LINEAR_NAMES("parallel_sum"), embedding = PL_LINEAR_NAMES("embedding"),
                             plain = PL_LINEAR_NAMES("sum");
  int32_t source = source_of(to, value);
  const pl_tape_names *names =
      pl_read_is(&to->read, source, "add")         ? &sum
      : pl_read_is(&to->read, source, "embedding") ? &embedding
      : source != PL_IR_NONE && pl_read_is(&to->read, source, "product") && to->block->names[source] != NULL
          ? to->block->names[source]
          : &plain;
  return pl_tape_reduce(to->tape, *names, partial);
}

void pl_lower_reduce(pl_lowering *to, int32_t op) {
  int32_t value = pl_read_op(&to->read, op)->inputs[0];
  uint32_t partial = to->tensor[value];
  if (partial != PL_NONE && is_of_tensor_group(to, op)) partial = pl_lower_reduced(to, value, partial);
  pl_lower_set(to, op, 0, partial);
}

/* ---- products ---- */

void pl_lower_product(pl_lowering *to, int32_t op) {
  pl_linear own = pl_lower_linear(to, op);
  int32_t bias = bias_of(to, op, own.parallel);
  own.bias = bias != PL_IR_NONE;
  uint32_t output = output_of(to, op, &own);
  pl_lower_set(to, op, 0, pl_tape_linear(to->tape, &own, pl_lower_input(to, op, 0), PL_NONE, output));
  if (bias != PL_IR_NONE) {
    pl_lower_set(to, bias, 0, output);
    pl_lower_done(to, bias);
  }
  int32_t reduction = pl_read_user(&to->read, pl_read_op(&to->read, op)->first_output);
  if (!pl_lower_is_reduction(to, reduction)) return;
  pl_lower_reduce(to, reduction); /* right behind it, whenever it is read */
  pl_lower_done(to, reduction);
}
