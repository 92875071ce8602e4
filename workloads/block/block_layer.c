/* One transformer layer, forward: the families differ in where the norms stand, in the MLP's gate, in biases, dropout
 * and positions.
 *
 * Tensor parallelism is Megatron's (Shoeybi et al. 2019, section 3; Korthikanti et al. 2022, section 4): QKV and the
 * first MLP matrix are split by columns, the attention output and the second MLP matrix by rows, with one all-reduce
 * behind each row-split matrix; under sequence parallelism what lies outside is split over the sequence, and all-gather
 * and reduce-scatter take the all-reduce's place.
 *
 *   pre-norm (gpt2, llama, mistral)   x -> norm -> attention -> (+ x) -> norm -> MLP -> (+) -> y
 *   post-norm (bert)                  x -> attention -> (+ x) -> norm -> MLP -> (+) -> norm -> y
 *   parallel residual (gpt_neox)      y = x + attention(norm1(x)) + MLP(norm2(x)): both partial sums share one
 * all-reduce
 */
#include "core/cluster/cluster.h"
#include "workloads/block/block_tape.h"

static const double activation_flops = 8, softmax_flops = 5, rotary_flops = 6;

/* x cos + rotate(x) sin in PyTorch ops: the halves exchanged, two products, their sum; the fused op stands for one of
 * the products. */
static void eager_rotary(pl_tape *tape, uint32_t qkv, double share) {
  static const char *const names[] = {"rotary_rotate", "rotary_sin", "rotary_add"};
  for (int i = 0; i < 3; i++) {
    pl_op *op =
        pl_tape_sweep(tape, names[i], PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, qkv, PL_NONE, PL_NONE, qkv, PL_NONE);
    op->bytes *= i == 2 ? 1.5 * share : share; /* the sum reads two */
    op->flops *= share;
  }
}

/* Rotary embedding of queries and keys, in place in the packed QKV. */
static void rotary(pl_tape *tape, uint32_t qkv) {
  const pl_tape_names names = PL_OP_NAMES("rotary");
  pl_op *op = pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, rotary_flops, qkv, PL_NONE,
                            PL_NONE, qkv, PL_NONE);
  double share = (double)(tape->heads + tape->kv_heads) / (double)(tape->heads + 2 * tape->kv_heads);
  op->bytes *= share;
  op->flops *= share;
  uint32_t first_op = tape->n_forward - 1;
  if (!tape->framework->fuses_rotary) eager_rotary(tape, qkv, share);
  pl_tape_note(tape, PL_RULE_ROTARY, names, qkv, qkv)->first_op = first_op;
}

/* Query-key pairs of one head and sequence that a kernel which skips masked tiles works on: half of s^2 when causal,
 * less with a sliding window w < s: s w - w^2 / 2. */
static double attention_pairs(const pl_model *model, double seq) {
  if (!model->causal) return seq * seq;
  double window = model->sliding_window > 0 ? (double)model->sliding_window : seq;
  double pairs = window < seq ? seq * window - window * window / 2 : seq * seq / 2;
  return model->alternating_window ? (pairs + seq * seq / 2) / 2 : pairs;
}

static uint32_t flash_attention(pl_tape *tape, uint32_t qkv, uint32_t context) {
  const pl_tape_names names = PL_OP_NAMES("attention");
  const int64_t extent[] = {tape->mbs, tape->heads, tape->seq};
  uint32_t log_sum = pl_tape_tensor(tape, "log_sum_exp", PL_TENSOR_ACTIVATION, PL_DTYPE_FP32, "bas", extent);
  uint32_t first_op = tape->n_forward;
  /* Scores are as wide as keys, what they weigh is as wide as values: the mean has the products' work. */
  int64_t batch = tape->mbs * tape->heads, width = (tape->model->head_size + tape->model->value_size) / 2;
  double flops = 4 * (double)batch * (double)width * attention_pairs(tape->model, (double)tape->model_seq);
  if (tape->cp > 1) {
    pl_block_context_attention(tape, qkv, context, log_sum, flops / (double)tape->cp);
  } else {
    pl_op *op = pl_tape_sweep(tape, names.forward, PL_OP_ATTENTION, PL_CATEGORY_FORWARD, 0, qkv, PL_NONE, PL_NONE,
                              context, log_sum);
    op->inputs[3] = tape->queries;
    op->bytes += tape->queries == PL_NONE ? 0 : tape->tensors[tape->queries].size_bytes;
    op->batch = batch;
    op->m = op->n = tape->seq;
    op->k = width;
    op->attention_kernel = (uint8_t)tape->shard->attention_kernel;
    op->flops = flops;
  }
  pl_tape_node *node = pl_tape_note(tape, PL_RULE_ATTENTION, names, qkv, context);
  node->first_op = first_op;
  node->auxiliary = log_sum;
  node->core = true;
  return context;
}

/* A number per head and pair of positions from a table, added to the scores: a tensor of its own (Liu et al. 2021,
 * Swin, eq. 4). Heads are split over the tensor group, and the table with them. */
static uint32_t relative_positions(pl_tape *tape, uint32_t scores) {
  const pl_tape_names names = PL_OP_NAMES("relative_positions");
  int64_t entries = (int64_t)pl_model_relative_positions(tape->model);
  uint32_t table = pl_tape_parameter(tape, names.forward, "pa", entries, tape->heads);
  uint32_t sum = pl_tape_like(tape, scores, names.forward, PL_TENSOR_ACTIVATION, tape->shard->dtype);
  pl_op *op = pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, scores, PL_NONE, PL_NONE,
                            sum, PL_NONE);
  op->inputs[1] = table; /* looked up for every pair, once for the whole batch */
  op->bytes += 2 * tape->tensors[scores].size_bytes / (double)tape->mbs;
  pl_tape_node *node = pl_tape_note(tape, PL_RULE_POSITIONS, names, scores, sum);
  node->weight = table;
  node->core = true;
  return sum;
}

/* Q K^T, masked softmax (one fused kernel), dropout, A V: three s x s tensors and a mask per head. Causality saves
 * the softmax the reading of the masked half (Megatron's kernel writes zeros there), and the matrix products nothing.
 */
static uint32_t unfused_attention(pl_tape *tape, uint32_t qkv, uint32_t context) {
  int64_t batch = tape->mbs * tape->heads, seq = tape->seq, d = tape->model->head_size;
  const int64_t square[] = {tape->mbs, tape->heads, seq, seq};
  uint32_t scores = pl_tape_tensor(tape, "scores", PL_TENSOR_ACTIVATION, tape->shard->dtype, "bass", square);
  pl_tape_gemm(tape, "scores", PL_CATEGORY_FORWARD, batch, seq, seq, d, qkv, PL_NONE, PL_NONE, scores);
  pl_tape_note(tape, PL_RULE_SCORES,
               (pl_tape_names){.forward = "scores", .backward = "scores_dq", .wgrad = "scores_dk"}, qkv, scores)
      ->core = true;
  if (tape->model->relative_window > 0) scores = relative_positions(tape, scores);

  uint32_t probabilities =
      pl_tape_tensor(tape, "probabilities", PL_TENSOR_ACTIVATION, tape->shard->dtype, "bass", square);
  const pl_tape_names softmax = PL_OP_NAMES("softmax");
  uint32_t first_op = tape->n_forward;
  if (!tape->framework->fuses_softmax) /* the mask by a kernel of its own, in place; its derivative is the identity */
    pl_tape_sweep(tape, "mask", PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, scores, PL_NONE, PL_NONE, scores, PL_NONE);
  pl_op *op = pl_tape_sweep(tape, "softmax", PL_OP_SOFTMAX, PL_CATEGORY_FORWARD, softmax_flops, scores, PL_NONE,
                            PL_NONE, probabilities, PL_NONE);
  if (tape->model->causal && tape->framework->fuses_softmax) op->bytes -= tape->tensors[scores].size_bytes / 2;
  pl_tape_node *node = pl_tape_note(tape, PL_RULE_SOFTMAX, softmax, scores, probabilities);
  node->first_op = first_op;
  node->core = true;

  if (tape->model->attention_dropout) {
    probabilities = pl_tape_dropout(tape, PL_OP_NAMES("attention_dropout"), probabilities);
    tape->nodes[tape->n_nodes - 1].core = true;
  }
  pl_tape_gemm(tape, "context", PL_CATEGORY_FORWARD, batch, seq, tape->model->value_size, seq, probabilities, qkv,
               PL_NONE, context);
  const pl_tape_names names = {.forward = "context", .backward = "context_dprobabilities", .wgrad = "context_dv"};
  node = pl_tape_note(tape, PL_RULE_CONTEXT, names, probabilities, context);
  node->second = qkv;
  node->core = true;
  return context;
}

/* Queries and keys normalised per head, one scale for all heads of either. */
static uint32_t normed_heads(pl_tape *tape, uint32_t qkv) {
  uint32_t output = pl_tape_like(tape, qkv, "qk_norm", PL_TENSOR_ACTIVATION, tape->shard->dtype);
  return pl_tape_norm_to(tape, PL_OP_NAMES("qk_norm"), qkv, 2 * tape->model->head_size, output);
}

static bool copies_heads(const pl_tape *tape) {
  bool fused = tape->shard->flash && tape->cp == 1 && tape->model->relative_window == 0;
  return tape->framework->copies_qkv && fused && !tape->model->qk_norm;
}

/* Another tensor with what `input` has of queries, keys and values, or with part of it. */
static uint32_t copied_heads(pl_tape *tape, const char *name, uint32_t input, int64_t heads) {
  uint32_t output = pl_tape_like(tape, input, name, PL_TENSOR_ACTIVATION, tape->shard->dtype);
  pl_tensor *copy = &tape->tensors[output];
  copy->size_bytes *= (double)heads / (double)copy->extent[2];
  copy->extent[2] = heads;
  pl_tape_sweep(tape, name, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 0, input, PL_NONE, PL_NONE, output, PL_NONE)
      ->bytes = 2 * copy->size_bytes;
  tape->forward[tape->n_forward - 1].host_free = true;
  return output;
}

/* Batch and tokens change places, keys and values are packed side by side and then into the kernel's layout, queries go
 * to a tensor of their own as they are rotated. The output stands for both and has the memory of keys and values. */
static uint32_t copied_qkv(pl_tape *tape, uint32_t qkv) {
  int64_t all = tape->tensors[qkv].extent[2];
  uint32_t permuted = copied_heads(tape, "qkv_permute", qkv, all);
  uint32_t packed = copied_heads(tape, "kv_pack", permuted, 2 * tape->kv_heads);
  uint32_t output = copied_heads(tape, "kv_layout", packed, 2 * tape->kv_heads);
  tape->tensors[output].extent[2] = all;
  tape->queries = pl_tape_like(tape, permuted, "queries", PL_TENSOR_ACTIVATION, tape->shard->dtype);
  tape->tensors[tape->queries].size_bytes *= pl_tape_queries_share(tape);
  pl_op *op = &tape->forward[tape->n_forward - 1];
  op->inputs[1] = permuted;
  op->auxiliary = tape->queries;
  pl_tape_note(tape, PL_RULE_COPIES, PL_OP_NAMES("qkv_permute"), qkv, output);
  return output;
}

static uint32_t packed_qkv(pl_tape *tape, uint32_t input, uint32_t *product) {
  const pl_model *model = tape->model;
  int64_t d = model->head_size, packed = tape->heads + 2 * tape->kv_heads;
  double wide = (double)(model->n_heads * d), narrow = (double)(model->n_kv_heads * d);
  pl_linear linear = {.names = PL_LINEAR_NAMES("qkv"),
                      .parallel = PL_PARALLEL_COLUMN,
                      .in = model->hidden,
                      .out = packed * d,
                      .model_in = (double)model->hidden,
                      .model_out = wide + 2 * narrow,
                      .bias = model->attention_bias};
  uint32_t qkv = pl_tape_tensor(tape, "qkv", PL_TENSOR_ACTIVATION, tape->shard->dtype, "bsad",
                                (const int64_t[]){tape->mbs, tape->seq, packed, d});
  pl_tape_linear(tape, &linear, input, PL_NONE, qkv);
  *product = qkv;
  if (copies_heads(tape)) qkv = copied_qkv(tape, qkv);
  if (model->qk_norm) qkv = normed_heads(tape, qkv);
  if (model->rotary) rotary(tape, qkv);
  return qkv;
}

/* The last op is the last before which `tensor` may not go: the caller's variables have it. */
static void hold(pl_tape *tape, uint32_t tensor) {
  tape->forward[tape->n_forward - 1].inputs[PL_OP_INPUTS - 1] = tensor;
}

/* Partial sums of the attention output, before the reduction; its bias, if any, is added behind the reduction. */
static uint32_t attention(pl_tape *tape, uint32_t input) {
  const pl_model *model = tape->model;
  int64_t d = model->head_size, value = model->value_size;
  double wide = (double)(model->n_heads * value);
  uint32_t product = PL_NONE;
  uint32_t qkv = model->kv_rank > 0 ? pl_block_latent_qkv(tape, input) : packed_qkv(tape, input, &product);
  uint32_t context = pl_tape_tensor(tape, "context", PL_TENSOR_ACTIVATION, tape->shard->dtype, "bsad",
                                    (const int64_t[]){tape->mbs, tape->seq, tape->heads, value});
  bool fused = tape->shard->flash && model->relative_window == 0; /* such kernels take no table of positions */
  context = fused ? flash_attention(tape, qkv, context) : unfused_attention(tape, qkv, context);
  if (tape->queries != PL_NONE) hold(tape, product);
  tape->model_flops += 2 * (double)tape->mbs * (double)tape->model_seq * (double)tape->model_seq *
                       (double)model->n_heads * (double)(d + value);
  pl_linear linear = {.names = PL_LINEAR_NAMES("attention_out"),
                      .parallel = PL_PARALLEL_ROW,
                      .in = tape->heads * value,
                      .out = model->hidden,
                      .model_in = wide,
                      .model_out = (double)model->hidden};
  return pl_tape_linear(tape, &linear, context, PL_NONE,
                        pl_tape_activation(tape, "attention_out", tape->seq, 'h', model->hidden));
}

/* SwiGLU in PyTorch ops: silu of one half is a tensor of its own, kept for the product's derivative. */
static void eager_gated(pl_tape *tape, pl_tape_names names, uint32_t up, uint32_t active) {
  double half = tape->tensors[active].size_bytes;
  uint32_t gate = pl_tape_like(tape, active, "gate", PL_TENSOR_ACTIVATION, tape->shard->dtype);
  pl_tape_sweep(tape, "gate", PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, activation_flops / 2, up, PL_NONE, PL_NONE, gate,
                PL_NONE)
      ->bytes = 2 * half;
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, gate, up, PL_NONE, active, PL_NONE)
      ->bytes = 3 * half;
  pl_tape_node *node = pl_tape_note(tape, PL_RULE_GATED, names, up, active);
  node->second = gate;
  node->first_op = node->op - 1;
}

static uint32_t activation(pl_tape *tape, pl_tape_names names, uint32_t up, int64_t f) {
  uint32_t active = pl_tape_activation(tape, names.forward, tape->seq, 'f', f);
  bool fuses = tape->framework->fuses_activation;
  if (tape->model->gated_mlp && !fuses) {
    eager_gated(tape, names, up, active);
    return active;
  }
  if (!fuses && tape->model->mlp_bias) /* the bias by a kernel of its own, in place */
    pl_tape_sweep(tape, "mlp_up_bias", PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, up, PL_NONE, PL_NONE, up, PL_NONE);
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, activation_flops, up, PL_NONE, PL_NONE,
                active, PL_NONE);
  pl_tape_note(tape, PL_RULE_POINTWISE, names, up, active);
  return active;
}

uint32_t pl_block_mlp(pl_tape *tape, const pl_mlp *mlp, uint32_t input) {
  const pl_model *model = tape->model;
  int64_t f = mlp->width / tape->tmp, halves = model->gated_mlp ? 2 : 1;
  double h = (double)model->hidden, ffn = (double)mlp->width;
  pl_linear linear = {.names = mlp->up,
                      .parallel = PL_PARALLEL_COLUMN,
                      .in = model->hidden,
                      .out = halves * f,
                      .model_in = h,
                      .model_out = (double)halves * ffn,
                      .bias = model->mlp_bias};
  uint32_t up = halves == 2 ? pl_tape_tensor(tape, mlp->up.forward, PL_TENSOR_ACTIVATION, tape->shard->dtype, "bsgf",
                                             (const int64_t[]){tape->mbs, tape->seq, 2, f})
                            : pl_tape_activation(tape, mlp->up.forward, tape->seq, 'f', f);
  pl_tape_linear(tape, &linear, input, PL_NONE, up);
  uint32_t active = activation(tape, mlp->activation, up, f);
  linear = (pl_linear){
      .names = mlp->down, .parallel = PL_PARALLEL_ROW, .in = f, .out = model->hidden, .model_in = ffn, .model_out = h};
  return pl_tape_linear(tape, &linear, active, PL_NONE,
                        pl_tape_activation(tape, mlp->down.forward, tape->seq, 'h', model->hidden));
}

static uint32_t dense_mlp(pl_tape *tape, uint32_t input) {
  const pl_mlp mlp = {.up = PL_LINEAR_NAMES("mlp_up"),
                      .activation = PL_OP_NAMES("activation"),
                      .down = PL_LINEAR_NAMES("mlp_down"),
                      .width = tape->model->ffn_hidden};
  return pl_block_mlp(tape, &mlp, input);
}

static void sequential_layer(pl_tape *tape, bool experts) {
  const pl_model *model = tape->model;
  const pl_tape_names norm1 = PL_OP_NAMES("norm1"), norm2 = PL_OP_NAMES("norm2");
  uint32_t x = tape->input;
  uint32_t y = attention(tape, model->post_norm ? x : pl_tape_norm(tape, norm1, x));
  y = pl_tape_reduce(tape, PL_LINEAR_NAMES("attention_out"), y);
  uint32_t attended = y;
  if (model->sandwich_norms) y = pl_tape_norm(tape, PL_OP_NAMES("attention_post_norm"), y);
  x = pl_tape_residual(tape, PL_OP_NAMES("attention_residual"), y, x, model->output_bias, model->hidden_dropout);
  if (model->post_norm) x = pl_tape_norm(tape, norm1, x);
  y = model->post_norm ? x : pl_tape_norm(tape, norm2, x);
  y = experts ? pl_block_experts(tape, y) : pl_tape_reduce(tape, PL_LINEAR_NAMES("mlp_down"), dense_mlp(tape, y));
  if (model->sandwich_norms) y = pl_tape_norm(tape, PL_OP_NAMES("mlp_post_norm"), y);
  x = pl_tape_residual(tape, PL_OP_NAMES("mlp_residual"), y, x, model->mlp_bias, model->hidden_dropout);
  if (tape->queries != PL_NONE) hold(tape, attended);
  if (model->post_norm) x = pl_tape_norm(tape, norm2, x);
  tape->output = x;
}

/* Dropout, where configured, acts once on the sum (GPT-NeoX configurations set it to 0). The two output biases act as
 * one. */
static void parallel_layer(pl_tape *tape) {
  const pl_model *model = tape->model;
  uint32_t x = tape->input;
  uint32_t left = attention(tape, pl_tape_norm(tape, PL_OP_NAMES("norm1"), x));
  uint32_t right = dense_mlp(tape, pl_tape_norm(tape, PL_OP_NAMES("norm2"), x));
  const pl_tape_names names = PL_OP_NAMES("parallel_add");
  uint32_t sum = pl_tape_activation(tape, "parallel_sum", tape->seq, 'h', model->hidden);
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, left, right, PL_NONE, sum, PL_NONE);
  pl_tape_note(tape, PL_RULE_ADD, names, left, sum)->second = right;
  sum = pl_tape_reduce(tape, PL_LINEAR_NAMES("parallel_sum"), sum);
  uint32_t second_bias = model->output_bias && model->mlp_bias
                             ? pl_tape_parameter(tape, "attention_out_bias", "h", model->hidden, 0)
                             : PL_NONE;
  tape->output = pl_tape_residual(tape, PL_OP_NAMES("residual"), sum, x, model->output_bias || model->mlp_bias,
                                  model->hidden_dropout);
  if (second_bias != PL_NONE) tape->nodes[tape->n_nodes - 1].weight = second_bias;
}

void pl_block_layer_forward(pl_tape *tape, bool experts) {
  tape->input = pl_tape_activation(tape, "input", tape->seq_local, 'h', tape->model->hidden);
  if (tape->model->parallel_residual)
    parallel_layer(tape);
  else
    sequential_layer(tape, experts);
}
