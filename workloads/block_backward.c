/* Backward pass of a block by reverse-mode differentiation of its tape.
 *
 * gradient[x] is the tensor that holds the gradient of activation x, PL_NONE while none has arrived; users[g] counts
 * the activations whose gradient g is (an addition hands the same gradient to both of its inputs without copying). When
 * a second gradient arrives the two are added, in place where one of them has no other user.
 *
 * Order inside a column-split linear layer is Megatron's: gather the input again (under sequence parallelism only its
 * shard was kept), data gradient, its collective, weight gradient: so the collective has the weight gradient to hide
 * behind.
 */
#include <string.h>

#include "core/cluster.h"
#include "workloads/block_tape.h"
#include "workloads/chain.h"

static const double norm_flops = 11, pointwise_flops = 12, softmax_flops = 5, dropout_flops = 2, rotary_flops = 6,
                    cross_entropy_flops = 3;

typedef struct differ {
  pl_tape *tape;
  uint32_t gradient[PL_TAPE_TENSORS];
  uint8_t users[PL_TAPE_TENSORS];
  bool core_repeated;
  uint32_t queries; /* gradient of tape->queries */
  double unsharded; /* elements of gradients that go to their reduction in a tensor of their own */
} differ;

/* A new gradient tensor shaped like activation `of`. */
static uint32_t fresh(differ *d, uint32_t of) {
  pl_tape *tape = d->tape;
  return pl_tape_like(tape, of, tape->tensors[of].name, PL_TENSOR_GRADIENT, (pl_dtype)tape->tensors[of].dtype);
}

static void assign(differ *d, uint32_t activation, uint32_t gradient) {
  d->gradient[activation] = gradient;
  d->users[gradient]++;
}

/* `gradient` has arrived for `activation`. */
static void arrive(differ *d, uint32_t activation, uint32_t gradient) {
  pl_tape *tape = d->tape;
  uint32_t old = d->gradient[activation];
  if (old == PL_NONE) {
    assign(d, activation, gradient);
    return;
  }
  double old_bytes = tape->tensors[old].size_bytes, new_bytes = tape->tensors[gradient].size_bytes;
  uint32_t sum = d->users[gradient] == 0 && new_bytes == old_bytes ? gradient
                 : d->users[old] == 1                              ? old
                                                                   : fresh(d, activation);
  pl_op *op = pl_tape_sweep(tape, "gradient_add", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, gradient, old, PL_NONE,
                            sum, PL_NONE);
  if (new_bytes < old_bytes) op->bytes = 3 * new_bytes; /* a slice: BERT's pooler */
  if (sum != old) {
    d->users[old]--;
    assign(d, activation, sum);
  }
}

static uint32_t parameter_gradient(differ *d, uint32_t parameter) {
  pl_tape *tape = d->tape;
  return pl_tape_like(tape, parameter, tape->tensors[parameter].name, PL_TENSOR_PARAMETER_GRADIENT,
                      pl_framework_gradient_dtype(tape->framework, tape->shard->dtype));
}

/* A gradient that becomes part of its block's flat tensor. Of a weight with two uses autograd adds the two first. */
static void hand_over(differ *d, uint32_t weight, uint32_t dw) {
  if (weight != d->tape->tied)
    d->unsharded += pl_tape_elements(d->tape, dw);
  else
    pl_tape_sweep(d->tape, "gradient_add", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, dw, weight, PL_NONE, weight,
                  PL_NONE)
        ->output = PL_NONE;
}

/* The weight gradient of a matrix: added by its GEMM, or made in the type of the weights and then added. */
static void weight_gradient(differ *d, const char *name, uint32_t weight, const pl_op *forward, uint32_t input,
                            uint32_t g) {
  pl_tape *tape = d->tape;
  uint32_t sum = parameter_gradient(d, weight);
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
    hand_over(d, weight, dw);
  else
    pl_tape_sweep(tape, "accumulate", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, dw, sum, PL_NONE, sum, PL_NONE);
}

static void bias_gradient(differ *d, const char *name, uint32_t bias, uint32_t gradient) {
  if (bias == PL_NONE) return;
  uint32_t sum = parameter_gradient(d, bias);
  pl_tape_sweep(d->tape, name, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, gradient, sum, PL_NONE, sum, PL_NONE);
}

/* The gradient as the products read it. */
static uint32_t quantised_gradient(differ *d, const pl_tape_node *node, uint32_t g) {
  return node->quantised == PL_NONE ? g : pl_tape_cast(d->tape, node->names.grad_cast, PL_CATEGORY_BACKWARD, g);
}

/* The collective just made runs beside the product that comes next. */
static void overlap_collective(differ *d) {
  pl_tape *tape = d->tape;
  if (tape->overlaps) tape->backward[tape->n_backward - 1].overlap = PL_OVERLAP_BEGINS;
}

static void data_gradient(differ *d, const pl_tape_node *node, const pl_op *forward, uint32_t g, uint32_t dx) {
  pl_op *op = pl_tape_gemm(d->tape, node->names.backward, PL_CATEGORY_BACKWARD, forward->batch, forward->m, forward->k,
                           forward->n, g, node->weight, PL_NONE, dx);
  if (node->quantised != PL_NONE) pl_tape_in_fp8(d->tape, op);
}

static void weight_gradient_of(differ *d, const pl_tape_node *node, const pl_op *forward, uint32_t input, uint32_t g) {
  uint32_t at = d->tape->n_backward;
  weight_gradient(d, node->names.wgrad, node->weight, forward, input, g);
  if (node->quantised != PL_NONE) pl_tape_in_fp8(d->tape, &d->tape->backward[at]);
}

static void backward_linear(differ *d, const pl_tape_node *node, uint32_t g) {
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
    uint32_t shard = fresh(d, node->input);
    pl_tape_collective(tape, node->names.input_reduce_scatter, PL_REDUCE_SCATTER, true, full_bytes, dx, shard);
    overlap_collective(d);
    dx = shard;
  } else if (column) {
    pl_tape_collective(tape, node->names.input_all_reduce, PL_ALL_REDUCE, true, full_bytes, dx, dx);
  }
  weight_gradient_of(d, node, &forward, input, given);
  bias_gradient(d, node->names.bias_grad, node->bias, g);
  arrive(d, node->input, dx);
}

/* The gradient of the pictures is a convolution with the filters turned round, at the size of the input; that of the
 * filters a product over all points of the output. */
static void backward_convolution(differ *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  const pl_op forward = tape->forward[node->op];
  const pl_step *step = forward.convolution;
  if (node->input != tape->data) {
    int64_t area = (int64_t)step->stride * step->stride, taps = (int64_t)step->filter_height * step->filter_width;
    int64_t depth = forward.n * taps / area;
    uint32_t dx = fresh(d, node->input);
    pl_op *op =
        pl_tape_gemm(tape, node->names.backward, PL_CATEGORY_BACKWARD, 1, tape->mbs * pl_picture_points(&step->in),
                     step->in.channels, depth > 0 ? depth : 1, g, node->weight, PL_NONE, dx);
    op->flops = forward.flops;
    pl_tape_as_convolution(tape, op, step, PL_CONVOLUTION_DATA);
    arrive(d, node->input, dx);
  }
  uint32_t at = tape->n_backward;
  weight_gradient(d, node->names.wgrad, node->weight, &forward, node->input, g);
  pl_tape_as_convolution(tape, &tape->backward[at], step, PL_CONVOLUTION_WEIGHT);
  bias_gradient(d, node->names.bias_grad, node->bias, g);
}

static void backward_max_pool(differ *d, const pl_tape_node *node, uint32_t g) {
  uint32_t dx = fresh(d, node->input);
  pl_tape_sweep(d->tape, node->names.backward, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, g, node->input, node->output,
                dx, PL_NONE);
  arrive(d, node->input, dx);
}

static void backward_reduce(differ *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  uint32_t full = fresh(d, node->input);
  pl_tape_collective(tape, node->names.grad_all_gather, PL_ALL_GATHER, true, tape->tensors[full].size_bytes, g, full);
  overlap_collective(d);
  arrive(d, node->input, full);
}

static void backward_norm(differ *d, const pl_tape_node *node, uint32_t g) {
  uint32_t dx = fresh(d, node->input);
  uint32_t dw = node->weight != PL_NONE ? parameter_gradient(d, node->weight) : PL_NONE;
  pl_tape_sweep(d->tape, node->names.backward, PL_OP_NORM, PL_CATEGORY_BACKWARD, norm_flops, g, node->input,
                node->weight, dx, dw);
  arrive(d, node->input, dx);
}

/* One memory-bound op from g and up to one kept tensor to the gradient of the input. */
static void backward_sweep(differ *d, const pl_tape_node *node, pl_op_kind kind, double flops, uint32_t g,
                           uint32_t kept) {
  uint32_t dx = fresh(d, node->input);
  pl_tape_sweep(d->tape, node->names.backward, kind, PL_CATEGORY_BACKWARD, flops, g, kept, PL_NONE, dx, PL_NONE);
  arrive(d, node->input, dx);
}

/* The product's two derivatives, silu's, and both halves packed into one tensor again. */
static void backward_gated(differ *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  double half = tape->tensors[g].size_bytes;
  uint32_t dgate = pl_tape_like(tape, node->second, "gate", PL_TENSOR_GRADIENT, tape->shard->dtype);
  uint32_t dother = pl_tape_like(tape, node->second, "gate", PL_TENSOR_GRADIENT, tape->shard->dtype);
  uint32_t dx = fresh(d, node->input);
  pl_tape_sweep(tape, "gate_other_backward", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, g, node->second, PL_NONE,
                dother, PL_NONE);
  pl_tape_sweep(tape, node->names.backward, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, g, node->input, PL_NONE, dgate,
                PL_NONE)
      ->bytes = 3 * half;
  pl_tape_sweep(tape, "gate_backward", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, pointwise_flops, dgate, node->input,
                PL_NONE, dgate, PL_NONE)
      ->bytes = 3 * half;
  pl_tape_sweep(tape, "gate_pack", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, dgate, dother, PL_NONE, dx, PL_NONE);
  arrive(d, node->input, dx);
}

/* The masked halves of the gradient and of the probabilities are not read. */
static void backward_softmax(differ *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  uint32_t dx = fresh(d, node->input);
  pl_op *op = pl_tape_sweep(tape, node->names.backward, PL_OP_SOFTMAX, PL_CATEGORY_BACKWARD, softmax_flops, g,
                            node->output, PL_NONE, dx, PL_NONE);
  if (tape->model->causal && tape->framework->fuses_softmax)
    op->bytes -= (tape->tensors[g].size_bytes + tape->tensors[node->output].size_bytes) / 2;
  arrive(d, node->input, dx);
}

static void backward_residual(differ *d, const pl_tape_node *node, uint32_t g) {
  arrive(d, node->second, g);
  if (node->auxiliary != PL_NONE)
    backward_sweep(d, node, PL_OP_ELEMENTWISE, dropout_flops, g, node->auxiliary);
  else
    arrive(d, node->input, g);
  bias_gradient(d, node->names.bias_grad, node->bias, d->gradient[node->input]);
  bias_gradient(d, node->names.bias_grad, node->weight,
                d->gradient[node->input]); /* the second bias of a parallel residual */
}

/* Where the op multiplied by a second activation, the same kernel makes that one's gradient too. */
static void backward_pointwise(differ *d, const pl_tape_node *node, uint32_t g) {
  if (node->second == PL_NONE) {
    backward_sweep(d, node, PL_OP_ELEMENTWISE, pointwise_flops, g, node->input);
    return;
  }
  uint32_t dx = fresh(d, node->input), dsecond = fresh(d, node->second);
  pl_tape_sweep(d->tape, node->names.backward, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, pointwise_flops, g, node->input,
                node->second, dx, dsecond);
  arrive(d, node->input, dx);
  arrive(d, node->second, dsecond);
}

/* The packed tensor's gradient taken apart again. */
static void backward_pack(differ *d, const pl_tape_node *node, uint32_t g) {
  uint32_t dx = fresh(d, node->input), dsecond = fresh(d, node->second);
  pl_tape_sweep(d->tape, node->names.backward, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, rotary_flops, g, PL_NONE,
                PL_NONE, dx, dsecond);
  arrive(d, node->input, dx);
  arrive(d, node->second, dsecond);
}

/* What was sent to an expert, or came back from one, returns the same way. */
static void backward_all_to_all(differ *d, const pl_tape_node *node, uint32_t g) {
  uint32_t dx = fresh(d, node->input);
  pl_tape_group_collective(d->tape, node->names.backward, PL_ALL_TO_ALL, PL_GROUP_EXPERT, true,
                           d->tape->forward[node->op].size_bytes, g, dx);
  arrive(d, node->input, dx);
}

static void backward_grouped(differ *d, const pl_tape_node *node, uint32_t g) {
  const pl_op forward = d->tape->forward[node->op];
  uint32_t dx = fresh(d, node->input), given = quantised_gradient(d, node, g);
  data_gradient(d, node, &forward, given, dx);
  weight_gradient_of(d, node, &forward, forward.inputs[0], given);
  arrive(d, node->input, dx);
}

/* The memory of part of a packed gradient. */
static uint32_t part_of(differ *d, uint32_t of, double share, pl_dtype dtype) {
  uint32_t part = pl_tape_like(d->tape, of, d->tape->tensors[of].name, PL_TENSOR_GRADIENT, dtype);
  d->tape->tensors[part].size_bytes *= share;
  return part;
}

static uint32_t gradient_copy(differ *d, const char *name, uint32_t g, uint32_t other, uint32_t copy) {
  pl_op *op =
      pl_tape_sweep(d->tape, name, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 0, g, PL_NONE, PL_NONE, copy, PL_NONE);
  op->host_free = true;
  op->bytes = 2 * d->tape->tensors[copy].size_bytes;
  op->inputs[1] = other;
  return copy;
}

/* Keys' and values' gradients are packed, the queries' is rotated, all three are packed and permuted. */
static void backward_copies(differ *d, const pl_tape_node *node, uint32_t g) {
  double queries = pl_tape_queries_share(d->tape);
  pl_dtype dtype = d->tape->shard->dtype;
  uint32_t kv = gradient_copy(d, "kv_pack_backward", g, PL_NONE, part_of(d, node->input, 1 - queries, dtype));
  uint32_t q = gradient_copy(d, "queries_backward", d->queries, PL_NONE, part_of(d, node->input, queries, dtype));
  uint32_t all = gradient_copy(d, "qkv_pack_backward", kv, q, fresh(d, node->input));
  arrive(d, node->input, gradient_copy(d, node->names.backward, all, PL_NONE, fresh(d, node->input)));
}

static void backward_rotary(differ *d, const pl_tape_node *node, uint32_t g) {
  pl_op *op = pl_tape_sweep(d->tape, node->names.backward, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, rotary_flops, g,
                            PL_NONE, PL_NONE, g, PL_NONE);
  op->bytes = op->flops = 0;
  for (uint32_t i = node->first_op; i <= node->op; i++) {
    op->bytes += d->tape->forward[i].bytes;
    op->flops += d->tape->forward[i].flops;
  }
}

/* FlashAttention's backward: five matrix products where the forward has two (Dao et al. 2022, appendix B; Dao 2023,
 * section 3.1). */
static void backward_attention(differ *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  const pl_op forward = tape->forward[node->op];
  uint32_t dx = fresh(d, node->input);
  if (tape->cp > 1) {
    pl_block_context_backward(tape, node, g, dx);
    arrive(d, node->input, dx);
    return;
  }
  pl_op *op = pl_tape_sweep(tape, node->names.backward, PL_OP_ATTENTION, PL_CATEGORY_BACKWARD, 0, g, node->input,
                            node->output, dx, PL_NONE);
  op->inputs[3] = node->auxiliary;
  op->bytes += tape->tensors[node->auxiliary].size_bytes;
  op->batch = forward.batch;
  op->m = forward.m;
  op->n = forward.n;
  op->k = forward.k;
  op->attention_kernel = forward.attention_kernel;
  op->flops = PL_ATTENTION_BACKWARD_FLOPS * forward.flops;
  if (tape->queries != PL_NONE) { /* FlashAttention-2 adds their gradient up in fp32 */
    double queries = pl_tape_queries_share(tape);
    op->inputs[4] = tape->queries;
    op->inputs[5] = d->queries = part_of(d, dx, queries, tape->shard->dtype);
    op->auxiliary = part_of(d, dx, queries, PL_DTYPE_FP32);
    op->bytes += 2 * tape->tensors[tape->queries].size_bytes;
    tape->tensors[dx].size_bytes *= 1 - queries;
  }
  arrive(d, node->input, dx);
}

/* Gradients of the packed QKV: values first, then queries and keys into the same tensor. */
static void backward_context(differ *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  const pl_op f = tape->forward[node->op];
  uint32_t dp = fresh(d, node->input), dqkv = fresh(d, node->second);
  pl_tape_gemm(tape, node->names.backward, PL_CATEGORY_BACKWARD, f.batch, f.m, f.k, f.n, g, node->second, PL_NONE, dp);
  pl_op *dv = pl_tape_gemm(tape, node->names.wgrad, PL_CATEGORY_BACKWARD, f.batch, f.k, f.n, f.m, node->input, g,
                           PL_NONE, dqkv);
  dv->transposed = true;
  arrive(d, node->second, dqkv);
  arrive(d, node->input, dp);
}

static void backward_scores(differ *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  const pl_op f = tape->forward[node->op];
  uint32_t dqkv = d->gradient[node->input];
  pl_tape_gemm(tape, node->names.backward, PL_CATEGORY_BACKWARD, f.batch, f.m, f.k, f.n, g, node->input, dqkv, dqkv);
  pl_op *dk =
      pl_tape_gemm(tape, node->names.wgrad, PL_CATEGORY_BACKWARD, f.batch, f.n, f.k, f.m, g, node->input, dqkv, dqkv);
  dk->transposed = true;
}

/* A gradient table of the weights' own type is set to zero (written), the rows of the tokens are added into it (read
 * and written), and the whole table is added to the gradient buffer (read; read and written): PyTorch's embedding makes
 * a dense gradient. It costs what the vocabulary is long, not the batch: one-GPU stages with 32 to 256 thousand words
 * take 5.2 ps per element of the table longer on an A100, 9 bytes at the bandwidth of copies
 * (validation/calibration). */
static void backward_embedding(differ *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  uint32_t dw = parameter_gradient(d, node->weight);
  pl_op *op = pl_tape_op(tape, node->names.wgrad, PL_OP_EMBEDDING, PL_CATEGORY_BACKWARD, g, dw, PL_NONE, dw);
  double elements = pl_tape_elements(tape, g);
  op->m = tape->forward[node->op].m;
  op->n = tape->forward[node->op].n;
  op->flops = elements;
  op->bytes = 3 * tape->tensors[g].size_bytes + tape->tensors[node->weight].size_bytes;
  if (tape->framework->gradient_path != PL_GRADIENTS_ADDED)
    hand_over(d, node->weight, dw);
  else
    op->bytes += tape->tensors[node->weight].size_bytes + 2 * tape->tensors[dw].size_bytes;
}

static void backward_positions(differ *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  uint32_t dw = parameter_gradient(d, node->weight);
  pl_op *op = pl_tape_sweep(tape, node->names.wgrad, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, g, PL_NONE, PL_NONE,
                            PL_NONE, PL_NONE);
  op->inputs[1] = op->output = dw;
  op->bytes += 2 * pl_tape_elements(tape, g) / (double)tape->mbs * pl_dtype_bytes((pl_dtype)tape->tensors[dw].dtype);
  arrive(d, node->input, g);
}

/* Softmax minus the target: in place in fp32, then down to the dtype of the logits. */
static void backward_loss(differ *d, const pl_tape_node *node) {
  pl_tape *tape = d->tape;
  uint32_t dlogits = fresh(d, tape->input), wide = node->input;
  bool cast = tape->tensors[wide].dtype != tape->tensors[tape->input].dtype;
  if (cast && tape->framework->loss == PL_LOSS_COPIES) wide = fresh(d, node->input);
  pl_tape_sweep(tape, node->names.backward, PL_OP_CROSS_ENTROPY, PL_CATEGORY_BACKWARD, cross_entropy_flops, node->input,
                PL_NONE, PL_NONE, cast ? wide : dlogits, PL_NONE);
  if (cast)
    pl_tape_sweep(tape, "logits_fp32_backward", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, wide, PL_NONE, PL_NONE,
                  dlogits, PL_NONE);
  arrive(d, tape->input, dlogits);
}

static void backward_mean(differ *d, const pl_tape_node *node) {
  uint32_t dx = fresh(d, node->input);
  pl_op *op = pl_tape_sweep(d->tape, node->names.backward, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, dx, PL_NONE,
                            PL_NONE, PL_NONE, PL_NONE);
  op->inputs[0] = PL_NONE; /* written, not read */
  op->output = dx;
  arrive(d, node->input, dx);
}

/* Selective recomputation: the attention core once more, in front of the first of its ops that is differentiated. */
static void repeat_core(differ *d) {
  pl_tape *tape = d->tape;
  if (d->core_repeated || tape->shard->recompute != PL_RECOMPUTE_SELECTIVE) return;
  d->core_repeated = true;
  for (uint32_t i = 0; i < tape->n_nodes; i++)
    if (tape->nodes[i].core) pl_tape_repeat(tape, tape->nodes[i].first_op, tape->nodes[i].op + 1);
}

static void backward_node(differ *d, const pl_tape_node *node, uint32_t g) {
  switch ((pl_tape_rule)node->rule) {
  case PL_RULE_LINEAR:
    backward_linear(d, node, g);
    break;
  case PL_RULE_REDUCE:
    backward_reduce(d, node, g);
    break;
  case PL_RULE_NORM:
    backward_norm(d, node, g);
    break;
  case PL_RULE_RESIDUAL:
    backward_residual(d, node, g);
    break;
  case PL_RULE_ADD:
    arrive(d, node->input, g);
    arrive(d, node->second, g);
    break;
  case PL_RULE_POINTWISE:
    backward_pointwise(d, node, g);
    break;
  case PL_RULE_COPIES:
    backward_copies(d, node, g);
    break;
  case PL_RULE_PERMUTE:
    backward_sweep(d, node, PL_OP_ELEMENTWISE, 1, g, PL_NONE);
    break;
  case PL_RULE_PACK:
    backward_pack(d, node, g);
    break;
  case PL_RULE_ALL_TO_ALL:
    backward_all_to_all(d, node, g);
    break;
  case PL_RULE_GROUPED:
    backward_grouped(d, node, g);
    break;
  case PL_RULE_GATED:
    backward_gated(d, node, g);
    break;
  case PL_RULE_CAST:
    backward_sweep(d, node, PL_OP_ELEMENTWISE, 1, g, PL_NONE);
    break;
  case PL_RULE_TANH:
    backward_sweep(d, node, PL_OP_ELEMENTWISE, pointwise_flops, g, node->output);
    break;
  case PL_RULE_DROPOUT:
    backward_sweep(d, node, PL_OP_ELEMENTWISE, dropout_flops, g, node->auxiliary);
    break;
  case PL_RULE_SOFTMAX:
    backward_softmax(d, node, g);
    break;
  case PL_RULE_ROTARY:
    backward_rotary(d, node, g);
    break;
  case PL_RULE_ATTENTION:
    backward_attention(d, node, g);
    break;
  case PL_RULE_SCORES:
    backward_scores(d, node, g);
    break;
  case PL_RULE_CONTEXT:
    backward_context(d, node, g);
    break;
  case PL_RULE_EMBEDDING:
    backward_embedding(d, node, g);
    break;
  case PL_RULE_POSITIONS:
    backward_positions(d, node, g);
    break;
  case PL_RULE_LOSS:
    backward_loss(d, node);
    break;
  case PL_RULE_NEXT_SENTENCE_LOSS:
    backward_sweep(d, node, PL_OP_CROSS_ENTROPY, cross_entropy_flops, node->input, PL_NONE);
    break;
  case PL_RULE_CONVOLUTION:
    backward_convolution(d, node, g);
    break;
  case PL_RULE_BATCH_NORM:
    backward_norm(d, node, g);
    d->tape->backward[d->tape->n_backward - 1].bytes += 2 * d->tape->tensors[g].size_bytes; /* two passes */
    break;
  case PL_RULE_RELU:
    backward_sweep(d, node, PL_OP_ELEMENTWISE, 1, g, node->output);
    break;
  case PL_RULE_MAX_POOL:
    backward_max_pool(d, node, g);
    break;
  case PL_RULE_MEAN_LOSS:
    backward_mean(d, node);
    break;
  }
}

void pl_block_backward(pl_tape *tape) {
  differ d = {.tape = tape};
  memset(d.gradient, 0xff, sizeof d.gradient);
  if (tape->output != PL_NONE) {
    tape->output_gradient = fresh(&d, tape->output);
    assign(&d, tape->output, tape->output_gradient);
  }
  pl_block_recompute(tape);
  for (uint32_t i = tape->n_nodes; i-- > 0;) {
    const pl_tape_node *node = &tape->nodes[i];
    uint32_t g = node->output == PL_NONE ? PL_NONE : d.gradient[node->output];
    if (node->output != PL_NONE && g == PL_NONE) continue; /* nothing depends on it: the pooler of a bare BertModel */
    if (node->core) repeat_core(&d);
    backward_node(&d, node, g);
  }
  pl_block_pass_gradients(tape, d.unsharded);
  if (tape->input != PL_NONE) tape->input_gradient = d.gradient[tape->input];
}
