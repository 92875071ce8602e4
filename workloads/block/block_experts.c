/* Mixture of experts: what takes the MLP's place in a layer that holds experts, forward (Shazeer et al. 2017; Lepikhin
 * et al. 2020, section 2; Megatron Core's MoE layer).
 *
 *   x -> router -> softmax, top k -> permute -> (all-to-all) -> sort -> up -> activation * weight -> down
 *     -> sort back -> (all-to-all) -> permute back and add up -> (+ shared experts) -> y
 *
 * Experts are spread over ep ranks, n_experts / ep on each, and not split by tensor parallelism (Megatron Core's
 * expert-tensor-parallel-size 1): the ranks of a tensor group, which hold different tokens under sequence parallelism,
 * are members of the expert group like any others. Each rank sends its tokens times k, its own share included, and
 * receives as many: routing is taken as balanced, the best case, which auxiliary losses and biases aim at. The weight
 * of an expert's answer multiplies inside the activation kernel, so that the answers need not be kept. Left out as
 * small: the auxiliary loss, and sending the weights along (one number per h).
 *
 * Shared experts are an MLP of their own, split by tensor parallelism like a dense one.
 */
#include <math.h>

#include "core/cluster/cluster.h"
#include "workloads/block/block_tape.h"

static const double activation_flops = 8, routing_flops = 8;

/* Tokens of one rank on their way to its n_local experts. */
typedef struct routing {
  int64_t n_local, sent, per_expert; /* tokens times k; tokens that one local expert works on */
  uint32_t weights;                  /* of the answers */
} routing;

static uint32_t token_tensor(pl_tape *tape, const char *name, int64_t tokens, char dim, int64_t width) {
  const char dims[] = {'e', dim, '\0'};
  const int64_t extent[] = {tokens, width};
  return pl_tape_tensor(tape, name, PL_TENSOR_ACTIVATION, tape->shard->dtype, dims, extent);
}

static routing route(pl_tape *tape, uint32_t input) {
  const pl_model *model = tape->model;
  pl_linear linear = {.names = PL_LINEAR_NAMES("router"),
                      .in = model->hidden,
                      .out = model->n_experts,
                      .model_in = (double)model->hidden,
                      .model_out = (double)model->n_experts,
                      .keeps_precision = true};
  uint32_t logits = pl_tape_activation(tape, "router", tape->seq_local, 'e', model->n_experts);
  pl_tape_linear(tape, &linear, input, PL_NONE, logits);
  const int64_t extent[] = {tape->mbs, tape->seq_local, model->topk};
  uint32_t weights = pl_tape_tensor(tape, "routing", PL_TENSOR_ACTIVATION, PL_DTYPE_FP32, "bse", extent);
  const pl_tape_names names = PL_OP_NAMES("routing");
  pl_tape_sweep(tape, names.forward, PL_OP_SOFTMAX, PL_CATEGORY_FORWARD, routing_flops, logits, PL_NONE, PL_NONE,
                weights, PL_NONE);
  pl_tape_note(tape, PL_RULE_SOFTMAX, names, logits, weights);
  routing made = {.n_local = model->n_experts / tape->ep, .weights = weights};
  double tokens = (double)tape->mbs * (double)tape->seq_local * (double)model->topk * model->capacity_factor;
  made.sent = (int64_t)ceil(tokens);
  made.per_expert = (made.sent + made.n_local - 1) / made.n_local;
  return made;
}

/* A copy in another order, of another number of rows where tokens are multiplied or added up. */
static uint32_t permute(pl_tape *tape, pl_tape_names names, uint32_t input, uint32_t output) {
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, input, PL_NONE, PL_NONE, output,
                PL_NONE);
  pl_tape_note(tape, PL_RULE_PERMUTE, names, input, output);
  return output;
}

static uint32_t exchange(pl_tape *tape, pl_tape_names names, uint32_t input, uint32_t output) {
  double element = pl_dtype_bytes(tape->shard->dtype), width = (double)tape->model->hidden;
  double tokens = (double)tape->tensors[input].extent[0];
  pl_tape_group_collective(tape, names.forward, PL_ALL_TO_ALL, PL_GROUP_EXPERT, false, tokens * width * element, input,
                           output);
  pl_tape_note(tape, PL_RULE_ALL_TO_ALL, names, input, output);
  return output;
}

/* One matrix product per local expert. */
static uint32_t grouped(pl_tape *tape, const routing *to, pl_tape_names names, uint32_t input, int64_t in, int64_t out,
                        uint32_t output) {
  const int64_t extent[] = {to->n_local, in, out};
  uint32_t weight = pl_tape_tensor(tape, names.forward, PL_TENSOR_PARAMETER, tape->shard->dtype, "eio", extent);
  tape->tensors[weight].expert = true;
  uint32_t given = tape->shard->fp8 ? pl_tape_cast(tape, names.cast, PL_CATEGORY_FORWARD, input) : input;
  uint32_t first_op = tape->n_forward;
  pl_op *op = pl_tape_gemm(tape, names.forward, PL_CATEGORY_FORWARD, to->n_local, to->per_expert, out, in, given,
                           weight, PL_NONE, output);
  if (tape->shard->fp8) pl_tape_in_fp8(tape, op);
  pl_tape_node *node = pl_tape_note(tape, PL_RULE_GROUPED, names, input, output);
  node->first_op = first_op;
  node->weight = weight;
  if (tape->shard->fp8) node->quantised = given;
  double tokens = (double)tape->mbs * (double)tape->model_seq * (double)tape->model->topk;
  tape->model_flops += 2 * tokens * (double)in * (double)out;
  return output;
}

static uint32_t compute(pl_tape *tape, const routing *to, uint32_t input) {
  const pl_model *model = tape->model;
  int64_t f = model->expert_ffn, halves = model->gated_mlp ? 2 : 1, rows = to->per_expert * to->n_local;
  uint32_t up = grouped(tape, to, PL_OP_NAMES("expert_up"), input, model->hidden, halves * f,
                        token_tensor(tape, "expert_up", rows, 'f', halves * f));
  const pl_tape_names names = PL_OP_NAMES("expert_activation");
  uint32_t active = token_tensor(tape, names.forward, rows, 'f', f);
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, activation_flops, up, to->weights, PL_NONE,
                active, PL_NONE);
  pl_tape_note(tape, PL_RULE_POINTWISE, names, up, active)->second = to->weights;
  return grouped(tape, to, PL_OP_NAMES("expert_down"), active, f, model->hidden,
                 token_tensor(tape, "expert_down", rows, 'h', model->hidden));
}

static uint32_t routed_experts(pl_tape *tape, uint32_t input) {
  int64_t h = tape->model->hidden;
  const routing to = route(tape, input);
  int64_t rows = to.per_expert * to.n_local;
  bool sorts = tape->ep > 1 && to.n_local > 1; /* what comes from each rank is in the order of the experts */
  uint32_t x = permute(tape, PL_OP_NAMES("permute"), input, token_tensor(tape, "permute", to.sent, 'h', h));
  if (tape->ep > 1) x = exchange(tape, PL_OP_NAMES("dispatch"), x, token_tensor(tape, "dispatch", rows, 'h', h));
  if (sorts) x = permute(tape, PL_OP_NAMES("sort"), x, token_tensor(tape, "sort", rows, 'h', h));
  x = compute(tape, &to, x);
  if (sorts) x = permute(tape, PL_OP_NAMES("unsort"), x, token_tensor(tape, "unsort", rows, 'h', h));
  if (tape->ep > 1) x = exchange(tape, PL_OP_NAMES("combine"), x, token_tensor(tape, "combine", to.sent, 'h', h));
  return permute(tape, PL_OP_NAMES("unpermute"), x, pl_tape_activation(tape, "unpermute", tape->seq_local, 'h', h));
}

static uint32_t shared_experts(pl_tape *tape, uint32_t input) {
  const pl_model *model = tape->model;
  const pl_mlp mlp = {.up = PL_LINEAR_NAMES("shared_up"),
                      .activation = PL_OP_NAMES("shared_activation"),
                      .down = PL_LINEAR_NAMES("shared_down"),
                      .width = model->shared_ffn};
  uint32_t y = pl_tape_reduce(tape, mlp.down, pl_block_mlp(tape, &mlp, input));
  if (!model->shared_gate) return y;
  pl_linear linear = {.names = PL_LINEAR_NAMES("shared_gate"),
                      .in = model->hidden,
                      .out = 1,
                      .model_in = (double)model->hidden,
                      .model_out = 1,
                      .keeps_precision = true};
  uint32_t gate = pl_tape_activation(tape, "shared_gate", tape->seq_local, 'o', 1);
  pl_tape_linear(tape, &linear, input, PL_NONE, gate);
  const pl_tape_names names = PL_OP_NAMES("shared_scale");
  uint32_t scaled = pl_tape_activation(tape, names.forward, tape->seq_local, 'h', model->hidden);
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, activation_flops, y, gate, PL_NONE, scaled,
                PL_NONE);
  pl_tape_note(tape, PL_RULE_POINTWISE, names, y, scaled)->second = gate;
  return scaled;
}

uint32_t pl_block_experts(pl_tape *tape, uint32_t input) {
  uint32_t routed = routed_experts(tape, input);
  if (tape->model->shared_ffn == 0) return routed;
  uint32_t shared = shared_experts(tape, input);
  const pl_tape_names names = PL_OP_NAMES("experts_add");
  uint32_t sum = pl_tape_activation(tape, names.forward, tape->seq_local, 'h', tape->model->hidden);
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, routed, shared, PL_NONE, sum, PL_NONE);
  pl_tape_note(tape, PL_RULE_ADD, names, routed, sum)->second = shared;
  return sum;
}
