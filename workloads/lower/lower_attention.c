/* Attention: queries, keys and values are one product, packed side by side; norms per head and rotary positions work on
 * the packed tensor; the core is one fused kernel, or scores, masked softmax, dropout and what they weigh.
 *
 * Ranks that share a key-value head each make it, from the whole sequence that the product of the queries reads: what
 * laying exchanges of such keys and values (they could be made of a share of the tokens and gathered) is not launched.
 */
#include <string.h>

#include "core/cluster/cluster.h"
#include "workloads/language/ir_core.h"
#include "workloads/lower/lowering.h"

static const double rotary_flops = 6, softmax_flops = 5;

typedef struct attention_ops {
  pl_core core;
  pl_head_ops q, k, v;
} attention_ops;

/* Scores, with what a table adds to them, softmax, dropout, and the mean of values that it weighs. */
static bool find_steps(const pl_lowering *to, int32_t op, pl_core *core) {
  pl_ir_core steps;
  if (!pl_ir_core_find(to->read.f, op, &steps) || steps.added == PL_IR_NONE) return false;
  int32_t table = pl_read_maker(&to->read, pl_read_op(&to->read, steps.added)->inputs[1]);
  if (!pl_read_is(&to->read, table, "embedding")) return false;
  core->table = pl_read_op(&to->read, table)->inputs[1];
  core->drops = steps.dropout != PL_IR_NONE;
  core->q = pl_read_op(&to->read, steps.scores)->inputs[0];
  core->k = pl_read_op(&to->read, steps.scores)->inputs[1];
  core->v = pl_read_op(&to->read, op)->inputs[1];
  return true;
}

bool pl_lower_find_core(const pl_lowering *to, int32_t op, pl_core *core) {
  *core = (pl_core){.op = op, .table = PL_IR_NONE};
  if (!pl_read_is(&to->read, op, "attention") && !pl_read_is(&to->read, op, "ring_attention"))
    return find_steps(to, op, core);
  const pl_ir_op *own = pl_read_op(&to->read, op);
  core->q = own->inputs[0];
  core->k = own->inputs[1];
  core->v = own->inputs[2];
  core->causal = pl_ir_integer_of(own, "causal", 0) != 0;
  core->window = pl_ir_integer_of(own, "window", 0);
  core->drops = pl_ir_real_of(own, "p", 0) > 0;
  return true;
}

/* The attention whose queries `product` makes, with its three products. */
static bool find(const pl_lowering *to, int32_t product, attention_ops *found) {
  *found = (attention_ops){0};
  if (!pl_lower_is_param(to, pl_read_op(&to->read, product)->inputs[1])) return false;
  int32_t at = product;
  while (at < to->read.f->n_ops && !pl_lower_find_core(to, at, &found->core))
    at++;
  if (at == to->read.f->n_ops) return false;
  return pl_read_heads(&to->read, found->core.q, &found->q) && pl_read_heads(&to->read, found->core.k, &found->k) &&
         pl_read_heads(&to->read, found->core.v, &found->v) && found->q.product == product;
}

/* ---- queries, keys and values ---- */

static uint32_t packed_product(pl_lowering *to, const attention_ops *of) {
  pl_tape *tape = to->tape;
  pl_linear linear = pl_lower_linear(to, of->q.product);
  const pl_linear k = pl_lower_linear(to, of->k.product), v = pl_lower_linear(to, of->v.product);
  int64_t packed = tape->heads + 2 * tape->kv_heads, d = pl_lower_extent(to, of->core.q, 'd');
  pl_lower_beside(&linear, &k);
  pl_lower_beside(&linear, &v);
  PL_ASSERT(linear.out == packed * d);
  linear.bias = of->q.bias != PL_IR_NONE;
  uint32_t qkv = pl_tape_tensor(tape, linear.names.forward, PL_TENSOR_ACTIVATION, tape->shard->dtype, "bsad",
                                (const int64_t[]){tape->mbs, linear.m / tape->mbs, packed, d});
  return pl_tape_linear(tape, &linear, pl_lower_input(to, of->q.product, 0), PL_NONE, qkv);
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

/* Queries and keys normalised per head, one scale for all heads of either. */
static uint32_t normed_heads(pl_lowering *to, int32_t norm, uint32_t qkv) {
  int64_t d = pl_lower_extent(to, pl_read_op(&to->read, norm)->first_output, 'd');
  uint32_t output = pl_tape_like(to->tape, qkv, "qk_norm", PL_TENSOR_ACTIVATION, to->tape->shard->dtype);
  pl_lower_norm_to(to, norm, PL_OP_NAMES("qk_norm"), qkv, 2 * d, output);
  return output;
}

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

/* Rotary embedding of queries and keys, in place in the packed tensor. */
static void rotary(pl_tape *tape, uint32_t qkv) {
  const pl_tape_names names = PL_OP_NAMES("rotary");
  pl_op *op = pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, rotary_flops, qkv, PL_NONE,
                            PL_NONE, qkv, PL_NONE);
  double share = (double)(tape->heads + tape->kv_heads) / (double)(tape->heads + 2 * tape->kv_heads);
  op->bytes *= share;
  op->flops *= share;
  uint32_t first_op = tape->n_forward - 1;
  if (!tape->framework->kernels.fuses_rotary) eager_rotary(tape, qkv, share);
  pl_tape_note(tape, PL_RULE_ROTARY, names, qkv, qkv)->first_op = first_op;
}

/* ---- the core ---- */

/* Query-key pairs of one head and sequence that a kernel which skips masked tiles works on: half of s^2 when causal,
 * less with a sliding window w < s: s w - w^2 / 2; the mean where some layers have no window. */
static double attention_pairs(const pl_lowering *to, const pl_core *core, double seq) {
  if (!core->causal) return seq * seq;
  double window = (double)core->window;
  double pairs = window > 0 && window < seq ? seq * window - window * window / 2 : seq * seq / 2;
  double period = to->block->window_period;
  return period > 1 ? (pairs * (period - 1) + seq * seq / 2) / period : pairs;
}

static void fused(pl_lowering *to, const pl_core *core, uint32_t qkv, uint32_t context, int64_t width) {
  pl_tape *tape = to->tape;
  const pl_tape_names names = PL_OP_NAMES("attention");
  const int64_t extent[] = {tape->mbs, tape->heads, tape->seq};
  uint32_t log_sum = pl_tape_tensor(tape, "log_sum_exp", PL_TENSOR_ACTIVATION, PL_DTYPE_FP32, "bas", extent);
  uint32_t first_op = tape->n_forward;
  /* Scores are as wide as keys, what they weigh is as wide as values: the mean has the products' work. */
  int64_t batch = tape->mbs * tape->heads;
  double flops = 4 * (double)batch * (double)width * attention_pairs(to, core, (double)tape->model_seq);
  if (tape->cp > 1) {
    pl_lower_context(to, core, qkv, context, log_sum, flops / (double)tape->cp);
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
}

/* To fp32 for the softmax, as autocast has it, and back for the product. */
static uint32_t autocast_scores(pl_tape *tape, uint32_t from, uint32_t to) {
  static const pl_tape_names names = PL_OP_NAMES("scores_autocast");
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, from, PL_NONE, PL_NONE, to, PL_NONE)
      ->plain = true;
  pl_tape_note(tape, PL_RULE_CAST, names, from, to);
  return to;
}

/* Masked softmax in one kernel; causality saves it the reading of the masked half (Megatron's kernel writes zeros
 * there). Otherwise the mask is a kernel of its own, in place, whose derivative is the identity, and the scale may be
 * one, too, in either pass. */
static uint32_t masked_softmax(pl_lowering *to, bool causal, uint32_t scores, uint32_t probabilities) {
  pl_tape *tape = to->tape;
  bool scales = !tape->framework->kernels.fuses_scale;
  uint32_t first_op = tape->n_forward;
  if (scales)
    pl_tape_sweep(tape, "scores_scale", PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, scores, PL_NONE, PL_NONE, scores,
                  PL_NONE);
  if (pl_framework_masks_apart(tape->framework))
    pl_tape_sweep(tape, "mask", PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, scores, PL_NONE, PL_NONE, scores, PL_NONE);
  uint32_t narrow = probabilities;
  if (tape->normed != tape->shard->dtype) {
    probabilities = pl_tape_like(tape, scores, "probabilities", PL_TENSOR_ACTIVATION, tape->normed);
    scores = autocast_scores(tape, scores, pl_tape_like(tape, scores, "scores", PL_TENSOR_ACTIVATION, tape->normed));
  }
  pl_op *op = pl_tape_sweep(tape, "softmax", PL_OP_SOFTMAX, PL_CATEGORY_FORWARD, softmax_flops, scores, PL_NONE,
                            PL_NONE, probabilities, PL_NONE);
  bool masked = pl_framework_skips_masked(tape->framework, causal);
  if (masked) op->bytes -= tape->tensors[scores].size_bytes / 2;
  pl_tape_node *node = pl_tape_note(tape, PL_RULE_SOFTMAX, PL_OP_NAMES("softmax"), scores, probabilities);
  node->first_op = first_op;
  node->masked = masked;
  node->scaled = scales;
  if (narrow != probabilities) autocast_scores(tape, probabilities, narrow);
  return narrow;
}

/* A number per head and pair of positions from a table, added to the scores: a tensor of its own. Heads are split over
 * the tensor group, and the table with them. */
static uint32_t relative_positions(pl_lowering *to, int32_t param, uint32_t scores) {
  const pl_tape_names names = PL_OP_NAMES("relative_positions");
  pl_tape *tape = to->tape;
  uint32_t table = pl_tape_parameter(tape, names.forward, "pa", pl_lower_extent(to, param, 'p'), tape->heads);
  uint32_t sum = pl_tape_like(tape, scores, names.forward, PL_TENSOR_ACTIVATION, tape->shard->dtype);
  pl_op *op = pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, scores, PL_NONE, PL_NONE,
                            sum, PL_NONE);
  op->inputs[1] = table; /* looked up for every pair, once for the whole batch */
  op->bytes += 2 * tape->tensors[scores].size_bytes / (double)tape->mbs;
  pl_tape_node *node = pl_tape_note(tape, PL_RULE_POSITIONS, names, scores, sum);
  node->weight = table;
  return sum;
}

/* Q K^T, masked softmax, dropout, A V: three s x s tensors and a mask per head. Causality saves the matrix products
 * nothing. */
static void unfused(pl_lowering *to, const pl_core *core, uint32_t qkv, uint32_t context, int64_t d, int64_t value) {
  pl_tape *tape = to->tape;
  int64_t batch = tape->mbs * tape->heads, seq = tape->seq;
  const int64_t square[] = {tape->mbs, tape->heads, seq, seq};
  uint32_t scores = pl_tape_tensor(tape, "scores", PL_TENSOR_ACTIVATION, tape->shard->dtype, "bass", square);
  pl_tape_gemm(tape, "scores", PL_CATEGORY_FORWARD, batch, seq, seq, d, qkv, PL_NONE, PL_NONE, scores);
  pl_tape_note(tape, PL_RULE_SCORES,
               (pl_tape_names){.forward = "scores", .backward = "scores_dq", .wgrad = "scores_dk"}, qkv, scores);
  if (core->table != PL_IR_NONE) scores = relative_positions(to, core->table, scores);
  uint32_t probabilities =
      pl_tape_tensor(tape, "probabilities", PL_TENSOR_ACTIVATION, tape->shard->dtype, "bass", square);
  masked_softmax(to, core->causal, scores, probabilities);
  if (core->drops) probabilities = pl_tape_dropout(tape, PL_OP_NAMES("attention_dropout"), probabilities);
  pl_tape_gemm(tape, "context", PL_CATEGORY_FORWARD, batch, seq, value, seq, probabilities, qkv, PL_NONE, context);
  const pl_tape_names names = {.forward = "context", .backward = "context_dprobabilities", .wgrad = "context_dv"};
  pl_tape_node *node = pl_tape_note(tape, PL_RULE_CONTEXT, names, probabilities, context);
  node->second = qkv;
}

/* ---- all of it ---- */

void pl_lower_hold(pl_tape *tape, uint32_t tensor) {
  tape->forward[tape->n_forward - 1].inputs[PL_OP_INPUTS - 1] = tensor;
}

/* On packed queries, keys and values. */
static void lower_core(pl_lowering *to, const pl_core *core, uint32_t qkv) {
  pl_tape *tape = to->tape;
  int64_t d = pl_lower_extent(to, core->q, 'd'), value = pl_lower_extent(to, core->v, 'e');
  double heads = pl_lower_whole(to, core->q, 'g') * pl_lower_whole(to, core->q, 'r');
  double seq = (double)tape->model_seq;
  tape->of = core->op;
  uint32_t context = pl_tape_tensor(tape, "context", PL_TENSOR_ACTIVATION, tape->shard->dtype, "bsad",
                                    (const int64_t[]){tape->mbs, tape->seq, tape->heads, value});
  if (tape->shard->flash && core->table == PL_IR_NONE) /* such kernels take no table of positions */
    fused(to, core, qkv, context, (d + value) / 2);
  else
    unfused(to, core, qkv, context, d, value);
  tape->model_flops += 2 * (double)tape->mbs * seq * seq * heads * (double)(d + value);
  pl_lower_set(to, core->op, 0, context);
  pl_lower_done(to, core->op);
  tape->of = tape->head;
}

/* Numbers of heads on this rank. */
static void note_heads(pl_lowering *to, const pl_core *core) {
  to->tape->heads = pl_lower_extent(to, core->q, 'g') * pl_lower_extent(to, core->q, 'r');
  to->tape->kv_heads = pl_lower_extent(to, core->k, 'g');
}

static bool copies_heads(const pl_tape *tape, const attention_ops *of) {
  return tape->framework->kernels.copies_qkv && tape->shard->flash && tape->cp == 1 && of->q.norm == PL_IR_NONE &&
         of->core.table == PL_IR_NONE;
}

bool pl_lower_attention(pl_lowering *to, int32_t op) {
  attention_ops of;
  if (!find(to, op, &of)) return false;
  pl_tape *tape = to->tape;
  note_heads(to, &of.core);
  uint32_t product = packed_product(to, &of), qkv = product;
  if (copies_heads(tape, &of)) qkv = copied_qkv(tape, qkv);
  if (of.q.norm != PL_IR_NONE) qkv = normed_heads(to, of.q.norm, qkv);
  if (of.q.rotary != PL_IR_NONE) rotary(tape, qkv);
  lower_core(to, &of.core, qkv);
  if (tape->queries != PL_NONE) pl_lower_hold(tape, product);
  for (int32_t i = op; i < of.core.op; i++) /* nothing else is written down in between */
    pl_lower_done(to, i);
  return true;
}
