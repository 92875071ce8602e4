/* Backward kernels of matrix products (see workloads/lower/lower_backward.h): linear layers with their collectives,
 * convolutions, the experts' grouped products.
 *
 * A product with a weight has two in the derivative, of the gradient and the weight, and of what was read and the
 * gradient. Their rows, widths and layouts are lowered as those of any product; of a kernel that is several products
 * side by side, widths add up. Order inside a column-split linear layer is Megatron's: gather the input again (under
 * sequence parallelism only its shard was kept), data gradient, its collective, weight gradient: so the collective has
 * the weight gradient to hide behind.
 */
#include "core/cluster/cluster.h"
#include "workloads/ir/chain.h"
#include "workloads/lower/lower_backward.h"

uint32_t pl_back_parameter_gradient(pl_back *d, uint32_t parameter) {
  pl_tape *tape = d->tape;
  return pl_tape_like(tape, parameter, tape->tensors[parameter].name, PL_TENSOR_PARAMETER_GRADIENT,
                      pl_framework_gradient_dtype(tape->framework, tape->shard->dtype));
}

/* A product of a list: rows, columns, what is summed over. */
typedef struct extents {
  int64_t batch, m, n, k;
} extents;

/* The weight gradient of a matrix: added by its GEMM, or made in the type of the weights and then added. Returns the
 * GEMM. */
static uint32_t make_weight_gradient(pl_back *d, const pl_tape_node *node, const extents *of, uint32_t input,
                                     uint32_t g) {
  pl_tape *tape = d->tape;
  uint32_t weight = node->weight, sum = pl_back_parameter_gradient(d, weight), at = tape->n_backward;
  if (pl_framework_adds_in_products(tape->framework)) {
    pl_tape_gemm(tape, node->names.wgrad, PL_CATEGORY_BACKWARD, of->batch, of->m, of->n, of->k, input, g, sum, sum)
        ->transposed = true;
    return at;
  }
  /* Where the profile keeps all of them until the pass is over, they are not this block's to count. */
  pl_tensor_kind kind =
      tape->framework->gradients.keeps_16bit_gradients ? PL_TENSOR_PARAMETER_GRADIENT : PL_TENSOR_GRADIENT;
  uint32_t dw = pl_tape_like(tape, weight, tape->tensors[weight].name, kind, tape->shard->dtype);
  pl_tape_gemm(tape, node->names.wgrad, PL_CATEGORY_BACKWARD, of->batch, of->m, of->n, of->k, input, g, PL_NONE, dw)
      ->transposed = true;
  if (tape->framework->gradients.gradient_path != PL_GRADIENTS_ADDED)
    d->unsharded += pl_tape_elements(tape, dw); /* it becomes part of its block's flat tensor */
  else
    pl_tape_sweep(tape, "accumulate", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, dw, sum, PL_NONE, sum, PL_NONE);
  return at;
}

/* The same for the weights' half of the pass, as `op` of the derivative is. */
static void weight_gradient(pl_back *d, const pl_tape_node *node, int32_t op, const extents *of, uint32_t input,
                            uint32_t g) {
  pl_back_write_for(d, op);
  if (node->quantised != PL_NONE && pl_tape_casts_again(d->tape))
    input = pl_tape_cast(d->tape, node->names.cast_again, PL_CATEGORY_BACKWARD, node->input, 1);
  uint32_t at = make_weight_gradient(d, node, of, input, g);
  if (node->quantised != PL_NONE) pl_tape_in_fp8(d->tape, &d->tape->backward[at]);
  const pl_op *forward = &d->tape->forward[node->op];
  if (forward->convolution != NULL)
    pl_tape_as_convolution(d->tape, &d->tape->backward[at], forward->convolution, PL_CONVOLUTION_WEIGHT);
  pl_back_write_for_group(d);
}

void pl_back_bias_gradient(pl_back *d, const char *name, uint32_t bias, uint32_t gradient) {
  int32_t op = pl_back_find(d, d->node, "sum");
  if (bias == PL_NONE || op == PL_IR_NONE) return;
  uint32_t sum = pl_back_parameter_gradient(d, bias);
  pl_back_write_for(d, op);
  pl_tape_sweep(d->tape, name, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, gradient, sum, PL_NONE, sum, PL_NONE);
  pl_back_write_for_group(d);
}

/* The gradient as the products read it. */
static uint32_t quantised_gradient(pl_back *d, const pl_tape_node *node, uint32_t g) {
  return node->quantised == PL_NONE ? g : pl_tape_cast(d->tape, node->names.grad_cast, PL_CATEGORY_BACKWARD, g, 2);
}

/* The collective just made runs beside the product that comes next. */
static void overlap_collective(pl_back *d) {
  pl_tape *tape = d->tape;
  if (tape->overlaps) tape->backward[tape->n_backward - 1].overlap = PL_OVERLAP_BEGINS;
}

/* ---- the derivative's products ---- */

/* Where a value comes from that was only brought to another layout. */
static int32_t source_of(const pl_back *d, int32_t value) {
  int32_t op = pl_read_maker(&d->own.read, value);
  while (pl_read_is(&d->own.read, op, "all_gather") || pl_read_is(&d->own.read, op, "cut"))
    op = pl_read_maker(&d->own.read, pl_read_op(&d->own.read, op)->inputs[0]);
  return op;
}

/* The gradients that come of product `forward` of the function. */
typedef struct derivative {
  int32_t data, weight; /* products; PL_IR_NONE: none */
} derivative;

static derivative derivative_of(const pl_back *d, const pl_tape_node *node, int32_t forward) {
  derivative of = {PL_IR_NONE, PL_IR_NONE};
  for (int32_t op = d->first[node->head]; op != PL_IR_NONE; op = d->next[op]) {
    if (d->forward->block->derived_from[op] != forward || !pl_read_is(&d->own.read, op, "product")) continue;
    bool reads_weight = pl_read_is(&d->own.read, source_of(d, pl_read_op(&d->own.read, op)->inputs[1]), "param");
    *(reads_weight ? &of.data : &of.weight) = op;
  }
  return of;
}

/* Rows of a product of the function: its derivative is launched where it was itself, also where laying would rather
 * gather compressed keys and values of a whole sequence and do the work of all ranks on each. */
static int64_t rows_of(const pl_back *d, const pl_tape_node *node) {
  return pl_lower_shape(d->forward, node->products[0]).m;
}

/* Of all products that one kernel is. */
static extents data_extents(const pl_back *d, const pl_tape_node *node, pl_parallel *parallel) {
  extents sum = {.batch = 1, .m = rows_of(d, node)};
  for (uint8_t i = 0; i < node->n_products; i++) {
    const pl_linear own = pl_lower_shape(&d->own, derivative_of(d, node, node->products[i]).data);
    if (i == 0) {
      sum.n = own.out;
      *parallel = own.parallel;
    }
    sum.k += own.in;
  }
  return sum;
}

static extents weight_extents(const pl_back *d, const pl_tape_node *node) {
  extents sum = {.batch = 1, .k = rows_of(d, node)};
  for (uint8_t i = 0; i < node->n_products; i++) {
    const pl_linear own = pl_lower_shape(&d->own, derivative_of(d, node, node->products[i]).weight);
    if (i == 0) sum.m = own.m; /* of what was read, and the gradient for a weight */
    sum.n += own.out;
  }
  return sum;
}

static bool is_over_tensor_group(const pl_back *d, int32_t op) {
  for (int32_t axis = 0; axis < d->own.read.mesh->n_axes; axis++) {
    pl_ir_name name = d->own.read.mesh->axes[axis].name;
    if (pl_ir_axis_is_of_tensors(name.text) && pl_ir_op_has_name(pl_read_op(&d->own.read, op), "over", name))
      return true;
  }
  return false;
}

/* Whether what the weight's gradient reads was kept in parts and is gathered over the tensor group. */
static bool is_gathered_again(const pl_back *d, const pl_tape_node *node) {
  int32_t value = pl_read_op(&d->own.read, derivative_of(d, node, node->products[0]).weight)->inputs[0];
  int32_t op = pl_read_maker(&d->own.read, value);
  for (; pl_read_is(&d->own.read, op, "all_gather");
       op = pl_read_maker(&d->own.read, pl_read_op(&d->own.read, op)->inputs[0]))
    if (is_over_tensor_group(d, op)) return true;
  return false;
}

/* ---- groups ---- */

static uint32_t gather_again(pl_back *d, const pl_tape_node *node, int32_t reader, uint32_t input) {
  pl_tape *tape = d->tape;
  pl_back_write_for(d, reader);
  uint32_t kept = node->quantised == PL_NONE ? node->input : node->quantised;
  double size_bytes = tape->tensors[input].size_bytes;
  uint32_t again =
      pl_tape_like(tape, input, tape->tensors[input].name, PL_TENSOR_ACTIVATION, (pl_dtype)tape->tensors[input].dtype);
  pl_tape_collective(tape, node->names.regather, PL_ALL_GATHER, true, size_bytes, kept, again);
  overlap_collective(d);
  return again;
}

/* Partial sums of the gradient of what was read, added up right behind the product: as it was read, whole or in parts.
 */
static uint32_t add_up(pl_back *d, const pl_tape_node *node, bool gathered, double size_bytes, uint32_t dx) {
  pl_tape *tape = d->tape;
  if (!gathered) {
    pl_tape_collective(tape, node->names.input_all_reduce, PL_ALL_REDUCE, true, size_bytes, dx, dx);
    return dx;
  }
  uint32_t shard = pl_back_fresh(d, node->input);
  pl_tape_collective(tape, node->names.input_reduce_scatter, PL_REDUCE_SCATTER, true, size_bytes, dx, shard);
  overlap_collective(d);
  return shard;
}

void pl_back_linear(pl_back *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  pl_parallel parallel = PL_PARALLEL_NONE;
  const derivative of = derivative_of(d, node, node->products[0]);
  const extents data = data_extents(d, node, &parallel), weight = weight_extents(d, node);
  bool partial = parallel == PL_PARALLEL_ROW, gathered = partial && is_gathered_again(d, node);
  uint32_t input = tape->forward[node->op].inputs[0];
  double full_bytes = pl_tape_elements(tape, input) * pl_dtype_bytes(tape->shard->dtype);
  if (gathered) input = gather_again(d, node, of.weight, input);
  pl_back_write_for(d, of.data);
  uint32_t own = g;
  if (node->parallel == PL_PARALLEL_ROW && pl_tape_copies_inputs(tape)) {
    own = pl_tape_like(tape, g, tape->tensors[g].name, PL_TENSOR_GRADIENT, tape->shard->dtype);
    pl_tape_sweep(tape, "gradient_copy", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 0, g, PL_NONE, PL_NONE, own, PL_NONE);
  }
  /* A pooler reads one row per sequence of its input: its gradient has the shape of what it read. */
  bool sliced = (double)data.m * (double)data.n < pl_tape_elements(tape, input);
  uint32_t dx = sliced ? pl_tape_tensor(tape, tape->tensors[input].name, PL_TENSOR_GRADIENT, tape->shard->dtype, "bh",
                                        (const int64_t[]){data.m, data.n})
                       : pl_tape_like(tape, input, tape->tensors[input].name, PL_TENSOR_GRADIENT, tape->shard->dtype);
  uint32_t given = quantised_gradient(d, node, own);
  pl_op *op = pl_tape_gemm(tape, node->names.backward, PL_CATEGORY_BACKWARD, data.batch, data.m, data.n, data.k, given,
                           node->weight, PL_NONE, dx);
  if (node->quantised != PL_NONE) pl_tape_in_fp8(tape, op);
  if (partial) dx = add_up(d, node, gathered, full_bytes, dx);
  weight_gradient(d, node, of.weight, &weight, input, given);
  pl_back_bias_gradient(d, node->names.bias_grad, node->bias, g);
  pl_back_arrive(d, node->input, dx);
}

static void picture_gradient(pl_back *d, const pl_tape_node *node, const pl_op *forward, uint32_t g) {
  uint32_t dx = pl_back_fresh(d, node->input);
  pl_op *op =
      pl_tape_gemm(d->tape, node->names.backward, PL_CATEGORY_BACKWARD, 1, 1, 1, 1, g, node->weight, PL_NONE, dx);
  pl_tape_as_convolution(d->tape, op, forward->convolution, PL_CONVOLUTION_DATA);
  pl_back_arrive(d, node->input, dx);
}

void pl_back_convolution(pl_back *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  const pl_op forward = tape->forward[node->op];
  bool wanted = node->input != tape->data && pl_back_find(d, node, "convolution_backward_data") != PL_IR_NONE;
  if (wanted) picture_gradient(d, node, &forward, g);
  const extents of = {forward.batch, forward.k, forward.n, forward.m};
  weight_gradient(d, node, pl_back_find(d, node, "convolution_backward_weights"), &of, node->input, g);
  pl_back_bias_gradient(d, node->names.bias_grad, node->bias, g);
}

void pl_back_reduce(pl_back *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  uint32_t full = pl_back_fresh(d, node->input);
  pl_tape_collective(tape, node->names.grad_all_gather, PL_ALL_GATHER, true, tape->tensors[full].size_bytes, g, full);
  overlap_collective(d);
  pl_back_arrive(d, node->input, full);
}
