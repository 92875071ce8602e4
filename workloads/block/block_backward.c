/* Backward pass of a block by reverse-mode differentiation of its tape.
 *
 * gradient[x] is the tensor that holds the gradient of activation x, PL_NONE while none has arrived; users[g] counts
 * the activations whose gradient g is (an addition hands the same gradient to both of its inputs without copying). When
 * a second gradient arrives the two are added, in place where one of them has no other user.
 */
#include <string.h>

#include "core/cluster/cluster.h"
#include "workloads/block/block_differ.h"

static const double norm_flops = 11, pointwise_flops = 12, softmax_flops = 5, dropout_flops = 2, rotary_flops = 6,
                    cross_entropy_flops = 3;

/* A new gradient tensor shaped like activation `of`. */
uint32_t pl_differ_fresh(pl_differ *d, uint32_t of) {
  pl_tape *tape = d->tape;
  return pl_tape_like(tape, of, tape->tensors[of].name, PL_TENSOR_GRADIENT, (pl_dtype)tape->tensors[of].dtype);
}

static void assign(pl_differ *d, uint32_t activation, uint32_t gradient) {
  d->gradient[activation] = gradient;
  d->users[gradient]++;
}

/* `gradient` has arrived for `activation`. */
void pl_differ_arrive(pl_differ *d, uint32_t activation, uint32_t gradient) {
  pl_tape *tape = d->tape;
  uint32_t old = d->gradient[activation];
  if (old == PL_NONE) {
    assign(d, activation, gradient);
    return;
  }
  double old_bytes = tape->tensors[old].size_bytes, new_bytes = tape->tensors[gradient].size_bytes;
  uint32_t sum = d->users[gradient] == 0 && new_bytes == old_bytes ? gradient
                 : d->users[old] == 1                              ? old
                                                                   : pl_differ_fresh(d, activation);
  pl_op *op = pl_tape_sweep(tape, "gradient_add", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, gradient, old, PL_NONE,
                            sum, PL_NONE);
  if (new_bytes < old_bytes) op->bytes = 3 * new_bytes; /* a slice: BERT's pooler */
  if (sum != old) {
    d->users[old]--;
    assign(d, activation, sum);
  }
}

static void backward_max_pool(pl_differ *d, const pl_tape_node *node, uint32_t g) {
  uint32_t dx = pl_differ_fresh(d, node->input);
  pl_tape_sweep(d->tape, node->names.backward, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, g, node->input, node->output,
                dx, PL_NONE);
  pl_differ_arrive(d, node->input, dx);
}

static void backward_norm(pl_differ *d, const pl_tape_node *node, uint32_t g) {
  uint32_t dx = pl_differ_fresh(d, node->input);
  uint32_t dw = node->weight != PL_NONE ? pl_differ_parameter_gradient(d, node->weight) : PL_NONE;
  pl_tape_sweep(d->tape, node->names.backward, PL_OP_NORM, PL_CATEGORY_BACKWARD, norm_flops, g, node->input,
                node->weight, dx, dw);
  pl_differ_arrive(d, node->input, dx);
}

/* One memory-bound op from g and up to one kept tensor to the gradient of the input. */
static void backward_sweep(pl_differ *d, const pl_tape_node *node, pl_op_kind kind, double flops, uint32_t g,
                           uint32_t kept) {
  uint32_t dx = pl_differ_fresh(d, node->input);
  pl_tape_sweep(d->tape, node->names.backward, kind, PL_CATEGORY_BACKWARD, flops, g, kept, PL_NONE, dx, PL_NONE);
  pl_differ_arrive(d, node->input, dx);
}

/* The product's two derivatives, silu's, and both halves packed into one tensor again. */
static void backward_gated(pl_differ *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  double half = tape->tensors[g].size_bytes;
  uint32_t dgate = pl_tape_like(tape, node->second, "gate", PL_TENSOR_GRADIENT, tape->shard->dtype);
  uint32_t dother = pl_tape_like(tape, node->second, "gate", PL_TENSOR_GRADIENT, tape->shard->dtype);
  uint32_t dx = pl_differ_fresh(d, node->input);
  pl_tape_sweep(tape, "gate_other_backward", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, g, node->second, PL_NONE,
                dother, PL_NONE);
  pl_tape_sweep(tape, node->names.backward, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, g, node->input, PL_NONE, dgate,
                PL_NONE)
      ->bytes = 3 * half;
  pl_tape_sweep(tape, "gate_backward", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, pointwise_flops, dgate, node->input,
                PL_NONE, dgate, PL_NONE)
      ->bytes = 3 * half;
  pl_tape_sweep(tape, "gate_pack", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, dgate, dother, PL_NONE, dx, PL_NONE);
  pl_differ_arrive(d, node->input, dx);
}

/* The masked halves of the gradient and of the probabilities are not read. */
static void backward_softmax(pl_differ *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  uint32_t dx = pl_differ_fresh(d, node->input);
  pl_op *op = pl_tape_sweep(tape, node->names.backward, PL_OP_SOFTMAX, PL_CATEGORY_BACKWARD, softmax_flops, g,
                            node->output, PL_NONE, dx, PL_NONE);
  if (tape->model->causal && tape->framework->fuses_softmax)
    op->bytes -= (tape->tensors[g].size_bytes + tape->tensors[node->output].size_bytes) / 2;
  pl_differ_arrive(d, node->input, dx);
}

static void backward_residual(pl_differ *d, const pl_tape_node *node, uint32_t g) {
  pl_differ_arrive(d, node->second, g);
  if (node->auxiliary != PL_NONE)
    backward_sweep(d, node, PL_OP_ELEMENTWISE, dropout_flops, g, node->auxiliary);
  else
    pl_differ_arrive(d, node->input, g);
  pl_differ_bias_gradient(d, node->names.bias_grad, node->bias, d->gradient[node->input]);
  pl_differ_bias_gradient(d, node->names.bias_grad, node->weight,
                          d->gradient[node->input]); /* the second bias of a parallel residual */
}

/* Where the op multiplied by a second activation, the same kernel makes that one's gradient too. */
static void backward_pointwise(pl_differ *d, const pl_tape_node *node, uint32_t g) {
  if (node->second == PL_NONE) {
    backward_sweep(d, node, PL_OP_ELEMENTWISE, pointwise_flops, g, node->input);
    return;
  }
  uint32_t dx = pl_differ_fresh(d, node->input), dsecond = pl_differ_fresh(d, node->second);
  pl_tape_sweep(d->tape, node->names.backward, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, pointwise_flops, g, node->input,
                node->second, dx, dsecond);
  pl_differ_arrive(d, node->input, dx);
  pl_differ_arrive(d, node->second, dsecond);
}

/* The packed tensor's gradient taken apart again. */
static void backward_pack(pl_differ *d, const pl_tape_node *node, uint32_t g) {
  uint32_t dx = pl_differ_fresh(d, node->input), dsecond = pl_differ_fresh(d, node->second);
  pl_tape_sweep(d->tape, node->names.backward, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, rotary_flops, g, PL_NONE,
                PL_NONE, dx, dsecond);
  pl_differ_arrive(d, node->input, dx);
  pl_differ_arrive(d, node->second, dsecond);
}

/* What was sent to an expert, or came back from one, returns the same way. */
static void backward_all_to_all(pl_differ *d, const pl_tape_node *node, uint32_t g) {
  uint32_t dx = pl_differ_fresh(d, node->input);
  pl_tape_group_collective(d->tape, node->names.backward, PL_ALL_TO_ALL, PL_GROUP_EXPERT, true,
                           d->tape->forward[node->op].size_bytes, g, dx);
  pl_differ_arrive(d, node->input, dx);
}

/* The memory of part of a packed gradient. */
static uint32_t part_of(pl_differ *d, uint32_t of, double share, pl_dtype dtype) {
  uint32_t part = pl_tape_like(d->tape, of, d->tape->tensors[of].name, PL_TENSOR_GRADIENT, dtype);
  d->tape->tensors[part].size_bytes *= share;
  return part;
}

static uint32_t gradient_copy(pl_differ *d, const char *name, uint32_t g, uint32_t other, uint32_t copy) {
  pl_op *op =
      pl_tape_sweep(d->tape, name, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 0, g, PL_NONE, PL_NONE, copy, PL_NONE);
  op->host_free = true;
  op->bytes = 2 * d->tape->tensors[copy].size_bytes;
  op->inputs[1] = other;
  return copy;
}

/* Keys' and values' gradients are packed, the queries' is rotated, all three are packed and permuted. */
static void backward_copies(pl_differ *d, const pl_tape_node *node, uint32_t g) {
  double queries = pl_tape_queries_share(d->tape);
  pl_dtype dtype = d->tape->shard->dtype;
  uint32_t kv = gradient_copy(d, "kv_pack_backward", g, PL_NONE, part_of(d, node->input, 1 - queries, dtype));
  uint32_t q = gradient_copy(d, "queries_backward", d->queries, PL_NONE, part_of(d, node->input, queries, dtype));
  uint32_t all = gradient_copy(d, "qkv_pack_backward", kv, q, pl_differ_fresh(d, node->input));
  pl_differ_arrive(d, node->input,
                   gradient_copy(d, node->names.backward, all, PL_NONE, pl_differ_fresh(d, node->input)));
}

static void backward_rotary(pl_differ *d, const pl_tape_node *node, uint32_t g) {
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
static void backward_attention(pl_differ *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  const pl_op forward = tape->forward[node->op];
  uint32_t dx = pl_differ_fresh(d, node->input);
  if (tape->cp > 1) {
    pl_block_context_backward(tape, node, g, dx);
    pl_differ_arrive(d, node->input, dx);
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
  pl_differ_arrive(d, node->input, dx);
}

/* Gradients of the packed QKV: values first, then queries and keys into the same tensor. */
static void backward_context(pl_differ *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  const pl_op f = tape->forward[node->op];
  uint32_t dp = pl_differ_fresh(d, node->input), dqkv = pl_differ_fresh(d, node->second);
  pl_tape_gemm(tape, node->names.backward, PL_CATEGORY_BACKWARD, f.batch, f.m, f.k, f.n, g, node->second, PL_NONE, dp);
  pl_op *dv = pl_tape_gemm(tape, node->names.wgrad, PL_CATEGORY_BACKWARD, f.batch, f.k, f.n, f.m, node->input, g,
                           PL_NONE, dqkv);
  dv->transposed = true;
  pl_differ_arrive(d, node->second, dqkv);
  pl_differ_arrive(d, node->input, dp);
}

static void backward_scores(pl_differ *d, const pl_tape_node *node, uint32_t g) {
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
static void backward_embedding(pl_differ *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  uint32_t dw = pl_differ_parameter_gradient(d, node->weight);
  pl_op *op = pl_tape_op(tape, node->names.wgrad, PL_OP_EMBEDDING, PL_CATEGORY_BACKWARD, g, dw, PL_NONE, dw);
  double elements = pl_tape_elements(tape, g);
  op->m = tape->forward[node->op].m;
  op->n = tape->forward[node->op].n;
  op->flops = elements;
  op->bytes = 3 * tape->tensors[g].size_bytes + tape->tensors[node->weight].size_bytes;
  if (tape->framework->gradient_path != PL_GRADIENTS_ADDED)
    pl_differ_hand_over(d, node->weight, dw);
  else
    op->bytes += tape->tensors[node->weight].size_bytes + 2 * tape->tensors[dw].size_bytes;
}

static void backward_positions(pl_differ *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  uint32_t dw = pl_differ_parameter_gradient(d, node->weight);
  pl_op *op = pl_tape_sweep(tape, node->names.wgrad, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, g, PL_NONE, PL_NONE,
                            PL_NONE, PL_NONE);
  op->inputs[1] = op->output = dw;
  op->bytes += 2 * pl_tape_elements(tape, g) / (double)tape->mbs * pl_dtype_bytes((pl_dtype)tape->tensors[dw].dtype);
  pl_differ_arrive(d, node->input, g);
}

/* Softmax minus the target: in place in fp32, then down to the dtype of the logits. */
static void backward_loss(pl_differ *d, const pl_tape_node *node) {
  pl_tape *tape = d->tape;
  uint32_t dlogits = pl_differ_fresh(d, tape->input), wide = node->input;
  bool cast = tape->tensors[wide].dtype != tape->tensors[tape->input].dtype;
  if (cast && tape->framework->loss == PL_LOSS_COPIES) wide = pl_differ_fresh(d, node->input);
  pl_tape_sweep(tape, node->names.backward, PL_OP_CROSS_ENTROPY, PL_CATEGORY_BACKWARD, cross_entropy_flops, node->input,
                PL_NONE, PL_NONE, cast ? wide : dlogits, PL_NONE);
  if (cast)
    pl_tape_sweep(tape, "logits_fp32_backward", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, wide, PL_NONE, PL_NONE,
                  dlogits, PL_NONE);
  pl_differ_arrive(d, tape->input, dlogits);
}

static void backward_mean(pl_differ *d, const pl_tape_node *node) {
  uint32_t dx = pl_differ_fresh(d, node->input);
  pl_op *op = pl_tape_sweep(d->tape, node->names.backward, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, dx, PL_NONE,
                            PL_NONE, PL_NONE, PL_NONE);
  op->inputs[0] = PL_NONE; /* written, not read */
  op->output = dx;
  pl_differ_arrive(d, node->input, dx);
}

/* Selective recomputation: the attention core once more, in front of the first of its ops that is differentiated. */
static void repeat_core(pl_differ *d) {
  pl_tape *tape = d->tape;
  if (d->core_repeated || tape->shard->recompute != PL_RECOMPUTE_SELECTIVE) return;
  d->core_repeated = true;
  for (uint32_t i = 0; i < tape->n_nodes; i++)
    if (tape->nodes[i].core) pl_tape_repeat(tape, tape->nodes[i].first_op, tape->nodes[i].op + 1);
}

static void backward_node(pl_differ *d, const pl_tape_node *node, uint32_t g) {
  switch ((pl_tape_rule)node->rule) {
  case PL_RULE_LINEAR:
    pl_differ_linear(d, node, g);
    break;
  case PL_RULE_REDUCE:
    pl_differ_reduce(d, node, g);
    break;
  case PL_RULE_NORM:
    backward_norm(d, node, g);
    break;
  case PL_RULE_RESIDUAL:
    backward_residual(d, node, g);
    break;
  case PL_RULE_ADD:
    pl_differ_arrive(d, node->input, g);
    pl_differ_arrive(d, node->second, g);
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
    pl_differ_grouped(d, node, g);
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
    pl_differ_convolution(d, node, g);
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
  pl_differ d = {.tape = tape};
  memset(d.gradient, 0xff, sizeof d.gradient);
  if (tape->output != PL_NONE) {
    tape->output_gradient = pl_differ_fresh(&d, tape->output);
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
