/* Derivatives of matrix products (see workloads/block/block_differ.h): linear layers with their collectives,
 * convolutions, the experts' grouped products.
 *
 * Order inside a column-split linear layer is Megatron's: gather the input again (under sequence parallelism only its
 * shard was kept), data gradient, its collective, weight gradient: so the collective has the weight gradient to hide
 * behind.
 */
#include "core/cluster/cluster.h"
#include "workloads/block/block_differ.h"
#include "workloads/ir/chain.h"

uint32_t pl_differ_parameter_gradient(pl_differ *d, uint32_t parameter) {
  pl_tape *tape = d->tape;
  return pl_tape_like(tape, parameter, tape->tensors[parameter].name, PL_TENSOR_PARAMETER_GRADIENT,
                      pl_framework_gradient_dtype(tape->framework, tape->shard->dtype));
}

/* A gradient that becomes part of its block's flat tensor. Of a weight with two uses autograd adds the two first. */
void pl_differ_hand_over(pl_differ *d, uint32_t weight, uint32_t dw) {
  if (weight != d->tape->tied)
    d->unsharded += pl_tape_elements(d->tape, dw);
  else
    pl_tape_sweep(d->tape, "gradient_add", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, dw, weight, PL_NONE, weight,
                  PL_NONE)
        ->output = PL_NONE;
}

/* The weight gradient of a matrix: added by its GEMM, or made in the type of the weights and then added. */
static void weight_gradient(pl_differ *d, const char *name, uint32_t weight, const pl_op *forward, uint32_t input,
                            uint32_t g) {
  pl_tape *tape = d->tape;
  uint32_t sum = pl_differ_parameter_gradient(d, weight);
  int64_t m = forward->k, n = forward->n, k = forward->m;
  if (tape->framework->gradient_path == PL_GRADIENTS_ADDED && tape->framework->fuses_accumulation) {
    pl_tape_gemm(tape, name, PL_CATEGORY_BACKWARD, forward->batch, m, n, k, input, g, sum, sum)->transposed = true;
    return;
  }
  /* Where the profile keeps all of them until the pass is over, they are not this block's to count. */
  pl_tensor_kind kind = tape->framework->keeps_16bit_gradients ? PL_TENSOR_PARAMETER_GRADIENT : PL_TENSOR_GRADIENT;
  uint32_t dw = pl_tape_like(tape, weight, tape->tensors[weight].name, kind, tape->shard->dtype);
  pl_tape_gemm(tape, name, PL_CATEGORY_BACKWARD, forward->batch, m, n, k, input, g, PL_NONE, dw)->transposed = true;
  if (tape->framework->gradient_path != PL_GRADIENTS_ADDED)
    pl_differ_hand_over(d, weight, dw);
  else
    pl_tape_sweep(tape, "accumulate", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, dw, sum, PL_NONE, sum, PL_NONE);
}

void pl_differ_bias_gradient(pl_differ *d, const char *name, uint32_t bias, uint32_t gradient) {
  if (bias == PL_NONE) return;
  uint32_t sum = pl_differ_parameter_gradient(d, bias);
  pl_tape_sweep(d->tape, name, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, gradient, sum, PL_NONE, sum, PL_NONE);
}

/* The gradient as the products read it. */
static uint32_t quantised_gradient(pl_differ *d, const pl_tape_node *node, uint32_t g) {
  return node->quantised == PL_NONE ? g : pl_tape_cast(d->tape, node->names.grad_cast, PL_CATEGORY_BACKWARD, g);
}

/* The collective just made runs beside the product that comes next. */
static void overlap_collective(pl_differ *d) {
  pl_tape *tape = d->tape;
  if (tape->overlaps) tape->backward[tape->n_backward - 1].overlap = PL_OVERLAP_BEGINS;
}

static void data_gradient(pl_differ *d, const pl_tape_node *node, const pl_op *forward, uint32_t g, uint32_t dx) {
  pl_op *op = pl_tape_gemm(d->tape, node->names.backward, PL_CATEGORY_BACKWARD, forward->batch, forward->m, forward->k,
                           forward->n, g, node->weight, PL_NONE, dx);
  if (node->quantised != PL_NONE) pl_tape_in_fp8(d->tape, op);
}

static void weight_gradient_of(pl_differ *d, const pl_tape_node *node, const pl_op *forward, uint32_t input,
                               uint32_t g) {
  uint32_t at = d->tape->n_backward;
  weight_gradient(d, node->names.wgrad, node->weight, forward, input, g);
  if (node->quantised != PL_NONE) pl_tape_in_fp8(d->tape, &d->tape->backward[at]);
}

void pl_differ_linear(pl_differ *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  const pl_op forward = tape->forward[node->op];
  bool column = node->parallel == PL_PARALLEL_COLUMN && tape->tmp > 1;
  uint32_t input = forward.inputs[0], kept = node->quantised == PL_NONE ? node->input : node->quantised;
  double full_bytes = pl_tape_elements(tape, input) * pl_dtype_bytes(tape->shard->dtype);
  if (column && tape->sp) {
    double size_bytes = tape->tensors[input].size_bytes;
    input = pl_tape_like(tape, input, tape->tensors[input].name, PL_TENSOR_ACTIVATION,
                         (pl_dtype)tape->tensors[input].dtype);
    pl_tape_collective(tape, node->names.regather, PL_ALL_GATHER, true, size_bytes, kept, input);
    overlap_collective(d);
  }
  /* A pooler reads one row per sequence of its input: its gradient has the shape of what it read. */
  bool sliced = (double)forward.m * (double)forward.k < pl_tape_elements(tape, input);
  uint32_t dx = sliced ? pl_tape_tensor(tape, tape->tensors[input].name, PL_TENSOR_GRADIENT, tape->shard->dtype, "bh",
                                        (const int64_t[]){forward.m, forward.k})
                       : pl_tape_like(tape, input, tape->tensors[input].name, PL_TENSOR_GRADIENT, tape->shard->dtype);
  uint32_t given = quantised_gradient(d, node, g);
  data_gradient(d, node, &forward, given, dx);
  if (column && tape->sp) {
    uint32_t shard = pl_differ_fresh(d, node->input);
    pl_tape_collective(tape, node->names.input_reduce_scatter, PL_REDUCE_SCATTER, true, full_bytes, dx, shard);
    overlap_collective(d);
    dx = shard;
  } else if (column) {
    pl_tape_collective(tape, node->names.input_all_reduce, PL_ALL_REDUCE, true, full_bytes, dx, dx);
  }
  weight_gradient_of(d, node, &forward, input, given);
  pl_differ_bias_gradient(d, node->names.bias_grad, node->bias, g);
  pl_differ_arrive(d, node->input, dx);
}

/* The gradient of the pictures is a convolution with the filters turned round, at the size of the input; that of the
 * filters a product over all points of the output. */
void pl_differ_convolution(pl_differ *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  const pl_op forward = tape->forward[node->op];
  const pl_chain_step *step = forward.convolution;
  if (node->input != tape->data) {
    int64_t area = (int64_t)step->stride * step->stride, taps = (int64_t)step->filter_height * step->filter_width;
    int64_t depth = forward.n * taps / area;
    uint32_t dx = pl_differ_fresh(d, node->input);
    pl_op *op =
        pl_tape_gemm(tape, node->names.backward, PL_CATEGORY_BACKWARD, 1, tape->mbs * pl_picture_points(&step->in),
                     step->in.channels, depth > 0 ? depth : 1, g, node->weight, PL_NONE, dx);
    op->flops = forward.flops;
    pl_tape_as_convolution(tape, op, step, PL_CONVOLUTION_DATA);
    pl_differ_arrive(d, node->input, dx);
  }
  uint32_t at = tape->n_backward;
  weight_gradient(d, node->names.wgrad, node->weight, &forward, node->input, g);
  pl_tape_as_convolution(tape, &tape->backward[at], step, PL_CONVOLUTION_WEIGHT);
  pl_differ_bias_gradient(d, node->names.bias_grad, node->bias, g);
}

void pl_differ_reduce(pl_differ *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  uint32_t full = pl_differ_fresh(d, node->input);
  pl_tape_collective(tape, node->names.grad_all_gather, PL_ALL_GATHER, true, tape->tensors[full].size_bytes, g, full);
  overlap_collective(d);
  pl_differ_arrive(d, node->input, full);
}

void pl_differ_grouped(pl_differ *d, const pl_tape_node *node, uint32_t g) {
  const pl_op forward = d->tape->forward[node->op];
  uint32_t dx = pl_differ_fresh(d, node->input), given = quantised_gradient(d, node, g);
  data_gradient(d, node, &forward, given, dx);
  weight_gradient_of(d, node, &forward, forward.inputs[0], given);
  pl_differ_arrive(d, node->input, dx);
}
