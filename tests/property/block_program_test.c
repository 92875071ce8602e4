/* Block programs of random models under random shards: what must hold whatever the family.
 *
 *  - sharding: t ranks together do the unsharded products, forward and backward; each parameter is split t ways or
 * replicated
 *  - differentiation: backward products are twice the forward ones; each parameter gets one gradient; recomputation
 * adds what it says
 *  - data flow: everything read was handed in, kept, or made before in the same list; nothing is made twice unless in
 * place
 *  - memory: saved bytes and peaks equal a second computation, straight from the definition, quadratic and slow
 *  - collectives: number and volume per layer of Megatron's scheme, forward and backward */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/cluster/cluster.h"
#include "tests/support/random.h"
#include "workloads/ir/model.h"
#include "workloads/lower/block_program.h"

enum { TENSORS = 256 };

static const char *const families[] = {"gpt2", "gpt_neox", "bert", "llama", "mistral"};

static int64_t power(uint64_t *state, uint32_t highest) {
  return INT64_C(1) << random_below(state, highest + 1);
}
static bool coin(uint64_t *state) {
  return random_below(state, 2) == 1;
}

/* Heads, key-value heads, ffn and vocabulary divide by 16; everything else is free. */
static pl_model random_model(uint64_t *state) {
  pl_model model = {.name = "random",
                    .family = families[random_below(state, 5)],
                    .n_layers = 2,
                    .width.vocab = 2048 * (1 + random_below(state, 5))};
  model.attention.n_heads = 16 * (1 + random_below(state, 3));
  model.attention.n_kv_heads = coin(state) ? model.attention.n_heads : 16;
  model.attention.head_size = 8 * (1 + random_below(state, 16));
  model.attention.value_size = model.attention.head_size;
  model.width.hidden =
      coin(state) ? model.attention.n_heads * model.attention.head_size : 32 * (1 + random_below(state, 40));
  model.width.ffn_hidden = 16 * (1 + random_below(state, 300));
  model.positions.max_positions = 1 << 20;
  model.width.type_vocab = random_below(state, 3);
  model.norms.norm_bias = coin(state);
  model.mlp.gated_mlp = coin(state);
  model.attention.causal = coin(state);
  model.ends.tied_embeddings = coin(state);
  model.positions.rotary = coin(state);
  model.positions.learned_positions = coin(state);
  model.attention.attention_bias = coin(state);
  model.attention.output_bias = coin(state);
  model.mlp.mlp_bias = coin(state);
  model.norms.final_norm = coin(state);
  model.ends.pooler = model.ends.next_sentence = coin(state);
  model.ends.lm_transform = coin(state);
  model.norms.embedding_norm = coin(state);
  model.norms.parallel_residual = random_below(state, 3) == 0;
  model.norms.post_norm = !model.norms.parallel_residual && coin(state);
  model.dropout.embedding_dropout = coin(state);
  model.dropout.attention_dropout = coin(state);
  model.dropout.hidden_dropout = coin(state);
  return model;
}

static pl_block_shard random_shard(uint64_t *state) {
  pl_block_shard shard = {.tmp = (int32_t)power(state, 4), .mbs = 1 + (int32_t)random_below(state, 4)};
  shard.sp = coin(state);
  shard.seq = 16 * (1 + random_below(state, 64));
  shard.recompute = (pl_recompute)random_below(state, PL_RECOMPUTE_COUNT);
  shard.dtype = (pl_dtype)random_below(state, PL_DTYPE_FP8);
  shard.flash = coin(state);
  shard.fp8 = pl_dtype_bytes(shard.dtype) == 2 && coin(state);
  shard.fp4 = shard.fp8 && coin(state);
  return shard;
}

static pl_block_program take(const pl_model *model, pl_block_kind kind, pl_block_shard shard, pl_arena *arena) {
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  if (pl_block_program_take(model, kind, &shard, arena, &program, &error) != PL_OK) fail_msg("%s", error.message);
  return program;
}

/* Of what attention computes back, how much its derivative is: scores are made once more, as wide as queries and keys
 * are, as their gradients; two are as wide as values. */
static double derivative_of_attention(const pl_model *model) {
  double d = (double)model->attention.head_size;
  double e = model->attention.kv_rank > 0 ? (double)model->attention.value_size : d;
  return 2 * (d + e) / (3 * d + 2 * e);
}

/* Products of weights that are split, and of the attention; BERT's transform, pooler and classifier are replicated. */
static double products(pl_op_list list, int category, double derivative) {
  double flops = 0;
  for (uint32_t i = 0; i < list.n_ops; i++) {
    const pl_op *op = &list.ops[i];
    if (op->kind != PL_OP_GEMM && op->kind != PL_OP_ATTENTION) continue;
    if (strncmp(op->name, "transform", 9) == 0 || strncmp(op->name, "pooler", 6) == 0 ||
        strncmp(op->name, "next", 4) == 0 || strncmp(op->name, "shared_gate", 11) == 0 ||
        strncmp(op->name, "router", 6) == 0)
      continue; /* of a gate's number, or of one expert, the gradient goes back as fast as memory */
    if (op->category == category)
      flops += op->flops * (op->kind == PL_OP_ATTENTION && category == PL_CATEGORY_BACKWARD ? derivative : 1);
  }
  return flops;
}

static void expect(const char *what, double value, double wanted) {
  if (fabs(value - wanted) > 1e-12 * fabs(wanted)) fail_msg("%s: %.17g, not %.17g", what, value, wanted);
}

static void check_products(const pl_model *model, const pl_block_program *split, const pl_block_program *whole,
                           pl_block_kind kind, pl_block_shard shard) {
  double derivative = derivative_of_attention(model);
  double forward = products(whole->forward, PL_CATEGORY_FORWARD, derivative);
  double ranks = shard.tmp * (shard.cp > 1 ? shard.cp : 1);
  expect("forward, all ranks", ranks * products(split->forward, PL_CATEGORY_FORWARD, derivative), forward);
  expect("backward is twice forward", ranks * products(split->backward, PL_CATEGORY_BACKWARD, derivative), 2 * forward);
  double again = ranks * products(split->backward, PL_CATEGORY_RECOMPUTE, derivative);
  bool layer = kind == PL_BLOCK_LAYER || (kind == PL_BLOCK_EXPERT_LAYER && model->moe.n_experts > 0);
  if (!layer || shard.recompute == PL_RECOMPUTE_NONE)
    expect("no recomputation", again, 0);
  else if (shard.recompute == PL_RECOMPUTE_FULL)
    expect("full recomputation", again, forward);
  else
    assert_true(again > 0 && again < forward);
  expect("model flops", split->model_flops, whole->model_flops);
}

static double elements(const pl_tensor *tensor) {
  double product = 1;
  for (uint8_t i = 0; i < tensor->rank; i++)
    product *= (double)tensor->extent[i];
  return product;
}

static void check_parameters(const pl_block_program *split, const pl_block_program *whole, pl_block_shard shard) {
  double count = 0, experts = 0, tied = split->tied_parameters;
  for (uint32_t i = 0; i < split->n_tensors; i++) {
    if (split->tensors[i].kind != PL_TENSOR_PARAMETER) continue;
    uint32_t j = 0;
    while (j < whole->n_tensors && (whole->tensors[j].kind != PL_TENSOR_PARAMETER ||
                                    strcmp(whole->tensors[j].name, split->tensors[i].name) != 0))
      j++;
    if (j == whole->n_tensors) fail_msg("the whole block has no %s", split->tensors[i].name);
    double mine = elements(&split->tensors[i]), all = elements(&whole->tensors[j]);
    if (split->tensors[i].expert) {
      assert_true(mine * (shard.ep > 1 ? shard.ep : 1) * (shard.etp > 1 ? shard.etp : 1) == all);
      experts += mine;
    } else {
      if (mine * shard.tmp != all && mine != all)
        fail_msg("%s: %g elements on each of %d tensor ranks, %g in all", split->tensors[i].name, mine, shard.tmp, all);
    }
    count += mine;
  }
  assert_true(experts == split->expert_parameters);
  assert_true(count == split->parameters + tied);
}

static bool in_place(const pl_op *op, uint32_t tensor) {
  for (int i = 0; i < PL_OP_INPUTS; i++)
    if (op->inputs[i] == tensor) return true;
  return false;
}

/* `there` on entry: what exists before the list. */
static void check_flow(const pl_block_program *program, pl_op_list list, bool *there, bool *fresh) {
  for (uint32_t i = 0; i < list.n_ops; i++) {
    const pl_op *op = &list.ops[i];
    for (int j = 0; j < PL_OP_INPUTS; j++)
      if (op->inputs[j] != PL_NONE && !there[op->inputs[j]])
        fail_msg("%s reads %s, which does not exist", op->name, program->tensors[op->inputs[j]].name);
    const uint32_t made[] = {op->output, op->auxiliary, op->third};
    for (int j = 0; j < 3; j++) {
      if (made[j] == PL_NONE) continue;
      assert_true(made[j] < program->n_tensors);
      /* The last step back of attention over several ranks' keys adds to what the others made, but cannot say so. */
      bool adds = strcmp(op->name, "attention_backward_last") == 0 || in_place(op, made[j]);
      if (fresh[made[j]] && !adds) fail_msg("%s makes %s twice", op->name, program->tensors[made[j]].name);
      there[made[j]] = fresh[made[j]] = true;
    }
    static const uint8_t categories[] = {[PL_GROUP_TENSOR] = PL_CATEGORY_TENSOR,
                                         [PL_GROUP_HEADS] = PL_CATEGORY_TENSOR,
                                         [PL_GROUP_CONTEXT] = PL_CATEGORY_CONTEXT,
                                         [PL_GROUP_EXPERT] = PL_CATEGORY_EXPERT};
    assert_true(op->kind == PL_OP_COLLECTIVE ? op->size_bytes > 0 && op->category == categories[op->group]
                                             : op->bytes > 0);
    assert_true(op->flops >= 0 && isfinite(op->flops));
  }
}

static bool is_persistent(const pl_tensor *tensor) {
  return tensor->kind == PL_TENSOR_PARAMETER || tensor->kind == PL_TENSOR_PARAMETER_GRADIENT;
}

static void check_data_flow(const pl_block_program *program) {
  bool there[TENSORS] = {false}, fresh[TENSORS] = {false};
  assert_true(program->n_tensors <= TENSORS);
  for (uint32_t i = 0; i < program->n_tensors; i++)
    there[i] = is_persistent(&program->tensors[i]) || i == program->input;
  check_flow(program, program->forward, there, fresh);
  if (program->output != PL_NONE) assert_true(there[program->output]);
  memset(fresh, 0, sizeof fresh);
  for (uint32_t i = 0; i < program->n_tensors; i++) {
    const pl_tensor *tensor = &program->tensors[i];
    assert_true(!tensor->saved || ((tensor->kind == PL_TENSOR_ACTIVATION || tensor->kind == PL_TENSOR_MASK ||
                                    tensor->kind == PL_TENSOR_SIGNS) &&
                                   there[i]));
    there[i] = is_persistent(tensor) || tensor->saved || i == program->output_gradient;
  }
  check_flow(program, program->backward, there, fresh);
  /* The gradient that was handed in serves several readers (an addition passes it on to both its inputs): nobody may
   * add to it. */
  if (program->output_gradient != PL_NONE && program->n_tensors > 2) assert_false(fresh[program->output_gradient]);
  if (program->input != PL_NONE) {
    assert_true(there[program->input_gradient]);
    expect("gradient of the input", program->tensors[program->input_gradient].size_bytes,
           program->tensors[program->input].size_bytes);
  }
}

/* Each parameter's gradient is written exactly once. */
static void check_gradients(const pl_block_program *program) {
  uint32_t parameters = 0, gradients = 0, written = 0;
  for (uint32_t i = 0; i < program->n_tensors; i++) {
    parameters += program->tensors[i].kind == PL_TENSOR_PARAMETER;
    gradients += program->tensors[i].kind == PL_TENSOR_PARAMETER_GRADIENT;
  }
  for (uint32_t i = 0; i < program->backward.n_ops; i++) {
    const pl_op *op = &program->backward.ops[i];
    const uint32_t made[] = {op->output, op->auxiliary, op->third};
    for (int j = 0; j < 3; j++)
      written += made[j] != PL_NONE && program->tensors[made[j]].kind == PL_TENSOR_PARAMETER_GRADIENT;
  }
  assert_int_equal(gradients, parameters);
  assert_int_equal(written, parameters);
}

static bool touches(const pl_op *op, uint32_t tensor) {
  return in_place(op, tensor) || op->output == tensor || op->auxiliary == tensor || op->third == tensor;
}

/* Alive during op i: touched before or at i (or there from the start), and needed at i or later (or kept). */
static double slow_peak(const pl_block_program *program, pl_op_list list, uint32_t given, uint32_t kept,
                        bool backward) {
  double peak = given == PL_NONE ? 0 : program->tensors[given].size_bytes;
  for (uint32_t i = 0; i < list.n_ops; i++) {
    double live = 0;
    for (uint32_t t = 0; t < program->n_tensors; t++) {
      const pl_tensor *tensor = &program->tensors[t];
      if (is_persistent(tensor)) continue;
      bool before = t == given || (backward && tensor->saved), later = t == kept || (!backward && tensor->saved);
      bool touched = false;
      for (uint32_t j = 0; j <= i; j++)
        touched = touched || touches(&list.ops[j], t);
      before = before || touched;
      for (uint32_t j = i; j < list.n_ops; j++)
        later = later || touches(&list.ops[j], t);
      double given_up = backward && tensor->saved ? tensor->remade_bytes : 0; /* until it is made again */
      if (before && later) live += tensor->size_bytes - (touched ? 0 : given_up);
      if (backward && tensor->saved) live -= tensor->size_bytes - given_up; /* was there before the pass */
    }
    if (live > peak) peak = live;
  }
  return peak;
}

static void check_memory(const pl_block_program *program) {
  double saved = 0;
  for (uint32_t i = 0; i < program->n_tensors; i++)
    if (program->tensors[i].saved) saved += program->tensors[i].size_bytes - program->tensors[i].remade_bytes;
  expect("saved", program->saved_bytes, saved);
  expect("forward peak", program->forward_peak_bytes,
         slow_peak(program, program->forward, program->input, program->output, false));
  expect("backward peak", program->backward_peak_bytes,
         slow_peak(program, program->backward, program->output_gradient, program->input_gradient, true));
  expect("output", program->output_bytes,
         program->output == PL_NONE ? 0 : program->tensors[program->output].size_bytes);
}

typedef struct traffic {
  uint32_t n[PL_COLLECTIVE_COUNT];
  double bytes[PL_COLLECTIVE_COUNT];
} traffic;

static traffic count_traffic(pl_op_list list) {
  traffic sum = {{0}, {0}};
  for (uint32_t i = 0; i < list.n_ops; i++) {
    if (list.ops[i].kind != PL_OP_COLLECTIVE) continue;
    assert_int_equal(list.ops[i].group, PL_GROUP_TENSOR);
    sum.n[list.ops[i].collective]++;
    sum.bytes[list.ops[i].collective] += list.ops[i].size_bytes;
  }
  return sum;
}

/* One layer, with r = 1 reduction for a parallel residual and 2 otherwise, of b s h activations each:
 *   tensor     forward r all-reduces, backward 2; full recomputation r more
 *   sequence   forward 2 all-gathers, r reduce-scatters; backward 2 all-gathers of inputs, r of gradients, 2
 * reduce-scatters */
static void check_collectives(const pl_model *model, const pl_block_program *program, pl_block_shard shard) {
  traffic forward = count_traffic(program->forward), backward = count_traffic(program->backward);
  bool split = shard.tmp > 1, sp = split && shard.sp;
  uint32_t r = model->norms.parallel_residual ? 1 : 2, again = shard.recompute == PL_RECOMPUTE_FULL ? 1 : 0;
  /* Every second product: inputs of those are gathered again, keys' and gates', sums are scattered once; sums that stay
   * whole are made again in front of the last product. */
  bool alternates = shard.recompute == PL_RECOMPUTE_ALTERNATE;
  uint32_t gathers = alternates ? (model->mlp.gated_mlp ? 2 : 1) : 2 * again,
           behind = model->norms.post_norm || model->norms.sandwich_norms || model->dropout.hidden_dropout;
  /* The seventh product is kept: its sum in front of norms and biases, its terms in front of dropout. */
  if (model->mlp.gated_mlp && r == 2) behind = model->dropout.hidden_dropout && !model->mlp.mlp_bias;
  assert_int_equal(forward.n[PL_ALL_REDUCE], split && !sp ? r : 0);
  uint32_t sums = alternates ? r - (behind ? 0 : 1) : again * r;
  assert_int_equal(backward.n[PL_ALL_REDUCE], split && !sp ? 2 + sums : 0);
  assert_int_equal(forward.n[PL_ALL_GATHER], sp ? 2 : 0);
  assert_int_equal(forward.n[PL_REDUCE_SCATTER], sp ? r : 0);
  assert_int_equal(backward.n[PL_ALL_GATHER], sp ? 2 + r + gathers : 0);
  assert_int_equal(backward.n[PL_REDUCE_SCATTER], sp ? 2 + again * r : 0);
  double full = pl_dtype_bytes(shard.dtype) * shard.mbs * (double)shard.seq * (double)model->width.hidden;
  for (int kind = 0; kind < PL_COLLECTIVE_COUNT && !shard.fp8; kind++) { /* inputs are gathered in fp8 */
    expect("forward volume", forward.bytes[kind], full * forward.n[kind]);
    expect("backward volume", backward.bytes[kind], full * backward.n[kind]);
  }
}

/* The ends: embedding one reduction of its output; head one gather, its conjugate, and the gather for the weight
 * gradient; loss three numbers per token in fp32. */
static void check_end_collectives(const pl_model *model, pl_block_kind kind, const pl_block_program *program,
                                  pl_block_shard shard) {
  traffic forward = count_traffic(program->forward), backward = count_traffic(program->backward);
  bool split = shard.tmp > 1, sp = split && shard.sp, embedding = kind == PL_BLOCK_EMBEDDING,
       head = kind == PL_BLOCK_HEAD, loss = kind == PL_BLOCK_LOSS;
  double tokens = (double)shard.mbs * (double)shard.seq,
         full = pl_dtype_bytes(shard.dtype) * tokens * (double)model->width.hidden;
  assert_int_equal(forward.n[PL_ALL_REDUCE], loss && split ? 3 : embedding && split && !sp ? 1 : 0);
  expect("all-reduce", forward.bytes[PL_ALL_REDUCE],
         loss ? 4 * tokens * forward.n[PL_ALL_REDUCE] : full * forward.n[PL_ALL_REDUCE]);
  assert_int_equal(forward.n[PL_REDUCE_SCATTER], embedding && sp);
  assert_int_equal(forward.n[PL_ALL_GATHER], head && sp);
  /* A pooler's gradient of the first token, which one rank of a cut sequence has. */
  assert_int_equal(backward.n[PL_ALL_REDUCE], head && split && (!sp || model->ends.pooler));
  assert_int_equal(backward.n[PL_REDUCE_SCATTER], head && sp);
  assert_int_equal(backward.n[PL_ALL_GATHER], (head || embedding) && sp);
}

/* Buffers of weight gradients are in fp16 only with fp16; a weight-gradient product reads its two factors and adds to
 * the buffer: reads and writes it. */
static void check_gradient_traffic(const pl_block_program *program, pl_dtype dtype) {
  double size = dtype == PL_DTYPE_FP16 ? 2 : 4;
  for (uint32_t i = 0; i < program->n_tensors; i++)
    if (program->tensors[i].kind == PL_TENSOR_PARAMETER_GRADIENT)
      expect("gradient buffer", program->tensors[i].size_bytes, size * elements(&program->tensors[i]));
  for (uint32_t i = 0; i < program->backward.n_ops; i++) {
    const pl_op *op = &program->backward.ops[i];
    if (op->kind != PL_OP_GEMM || op->output == PL_NONE ||
        program->tensors[op->output].kind != PL_TENSOR_PARAMETER_GRADIENT)
      continue;
    double m = (double)op->m, n = (double)op->n, k = (double)op->k;
    double factor = pl_dtype_bytes((pl_dtype)op->dtype); /* fp8, or the type of everything */
    assert_true(op->dtype == dtype || op->dtype == PL_DTYPE_FP8 || op->dtype == PL_DTYPE_FP4);
    expect("traffic", op->bytes, (double)op->batch * (factor * (m * k + k * n) + 2 * size * m * n));
  }
}

static void test_random(void **state) {
  (void)state;
  uint64_t random = test_seed(20240607);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (uint64_t round = 0, n = test_cases(3000); round < n; round++) {
    pl_arena_reset(&arena);
    pl_model model = random_model(&random);
    pl_block_shard shard = random_shard(&random), one = shard;
    one.tmp = 1;
    one.sp = false;
    for (int i = 0; i < PL_BLOCK_KIND_COUNT; i++) {
      pl_block_kind kind = (pl_block_kind)i;
      pl_block_program split = take(&model, kind, shard, &arena), whole = take(&model, kind, one, &arena);
      check_products(&model, &split, &whole, kind, shard);
      check_parameters(&split, &whole, shard);
      check_data_flow(&split);
      check_gradients(&split);
      check_memory(&split);
      check_gradient_traffic(&split, shard.dtype);
      if (kind == PL_BLOCK_LAYER)
        check_collectives(&model, &split, shard);
      else
        check_end_collectives(&model, kind, &split, shard);
    }
  }
  pl_arena_release(&arena);
}

/* Of a layer's products of weights all three are in fp8 (or NVFP4) or none; what goes in has been cast once each way.
 */
static void check_fp8(const pl_block_program *program, pl_block_shard shard) {
  const pl_op_list lists[] = {program->forward, program->backward};
  int products = 0, casts = 0, weights = 0;
  const pl_dtype narrow = shard.fp4 ? PL_DTYPE_FP4 : PL_DTYPE_FP8;
  for (uint32_t i = 0; i < program->n_tensors; i++)
    weights += program->tensors[i].kind == PL_TENSOR_PARAMETER && program->tensors[i].dims[0] != 'p' &&
               program->tensors[i].rank >= 2 && strcmp(program->tensors[i].name, "router") != 0 &&
               strcmp(program->tensors[i].name, "shared_gate") != 0;
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < lists[pass].n_ops; i++) {
      const pl_op *op = &lists[pass].ops[i];
      if (op->category == PL_CATEGORY_RECOMPUTE) continue;
      products += op->kind == PL_OP_GEMM && op->dtype == narrow;
      casts += op->kind == PL_OP_ELEMENTWISE && op->output != PL_NONE && program->tensors[op->output].dtype == narrow;
    }
  assert_int_equal(products, shard.fp8 ? 3 * weights : 0);
  /* What a product that is kept read is made again, and cast again, for the gradient of its weights. */
  if (shard.fp8 && shard.recompute == PL_RECOMPUTE_ALTERNATE)
    assert_in_range(casts, 2 * weights, 3 * weights);
  else
    assert_int_equal(casts, shard.fp8 ? 2 * weights : 0);
}

/* Experts, latent attention and norms per head. Heads, ranks and experts divide, and so do the tokens of an expert. */
static pl_model random_expert_model(uint64_t *state) {
  pl_model model = random_model(state);
  model.ends.pooler = model.ends.next_sentence = model.norms.parallel_residual = model.norms.post_norm =
      model.mlp.mlp_bias = false;
  model.ends.lm_transform = model.norms.norm_bias = false;
  model.attention.qk_norm = coin(state);
  model.norms.sandwich_norms = coin(state);
  if (coin(state)) {
    model.attention.kv_rank = 16 * (1 + random_below(state, 32));
    model.attention.q_rank = coin(state) ? 0 : 16 * (1 + random_below(state, 32));
    model.attention.rope_size = 1 + random_below(state, (uint32_t)model.attention.head_size - 1);
    model.attention.value_size = 8 * (1 + random_below(state, 16));
    model.attention.n_kv_heads = model.attention.n_heads;
    model.attention.attention_bias = model.attention.output_bias = model.attention.qk_norm = false;
  }
  model.moe.n_experts = power(state, 4);
  model.moe.topk = 1 + random_below(state, (uint32_t)model.moe.n_experts);
  model.moe.expert_ffn = 8 * (3 + random_below(state, 100)); /* a rank's part is more than one column */
  model.moe.shared_ffn = coin(state) ? 0 : 16 * (2 + random_below(state, 100));
  model.moe.shared_gate = model.moe.shared_ffn > 0 && coin(state);
  model.moe.capacity_factor = 1;
  model.moe.first_expert_layer = 1;
  model.moe.expert_layer_step = 1;
  return model;
}

/* Router, dispatch and combine: each rank sends its own tokens times k there and back, forward and backward; and the
 * weights of the answers, a number for each of these vectors, there, and their gradients back. */
static void check_exchanges(const pl_model *model, const pl_block_program *program, pl_block_shard shard) {
  const pl_op_list lists[] = {program->forward, program->backward};
  double tokens = (double)shard.mbs * (double)shard.seq / (shard.tmp * shard.cp) * (double)model->moe.topk;
  for (int pass = 0; pass < 2; pass++) {
    int n = 0, n_weights = 0;
    for (uint32_t i = 0; i < lists[pass].n_ops; i++) {
      const pl_op *op = &lists[pass].ops[i];
      if (op->kind != PL_OP_COLLECTIVE || op->group != PL_GROUP_EXPERT) continue;
      bool weights = strncmp(op->name, "routing", 7) == 0;
      assert_int_equal(op->collective, PL_ALL_TO_ALL);
      expect("exchange", op->size_bytes,
             tokens * (weights ? 1 : (double)model->width.hidden) * pl_dtype_bytes(shard.dtype));
      *(weights ? &n_weights : &n) += 1;
    }
    bool again = pass == 1 && shard.recompute >= PL_RECOMPUTE_FULL;
    bool read = model->norms.sandwich_norms || model->dropout.hidden_dropout; /* answers that are made again */
    int back = shard.recompute == PL_RECOMPUTE_ALTERNATE && !read ? 0 : 1;
    assert_int_equal(n, shard.ep > 1 ? 2 + (again ? 1 + back : 0) : 0);
    assert_int_equal(n_weights, shard.ep > 1 ? 1 + again : 0);
  }
}

/* Context parallelism: keys and values (the local heads') of the whole sequence go round once forward and, with their
 * gradients, once backward, beside the kernel of cp - 1 steps; or they are gathered, gathered again and reduced. */
static void check_ring(const pl_model *model, const pl_block_program *program, pl_block_shard shard) {
  const pl_op_list lists[] = {program->forward, program->backward};
  int64_t kv_heads = model->attention.n_kv_heads > shard.tmp ? model->attention.n_kv_heads / shard.tmp : 1;
  double width = (double)(2 * kv_heads * model->attention.head_size);
  int64_t heads = model->attention.n_heads / shard.tmp;
  if (model->attention.kv_rank > 0)
    width = (double)(heads * (model->attention.head_size + model->attention.value_size));
  double bytes = shard.mbs * (double)shard.seq * width * pl_dtype_bytes(shard.dtype);
  bool repeats = shard.recompute == PL_RECOMPUTE_SELECTIVE || shard.recompute == PL_RECOMPUTE_FULL;
  for (int pass = 0; pass < 2; pass++) {
    double sum = 0;
    int begun = 0, awaited = 0;
    for (uint32_t i = 0; i < lists[pass].n_ops; i++) {
      const pl_op *op = &lists[pass].ops[i];
      if (op->kind == PL_OP_COLLECTIVE && op->group == PL_GROUP_CONTEXT) sum += op->size_bytes;
      begun += op->overlap == PL_OVERLAP_BEGINS;
      awaited += op->overlap == PL_OVERLAP_AWAITS;
      assert_true(begun - awaited == 0 || begun - awaited == 1);
    }
    bool ring = shard.cp > 1 && !shard.cp_gather;
    expect("keys and values", sum, shard.cp > 1 ? bytes * (pass == 0 ? 1 : repeats ? 3 : 2) : 0);
    assert_int_equal(begun, awaited);
    assert_int_equal(begun, !ring ? 0 : pass == 1 && repeats ? 2 : 1);
  }
}

static void test_experts(void **state) {
  (void)state;
  uint64_t random = test_seed(20250101);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (uint64_t round = 0, n = test_cases(3000); round < n; round++) {
    pl_arena_reset(&arena);
    pl_model model = random_expert_model(&random);
    pl_block_shard shard = random_shard(&random), one;
    shard.seq = 256 * (1 + random_below(&random, 8));
    shard.sp = shard.tmp > 1;
    shard.ep = (int32_t)(model.moe.n_experts / (INT64_C(1) << random_below(&random, 5)));
    shard.etp = model.moe.expert_ffn % shard.tmp == 0 && coin(&random) ? shard.tmp : 1;
    shard.cp = coin(&random) ? 1 + (int32_t)random_below(&random, 4) : 1;
    shard.seq *= shard.cp;
    shard.cp_gather = coin(&random);
    shard.flash = shard.flash || shard.cp > 1;
    one = shard;
    one.tmp = one.ep = one.etp = one.cp = 1;
    one.sp = false;
    pl_block_program split = take(&model, PL_BLOCK_EXPERT_LAYER, shard, &arena),
                     whole = take(&model, PL_BLOCK_EXPERT_LAYER, one, &arena);
    check_products(&model, &split, &whole, PL_BLOCK_EXPERT_LAYER, shard);
    check_parameters(&split, &whole, shard);
    expect("parameters", whole.parameters, pl_model_block_parameters(&model, 3));
    check_data_flow(&split);
    check_gradients(&split);
    check_memory(&split);
    check_gradient_traffic(&split, shard.dtype);
    check_exchanges(&model, &split, shard);
    check_ring(&model, &split, shard);
    check_fp8(&split, shard);
  }
  pl_arena_release(&arena);
}

/* The same arguments give the same program, byte for byte where it counts, whatever was in the arena. */
static void test_repeatable(void **state) {
  (void)state;
  uint64_t random = test_seed(7);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (int round = 0; round < 100; round++) {
    pl_model model = random_model(&random);
    pl_block_shard shard = random_shard(&random);
    pl_block_program first = take(&model, PL_BLOCK_LAYER, shard, &arena),
                     second = take(&model, PL_BLOCK_LAYER, shard, &arena);
    assert_int_equal(first.n_tensors, second.n_tensors);
    assert_int_equal(first.backward.n_ops, second.backward.n_ops);
    for (uint32_t i = 0; i < first.backward.n_ops; i++) {
      const pl_op *a = &first.backward.ops[i], *b = &second.backward.ops[i];
      assert_true(a->name == b->name && a->flops == b->flops && a->bytes == b->bytes && a->output == b->output);
    }
    assert_true(first.saved_bytes == second.saved_bytes && first.backward_peak_bytes == second.backward_peak_bytes);
  }
  pl_arena_release(&arena);
}

/* Ranks that share a key-value head, of 16: keys and values, b s d each, are gathered among them as often as the layer
 * runs forward, and their gradients are scattered once. Weights are cut evenly all the same. */
static void test_shared_heads(void **state) {
  (void)state;
  uint64_t random = test_seed(20260611);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (uint64_t round = 0, n = test_cases(300); round < n; round++) {
    pl_arena_reset(&arena);
    pl_model model = random_model(&random);
    pl_block_shard shard = random_shard(&random), one;
    model.attention.n_kv_heads = 2 << random_below(&random, 3);
    model.attention.attention_bias = false; /* which each of them has whole */
    shard.tmp = 16;
    shard.fp8 = shard.fp4 = false;
    shard.recompute = coin(&random) ? PL_RECOMPUTE_FULL : PL_RECOMPUTE_NONE;
    one = shard;
    one.tmp = 1;
    one.sp = false;
    const pl_block_program split = take(&model, PL_BLOCK_LAYER, shard, &arena),
                           whole = take(&model, PL_BLOCK_LAYER, one, &arena);
    const pl_op_list lists[] = {split.forward, split.backward};
    int gathers = 0, scatters = 0;
    for (int pass = 0; pass < 2; pass++)
      for (uint32_t i = 0; i < lists[pass].n_ops; i++) {
        const pl_op *op = &lists[pass].ops[i];
        if (op->kind != PL_OP_COLLECTIVE || op->group != PL_GROUP_HEADS) continue;
        gathers += op->collective == PL_ALL_GATHER;
        scatters += op->collective == PL_REDUCE_SCATTER && pass == 1;
        expect("keys or values", op->size_bytes,
               pl_dtype_bytes(shard.dtype) * shard.mbs * (double)shard.seq * (double)model.attention.head_size);
      }
    assert_int_equal(gathers, shard.recompute == PL_RECOMPUTE_FULL ? 4 : 2);
    assert_int_equal(scatters, 2);
    double weights[2] = {0};
    for (int k = 0; k < 2; k++)
      for (uint32_t i = 0; i < (k == 0 ? &split : &whole)->n_tensors; i++) {
        const pl_tensor *tensor = &(k == 0 ? &split : &whole)->tensors[i];
        if (tensor->kind == PL_TENSOR_PARAMETER && tensor->rank >= 2 && tensor->dims[0] != 'p')
          weights[k] += elements(tensor);
      }
    expect("weights", weights[0], weights[1] / 16);
  }
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_shared_heads),
                                     cmocka_unit_test(test_experts), cmocka_unit_test(test_repeatable)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
