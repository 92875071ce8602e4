/* Backward kernels of attention: fused, or scores, softmax, dropout and what they weigh; rotary positions, and the
 * copies that a profile makes of queries, keys and values. See workloads/lower/lower_backward.h. */
#include "core/cluster/cluster.h"
#include "workloads/lower/lower_backward.h"

static const double softmax_flops = 5, rotary_flops = 6;

/* The masked halves of the gradient and of the probabilities are not read. A scale of its own has a kernel here, too.
 */
void pl_back_softmax(pl_back *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  uint32_t dx = pl_back_fresh(d, node->input);
  pl_op *op = pl_tape_sweep(tape, node->names.backward, PL_OP_SOFTMAX, PL_CATEGORY_BACKWARD, softmax_flops, g,
                            node->output, PL_NONE, dx, PL_NONE);
  if (node->masked) op->bytes -= (tape->tensors[g].size_bytes + tape->tensors[node->output].size_bytes) / 2;
  if (node->scaled)
    pl_tape_sweep(tape, "scores_scale_backward", PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 1, dx, PL_NONE, PL_NONE, dx,
                  PL_NONE);
  pl_back_arrive(d, node->input, dx);
}

/* The memory of part of a packed gradient. */
static uint32_t part_of(pl_back *d, uint32_t of, double share, pl_dtype dtype) {
  uint32_t part = pl_tape_like(d->tape, of, d->tape->tensors[of].name, PL_TENSOR_GRADIENT, dtype);
  d->tape->tensors[part].size_bytes *= share;
  return part;
}

static uint32_t gradient_copy(pl_back *d, const char *name, uint32_t g, uint32_t other, uint32_t copy) {
  pl_op *op =
      pl_tape_sweep(d->tape, name, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, 0, g, PL_NONE, PL_NONE, copy, PL_NONE);
  op->host_free = true;
  op->bytes = 2 * d->tape->tensors[copy].size_bytes;
  op->inputs[1] = other;
  return copy;
}

/* Keys' and values' gradients are packed, the queries' is rotated, all three are packed and permuted. */
void pl_back_copies(pl_back *d, const pl_tape_node *node, uint32_t g) {
  double queries = pl_tape_queries_share(d->tape);
  pl_dtype dtype = d->tape->shard->dtype;
  uint32_t kv = gradient_copy(d, "kv_pack_backward", g, PL_NONE, part_of(d, node->input, 1 - queries, dtype));
  uint32_t q = gradient_copy(d, "queries_backward", d->queries, PL_NONE, part_of(d, node->input, queries, dtype));
  uint32_t all = gradient_copy(d, "qkv_pack_backward", kv, q, pl_back_fresh(d, node->input));
  pl_back_arrive(d, node->input, gradient_copy(d, node->names.backward, all, PL_NONE, pl_back_fresh(d, node->input)));
}

void pl_back_rotary(pl_back *d, const pl_tape_node *node, uint32_t g) {
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
void pl_back_attention(pl_back *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  const pl_op forward = tape->forward[node->op];
  uint32_t dx = pl_back_fresh(d, node->input);
  if (tape->cp > 1) {
    pl_back_context_parallel(d, node, g, dx);
    pl_back_arrive(d, node->input, dx);
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
  pl_back_arrive(d, node->input, dx);
}

/* Gradients of the packed QKV: values first, then queries and keys into the same tensor. */
void pl_back_context(pl_back *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  const pl_op f = tape->forward[node->op];
  uint32_t dp = pl_back_fresh(d, node->input), dqkv = pl_back_fresh(d, node->second);
  pl_tape_gemm(tape, node->names.backward, PL_CATEGORY_BACKWARD, f.batch, f.m, f.k, f.n, g, node->second, PL_NONE, dp);
  pl_op *dv = pl_tape_gemm(tape, node->names.wgrad, PL_CATEGORY_BACKWARD, f.batch, f.k, f.n, f.m, node->input, g,
                           PL_NONE, dqkv);
  dv->transposed = true;
  pl_back_arrive(d, node->second, dqkv);
  pl_back_arrive(d, node->input, dp);
}

void pl_back_scores(pl_back *d, const pl_tape_node *node, uint32_t g) {
  pl_tape *tape = d->tape;
  const pl_op f = tape->forward[node->op];
  uint32_t dqkv = d->gradient[node->input];
  pl_tape_gemm(tape, node->names.backward, PL_CATEGORY_BACKWARD, f.batch, f.m, f.k, f.n, g, node->input, dqkv, dqkv);
  pl_op *dk =
      pl_tape_gemm(tape, node->names.wgrad, PL_CATEGORY_BACKWARD, f.batch, f.n, f.k, f.m, g, node->input, dqkv, dqkv);
  dk->transposed = true;
}

/* The packed tensor's gradient taken apart again. */
void pl_back_pack(pl_back *d, const pl_tape_node *node, uint32_t g) {
  uint32_t dx = pl_back_fresh(d, node->input), dsecond = pl_back_fresh(d, node->second);
  pl_tape_sweep(d->tape, node->names.backward, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, rotary_flops, g, PL_NONE,
                PL_NONE, dx, dsecond);
  pl_back_arrive(d, node->input, dx);
  pl_back_arrive(d, node->second, dsecond);
}
