/* Mixture of experts (Shazeer et al. 2017; Lepikhin et al. 2020, section 2; Megatron Core's MoE layer).
 *
 *   x -> router -> softmax, top k -> permute -> (all-to-all) -> sort -> up -> activation * weight -> down
 *     -> sort back -> (all-to-all) -> permute back and add up -> (+ shared experts) -> y
 *
 * The function says it densely, every expert is given every token and most weights are zero: what is launched works on
 * the tokens that are sent. Each rank sends its tokens times k, its own share included, and receives as many: routing
 * is taken as balanced, the best case, which auxiliary losses and biases aim at. The weight of an expert's answer
 * multiplies inside the activation kernel, so that the answers need not be kept. Left out as small: biases of experts,
 * the auxiliary loss, and sending the weights along (one number per h).
 *
 * Experts are spread over the expert group and not split by tensor parallelism (Megatron Core's
 * expert-tensor-parallel-size 1), or split as dense layers are (its default): then what arrives at the ranks of a
 * tensor group is gathered in front of them, and their answers are summed and scattered (token_dispatcher.py). The
 * function has them whole on every tensor rank: the width is divided here. Shared experts are an MLP of their own,
 * split by tensor parallelism like a dense one.
 */
#include <math.h>

#include "core/cluster/cluster.h"
#include "workloads/lower/lowering.h"

static const double activation_flops = 8, routing_flops = 8;

/* ---- the weights of the answers ---- */

static bool is_causal(const pl_lowering *to) {
  for (int32_t i = 0; i < to->read.f->n_ops; i++)
    if (pl_ir_integer_of(pl_read_op(&to->read, i), "causal", 0) != 0) return true;
  return false;
}

/* Softmax and top k are one kernel. Its derivative is counted as a masked softmax's is, where attention is causal. */
void pl_lower_top_k(pl_lowering *to, int32_t op) {
  const pl_tape_names names = PL_OP_NAMES("routing");
  pl_tape *tape = to->tape;
  const pl_ir_op *own = pl_read_op(&to->read, op);
  uint32_t logits = pl_lower_input(to, op, 0);
  const int64_t extent[] = {tape->mbs, pl_lower_extent(to, own->inputs[0], 's'), pl_ir_integer_of(own, "k", 1)};
  uint32_t weights = pl_tape_tensor(tape, "routing", PL_TENSOR_ACTIVATION, PL_DTYPE_FP32, "bse", extent);
  pl_tape_sweep(tape, names.forward, PL_OP_SOFTMAX, PL_CATEGORY_FORWARD, routing_flops, logits, PL_NONE, PL_NONE,
                weights, PL_NONE);
  pl_tape_note(tape, PL_RULE_SOFTMAX, names, logits, weights)->masked =
      pl_framework_skips_masked(tape->framework, is_causal(to));
  pl_lower_set(to, op, 0, weights);
}

/* ---- routed experts ---- */

/* The ops of the routed experts of one layer, and tokens of one rank on their way to its n_local experts. */
typedef struct routing {
  pl_mlp_ops mlp;
  int32_t down, combined;
  int64_t k, n_local, h, sent, per_expert; /* tokens times k; tokens that one local expert is sent */
  int64_t etp;                             /* ranks that gather them */
  uint32_t weights;                        /* of the answers */
} routing;

static uint32_t token_tensor(pl_tape *tape, const char *name, int64_t tokens, char dim, int64_t width) {
  const char dims[] = {'e', dim, '\0'};
  const int64_t extent[] = {tokens, width};
  return pl_tape_tensor(tape, name, PL_TENSOR_ACTIVATION, tape->shard->dtype, dims, extent);
}

/* A copy in another order, of another number of rows where tokens are multiplied or added up. */
static uint32_t permute(pl_tape *tape, pl_tape_names names, uint32_t input, uint32_t output) {
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, input, PL_NONE, PL_NONE, output,
                PL_NONE);
  pl_tape_note(tape, PL_RULE_PERMUTE, names, input, output);
  return output;
}

double pl_lower_token_bytes(const pl_block_shard *shard, bool to_experts) {
  bool narrow = to_experts && shard->fp8 && pl_framework_or_ideal(shard->framework)->pipeline.sends_tokens_fp8;
  return narrow ? PL_FP8_TOKEN_BYTES : pl_dtype_bytes(shard->dtype);
}

static uint32_t exchange(pl_tape *tape, pl_tape_names names, int64_t h, bool to_experts, uint32_t input,
                         uint32_t output) {
  double element = pl_lower_token_bytes(tape->shard, to_experts), width = (double)h;
  double tokens = (double)tape->tensors[input].extent[0];
  pl_tape_group_collective(tape, names.forward, PL_ALL_TO_ALL, PL_GROUP_EXPERT, false, tokens * width * element, input,
                           output);
  pl_tape_note(tape, PL_RULE_ALL_TO_ALL, names, input, output);
  return output;
}

/* What arrives at the ranks of the tensor group, at each of them. */
static uint32_t gather(pl_tape *tape, const routing *of, uint32_t input) {
  static const pl_tape_names names = PL_LINEAR_NAMES("expert");
  if (of->etp == 1) return input;
  uint32_t full = token_tensor(tape, "expert_gathered", tape->tensors[input].extent[0] * of->etp, 'h', of->h);
  pl_tape_collective(tape, names.gather, PL_ALL_GATHER, false, tape->tensors[full].size_bytes, input, full);
  pl_tape_note(tape, PL_RULE_GATHER, names, input, full);
  return full;
}

static uint32_t scatter(pl_tape *tape, const routing *of, uint32_t partial) {
  static const pl_tape_names names = PL_LINEAR_NAMES("expert");
  if (of->etp == 1) return partial;
  uint32_t sum = token_tensor(tape, "expert_scattered", tape->tensors[partial].extent[0] / of->etp, 'h', of->h);
  pl_tape_collective(tape, names.reduce_scatter, PL_REDUCE_SCATTER, false, tape->tensors[partial].size_bytes, partial,
                     sum);
  pl_tape_note(tape, PL_RULE_REDUCE, names, partial, sum);
  return sum;
}

/* One matrix product per local expert. */
static uint32_t grouped(pl_tape *tape, const routing *of, pl_tape_names names, uint32_t input, int64_t in, int64_t out,
                        uint32_t output) {
  const int64_t extent[] = {of->n_local, in, out};
  uint32_t weight = pl_tape_tensor(tape, names.forward, PL_TENSOR_PARAMETER, tape->shard->dtype, "eio", extent);
  tape->tensors[weight].expert = true;
  uint32_t given = tape->shard->fp8 ? pl_tape_cast_input(tape, names.cast, input) : input;
  uint32_t first_op = tape->n_forward;
  pl_op *op = pl_tape_gemm(tape, names.forward, PL_CATEGORY_FORWARD, of->n_local, of->per_expert * of->etp, out, in,
                           given, weight, PL_NONE, output);
  if (tape->shard->fp8) pl_tape_in_fp8(tape, op);
  pl_tape_node *node = pl_tape_note(tape, PL_RULE_GROUPED, names, input, output);
  node->first_op = first_op;
  node->weight = weight;
  if (tape->shard->fp8) node->quantised = given;
  double tokens = (double)tape->mbs * (double)tape->model_seq * (double)of->k;
  tape->model_flops += 2 * tokens * (double)in * (double)out * (double)of->etp;
  return output;
}

static uint32_t compute(pl_lowering *to, const routing *of, uint32_t input) {
  pl_tape *tape = to->tape;
  int64_t f = pl_lower_extent(to, pl_read_op(&to->read, of->mlp.up)->first_output, 'f') / of->etp;
  int64_t rows = of->per_expert * of->n_local * of->etp;
  int64_t halves = of->mlp.multiply != PL_IR_NONE ? 2 : 1;
  uint32_t up = grouped(tape, of, PL_OP_NAMES("expert_up"), input, of->h, halves * f,
                        token_tensor(tape, "expert_up", rows, 'f', halves * f));
  const pl_tape_names names = PL_OP_NAMES("expert_activation");
  uint32_t active = token_tensor(tape, names.forward, rows, 'f', f);
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, activation_flops, up, of->weights, PL_NONE,
                active, PL_NONE);
  pl_tape_note(tape, PL_RULE_POINTWISE, names, up, active)->second = of->weights;
  return grouped(tape, of, PL_OP_NAMES("expert_down"), active, f, of->h,
                 token_tensor(tape, "expert_down", rows, 'h', of->h));
}

static uint32_t routed(pl_lowering *to, const routing *of, bool exchanges, uint32_t input) {
  pl_tape *tape = to->tape;
  int64_t rows = of->per_expert * of->n_local, h = of->h, held = rows * of->etp;
  bool sorts =
      (exchanges || of->etp > 1) && of->n_local > 1; /* what comes from each rank is in the order of the experts */
  uint32_t x = permute(tape, PL_OP_NAMES("permute"), input, token_tensor(tape, "permute", of->sent, 'h', h));
  if (exchanges) x = exchange(tape, PL_OP_NAMES("dispatch"), h, true, x, token_tensor(tape, "dispatch", rows, 'h', h));
  x = gather(tape, of, x);
  if (sorts) x = permute(tape, PL_OP_NAMES("sort"), x, token_tensor(tape, "sort", held, 'h', h));
  x = compute(to, of, x);
  if (sorts) x = permute(tape, PL_OP_NAMES("unsort"), x, token_tensor(tape, "unsort", held, 'h', h));
  x = scatter(tape, of, x);
  if (exchanges)
    x = exchange(tape, PL_OP_NAMES("combine"), h, false, x, token_tensor(tape, "combine", of->sent, 'h', h));
  uint32_t output = pl_lower_tensor(to, "unpermute", pl_read_op(&to->read, of->combined)->first_output);
  return permute(tape, PL_OP_NAMES("unpermute"), x, output);
}

/* The first op of a row behind `op` that reads what is made of its output, without branching off. */
static int32_t next(const pl_lowering *to, int32_t op, const char *row) {
  do
    op = to->read.user[pl_read_op(&to->read, op)->first_output];
  while (op != PL_IR_NONE && !pl_read_is(&to->read, op, row));
  return op;
}

/* From where tokens go to the experts to where their answers come back. */
void pl_lower_spread(pl_lowering *to, int32_t op) {
  routing of;
  int32_t up = next(to, op, "product");
  if (up == PL_IR_NONE || !pl_lower_find_mlp(to, up, &of.mlp)) {
    pl_lower_same(to, op);
    return;
  }
  of.down = next(to, pl_lower_mlp_last(&of.mlp), "product");
  of.combined = next(to, of.down, of.mlp.weighted != PL_IR_NONE ? "sum" : "product");
  int32_t chosen = of.mlp.weighted != PL_IR_NONE
                       ? pl_read_chosen(&to->read, of.mlp.weighted)
                       : pl_read_maker(&to->read, pl_read_op(&to->read, of.combined)->inputs[0]);
  int32_t weights = pl_read_op(&to->read, chosen)->first_output, dispatched = pl_read_op(&to->read, up)->inputs[0];
  of.k = pl_ir_integer_of(pl_read_op(&to->read, chosen), "k", 1);
  of.n_local = pl_lower_extent(to, pl_read_op(&to->read, up)->inputs[1], 'x');
  of.h = pl_lower_extent(to, pl_read_op(&to->read, up)->inputs[1], 'h');
  of.weights = to->tensor[weights];
  of.etp = to->tape->shard->etp > 1 ? to->tape->shard->etp : 1;
  int64_t seq = pl_lower_extent(to, pl_read_op(&to->read, op)->first_output, 's');
  double tokens = (double)to->tape->mbs * (double)seq * (double)of.k * to->block->capacity_factor;
  of.sent = (int64_t)ceil(tokens);
  of.per_expert = (of.sent + of.n_local - 1) / of.n_local;
  bool exchanges = pl_read_is(&to->read, pl_read_maker(&to->read, dispatched), "all_to_all");
  uint32_t answers = routed(to, &of, exchanges, pl_lower_input(to, op, 0));
  for (int32_t i = op; i < of.combined; i++) /* nothing else is written down in between */
    pl_lower_done(to, i);
  pl_lower_done(to, of.combined);
  pl_lower_set(to, of.combined, 0, answers);
}

/* ---- the gate of shared experts ---- */

/* A number per token, through 1 / (1 + exp(-z)): the multiplication's kernel makes it. */
bool pl_lower_gate(pl_lowering *to, int32_t op) {
  static const char *const rows[] = {"scale", "exp", "add", "reciprocal"};
  static const pl_tape_names plain = PL_LINEAR_NAMES("gate");
  int32_t ops[4], at = op;
  for (int i = 0; i < 4; i++) {
    at = pl_read_user(&to->read, pl_read_op(&to->read, at)->first_output);
    if (!pl_read_is(&to->read, at, rows[i])) return false;
    ops[i] = at;
  }
  pl_linear linear = pl_lower_linear(to, op);
  if (to->block->names[op] == NULL) linear.names = plain;
  linear.keeps_precision = true;
  uint32_t gate = pl_tape_activation(to->tape, linear.names.forward, linear.m / to->tape->mbs, 'o', linear.out);
  pl_tape_linear(to->tape, &linear, pl_lower_input(to, op, 0), PL_NONE, gate);
  for (int i = 0; i < 4; i++)
    pl_lower_done(to, ops[i]);
  pl_lower_set(to, ops[3], 0, gate);
  return true;
}
